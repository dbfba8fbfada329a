//! The model: parcels on their way through lanes.
//!
//! Each event touches one channel, who waits there, and one or two lanes, so it costs what it changes. Nothing is solved, and nothing
//! swept.

use super::records::{Channels, Entry, NONE, Parcel, Parcels, take_entry};
use super::rules::{AnyRules, PlainRules, Rules};
use super::timing::Timing;
use super::wheel::{Event, Kind, Wheel};
use kasuri_network::memory::{Column, GrowingColumn, fetch_ahead};
use kasuri_network::network::Network;

/// One channel of a path, and the virtual channels that may be taken there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub(super) channel: u32,
    pub(super) first: u8,
    pub(super) last: u8,
}

/// A message on its way, as far as its parcels are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) source: u32,
    /// Where its path begins among all hops, and how many channels that has.
    pub(super) path: u32,
    pub(super) channels: u16,
    /// Flits of its packets and of its parcels, but the last.
    pub(super) packet: u32,
    pub(super) cut: u32,
    /// Flits that have not begun to cross the last channel.
    pub(super) to_arrive: u32,
    /// Cycles by which parcels take longer to their destination than packets.
    pub(super) added: i32,
    /// When the last of those that have crossed has arrived, by the present origin of times; never before 0.
    pub(super) arrival: i64,
}

/// What senders and receivers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// The last tail of a terminal's message has left it.
    Sent { terminal: u32 },
    /// A message has arrived.
    Arrived { message: u32 },
}

/// Of a terminal: the message that it sends, and what has not been cut off.
#[derive(Clone, Copy, Debug)]
struct Cut {
    message: u32,
    left: u32,
}

/// What is counted for checks and intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) events: u64,
    /// Flits that have begun to leave their sources, and to come to their destinations.
    pub(super) flits_in: u64,
    pub(super) flits_out: u64,
    /// Parcels times channels.
    pub(super) crossings: u64,
}

/// The network with all parcels in it. Many fields, because the columns of a simulation stand side by side.
#[derive(Debug)]
pub(super) struct Transit {
    pub(super) timing: Timing,
    pub(super) channels: Channels,
    pub(super) parcels: Parcels,
    pub(super) hops: GrowingColumn<Hop>,
    pub(super) loads: GrowingColumn<Load>,
    cuts: Column<Cut>,
    wheel: Wheel,
    batch: Vec<Event>,
    /// The present cycle, counted from `origin`.
    now: u32,
    origin: u64,
    born: u32,
    /// Is the network too large for the caches near the processor?
    is_large: bool,
    /// Do [`PlainRules`] hold?
    is_plain: bool,
    /// Do flits count on channels?
    pub(super) counts_flits: bool,
    pub(super) counted: Counted,
    pub(super) happened: Vec<Happening>,
}

/// Terminals of a network whose memory is asked for ahead: in trees that costs a tenth of the time with 512, and saves a tenth with 1,000 and
/// a quarter with 4,096.
const LEAST_TERMINALS: u32 = 768;

/// Times go back to near 0 from here on.
const LATEST: u32 = 1 << 31;

impl Transit {
    pub(super) fn new(network: &Network, timing: Timing) -> Self {
        let terminals = network.terminal_count() as usize;
        Self {
            channels: Channels::new(network, &timing),
            parcels: Parcels::new(terminals),
            hops: Vec::new().into(),
            loads: Vec::new().into(),
            cuts: Column::filled(terminals, Cut { message: NONE, left: 0 }),
            wheel: Wheel::new(timing.horizon(timing.grain.saturating_mul(timing.packet))),
            batch: Vec::new(),
            is_plain: PlainRules::hold(&timing),
            timing,
            now: 0,
            origin: 0,
            born: 0,
            is_large: network.terminal_count() >= LEAST_TERMINALS,
            counts_flits: true,
            counted: Counted::default(),
            happened: Vec::new(),
        }
    }

    /// The present cycle.
    pub(super) fn now(&self) -> u64 {
        self.origin + u64::from(self.now)
    }

    /// The present cycle, as the columns count.
    pub(super) fn cycle(&self) -> u32 {
        self.now
    }

    /// When the last parcel of a message has arrived, cycles from the beginning.
    pub(super) fn arrival(&self, message: u32) -> u64 {
        self.origin.saturating_add_signed(self.loads[message].arrival)
    }

