//! HOW, packet by packet: Ethernet fabrics of output-queued switches, in whole picoseconds.
//!
//! A packet occupies an output for its bytes, travels the link, then the switch, and joins the next queue: store and forward, first come
//! first served, no queue is ever full. Hosts send packets of their flows in turn; receivers acknowledge every few packets; who has all
//! acknowledged sets off what its trigger starts. Events of one time happen in the order in which they were planned, so that a run with
//! fixed paths has one right result. [`simulate`] follows the packets; [`fluid`] shares links among flows instead; [`bounds`] has the time
//! of a lone flow, and the least time in which any network without losses could be done.
//!
//! Source of the rules: what uet-htsim (13 August 2025) does where nothing fills a queue, closes a window or marks a packet.

pub mod bounds;
mod calendar;
mod engine;
mod flows;
pub mod fluid;
mod interfaces;
mod packets;
mod paths;
mod ports;
pub mod queued;
mod receiver;
mod wiring;

use kasuri_workload::ethernet::fabric::Fabric;
use kasuri_workload::ethernet::matrix::Matrix;

/// How packets of data are spread over the links that lead to their destination. Acknowledgements are always hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spray {
    /// Switches hash flow and path number; a flow takes its path numbers in turn.
    Hash,
    /// A switch draws for each packet.
    Random,
    /// A switch takes its links in turn, in an order that is drawn anew each round.
    RoundRobin,
}

/// What a run has beside its fabric and flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a full packet on the wire, more than `header`.
    pub mtu: u16,
    /// Bytes of a packet that are no payload, and of an acknowledgement; at least 1.
    pub header: u16,
    /// At which each host's interface lets packets out, Mbit/s; the rate of its link if absent.
    pub interface_mbps: Option<u32>,
    /// Wire bytes received between acknowledgements.
    pub acknowledged_bytes: u64,
    /// How packets are spread.
    pub spray: Spray,
    /// Path numbers of a flow, a power of two up to [`MAX_PATHS`].
    pub paths: u32,
    /// Links with a quarter of their rate: of each ToR those to the first so many spines, both directions; of three tiers so many links
    /// from cores down.
    pub slow_links: u32,
    /// Of all that is drawn.
    pub seed: u64,
}

/// The most path numbers of a flow.
pub const MAX_PATHS: u32 = 1 << 16;

/// The latest picosecond that is simulated.
pub const MAX_TIME: u64 = 1 << 62;

impl Default for Options {
    fn default() -> Self {
        Self {
            mtu: 4150,
            header: 64,
            interface_mbps: None,
            acknowledged_bytes: 16_384,
            spray: Spray::Hash,
            paths: 64,
            slow_links: 0,
            seed: 1,
        }
    }
}

impl Options {
    /// Packets of a flow, and bytes on the wire of the last.
    pub fn packets(&self, bytes: u64) -> (u64, u64) {
        let payload = u64::from(self.mtu - self.header);
        let packets = bytes.div_ceil(payload).max(1);
        (packets, bytes - (packets - 1) * payload + u64::from(self.header))
    }
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The network.
    pub fabric: &'a Fabric,
    /// The flows, for the same number of hosts.
    pub matrix: &'a Matrix,
    /// All else.
    pub options: Options,
}

/// What became of a flow, in picoseconds since the start. What never happened is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTimes {
    /// It began.
    pub started: Option<u64>,
    /// Its last byte was received.
    pub received: Option<u64>,
    /// Its sender had all acknowledged.
    pub finished: Option<u64>,
}

/// What a simulation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Of each flow, in the order of the matrix.
    pub flows: Vec<FlowTimes>,
    /// Packets of data that were sent.
    pub packets: u64,
    /// Acknowledgements that were sent.
    pub acknowledgements: u64,
    /// Packets of data that came before one that was sent earlier.
    pub early_packets: u64,
}

/// Follows every packet.
///
/// # Errors
/// A sentence that says why the run cannot be made or goes on for too long.
pub fn simulate(input: &Input<'_>) -> Result<Outcome, String> {
    check(input)?;
    engine::Engine::new(input).run()
}

/// What must hold of every input.
fn check(input: &Input<'_>) -> Result<(), String> {
    let options = &input.options;
    if input.fabric.hosts != input.matrix.hosts {
        return Err(format!("the fabric has {} hosts, the connection matrix {}", input.fabric.hosts, input.matrix.hosts));
    }
    if options.header == 0 || options.mtu <= options.header {
        return Err(format!("packets of {} bytes have no room for payload behind a header of {}", options.mtu, options.header));
    }
    if !options.paths.is_power_of_two() || options.paths > MAX_PATHS {
        return Err(format!("{} path numbers of a flow are no power of two up to {MAX_PATHS}", options.paths));
    }
    if options.interface_mbps == Some(0) {
        return Err("interfaces of 0 Mbit/s never send".to_owned());
    }
    let too_long = |bytes: u64| options.packets(bytes).0 >= u64::from(u32::MAX);
    match input.matrix.connections.iter().find(|flow| too_long(flow.bytes)) {
        Some(flow) => Err(format!("flow {} of {} bytes has more than 2^32 packets", flow.id, flow.bytes)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
