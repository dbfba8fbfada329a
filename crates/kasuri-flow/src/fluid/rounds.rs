//! Messages that begin together while no other is under way: the rounds of a schedule, many at a time.

use super::Fluid;
use super::state::{Message, Rates, Sending};
use crate::cohort::Member;
use crate::counts::{Counts, Ends};
use crate::statistics::Arrival;
use kasuri_model::engine::EngineError;
use kasuri_network::id::TerminalId;
use kasuri_workload::workload;

impl Fluid<'_> {
    /// Ends the messages that have begun together, and with them all that there are, and begins those that follow.
    pub(super) fn end_together(&mut self) -> Result<(), EngineError> {
        let mut members = self.rates.cohort.end();
        self.arrive_together(&members);
        self.sending.live = 0;
        if self.workload.rounds_are_predictable {
            self.follow_together(&mut members)?;
        } else {
            self.tell_together(&members);
            members.clear();
        }
        self.sending.live = members.len() as u64;
        self.rates.cohort.go_on(members);
        Ok(())
    }

    /// Counts what [`Self::settle`] and [`Self::arrive`] count, for all messages at once: nobody has counted any of their flits yet.
    fn arrive_together(&mut self, ended: &[Member]) {
        let Self { now, counts: Counts { statistics, .. }, ends: Ends { completion, .. }, .. } = self;
        let (rates, begun) = (statistics.counting.rates, self.rates.cohort.begun);
        let tail = f64::from(u8::from(self.routes.with_latency));
        let (mut moved, mut flit_hops) = (0, 0);
        for member in ended {
            let &Member { created, flits, hops, .. } = member;
            moved += u64::from(flits);
            flit_hops += u64::from(flits) * u64::from(hops);
            if rates {
                statistics.injected[member.flow as usize] += f64::from(flits);
                if member.destination == member.flow {
                    statistics.to_self += f64::from(flits);
                }
            }
            let arrival = *now + f64::from(member.head_latency);
            statistics.arrive(&Arrival { created, asked: created as u64, begun, time: arrival, hops });
            let completion = &mut completion[member.destination as usize];
            let end = arrival + tail;
            *completion = if end > *completion { end } else { *completion };
        }
        statistics.moved += moved as f64;
        self.counts.flit_hops += flit_hops as f64;
        self.ends.to_come = self.ends.to_come.map(|to_come| to_come - ended.len() as u64);
        self.arrive_for_user(ended);
    }

    /// Counts the same for the user whose they are, if there are users.
    fn arrive_for_user(&mut self, ended: &[Member]) {
        let (class, now, begun) = (self.class_together(), self.now, self.rates.cohort.begun);
        let Some((to_come, last)) = self.workload.parts.get_mut(self.workload.part) else { return };
        *to_come -= ended.len() as u64;
        let tail = f64::from(u8::from(self.routes.with_latency));
        for &Member { created, flits, hops, head_latency, .. } in ended {
            let time = now + f64::from(head_latency);
            *last = last.max(time + tail);
            self.counts.count_for_user(class, flits, &Arrival { created, asked: created as u64, begun, time, hops });
        }
    }

    /// The class of messages that begin together.
    fn class_together(&self) -> u8 {
        self.open.classes + self.workload.part as u8
    }

    /// Puts the message that follows in the place of each of these, which have ended, and takes those out that none follows.
    fn follow_together(&mut self, members: &mut Vec<Member>) -> Result<(), EngineError> {
        let mut are_all = true;
        for member in &mut *members {
            if let Some(message) = self.workload.agenda.as_mut().and_then(|agenda| agenda.follow(member.token)) {
                self.follow(&message, member)?;
            } else {
                (member.flits, are_all) = (0, false);
                self.sending.messages[member.flow as usize].flits = 0;
            }
        }
        if !are_all {
            members.retain(|member| member.flits > 0);
        }
        Ok(())
    }

    /// Begins a message that follows, together with others.
    #[inline(always)]
    fn follow(&mut self, message: &workload::Message, member: &mut Member) -> Result<(), EngineError> {
        let (source, drawn) = (message.source, self.join(message, self.now));
        *member = Member::new(source.0, message.token, &drawn);
        if let Some((first, others)) = self.routes.paths.remembered(&self.scenario.network, source, drawn.destination) {
            member.head_latency = self.head_latency(source, others, &drawn);
            self.rates.cohort.enter_remembered(member, first, others);
            self.open.sources.number(source);
        } else {
            let channels = self.find_path(source, &drawn)?;
            member.head_latency = self.predicted_latency(source, &channels, &drawn);
            self.rates.cohort.enter(member, &channels[1..]);
            self.routes.prefetch.give_back(channels);
        }
        Ok(())
    }

    /// Tells the workload of messages that have ended together, which it does not follow up without being told.
    fn tell_together(&mut self, ended: &[Member]) {
        let Some(agenda) = &mut self.workload.agenda else { return };
        let tail = f64::from(u8::from(self.routes.with_latency));
        for member in ended {
            self.sending.messages[member.flow as usize].flits = 0;
            agenda.sent(member.token);
            agenda.arrives(member.token, self.now + (f64::from(member.head_latency) + tail).max(0.0), self.now);
        }
    }

    /// Moves the flows of the cohort into the graph.
    #[inline(always)]
    pub(super) fn dissolve_cohort(&mut self) {
        if !self.rates.cohort.is_empty() {
            self.dissolve_into_graph();
        }
    }

    fn dissolve_into_graph(&mut self) {
        let class = self.class_together();
        let Self { rates: Rates { cohort, graph, .. }, sending: Sending { messages, .. }, workload, scenario, .. } = self;
        let tokens = &mut workload.tokens;
        let rates_since = cohort.dissolve(self.routes.paths.all_remembered(), self.now, |member, others, begun| {
            let &Member { token, created, flow, destination, flits, head_latency, hops, .. } = member;
            let injection = scenario.network.injection_channel(TerminalId(flow)).0;
            graph.begin(flow, injection, others, destination, f64::from(flits), begun);
            let destination = TerminalId(destination);
            messages[flow as usize] = Message { created, begun, destination, flits, head_latency, hops, class, ..Message::NONE };
            tokens[flow as usize] = token;
        });
        if let Some(begun) = rates_since {
            self.rates.sharing.share(graph, begun);
        }
    }

    /// Makes ready for a flow to begin. Does it join those that begin together?
    #[inline(always)]
    pub(super) fn joins(&mut self) -> bool {
        let joins = self.rates.cohort.admits(self.sending.live);
        if !joins {
            self.dissolve_cohort();
        } else if self.rates.cohort.is_empty() {
            self.rates.graph.forget_ended();
        }
        joins
    }

    /// Moves the flows of the cohort, and the flits that they have put on channels, into the graph.
    pub(super) fn flush_cohort_counts(&mut self) {
        self.dissolve_cohort();
        let graph = &mut self.rates.graph;
        self.rates.cohort.take_carried(self.counts.statistics.counting.rates, |channel, flits| graph.add_carried(channel, flits));
    }
}
