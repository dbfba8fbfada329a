//! The rules of BookSim 2 for warm-up, sampling and stopping (`measure.rules = "booksim"`).
//!
//! Source: BookSim 2, `TrafficManager::_SingleSim` and `Run`, and `BatchTrafficManager::_SingleSim`; reading of commit 28f43299. In words:
//! warm up for a number of sample periods, clearing the statistics before every other one; then sample cumulatively until neither the mean
//! latency nor the accepted rate changes by more than a threshold three times in a row, or until the number of periods is used up (which is
//! not an error); give up as unstable when the mean latency, including the ages of the flits inside, exceeds a limit. These rules know no
//! confidence interval: a mean counts as converged when it changes little from period to period. Near saturation that happens long before
//! the mean is right, and beyond saturation packets that never leave their queue are not counted. So the status differs from BookSim 2's: a
//! network that accepted less than 0.95 of the offered load is saturated, and `booksim_status` gives BookSim 2's verdict.

use super::growth::MIN_ACCEPTED_SHARE;
use super::{Measurement, Offer, Report};
use kasuri_config::{BookSimRules, SimType};
use kasuri_model::engine::{Command, Controller, Interval, Status};

/// BookSim 2's verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookSimStatus {
    /// Converged three times in a row; for a batch: delivered.
    Ok,
    /// The periods were used up; BookSim prints its statistics nevertheless.
    OkMaxSamples,
    /// "Simulation unstable": the latency exceeded its threshold, or the warm-up did not end.
    Unstable,
}

impl BookSimStatus {
    /// The word in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OkMaxSamples => "ok_maxsamples",
            Self::Unstable => "unstable",
        }
    }
}

/// The controller that ends a run as BookSim 2 would.
#[derive(Clone, Debug)]
pub struct BookSim {
    rules: BookSimRules,
    offer: Offer,
    max_cycles: u64,
    now: u64,
    stage: Stage,
    periods: u32,
    converged: u32,
    latency: f64,
    accepted: f64,
    /// Flits accepted while sampling, and the sampled cycles.
    sampled: (u64, u64),
    status: Option<BookSimStatus>,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    WarmingUp,
    Running,
    Draining,
    Emptying,
}

/// Converged periods in a row that end the sampling.
const CONVERGED_PERIODS: u32 = 3;

/// Cycles of draining between two checks of the latency.
const DRAIN_CHECK: u64 = 1000;

impl BookSim {
    /// The rules for a network with this offered load. `max_cycles` is Kasuri's own limit; BookSim 2 has none.
    pub fn new(rules: BookSimRules, offer: Offer, max_cycles: u64) -> Self {
        Self {
            rules,
            offer,
            max_cycles,
            now: 0,
            stage: Stage::WarmingUp,
            periods: 0,
            converged: 0,
            latency: 0.0,
            accepted: 0.0,
            sampled: (0, 0),
            status: None,
            notes: Vec::new(),
        }
    }

    fn measures_latency(&self) -> bool {
        self.rules.sim_type == SimType::Latency
    }

    fn decide(&mut self, interval: &Interval) -> Command {
        if self.rules.sim_type == SimType::Batch {
            return self.batch(interval);
        }
        match self.stage {
            Stage::WarmingUp | Stage::Running => self.period_ended(interval),
            Stage::Draining => self.drain(interval),
            Stage::Emptying if interval.in_flight_flits == 0 => Command::End(self.judge()),
            Stage::Emptying => Command::Continue,
        }
    }

    /// The status after sampling: saturated if less than 0.95 of the offered load was accepted, by more than four standard deviations of
    /// the flits of Poisson sources.
    fn judge(&mut self) -> Status {
        let (flits, cycles) = (self.sampled.0 as f64, self.sampled.1 as f64);
        let offered = self.offer.flits_per_cycle * cycles;
        let chance = 4.0 * self.offer.deviation(cycles);
        if flits >= offered - chance {
            return Status::Converged;
        }
        let (accepted, offered_load) = (flits / cycles / f64::from(self.offer.terminals), self.offer.load());
        let is_saturated = flits < MIN_ACCEPTED_SHARE * offered - chance;
        let word = self.status.map_or("", BookSimStatus::name);
        self.notes.push(format!(
            "while sampling {accepted:.4} flits/terminal/cycle were accepted of the offered {offered_load:.4}, so that {}; BookSim 2 would end as {word}",
            if is_saturated { "the network is saturated" } else { "queues still grew" },
        ));
        if is_saturated { Status::Saturated } else { Status::Converged }
    }

