//! The counts of a run: what is counted of its messages, and how near it is to its end. The same for all sharings.

use crate::statistics::{Arrival, Statistics};
use kasuri_model::engine::{Background, UserOutcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::memory::filled;

/// What is counted.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) statistics: Statistics,
    pub(crate) flit_hops: f64,
    /// By class whose it is, and what each user had; empty without users.
    pub(crate) user_of_class: Vec<usize>,
    pub(crate) users: Vec<UserOutcome>,
    /// What open traffic beside a workload had, where it is not users'.
    pub(crate) background: Option<Background>,
}

/// How near a closed run is to its end.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Messages of a workload or of batches that have not arrived.
    pub(crate) to_come: Option<u64>,
    /// By terminal: when its last message has come.
    pub(crate) completion: Box<[f64]>,
    /// Batches: have all messages of some terminal arrived, and does the controller know?
    pub(crate) first_finished: bool,
    pub(crate) first_told: bool,
}

impl Counts {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let users = scenario.users.as_deref();
        let classes = scenario.channels_of_classes().len();
        Self {
            statistics: Statistics::new(scenario.network.terminal_count() as usize),
            flit_hops: 0.0,
            user_of_class: users.map(|users| (0..classes).filter_map(|class| users.of_class(class)).collect()).unwrap_or_default(),
            users: vec![UserOutcome::default(); users.map_or(0, |users| users.users.len())],
            background: scenario.has_background().then(Background::default),
        }
    }

    /// Counts a message that has arrived: of the workload, or of the open traffic.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, is_of_workload: bool, class: u8, flits: u32, arrival: &Arrival) {
        let counting = self.statistics.counting;
        match &mut self.background {
            Some(background) if !is_of_workload => {
                let latency = counting.covers(arrival.asked).then(|| (arrival.time - arrival.created).round() as u64);
                background.count(flits, counting.rates, latency);
            }
            _ => self.statistics.arrive(arrival),
        }
        self.count_for_user(class, flits, arrival);
    }

    /// Adds what was counted elsewhere, all but the distributions.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.statistics.absorb(&other.statistics);
        self.flit_hops += other.flit_hops;
        self.users.iter_mut().zip(&other.users).for_each(|(sum, user)| sum.absorb(user));
    }

    /// Counts a message for the user whose it is, if there are users.
    pub(crate) fn count_for_user(&mut self, class: u8, flits: u32, arrival: &Arrival) {
        let Some(&user) = self.user_of_class.get(usize::from(class)) else { return };
        let (counting, outcome) = (&self.statistics.counting, &mut self.users[user]);
        outcome.accepted_flits += u64::from(flits) * u64::from(counting.rates);
        if counting.covers(arrival.asked) {
            let latency = (arrival.time - arrival.created).round() as u64;
            outcome.packets += 1;
            outcome.packet_latency += latency;
            outcome.packet_latency_max = outcome.packet_latency_max.max(latency);
        }
    }
}

impl Ends {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let terminals = scenario.network.terminal_count() as usize;
        Self {
            to_come: scenario.closed_messages(),
            completion: filled(if scenario.is_closed() { terminals } else { 0 }, 0.0),
            first_finished: false,
            first_told: false,
        }
    }
}
