//! What a run of a machine has brought, interval by interval and at its end.

use super::Packets;
use super::flights::Flight;
use crate::statistics::{Arrival, Statistics};
use crate::support::{self, Column};
use kasuri_model::engine::{Background, Interfaces, Interval, Outcome, Status, TranslationCounts, UserOutcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_workload::endpoint::running::{MachinePacket, Work};
use kasuri_workload::translation::users::{User, regions};

/// What refines the answer of the flit engine and has no meaning for whole packets in queues without bounds.
const NOT_MODELLED: &[&str] = &[
    "router.switching",
    "router.virtual_channels",
    "router.buffer_flits",
    "router.credit_delay",
    "router.vc_allocator",
    "router.switch_allocator",
    "router.vc_release",
];

/// What is counted.
#[derive(Debug)]
pub(super) struct Counts {
    /// Of the machine's parcels.
    statistics: Statistics,
    /// By terminal: when its last parcel came.
    last_arrival: Vec<u64>,
    /// By terminal, and of all in this interval: flits that have come.
    pub(super) accepted: Vec<u64>,
    accepted_in_interval: u64,
    pub(super) background: Background,
    /// Of each user; empty without users.
    users: Vec<UserOutcome>,
    /// By router: which users have nodes there; empty without users.
    regions: Vec<u64>,
    /// Of each user: others' packets in its region, router by router.
    foreign_packets: Vec<u64>,
}

impl Counts {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let terminals = scenario.network.terminal_count() as usize;
        let users: &[User] = scenario.users.as_ref().map_or(&[], |users| &users.users);
        Self {
            statistics: Statistics::new(terminals),
            last_arrival: vec![0; terminals],
            accepted: vec![0; terminals],
            accepted_in_interval: 0,
            background: Background::default(),
            users: vec![UserOutcome::default(); users.len()],
            regions: if users.is_empty() { Vec::new() } else { regions(users, &scenario.network) },
            foreign_packets: vec![0; users.len()],
        }
    }

    /// Counts a packet of a class at a router: it is foreign to the users with nodes there if its own user has none.
    pub(super) fn passes(&mut self, scenario: &Scenario, class: usize, router: RouterId) {
        let Some(user) = scenario.users.as_ref().and_then(|users| users.of_class(class)) else { return };
        let mut owners = self.regions[router.index()];
        if owners & 1 << user != 0 {
            return;
        }
        while owners != 0 {
            self.foreign_packets[owners.trailing_zeros() as usize] += 1;
            owners &= owners - 1;
        }
    }

    /// A packet has come to its terminal.
    pub(super) fn accept(&mut self, flight: &Flight) {
        self.accepted[flight.destination().index()] += u64::from(flight.flits);
        self.accepted_in_interval += u64::from(flight.flits);
    }

    /// A packet of a class has come to its terminal: its user has it.
    pub(super) fn of_user(&mut self, scenario: &Scenario, class: usize, flight: &Flight, now: u64) {
        let Some(user) = scenario.users.as_ref().and_then(|users| users.of_class(class)) else { return };
        let (outcome, latency) = (&mut self.users[user], now - flight.created);
        outcome.accepted_flits += u64::from(flight.flits);
        outcome.packets += 1;
        outcome.packet_latency += latency;
        outcome.packet_latency_max = outcome.packet_latency_max.max(latency);
    }

    /// A parcel has come to its terminal.
    pub(super) fn parcel_arrived(&mut self, parcel: &MachinePacket, flight: &Flight, now: u64) {
        self.last_arrival[parcel.destination.index()] = now;
        let (created, begun) = (flight.created as f64, flight.begun.unwrap_or(flight.created) as f64);
        let hops = flight.path.len() as u16 - 1;
        self.statistics.arrive(&Arrival { created, asked: flight.created, begun, time: now as f64, hops });
    }
}

impl Packets<'_> {
    pub(super) fn interval(&mut self, begin: u64, end: u64) -> Interval {
        self.counts.statistics.settle();
        let accepted_flits = std::mem::take(&mut self.counts.accepted_in_interval);
        Interval {
            end_cycle: end,
            cycles: end - begin,
            arrived: std::mem::take(&mut self.counts.statistics.arrived),
            injected_flits: accepted_flits,
            accepted_flits,
            completed: self.is_over(),
            ..Interval::default()
        }
    }

    /// The keys of this scenario that such a run leaves out.
    fn left_out(&self) -> Vec<String> {
        let scenario = Some(self.scenario).filter(|scenario| scenario.has_background() || scenario.users.is_some());
        scenario.into_iter().flat_map(|scenario| support::left_out(Column::Flow, scenario)).collect()
    }

    /// Notes when the programs of each user ended.
    fn note_ends(&mut self) {
        let Some(users) = &self.scenario.users else { return };
        for part in 0..self.channels_of_parts.len() {
            let Some(user) = users.of_class(self.scenario.classes.len() + part) else { continue };
            self.counts.users[user].completion = self.nodes.end_of(part).map(|end| end as f64);
        }
    }

    /// Notes what the nodes have translated for each user with a program.
    fn note_translations(&mut self, work: &Work) {
        let Some(users) = &self.scenario.users else { return };
        for (part, &counts) in work.translations.iter().enumerate() {
            let Some(user) = users.of_class(self.scenario.classes.len() + part) else { continue };
            self.counts.users[user].translation = Some(TranslationCounts { foreign_packets: self.counts.foreign_packets[user], ..counts });
        }
    }

    pub(super) fn outcome(mut self, status: Status, end: u64) -> Outcome {
        self.counts.statistics.settle();
        self.note_ends();
        let completed = status == Status::Completed;
        let cycles = if completed { self.now } else { end };
        let stands =
            (status == Status::Deadlock).then(|| format!("{} programs wait for answers that nobody will send", self.nodes.unfinished()));
        let last = self.nodes.last();
        let work = self.nodes.work(if completed { last } else { cycles });
        self.note_translations(&work);
        let Work { answered, busy, awaited, switches, switch_cycles, .. } = work;
        let channel_flits: Vec<u64> = self.channels.iter().map(|channel| channel.flits).collect();
        let is_into_router = |channel: &ChannelId| self.scenario.network.ejected_terminal(*channel).is_none();
        let into_routers = (0..channel_flits.len() as u32).map(ChannelId).filter(is_into_router);
        let left_out = self.left_out();
        let Counts { statistics, last_arrival, accepted, background, users, .. } = self.counts;
        let latencies = [&statistics.latency, &statistics.network_latency, &statistics.hops];
        Outcome {
            flit_hops: into_routers.map(|channel| channel_flits[channel.index()]).sum(),
            standstill: stands.into_iter().collect(),
            users,
            background: self.scenario.has_background().then_some(background),
            interfaces: Some(Interfaces { answered, busy, awaited, switches, switch_cycles }),
            ..Outcome::new(status)
                .after(cycles)
                .with_packets(latencies.map(|values| values.distribution()))
                .with_flits(channel_flits, accepted)
                .completed(completed.then_some((last as f64, last_arrival)))
                .with_ignored_keys(NOT_MODELLED, left_out)
        }
    }
}
