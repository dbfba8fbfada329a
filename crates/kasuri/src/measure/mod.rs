//! Rules of measurement: the controllers that engines ask after each interval whether a run is warm, precise, saturated or finished.
//!
//! Each rule has a file. Engines and controllers do not know each other. After the run a controller reports its findings
//! ([`Measurement::report`]).

pub mod booksim;
pub mod completion;
pub mod fixed;
mod growth;
pub(crate) mod saturation;
mod statistics;
pub mod steady_state;
#[cfg(test)]
pub(crate) mod testing;
mod warm_up;

pub use booksim::{BookSim, BookSimStatus};
pub use completion::Completion;
pub use fixed::Fixed;
pub use steady_state::{SteadyState, min_run_cycles};

use kasuri_config::{Rules, Study};
use kasuri_model::engine::Controller;
use kasuri_model::scenario::{Scenario, TrafficClass};
use kasuri_network::id::TerminalId;
use kasuri_workload::traffic::PacketSizes;

/// The controller for a study: BookSim 2's rules if chosen, else completion for closed workloads, fixed lengths if `measure.cycles` is
/// given, and the steady state otherwise.
pub fn controller(study: &Study) -> Box<dyn Measurement> {
    let (scenario, measure) = (&study.scenario, &study.measure);
    let max_cycles = measure.max_cycles;
    match (measure.rules, measure.cycles) {
        (Rules::BookSim(rules), _) => Box::new(BookSim::new(rules, Offer::of(scenario), max_cycles)),
        (Rules::Kasuri, _) if scenario.is_closed() => Box::new(Completion::new(max_cycles, measure.until)),
        (Rules::Kasuri, Some(cycles)) => Box::new(Fixed::new(Offer::of(scenario), measure.warmup, cycles, max_cycles)),
        (Rules::Kasuri, None) => Box::new(SteadyState::new(Offer::of(scenario), measure.precision, max_cycles, measure.warmup)),
    }
}

/// A controller that reports its findings.
pub trait Measurement: Controller {
    /// The findings beyond the statistics of the engine.
    fn report(&self) -> Report;

    /// The progress of the measurement, in a clause for a waiting user.
    fn progress(&self) -> Option<String> {
        None
    }
}

/// A controller's findings at the end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Half-width of the 95 % confidence interval of the mean packet latency, cycles.
    pub packet_latency_ci95: Option<f64>,
    /// Half-width of the 95 % confidence interval of the mean network latency, cycles.
    pub network_latency_ci95: Option<f64>,
    /// Half-width of the 95 % confidence interval of the mean accepted rate, flits/terminal/cycle.
    pub accepted_throughput_ci95: Option<f64>,
    /// BookSim 2's verdict, if its rules were followed.
    pub booksim_status: Option<BookSimStatus>,
    /// Notes for the reader of the result.
    pub notes: Vec<String>,
}

/// The offered load of a scenario, all classes and terminals together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offer {
    /// Terminals of the network.
    pub terminals: u32,
    /// Terminals that send at all: a permutation silences those that it maps to themselves.
    pub sources: u32,
    /// Packets per cycle, all terminals together, replies included.
    pub packets_per_cycle: f64,
    /// Flits per cycle, all terminals together, replies included.
    pub flits_per_cycle: f64,
    /// The sum over the packets of a cycle of their squared lengths, flits^2, replies included.
    pub squares_per_cycle: f64,
    /// True if that is the long-run mean. With changing tables of users and failing accesses, the real load is lower.
    pub is_exact: bool,
    /// The longest delay of an answer, cycles.
    pub longest_delay: u64,
    /// The longest period of sources with a random phase, cycles.
    pub phase_cycles: Option<f64>,
    /// The rate of the rarest events with a high weight in the answer, all terminals together: packets of a rare length, bursts. Per cycle;
    /// `None` if nothing is rare.
    pub rare_per_cycle: Option<f64>,
}

/// Packets of a class matter if they have this share of the mean square of lengths, by which queues grow (Pollaczek and Khinchine).
const MIN_CLASS_WEIGHT: f64 = 0.01;