    fn batch(&mut self, interval: &Interval) -> Command {
        if !interval.completed {
            return Command::Continue;
        }
        self.status = Some(BookSimStatus::Ok);
        Command::End(Status::Completed)
    }

    /// Evaluates a sample period.
    fn period_ended(&mut self, interval: &Interval) -> Command {
        let settled = self.settled(interval);
        if self.measures_latency() && self.exceeds_latency(interval) {
            return self.unstable(interval);
        }
        let was_running = self.stage == Stage::Running;
        if was_running {
            self.converged = if settled { self.converged + 1 } else { 0 };
        } else if self.is_warm(settled) {
            self.stage = Stage::Running;
        }
        self.periods += 1;
        if self.periods >= self.rules.max_samples || self.converged >= CONVERGED_PERIODS {
            self.sampled = (interval.counted_accepted_flits, interval.counted_cycles);
            return self.sampling_ended(was_running);
        }
        match self.stage {
            Stage::Running if !was_running && self.rules.count_waiting => Command::MeasureWaiting,
            Stage::Running if !was_running => Command::Measure,
            Stage::WarmingUp if self.periods.is_multiple_of(2) => Command::Clear,
            _ => Command::Continue,
        }
    }

    fn is_warm(&self, settled: bool) -> bool {
        if self.rules.warmup_periods > 0 { self.periods + 1 >= self.rules.warmup_periods } else { settled }
    }

    /// Returns whether latency and accepted rate have changed little since the period before; remembers them.
    ///
    /// Without any packet the means are not numbers; all comparisons with them are false, so that they count as settled, as in BookSim 2.
    fn settled(&mut self, interval: &Interval) -> bool {
        let counted = interval.counted;
        let latency = counted.packet_latency as f64 / counted.packets as f64;
        let accepted = interval.counted_accepted_flits as f64 / interval.counted_cycles as f64 / f64::from(self.offer.terminals);
        let latency_change = ((latency - self.latency) / latency).abs();
        let accepted_change = ((accepted - self.accepted) / accepted).abs();
        (self.latency, self.accepted) = (latency, accepted);
        let rules = &self.rules;
        let (latency_limit, accepted_limit) = if self.stage == Stage::Running {
            (rules.stopping_threshold, rules.acc_stopping_threshold)
        } else {
            (rules.warmup_threshold, rules.acc_warmup_threshold)
        };
        let exceeds = |change: f64, limit: f64| limit >= 0.0 && change > limit;
        !(exceeds(accepted_change, accepted_limit) || self.measures_latency() && exceeds(latency_change, latency_limit))
    }

    /// The mean over recorded packets and flits inside, each of these counted with the age of its packet.
    fn exceeds_latency(&self, interval: &Interval) -> bool {
        let sum = interval.counted.packet_latency as f64 + interval.in_flight_age as f64;
        let count = interval.counted.packets as f64 + interval.in_flight_flits as f64;
        self.rules.latency_threshold >= 0.0 && sum / count > self.rules.latency_threshold
    }

    fn unstable(&mut self, interval: &Interval) -> Command {
        self.status = Some(BookSimStatus::Unstable);
        let threshold = self.rules.latency_threshold;
        self.notes.push(format!("the mean latency exceeded {threshold} cycles in cycle {}", interval.end_cycle));
        Command::End(Status::Saturated)
    }

    /// The periods are used up or enough of them have converged.
    fn sampling_ended(&mut self, has_samples: bool) -> Command {
        if self.stage == Stage::WarmingUp {
            self.status = Some(BookSimStatus::Unstable);
            self.notes.push(format!("the warm-up did not end within {} sample periods", self.rules.max_samples));
            return Command::End(Status::MaxCycles);
        }
        self.status = Some(if self.converged >= CONVERGED_PERIODS { BookSimStatus::Ok } else { BookSimStatus::OkMaxSamples });
        if !has_samples {
            self.notes.push("the warm-up took all sample periods: nothing was sampled but the warm-up".to_owned());
        }
        if self.measures_latency() && has_samples {
            self.stage = Stage::Draining;
            Command::Drain
        } else {
            self.stage = Stage::Emptying;
            Command::Empty
        }
    }

    fn drain(&mut self, interval: &Interval) -> Command {
        // A full check period is checked even if the last packet arrived in its last cycle.
        if interval.cycles >= DRAIN_CHECK && self.exceeds_latency(interval) {
            return self.unstable(interval);
        }
        if interval.outstanding_packets > 0 {
            return Command::Continue;
        }
        self.stage = Stage::Emptying;
        Command::Empty
    }
}

