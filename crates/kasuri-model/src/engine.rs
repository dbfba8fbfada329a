//! The interface of all engines: an engine accepts a [`Scenario`] or lists everything that it refuses ([`Engine::prepare`]), then runs the
//! scenario under a [`Controller`] and returns an [`Outcome`].
//!
//! The engine advances; at the end of each interval the controller decides whether the network has settled, whether the answer is precise
//! enough, or whether the run has failed. No engine contains rules of measurement.

use crate::refusal::Refusal;
use crate::scenario::Scenario;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::predictor::direction::ByLevel;
use kasuri_network::routing::extents::Extents;
use kasuri_workload::timeline::Span;
pub use kasuri_workload::translation::TranslationCounts;
use schemars::Schema;
use std::sync::Arc;
use thiserror::Error;

/// Simulates scenarios at one level of fidelity. Only the program's list of engines knows their names.
pub trait Engine: Send + Sync {
    /// The name in the experiment file: the value of `engine`, and the name of the engine's section.
    fn name(&self) -> &'static str;

    /// One sentence on its method.
    fn summary(&self) -> &'static str;

    /// The keys of the engine's section of the experiment file, as the schema of a structure. Every engine's section is checked by its
    /// schema, whichever engine runs; a key with a fixed set of values is therefore an enumeration.
    fn section(&self) -> fn() -> Schema;

    /// The kind of simulation.
    fn method(&self) -> Method;

    /// The engine's features: a line for each one beyond the canonical router with open traffic.
    fn features(&self) -> Vec<Feature> {
        Vec::new()
    }

    /// The only gate: decides whether this engine can simulate the scenario, and gets ready for it. It is cheap: [`Prepared::run`] alone
    /// allocates the state of the network.
    ///
    /// # Errors
    /// All features that it cannot simulate and that change the answer, wrong options of its section, and sizes beyond its limits.
    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>>;

    /// Prepares a scenario and runs it.
    ///
    /// # Errors
    /// As [`Engine::prepare`] and [`Prepared::run`].
    fn run(&self, scenario: &Scenario, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        self.prepare(scenario)?.run(controller)
    }
}

/// A scenario that an engine has accepted.
pub trait Prepared {
    /// The peak memory of the run in bytes, without the network and the routing: at least its true use, and at most about twice that.
    /// Untouched pages of it take no memory of the machine. `extents` caches how far routes reach.
    fn memory_bytes(&self, extents: &mut Extents) -> u64;

    /// The slowdown over the routers with which the engine is fastest, for estimates of time.
    fn slowness(&self) -> f64 {
        1.0
    }

    /// The number of threads that make the run faster, by its size; or the number in the engine's section.
    fn useful_threads(&self) -> usize {
        1
    }

    /// Lets the run use these threads, which change no result. An engine without use for them ignores them.
    ///
    /// # Errors
    /// The scenario is too large to be cut into enough parts.
    fn use_threads(&mut self, _threads: Threads) -> Result<(), Refusal> {
        Ok(())
    }

    /// Runs the scenario.
    ///
    /// # Errors
    /// Faults that only a run can show: an undeliverable message, deadlocked programs, routes without a formula; and counts of the engine
    /// that do not balance (`paranoid`).
    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError>;
}

/// The threads that a run may use.
#[derive(Clone)]
pub struct Threads {
    /// Their number, at least 1, with the thread that calls the engine.
    pub count: usize,
    /// Called by each further thread when it begins, with its number, from 1 on, to bind it to a core.
    pub at_begin: Arc<dyn Fn(usize) + Send + Sync>,
    /// Called by each further thread before it ends, to add up the processor time.
    pub at_end: Arc<dyn Fn() + Send + Sync>,
}

impl Threads {
    /// Threads that the system places and that nothing accounts for.
    pub fn new(count: usize) -> Self {
        Self { count, at_begin: Arc::new(|_| ()), at_end: Arc::new(|| ()) }
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Threads").field("count", &self.count).finish_non_exhaustive()
    }
}

/// The kind of simulation, which determines the rules of measurement and the growth of the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Formulas: the answer is there at once, the saturation load is part of it, nothing is simulated.
    Formulas,
    /// Rates of messages: no buffers, so that nothing can deadlock.
    Rates,
    /// Flits and credits, cycle by cycle.
    Cycles,
}

/// An engine's support for one feature: a row of the documentation's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The feature in the field's terms, or two features that an engine does not combine.
    pub name: String,
    /// The key of the experiment file that requests it.
    pub key: &'static str,
    /// By column (the engine itself, or each of its layouts): `yes`, `no`, or the omitted part.
    pub support: Vec<(&'static str, &'static str)>,
}

