//! All-to-alls in phases that suit a network: in each phase a terminal sends at most one message and receives at most one.
//!
//! A [`Schedule`] answers for any rank and phase by a formula and lists nothing. It belongs to a set of terminals of one network,
//! its job; [`verify`] counts on the network, with the routing in use and sharing nothing with the formulas, whether every pair
//! is served and how many messages of a phase share a channel. [`Scheduled`] hands a schedule to a closed workload.
//!
//! To add one: a file here with the construction and its `ENTRY`, a `mod` line, and its line in [`SCHEDULES`].

pub mod arranged;
mod full_mesh;
mod general;
mod hypercube;
mod layered_mesh;
mod mlfm;
mod oft;
mod part;
mod product;
mod ring;
mod shift;
mod torus;
mod verification;

pub use verification::{Routes, Shortfall, Verification, VerifyError, verify};

use crate::collective::{Block, Collective, Transfer};
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
type Choose = fn(&Network, u32) -> Result<Vec<TerminalId>, ScheduleError>;

impl Job {
    /// Its terminals: those that `choose` takes, or those that are listed, in ascending order. There may be 2 to `most`, which `needs` says.
    fn terminals(
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
type Build = fn(&Network, &dyn Routing, &[TerminalId]) -> Result<Box<dyn Schedule>, ScheduleError>;

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
    choose: Choose,
    /// The phases for a job of these terminals, in ascending order. The network fits.
    build: Build,
}

/// All constructions; the first that fits a network is its default.
pub static SCHEDULES: &[Entry] = &[mlfm::ENTRY, oft::ENTRY, full_mesh::ENTRY, hypercube::ENTRY, torus::ENTRY, shift::ENTRY, general::ENTRY];

/// The first construction that fits the network. `shift` fits all; [`fastest`] may know a faster one.
pub fn default_for(network: &Network) -> &'static Entry {
    SCHEDULES.iter().find(|entry| (entry.fits)(network)).unwrap_or(&shift::ENTRY)
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

/// A schedule for a job, and what it was counted to do.
#[derive(Debug)]
pub struct Counted {
    /// The construction.
    pub entry: &'static Entry,
    /// The schedule.
    pub plan: Plan,
    /// What was counted.
    pub counted: Verification,
}

impl Counted {
    /// Makes a schedule and counts it.
    ///
    /// # Errors
    /// As [`Entry::plan`] and [`verify`].
    pub fn of(entry: &'static Entry, network: &Network, routing: &dyn Routing, job: &Job) -> Result<Self, ScheduleError> {
        let plan = entry.plan(network, routing, job)?;
        let counted = verify(network, routing, &plan)?;
        Ok(Self { entry, plan, counted })
    }
}

/// The fastest schedule that is known for a job: the one that is made for the network or, if there is none or it is slower than the lower
/// bound, the one that a search finds, unless the job has more than `searched` terminals. The search takes some ten seconds for 1024
/// terminals, and its time grows faster than their number.
///
/// # Errors
/// As [`Counted::of`].
pub fn fastest(network: &Network, routing: &dyn Routing, job: &Job, searched: u32) -> Result<Counted, ScheduleError> {
    let own = Counted::of(default_for(network), network, routing, job);
    let ranks = match job {
        Job::All => network.terminal_count(),
        Job::Count(count) => *count,
        Job::Terminals(terminals) => terminals.len() as u32,
    };
    let is_fastest = own.as_ref().is_ok_and(|own| own.counted.time() <= own.counted.lower_bound());
    if is_fastest || ranks > searched {
        return own;
    }
    match (own, Counted::of(&general::ENTRY, network, routing, job)) {
        (Ok(own), Ok(general)) if own.counted.time() <= general.counted.time() => Ok(own),
        (_, Ok(general)) => Ok(general),
        (own, Err(_)) => own,
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
fn first(_network: &Network, count: u32) -> Result<Vec<TerminalId>, ScheduleError> {
    Ok((0..count).map(TerminalId).collect())
}

/// A schedule as an all-to-all of messages of one length.
#[derive(Debug)]
pub struct Scheduled {
    schedule: Arc<dyn Schedule>,
    flits: u32,
}

impl Scheduled {
    /// Messages of so many flits, at least 1.
    pub fn new(schedule: Arc<dyn Schedule>, flits: u32) -> Self {
        Self { schedule, flits: flits.max(1) }
    }
}

impl Collective for Scheduled {
    fn rounds(&self) -> u32 {
        self.schedule.phases()
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(Transfer { peer: self.schedule.destination(rank, round)?, flits: self.flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.schedule.source(rank, round)
    }

    fn needs_receive(&self) -> bool {
        false
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        self.schedule.is_full().then(|| (u64::from(ranks) * u64::from(self.rounds()), self.flits))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.schedule.destination(rank, round).map(|part| Block { origin: rank, part }).into_iter().collect()
    }
}