    /// Does something happen in the present cycle?
    pub(super) fn has_any_now(&self) -> bool {
        self.wheel.has_any_at(self.now)
    }

    /// The next cycle in which something happens; `None`: nothing ever will.
    pub(super) fn next(&self) -> Option<u64> {
        self.wheel.next(self.now).map(|time| self.origin + u64::from(time))
    }

    /// Lets time pass until `cycle`, before which nothing happens.
    pub(super) fn pass_to(&mut self, cycle: u64) {
        if cycle - self.origin >= u64::from(LATEST) {
            self.rebase();
        }
        if self.wheel.is_empty() && cycle - self.origin >= u64::from(LATEST) {
            // Over a time in which nothing is on its way, and after which all that was known of times is long over.
            self.channels.rebase(LATEST);
            self.origin += (cycle - self.now()) & !u64::from(self.wheel.size() - 1);
        }
        self.now = (cycle - self.origin) as u32;
        self.wheel.turn_to(self.now);
    }

    /// Counts times from near the present cycle.
    #[cold]
    fn rebase(&mut self) {
        let cycles = self.now & !(self.wheel.size() - 1);
        self.now -= cycles;
        self.origin += u64::from(cycles);
        self.wheel.rebase(cycles);
        self.channels.rebase(cycles);
        self.parcels.rebase(cycles);
        self.loads.iter_mut().for_each(|load| load.arrival -= i64::from(cycles));
    }

    /// Does everything that is due in this cycle.
    pub(super) fn happen(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        // Events of a cycle may bring about others of the same cycle.
        while self.wheel.has_any_at(self.now) {
            self.wheel.take(self.now, &mut batch);
            self.counted.events += batch.len() as u64;
            if self.is_plain {
                self.handle_all::<PlainRules>(&batch)
            } else {
                self.handle_all::<AnyRules>(&batch)
            }
            batch.clear();
        }
        self.batch = batch;
    }

    /// Handles events of a cycle. Where most of what they touch waits for memory, that is asked for some events ahead.
    fn handle_all<R: Rules>(&mut self, batch: &[Event]) {
        if !self.is_large {
            return batch.iter().for_each(|&event| self.handle::<R>(event));
        }
        for number in 0..batch.len() {
            if let Some(&later) = batch.get(number + 8) {
                self.fetch(later);
            }
            if let Some(&later) = batch.get(number + 4) {
                self.fetch_next(later);
            }
            self.handle::<R>(batch[number]);
        }
    }

    #[inline(always)]
    fn handle<R: Rules>(&mut self, event: Event) {
        let number = event.number();
        match event.kind() {
            Kind::Head => self.head::<R>(number),
            Kind::Ask => self.ask::<R>(number),
            Kind::Tail => self.tail::<R>(number, event.place()),
            Kind::Look => self.look_again::<R>(number),
            Kind::Arrived => self.happened.push(Happening::Arrived { message: number }),
        }
    }

    /// Asks memory for what a later event of this cycle touches first.
    #[inline(always)]
    fn fetch(&self, event: Event) {
        let number = event.number();
        match event.kind() {
            Kind::Head | Kind::Ask => fetch_ahead(&self.parcels.parcels, number as usize),
            Kind::Tail => {
                self.parcels.fetch_places(number, event.place());
                fetch_ahead(&self.parcels.parcels, number as usize);
            }
            Kind::Look => fetch_ahead(self.channels.outputs.as_slice(), number as usize),
            Kind::Arrived => {}
        }
    }

    /// The same for what it touches then.
    #[inline(always)]
    fn fetch_next(&self, event: Event) {
        let number = event.number();
        match event.kind() {
            Kind::Head | Kind::Ask => {
                let parcel = &self.parcels.parcels[number];
                let next = self.hops[parcel.path + u32::from(parcel.place) + 1].channel;
                fetch_ahead(self.channels.outputs.as_slice(), next as usize);
                fetch_ahead(self.channels.lanes.as_slice(), parcel.lane as usize);
                self.parcels.fetch_places(number, parcel.place);
            }
            Kind::Tail => {
                let lane = self.parcels.place(number, event.place()).lane;
                fetch_ahead(self.channels.lanes.as_slice(), lane as usize);
                fetch_ahead(self.channels.outputs.as_slice(), self.channels.channel_of(lane) as usize);
                if event.place() > 0 {
                    let before = self.parcels.place(number, event.place() - 1).lane;
                    fetch_ahead(self.channels.lanes.as_slice(), before as usize);
                }
            }
            Kind::Look => {
                if let Some(entry) = self.channels.outputs[number].ready.first() {
                    self.parcels.fetch_places(entry.parcel, 0);
                    fetch_ahead(&self.parcels.parcels, entry.parcel as usize);
                }
            }
            Kind::Arrived => {}
        }
    }

