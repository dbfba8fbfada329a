//! What the flow engine counts.

use hdrhistogram::Histogram;
use kasuri_model::engine::{Counting, Distribution, Phase, Totals};
use kasuri_network::memory::filled;

/// Whole numbers below this are counted one by one: most times are small, and a histogram has to find the bucket of each.
const SMALL: u64 = 1 << 14;

/// A distribution of times in cycles: the sum exact, the rest to whole cycles and three digits.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// How often each small number came, as far as any did.
    small: Vec<u64>,
    /// The others, and the least and the greatest of them.
    large: Histogram<u64>,
    least: u64,
    greatest: u64,
    sum: f64,
}

impl Tally {
    fn new() -> Self {
        let mut large = Histogram::new(3).expect("three digits are allowed");
        large.auto(true);
        Self { small: Vec::new(), large, least: u64::MAX, greatest: 0, sum: 0.0 }
    }

    /// Records a value as often as it came.
    #[inline]
    fn record(&mut self, value: f64, times: u64) {
        let whole = nearest(value);
        self.sum += value * times as f64;
        match self.small.get_mut(whole as usize) {
            Some(count) => *count += times,
            None => self.record_new(whole, times),
        }
    }

    #[cold]
    fn record_new(&mut self, whole: u64, times: u64) {
        if whole < SMALL {
            self.small.resize((whole as usize + 1).next_power_of_two(), 0);
            self.small[whole as usize] = times;
        } else {
            self.large.record_n(whole, times).expect("an auto-resizing histogram takes any value");
            (self.least, self.greatest) = (self.least.min(whole), self.greatest.max(whole));
        }
    }

    /// Adds what was counted elsewhere.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.small.resize(self.small.len().max(other.small.len()), 0);
        self.small.iter_mut().zip(&other.small).for_each(|(sum, &count)| *sum += count);
        self.large.add(&other.large).expect("an auto-resizing histogram takes any value");
        (self.least, self.greatest) = (self.least.min(other.least), self.greatest.max(other.greatest));
        self.sum += other.sum;
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let mut histogram = self.large.clone();
        for (whole, &count) in (0..).zip(&self.small).filter(|&(_, &count)| count > 0) {
            histogram.record_n(whole, count).expect("an auto-resizing histogram takes any value");
        }
        let is_used = |count: &u64| *count > 0;
        let least = self.small.iter().position(is_used).map_or(self.least, |whole| whole as u64);
        let greatest = self.small.iter().rposition(is_used).map_or(0, |whole| whole as u64);
        Distribution {
            count: histogram.len(),
            sum: self.sum,
            min: if histogram.is_empty() { 0 } else { least },
            max: self.greatest.max(greatest),
            buckets: histogram.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect(),
        }
    }
}

/// A message that has arrived: when it was created and its transfer begun, and when its last flit came, cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) created: f64,
    /// The cycle that decides whether it is measured: that of `created` or, of an answer, that of the message that it answers.
    pub(crate) asked: u64,
    pub(crate) begun: f64,
    pub(crate) time: f64,
    /// Routers crossed.
    pub(crate) hops: u16,
}

impl Arrival {
    /// Creation to last flit.
    fn latency(&self) -> f64 {
        self.time - self.created
    }

    /// Begin of the transfer to last flit.
    fn network_latency(&self) -> f64 {
        self.time - self.begun
    }
}

/// Counters of a run, by the phases of [`Phase`].
#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) counting: Counting,
    pub(crate) latency: Tally,
    pub(crate) network_latency: Tally,
    pub(crate) hops: Tally,
    /// The last arrival, and how many like it came in a row: not counted yet. Messages of a schedule are much alike.
    last: Arrival,
    times: u64,
    /// Flits that each terminal has sent, shape `[terminals]`.
    pub(crate) injected: Box<[f64]>,
    /// Of these, flits for themselves.
    pub(crate) to_self: f64,
    /// In the present interval: arrivals, and flits that have moved.
    pub(crate) arrived: Totals,
    pub(crate) moved: f64,
    /// Since the statistics were thrown away.
    pub(crate) counted: Totals,
}

impl Statistics {
    pub(crate) fn new(terminals: usize) -> Self {
        Self {
            counting: Counting::default(),
            latency: Tally::new(),
            network_latency: Tally::new(),
            hops: Tally::new(),
            last: Arrival::default(),
            times: 0,
            injected: filled(terminals, 0.0),
            to_self: 0.0,
            arrived: Totals::default(),
            moved: 0.0,
            counted: Totals::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn arrive(&mut self, arrival: &Arrival) {
        if *arrival != self.last {
            self.settle();
            self.last = *arrival;
        }
        self.times += 1;
    }

    /// Counts what has arrived: needed before anything is read, and before the phase changes.
    pub(crate) fn settle(&mut self) {
        let (arrival, times) = (self.last, std::mem::take(&mut self.times));
        if times == 0 {
            return;
        }
        add(&mut self.arrived, &arrival, times);
        if self.counting.covers(arrival.asked) {
            add(&mut self.counted, &arrival, times);
            self.latency.record(arrival.latency(), times);
            self.network_latency.record(arrival.network_latency(), times);
            self.hops.record(f64::from(arrival.hops), times);
        }
    }

    /// The distributions: of latencies from the creation on, of those in the network, and of hops.
    pub(crate) fn tallies(&mut self) -> [&mut Tally; 3] {
        [&mut self.latency, &mut self.network_latency, &mut self.hops]
    }

    /// Takes the distributions out, all being counted.
    pub(crate) fn take_tallies(&mut self) -> [Tally; 3] {
        self.settle();
        self.tallies().map(|tally| std::mem::replace(tally, Tally::new()))
    }

    /// Adds what was counted elsewhere in the same phase, all but the distributions.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.injected.iter_mut().zip(&other.injected).for_each(|(sum, flits)| *sum += flits);
        self.to_self += other.to_self;
        self.moved += other.moved;
        self.arrived.absorb(&other.arrived);
        self.counted.absorb(&other.counted);
    }

    /// Throws everything away and starts a phase.
    pub(crate) fn clear(&mut self, phase: Phase, now: u64) {
        self.settle();
        let fresh = Self::new(0);
        self.injected.fill(0.0);
        self.to_self = 0.0;
        (self.latency, self.network_latency, self.hops) = (fresh.latency, fresh.network_latency, fresh.hops);
        self.counting.clear(phase, now);
        self.counted = Totals::default();
    }
}

fn add(totals: &mut Totals, arrival: &Arrival, times: u64) {
    totals.packets += times;
    totals.packet_latency += nearest(arrival.latency()) * times;
    totals.network_latency += nearest(arrival.network_latency()) * times;
    totals.hops += u64::from(arrival.hops) * times;
}

/// The nearest whole number to one that is not negative; `f64::round` is a call.
#[inline(always)]
fn nearest(value: f64) -> u64 {
    (value + 0.5) as u64
}
