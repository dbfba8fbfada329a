//! One cycle of the terminals: sinks take flits, sources take credits, create packets and send one flit each.

use crate::choice::{HashedChoice, NoView, packet_key};
use crate::lanes::Lanes;
use crate::source::{Drawn, NO_VC};
use crate::state::{NONE, Packet, Simulation};
use crate::vc_mask::VcMask;
use crate::wheel::Wheel;
use kasuri_model::id::TerminalId;
use kasuri_model::router::{Switching, VcRelease};
use kasuri_model::routing::VirtualChannels;

/// A gap of this or more cycles stands in `long_gaps`.
const LONG_GAP: u64 = 255;

impl<L: Lanes> Simulation<'_, L> {
    /// Advances all terminals through cycle `now`.
    #[inline(always)]
    pub(crate) fn terminal_cycle(&mut self, now: u64) {
        let mut events = std::mem::take(&mut self.events);
        for tile in self.parameters.router_tiles..self.parameters.tiles {
            self.arrivals.take(now, tile, &mut events);
        }
        self.statistics.interval.accepted_flits += events.len() as u64;
        self.flits_inside -= events.len() as u64;
        for position in 0..events.len() {
            self.prefetch_sink(&events, position);
            self.sink(events[position], now);
        }
        events.clear();
        for tile in self.parameters.router_tiles..self.parameters.tiles {
            self.credits.take(now, tile, &mut events);
        }
        for &slot in &events {
            self.credit_source(slot);
        }
        events.clear();
        self.events = events;
        if !self.sources.closed {
            self.sources.create(now);
        }
        self.send_from_sources(now);
    }

    /// A flit reaches its terminal. Sinks never block: its credit goes back in the same cycle.
    #[inline(always)]
    fn sink(&mut self, slot: u32, now: u64) {
        let port = slot >> L::Mask::SHIFT;
        let terminal = port - self.parameters.first_terminal_port;
        let links = self.links[port];
        let vc = slot & (L::Mask::BITS - 1);
        self.credits.post((now + u64::from(links.credit_delay)) as u32, links.credit_link + vc);
        self.statistics.accepted[terminal] += u64::from(self.statistics.counts_rates);
        let sink = slot - self.first_terminal_slot();
        if self.terminal[sink].left == 0 {
            self.begin_packet(slot);
        }
        let longest = self.longest_packet as usize;
        let sink = &mut self.terminal[sink];
        let index = sink.flits - sink.left;
        sink.left -= 1;
        let (packet, left) = (sink.packet, sink.left);
        if index > 0 {
            let gap = u64::from(self.gaps[packet as usize * longest + usize::from(index)]);
            sink.clock += if gap < LONG_GAP { gap + 1 } else { self.long_gaps[&(packet, index)] };
        }
        if sink.counted {
            let latency = now - sink.clock;
            self.statistics.flit_latency.record(latency);
        }
        if left == 0 {
            self.finish_packet(packet, TerminalId(terminal), now);
        }
    }

    /// A head has arrived: looks its packet up.
    fn begin_packet(&mut self, slot: u32) {
        let packet = self.front_packet(slot);
        self.ring_head[slot] = self.ring_head[slot].wrapping_add(1);
        let record = self.packets[packet as usize];
        let counted = self.statistics.counts_packet(record.created);
        let first_slot = self.first_terminal_slot();
        let sink = &mut self.terminal[slot - first_slot];
        (sink.packet, sink.flits, sink.left, sink.clock) = (packet, record.flits, record.flits, record.injected);
        sink.counted = counted;
    }

    /// Fetches what the sinks of the next events will look at: in large networks it is in no cache.
    #[inline(always)]
    fn prefetch_sink(&self, events: &[u32], position: usize) {
        if let Some(&slot) = events.get(position + 16) {
            prefetch(&self.terminal[slot - self.first_terminal_slot()]);
        }
        if let Some(&slot) = events.get(position + 8) {
            let sink = &self.terminal[slot - self.first_terminal_slot()];
            if sink.left > 0 {
                let place = sink.packet as usize * self.longest_packet as usize + usize::from(sink.flits - sink.left);
                prefetch(&self.gaps[place]);
            }
        }
    }

    /// The tail has arrived.
    fn finish_packet(&mut self, packet: u32, terminal: TerminalId, now: u64) {
        let record = self.packets[packet as usize];
        debug_assert_eq!(record.destination, terminal.0, "a packet arrives at its destination");
        self.statistics.count_packet(&record, now);
        if record.created < self.sources.drain_before && record.created >= self.statistics.measured_from {
            self.statistics.draining_live -= 1;
        }
        self.packets[packet as usize].alive = false;
        self.free_packets.push(packet);
        if record.has_long_gap {
            let own: Vec<_> = self.long_gaps.range((packet, 0)..=(packet, u16::MAX)).map(|(&key, _)| key).collect();
            for key in own {
                self.long_gaps.remove(&key);
            }
        }
        let class = &self.scenario.classes[usize::from(record.class)];
        if let (Some(reply), false) = (&class.reply, record.is_reply) {
            let flits = self.sources.reply_flits(terminal, record.class, &reply.sizes);
            let answer = Drawn { created: now, destination: TerminalId(record.source), flits, class: record.class, is_reply: true };
            self.sources.queue_reply(terminal, answer);
        }
    }

    /// A credit comes back to a source.
    #[inline(always)]
    fn credit_source(&mut self, slot: u32) {
        let (port, vc) = (slot >> L::Mask::SHIFT, slot & (L::Mask::BITS - 1));
        let terminal = port - self.parameters.first_terminal_port;
        let first_slot = self.first_terminal_slot();
        let account = &mut self.terminal[slot - first_slot];
        account.credits += 1;
        let source = self.sources.source[terminal as usize];
        if self.parameters.release == VcRelease::TailCredit && account.credits == self.parameters.buffer_flits && u32::from(source.vc) != vc
        {
            self.terminal_free[terminal] = self.terminal_free[terminal].or(L::Mask::bit(vc));
        }
        if source.packet != NONE && (u32::from(source.vc) == vc || source.vc == NO_VC) {
            self.sources.wake(terminal);
        }
    }

    #[inline(always)]
    fn send_from_sources(&mut self, now: u64) {
        let before = self.statistics.interval.injected_flits;
        let mut active = std::mem::take(&mut self.sources.active);
        let mut kept = 0;
        for position in 0..active.len() {
            let terminal = active[position];
            let stays = self.send_from_source(terminal, now);
            active[kept] = terminal;
            kept += usize::from(stays);
            self.sources.source[terminal as usize].listed = stays;
        }
        active.truncate(kept);
        self.sources.active = active;
        self.flits_inside += self.statistics.interval.injected_flits - before;
    }

    /// Sends the next flit of a terminal, if it has one and a credit. Does it stay active?
    #[inline(always)]
    fn send_from_source(&mut self, terminal: u32, now: u64) -> bool {
        if self.sources.source[terminal as usize].packet == NONE && !self.draw_packet(terminal, now) {
            return false;
        }
        if self.parameters.periodic && self.terminal_busy_until[terminal] > now {
            return true;
        }
        if self.sources.source[terminal as usize].vc == NO_VC && !self.choose_virtual_channel(terminal, now) {
            return false;
        }
        let source = &mut self.sources.source[terminal as usize];
        let vc = u32::from(source.vc);
        let account = &mut self.terminal[terminal << L::Mask::SHIFT | vc];
        if account.credits == 0 {
            return false;
        }
        account.credits -= 1;
        let credits = account.credits;
        let gap = now - source.last_injection;
        source.last_injection = now;
        source.left -= 1;
        let (packet, index, left) = (source.packet, source.flits - 1 - source.left, source.left);
        self.note_injection(packet, index, gap);
        let port = self.parameters.first_terminal_port + terminal;
        let links = &mut self.links[port];
        links.sent += 1;
        self.arrivals.post((now + u64::from(links.flit_delay)) as u32, links.flit_link + vc);
        self.statistics.interval.injected_flits += 1;
        if self.parameters.periodic {
            self.terminal_busy_until[terminal] = now + u64::from(self.period[port]);
        }
        if left == 0 {
            self.finish_injection(terminal);
            return true;
        }
        credits > 0
    }

    /// The tail has entered the network. The next packet may follow in the next cycle.
    fn finish_injection(&mut self, terminal: u32) {
        let source = &mut self.sources.source[terminal as usize];
        let vc = source.vc;
        source.packet = NONE;
        source.last_vc = vc;
        source.vc = NO_VC;
        if self.parameters.release == VcRelease::Tail {
            self.terminal_free[terminal] = self.terminal_free[terminal].or(L::Mask::bit(u32::from(vc)));
        }
    }

    /// Notes the gap between this flit and the one before it of the same packet.
    #[inline(always)]
    fn note_injection(&mut self, packet: u32, index: u16, gap: u64) {
        if index == 0 {
            return;
        }
        let place = packet as usize * self.longest_packet as usize + usize::from(index);
        if gap <= LONG_GAP {
            self.gaps[place] = (gap - 1) as u8;
        } else {
            self.gaps[place] = LONG_GAP as u8;
            self.long_gaps.insert((packet, index), gap);
            self.packets[packet as usize].has_long_gap = true;
        }
    }

    /// Draws the packet at the head of a queue.
    fn draw_packet(&mut self, terminal: u32, now: u64) -> bool {
        let Some(drawn) = self.sources.draw(self.scenario, terminal, now) else { return false };
        let source = &mut self.sources.source[terminal as usize];
        let serial = source.serial;
        source.serial += 1;
        let mut choice = HashedChoice { key: packet_key(self.routing_seed, terminal, serial), draws: 0, view: NoView };
        let route_state = self.scenario.routing.initial_state(TerminalId(terminal), drawn.destination, &mut choice);
        let record = Packet {
            created: drawn.created,
            injected: now,
            source: terminal,
            destination: drawn.destination.0,
            route_state,
            serial,
            flits: drawn.flits as u16,
            hops: 0,
            class: drawn.class,
            is_reply: drawn.is_reply,
            has_long_gap: false,
            alive: true,
        };
        if drawn.created < self.sources.drain_before && drawn.created >= self.statistics.measured_from {
            self.statistics.draining_live += 1;
        }
        let packet = self.store_packet(record);
        let source = &mut self.sources.source[terminal as usize];
        (source.packet, source.flits, source.left, source.vc) = (packet, drawn.flits as u16, drawn.flits as u16, NO_VC);
        true
    }

    fn store_packet(&mut self, record: Packet) -> u32 {
        if let Some(packet) = self.free_packets.pop() {
            self.packets[packet as usize] = record;
            return packet;
        }
        self.packets.push(record);
        let gaps = self.packets.len() * self.longest_packet as usize;
        self.gaps.resize(gaps, 0);
        self.packets.len() as u32 - 1
    }

    /// Chooses the virtual channel of a packet: the first one after that of the packet before which is free and not full.
    fn choose_virtual_channel(&mut self, terminal: u32, now: u64) -> bool {
        let source = self.sources.source[terminal as usize];
        let record = self.packets[source.packet as usize];
        let class = &self.scenario.classes[usize::from(record.class)];
        let VirtualChannels { begin, end } = match &class.reply {
            Some(reply) if record.is_reply => reply.virtual_channels,
            _ => class.virtual_channels,
        };
        let needed = if self.parameters.switching == Switching::Wormhole { 1 } else { record.flits };
        let after = if (begin..end).contains(&source.last_vc) { source.last_vc + 1 } else { begin };
        let free = self.terminal_free[terminal];
        let usable = |vc: &u16| {
            let is_free = !free.and(L::Mask::bit(u32::from(*vc))).is_empty();
            is_free && self.terminal[terminal << L::Mask::SHIFT | u32::from(*vc)].credits >= needed
        };
        let Some(vc) = (after..end).chain(begin..after).find(usable) else { return false };
        self.terminal_free[terminal] = free.without(L::Mask::bit(u32::from(vc)));
        self.sources.source[terminal as usize].vc = vc;
        self.sources.source[terminal as usize].last_injection = now;
        self.packets[source.packet as usize].injected = now;
        let port = self.parameters.first_terminal_port + terminal;
        self.announce_packet(port << L::Mask::SHIFT | u32::from(vc), source.packet);
        true
    }
}

/// Asks for a cache line ahead of its use.
#[inline(always)]
fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on the program's state.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