/// The rate of the rarest length of packets with a high weight, per cycle, for packets at a rate.
fn rarest(sizes: &PacketSizes, packets_per_cycle: f64) -> f64 {
    let weighs = |&(flits, probability): &(u32, f64)| probability * f64::from(flits).powi(2) >= MIN_CLASS_WEIGHT * sizes.mean_square();
    sizes.distribution().filter(weighs).map(|(_, probability)| probability * packets_per_cycle).fold(packets_per_cycle, f64::min)
}

impl Offer {
    /// The offered load of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let terminals = scenario.network.terminal_count();
        let mut offer = Self { terminals, is_exact: scenario.users.is_none(), ..Self::default() };
        for class in &scenario.classes {
            let sending = || (0..terminals).map(TerminalId).filter(|&terminal| !class.pattern.is_silent(terminal));
            let sources = sending().count() as u32;
            let flits = class.load * sending().map(|terminal| class.pattern.share(terminal)).sum::<f64>();
            let packets = flits / class.sizes.mean();
            let reply_flits = class.reply.as_ref().map_or(0.0, |reply| packets * reply.sizes.mean());
            offer.sources = offer.sources.max(sources);
            offer.packets_per_cycle += if class.reply.is_some() { 2.0 * packets } else { packets };
            offer.flits_per_cycle += flits + reply_flits;
            let reply_squares = class.reply.as_ref().map_or(0.0, |reply| reply.sizes.mean_square());
            offer.squares_per_cycle += packets * (class.sizes.mean_square() + reply_squares);
            offer.note_events(class, sources, packets);
        }
        offer
    }

    /// Notes rare events, delays and phases of a class.
    fn note_events(&mut self, class: &TrafficClass, sources: u32, packets: f64) {
        if packets <= 0.0 {
            return;
        }
        let process = class.joint.as_ref().unwrap_or(&class.process);
        let bursts = process.burst_cycles().map(|cycles| f64::from(sources) / cycles);
        let replies = class.reply.as_ref().map(|reply| rarest(&reply.sizes, packets));
        let rare = [Some(rarest(&class.sizes, packets)), replies, bursts, self.rare_per_cycle];
        self.rare_per_cycle = rare.into_iter().flatten().reduce(f64::min);
        if process.has_phase() {
            let period = f64::from(sources) / packets;
            self.phase_cycles = Some(self.phase_cycles.map_or(period, |longest| longest.max(period)));
        }
        self.longest_delay = self.longest_delay.max(class.reply.as_ref().map_or(0, |reply| u64::from(reply.delay)));
    }

    /// Offered load, flits/terminal/cycle, averaged over silent terminals as well.
    pub fn load(&self) -> f64 {
        self.flits_per_cycle / f64::from(self.terminals.max(1))
    }

    /// True if every terminal offers the full load of its channel. A load is a sum over classes, so it may miss 1 by a rounding.
    pub(crate) fn is_full(&self) -> bool {
        (self.load() - 1.0).abs() <= 1e-9
    }

    /// Mean packet length, flits; 1 if nothing is offered.
    pub(crate) fn mean_packet_flits(&self) -> f64 {
        if self.packets_per_cycle > 0.0 { self.flits_per_cycle / self.packets_per_cycle } else { 1.0 }
    }

    /// The offered load of two networks together.
    #[cfg(test)]
    pub(crate) fn with(self, other: &Self) -> Self {
        Self {
            terminals: self.terminals + other.terminals,
            sources: self.sources + other.sources,
            packets_per_cycle: self.packets_per_cycle + other.packets_per_cycle,
            flits_per_cycle: self.flits_per_cycle + other.flits_per_cycle,
            ..self
        }
    }

    /// The standard deviation of the flits of Poisson sources in `cycles` cycles (Bernoulli and periodic ones deviate less).
    pub(crate) fn deviation(&self, cycles: f64) -> f64 {
        let of_equal_lengths = self.packets_per_cycle * self.mean_packet_flits().powi(2);
        (cycles * self.squares_per_cycle.max(of_equal_lengths)).sqrt()
    }

    /// Flits that one sending terminal offers per cycle.
    pub(crate) fn flits_per_source_cycle(&self) -> f64 {
        self.flits_per_cycle / f64::from(self.sources.max(1))
    }
}