    #[inline(always)]
    fn post(&mut self, time: u32, kind: Kind, place: u16, number: u32) {
        self.wheel.post(self.now, time, Event::new(kind, place, number));
    }

    /// Looks at a channel again at this time, if not before.
    #[inline(always)]
    fn look(&mut self, channel: u32, time: u32) {
        let output = &mut self.channels.outputs[channel];
        if time < output.look {
            output.look = time;
            self.post(time, Kind::Look, 0, channel);
        }
    }

    fn look_again<R: Rules>(&mut self, channel: u32) {
        let output = &mut self.channels.outputs[channel];
        if output.look != self.now {
            return;
        }
        output.look = NONE;
        if R::cuts_through(&self.timing) { self.grant::<R>(channel) } else { self.start::<R>(channel) }
    }

    /// A terminal that sends nothing begins to send a message.
    pub(super) fn send(&mut self, message: u32, flits: u32) {
        let terminal = self.loads[message].source;
        self.cuts[terminal] = Cut { message, left: flits };
        if self.is_plain { self.send_next::<PlainRules>(terminal) } else { self.send_next::<AnyRules>(terminal) }
    }

    /// A terminal cuts off its next parcel, which asks for the injection channel.
    fn send_next<R: Rules>(&mut self, terminal: u32) {
        let Cut { message, left } = self.cuts[terminal];
        let load = self.loads[message];
        let flits = left.min(load.cut);
        self.cuts[terminal].left = left - flits;
        let parcel = self.parcels.begin(Parcel {
            message,
            path: load.path,
            flits,
            born: self.born,
            lane: NONE,
            place: 0,
            last: load.channels - 1,
            cycles: flits,
            is_behind: false,
            is_there: true,
            arrives: false,
            asks: true,
        });
        self.born = self.born.wrapping_add(1);
        self.wait::<R>(parcel, load.path, NONE);
    }

    /// A head has come to the end of the channel at its place.
    #[inline(always)]
    fn head<R: Rules>(&mut self, number: u32) {
        let parcel = &mut self.parcels.parcels[number];
        if self.channels.lanes[parcel.lane].front == number { self.ask::<R>(number) } else { parcel.is_behind = true }
    }

    /// The head at the front of a buffer asks for a lane of the next channel.
    #[inline(always)]
    fn ask<R: Rules>(&mut self, number: u32) {
        let parcel = &mut self.parcels.parcels[number];
        parcel.place += 1;
        parcel.asks = true;
        let (hop, from) = (parcel.path + u32::from(parcel.place), self.channels.channel_of(parcel.lane));
        self.wait::<R>(number, hop, from);
    }

    /// A parcel joins those that wait for the channel of a hop.
    #[inline(always)]
    fn wait<R: Rules>(&mut self, parcel: u32, hop: u32, from: u32) {
        let Hop { channel, first, last } = self.hops[hop];
        let input = if from == NONE { 0 } else { self.channels.inputs[from].number };
        let entry = Entry { parcel, from, input, first, last };
        let output = &mut self.channels.outputs[channel];
        if output.ejects {
            // A terminal takes all that comes, one parcel after the other.
            output.ready.push(entry);
            return self.start::<R>(channel);
        }
        // Most often nobody else waits, and a lane is free.
        if output.waiting.is_empty()
            && output.has_free_lane(self.channels.each)
            && let Ok(lane) = self.free_lane::<R>(channel, &entry)
        {
            self.give_lane(channel, entry, lane);
            return self.start::<R>(channel);
        }
        self.channels.outputs[channel].waiting.push(entry);
        self.grant::<R>(channel);
    }

    /// Who comes first in turn: by round robin among inputs, or the oldest.
    #[inline(always)]
    fn turn_of<R: Rules>(&self, entry: &Entry, pointer: u16) -> u32 {
        if R::oldest_first(&self.timing) { self.parcels.parcels[entry.parcel].born } else { u32::from(entry.input.wrapping_sub(pointer)) }
    }