/// Controls the course of a run.
pub trait Controller {
    /// The length of the next interval, in cycles, at least 1.
    fn interval_cycles(&mut self) -> u64;

    /// Called at the end of each interval, and at once when, in [`Phase::Draining`] or [`Phase::Emptying`], nothing is outstanding, when
    /// the first terminal of a batch has finished, or when a closed workload has completed.
    fn interval_ended(&mut self, interval: &Interval) -> Command;

    /// The number of coming intervals, each of length [`Self::interval_cycles`], after which it returns [`Command::Continue`] whatever
    /// happens in them. An engine may run through them before it reports them one by one.
    fn assured_intervals(&self) -> u64 {
        0
    }

    /// The cycle in which it ends the run at the latest, if it only waits for the end of a closed workload. Until then it returns
    /// [`Command::Continue`] after each interval, so an engine may skip the intervals.
    fn waits_until(&self) -> Option<u64> {
        None
    }

    /// True if it reads [`Interval::in_flight_age`], for which an engine must visit each packet.
    fn weighs_ages(&self) -> bool {
        false
    }

    /// True if the interval should end now, whatever its length. Engines ask every few milliseconds, so that a request to stop takes
    /// effect.
    fn should_stop(&self) -> bool {
        false
    }
}

/// The quantities that the engine counts at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Statistics cover every packet that arrives; they are discarded at [`Command::Measure`].
    WarmUp,
    /// Packet statistics cover the packets created since the phase began, and the answers to these; rates cover all flits.
    Measuring,
    /// Sources continue. Packet statistics cover the packets created while measuring; rates no longer change.
    Draining,
    /// Sources create nothing new. Otherwise as `Draining`.
    Emptying,
}

/// The counting state behind [`Phase`], the same in every engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// The phase.
    pub phase: Phase,
    /// Do flits count towards the rates?
    pub rates: bool,
    /// Packets created before this cycle are not measured.
    pub measured_from: u64,
    /// Packets created in or after this cycle are not measured.
    pub measured_before: u64,
    /// The cycle in which the statistics were last discarded.
    pub rates_from: u64,
    /// The cycle after the last one for which rates were counted, once that is over.
    pub rates_until: Option<u64>,
}

impl Default for Counting {
    fn default() -> Self {
        let (measured_from, rates_from) = (0, 0);
        Self { phase: Phase::WarmUp, rates: true, measured_from, measured_before: u64::MAX, rates_from, rates_until: None }
    }
}

impl Counting {
    /// True if a packet created in this cycle is measured.
    #[inline(always)]
    pub fn covers(&self, created: u64) -> bool {
        created >= self.measured_from && created < self.measured_before
    }

    /// Starts a phase in cycle `now` and discards all counts.
    pub fn clear(&mut self, phase: Phase, now: u64) {
        let measured_from = if phase == Phase::Measuring { now } else { 0 };
        *self = Self { phase, measured_from, rates_from: now, ..Self::default() };
    }

    /// Stops counting rates and admitting packets to the measured ones. Emptying may follow draining: measuring ended when the first of
    /// them began.
    pub fn drain(&mut self, phase: Phase, now: u64) {
        (self.phase, self.rates) = (phase, false);
        if self.rates_until.is_none() {
            (self.rates_until, self.measured_before) = (Some(now), now);
        }
    }

    /// Cycles for which rates were counted up to `now`.
    pub fn rate_cycles(&self, now: u64) -> u64 {
        self.rates_until.unwrap_or(now) - self.rates_from
    }
}

/// A controller's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Continue unchanged.
    Continue,
    /// Discard the statistics and continue the warm-up.
    Clear,
    /// Discard the statistics and begin to measure.
    Measure,
    /// As `Measure`, but earlier packets that wait in their source's queue count too, once they come to its head (BookSim 2's rule; engines
    /// without such queues do as at `Measure`).
    MeasureWaiting,
    /// Let sources with a random phase ([`Process::has_phase`]) draw a new one, and continue.
    ///
    /// [`Process::has_phase`]: kasuri_workload::traffic::process::Process::has_phase
    RedrawPhases,
    /// Stop measuring rates; wait for the measured packets, and for the answers to those that are answered.
    Drain,
    /// Stop measuring rates and creating packets; wait until the network is empty.
    Empty,
    /// End the run with this status.
    End(Status),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The requested precision or the fixed length was reached.
    Converged,
    /// The network delivers less than the offered load.
    Saturated,
    /// The closed workload was delivered.
    Completed,
    /// The run reached its limit on cycles.
    MaxCycles,
    /// Packets wait for each other in a cycle.
    Deadlock,
}

