//! A network interface of today for remote direct memory access (RDMA): a host adapter of InfiniBand or RoCE on the host's bus.
//!
//! It stands between the programs of a closed workload and the network, on every topology. A message is posted by the processor, announced by a
//! doorbell, described by a descriptor, read from the host's memory over the bus, sent; at its destination it is written to memory over
//! the bus, followed by a completion entry, for which the processor polls. Here are the constants; [`adapters`] has what happens when.

mod adapters;

use super::contract::{EndpointContext, EndpointError, EndpointModel, Interfaces, Prepared, RunningInterfaces};
use crate::units::Units;
use adapters::Adapters;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::registry::Member;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The constants of the interface, of the host's bus and of the library. Times are in nanoseconds.
///
/// The stages are those into which Zambre et al., "Breaking Band: A Breakdown of High-performance Communication" (ICPP 2019) divide the path of
/// a message. docs/explanation/rdma.md says which defaults are published and which are assumed. All terminals have the same interface.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rdma {
    /// The processor's time for posting a message: it writes the descriptor and the doorbell. It posts one message after the other.
    /// Default assumed.
    pub post_ns: f64,
    /// From the processor's write to the interface until that has it: one way over the bus. Default assumed.
    pub doorbell_ns: f64,
    /// Does the descriptor go to the interface with the doorbell ("BlueFlame")? If not, the interface reads it from memory.
    pub descriptor_in_doorbell: bool,
    /// The interface's read of a descriptor that did not come with the doorbell: there and back. Default as `read_ns`.
    pub descriptor_fetch_ns: f64,
    /// A message of at most this many bytes, whole flits counted, is in its descriptor, so that no data has to be read and its buffer is
    /// free as soon as it is posted. 0: none is. Default assumed.
    pub inline_bytes: u32,
    /// The interface's work on each message that it sends and on each that it receives, one after the other on either side: the inverse of
    /// the message rate. Default: 215 million messages a second, NVIDIA ConnectX-6 User Manual.
    pub descriptor_ns: f64,
    /// The interface's read of the first data: there and back over the bus. Default: the median of reads of 64 bytes, Neugebauer et al.,
    /// "Understanding PCIe performance for end host networking" (SIGCOMM 2018).
    pub read_ns: f64,
    /// Data that the bus carries in each direction, 10^9 bits a second, headers not counted. Default: PCI Express 5.0 with 16 lanes and data
    /// of 256 bytes, by the formulas of Neugebauer et al.
    pub bus_gbit_per_second: f64,
    /// From the interface's last write to the host's memory until a processor can read it: one way over the bus and the memory's
    /// time. Default assumed.
    pub write_ns: f64,
    /// The processor's time for a completion entry that it finds. Default assumed.
    pub poll_ns: f64,
    /// From the arrival of a message's last flit to the arrival of its acknowledgement at the sender. Acknowledgements load no channel.
    /// Default assumed.
    pub acknowledgement_ns: f64,
    /// Does a program learn from a completion entry, after the acknowledgement, that its message has been sent and the buffer is free?
    /// If not, the message counts as sent once it is posted. Messages in their descriptors count so always.
    pub signalled: bool,
    /// Messages of a terminal that are posted and not acknowledged, at most; at least 1. Default assumed.
    pub send_queue_entries: u32,
}

impl Default for Rdma {
    fn default() -> Self {
        Self {
            post_ns: 175.0,
            doorbell_ns: 140.0,
            descriptor_in_doorbell: true,
            descriptor_fetch_ns: 547.0,
            inline_bytes: 128,
            descriptor_ns: 4.65,
            read_ns: 547.0,
            bus_gbit_per_second: 423.0,
            write_ns: 380.0,
            poll_ns: 60.0,
            acknowledgement_ns: 400.0,
            signalled: true,
            send_queue_entries: 128,
        }
    }
}

impl Member for Rdma {
    const NAME: &'static str = "rdma";
    const SUMMARY: &'static str =
        "host adapter of today (InfiniBand, RoCE) under any closed workload: doorbell, descriptor, bus, completion";
    const SOURCE: &'static str = "Zambre et al., Breaking Band: A Breakdown of High-performance Communication, ICPP 2019";
    const EXAMPLE: &'static str = "read_ns = 547.0";
}

impl EndpointModel for Rdma {
    fn workload_schema(&self) -> Option<Schema> {
        None
    }

