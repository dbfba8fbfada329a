//! What a run has brought, interval by interval and at its end.

use super::Run;
use crate::lone;
use crate::support::{self, Column};
use kasuri_model::engine::{Interval, Outcome, Phase, Status};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_workload::workload::agenda::Agenda;

impl Run<'_> {
    pub(super) fn close_interval(&mut self, begin: u64, weighs_ages: bool) -> Interval {
        let now = self.transit.now();
        let counted = self.transit.counted;
        let mut interval = Interval {
            end_cycle: now,
            cycles: now - begin,
            backlog_cycles: self.sources.backlog_cycles(now),
            completed: self.is_complete(),
            first_finished: self.ends.first_finished,
            injected_flits: counted.flits_in - std::mem::replace(&mut self.told.flits_in, counted.flits_in),
            accepted_flits: counted.flits_out - std::mem::replace(&mut self.told.flits_out, counted.flits_out),
            ..Interval::default()
        };
        self.ends.first_told = self.ends.first_finished;
        // Nobody asks for the course of a closed workload.
        if self.sources_send() {
            for (message, load) in self.messages.messages.iter().zip(self.transit.loads.iter()).filter(|(message, _)| message.is_there) {
                let left = u64::from(load.to_arrive);
                interval.in_flight_flits += left;
                interval.in_flight_age += left * now.saturating_sub(message.created as u64) * u64::from(weighs_ages);
            }
            interval.counted_accepted_flits = self.accepted().sum();
        }
        let statistics = &mut self.counts.statistics;
        statistics.settle();
        interval.arrived = std::mem::take(&mut statistics.arrived);
        interval.counted = statistics.counted;
        interval.counted_cycles = statistics.counting.rate_cycles(now);
        interval.outstanding_packets = match statistics.counting.phase {
            Phase::Draining => self.outstanding,
            Phase::Emptying => self.messages.live,
            Phase::WarmUp | Phase::Measuring => 0,
        };
        interval
    }

    /// Flits on some channels while rates were counted.
    fn carried(&self, channels: impl Iterator<Item = ChannelId>) -> impl Iterator<Item = u64> {
        channels.map(|channel| self.transit.channels.outputs[channel.0].flits)
    }

    fn terminals(&self) -> impl Iterator<Item = TerminalId> + use<> {
        (0..self.scenario.network.terminal_count()).map(TerminalId)
    }

    /// By terminal: flits delivered.
    fn accepted(&self) -> impl Iterator<Item = u64> {
        self.carried(self.terminals().map(|terminal| self.scenario.network.ejection_channel(terminal)))
    }

    /// Notes when the users' workloads have ended.
    fn note_ends(&mut self) {
        for (part, &(to_come, end)) in self.parts.iter().enumerate() {
            if let Some(&user) = self.counts.user_of_class.get(usize::from(self.classes) + part) {
                let seen = self.agenda.as_ref().map_or(0.0, |agenda| agenda.last_seen(part));
                self.counts.users[user].completion = (to_come == 0).then_some(end.max(seen));
            }
        }
    }

    pub(super) fn outcome(mut self, status: Status) -> Outcome {
        let completed = self.is_complete();
        self.counts.statistics.settle();
        self.note_ends();
        let now = self.transit.now();
        let network = &*self.scenario.network;
        let channel_flits = self.carried((0..network.channel_count()).map(ChannelId)).collect();
        let accepted_flits = self.accepted().collect();
        let injected_flits = self.carried(self.terminals().map(|terminal| network.injection_channel(terminal))).collect();
        let deadlock = if status == Status::Deadlock { self.transit.cycle_of_waits() } else { Vec::new() };
        let done = self.agenda.as_ref().map_or(0.0, Agenda::last_done);
        let finished = self.agenda.as_mut().map(Agenda::take_finished).unwrap_or_default();
        let standstill = self.agenda.as_ref().filter(|_| completed).and_then(Agenda::standstill).into_iter().collect();
        let timeline = self.agenda.as_mut().map(Agenda::take_timeline).unwrap_or_default();
        let ends = || {
            let last = self.ends.completion.iter().fold(done, |last, &time| last.max(time));
            (last, self.ends.completion.iter().map(|time| time.round() as u64).collect())
        };
        let approximations =
            if self.with_latency { lone::approximations_of_parcels(self.scenario, self.paths.has_drawn()) } else { Vec::new() };
        let statistics = &self.counts.statistics;
        let latencies = [&statistics.latency, &statistics.network_latency, &statistics.hops];
        Outcome {
            injected_flits,
            self_flits: Some(statistics.to_self.round() as u64),
            flit_hops: self.counts.flit_hops as u64,
            background: self.counts.background,
            timeline,
            finished,
            standstill,
            deadlock,
            users: self.counts.users,
            ..Outcome::new(status)
                .measured_for(now, statistics.counting.rates_from, statistics.counting.rate_cycles(now))
                .with_packets(latencies.map(|values| values.distribution()))
                .with_flits(channel_flits, accepted_flits)
                .completed(completed.then(ends))
                .with_ignored_keys(NOT_MODELLED, support::left_out(Column::Arbitrated, self.scenario).chain(approximations))
        }
    }
}

/// What refines the answer of the flit engine and is left out.
const NOT_MODELLED: &[&str] =
    &["router.architecture", "router.vc_allocator", "router.switch_allocator", "router.vc_release", "router.speculative"];