impl Status {
    /// The word in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Saturated => "saturated",
            Self::Completed => "completed",
            Self::MaxCycles => "max_cycles",
            Self::Deadlock => "deadlock",
        }
    }
}

/// The events of an interval, and the state at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// The cycle after the interval.
    pub end_cycle: u64,
    /// Its length in cycles, shorter than requested if it ended early.
    pub cycles: u64,
    /// Within the interval: all packets that arrived, whenever created.
    pub arrived: Totals,
    /// Within the interval: flits that entered the network, all terminals.
    pub injected_flits: u64,
    /// Within the interval: flits delivered, all terminals. If links fail during the run, only those of packets that have arrived whole.
    pub accepted_flits: u64,
    /// Since the statistics were last discarded: packets that the present phase counts.
    pub counted: Totals,
    /// Since the statistics were last discarded, measuring and warm-up only: flits delivered, all terminals.
    pub counted_accepted_flits: u64,
    /// Since the statistics were last discarded: cycles for which rates are counted.
    pub counted_cycles: u64,
    /// Draining: measured packets that have not arrived, with those still waiting at their source, and the answers to measured packets.
    pub outstanding_packets: u64,
    /// Undelivered flits of packets that have left their source queue in part or in whole, or are at its head.
    pub in_flight_flits: u64,
    /// Sum over these flits of the age of their packet, in cycles; 0 unless the controller [weighs ages](Controller::weighs_ages).
    pub in_flight_age: u64,
    /// Sum over all terminals of the age of the next packet's creation: the backlog, cycles.
    pub backlog_cycles: u64,
    /// Has a closed workload (a batch) been delivered?
    pub completed: bool,
    /// Batches: have all messages of some terminal arrived? Terminals without messages do not count.
    pub first_finished: bool,
}

/// Sums over packets that have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Sum of packet latencies: creation to tail ejected, cycles.
    pub packet_latency: u64,
    /// Sum of network latencies: head injected to tail ejected, cycles.
    pub network_latency: u64,
    /// Sum of hops: routers crossed.
    pub hops: u64,
}

impl Totals {
    /// Adds the counts of another part.
    pub fn absorb(&mut self, other: &Self) {
        self.packets += other.packets;
        self.packet_latency += other.packet_latency;
        self.network_latency += other.network_latency;
        self.hops += other.hops;
    }
}

impl Interval {
    /// Adds the counts of another part of the network, but not the times and flags.
    pub fn absorb(&mut self, other: &Self) {
        self.arrived.absorb(&other.arrived);
        self.injected_flits += other.injected_flits;
        self.accepted_flits += other.accepted_flits;
        self.counted.absorb(&other.counted);
        self.counted_accepted_flits += other.counted_accepted_flits;
        self.in_flight_flits += other.in_flight_flits;
        self.in_flight_age += other.in_flight_age;
        self.backlog_cycles += other.backlog_cycles;
    }
}

/// A distribution of a whole number, exact in count, sum and extremes; quantiles to the width of its buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The least (0 if there is none).
    pub min: u64,
    /// The greatest (0 if there is none).
    pub max: u64,
    /// Highest value of each bucket and how many values fell into it, ascending.
    pub buckets: Vec<(u64, u64)>,
}

