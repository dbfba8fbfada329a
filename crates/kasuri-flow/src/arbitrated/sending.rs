//! What a terminal sends next, by which path, and how that is cut into parcels.

use super::Run;
use super::records::NONE;
use super::transit::{Hop, Load};
use crate::lone::Sizes;
use crate::paths::{Request, Walk};
use kasuri_model::engine::EngineError;
use kasuri_model::sources::SourceMessage;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::memory::GrowingColumn;
use kasuri_network::routing::VirtualChannels;
use kasuri_workload::workload::{self, Token};

/// A message under way, as far as senders and receivers are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) created: f64,
    /// The cycle that decides whether it is measured.
    pub(super) asked: u64,
    pub(super) begun: u64,
    pub(super) token: Token,
    pub(super) destination: TerminalId,
    pub(super) flits: u32,
    pub(super) class: u8,
    pub(super) is_reply: bool,
    pub(super) is_there: bool,
}

/// The messages under way, and room that others have left.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) messages: Vec<Message>,
    free: Vec<u32>,
    /// By number of channels: where paths can be written.
    free_paths: Vec<Vec<u32>>,
    /// How many are under way.
    pub(super) live: u64,
    /// Memory for searches.
    channels: Vec<u32>,
}

impl Messages {
    pub(super) fn on_their_way(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| message.is_there)
    }

    /// A message has arrived; its path is free, and its number [once it has left its source](Self::release).
    pub(super) fn end(&mut self, number: u32, load: &Load) {
        self.messages[number as usize].is_there = false;
        let length = usize::from(load.channels);
        if self.free_paths.len() <= length {
            self.free_paths.resize(length + 1, Vec::new());
        }
        self.free_paths[length].push(load.path);
        self.live -= 1;
    }

    /// Frees the number of a message that has left its source and has arrived. Either may come first: the last flit of a message may arrive
    /// while it still occupies the injection channel.
    pub(super) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Writes a path, and says where.
    fn keep_path(&mut self, hops: &mut GrowingColumn<Hop>, path: impl ExactSizeIterator<Item = Hop>) -> u32 {
        if let Some(place) = self.free_paths.get_mut(path.len()).and_then(Vec::pop) {
            hops.as_mut_slice()[place as usize..].iter_mut().zip(path).for_each(|(to, hop)| *to = hop);
            return place;
        }
        let place = hops.len() as u32;
        hops.extend(path);
        place
    }
}

