//! Injection processes: when a terminal creates its packets.
//!
//! To add one: a file here that implements [`InjectionProcess`] and [`Member`](kasuri_network::registry::Member), a `mod` line, and its
//! line in [`PROCESSES`].

pub mod batch;
pub mod bernoulli;
pub mod on_off;
pub mod periodic;

use kasuri_network::id::TerminalId;
use kasuri_network::registry;
use kasuri_network::rng::Stream;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The parameters of a process, before it knows its load.
pub trait InjectionProcess: Send + Sync + std::fmt::Debug {
    /// Prepares the process for a rate of `packet_rate` packets per terminal and cycle (0 to 1).
    ///
    /// # Errors
    /// A sentence: a parameter is outside its range, or the rate cannot be had.
    fn compile(&self, packet_rate: f64) -> Result<Box<dyn Process>, String>;

    /// Does the process end by itself after a number of packets (a closed workload without `load`)?
    fn packets_per_terminal(&self) -> Option<u64> {
        None
    }

    /// What holds a terminal back besides the process.
    fn window(&self) -> Window {
        Window::default()
    }
}

/// What the packets that a terminal has sent, and those that it has answered, mean to those that it creates. By default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Packets that may be outstanding; `None`: any number. One is from its creation until the cycle after its arrival, or after that of
    /// its answer.
    pub outstanding: Option<u32>,
    /// Do answers count among the packets of a batch?
    pub counts_answers: bool,
}

impl Window {
    /// Does it leave everything to the process: no limit, and answers not counted?
    pub fn is_open(self) -> bool {
        self == Self::default()
    }
}

registry! {
    /// All processes.
    pub PROCESSES: dyn InjectionProcess = [
        bernoulli::Bernoulli,
        on_off::OnOff,
        periodic::Periodic,
        batch::Batch,
    ]
}

/// A process at one rate.
pub trait Process: Send + Sync + std::fmt::Debug {
    /// The cycle in which packet `index` (from 0) of a terminal is created, given the cycle of the one before (`None` for the
    /// first). `None`: the terminal creates no more packets. Cycles rise strictly.
    fn next(&self, index: u64, previous: Option<u64>, stream: &mut Stream) -> Option<u64>;

    /// Do all creations of a terminal follow from the first one, which it draws, so that what two terminals are to each other never
    /// changes? `next` without a packet before draws such a phase, in cycles from 0.
    fn has_phase(&self) -> bool {
        false
    }

    /// Mean number of cycles from one burst of a terminal to the next, for processes with bursts. Rates seen over a time that holds few
    /// bursts say little of the mean rate.
    fn burst_cycles(&self) -> Option<f64> {
        None
    }

    /// The process of one terminal, where terminals have different ones.
    fn at(&self, _terminal: TerminalId) -> Option<&dyn Process> {
        None
    }
}

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