impl Distribution {
    /// The mean, if there is any value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The least bucket value at or below which at least this fraction of the values lies.
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        let rank = ((fraction * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for &(value, count) in &self.buckets {
            below += count;
            if below >= rank {
                return Some(value.min(self.max));
            }
        }
        None
    }
}

/// Rounds cycles down to a whole number. A sum of fractions that misses a whole number only by rounding errors counts as that number.
pub fn whole_cycles(cycles: f64) -> f64 {
    (cycles + (cycles * 1e-12).min(1e-3)).floor()
}

/// A lower bound, in whole cycles, on the time of traffic for which some channel needs `busy` cycles, or the channels of a cut do in the
/// mean; at least 1 for any traffic.
///
/// The last flit occupies its channel for a period, but it may arrive at its terminal earlier: n flits over a channel of period p need
/// (n - 1) p cycles and, if that is less than p, the time of a flit over the channel, an injection and an ejection.
pub fn least_cycles(network: &Network, busy: f64) -> f64 {
    if busy <= 0.0 {
        return 0.0;
    }
    (whole_cycles(busy) - unfinished_cycles(network) as f64).max(1.0)
}

/// The most cycles for which a channel may still be occupied by a flit that has arrived at its terminal. Routers' cycles are left out.
fn unfinished_cycles(network: &Network) -> u64 {
    let flight = |channel: ChannelId| u64::from(network.link(channel).latency) + 1;
    let terminals = || (0..network.terminal_count()).map(TerminalId);
    let injections = || terminals().map(|terminal| network.injection_channel(terminal));
    let ejections = || terminals().map(|terminal| network.ejection_channel(terminal));
    let (first, last) = (injections().map(flight).min().unwrap_or(0), ejections().map(flight).min().unwrap_or(0));
    let others = injections().map(|channel| (channel, last)).chain(ejections().map(|channel| (channel, first)));
    let all = others.chain(network.all_router_channels().map(|channel| (channel, first + last)));
    all.map(|(channel, others)| u64::from(network.link(channel).period).saturating_sub(flight(channel) + others)).max().unwrap_or(0)
}

/// The answer of a run. [`Outcome::new`] begins one.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// All simulated cycles.
    pub cycles: u64,
    /// The cycle at which measuring began.
    pub warmup_cycles: u64,
    /// Cycles for which rates were counted.
    pub measured_cycles: u64,
    /// Creation to tail ejected, cycles, measured packets.
    pub packet_latency: Distribution,
    /// Head injected to tail ejected, cycles, measured packets.
    pub network_latency: Distribution,
    /// Each flit: injected to ejected, cycles, measured packets.
    pub flit_latency: Distribution,
    /// Routers crossed, measured packets.
    pub hops: Distribution,
    /// Flits that entered the network per terminal while rates were counted, shape `[terminals]`.
    pub injected_flits: Vec<u64>,
    /// Flits delivered per terminal while rates were counted, shape `[terminals]`.
    pub accepted_flits: Vec<u64>,
    /// Of these, flits that terminals have sent to themselves: they cross their own router and no channel between routers. `None` if the
    /// engine does not distinguish them.
    pub self_flits: Option<u64>,
    /// Flits sent on each channel while rates were counted, shape `[channels]`.
    pub channel_flits: Vec<u64>,
    /// Mean number of flits in each router's buffers while rates were counted, shape `[routers]`.
    pub router_occupancy: Vec<f64>,
    /// Closed workloads: the cycle in which each terminal received its last flit, shape `[terminals]`; else empty.
    pub completion_cycles: Vec<u64>,
    /// Closed workloads: cycles from the start until the last flit has arrived.
    pub completion_time: Option<f64>,
    /// Closed workloads with known completion times of ranks: the cycle in which each rank finished, shape `[ranks]`, `None` for unfinished
    /// ones; else empty.
    pub finished: Vec<Option<f64>>,
    /// A deadlock: channels and virtual channels, each waiting for the next, the last for the first.
    pub deadlock: Vec<(ChannelId, u16)>,
    /// A standstill without a cycle of waiting packets: the refused requests and the blocked programs, a phrase each.
    pub standstill: Vec<String>,
    /// Flits that crossed a router, for measures of speed.
    pub flit_hops: u64,
    /// Counts of the predictors; `None` where no router has one.
    pub prediction: Option<Prediction>,
    /// Injected and detected errors of channels; `None` where there can be none.
    pub link_errors: Option<LinkErrors>,
    /// Counts of the queues of output-queued routers; `None` for other routers.
    pub queues: Option<Queues>,
    /// Counts of the operating systems of a machine's nodes; `None` where there are none.
    pub operating_systems: Option<OperatingSystems>,
    /// Features that the engine ignored, by key.
    pub not_modelled: Vec<String>,
    /// The outcome of each user, if there are users.
    pub users: Vec<UserOutcome>,
    /// Open traffic in the background of a closed workload or a machine without users: it enters none of the distributions.
    pub background: Option<Background>,
    /// The answers of an engine that evaluates formulas; the distributions are empty then.
    pub formulas: Option<Formulas>,
    /// The timeline of an endpoint's machine, if requested.
    pub timeline: Vec<Span>,
    /// Counts of network interfaces, where the endpoint model has them.
    pub interfaces: Option<Interfaces>,
    /// Packets lost by failures of links and routers during the run, where no router queue counts them.
    pub losses: Option<Losses>,
}

/// Packets lost to failures, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Lost packets, one for each loss.
    pub lost: u64,
    /// Packets that sources have resent.
    pub resent: u64,
}