    /// The free lane of a channel among some with the fewest parcels in its buffer, of several such lanes the first in turn. Where packets
    /// wait for room for all of them: the cycle in which there will be some, if no lane is free now, and it is known.
    fn free_lane<R: Rules>(&mut self, channel: u32, entry: &Entry) -> Result<u32, u32> {
        let (first, last) = (u32::from(entry.first), u32::from(entry.last));
        let begin = u32::from(self.channels.outputs[channel].next_lane);
        let begin = if (first..=last).contains(&begin) { begin } else { first };
        let (mut best, mut fewest, mut again) = (NONE, u16::MAX, NONE);
        let mut next = begin;
        for _ in first..=last {
            let lane = self.channels.lane(channel, next);
            next = if next == last { first } else { next + 1 };
            if self.channels.lanes[lane].is_taken {
                continue;
            }
            let room = if R::cuts_through(&self.timing) { self.channels.has_room_at::<R>(lane, self.now) } else { self.now };
            if room > self.now {
                again = again.min(room);
                continue;
            }
            let held = self.channels.held::<R>(lane, self.now);
            if held < fewest {
                (best, fewest) = (lane, held);
            }
            if held == 0 {
                break;
            }
        }
        if best == NONE { Err(again) } else { Ok(best) }
    }

    /// Gives free lanes of a channel to heads that wait for one.
    fn grant<R: Rules>(&mut self, channel: u32) {
        let mut again = NONE;
        while self.channels.outputs[channel].can_grant(self.channels.each) {
            let (mut best, mut least) = (None, u32::MAX);
            for position in 0..self.channels.outputs[channel].waiting.len() {
                let output = &self.channels.outputs[channel];
                let (entry, pointer) = (output.waiting[position], output.grant);
                let turn = self.turn_of::<R>(&entry, pointer);
                if turn < least {
                    match self.free_lane::<R>(channel, &entry) {
                        Ok(lane) => (best, least) = (Some((position, lane)), turn),
                        Err(time) => again = again.min(time),
                    }
                }
            }
            let Some((position, lane)) = best else { break };
            let entry = take_entry(&mut self.channels.outputs[channel].waiting, position);
            self.give_lane(channel, entry, lane);
        }
        if again != NONE && !self.channels.outputs[channel].waiting.is_empty() {
            self.look(channel, again);
        }
        self.start::<R>(channel);
    }

    /// A parcel that comes gets a free lane of a channel.
    #[inline(always)]
    fn give_lane(&mut self, channel: u32, mut entry: Entry, lane: u32) {
        let number = self.channels.number_of(lane) as u8;
        let output = &mut self.channels.outputs[channel];
        output.grant = entry.input + 1;
        output.next_lane = number.wrapping_add(1);
        (entry.first, entry.last) = (number, number);
        output.ready.push(entry);
        output.taken += 1;
        let record = &mut self.channels.lanes[lane];
        debug_assert!(!record.is_taken, "a lane has one owner");
        (record.is_taken, record.is_awaited) = (true, true);
    }

    /// Lets a parcel begin to cross an idle channel, if its input is idle too, and there is room for it.
    fn start<R: Rules>(&mut self, channel: u32) {
        let output = &self.channels.outputs[channel];
        let (ready, busy) = (output.ready.as_slice(), output.busy);
        let &[entry, ..] = ready else { return };
        if busy > self.now {
            return self.look(channel, busy);
        }
        if ready.len() > 1 {
            return self.start_in_turn::<R>(channel);
        }
        // The most frequent case by far.
        let from = self.crosses_from::<R>(channel, &entry);
        if from <= self.now {
            self.channels.outputs[channel].ready.clear();
            self.cross::<R>(channel, &entry, false);
        } else if from != NONE {
            self.look(channel, from);
        }
    }

    /// The same where several parcels have lanes of the channel: the first in turn of those that can cross it, if anybody can now; else it is
    /// looked at again in the cycle from which somebody can, as far as it is known.
    fn start_in_turn<R: Rules>(&mut self, channel: u32) {
        let output = &self.channels.outputs[channel];
        let (pointer, count) = (output.turn, output.ready.len());
        let (mut best, mut least, mut again) = (None, u32::MAX, NONE);
        for position in 0..count {
            let entry = self.channels.outputs[channel].ready[position];
            let turn = self.turn_of::<R>(&entry, pointer);
            if turn >= least {
                continue;
            }
            let from = self.crosses_from::<R>(channel, &entry);
            if from <= self.now {
                (best, least) = (Some(position), turn);
            } else {
                again = again.min(from);
            }
        }
        if let Some(position) = best {
            let entry = take_entry(&mut self.channels.outputs[channel].ready, position);
            self.cross::<R>(channel, &entry, true);
        } else if again != NONE {
            self.look(channel, again);
        }
    }

