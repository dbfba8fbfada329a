//! The end of the warm-up.

use super::statistics::mser5;
use kasuri_model::engine::Interval;

/// Decides when the warm-up is over.
#[derive(Clone, Debug)]
pub(crate) enum WarmUp {
    /// After this many cycles.
    Cycles(u64),
    /// When MSER-5 cuts the series in its first half.
    Truncation(Truncation),
}

impl WarmUp {
    /// A fixed length where one is given, otherwise MSER-5.
    pub(crate) fn new(cycles: Option<u64>) -> Self {
        cycles.map_or_else(|| Self::Truncation(Truncation::default()), Self::Cycles)
    }

    /// Adds an interval; returns whether the network is warm.
    ///
    /// The series is the mean packet latency of each interval. An interval without arrivals is skipped.
    pub(crate) fn push(&mut self, interval: &Interval) -> bool {
        match self {
            Self::Cycles(cycles) => interval.end_cycle >= *cycles,
            Self::Truncation(truncation) => {
                let arrived = interval.arrived;
                arrived.packets > 0 && truncation.push(arrived.packet_latency as f64 / arrived.packets as f64)
            }
        }
    }
}

/// MSER-5 on a growing series.
///
/// A cut in the later half means that the series has not yet settled (White 1997). Checking after every interval finds a lucky moment
/// sooner or later; so the series must grow by a quarter between two checks.
#[derive(Clone, Debug)]
pub(crate) struct Truncation {
    series: Vec<f64>,
    next_look: usize,
}

impl Default for Truncation {
    fn default() -> Self {
        Self { series: Vec::new(), next_look: 50 }
    }
}

impl Truncation {
    /// Adds an observation; returns whether the series has settled.
    pub(crate) fn push(&mut self, value: f64) -> bool {
        self.series.push(value);
        if self.series.len() < self.next_look {
            return false;
        }
        self.next_look = self.series.len() + self.series.len().div_ceil(4);
        mser5(&self.series).is_some_and(|cut| 2 * cut < self.series.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_series_never_settles_and_a_flat_one_does_at_once() {
        let mut growing = Truncation::default();
        assert!((0..5000).all(|i| !growing.push(f64::from(i))));
        let mut flat = Truncation::default();
        let settled: Vec<usize> = (0..60).filter(|_| flat.push(3.0)).collect();
        assert_eq!(settled, [49]);
    }

    #[test]
    fn intervals_without_arrivals_are_passed_over() {
        let mut warm_up = WarmUp::new(None);
        assert!((0..1000).all(|_| !warm_up.push(&Interval::default())));
    }
}