/// Counts of the network interfaces of a distributed shared memory until the last request was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interfaces {
    /// Requests that were answered.
    pub answered: u64,
    /// Fraction of the time in which the interface worked, shape `[terminals]`.
    pub busy: Vec<f64>,
    /// Fraction of the time in which the router held a packet for its own node, waiting for the interface or on the way to it; packets
    /// that only pass through do not count. Shape `[terminals]`.
    pub awaited: Vec<f64>,
    /// Time sharing: switches between users.
    pub switches: u64,
    /// Cycles from the ends of slices to the beginnings of the next ones, all together.
    pub switch_cycles: u64,
}

/// Counts of packets in the queues of output-queued routers, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Packets sent by terminals, resent ones included.
    pub sent: u64,
    /// Packets that have arrived.
    pub arrived: u64,
    /// Packets dropped for lack of room in a queue.
    pub dropped: u64,
    /// Packets that were on, before or on their way to a channel or router that had failed; `None` where nothing fails.
    pub lost: Option<u64>,
    /// Packets that sources have resent.
    pub resent: u64,
    /// Packets that arrived after a later one of the same message; `None` without messages.
    pub late: Option<u64>,
    /// Times at which a router has paused a channel.
    pub pauses: u64,
    /// The most flits of packets that waited in a queue at one time.
    pub most_flits: u64,
}

/// Counts of the operating systems of a machine's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatingSystems {
    /// Interrupts that took time of a processor.
    pub interrupts: u64,
    /// Interrupts that were masked.
    pub masked: u64,
    /// Pages needed by an interface that were not in memory.
    pub page_faults: u64,
    /// Times at which a task got a set of control registers that another one had.
    pub task_switches: u64,
}

/// Errors of channels, injected and detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkErrors {
    /// Bits changed on a channel.
    pub wrong_bits: u64,
    /// Flits lost on a channel.
    pub lost_flits: u64,
    /// Errors found and corrected.
    pub corrected: u64,
    /// Packets found to be damaged beyond correction, and refused.
    pub refused_packets: u64,
    /// Accepted packets with undetected errors.
    pub undetected_packets: u64,
}

/// Counts of the routers' predictors for measured packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Routers crossed by heads.
    pub switches: u64,
    /// Heads that found an empty buffer and a prediction for their input port.
    pub attempts: u64,
    /// Of these, heads that crossed to their output on the prediction.
    pub hits: u64,
    /// True if nothing is known of the switches; the next four numbers are then meaningless.
    pub heads_only: bool,
    /// Of these, heads with a predicted output that real requests had taken, or that had no virtual channel or credit left.
    pub refused: u64,
    /// Flits that crossed a switch on a prediction, rightly or wrongly.
    pub speculative_traversals: u64,
    /// Flits that were sent on a wrongly predicted channel and dropped at its end.
    pub wasted_flits: u64,
    /// Hint bits in front of each packet, 0 without them.
    pub hint_bits: u32,
    /// Of `switches`, `attempts` and `hits`, those at the router that each channel leads to, shape `[channels]`.
    pub by_channel: Vec<[u64; 3]>,
    /// Attempts and hits by the level of the router and the way that the head took there; empty where routers have no levels.
    pub by_level: ByLevel,
}

impl Prediction {
    /// Attempts and hits of one of the ways, all levels together; `None` where routers have no levels.
    pub fn of_direction(&self, way: usize) -> Option<[u64; 2]> {
        let sum = |column: usize| self.by_level.iter().map(|ways| ways[way][column]).sum();
        (!self.by_level.is_empty()).then(|| [sum(0), sum(1)])
    }

    /// Adds the counts of other routers of the network.
    pub fn absorb(&mut self, other: &Self) {
        self.switches += other.switches;
        self.attempts += other.attempts;
        self.hits += other.hits;
        self.refused += other.refused;
        self.speculative_traversals += other.speculative_traversals;
        self.wasted_flits += other.wasted_flits;
        for (sums, counts) in self.by_channel.iter_mut().zip(&other.by_channel) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let counts = |ways: &[[[u64; 2]; 3]]| ways.as_flattened().as_flattened().to_vec();
        let sums = self.by_level.as_flattened_mut().as_flattened_mut();
        sums.iter_mut().zip(counts(&other.by_level)).for_each(|(sum, count)| *sum += count);
    }
}