    /// From when on there is room for a parcel that has a lane of a channel, and its input is idle; [`NONE`] if that is not known.
    #[inline(always)]
    fn crosses_from<R: Rules>(&mut self, channel: u32, entry: &Entry) -> u32 {
        let lane = self.channels.lane(channel, entry.first.into());
        let room = if self.channels.outputs[channel].ejects { self.now } else { self.channels.has_room_at::<R>(lane, self.now) };
        let is_limited = R::has_input_ports(&self.timing) && entry.from != NONE;
        room.max(if is_limited { self.channels.inputs[entry.from].busy } else { 0 })
    }

    /// A parcel begins to cross a channel; do others wait for that as well?
    #[inline(always)]
    fn cross<R: Rules>(&mut self, channel: u32, entry: &Entry, is_awaited: bool) {
        let now = self.now;
        let output = &mut self.channels.outputs[channel];
        let &Entry { parcel: number, from, input, first, .. } = entry;
        let timing = self.timing.channels[output.link];
        let parcel = &mut self.parcels.parcels[number];
        let (place, flits, last) = (parcel.place, parcel.flits, parcel.last);
        parcel.cycles = parcel.cycles.max(self.timing.cycles(&timing, flits));
        output.turn = input + 1;
        output.busy = now + flits * timing.period;
        output.flits += u64::from(flits) * u64::from(self.counts_flits);
        let busy = output.busy;
        if from != NONE {
            debug_assert!(!R::has_input_ports(&self.timing) || self.channels.inputs[from].busy <= now, "an input sends one parcel");
            self.channels.inputs[from].busy = now + flits;
        }
        let lane = self.channels.lane(channel, first.into());
        parcel.lane = lane;
        parcel.asks = false;
        parcel.arrives = place == last;
        let parcel = *parcel;
        self.counted.crossings += 1;
        self.counted.flits_in += u64::from(flits) * u64::from(place == 0);
        let record = self.parcels.place_mut(number, place);
        (record.lane, record.start, record.next) = (lane, now, NONE);
        if place == last {
            self.arrive(&parcel);
        } else {
            self.enter::<R>(number, place, lane);
            let waits = if R::stores(&self.timing) { self.stored(&parcel, timing.period) } else { 0 };
            self.post(now + timing.head + waits, Kind::Head, 0, number);
        }
        self.follow::<R>(number, &parcel);
        if is_awaited {
            self.look(channel, busy);
        }
    }

    /// Cycles by which a parcel follows its head where routers wait for all of a packet.
    fn stored(&self, parcel: &Parcel, period: u32) -> u32 {
        let &Parcel { message, flits, .. } = parcel;
        self.timing.waits(self.loads[message].packet.min(flits), period)
    }

    /// A parcel begins to enter the buffer of a lane.
    #[inline(always)]
    fn enter<R: Rules>(&mut self, number: u32, place: u16, lane: u32) {
        self.channels.enter::<R>(lane);
        let record = &mut self.channels.lanes[lane];
        record.is_awaited = false;
        let (back, back_place) = (record.back, record.back_place);
        let is_first = record.front == NONE;
        (record.back, record.back_place) = (number, place);
        if is_first {
            record.front = number;
        } else {
            self.parcels.place_mut(back, back_place).next = number;
        }
    }

    /// Now that a head has begun to cross the channel at a place: when does the tail leave the channels behind it, and when does room come
    /// back in their buffers? The tail follows once the head is as many channels further as the parcel spans; at the end all of it does.
    #[inline(always)]
    fn follow<R: Rules>(&mut self, number: u32, parcel: &Parcel) {
        let &Parcel { flits, last, place, .. } = parcel;
        let span = self.timing.span(flits) as u32;
        let at = u32::from(place);
        if place == last {
            ((at + 1).saturating_sub(span)..at + 1).for_each(|behind| self.tail_leaves(number, parcel, behind));
            (at.saturating_sub(span)..at).for_each(|behind| self.free_room::<R>(number, parcel, behind as u16, span));
        } else if at + 1 >= span {
            self.tail_leaves(number, parcel, at + 1 - span);
            if at >= span {
                self.free_room::<R>(number, parcel, (at - span) as u16, span);
            }
        }
    }

