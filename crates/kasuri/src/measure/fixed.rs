//! Measurement of fixed length: warm up, measure, drain.

use super::growth::{Growth, MIN_ACCEPTED_SHARE};
use super::steady_state::Series;
use super::warm_up::WarmUp;
use super::{Measurement, Offer, Report};
use kasuri_model::engine::{Command, Controller, Interval, Status};

/// The controller for `measure.warmup` and `measure.cycles`.
///
/// The confidence interval is whatever the measured cycles give. The network is judged saturated by the same rule as in
/// [`SteadyState`](super::SteadyState), and where less than 0.95 of the offered load was accepted while measuring. Measured
/// packets that have not arrived after four times the measured cycles end the run as `max_cycles`.
#[derive(Debug)]
pub struct Fixed {
    offer: Offer,
    warm_up: WarmUp,
    cycles: u64,
    max_cycles: u64,
    now: u64,
    stage: Stage,
    growth: Growth,
    saturated: bool,
    accepted_flits: u64,
    series: Series,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    WarmingUp,
    Measuring { from: u64 },
    Draining { from: u64 },
}

/// Intervals into which the measured cycles are divided, for batch means.
const INTERVALS: u64 = 200;

/// The longest interval, so that a request to stop takes effect.
const LONGEST_INTERVAL: u64 = 1_000;

/// Draining may take this many times the measured cycles, and at least [`MIN_DRAIN_CYCLES`].
const DRAIN_FACTOR: u64 = 4;
const MIN_DRAIN_CYCLES: u64 = 20_000;

impl Fixed {
    /// `warm_up`: cycles before measuring (at least 1 passes); `None`: until MSER-5 finds the network settled.
    /// `cycles`: measured cycles, at least 1.
    pub fn new(offer: Offer, warm_up: Option<u64>, cycles: u64, max_cycles: u64) -> Self {
        Self {
            offer,
            warm_up: WarmUp::new(warm_up),
            cycles: cycles.max(1),
            max_cycles,
            now: 0,
            stage: Stage::WarmingUp,
            growth: Growth::new(offer),
            saturated: false,
            accepted_flits: 0,
            series: Series::new(&offer),
        }
    }

    fn decide(&mut self, interval: &Interval) -> Command {
        match self.stage {
            Stage::WarmingUp => {
                self.saturated |= self.growth.push(interval);
                // A saturated network never settles; the fixed number of cycles is measured nevertheless.
                let unsettled = self.saturated && matches!(self.warm_up, WarmUp::Truncation(_));
                if !(self.warm_up.push(interval) || unsettled) {
                    return Command::Continue;
                }
                self.stage = Stage::Measuring { from: self.now };
                Command::Measure
            }
            Stage::Measuring { from } => {
                self.saturated |= self.growth.push(interval);
                self.series.push(interval);
                self.accepted_flits += interval.accepted_flits;
                if self.now - from < self.cycles {
                    Command::Continue
                } else if self.saturated || self.growth.is_saturated() || self.accepts_too_little() {
                    self.saturated = true;
                    Command::End(Status::Saturated)
                } else {
                    self.stage = Stage::Draining { from: self.now };
                    Command::Drain
                }
            }
            Stage::Draining { .. } if interval.outstanding_packets == 0 => Command::End(Status::Converged),
            Stage::Draining { from } if self.now - from >= (DRAIN_FACTOR * self.cycles).max(MIN_DRAIN_CYCLES) => {
                Command::End(Status::MaxCycles)
            }
            Stage::Draining { .. } => Command::Continue,
        }
    }

    /// True if less than 0.95 of the offered load was accepted, by more than four standard deviations of the flits of Poisson sources.
    fn accepts_too_little(&self) -> bool {
        let cycles = self.cycles as f64;
        let chance = 4.0 * self.offer.deviation(cycles);
        (self.accepted_flits as f64) < MIN_ACCEPTED_SHARE * self.offer.flits_per_cycle * cycles - chance
    }
}

impl Fixed {
    /// The length of the next interval.
    fn length(&self) -> u64 {
        let left = match (self.stage, &self.warm_up) {
            (Stage::WarmingUp, WarmUp::Cycles(cycles)) => cycles.saturating_sub(self.now).min(LONGEST_INTERVAL),
            (Stage::WarmingUp, WarmUp::Truncation(_)) => super::steady_state::interval_cycles(&self.offer, self.max_cycles),
            (Stage::Measuring { from }, _) => {
                (from + self.cycles).saturating_sub(self.now).min((self.cycles / INTERVALS).clamp(1, LONGEST_INTERVAL))
            }
            (Stage::Draining { .. }, _) => LONGEST_INTERVAL,
        };
        left.min(self.max_cycles.saturating_sub(self.now)).max(1)
    }

