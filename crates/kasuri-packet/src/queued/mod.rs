//! Output-queued routers in any network, packet by packet, in the cycles of the flit engine.
//!
//! A packet is an event where it begins to leave, where it has left, and where it joins the next queue; its flits are a time. So a run costs
//! by packets, however many flits they have, and its times are those that the flits would have: a lone packet has the latency that it has in
//! the flit engine. A queue is first come, first served, and events of one cycle come in the order in which they were planned.
//!
//! Of an output that is faster than the input the last flits wait for those that are to come: the packet holds the channel until its last flit
//! has left. A terminal has the packets of its messages take turns.
//!
//! A transport that reacts to congestion (marks, trimmed headers, windows) would be a step between [`terminals`] and the first queue, with
//! notice of each packet from [`run`]: on arrival, and where a queue drops it.
//!
//! The records of a run are in [`state`], below the files that change them; events outside the calendar are in [`control`].

mod control;
mod counts;
mod failures;
mod outcome;
mod packets;
mod ports;
mod run;
mod state;
mod stuck;
mod support;
mod terminals;
mod workload;

pub use support::features;

use kasuri_model::engine::{Controller, EngineError, Outcome, Prepared};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::extents::Extents;
use state::Run;

/// Bytes of a channel: its port, two events and its part of the results.
const CHANNEL_BYTES: u64 = 320;

/// Bytes of a terminal, and of one of its classes.
const TERMINAL_BYTES: u64 = 220;
const CLASS_BYTES: u64 = 160;

/// Bytes of the counters of latencies, and of an empty calendar.
const COUNTER_BYTES: u64 = 1 << 20;

/// How long a packet's event takes compared with a flit's in the flit engine.
const SLOWNESS_OF_PACKETS: f64 = 4.0;

/// Gets a scenario with output-queued routers ready.
///
/// # Errors
/// All that such routers cannot be part of.
pub fn prepare(scenario: &Scenario) -> Result<Box<dyn Prepared + '_>, Vec<Refusal>> {
    let refusals = support::refusals(scenario);
    if refusals.is_empty() { Ok(Box::new(Ready { scenario })) } else { Err(refusals) }
}

/// A scenario that can be run.
struct Ready<'s> {
    scenario: &'s Scenario,
}

impl Prepared for Ready<'_> {
    fn memory_bytes(&self, _extents: &mut Extents) -> u64 {
        let network = &self.scenario.network;
        let (terminals, channels) = (u64::from(network.terminal_count()), u64::from(network.channel_count()));
        let classes = self.scenario.classes.len() as u64;
        CHANNEL_BYTES * channels + (TERMINAL_BYTES + CLASS_BYTES * classes) * terminals + COUNTER_BYTES
    }

    fn slowness(&self) -> f64 {
        SLOWNESS_OF_PACKETS / f64::from(self.scenario.longest_packet())
    }

    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        Run::new(self.scenario).run(controller)
    }
}