    /// It is known when the tail of a parcel leaves the channel at a place behind its head.
    #[inline(always)]
    fn tail_leaves(&mut self, number: u32, parcel: &Parcel, behind: u32) {
        let &Parcel { flits, place, cycles, .. } = parcel;
        let begun = self.parcels.place(number, behind as u16).start;
        let stored = (u32::from(place) - behind).saturating_mul(self.timing.part).min(flits);
        let time = (begun + cycles).max(self.now + part_of(cycles, flits - stored, flits));
        self.post(time + if behind > 0 { self.timing.lane_gap } else { 0 }, Kind::Tail, behind as u16, number);
    }

    /// The buffer at a place of a parcel's path begins to empty for good.
    #[inline(always)]
    fn free_room<R: Rules>(&mut self, number: u32, parcel: &Parcel, place: u16, span: u32) {
        let &Parcel { flits, cycles, .. } = parcel;
        let (lane, left) = (self.parcels.place(number, place).lane, self.parcels.place(number, place + 1).start);
        let empties = if R::cuts_through(&self.timing) {
            left + cycles
        } else if span == 1 {
            left
        } else {
            (left + part_of(cycles, flits - self.timing.part.min(flits), flits)).max(self.now)
        };
        let channel = self.channels.channel_of(lane);
        let link = self.channels.outputs[channel].link;
        let time = empties + self.timing.channels[link].credit;
        let is_awaited = self.channels.leave::<R>(lane, time);
        if is_awaited || R::cuts_through(&self.timing) && !self.channels.outputs[channel].waiting.is_empty() {
            self.look(channel, time.max(self.now));
        }
    }

    /// The tail has crossed the channel at this place of the path.
    fn tail<R: Rules>(&mut self, number: u32, place: u16) {
        let lane = self.parcels.place(number, place).lane;
        let Parcel { message, last, .. } = self.parcels.parcels[number];
        let is_last = place == last;
        let channel = self.channels.channel_of(lane);
        if !is_last {
            self.channels.lanes[lane].is_taken = false;
            self.channels.outputs[channel].taken -= 1;
        }
        if place == 0 {
            let terminal = self.loads[message].source;
            return self.leave_source::<R>(terminal);
        }
        let before = self.parcels.place(number, place - 1);
        let behind = before.next;
        self.channels.lanes[before.lane].front = behind;
        if is_last {
            self.counted.flits_out += u64::from(self.parcels.parcels[number].flits);
            self.parcels.end(number);
        } else if !self.channels.outputs[channel].waiting.is_empty() {
            self.grant::<R>(channel);
        }
        if behind != NONE && std::mem::take(&mut self.parcels.parcels[behind].is_behind) {
            self.post(self.now + self.timing.buffer_gap, Kind::Ask, 0, behind);
        }
    }

    fn leave_source<R: Rules>(&mut self, terminal: u32) {
        if self.cuts[terminal].left > 0 {
            self.send_next::<R>(terminal);
        } else {
            self.happened.push(Happening::Sent { terminal });
        }
    }

    /// A parcel begins to cross its last channel. It has been made longer for the sake of queues; what that has added to the time of a lone
    /// one is taken off.
    fn arrive(&mut self, parcel: &Parcel) {
        let &Parcel { message, flits, lane, cycles, .. } = parcel;
        let link = self.channels.outputs[self.channels.channel_of(lane)].link;
        let latency = self.timing.channels[link].latency;
        let load = &mut self.loads[message];
        load.to_arrive -= flits;
        let time = i64::from(self.now) + i64::from(cycles) + i64::from(latency) - i64::from(load.added);
        load.arrival = load.arrival.max(time);
        if load.to_arrive == 0 {
            let time = load.arrival.max(i64::from(self.now)) as u32;
            self.post(time, Kind::Arrived, 0, message);
        }
    }
}

/// Cycles of some flits of a parcel.
#[inline(always)]
fn part_of(cycles: u32, some: u32, flits: u32) -> u32 {
    if cycles == flits { some } else { (u64::from(cycles) * u64::from(some) / u64::from(flits)) as u32 }
}