    /// The end of the present stage, if it does not depend on measurements.
    fn end(&self) -> Option<u64> {
        match (self.stage, &self.warm_up) {
            (Stage::WarmingUp, WarmUp::Cycles(cycles)) => Some(*cycles),
            (Stage::Measuring { from }, _) => Some(from + self.cycles),
            _ => None,
        }
    }
}

impl Controller for Fixed {
    fn interval_cycles(&mut self) -> u64 {
        self.length()
    }

    fn assured_intervals(&self) -> u64 {
        let before = |end: u64| end.min(self.max_cycles).saturating_sub(self.now + 1);
        self.end().map_or(0, |end| before(end) / self.length())
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.now = interval.end_cycle;
        match self.decide(interval) {
            end @ Command::End(_) => end,
            _ if self.now >= self.max_cycles => Command::End(if self.saturated { Status::Saturated } else { Status::MaxCycles }),
            command => command,
        }
    }
}

impl Measurement for Fixed {
    fn report(&self) -> Report {
        let mut report = self.series.report();
        if self.offer.phase_cycles.is_some() {
            // One draw of phases is not a sample of other draws.
            (report.packet_latency_ci95, report.network_latency_ci95) = (None, None);
            report.notes.push("the phases of periodic sources hang on measure.seed: the mean is that of this seed alone".to_owned());
        }
        if self.saturated { Report { accepted_throughput_ci95: report.accepted_throughput_ci95, ..Report::default() } } else { report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::Queues;

    fn run(utilisation: f64, warm_up: u64, cycles: u64, max_cycles: u64) -> (Status, Queues, Fixed) {
        let mut queues = Queues::new(64, utilisation / 5.0, 5, 7);
        let mut controller = Fixed::new(queues.offer(), Some(warm_up), cycles, max_cycles);
        let status = queues.run(&mut controller);
        (status, queues, controller)
    }

    #[test]
    fn exactly_the_asked_cycles_are_measured() {
        for (warm_up, cycles) in [(1_000, 10_000), (999, 1_001), (1, 1), (0, 77)] {
            let (status, queues, controller) = run(0.4, warm_up, cycles, 1_000_000);
            assert_eq!(status, Status::Converged);
            let rate = controller.accepted_flits as f64 / cycles as f64 / 64.0;
            assert!((queues.accepted_throughput() - rate).abs() < 1e-12);
            let Stage::Draining { from } = controller.stage else { panic!("drained") };
            assert_eq!(from, warm_up.max(1) + cycles);
        }
    }

    #[test]
    fn the_confidence_interval_covers_the_formula() {
        let (_, queues, controller) = run(0.7, 5_000, 100_000, 1_000_000);
        let width = controller.report().packet_latency_ci95.unwrap();
        assert!((queues.counted_mean() - queues.mean_latency()).abs() < 2.0 * width);
        assert!(width < 0.05 * queues.mean_latency());
    }

    /// Assured intervals hold for any measurements; here there are none.
    #[test]
    fn assured_intervals_are_of_one_length_and_let_the_run_go_on() {
        for (warm_up, cycles, max_cycles) in [(100, 400, 10_000), (5_000, 77, 10_000), (2_500, 300_000, 100_000), (0, 1_000, 1_000_000)] {
            let mut controller = Fixed::new(Queues::new(64, 0.1, 5, 7).offer(), Some(warm_up), cycles, max_cycles);
            let (mut now, mut assured, mut all) = (0, 0, 0);
            while now < warm_up.max(1) + cycles && now < max_cycles {
                let length = controller.interval_cycles();
                let intervals = controller.assured_intervals();
                for number in 0..=intervals {
                    let cycles = controller.interval_cycles();
                    assert!(cycles == length || number == intervals);
                    now += cycles;
                    let command = controller.interval_ended(&Interval { end_cycle: now, cycles, ..Interval::default() });
                    assert!(command == Command::Continue || number == intervals, "{command:?} at {now}");
                }
                (assured, all) = (assured + intervals, all + intervals + 1);
            }
            assert!(all < 10 || 2 * assured > all, "{assured} of {all}");
        }
    }

    #[test]
    fn overload_is_saturated_and_a_short_limit_is_named() {
        assert_eq!(run(1.5, 1_000, 10_000, 1_000_000).0, Status::Saturated);
        // Too short for a trend: the accepted rate decides.
        assert_eq!(run(4.0, 10, 1_000, 1_000_000).0, Status::Saturated);
        assert_eq!(run(0.4, 1_000, 10_000, 5_000).0, Status::MaxCycles);
    }
}
