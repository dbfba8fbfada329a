//! What a run has brought, interval by interval and at its end.

use super::Fluid;
use crate::graph::Graph;
use crate::lone;
use crate::predictions::Predictions;
use crate::statistics::Statistics;
use crate::support::{self, Column};
use kasuri_model::engine::{Interval, Outcome, Phase, Status};
use kasuri_model::scenario::Scenario;
use kasuri_workload::timeline::Span;

/// What a workload says of its end.
#[derive(Debug, Default)]
pub(super) struct Finale {
    /// The end of the last computation.
    pub(super) done: f64,
    /// When each rank had done everything, of workloads that say so.
    pub(super) finished: Vec<Option<f64>>,
    /// What is left to do waits for this.
    pub(super) standstill: Vec<String>,
    pub(super) timeline: Vec<Span>,
}

impl Fluid<'_> {
    pub(super) fn close_interval(&mut self, begin: u64) -> Interval {
        let now = self.now.ceil() as u64;
        let mut interval = Interval {
            end_cycle: now,
            cycles: now - begin,
            backlog_cycles: self.open.sources.backlog_cycles(now),
            completed: self.is_complete(),
            first_finished: self.ends.first_finished,
            ..Interval::default()
        };
        self.ends.first_told = self.ends.first_finished;
        // Nobody asks for the course of a closed workload.
        let moving = if self.sources_send() { self.sending.messages.len() as u32 } else { 0 };
        for flow in 0..moving {
            let left = self.rates.graph.left(flow, self.now);
            let flits = self.settle(flow, left);
            self.rates.graph.carry(flow, flits);
            let message = &self.sending.messages[flow as usize];
            if message.is_there() {
                interval.in_flight_flits += left.ceil() as u64;
                interval.in_flight_age += left.ceil() as u64 * now.saturating_sub(message.created as u64);
            }
        }
        self.counts.statistics.settle();
        let statistics = &mut self.counts.statistics;
        interval.arrived = std::mem::take(&mut statistics.arrived);
        interval.accepted_flits = std::mem::take(&mut statistics.moved).round() as u64;
        interval.injected_flits = interval.accepted_flits;
        interval.counted = statistics.counted;
        if moving > 0 {
            interval.counted_accepted_flits = self.rates.graph.accepted().sum::<f64>().round() as u64;
        }
        interval.counted_cycles = statistics.counting.rate_cycles(now);
        interval.outstanding_packets = match statistics.counting.phase {
            Phase::Draining => self.sending.outstanding,
            Phase::Emptying => self.sending.live,
            Phase::WarmUp | Phase::Measuring => 0,
        };
        interval
    }

    /// Notes when the users' workloads have ended.
    fn note_ends(&mut self) {
        for (part, &(to_come, end)) in self.workload.parts.iter().enumerate() {
            if let Some(&user) = self.counts.user_of_class.get(usize::from(self.open.classes) + part) {
                let seen = self.workload.agenda.as_ref().map_or(0.0, |agenda| agenda.last_seen(part));
                self.counts.users[user].completion = (to_come == 0).then_some(end.max(seen));
            }
        }
    }

    pub(super) fn outcome(mut self, status: Status) -> Outcome {
        let finale = self.finale();
        self.outcome_with(status, finale)
    }

    /// What the workload says of its end.
    fn finale(&mut self) -> Finale {
        let completed = self.is_complete();
        let Some(agenda) = &mut self.workload.agenda else { return Finale::default() };
        Finale {
            done: agenda.last_done(),
            finished: agenda.take_finished(),
            standstill: if completed { agenda.standstill().into_iter().collect() } else { Vec::new() },
            timeline: agenda.take_timeline(),
        }
    }

    /// The outcome of a run whose workload has ended so.
    pub(super) fn outcome_with(mut self, status: Status, finale: Finale) -> Outcome {
        let completed = self.is_complete();
        self.counts.statistics.settle();
        self.flush_cohort_counts();
        let approximations =
            if self.routes.with_latency { lone::approximations(self.scenario, self.routes.paths.has_drawn()) } else { Vec::new() };
        // The vectors of the answer need the room.
        self.note_ends();
        drop((std::mem::take(&mut self.sending.messages), self.open.sources, self.routes.prefetch, self.routes.scouted));
        let channel_flits = channel_flits(self.scenario, &self.rates.graph, &self.counts.statistics);
        let accepted_flits: Vec<u64> = self.rates.graph.accepted().map(|flits| flits.round() as u64).collect();
        drop(self.rates.graph);
        let statistics = &mut self.counts.statistics;
        let now = self.now.ceil() as u64;
        let prediction = self.routes.predictions.as_mut().map(Predictions::take);
        let Finale { done, finished, standstill, timeline } = finale;
        let cycles = |values: &[f64]| -> Vec<u64> { values.iter().map(|value| value.round() as u64).collect() };
        let latencies = [&statistics.latency, &statistics.network_latency, &statistics.hops];
        let end = || (self.ends.completion.iter().fold(done, |last, &time| last.max(time)), cycles(&self.ends.completion));
        Outcome {
            injected_flits: cycles(&statistics.injected),
            self_flits: Some(statistics.to_self.round() as u64),
            flit_hops: self.counts.flit_hops as u64,
            prediction,
            users: self.counts.users,
            background: self.counts.background,
            timeline,
            finished,
            standstill,
            ..Outcome::new(status)
                .measured_for(now, statistics.counting.rates_from, statistics.counting.rate_cycles(now))
                .with_packets(latencies.map(|values| values.distribution()))
                .with_flits(channel_flits, accepted_flits)
                .completed(completed.then(end))
                .with_ignored_keys(NOT_MODELLED, support::left_out(Column::Flow, self.scenario).chain(approximations))
        }
    }
}

/// Flits on each channel while rates were counted.
fn channel_flits(scenario: &Scenario, graph: &Graph, statistics: &Statistics) -> Vec<u64> {
    // An injection channel may have no part in the graph, and what comes over it is counted anyway.
    let injected = |channel: u32| statistics.injected.get(channel as usize).copied();
    let carried = |channel: u32| injected(channel).unwrap_or_else(|| graph.carried(channel));
    (0..scenario.network.channel_count()).map(|channel| carried(channel).round() as u64).collect()
}

/// What refines the answer of the flit engine and has no meaning for flows.
const NOT_MODELLED: &[&str] = &[
    "router.virtual_channels",
    "router.vc_per_destination",
    "router.architecture",
    "router.buffer_flits",
    "router.credit_delay",
    "router.vc_allocator",
    "router.switch_allocator",
    "router.vc_release",
];
