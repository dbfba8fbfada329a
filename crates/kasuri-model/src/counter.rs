//! Distributions of whole numbers while they are being counted.

use crate::engine::Distribution;
use hdrhistogram::Histogram;

/// Values below this have a counter of their own; beyond, buckets are 0.1 % wide.
const EXACT: u64 = 4096;

/// A distribution that is being counted: below [`EXACT`] by value, beyond in buckets.
#[derive(Clone, Debug)]
pub struct Counter {
    exact: Box<[u64]>,
    beyond: Histogram<u64>,
    /// Exact sum and extremes of the values beyond.
    beyond_sum: u64,
    beyond_max: u64,
}

impl Counter {
    /// Bytes of a counter of which the buckets have not grown far.
    pub const BYTES: usize = 12 * EXACT as usize;

    /// Nothing is counted yet.
    ///
    /// # Panics
    /// Never: three digits are allowed.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let mut beyond = Histogram::new(3).expect("three digits are allowed");
        beyond.auto(true);
        Self { exact: vec![0; EXACT as usize].into_boxed_slice(), beyond, beyond_sum: 0, beyond_max: 0 }
    }

    /// Counts a value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
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

    /// Adds what another counter has counted.
    ///
    /// # Panics
    /// Never: a histogram that grows takes any other.
    pub fn absorb(&mut self, other: &Self) {
        self.exact.iter_mut().zip(&other.exact).for_each(|(sum, count)| *sum += count);
        self.beyond.add(&other.beyond).expect("an auto-resizing histogram takes any value");
        self.beyond_sum += other.beyond_sum;
        self.beyond_max = self.beyond_max.max(other.beyond_max);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.exact.fill(0);
        self.beyond.clear();
        (self.beyond_sum, self.beyond_max) = (0, 0);
    }

    /// What was counted.
    pub fn distribution(&self) -> Distribution {
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
