//! The run: events in their order, intervals and phases.

use super::control::ControlEvent;
use super::packets::{NONE, Packet};
use super::ports::{End, Port};
use super::state::{Run, RunningWorkload};
use kasuri_model::engine::{Command, Controller, EngineError, Interval, Outcome, Phase, Status};
use kasuri_model::refusal::Refusal;
use kasuri_model::router::Queue;
use kasuri_network::id::{Port as PortNumber, RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::routing::{CongestionView, HashedChoice, Hop, VirtualChannels, packet_key};
use std::cmp::Reverse;

/// Events between two looks whether the controller wants the interval to end: milliseconds of work.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 14;

/// Events, for each channel, between two looks for channels that pause each other.
const EVENTS_BETWEEN_SEARCHES: u64 = 64;

/// Why the clock was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// The interval has ended, or what was waited for has come.
    AtEnd,
    /// Packets are inside and nothing will ever move them.
    Standstill,
}

/// What a routing sees of the outputs of a router.
#[derive(Clone, Copy)]
struct View<'r> {
    network: &'r Network,
    ports: &'r [Port],
    router: RouterId,
    now: u64,
}

impl CongestionView for View<'_> {
    fn occupied(&self, port: PortNumber, _virtual_channels: VirtualChannels) -> u32 {
        let channel = self.network.output_channel(self.router, port);
        channel.map_or(0, |channel| u32::try_from(self.ports[channel.index()].waiting(self.now)).unwrap_or(u32::MAX))
    }
}

