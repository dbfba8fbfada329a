//! Destination tags where bundles of cables join the routers: the tag also names the cable of each bundle.
//!
//! Which cable that is may depend on the source. A router need not know it: what has come on an input has come from terminals that take
//! the same output to a destination, so one of them stands for all. The tests of `tests/multicast.rs` hold every network to that.

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};

/// The outputs by table: attributes `tags` (by stage, cable and destination), `cable_from` and `cable_to`.
#[derive(Debug)]
pub(super) struct TagTable {
    radix: u32,
    terminals: u32,
    cables: u32,
    tags: Vec<u32>,
    cable_to: Vec<u32>,
    /// By router.
    stages: Vec<u32>,
    /// By router and input: the cable number of the sources of what comes there.
    cable_from: Vec<u32>,
    by_source: bool,
}

impl TagTable {
    /// The table of a network that has one.
    pub(super) fn new(network: &Network, radix: u32) -> Option<Self> {
        let labels = network.labels();
        let attribute = |name| labels.attribute(name);
        let (tags, from, to) = (attribute("tags")?, attribute("cable_from")?, attribute("cable_to")?);
        let stages = labels.router("stage")?;
        let terminals = network.terminal_count();
        let depth = stages.iter().max()? + 1;
        Some(Self {
            radix,
            terminals,
            cables: tags.len() as u32 / (depth * terminals).max(1),
            tags: tags.to_vec(),
            cable_to: to.to_vec(),
            stages: stages.to_vec(),
            cable_from: sources(network, radix, stages).into_iter().map(|source| from[source.index()]).collect(),
            by_source: from.iter().any(|&cable| cable != 0),
        })
    }

    fn output(&self, router: RouterId, input: Port, destination: TerminalId) -> Port {
        let from = self.cable_from[router.index() * self.radix as usize + usize::from(input)];
        let cable = (from + self.cable_to[destination.index()]) % self.cables;
        let row = self.stages[router.index()] * self.cables + cable;
        self.tags[(row * self.terminals + destination.0) as usize] as Port
    }
}

/// By router and input: a terminal whose packets come there; terminal 0 where none do.
fn sources(network: &Network, radix: u32, stages: &[u32]) -> Vec<TerminalId> {
    let mut found = vec![TerminalId(0); stages.len() * radix as usize];
    let mut in_order: Vec<u32> = (0..network.router_count()).collect();
    in_order.sort_by_key(|&router| stages[router as usize]);
    for router in in_order.into_iter().map(RouterId) {
        for input in 0..network.port_count(router) as Port {
            let Some(channel) = network.input_channel(router, input) else { continue };
            found[router.index() * radix as usize + usize::from(input)] = match network.source(channel) {
                Endpoint::Terminal(terminal) => terminal,
                // Any input of the router before that something comes to; they are filled from the first on.
                Endpoint::Router(before, _) => found[before.index() * radix as usize],
            };
        }
    }
    found
}

impl Routing for TagTable {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            reads: Reads { input: self.by_source, terminal: true, ..Reads::DESTINATION_ROUTER },
            observes_congestion: false,
            ..RoutingFacts::default()
        }
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        (!self.by_source).then(|| self.output(router, 0, destination))
    }

    fn route(&self, hop: &Hop, _state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        candidates.push(Candidate::new(self.output(hop.router, hop.input, hop.destination), hop.available));
    }
}
