//! The contract of injection processes: their parameters, and a process at one rate.

use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;

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