impl Run<'_> {
    pub(super) fn run(mut self, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        (0..self.terminals.all.len() as u32).for_each(|terminal| self.await_next(terminal));
        self.note_failures();
        loop {
            let begin = self.calendar.now();
            let end = begin.saturating_add(controller.interval_cycles().max(1)).min(self.scenario.max_cycles.max(begin + 1));
            let halt = self.advance(end, controller)?;
            if self.scenario.paranoid {
                self.check_invariants()?;
            }
            let interval = self.close_interval(begin, controller.weighs_ages());
            if self.finds_deadlock(halt == Halt::Standstill) {
                return Ok(self.outcome(Status::Deadlock));
            }
            if halt == Halt::Standstill {
                return Err(self.standstill());
            }
            let now = self.calendar.now();
            match controller.interval_ended(&interval) {
                Command::Continue => {}
                Command::Clear => self.counts.clear(Phase::WarmUp, now),
                Command::Measure | Command::MeasureWaiting => self.clear(Phase::Measuring),
                Command::RedrawPhases => self.redraw_phases(),
                Command::Drain => self.drain(Phase::Draining),
                Command::Empty => {
                    self.drain(Phase::Emptying);
                    self.terminals.sources.closed = true;
                }
                Command::End(status) => return Ok(self.end(status)),
            }
            if now >= self.scenario.max_cycles {
                return Ok(self.end(Status::MaxCycles));
            }
        }
    }

    /// Goes from event to event until `end`, or until nothing is left to wait for.
    fn advance(&mut self, end: u64, controller: &dyn Controller) -> Result<Halt, EngineError> {
        loop {
            if self.is_over() {
                return Ok(Halt::AtEnd);
            }
            let limit = end.min(self.control.next()).min(self.due);
            if let Some(event) = self.calendar.next_before(limit) {
                self.handle(event)?;
                self.events += 1;
                if self.events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && controller.should_stop() {
                    return Ok(Halt::AtEnd);
                }
                continue;
            }
            let now = self.calendar.now();
            if now >= end {
                return self.check_not_stuck();
            }
            while let Some(event) = self.control.take(now) {
                self.handle_control(event);
            }
            if self.due <= now {
                self.proceed();
            }
        }
    }

    /// Is something planned, or is there nothing to wait for? Else packets stand still, or messages are never sent.
    fn check_not_stuck(&self) -> Result<Halt, EngineError> {
        let is_planned = self.calendar.has_events() || self.control.next() < u64::MAX || self.due < u64::MAX;
        if is_planned || !self.ends.is_closed && self.packets.count() == 0 {
            return Ok(Halt::AtEnd);
        }
        if self.packets.count() > 0 {
            return Ok(Halt::Standstill);
        }
        match &self.workload {
            Some(workload) if self.ends.to_come > 0 => Err(EngineError::never_sent(self.ends.to_come as u64, workload.agenda.standstill())),
            _ => Ok(Halt::AtEnd),
        }
    }

    fn standstill(&self) -> EngineError {
        let what = format!("{} packets wait for channels that are paused", self.packets.count());
        EngineError::Standstill { cycle: self.calendar.now(), what }
    }

    fn handle(&mut self, event: u32) -> Result<(), EngineError> {
        let ports = self.ports.len() as u32;
        if event < ports {
            self.port_has_sent(event)?;
        } else if event < 2 * ports {
            self.link_delivers(event - ports)?;
        } else {
            self.terminal_wakes(event - 2 * ports);
        }
        Ok(())
    }

    fn handle_control(&mut self, event: ControlEvent) {
        match event {
            ControlEvent::Pause(channel, pauses) => {
                self.ports[channel as usize].paused = pauses;
                if !pauses {
                    self.serve(channel);
                }
            }
            ControlEvent::Resend(packet) => {
                let source = self.packets.get(packet).source;
                self.terminals.all[source as usize].resend.push_back(packet);
                self.serve_terminal(source);
            }
            ControlEvent::MessageLeft(message) => self.message_left(message),
            ControlEvent::Look(terminal) => self.serve_terminal(terminal),
            ControlEvent::Changes(epoch) => self.change(epoch),
            ControlEvent::Known(epoch) => self.learn(epoch),
        }
    }

    /// A packet begins to leave by a channel that is free.
    pub(super) fn send(&mut self, channel: u32, place: u32) {
        let now = self.calendar.now();
        let port = &mut self.ports[channel as usize];
        let packet = self.packets.get_mut(place);
        let flits = u64::from(packet.flits);
        // The last flit cannot leave before it is there.
        let last = (now + (flits - 1) * port.period).max(packet.tail);
        (port.sends, port.sent_flits, port.sent_from) = (true, packet.flits, packet.came_by);
        port.free_at = last + port.period;
        port.flits += flits * u64::from(self.counts.counting.rates);
        let (head_seen, tail_seen) = (now + port.latency + 1, last + port.latency + 1);
        let due = match port.end {
            End::Terminal(_) => tail_seen,
            End::Router(..) if self.stores => tail_seen + self.router_cycles,
            End::Router(..) => head_seen + self.router_cycles,
        };
        packet.tail = tail_seen + self.router_cycles;
        let (message, number) = (packet.message, packet.number);
        port.link.push_back((due, place));
        let (is_first, free_at, is_injection) = (port.link.len() == 1, port.free_at, port.router == NONE);
        self.calendar.plan(channel, free_at);
        if is_first {
            self.calendar.plan(self.ports.len() as u32 + channel, due);
        }
        self.note_tail(channel, place, tail_seen);
        if is_injection && message != NONE {
            self.message_leaves(message, number, last);
        }
    }

    /// The packet that is sent has left.
    fn port_has_sent(&mut self, channel: u32) -> Result<(), EngineError> {
        let now = self.calendar.now();
        let port = &mut self.ports[channel as usize];
        if !port.sends || port.free_at != now {
            return Err(self.unbalanced(format!("channel {channel} ends a packet at the wrong time")));
        }
        port.sends = false;
        let (from, flits) = (port.sent_from, port.sent_flits);
        if from != NONE && self.bounds_inputs() {
            self.give_room(from, flits);
        }
        self.serve(channel);
        Ok(())
    }

    /// The next packet leaves, if one waits and may.
    fn serve(&mut self, channel: u32) {
        let port = &mut self.ports[channel as usize];
        if port.router == NONE {
            return self.serve_terminal(channel);
        }
        if !port.is_ready() {
            return;
        }
        let Some(packet) = port.queue.pop_front() else { return };
        let (router, flits) = (port.router, self.packets.get(packet).flits);
        port.queued -= u64::from(flits);
        self.counts.queue_changed(router, flits, false, self.calendar.now());
        self.send(channel, packet);
    }

    fn link_delivers(&mut self, channel: u32) -> Result<(), EngineError> {
        let now = self.calendar.now();
        let port = &mut self.ports[channel as usize];
        let end = port.end;
        let Some((_, packet)) = port.link.pop_front().filter(|&(due, _)| due == now) else {
            return Err(self.unbalanced(format!("channel {channel} delivers a packet at the wrong time")));
        };
        match end {
            End::Terminal(_) => self.arrive(packet),
            End::Router(router, input) => self.join(channel, router, input, packet)?,
        }
        if let Some(&(due, _)) = self.ports[channel as usize].link.front() {
            self.calendar.plan(self.ports.len() as u32 + channel, due);
        }
        Ok(())
    }

    /// A packet joins the queue of the output that its routing chooses.
    fn join(&mut self, from: u32, router: RouterId, input: PortNumber, place: u32) -> Result<(), EngineError> {
        let port = self.route(router, input, place)?;
        let Some(channel) = self.scenario.network.output_channel(router, port).map(|channel| channel.0) else {
            return Err(self.no_path(place, &format!("router {} has no channel at port {port}", router.0)));
        };
        let packet = self.packets.get_mut(place);
        packet.came_by = from;
        let flits = packet.flits;
        let most = self.most_queued();
        if self.ports[channel as usize].is_dead {
            self.lose(place);
            return Ok(());
        }
        let output = &mut self.ports[channel as usize];
        let leaves_at_once = output.is_ready() && output.queue.is_empty();
        if !leaves_at_once {
            let queued = output.queued + u64::from(flits);
            if self.scenario.router.queue == Queue::Drop && queued > most {
                self.drop_packet(place);
                return Ok(());
            }
            output.queue.push_back(place);
            output.queued = queued;
            self.counts.queues.most_flits = self.counts.queues.most_flits.max(queued);
            self.counts.queue_changed(router.0, flits, true, self.calendar.now());
        }
        if self.bounds_inputs() {
            self.take_room(from, flits);
        }
        if leaves_at_once {
            self.send(channel, place);
        }
        Ok(())
    }

    /// Do routers count what each input port has in them?
    pub(super) fn bounds_inputs(&self) -> bool {
        self.scenario.router.queue == Queue::Pause
    }

    fn most_queued(&self) -> u64 {
        self.scenario.router.queue_flits.map_or(u64::MAX, u64::from)
    }

    /// A router holds a packet that has come by a channel, and pauses it if that is too much.
    fn take_room(&mut self, channel: u32, flits: u32) {
        let most = self.most_queued();
        let port = &mut self.ports[channel as usize];
        port.held += u64::from(flits);
        if port.held > most && !port.pause_asked {
            port.pause_asked = true;
            self.counts.queues.pauses += 1;
            self.control.note(self.calendar.now() + port.latency + 1, ControlEvent::Pause(channel, true));
        }
    }

    /// A packet has left a router.
    pub(super) fn give_room(&mut self, channel: u32, flits: u32) {
        let most = self.most_queued();
        let port = &mut self.ports[channel as usize];
        port.held -= u64::from(flits);
        if port.held <= most && port.pause_asked {
            port.pause_asked = false;
            self.control.note(self.calendar.now() + port.latency + 1, ControlEvent::Pause(channel, false));
        }
    }

    /// A packet is lost.
    fn drop_packet(&mut self, place: u32) {
        self.counts.queues.dropped += 1;
        self.end_or_resend(place, self.scenario.resend_after);
    }

    /// A packet is not delivered: it is over, or its source sends it again.
    pub(super) fn end_or_resend(&mut self, place: u32, resend_after: Option<u32>) {
        if let Some(cycles) = resend_after {
            self.control.note(self.calendar.now() + u64::from(cycles), ControlEvent::Resend(place));
            return;
        }
        let packet = self.packets.remove(place);
        self.terminals.all[packet.source as usize].under_way -= 1;
        self.waits_no_more(&packet);
    }

    /// The output port that the routing chooses; of several the one that has least to send.
    fn route(&mut self, router: RouterId, input: PortNumber, place: u32) -> Result<PortNumber, EngineError> {
        let packet = self.packets.get_mut(place);
        packet.hops = packet.hops.saturating_add(1);
        if packet.routed_in != self.failures.known {
            self.decide_at_source(place);
        }
        let packet = *self.packets.get(place);
        let mut state = packet.route_state;
        if packet.hops == u16::MAX {
            return Err(self.no_path(place, "its path has more than 65534 routers"));
        }
        let available = self.channels_of_classes[usize::from(packet.class)][usize::from(packet.is_reply)];
        let (source, destination) = (TerminalId(packet.source), TerminalId(packet.destination));
        let hop = Hop { router, input, virtual_channel: available.begin, source, destination, available };
        let key = packet_key(self.routing_seed, packet.source, packet.serial);
        let view = View { network: &self.scenario.network, ports: &self.ports, router, now: self.calendar.now() };
        self.candidates.clear();
        let mut choice = HashedChoice::at_hop(key, u32::from(packet.hops), view);
        self.routing.route(&hop, &mut state, &mut choice, &mut self.candidates);
        let least = self.candidates.iter().min_by_key(|candidate| (view.occupied(candidate.port, available), Reverse(candidate.priority)));
        let port = least.map(|candidate| candidate.port);
        self.packets.get_mut(place).route_state = state;
        port.ok_or_else(|| self.no_path(place, &format!("router {} knows no output port", router.0)))
    }

    fn no_path(&self, place: u32, problem: &str) -> EngineError {
        let packet = self.packets.get(place);
        let reason = format!("a packet from terminal {} to terminal {} does not arrive: {problem}", packet.source, packet.destination);
        Refusal::new("routing.algorithm", reason).into()
    }

    /// The tail of a packet is at its terminal.
    fn arrive(&mut self, place: u32) {
        let now = self.calendar.now();
        if self.packets.get(place).is_cut {
            return self.lose(place);
        }
        let packet = self.packets.remove(place);
        debug_assert!(packet.tail >= now);
        self.terminals.all[packet.source as usize].under_way -= 1;
        self.counts.arrived(&packet, now);
        let is_of_message = packet.message != NONE;
        let counts = if is_of_message { self.message_arrived(&packet) } else { self.ends.counts_open };
        self.ends.to_come -= i64::from(counts);
        if self.ends.is_closed && (is_of_message || self.ends.counts_open) {
            self.ends.completion[packet.destination as usize] = now + 1;
        }
        if !is_of_message {
            self.open_arrived(&packet, now);
        }
    }

    /// A packet of open traffic has arrived: it is answered, or has its place in the window back.
    fn open_arrived(&mut self, packet: &Packet, now: u64) {
        let class = &self.scenario.classes[usize::from(packet.class)];
        let is_answered = !packet.is_reply && class.reply.is_some();
        let (source, destination) = (TerminalId(packet.source), TerminalId(packet.destination));
        if is_answered {
            self.terminals.sources.reply(self.scenario, destination, source, packet.class, now, packet.asked);
            self.await_answer(destination.0, now + u64::from(class.reply.as_ref().map_or(0, |reply| reply.delay)));
        } else {
            self.waits_no_more(packet);
            if self.terminals.sources.has_windows() {
                let waiting = if packet.is_reply { destination } else { source };
                self.terminals.sources.release_slot(packet.class, waiting, now + 1);
                self.await_next(waiting.0);
            }
        }
        if self.ends.counts_open && !self.ends.first_finished && (!packet.is_reply || self.scenario.counts_answers()) {
            let is_done = self.terminals.all[packet.source as usize].under_way == 0;
            self.ends.first_finished = is_done && self.terminals.sources.is_exhausted(source);
        }
    }

    /// An answer joins the queue of its terminal in the cycle after the arrival of what it answers.
    fn await_answer(&mut self, terminal: u32, from: u64) {
        self.control.note(from.max(self.calendar.now() + 1), ControlEvent::Look(terminal));
    }

    /// A packet that draining may have waited for is over.
    fn waits_no_more(&mut self, packet: &Packet) {
        let is_waited_for =
            self.counts.counting.rates_until.is_some() && packet.message == NONE && self.counts.counting.covers(packet.asked);
        self.counts.outstanding = self.counts.outstanding.saturating_sub(u64::from(is_waited_for));
    }

    /// Has a closed workload been done?
    pub(super) fn is_complete(&self) -> bool {
        self.ends.is_closed && self.ends.to_come == 0 && self.workload.as_ref().is_none_or(RunningWorkload::is_idle)
    }

    fn is_over(&self) -> bool {
        match self.counts.counting.phase {
            Phase::WarmUp | Phase::Measuring => self.is_complete() || self.ends.first_finished && !self.ends.first_told,
            Phase::Draining => self.counts.outstanding == 0,
            Phase::Emptying => self.packets.count() == 0 && !self.terminals.sources.has_replies(),
        }
    }

    fn clear(&mut self, phase: Phase) {
        let now = self.calendar.now();
        self.counts.clear(phase, now);
        self.ports.iter_mut().for_each(|port| port.flits = 0);
    }

    fn drain(&mut self, phase: Phase) {
        let now = self.calendar.now();
        self.counts.settle(now);
        self.counts.counting.drain(phase, now);
        let counting = self.counts.counting;
        let until = counting.rates_until.unwrap_or(now);
        let live = self.packets.live().filter(|packet| packet.message == NONE && counting.covers(packet.asked)).count() as u64;
        self.counts.outstanding = live + self.terminals.sources.waiting(counting.measured_from, until);
    }

    fn redraw_phases(&mut self) {
        self.terminals.sources.redraw_phases(self.scenario, self.calendar.now());
        (0..self.terminals.all.len() as u32).for_each(|terminal| self.await_next(terminal));
    }

    fn close_interval(&mut self, begin: u64, ages: bool) -> Interval {
        let now = self.calendar.now();
        self.ends.first_told = self.ends.first_finished;
        Interval {
            end_cycle: now,
            cycles: now - begin,
            in_flight_flits: self.packets.flits,
            in_flight_age: if ages { self.packets.age(now) } else { 0 },
            backlog_cycles: self.terminals.sources.backlog_cycles(now),
            completed: self.is_complete(),
            first_finished: self.ends.first_finished,
            outstanding_packets: match self.counts.counting.phase {
                Phase::Draining => self.counts.outstanding,
                Phase::Emptying => self.packets.count(),
                Phase::WarmUp | Phase::Measuring => 0,
            },
            ..self.counts.take_interval(now)
        }
    }

    /// Looks for channels that pause each other: at a standstill, and every so many events.
    fn finds_deadlock(&mut self, stands_still: bool) -> bool {
        if !self.bounds_inputs() {
            return false;
        }
        let is_due = self.events - self.searched_at > EVENTS_BETWEEN_SEARCHES * self.ports.len() as u64;
        if !is_due && !stands_still {
            return false;
        }
        self.searched_at = self.events;
        !self.paused_cycle().is_empty()
    }

    /// Looks once more for a deadlock before a status that it would explain.
    fn end(self, status: Status) -> Outcome {
        let may_hide = status != Status::Completed && self.packets.count() > 0 && self.bounds_inputs();
        let status = if may_hide && !self.paused_cycle().is_empty() { Status::Deadlock } else { status };
        self.outcome(status)
    }

    /// Packets are conserved, and queues hold what they count.
    fn check_invariants(&self) -> Result<(), EngineError> {
        let unbalanced = |what: String| Err(self.unbalanced(what));
        let queues = &self.counts.queues;
        let inside = |port: &Port| port.queue.len() + port.link.len();
        let inside = self.ports.iter().map(inside).sum::<usize>() as u64;
        let lost = queues.lost.unwrap_or(0);
        if queues.sent != queues.arrived + queues.dropped + lost + inside {
            return unbalanced(format!(
                "{} packets were sent, {} have arrived, {} were dropped, {lost} were lost, {inside} are under way",
                queues.sent, queues.arrived, queues.dropped
            ));
        }
        let flits = |places: &mut dyn Iterator<Item = u32>| places.map(|place| u64::from(self.packets.get(place).flits)).sum::<u64>();
        match self.ports.iter().position(|port| flits(&mut port.queue.iter().copied()) != port.queued) {
            Some(channel) => unbalanced(format!("the queue of channel {channel} has other flits than it counts")),
            None => self.check_events(),
        }
    }

    /// Each channel that sends, each with packets on it and each terminal that is to wake has exactly one event, at its time, and there are
    /// no others.
    fn check_events(&self) -> Result<(), EngineError> {
        let ports = self.ports.len() as u32;
        let expected = |(channel, port): (u32, &Port)| {
            let sent = port.sends.then_some((channel, port.free_at));
            let delivered = port.link.front().map(|&(due, _)| (ports + channel, due));
            [sent, delivered].into_iter().flatten()
        };
        let mut expected: Vec<(u32, u64)> = (0..).zip(&self.ports).flat_map(expected).collect();
        expected.extend(self.terminals.wake_times().map(|(terminal, time)| (2 * ports + terminal, time)));
        let mut planned = self.calendar.planned();
        expected.sort_unstable();
        planned.sort_unstable();
        if planned == expected {
            return Ok(());
        }
        let wrong =
            planned.iter().zip(&expected).position(|(planned, expected)| planned != expected).unwrap_or(planned.len().min(expected.len()));
        let (planned, expected) = (planned.get(wrong), expected.get(wrong));
        Err(self.unbalanced(format!("event {planned:?} is planned instead of {expected:?} (number, cycle)")))
    }

    fn unbalanced(&self, what: String) -> EngineError {
        EngineError::Unbalanced { cycle: self.calendar.now(), what }
    }
}
