//! Networks simple enough to have a formula: queues with Bernoulli arrivals and constant service (Geo/D/1).

use super::{Measurement, Offer};
use kasuri_model::engine::{Command, Interval, Phase, Status, Totals};
use kasuri_network::rng::{Purpose, Stream, Streams};

/// Independent terminals, each a source queue before a server that takes `service` cycles for a packet of `service` flits.
pub(crate) struct Queues {
    queues: Vec<Queue>,
    rate: f64,
    service: u64,
    now: u64,
    measured: std::ops::Range<u64>,
    counted: Totals,
    counted_accepted: u64,
    counted_cycles: u64,
}

struct Queue {
    stream: Stream,
    created: u64,
    next_created: u64,
    free: u64,
}

impl Queues {
    /// `count` queues with `rate` packets per cycle each.
    pub(crate) fn new(count: u32, rate: f64, service: u64, seed: u64) -> Self {
        let streams = Streams::new(seed);
        assert!(rate < 1.0);
        let queues = (0..count)
            .map(|number| {
                let mut stream = streams.get(Purpose::Creation, number);
                let created = stream.trials((-rate).ln_1p()) - 1;
                let next_created = created + stream.trials((-rate).ln_1p());
                Queue { stream, created, next_created, free: 0 }
            })
            .collect();
        Self { queues, rate, service, now: 0, measured: 0..u64::MAX, counted: Totals::default(), counted_accepted: 0, counted_cycles: 0 }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn offer(&self) -> Offer {
        let count = self.queues.len() as u32;
        let packets = self.rate * f64::from(count);
        Offer {
            terminals: count,
            sources: count,
            packets_per_cycle: packets,
            flits_per_cycle: packets * self.service as f64,
            is_exact: true,
            ..Offer::default()
        }
    }

    /// Mean time from creation to the end of service: s + p s (s - 1) / (2 (1 - p s)) (Takagi 1993, Geo/G/1).
    pub(crate) fn mean_latency(&self) -> f64 {
        let (p, s) = (self.rate, self.service as f64);
        s + p * s * (s - 1.0) / (2.0 * (1.0 - p * s))
    }

    /// The mean latency of the packets counted since the last clearing.
    pub(crate) fn counted_mean(&self) -> f64 {
        self.counted.packet_latency as f64 / self.counted.packets as f64
    }

    /// Flits accepted per terminal and cycle since the last clearing.
    pub(crate) fn accepted_throughput(&self) -> f64 {
        self.counted_accepted as f64 / self.counted_cycles as f64 / self.queues.len() as f64
    }

    /// Simulates `cycles` more.
    pub(crate) fn advance(&mut self, cycles: u64, phase: Phase) -> Interval {
        let end = self.now + cycles;
        let mut interval = Interval { end_cycle: end, cycles, ..Interval::default() };
        let log_failure = (-self.rate).ln_1p();
        for queue in &mut self.queues {
            loop {
                let start = queue.created.max(queue.free);
                let arrival = start + self.service;
                if arrival > end {
                    let waiting = if start < end { queue.next_created } else { queue.created };
                    interval.backlog_cycles += end.saturating_sub(waiting);
                    interval.in_flight_flits += if start < end { self.service } else { 0 };
                    interval.outstanding_packets += u64::from(self.measured.contains(&queue.created));
                    break;
                }
                let latency = arrival - queue.created;
                add(&mut interval.arrived, latency, self.service);
                if phase == Phase::WarmUp || self.measured.contains(&queue.created) {
                    add(&mut self.counted, latency, self.service);
                }
                queue.free = arrival;
                queue.created = queue.next_created;
                queue.next_created += queue.stream.trials(log_failure);
            }
        }
        interval.accepted_flits = interval.arrived.packets * self.service;
        if matches!(phase, Phase::WarmUp | Phase::Measuring) {
            self.counted_accepted += interval.accepted_flits;
            self.counted_cycles += cycles;
        }
        interval.counted = self.counted;
        interval.counted_accepted_flits = self.counted_accepted;
        interval.counted_cycles = self.counted_cycles;
        self.now = end;
        interval
    }

    /// Runs two families of queues as one network, under a controller that never restarts the counts.
    pub(crate) fn run_both(one: &mut Self, other: &mut Self, controller: &mut dyn Measurement) -> Status {
        let mut phase = Phase::WarmUp;
        loop {
            let cycles = controller.interval_cycles();
            let (mut sum, second) = (one.advance(cycles, phase), other.advance(cycles, phase));
            sum.arrived.packets += second.arrived.packets;
            sum.arrived.packet_latency += second.arrived.packet_latency;
            sum.arrived.network_latency += second.arrived.network_latency;
            sum.accepted_flits += second.accepted_flits;
            sum.in_flight_flits += second.in_flight_flits;
            sum.backlog_cycles += second.backlog_cycles;
            sum.outstanding_packets = 0;
            match controller.interval_ended(&sum) {
                Command::End(status) => return status,
                Command::Drain => phase = Phase::Draining,
                _ => {}
            }
        }
    }

    /// Lets a controller run the queues to the end.
    pub(crate) fn run(&mut self, controller: &mut dyn Measurement) -> Status {
        let mut phase = Phase::WarmUp;
        loop {
            let cycles = controller.interval_cycles();
            assert!(cycles >= 1);
            let interval = self.advance(cycles, phase);
            match controller.interval_ended(&interval) {
                Command::Continue | Command::RedrawPhases => {}
                command @ (Command::Clear | Command::Measure | Command::MeasureWaiting) => {
                    self.counted = Totals::default();
                    self.counted_accepted = 0;
                    self.counted_cycles = 0;
                    if command != Command::Clear {
                        phase = Phase::Measuring;
                        self.measured = self.now..u64::MAX;
                    }
                }
                Command::Drain => {
                    assert_eq!(phase, Phase::Measuring);
                    phase = Phase::Draining;
                    self.measured.end = self.now;
                }
                Command::Empty => phase = Phase::Emptying,
                Command::End(status) => return status,
            }
        }
    }
}

fn add(totals: &mut Totals, packet_latency: u64, network_latency: u64) {
    totals.packets += 1;
    totals.packet_latency += packet_latency;
    totals.network_latency += network_latency;
    totals.hops += 1;
}

#[test]
fn the_queues_obey_their_formula() {
    let mut queues = Queues::new(1000, 0.16, 5, 1);
    queues.advance(2_000, Phase::WarmUp);
    queues.counted = Totals::default();
    queues.advance(10_000, Phase::WarmUp);
    assert!((queues.counted_mean() / queues.mean_latency() - 1.0).abs() < 0.01, "{}", queues.counted_mean());
}