/// The outcome of one user. Counts cover the whole run, rates and latencies the measured part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserOutcome {
    /// Flits delivered to its nodes while rates were counted.
    pub accepted_flits: u64,
    /// Its measured packets.
    pub packets: u64,
    /// The sum of their latencies: creation to tail ejected, cycles.
    pub packet_latency: u64,
    /// The greatest.
    pub packet_latency_max: u64,
    /// The cycle in which the last message of its workload has arrived and, through network interfaces, its programs have seen it; `None`
    /// without a workload, or if the last message has not arrived.
    pub completion: Option<f64>,
    /// Counts of its tables and translators; `None` if the engine has none.
    pub translation: Option<TranslationCounts>,
}

impl UserOutcome {
    /// Adds the counts of its packets in another part.
    pub fn absorb(&mut self, other: &Self) {
        self.accepted_flits += other.accepted_flits;
        self.packets += other.packets;
        self.packet_latency += other.packet_latency;
        self.packet_latency_max = self.packet_latency_max.max(other.packet_latency_max);
    }
}

/// Open traffic in the background of a closed workload or a machine, all classes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// Flits delivered while rates were counted.
    pub accepted_flits: u64,
    /// Its measured packets.
    pub packets: u64,
    /// The sum of their latencies: creation to tail ejected, cycles.
    pub packet_latency: u64,
    /// The greatest.
    pub packet_latency_max: u64,
}

impl Background {
    /// Adds the counts of another part.
    pub fn absorb(&mut self, other: &Self) {
        self.accepted_flits += other.accepted_flits;
        self.packets += other.packets;
        self.packet_latency += other.packet_latency;
        self.packet_latency_max = self.packet_latency_max.max(other.packet_latency_max);
    }

    /// Counts a packet that has arrived: its flits if rates are counted, its latency if it is measured.
    pub fn count(&mut self, flits: u32, counts_rates: bool, latency: Option<u64>) {
        self.accepted_flits += u64::from(flits) * u64::from(counts_rates);
        if let Some(latency) = latency {
            self.packets += 1;
            self.packet_latency += latency;
            self.packet_latency_max = self.packet_latency_max.max(latency);
        }
    }
}

/// The answers of formulas. Loads are in flits per terminal and cycle, all classes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formulas {
    /// Expected latency of a packet in an otherwise empty network, cycles.
    pub zero_load_latency: f64,
    /// Expected latency at the offered load, cycles; `None` for closed workloads and for an overloaded channel.
    pub packet_latency: Option<f64>,
    /// Routers crossed.
    pub hops: f64,
    /// The offered load that the most loaded channel can just carry, with this routing.
    pub static_throughput: Option<f64>,
    /// A bound for any routing, by the terminals' channels, distances and the bandwidth of all channels.
    pub ideal_throughput: Option<f64>,
    /// The least load at which less than 0.95 of it is accepted or the latency exceeds three times that of a lone packet.
    pub saturation_load: Option<f64>,
    /// Flits per cycle over the cut into halves, in both directions together.
    pub bisection_bandwidth: Option<f64>,
}

/// The reason why an engine has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The input is at fault.
    #[error("{}", sentences(.0))]
    Refused(Vec<Refusal>),
    /// A program of an endpoint's machine is stuck: an error in the program, or an internal error.
    #[error("the program of node {node} is stuck: {what}")]
    Program {
        /// The node.
        node: u32,
        /// The reason.
        what: String,
    },
    /// Nothing moves, although the packets inside do not wait for each other.
    #[error("deadlock detected at cycle {cycle}: {what}")]
    Standstill {
        /// When.
        cycle: u64,
        /// The waiting packets, their places, and what each waits for.
        what: String,
    },
    /// A conservation law is broken: an internal error.
    #[error("internal error: inconsistent counts at cycle {cycle}: {what}")]
    Unbalanced {
        /// The cycle of the check.
        cycle: u64,
        /// Which law.
        what: String,
    },
}

/// All refusals in one text.
fn sentences(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}

impl EngineError {
    /// A closed workload that cannot end: nothing is due or under way, although messages are missing. `standstill` is the workload's own
    /// description of what it waits for.
    pub fn never_sent(missing: u64, standstill: Option<String>) -> Self {
        let standstill = standstill.unwrap_or_else(|| "everything waits for something that does not happen".to_owned());
        let reason = format!("{missing} of its messages are never sent: {standstill}");
        Refusal::new("workload", reason).into()
    }
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(vec![refusal])
    }
}

impl From<Vec<Refusal>> for EngineError {
    fn from(refusals: Vec<Refusal>) -> Self {
        Self::Refused(refusals)
    }
}
