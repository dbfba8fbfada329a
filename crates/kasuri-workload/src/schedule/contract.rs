//! The contract of constructions: schedules, jobs, and the line of the table.

use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use std::fmt::Debug;
use std::sync::Arc;
use thiserror::Error;

/// An all-to-all: who sends to whom in which phase.
pub trait Schedule: Debug + Send + Sync {
    /// How many phases there are.
    fn phases(&self) -> u32;

    /// Does every rank send in every phase?
    fn is_full(&self) -> bool {
        true
    }

    /// To which rank a rank sends in a phase.
    fn destination(&self, rank: u32, phase: u32) -> Option<u32>;

    /// From which rank a rank receives in a phase: from the one that sends to it.
    fn source(&self, rank: u32, phase: u32) -> Option<u32>;
}

/// A schedule and the terminals that it is for.
#[derive(Debug)]
pub struct Plan {
    /// The terminal of each rank.
    pub terminals: Vec<TerminalId>,
    /// The phases.
    pub schedule: Arc<dyn Schedule>,
}

/// Which terminals take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// All of the network.
    All,
    /// So many; the construction chooses which.
    Count(u32),
    /// These. Ranks are given in ascending order where the construction says nothing else.
    Terminals(Vec<TerminalId>),
}

/// The terminals for a job of so many.
pub(super) type Choose = fn(&Network, u32) -> Result<Vec<TerminalId>, ScheduleError>;

impl Job {
    /// Its terminals: those that `choose` takes, or those that are listed, in ascending order. There may be 2 to `most`, which `needs` says.
    pub(super) fn terminals(
        &self,
        schedule: &'static str,
        network: &Network,
        (most, needs): (u32, &str),
        choose: Choose,
    ) -> Result<Vec<TerminalId>, ScheduleError> {
        let available = network.terminal_count();
        let refused = |problem: String| Err(ScheduleError::Job { schedule, problem });
        let is_wrong = |count: usize| count < 2 || count > most as usize;
        let terminals = match self {
            Self::All => (0..available).map(TerminalId).collect(),
            Self::Count(count) if *count > available => return refused(format!("{count} terminals; the network has {available}")),
            Self::Count(count) if is_wrong(*count as usize) => return refused(format!("{count} terminals; {needs}")),
            Self::Count(count) => choose(network, *count)?,
            Self::Terminals(terminals) => {
                let mut sorted = terminals.clone();
                sorted.sort_unstable();
                if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    return refused(format!("terminal {} twice", pair[0]));
                }
                if let Some(last) = sorted.last().filter(|last| last.0 >= available) {
                    return refused(format!("terminal {last}; the network's are 0 to {}", available - 1));
                }
                sorted
            }
        };
        if is_wrong(terminals.len()) {
            return refused(format!("{} terminals; {needs}", terminals.len()));
        }
        Ok(terminals)
    }
}

/// Makes the phases for a job of these terminals. Constructions that are formulas do not ask the routing.
pub(super) type Build = fn(&Network, &dyn Routing, &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError>;

/// A line of the table.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line for `kasuri list`.
    pub summary: &'static str,
    /// Where the definition stands.
    pub source: &'static str,
    /// Is the network of the right kind?
    pub fits: fn(&Network) -> bool,
    /// The terminals for a job of so many. The network fits, the number is 2 or more and not more than its terminals.
    pub(super) choose: Choose,
    /// The phases for a job of these terminals, in ascending order. The network fits.
    pub(super) build: Build,
}

impl Entry {
    /// Makes the schedule for a job on a network with a routing.
    ///
    /// # Errors
    /// A network of another kind; fewer than 2 terminals, one that the network does not have or that is named twice; terminals
    /// for which the construction does not work; or, for `general`, a routing with choices.
    pub fn plan(&self, network: &Network, routing: &dyn Routing, job: &Job) -> Result<Plan, ScheduleError> {
        if !(self.fits)(network) {
            return Err(ScheduleError::Network { schedule: self.name, network: network.name().to_owned() });
        }
        let terminals = job.terminals(self.name, network, (u32::MAX, "an all-to-all needs at least 2"), self.choose)?;
        let schedule = (self.build)(network, routing, &terminals)?;
        Ok(Plan { terminals, schedule: schedule.into() })
    }
}

/// Why a schedule cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The network is of another kind; `shift` and `general` fit every network.
    #[error("schedule `{schedule}` does not fit {network}; `shift` and `general` fit every network")]
    Network {
        /// The schedule's name.
        schedule: &'static str,
        /// The network's one-line form.
        network: String,
    },
    /// The construction does not work for these terminals.
    #[error("schedule `{schedule}` cannot serve {problem}")]
    Job {
        /// The schedule's name.
        schedule: &'static str,
        /// Which terminals, why not, and what is possible.
        problem: String,
    },
    /// A search over routes needs routes that are fixed.
    #[error(transparent)]
    Routes(#[from] VerifyError),
}

/// The first so many terminals, for constructions that take any.
pub(super) fn first(_network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    Ok((0..count).map(TerminalId).collect())
}

/// Why a schedule cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifyError {
    /// The routing draws or weighs, so that a route is not known beforehand.
    #[error(
        "from terminal {from} to terminal {to} the routing has a choice; a schedule is counted on fixed routes, such as `minimal` with \
         tie = \"destination\", `nca` with up_port = \"d-mod-k\", `dimension-order` with tie = \"positive\""
    )]
    Choice {
        /// The source.
        from: TerminalId,
        /// The destination.
        to: TerminalId,
    },
    /// A packet does not arrive.
    #[error("from terminal {from} to terminal {to} the routing does not arrive")]
    Lost {
        /// The source.
        from: TerminalId,
        /// The destination.
        to: TerminalId,
    },
    /// A rank sends to a rank that expects nothing from it, or to none of the job.
    #[error("in phase {phase} rank {source_rank} sends to rank {destination}, which expects its message from elsewhere")]
    Unexpected {
        /// The phase, from 0.
        phase: u32,
        /// Who sends.
        source_rank: u32,
        /// Who should receive.
        destination: u32,
    },
}
