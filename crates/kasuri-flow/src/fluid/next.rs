//! What a terminal sends next, and which path that takes.

use super::{Fluid, Message};
use crate::cohort::Member;
use crate::lone::Sizes;
use crate::path_prefetch::{self, Prepared};
use crate::paths::{Request, Walk};
use kasuri_model::engine::EngineError;
use kasuri_model::sources::SourceMessage;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::memory::fetch_ahead;
use kasuri_network::routing::VirtualChannels;
use kasuri_workload::workload;

impl Fluid<'_> {
    /// Begins the next message of an idle terminal, or puts it to sleep until there is one.
    pub(super) fn begin_next(&mut self, source: TerminalId) -> Result<(), EngineError> {
        if self.routes.prefetch.is_used {
            let Some(Prepared { drawn, channels }) = self.prepare(source)? else {
                self.sleep(source);
                return Ok(());
            };
            self.begin(source, &drawn, channels);
            return Ok(());
        }
        let Some(drawn) = self.draw(source) else {
            if self.sources_send() {
                self.sleep(source);
            }
            return Ok(());
        };
        self.send(source, &drawn)
    }

    /// Begins a message that has no path yet.
    pub(super) fn send(&mut self, source: TerminalId, drawn: &SourceMessage) -> Result<(), EngineError> {
        let joins = self.joins();
        if let Some((first, others)) = self.routes.paths.remembered(&self.scenario.network, source, drawn.destination) {
            let (hops, head_latency) = (others.len(), self.head_latency(source, others, drawn));
            if joins {
                let mut member = Member::new(source.0, self.workload.tokens[source.index()], drawn);
                member.head_latency = head_latency;
                self.rates.cohort.enter_remembered(&mut member, first, others);
                self.rates.cohort.begin(member);
            } else {
                let injection = self.scenario.network.injection_channel(source).0;
                self.rates.graph.begin(source.0, injection, others, drawn.destination.0, f64::from(drawn.flits), self.now);
            }
            self.open.sources.number(source);
            self.note(source, drawn, hops, head_latency);
            return Ok(());
        }
        let channels = self.find_path(source, drawn)?;
        self.begin(source, drawn, channels);
        Ok(())
    }

    /// The path of a message: injection, between routers, ejection.
    pub(super) fn find_path(&mut self, source: TerminalId, drawn: &SourceMessage) -> Result<Vec<u32>, EngineError> {
        let mut walk = self.walk(source, drawn);
        let (graph, together) = (&self.rates.graph, &self.rates.cohort);
        let occupancy = |channel| graph.occupancy(channel) + together.flows_on(channel);
        self.routes.paths.find(self.scenario, std::slice::from_mut(&mut walk), &occupancy)?;
        if let Some(territory) = &self.routes.territory {
            territory.claim(&walk.channels);
        }
        Ok(walk.channels)
    }

    /// Begins a message that has its path: injection, between routers, ejection.
    fn begin(&mut self, source: TerminalId, drawn: &SourceMessage, mut channels: Vec<u32>) {
        let head_latency = self.predicted_latency(source, &channels, drawn);
        let hops = channels.len() - 1;
        self.add_memories(source, drawn.destination, &mut channels);
        let (injection, others) = (channels[0], &channels[1..]);
        if self.joins() {
            let mut member = Member::new(source.0, self.workload.tokens[source.index()], drawn);
            member.head_latency = head_latency;
            self.rates.cohort.enter(&mut member, others);
            self.rates.cohort.begin(member);
        } else {
            self.rates.graph.begin(source.0, injection, others, drawn.destination.0, f64::from(drawn.flits), self.now);
        }
        self.note(source, drawn, hops, head_latency);
        self.routes.prefetch.give_back(channels);
    }

    /// Adds to the channels of a message the memories of the hosts at its ends, if hosts share memories.
    fn add_memories(&self, source: TerminalId, destination: TerminalId, channels: &mut Vec<u32>) {
        if let Some(hosts) = self.scenario.hosts {
            let first = self.scenario.network.channel_count();
            channels.extend([hosts.of(source), hosts.of(destination)].map(|host| first + host));
        }
    }

    /// Cycles from the end of a transfer to the arrival of the last flit; less than 0 if the last flit arrives while it still occupies the
    /// slowest channel.
    pub(super) fn head_latency(&self, source: TerminalId, others: &[u32], drawn: &SourceMessage) -> f32 {
        if !self.routes.with_latency {
            return 0.0;
        }
        let sizes = Sizes { flits: drawn.flits, packet: self.packet_of(drawn) };
        self.routes.paths.head_latency(&self.scenario.network, source, others, sizes) as f32
    }

    /// Flits of the packets of a message; open traffic sends packet by packet.
    #[inline(always)]
    fn packet_of(&self, drawn: &SourceMessage) -> u32 {
        match &self.scenario.workload {
            Some(closed) if drawn.class >= self.open.classes => closed.parts[usize::from(drawn.class - self.open.classes)].packet_flits,
            _ => drawn.flits,
        }
    }

    /// The same where routers may predict.
    pub(super) fn predicted_latency(&mut self, source: TerminalId, channels: &[u32], drawn: &SourceMessage) -> f32 {
        let alone = self.head_latency(source, &channels[1..], drawn);
        let is_measured = self.counts.statistics.counting.covers(drawn.asked);
        let Some(predictions) = &mut self.routes.predictions else { return alone };
        let saved = predictions.saved_cycles(&self.scenario.network, channels, is_measured);
        if self.routes.with_latency { alone - saved } else { 0.0 }
    }

    /// Notes a message that has begun.
    fn note(&mut self, source: TerminalId, drawn: &SourceMessage, hops: usize, head_latency: f32) {
        // The queue goes on waiting if its next message is measured too.
        if let Some(until) = self.counts.statistics.counting.rates_until {
            self.sending.outstanding += u64::from(!drawn.is_reply && self.open.sources.has_next_before(source, drawn.class, until));
        }
        if let Some(asked) = self.sending.asked.get_mut(source.index()) {
            *asked = drawn.asked;
        }
        self.sending.messages[source.index()] = Message {
            created: drawn.created,
            begun: self.now,
            counted: 0.0,
            destination: drawn.destination,
            flits: drawn.flits,
            head_latency,
            hops: hops as u16,
            class: drawn.class,
            is_reply: drawn.is_reply,
        };
        self.sending.live += 1;
    }

    /// The next message of a terminal and its path. Those of the terminals whose messages end next are found together with it.
    fn prepare(&mut self, source: TerminalId) -> Result<Option<Prepared>, EngineError> {
        if let Some(prepared) = self.routes.prefetch.take(source.0) {
            return Ok(Some(prepared));
        }
        let Some(drawn) = self.draw(source) else { return Ok(None) };
        let mut drawns = std::mem::take(&mut self.routes.prefetch.drawns);
        let mut walks = std::mem::take(&mut self.routes.prefetch.walks);
        walks.push(self.walk(source, &drawn));
        drawns.push(drawn);
        self.add_followers(source, &mut walks, &mut drawns);
        self.find_paths(&mut walks)?;
        self.fetch(&walks);
        for (walk, drawn) in walks.drain(..).zip(drawns.drain(..)) {
            self.routes.prefetch.put(walk.request.source.0, Prepared { drawn, channels: walk.channels });
        }
        (self.routes.prefetch.walks, self.routes.prefetch.drawns) = (walks, drawns);
        Ok(self.routes.prefetch.take(source.0))
    }

    /// The paths of messages that are prepared together.
    fn find_paths(&mut self, walks: &mut [Walk]) -> Result<(), EngineError> {
        if self.routes.scouted.as_mut().is_some_and(|scouted| scouted.give_paths(walks)) {
            return Ok(());
        }
        let graph = &self.rates.graph;
        self.routes.paths.find(self.scenario, walks, &|channel| graph.occupancy(channel))
    }

    fn draw(&mut self, source: TerminalId) -> Option<SourceMessage> {
        if let Some((message, since)) = self.workload.agenda.as_mut().and_then(|agenda| agenda.draw(source)) {
            return Some(self.take(&message, since));
        }
        if !self.sources_send() {
            return None;
        }
        let drawn = match &mut self.routes.scouted {
            Some(scouted) => scouted.draw(&mut self.open.sources, source, self.now)?,
            None => self.open.sources.draw(self.scenario, source, self.now)?,
        };
        if drawn.is_reply
            && self.open.sources.begin_answer(self.scenario, &drawn, source, self.now as u64)
            && self.workload.agenda.is_none()
            && let Some(to_come) = &mut self.ends.to_come
        {
            *to_come += 1;
        }
        Some(drawn)
    }

    /// Takes a message of a closed workload that joined its queue at a time.
    pub(super) fn take(&mut self, message: &workload::Message, since: f64) -> SourceMessage {
        self.workload.tokens[message.source.index()] = message.token;
        self.join(message, since)
    }

    #[inline(always)]
    pub(super) fn join(&self, message: &workload::Message, since: f64) -> SourceMessage {
        let several = self.scenario.workload.as_ref().filter(|_| self.workload.parts.len() > 1);
        let class = self.open.classes + several.map_or(0, |closed| closed.part_of(message.token)) as u8;
        let asked = since as u64;
        SourceMessage { created: since, asked, destination: message.destination, flits: message.flits, class, is_reply: false }
    }

    /// The beginning of the path of a terminal's next message.
    fn walk(&mut self, source: TerminalId, drawn: &SourceMessage) -> Walk {
        let serial = self.open.sources.number(source);
        let request = Request { source, destination: drawn.destination, serial, available: self.available(drawn) };
        Walk::new(request, self.routes.prefetch.memory())
    }

    /// Adds the next messages of the terminals whose present messages end next; in the beginning, of the terminals that follow.
    fn add_followers(&mut self, source: TerminalId, walks: &mut Vec<Walk>, drawns: &mut Vec<SourceMessage>) {
        let mut soon = std::mem::take(&mut self.routes.prefetch.soon);
        if self.rounds == 0 {
            soon.extend(source.0 + 1..(source.0 + path_prefetch::MOST as u32).min(self.sending.messages.len() as u32));
        } else {
            self.routes.prefetch.list_next(&self.rates.graph, self.now, source.0, &mut soon);
        }
        self.fetch_scouted(&soon);
        for &flow in &soon {
            self.open.sources.fetch(flow);
            self.rates.graph.fetch_flow(flow);
            self.scenario.network.fetch_input_port(ChannelId(flow));
            fetch_ahead(&self.sending.messages, flow as usize);
            fetch_ahead(&self.counts.statistics.injected, flow as usize);
        }
        for &flow in &soon {
            self.rates.graph.fetch_channels(flow);
            fetch_ahead(&self.ends.completion, self.sending.messages[flow as usize].destination.index());
            if let Some(drawn) = self.draw(TerminalId(flow)) {
                walks.push(self.walk(TerminalId(flow), &drawn));
                drawns.push(drawn);
            }
        }
        for &flow in &soon {
            self.rates.graph.fetch_neighbours(flow);
        }
        soon.clear();
        self.routes.prefetch.soon = soon;
    }

    /// Fetches what others have found of the next messages of these terminals.
    fn fetch_scouted(&self, soon: &[u32]) {
        if let Some(scouted) = &self.routes.scouted {
            soon.iter().for_each(|&flow| scouted.fetch(flow));
        }
    }

    /// Fetches what messages will touch when they begin.
    fn fetch(&self, walks: &[Walk]) {
        let channels = || walks.iter().flat_map(|walk| &walk.channels);
        channels().for_each(|&channel| self.rates.graph.fetch_channel(channel));
        channels().for_each(|&channel| self.rates.graph.fetch_first(channel));
    }

    /// The virtual channels that a message may use: some routings tell classes of them apart.
    fn available(&self, drawn: &SourceMessage) -> VirtualChannels {
        if let Some(closed) = &self.scenario.workload
            && drawn.class >= self.open.classes
        {
            return closed.parts[usize::from(drawn.class - self.open.classes)].virtual_channels;
        }
        let class = &self.scenario.classes[usize::from(drawn.class)];
        match &class.reply {
            Some(reply) if drawn.is_reply => reply.virtual_channels,
            _ => class.virtual_channels,
        }
    }

    /// An idle terminal wakes when its next message is created.
    pub(super) fn sleep(&mut self, terminal: TerminalId) {
        if !self.sending.messages[terminal.index()].is_there()
            && let Some(next) = self.open.sources.next(terminal)
        {
            self.open.wakes.set(terminal.0, next.max(self.now));
        }
    }
}