    fn binds(&self) -> &'static str {
        "its queue pairs belong to its adapter"
    }

    fn prepare(&self, context: &EndpointContext<'_>) -> Result<Prepared, EndpointError> {
        self.check()?;
        let missing = |key: &str, problem: &str| EndpointError::new("network", key, problem);
        let Units { cycle_ns, flit_bytes } = context.units;
        let cycle_ns =
            cycle_ns.ok_or_else(|| missing("cycle_ns", "is missing; the interface's times are in ns, so say how long a cycle is"))?;
        let flit_bytes = flit_bytes
            .ok_or_else(|| missing("flit_bytes", "is missing; the interface's bus counts bytes, so say how many a flit holds"))?;
        Ok(Prepared::Interfaces(Arc::new(Hosts::new(self, context.network, cycle_ns, flit_bytes))))
    }
}

impl Rdma {
    fn check(&self) -> Result<(), EndpointError> {
        let wrong = |key: &str, problem: String| Err(EndpointError::new("endpoint", key, problem));
        for (key, ns) in self.times() {
            if !(0.0..=1e9).contains(&ns) {
                return wrong(key, format!("is {ns}; it must be 0 to 10^9 ns"));
            }
        }
        let rate = self.bus_gbit_per_second;
        if !(rate > 0.0 && rate <= 1e9) {
            return wrong("bus_gbit_per_second", format!("is {rate}; it must be above 0 and at most 10^9"));
        }
        for (key, value, least, most) in
            [("inline_bytes", self.inline_bytes, 0, MAX_INLINE), ("send_queue_entries", self.send_queue_entries, 1, MAX_ENTRIES)]
        {
            if !(least..=most).contains(&value) {
                return wrong(key, format!("is {value}; it must be {least} to {most}"));
            }
        }
        Ok(())
    }

    fn times(&self) -> [(&'static str, f64); 8] {
        [
            ("post_ns", self.post_ns),
            ("doorbell_ns", self.doorbell_ns),
            ("descriptor_fetch_ns", self.descriptor_fetch_ns),
            ("descriptor_ns", self.descriptor_ns),
            ("read_ns", self.read_ns),
            ("write_ns", self.write_ns),
            ("poll_ns", self.poll_ns),
            ("acknowledgement_ns", self.acknowledgement_ns),
        ]
    }
}

/// The most bytes that a descriptor holds.
const MAX_INLINE: u32 = 4096;

/// The most entries of a send queue.
const MAX_ENTRIES: u32 = 1 << 20;

/// The hosts of all terminals. Times are in cycles.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The length of a cycle, ns.
    cycle_ns: f64,
    /// The processor's posting of a message.
    post: f64,
    /// From the end of posting until the interface has the descriptor.
    announce: f64,
    /// The interface's work on a message, on either side.
    descriptor: f64,
    /// The read of the first data.
    read: f64,
    /// The bus's time for a flit, in either direction.
    bus: f64,
    /// A write to memory.
    write: f64,
    /// The processor's time for a completion entry.
    poll: f64,
    /// From arrival to acknowledgement.
    acknowledgement: f64,
    /// Flits of the longest message in a descriptor.
    inline_flits: u32,
    /// Are completions of messages that are not in their descriptors waited for?
    signalled: bool,
    /// Messages posted and not acknowledged, at most.
    entries: u32,
    /// By terminal: cycles that the channel to the network takes for a flit.
    injection: Vec<f64>,
}

impl Hosts {
    fn new(constants: &Rdma, network: &Network, cycle_ns: f64, flit_bytes: u32) -> Self {
        let cycles = |ns: f64| ns / cycle_ns;
        let fetch = if constants.descriptor_in_doorbell { 0.0 } else { constants.descriptor_fetch_ns };
        let period = |terminal| f64::from(network.link(network.injection_channel(TerminalId(terminal))).period);
        Self {
            cycle_ns,
            post: cycles(constants.post_ns),
            announce: cycles(constants.doorbell_ns + fetch),
            descriptor: cycles(constants.descriptor_ns),
            read: cycles(constants.read_ns),
            // Gbit/s are bits per ns.
            bus: cycles(f64::from(flit_bytes) * 8.0 / constants.bus_gbit_per_second),
            write: cycles(constants.write_ns),
            poll: cycles(constants.poll_ns),
            acknowledgement: cycles(constants.acknowledgement_ns),
            inline_flits: constants.inline_bytes / flit_bytes,
            signalled: constants.signalled,
            entries: constants.send_queue_entries,
            injection: (0..network.terminal_count()).map(period).collect(),
        }
    }
}

impl Interfaces for Hosts {
    fn model(&self) -> &'static str {
        Rdma::NAME
    }

    fn begin(self: Arc<Self>, packet_flits: Vec<u32>, timeline: bool) -> Box<dyn RunningInterfaces> {
        Box::new(Adapters::new(self, packet_flits, timeline))
    }
}
