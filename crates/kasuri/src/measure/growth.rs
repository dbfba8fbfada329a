//! Recognising saturation: unlimited growth of the flits in the network and at the sources.
//!
//! An open network that is offered more than it can deliver has no steady state: the flits that wait at the sources and travel inside grow
//! linearly without end. There are three traps. Few packets: at a low load the content of the network jumps by chance. Heavy load below
//! saturation: the queues of an empty network fill, on the average like the square root of time, until they reach their level; over a short
//! window accepted throughput is then clearly below the offered load although nothing is wrong, and averaging over more terminals does not
//! help, since all queues fill together. Random walks: a straight line through a random walk is always "significant" if its steps are taken
//! for independent points. So growth must be *linear*, *larger than a random walk of the offered packets*, and seen over a window that
//! began long after the start.

use super::Offer;
use kasuri_model::engine::Interval;

/// Flits that wait at the sources or travel at the end of an interval. The interval has only the creation of a source's next packet;
/// packets created since then are estimated by the mean rate.
pub(super) fn content(interval: &Interval, flits_per_source_cycle: f64) -> f64 {
    interval.in_flight_flits as f64 + interval.backlog_cycles as f64 * flits_per_source_cycle
}

/// Follows the content of the network.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    offer: Offer,
    points: Vec<(u64, f64)>,
    next_look: usize,
}

/// Accepted throughput below this part of the offered load is plain saturation (the definition of the saturation load).
pub(crate) const MIN_ACCEPTED_SHARE: f64 = 0.95;

/// Linear growth from the start raises the content from block 1 to block 4 of the later half by 15/9 = 1.67, growth like the
/// square root of time by 1.29; the bound lies between.
const LINEAR_RATIO: f64 = 1.45;

/// Growth must exceed this many standard deviations of the random walk of the offered flits.
const WALK_DEVIATIONS: f64 = 4.0;

/// The same for the observed random walk of this many steps: its deviation is known to a fifth only, and means over blocks of a walk
/// correlate.
const OBSERVED_WALK_DEVIATIONS: f64 = 6.0;
const OBSERVED_WALK_STEPS: usize = 15;

/// Cycles before plain and before slight saturation (accepted above 0.95 of offered) may be seen.
const MIN_PLAIN_CYCLES: u64 = 2_000;
const MIN_SLIGHT_CYCLES: u64 = 20_000;

/// Intervals before the first check.
const MIN_INTERVALS: usize = 20;

impl Growth {
    /// Nothing seen yet.
    pub(crate) fn new(offer: Offer) -> Self {
        Self { offer, points: Vec::new(), next_look: MIN_INTERVALS }
    }

    /// Adds an interval; returns whether the network is known to be saturated. Checks whenever the series has grown by a tenth.
    pub(crate) fn push(&mut self, interval: &Interval) -> bool {
        self.points.push((interval.end_cycle, content(interval, self.offer.flits_per_source_cycle())));
        if self.points.len() < self.next_look {
            return false;
        }
        self.next_look = self.points.len() + self.points.len().div_ceil(10);
        self.is_saturated()
    }

    /// True if the network is saturated, by all intervals so far.
    pub(crate) fn is_saturated(&self) -> bool {
        let Some(trend) = self.trend() else { return false };
        let offered = self.offer.flits_per_cycle * trend.cycles;
        let walk = self.offer.deviation(trend.cycles);
        // If a few of many terminals are overloaded, the growth is less than the deviation of all offered packets, but far more than that
        // of the flits inside.
        let seen = self.walk_as_seen().unwrap_or(f64::INFINITY);
        let chance = (WALK_DEVIATIONS * walk).min(OBSERVED_WALK_DEVIATIONS * seen);
        let accepted = 1.0 - trend.growth / offered;
        let elapsed = if accepted < MIN_ACCEPTED_SHARE { MIN_PLAIN_CYCLES } else { MIN_SLIGHT_CYCLES };
        trend.end >= elapsed && trend.is_linear && trend.growth > chance
    }