impl Run<'_> {
    /// Begins the next message of an idle terminal, or puts it to sleep until there is one.
    pub(super) fn begin_next(&mut self, source: TerminalId) -> Result<(), EngineError> {
        if let Some((message, since)) = self.agenda.as_mut().and_then(|agenda| agenda.draw(source)) {
            let drawn = self.of_workload(&message, since);
            return self.send(source, &drawn, message.token);
        }
        if !self.sources_send() {
            return Ok(());
        }
        let now = self.transit.now();
        let Some(drawn) = self.sources.draw(self.scenario, source, now as f64) else {
            self.sleep(source);
            return Ok(());
        };
        if drawn.is_reply
            && self.sources.begin_answer(self.scenario, &drawn, source, now)
            && self.agenda.is_none()
            && let Some(to_come) = &mut self.ends.to_come
        {
            *to_come += 1;
        }
        self.send(source, &drawn, 0)
    }

    /// Is there anything but a workload?
    pub(super) fn sources_send(&self) -> bool {
        self.agenda.is_none() || self.classes > 0
    }

    /// A message of the closed workload that joined its queue at a time.
    fn of_workload(&self, message: &workload::Message, since: f64) -> SourceMessage {
        let several = self.scenario.workload.as_ref().filter(|_| self.parts.len() > 1);
        let class = self.classes + several.map_or(0, |closed| closed.part_of(message.token)) as u8;
        SourceMessage {
            created: since,
            asked: since as u64,
            destination: message.destination,
            flits: message.flits,
            class,
            is_reply: false,
        }
    }

    /// The virtual channels that a message may use.
    fn available(&self, drawn: &SourceMessage) -> VirtualChannels {
        let of_class = match &self.scenario.workload {
            Some(closed) if drawn.class >= self.classes => closed.parts[usize::from(drawn.class - self.classes)].virtual_channels,
            _ => {
                let class = &self.scenario.classes[usize::from(drawn.class)];
                class.reply.as_ref().filter(|_| drawn.is_reply).map_or(class.virtual_channels, |reply| reply.virtual_channels)
            }
        };
        self.scenario.router.entering(drawn.destination, of_class)
    }

    /// Flits of the packets into which a message is cut: open traffic creates packets.
    fn packet_of(&self, drawn: &SourceMessage) -> u32 {
        match &self.scenario.workload {
            Some(closed) if drawn.class >= self.classes => closed.parts[usize::from(drawn.class - self.classes)].packet_flits,
            _ => drawn.flits,
        }
    }

    /// Cycles to subtract when a parcel of packets of `packet` flits arrives, so that its last packet has the time of a lone one; or those
    /// of its head, if latencies do not count.
    fn added_cycles(&self, source: TerminalId, channels: &[u32], packet: u32) -> i32 {
        let (network, timing) = (&self.scenario.network, &self.transit.timing);
        let kind = |channel: u32| &timing.channels[network.link_number(ChannelId(channel))];
        let Some((&ejection, others)) = channels.split_last() else { return 0 };
        let of_head = |&channel: &u32| kind(channel).head + timing.waits(packet, kind(channel).period);
        let of_heads = others.iter().map(of_head).sum::<u32>() + kind(ejection).latency;
        if !self.with_latency {
            return of_heads as i32;
        }
        let of_flits = channels.iter().map(|&channel| timing.cycles(kind(channel), packet)).max().unwrap_or(0);
        let alone = self.paths.lone_latency(network, source, &channels[1..], Sizes { flits: packet, packet });
        (of_heads + of_flits) as i32 - alone as i32
    }

    /// An idle terminal begins a message.
    fn send(&mut self, source: TerminalId, drawn: &SourceMessage, token: Token) -> Result<(), EngineError> {
        let serial = self.sources.number(source);
        let available = self.available(drawn);
        let request = Request { source, destination: drawn.destination, serial, available };
        let mut walk = [Walk::new(request, std::mem::take(&mut self.messages.channels))];
        let outputs = &self.transit.channels.outputs;
        let occupied = |channel: u32| (outputs[channel].ready.len() + outputs[channel].waiting.len()) as u32;
        self.paths.find(self.scenario, &mut walk, &occupied)?;
        let [walk] = walk;
        let range = |place: usize| walk.ranges.get(place).copied().unwrap_or(available);
        let hop = |(place, &channel): (usize, &u32)| Hop { channel, first: range(place).begin as u8, last: (range(place).end - 1) as u8 };
        let path = self.messages.keep_path(&mut self.transit.hops, walk.channels.iter().enumerate().map(hop));
        self.note(source, drawn, token, (&walk.channels, path));
        self.messages.channels = walk.channels;
        Ok(())
    }

    /// Notes a message that begins, and lets its source send it.
    fn note(&mut self, source: TerminalId, drawn: &SourceMessage, token: Token, (channels, path): (&[u32], u32)) {
        // The queue goes on waiting if its next message is measured too.
        if let Some(until) = self.counts.statistics.counting.rates_until {
            self.outstanding += u64::from(!drawn.is_reply && self.sources.has_next_before(source, drawn.class, until));
        }
        let packet = self.packet_of(drawn).min(drawn.flits);
        let cut = packet.saturating_mul(self.transit.timing.grain).min(drawn.flits);
        self.transit.parcels.remember(self.transit.timing.places(cut).min(channels.len() + 1));
        let last_flits = drawn.flits - (drawn.flits - 1) / cut * cut;
        let load = Load {
            source: source.0,
            path,
            channels: channels.len() as u16,
            packet,
            cut,
            to_arrive: drawn.flits,
            added: self.added_cycles(source, channels, packet.min(last_flits)),
            arrival: 0,
        };
        let message = Message {
            created: drawn.created,
            asked: drawn.asked,
            begun: self.transit.now(),
            token,
            destination: drawn.destination,
            flits: drawn.flits,
            class: drawn.class,
            is_reply: drawn.is_reply,
            is_there: true,
        };
        let number = match self.messages.free.pop() {
            Some(number) => {
                (self.messages.messages[number as usize], self.transit.loads[number]) = (message, load);
                number
            }
            None => {
                self.messages.messages.push(message);
                self.transit.loads.push(load);
                self.transit.loads.len() as u32 - 1
            }
        };
        self.messages.live += 1;
        self.sending[source.0] = number;
        self.transit.send(number, drawn.flits);
    }

    /// Lets terminals begin that have something to send now.
    pub(super) fn wake_terminals(&mut self) -> Result<(), EngineError> {
        let now = self.transit.now() as f64;
        if self.wakes.least().is_none_or(|time| time > now) {
            return Ok(());
        }
        let mut waking = std::mem::take(&mut self.waking);
        self.wakes.pop_until(now, &mut waking);
        let begun = waking
            .drain(..)
            .try_for_each(|terminal| if self.sending[terminal] == NONE { self.begin_next(TerminalId(terminal)) } else { Ok(()) });
        self.waking = waking;
        begun
    }

    /// Lets a closed workload answer to what has happened.
    pub(super) fn proceed(&mut self) -> Result<(), EngineError> {
        let now = self.transit.now() as f64;
        let Some(agenda) = &mut self.agenda else { return Ok(()) };
        agenda.proceed(now);
        let ready = agenda.take_ready();
        for message in &ready {
            if self.sending[message.source.0] == NONE {
                let drawn = self.of_workload(message, now);
                self.send(message.source, &drawn, message.token)?;
            } else if let Some(agenda) = &mut self.agenda {
                agenda.queue(*message, now);
            }
        }
        if let Some(agenda) = &mut self.agenda {
            agenda.put_ready(ready);
        }
        Ok(())
    }

    /// An idle terminal wakes when its next message is created.
    pub(super) fn sleep(&mut self, terminal: TerminalId) {
        if self.sending[terminal.0] == NONE
            && let Some(next) = self.sources.next(terminal)
        {
            self.wakes.set(terminal.0, next.max(self.transit.now() as f64));
        }
    }
}
