//! What is counted of a run.

use super::packets::Packet;
use kasuri_model::counter::Counter;
use kasuri_model::engine::{Background, Counting, Interval, Phase, Queues, Totals};
use kasuri_model::scenario::Scenario;

/// The counters.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) counting: Counting,
    pub(super) packet_latency: Counter,
    pub(super) network_latency: Counter,
    pub(super) hops: Counter,
    /// By terminal: flits delivered while rates were counted. Of these, flits that terminals have sent to themselves.
    pub(super) accepted: Vec<u64>,
    pub(super) to_self: u64,
    pub(super) flit_hops: u64,
    /// The present interval; what is counted since statistics were thrown away.
    pub(super) interval: Interval,
    accepted_since: u64,
    /// What open traffic beside a workload had; its classes come before those of the workload.
    pub(super) background: Option<Background>,
    open_classes: u8,
    pub(super) queues: Queues,
    /// Measured packets that draining waits for.
    pub(super) outstanding: u64,
    /// By router: flits in its queues, since when, and the sum over cycles while rates were counted.
    pub(super) occupancy: Vec<Occupancy>,
}

/// How full a router is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occupancy {
    flits: u64,
    since: u64,
    pub(super) flit_cycles: u64,
}

impl Occupancy {
    fn settle(&mut self, now: u64, counts: bool) {
        if counts {
            self.flit_cycles += self.flits * (now - self.since);
        }
        self.since = now;
    }
}

impl Counts {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let network = &scenario.network;
        Self {
            counting: Counting::default(),
            packet_latency: Counter::new(),
            network_latency: Counter::new(),
            hops: Counter::new(),
            accepted: vec![0; network.terminal_count() as usize],
            to_self: 0,
            flit_hops: 0,
            interval: Interval::default(),
            accepted_since: 0,
            background: scenario.has_background().then(Background::default),
            open_classes: scenario.classes.len() as u8,
            queues: Queues {
                late: scenario.workload.is_some().then_some(0),
                lost: scenario.failure.is_some().then_some(0),
                ..Queues::default()
            },
            outstanding: 0,
            occupancy: vec![Occupancy::default(); network.router_count() as usize],
        }
    }

    /// Counts a packet whose tail arrives in cycle `now`.
    pub(super) fn arrived(&mut self, packet: &Packet, now: u64) {
        let flits = u64::from(packet.flits);
        self.queues.arrived += 1;
        self.flit_hops += flits * u64::from(packet.hops);
        self.interval.accepted_flits += flits;
        if self.counting.rates {
            self.accepted_since += flits;
            self.accepted[packet.destination as usize] += flits;
            self.to_self += if packet.source == packet.destination { flits } else { 0 };
        }
        let is_covered = self.counting.covers(packet.asked);
        if let Some(background) = self.background.as_mut().filter(|_| packet.class < self.open_classes) {
            background.count(packet.flits, self.counting.rates, is_covered.then(|| now - packet.created));
            return;
        }
        let (latency, network_latency) = (now - packet.created, now - packet.injected);
        let add = |totals: &mut Totals| {
            totals.packets += 1;
            totals.packet_latency += latency;
            totals.network_latency += network_latency;
            totals.hops += u64::from(packet.hops);
        };
        add(&mut self.interval.arrived);
        if is_covered {
            add(&mut self.interval.counted);
            self.packet_latency.record(latency);
            self.network_latency.record(network_latency);
            self.hops.record(u64::from(packet.hops));
        }
    }

    /// Flits join or leave the queues of a router.
    pub(super) fn queue_changed(&mut self, router: u32, flits: u32, joins: bool, now: u64) {
        let Some(occupancy) = self.occupancy.get_mut(router as usize) else { return };
        occupancy.settle(now, self.counting.rates);
        occupancy.flits = if joins { occupancy.flits + u64::from(flits) } else { occupancy.flits - u64::from(flits) };
    }

    /// Brings what is counted over time up to date.
    pub(super) fn settle(&mut self, now: u64) {
        let rates = self.counting.rates;
        self.occupancy.iter_mut().for_each(|router| router.settle(now, rates));
    }

    /// Throws everything away that phases count.
    pub(super) fn clear(&mut self, phase: Phase, now: u64) {
        self.settle(now);
        self.counting.clear(phase, now);
        [&mut self.packet_latency, &mut self.network_latency, &mut self.hops].into_iter().for_each(Counter::clear);
        self.accepted.fill(0);
        (self.to_self, self.accepted_since, self.interval.counted) = (0, 0, Totals::default());
        self.background = self.background.map(|_| Background::default());
        self.occupancy.iter_mut().for_each(|router| router.flit_cycles = 0);
    }

    /// Takes the counts of the interval that ends now.
    pub(super) fn take_interval(&mut self, now: u64) -> Interval {
        let interval = std::mem::take(&mut self.interval);
        self.interval.counted = interval.counted;
        Interval { counted_accepted_flits: self.accepted_since, counted_cycles: self.counting.rate_cycles(now), ..interval }
    }
}