impl Controller for BookSim {
    fn interval_cycles(&mut self) -> u64 {
        let cycles = match self.stage {
            Stage::WarmingUp | Stage::Running => self.rules.sample_period,
            Stage::Draining | Stage::Emptying => DRAIN_CHECK,
        };
        cycles.min(self.max_cycles.saturating_sub(self.now)).max(1)
    }

    fn weighs_ages(&self) -> bool {
        true
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.now = interval.end_cycle;
        match self.decide(interval) {
            end @ Command::End(_) => end,
            _ if self.now >= self.max_cycles => Command::End(Status::MaxCycles),
            command => command,
        }
    }
}

impl Measurement for BookSim {
    fn report(&self) -> Report {
        Report { booksim_status: self.status, notes: self.notes.clone(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::engine::Totals;

    fn controller(rules: BookSimRules) -> BookSim {
        BookSim::new(rules, offer(64), 1_000_000)
    }

    /// 0.2 flits per terminal and cycle, packets of 5.
    fn offer(terminals: u32) -> Offer {
        let flits = 0.2 * f64::from(terminals);
        Offer { terminals, sources: terminals, packets_per_cycle: flits / 5.0, flits_per_cycle: flits, ..Offer::default() }
    }

    /// A network that accepts 0.136 of 0.2 at a steady latency is saturated, although BookSim 2 calls it stable. At 0.192 of 0.2, beyond
    /// chance but by less than a twentieth, it gets BookSim 2's status with a note.
    #[test]
    fn accepting_far_less_than_offered_is_saturation() {
        for (accepted, status, notes) in
            [(0.136, Status::Saturated, 1), (0.192, Status::Converged, 1), (0.2, Status::Converged, 0), (0.199, Status::Converged, 0)]
        {
            let mut controller = controller(BookSimRules::default());
            let long =
                |_| Interval { counted_cycles: 100_000, counted_accepted_flits: (6_400_000.0 * accepted) as u64, ..period(20.0, accepted) };
            drive(&mut controller, &(0..6).map(long).collect::<Vec<_>>());
            drive(&mut controller, &[Interval { cycles: 13, in_flight_flits: 7, ..Interval::default() }]);
            assert_eq!(controller.interval_ended(&Interval::default()), Command::End(status), "{accepted}");
            let report = controller.report();
            assert_eq!((report.booksim_status, report.notes.len()), (Some(BookSimStatus::Ok), notes), "{accepted}");
        }
    }

    /// A period with this cumulative mean latency and accepted rate per terminal.
    fn period(latency: f64, accepted: f64) -> Interval {
        Interval {
            cycles: 1000,
            counted: Totals { packets: 1000, packet_latency: (1000.0 * latency) as u64, ..Totals::default() },
            counted_accepted_flits: (64_000.0 * accepted) as u64,
            counted_cycles: 1000,
            ..Interval::default()
        }
    }

    fn drive(controller: &mut BookSim, intervals: &[Interval]) -> Vec<Command> {
        intervals.iter().map(|interval| controller.interval_ended(interval)).collect()
    }

    /// The default: statistics are cleared before periods 0, 2 and at the end of the warm-up; a steady network ends after six
    /// periods, because the first sampled one is compared with the last of the warm-up.
    #[test]
    fn a_steady_network_ends_after_six_periods() {
        let mut controller = controller(BookSimRules::default());
        let commands = drive(&mut controller, &vec![period(20.0, 0.2); 6]);
        use Command::{Clear, Continue, Drain, Measure};
        assert_eq!(commands, [Continue, Clear, Measure, Continue, Continue, Drain]);
        let drained = Interval { cycles: 13, in_flight_flits: 7, ..Interval::default() };
        assert_eq!(controller.interval_ended(&drained), Command::Empty);
        assert_eq!(controller.interval_ended(&drained), Command::Continue);
        assert_eq!(controller.interval_ended(&Interval::default()), Command::End(Status::Converged));
        assert_eq!(controller.report().booksim_status, Some(BookSimStatus::Ok));
    }

    /// A latency that climbs by 10 % a period never converges; the tenth period is the last, and that is no error.
    #[test]
    fn the_periods_may_be_used_up() {
        let mut controller = controller(BookSimRules::default());
        let intervals: Vec<Interval> = (0..10).map(|i| period(20.0 * 1.1_f64.powi(i), 0.2)).collect();
        assert_eq!(drive(&mut controller, &intervals)[9], Command::Drain);
        assert_eq!(controller.report().booksim_status, Some(BookSimStatus::OkMaxSamples));
    }

    /// One period of change sets the count of converged periods back to 0.
    #[test]
    fn three_converged_periods_must_follow_each_other() {
        let mut controller = controller(BookSimRules::default());
        let latencies = [20.0, 20.0, 20.0, 20.0, 20.0, 30.0, 30.0, 30.0, 30.0];
        let commands = drive(&mut controller, &latencies.map(|latency| period(latency, 0.2)));
        assert_eq!(commands.iter().position(|command| *command == Command::Drain), Some(8));
    }

    /// (sum of recorded latencies + ages inside) / (packets + flits inside) above 500 cycles: unstable, also while draining,
    /// there once every 1000 cycles.
    #[test]
    fn a_latency_above_the_threshold_is_unstable() {
        let mut slow = period(20.0, 0.2);
        (slow.in_flight_flits, slow.in_flight_age) = (1000, 1000 * 981);
        assert_eq!(controller(BookSimRules::default()).interval_ended(&slow), Command::End(Status::Saturated));
        slow.in_flight_age = 1000 * 980;
        assert_eq!(controller(BookSimRules::default()).interval_ended(&slow), Command::Continue);

        let mut draining = controller(BookSimRules::default());
        drive(&mut draining, &vec![period(20.0, 0.2); 6]);
        (slow.in_flight_age, slow.outstanding_packets) = (1000 * 981, 3);
        assert_eq!(draining.interval_ended(&slow), Command::End(Status::Saturated));
        assert_eq!(draining.report().booksim_status, Some(BookSimStatus::Unstable));
    }

    /// sim_type = throughput: latency plays no part, nothing measured is waited for.
    #[test]
    fn throughput_runs_ignore_the_latency() {
        let rules = BookSimRules { sim_type: SimType::Throughput, ..BookSimRules::default() };
        let mut controller = controller(rules);
        let intervals: Vec<Interval> = (0..6).map(|i| period(1000.0 * 2.0_f64.powi(i), 0.2)).collect();
        assert_eq!(drive(&mut controller, &intervals)[5], Command::Empty);
    }

    /// warmup_periods = 0: the warm-up ends when latency and throughput change by at most 5 %.
    #[test]
    fn a_warm_up_by_thresholds_ends_when_the_means_settle() {
        let rules = BookSimRules { warmup_periods: 0, ..BookSimRules::default() };
        let mut settling = controller(rules);
        let latencies = [10.0, 20.0, 20.5];
        assert_eq!(drive(&mut settling, &latencies.map(|latency| period(latency, 0.2)))[2], Command::Measure);
        let mut counting = BookSim::new(BookSimRules { count_waiting: true, ..rules }, offer(1), u64::MAX);
        assert_eq!(drive(&mut counting, &latencies.map(|latency| period(latency, 0.2)))[2], Command::MeasureWaiting);
        let mut climbing = controller(rules);
        let intervals: Vec<Interval> = (0..10).map(|i| period(20.0 * 1.1_f64.powi(i), 0.2)).collect();
        assert_eq!(drive(&mut climbing, &intervals)[9], Command::End(Status::MaxCycles));
        assert_eq!(climbing.report().booksim_status, Some(BookSimStatus::Unstable));
    }

    /// A negative threshold switches its check off.
    #[test]
    fn negative_thresholds_are_not_checked() {
        let rules =
            BookSimRules { latency_threshold: -1.0, stopping_threshold: -1.0, acc_stopping_threshold: -1.0, ..BookSimRules::default() };
        let mut controller = controller(rules);
        let intervals: Vec<Interval> = (0..6).map(|i| period(1000.0 * 2.0_f64.powi(i), 0.2 / f64::from(i + 1))).collect();
        assert_eq!(drive(&mut controller, &intervals)[5], Command::Drain);
    }

    #[test]
    fn a_batch_ends_when_it_is_delivered() {
        let rules = BookSimRules { sim_type: SimType::Batch, ..BookSimRules::default() };
        let mut controller = controller(rules);
        assert_eq!(controller.interval_ended(&period(9000.0, 0.1)), Command::Continue);
        assert_eq!(controller.interval_ended(&Interval { completed: true, ..Interval::default() }), Command::End(Status::Completed));
        assert_eq!(controller.report().booksim_status, Some(BookSimStatus::Ok));
    }
}
