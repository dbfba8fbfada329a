//! What a run has brought.

use super::state::Run;
use kasuri_model::engine::{Outcome, Status};

impl Run<'_> {
    pub(super) fn outcome(mut self, status: Status) -> Outcome {
        let now = self.calendar.now();
        self.counts.settle(now);
        let completed = self.is_complete();
        let deadlock = if status == Status::Deadlock { self.paused_cycle() } else { Vec::new() };
        let counts = &self.counts;
        let measured = counts.counting.rate_cycles(now);
        let mean = |flit_cycles: u64| if measured == 0 { 0.0 } else { flit_cycles as f64 / measured as f64 };
        let router_occupancy = counts.occupancy.iter().map(|router| mean(router.flit_cycles)).collect();
        let channel_flits = self.ports.iter().map(|port| port.flits).collect();
        let latencies = [&counts.packet_latency, &counts.network_latency, &counts.hops].map(|counter| counter.distribution());
        let agenda = self.workload.as_mut().map(|workload| &mut workload.agenda);
        let (mut done, mut outcome) = (0, Outcome::new(status));
        if let Some(agenda) = agenda {
            done = agenda.last_done().ceil() as u64;
            outcome.finished = agenda.take_finished();
            outcome.timeline = agenda.take_timeline();
            outcome.standstill = agenda.standstill().filter(|_| completed).into_iter().collect();
        }
        let end = self.ends.completion.iter().copied().fold(done, u64::max);
        let counts = self.counts;
        Outcome {
            self_flits: Some(counts.to_self),
            flit_hops: counts.flit_hops,
            router_occupancy,
            background: counts.background,
            queues: Some(counts.queues),
            deadlock,
            ..outcome
                .measured_for(now, counts.counting.rates_from, measured)
                .with_packets(latencies)
                .with_flits(channel_flits, counts.accepted)
                .completed(completed.then_some((end as f64, self.ends.completion)))
        }
    }
}
