//! All-to-alls in phases that suit a network: in each phase a terminal sends at most one message and receives at most one.
//!
//! A [`Schedule`] answers for any rank and phase by a formula and lists nothing. It belongs to a set of terminals of one network,
//! its job; [`verify`] counts on the network, with the routing in use and sharing nothing with the formulas, whether every pair
//! is served and how many messages of a phase share a channel. [`Scheduled`] hands a schedule to a closed workload.
//!
//! Knows no time and no engine. Members import the contract (`contract.rs`), never this file.
//!
//! To add one: a file here with the construction and its `ENTRY`, a `mod` line, and its line in [`SCHEDULES`].

pub mod arranged;
mod contract;
mod full_mesh;
mod general;
mod hypercube;
mod layered_mesh;
mod mlfm;
mod oft;
mod part;
mod product;
mod ring;
mod scheduled;
mod shift;
mod torus;
mod verification;

pub use contract::{Entry, Job, Plan, Schedule, ScheduleError, VerifyError};
pub use scheduled::Scheduled;
pub use verification::{Routes, Shortfall, Verification, verify};

use kasuri_network::network::Network;
use kasuri_network::routing::Routing;

/// All constructions; the first that fits a network is its default.
pub static SCHEDULES: &[Entry] = &[mlfm::ENTRY, oft::ENTRY, full_mesh::ENTRY, hypercube::ENTRY, torus::ENTRY, shift::ENTRY, general::ENTRY];

/// The first construction that fits the network. `shift` fits all; [`fastest`] may know a faster one.
pub fn default_for(network: &Network) -> &'static Entry {
    SCHEDULES.iter().find(|entry| (entry.fits)(network)).unwrap_or(&shift::ENTRY)
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
