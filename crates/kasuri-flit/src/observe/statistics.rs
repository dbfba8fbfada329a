//! What is counted while a simulation runs.

use crate::state::Packet;
use hdrhistogram::Histogram;
use kasuri_model::engine::{Background, Counting, Distribution, Interval, Phase};
use kasuri_network::memory::Column;
use kasuri_network::network::Network;

/// Values below this have a counter of their own; beyond, buckets are 0.1 % wide.
const EXACT: u64 = 4096;

/// A distribution that is being counted: below [`EXACT`] by value, beyond in buckets.
pub(crate) struct Counter {
    exact: Box<[u64]>,
    beyond: Histogram<u64>,
    /// Exact sum and extremes of the values beyond.
    beyond_sum: u64,
    beyond_max: u64,
}

impl Counter {
    /// Bytes of a counter of which the buckets have not grown far.
    const BYTES: usize = 12 * EXACT as usize;

    pub(crate) fn new() -> Self {
        let mut beyond = Histogram::new(3).expect("three digits are allowed");
        beyond.auto(true);
        Self { exact: vec![0; EXACT as usize].into_boxed_slice(), beyond, beyond_sum: 0, beyond_max: 0 }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, value: u64) {
        if value < EXACT {
            self.exact[value as usize] += 1;
        } else {
            self.record_beyond(value);
        }
    }

    #[cold]
    fn record_beyond(&mut self, value: u64) {
        self.beyond.record(value).expect("an auto-resizing histogram takes any value");
        self.beyond_sum += value;
        self.beyond_max = self.beyond_max.max(value);
    }

    pub(crate) fn clear(&mut self) {
        self.exact.fill(0);
        self.beyond.clear();
        (self.beyond_sum, self.beyond_max) = (0, 0);
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let exact = self.exact.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(value, &count)| (value as u64, count));
        let beyond = self.beyond.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        let exact_sum: u64 = exact.clone().map(|(value, count)| value * count).sum();
        let buckets: Vec<(u64, u64)> = exact.chain(beyond).collect();
        Distribution {
            count: buckets.iter().map(|&(_, count)| count).sum(),
            sum: (exact_sum + self.beyond_sum) as f64,
            min: buckets.first().map_or(0, |&(value, _)| value),
            max: if self.beyond_max > 0 { self.beyond_max } else { buckets.last().map_or(0, |&(value, _)| value) },
            buckets,
        }
    }
}

/// By packet, what else than its creation decides whether it is measured. Empty where nothing does.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Packets of classes before this one are the background, which is not measured among the others.
    pub(crate) first_class: u8,
    /// Do those count that waited for their source?
    pub(crate) measures_waiting: bool,
    /// Where those that waited for their source count: was it created before the measurement and drawn during it?
    pub(crate) waited: Vec<bool>,
    /// Where there are answers: the creation of the packet that it answers, of an answer.
    pub(crate) asked: Vec<u64>,
}

impl Origins {
    /// The cycle that decides whether a packet is measured: its creation or, of an answer, that of the packet that it answers.
    #[inline(always)]
    pub(crate) fn decisive(&self, record: &Packet, packet: u32) -> u64 {
        if record.is_reply { self.asked.get(packet as usize).copied().unwrap_or(record.created) } else { record.created }
    }

    #[inline(always)]
    pub(crate) fn has_waited(&self, packet: u32) -> bool {
        self.waited.get(packet as usize).is_some_and(|&waited| waited)
    }

    /// Notes of a packet that gets its number whether it has waited since before the measurement.
    #[cold]
    pub(crate) fn note_waited(&mut self, packet: u32, waited: bool) {
        if self.waited.len() <= packet as usize {
            self.waited.resize(packet as usize + 1, false);
        }
        self.waited[packet as usize] = waited;
    }

    /// Notes the cycle that decides of an answer.
    pub(crate) fn note_answer(&mut self, packet: u32, asked: u64) {
        if self.asked.len() <= packet as usize {
            self.asked.resize(packet as usize + 1, 0);
        }
        self.asked[packet as usize] = asked;
    }
}

/// All counters of a run.
pub(crate) struct Statistics {
    pub(crate) counting: Counting,
    pub(crate) packet_latency: Counter,
    pub(crate) network_latency: Counter,
    pub(crate) flit_latency: Counter,
    pub(crate) hops: Counter,
    pub(crate) accepted: Column<u64>,
    /// Of these, flits that terminals have sent to themselves.
    pub(crate) to_self: u64,
    pub(crate) channel_flits: Vec<u64>,
    /// Sum over samples of the flits in each router, and the samples.
    pub(crate) occupancy: Vec<u64>,
    pub(crate) occupancy_samples: u64,
    /// The present interval.
    pub(crate) interval: Interval,
    /// Live packets that draining waits for.
    pub(crate) draining_live: u64,
    /// What is counted of the background.
    pub(crate) background: Background,
    pub(crate) flit_hops: u64,
    /// Flits in buffers and on channels.
    pub(crate) flits_inside: u64,
}

impl Statistics {
    /// Bytes of all counters, and of the copies that the outcome has.
    pub(crate) fn bytes(network: &Network) -> usize {
        let (terminals, channels, routers) = (network.terminal_count(), network.channel_count(), network.router_count());
        4 * Counter::BYTES + 8 * (3 * terminals + 2 * channels + 2 * routers) as usize
    }

    pub(crate) fn new(network: &Network) -> Self {
        let terminals = network.terminal_count() as usize;
        Self {
            counting: Counting::default(),
            packet_latency: Counter::new(),
            network_latency: Counter::new(),
            flit_latency: Counter::new(),
            hops: Counter::new(),
            accepted: Column::filled(terminals, 0),
            to_self: 0,
            channel_flits: vec![0; network.channel_count() as usize],
            occupancy: vec![0; network.router_count() as usize],
            occupancy_samples: 0,
            interval: Interval::default(),
            draining_live: 0,
            background: Background::default(),
            flit_hops: 0,
            flits_inside: 0,
        }
    }

    /// Counts a packet whose tail arrived in cycle `now`; `counted` among those that are measured.
    pub(crate) fn count_packet(&mut self, packet: &Packet, counted: bool, now: u64) {
        let (latency, network_latency) = (now - packet.created, now - packet.injected);
        let add = |totals: &mut kasuri_model::engine::Totals| {
            totals.packets += 1;
            totals.packet_latency += latency;
            totals.network_latency += network_latency;
            totals.hops += u64::from(packet.hops);
        };
        add(&mut self.interval.arrived);
        if counted {
            add(&mut self.interval.counted);
            self.packet_latency.record(latency);
            self.network_latency.record(network_latency);
            self.hops.record(u64::from(packet.hops));
        }
    }

    /// Throws everything away and starts a phase in cycle `now`.
    pub(crate) fn clear(&mut self, phase: Phase, now: u64) {
        self.counting.clear(phase, now);
        for counter in [&mut self.packet_latency, &mut self.network_latency, &mut self.flit_latency, &mut self.hops] {
            counter.clear();
        }
        self.accepted.iter_mut().for_each(|flits| *flits = 0);
        self.to_self = 0;
        self.background = Background::default();
        self.channel_flits.fill(0);
        self.occupancy.fill(0);
        self.occupancy_samples = 0;
        self.interval.counted = Default::default();
    }
}
