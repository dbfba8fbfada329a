//! Terminals that share a process at rates of their own.

use super::contract::{InjectionProcess, Process};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// A process for each terminal.
#[derive(Debug)]
pub struct ByTerminal(Vec<Arc<dyn Process>>);

impl ByTerminal {
    /// The process of a pattern's terminals, each at its part of the packet rate; equal ones are shared.
    ///
    /// # Errors
    /// What the process says of a rate.
    pub fn new(process: &dyn InjectionProcess, packet_rate: f64, shares: impl Iterator<Item = f64>) -> Result<Self, String> {
        let mut known: BTreeMap<u64, Arc<dyn Process>> = BTreeMap::new();
        let of_share = |share: f64| match known.entry(share.to_bits()) {
            Entry::Occupied(known) => Ok(Arc::clone(known.get())),
            Entry::Vacant(place) => Ok(Arc::clone(place.insert(Arc::from(process.compile(packet_rate * share)?)))),
        };
        shares.map(of_share).collect::<Result<_, _>>().map(Self)
    }
}

impl Process for ByTerminal {
    fn next(&self, index: u64, previous: Option<u64>, stream: &mut Stream) -> Option<u64> {
        self.0[0].next(index, previous, stream)
    }

    fn has_phase(&self) -> bool {
        self.0[0].has_phase()
    }

    fn burst_cycles(&self) -> Option<f64> {
        self.0.iter().filter_map(|process| process.burst_cycles()).reduce(f64::max)
    }

    fn at(&self, terminal: TerminalId) -> Option<&dyn Process> {
        Some(&*self.0[terminal.index()])
    }
}