    /// By how much the content would have changed from the first to the last of [`OBSERVED_WALK_STEPS`] + 1 blocks of the later half, if it were a random
    /// walk with steps like those seen, their mean taken off: one standard deviation.
    fn walk_as_seen(&self) -> Option<f64> {
        let end = self.points.last()?.0;
        let later = &self.points[self.points.partition_point(|point| 2 * point.0 <= end)..];
        let length = later.len() / (OBSERVED_WALK_STEPS + 1);
        if length == 0 {
            return None;
        }
        let blocks: Vec<f64> =
            later.rchunks_exact(length).map(|points| points.iter().map(|point| point.1).sum()).take(OBSERVED_WALK_STEPS + 1).collect();
        let steps: Vec<f64> = blocks.windows(2).map(|pair| (pair[0] - pair[1]) / length as f64).collect();
        let centre = steps.iter().sum::<f64>() / OBSERVED_WALK_STEPS as f64;
        let variance = steps.iter().map(|step| (step - centre) * (step - centre)).sum::<f64>() / (OBSERVED_WALK_STEPS - 1) as f64;
        Some((variance * OBSERVED_WALK_STEPS as f64).sqrt())
    }

    /// The means of the content over four equal blocks of the later half of the run, and the trend in them.
    fn trend(&self) -> Option<Trend> {
        let end = self.points.last()?.0;
        let later = &self.points[self.points.partition_point(|point| 2 * point.0 <= end)..];
        let length = later.len() / 4;
        if length < 2 {
            return None;
        }
        let block = |number: usize| {
            let points = &later[later.len() - (4 - number) * length..][..length];
            let time = points.iter().map(|point| point.0 as f64).sum::<f64>() / length as f64;
            (time, points.iter().map(|point| point.1).sum::<f64>() / length as f64)
        };
        let blocks = [block(0), block(1), block(2), block(3)];
        let rises = blocks.windows(2).all(|pair| pair[1].1 > pair[0].1);
        let growth = blocks[3].1 - blocks[0].1;
        Some(Trend { end, cycles: blocks[3].0 - blocks[0].0, growth, is_linear: rises && blocks[3].1 >= LINEAR_RATIO * blocks[0].1 })
    }
}

struct Trend {
    /// The last cycle seen.
    end: u64,
    /// Cycles between the middles of the first and the last block.
    cycles: f64,
    /// The growth of the content meanwhile, flits.
    growth: f64,
    is_linear: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::Queues;
    use kasuri_model::engine::Phase;

    /// 64 queues at `utilisation`, packets of 5 cycles: whether and when they are found saturated within `cycles`.
    fn found(utilisation: f64, queues: u32, seed: u64, cycles: u64) -> Option<u64> {
        let mut queues = Queues::new(queues, utilisation / 5.0, 5, seed);
        let mut growth = Growth::new(queues.offer());
        while queues.now() < cycles {
            let interval = queues.advance(100, Phase::WarmUp);
            if growth.push(&interval) {
                return Some(interval.end_cycle);
            }
        }
        None
    }

    /// No run below saturation is called saturated: 0.1 to 0.98 of the capacity, one queue or many, while they fill and later.
    #[test]
    fn heavy_load_is_not_saturation() {
        for utilisation in [0.001, 0.1, 0.9, 0.95, 0.98] {
            for count in [1, 64] {
                for seed in 0..(if count == 1 { 40 } else { 4 }) {
                    assert_eq!(found(utilisation, count, seed, 100_000), None, "{utilisation} {count} {seed}");
                }
            }
        }
    }

    /// Overload is recognised: at once when large, later when slight.
    #[test]
    fn overload_is_saturation() {
        for (utilisation, within) in [(2.0, 5_000), (1.2, 10_000), (1.1, 25_000), (1.03, 200_000)] {
            for seed in 0..5 {
                let cycle = found(utilisation, 64, seed, within);
                assert!(cycle.is_some_and(|cycle| cycle >= MIN_PLAIN_CYCLES), "{utilisation} {seed}: {cycle:?}");
            }
        }
    }
}
