//! Distributions of whole numbers in the making.

use crate::engine::Distribution;
use hdrhistogram::Histogram;

/// Smaller values are reported exactly; from here on, buckets are 0.1 % wide.
const MAX_EXACT_VALUE: u64 = 4096;

/// Smaller values have a counter each, and move to their buckets in [`Counter::distribution`]: a counter costs a twentieth of a bucket.
const MAX_COUNTED_VALUE: u64 = 1 << 16;

/// A distribution in the making: exact below [`MAX_EXACT_VALUE`], in buckets above. Its memory grows with the values: most runs count small
/// ones.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// How often each value below [`MAX_COUNTED_VALUE`] came, as far as any did.
    counts: Vec<u64>,
    beyond: Option<Histogram<u64>>,
    /// Exact sum and maximum of the larger values.
    beyond_sum: u64,
    beyond_max: u64,
}

impl Counter {
    /// Bytes of a counter with few buckets.
    pub const BYTES: usize = 12 * MAX_EXACT_VALUE as usize;

    /// An empty counter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        match self.counts.get_mut(value as usize) {
            Some(count) => *count += 1,
            None => self.record_new(value),
        }
    }

    #[cold]
    fn record_new(&mut self, value: u64) {
        if value < MAX_COUNTED_VALUE {
            self.counts.resize((value as usize + 1).next_power_of_two(), 0);
            self.counts[value as usize] = 1;
        } else {
            self.beyond.get_or_insert_with(buckets).record(value).expect(RESIZES);
            self.beyond_sum += value;
            self.beyond_max = self.beyond_max.max(value);
        }
    }

    /// Adds the counts of another counter.
    ///
    /// # Panics
    /// Never: a growing histogram takes any other.
    pub fn absorb(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        if let Some(beyond) = &other.beyond {
            self.beyond.get_or_insert_with(buckets).add(beyond).expect(RESIZES);
        }
        self.beyond_sum += other.beyond_sum;
        self.beyond_max = self.beyond_max.max(other.beyond_max);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.beyond.iter_mut().for_each(Histogram::clear);
        (self.beyond_sum, self.beyond_max) = (0, 0);
    }

    /// The counted distribution.
    ///
    /// # Panics
    /// Never: a growing histogram takes any value.
    pub fn distribution(&self) -> Distribution {
        let counted = || (0..).zip(&self.counts).filter(|&(_, &count)| count > 0).map(|(value, &count)| (value, count));
        let mut beyond = self.beyond.clone();
        for (value, count) in counted().filter(|&(value, _)| value >= MAX_EXACT_VALUE) {
            beyond.get_or_insert_with(buckets).record_n(value, count).expect(RESIZES);
        }
        let beyond = beyond.iter().flat_map(Histogram::iter_recorded);
        let beyond = beyond.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        let buckets: Vec<(u64, u64)> = counted().take_while(|&(value, _)| value < MAX_EXACT_VALUE).chain(beyond).collect();
        let counted_sum: u64 = counted().map(|(value, count)| value * count).sum();
        Distribution {
            count: buckets.iter().map(|&(_, count)| count).sum(),
            sum: (counted_sum + self.beyond_sum) as f64,
            min: buckets.first().map_or(0, |&(value, _)| value),
            max: if self.beyond_max > 0 { self.beyond_max } else { counted().last().map_or(0, |(value, _)| value) },
            buckets,
        }
    }
}

/// The reason why a bucket always exists.
const RESIZES: &str = "an auto-resizing histogram takes any value";

/// The buckets of a counter, empty.
fn buckets() -> Histogram<u64> {
    let mut buckets = Histogram::new(3).expect("three digits are allowed");
    buckets.auto(true);
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with counters of their own are reported in the same buckets as larger ones.
    #[test]
    fn values_are_reported_in_buckets_from_4096_on() {
        let mut counter = Counter::new();
        [5001, 4095, 5000, 70_000, 5004, 70_001].into_iter().for_each(|value| counter.record(value));
        let distribution = counter.distribution();
        assert_eq!(distribution.buckets, [(4095, 1), (5003, 2), (5007, 1), (70_015, 2)]);
        assert_eq!((distribution.min, distribution.max, distribution.sum), (4095, 70_001, 159_101.0));
    }

    /// The counters of two parts add up to that of all values, also if one part has no value in a bucket.
    #[test]
    fn parts_add_up_to_the_whole() {
        let values = [3, 0, 70, 3, MAX_EXACT_VALUE - 1, MAX_EXACT_VALUE, 1_000_000];
        let counted = |values: &[u64]| {
            let mut counter = Counter::new();
            values.iter().for_each(|&value| counter.record(value));
            counter
        };
        for middle in 0..=values.len() {
            let mut sum = counted(&values[..middle]);
            sum.absorb(&counted(&values[middle..]));
            let all = sum.distribution();
            assert_eq!((all.count, all.sum, all.min, all.max), (7, values.iter().sum::<u64>() as f64, 0, 1_000_000));
            assert_eq!(all.buckets[..4], [(0, 1), (3, 2), (70, 1), (MAX_EXACT_VALUE - 1, 1)]);
            assert_eq!(all, counted(&values).distribution());
            sum.clear();
            assert_eq!(sum.distribution(), Counter::new().distribution());
        }
    }
}
