//! Injection: how the packet at the head of a terminal's queue gets a virtual channel, and its flits enter the network.

use crate::edge::terminals::PREFETCH_DISTANCE;
use crate::record::drawn::{Attempt, Drawn};
use crate::record::marks::{NO_VC, NONE};
use crate::record::packet::Packet;
use crate::record::prefetch::prefetch;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::class_queues::ClassQueues;
use crate::state::feed::Next;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_model::router::{Switching, VcRelease};
use kasuri_network::id::TerminalId;
use kasuri_network::routing::{CongestionView, HashedChoice, Hop, NoView, SourceChoice, VirtualChannels, packet_key};

/// What a source knows of the queues of its first router: flits whose credits are not back.
struct SourceView<'s, 'a, L: RouterState> {
    tile: &'s Tile<'a, L>,
    terminal: u32,
}

impl<L: RouterState> CongestionView for SourceView<'_, '_, L> {
    fn occupied(&self, _port: u16, virtual_channels: VirtualChannels) -> u32 {
        let Tile { terminals, parameters, .. } = self.tile;
        let slots = (virtual_channels.begin..virtual_channels.end).map(|vc| self.terminal << L::Mask::SHIFT | u32::from(vc));
        slots.map(|slot| u32::from(parameters.buffer_flits - terminals.injection[slot].credits)).sum()
    }
}

impl<L: RouterState> Tile<'_, L> {
    /// A credit comes back to a source.
    #[inline(always)]
    pub(crate) fn credit_source(&mut self, slot: u32) {
        let (terminal, vc) = (slot >> L::Mask::SHIFT, slot & (L::Mask::BITS - 1));
        self.terminals.creditable[slot >> 6] |= 1 << (slot & 63);
        let account = &mut self.terminals.injection[slot];
        account.credits += 1;
        if self.parameters.release == VcRelease::TailCredit
            && account.credits == self.parameters.buffer_flits
            && self.terminals.sending[slot >> 6] & 1 << (slot & 63) == 0
        {
            self.terminals.free[terminal] = self.terminals.free[terminal].or(L::Mask::bit(vc));
        }
        if self.buffers.shared.is_some() {
            self.free_shared(slot);
        }
        if self.terminals.blocked[terminal] {
            self.edge.queues.wake_own(terminal);
        }
    }

    /// A flit goes into a buffer that its virtual channel shares: is there room for another?
    #[cold]
    pub(crate) fn send_into_shared(&mut self, slot: u32, is_tail: bool) {
        let address = self.first_terminal_slot() + slot;
        if let Some(buffers) = &mut self.buffers.shared {
            buffers.send(address, is_tail);
        }
        self.note_room(slot);
    }

    /// A place of a shared buffer is free again, which may help the packet that is being sent by another virtual channel.
    #[cold]
    pub(crate) fn free_shared(&mut self, slot: u32) {
        let (terminal, vc) = (slot >> L::Mask::SHIFT, slot & (L::Mask::BITS - 1));
        let is_free = !self.terminals.free[terminal].and(L::Mask::bit(vc)).is_empty();
        let address = self.first_terminal_slot() + slot;
        if let Some(buffers) = &mut self.buffers.shared {
            buffers.free(address, !is_free);
        }
        for queue in 0..self.edge.queues.by_class.as_ref().map_or(0, ClassQueues::queues) {
            let sending = self.edge.queues.by_class.as_ref().and_then(|queues| queues.channel(terminal, queue));
            if let Some(vc) = sending {
                self.note_room(terminal << L::Mask::SHIFT | u32::from(vc));
            }
        }
        let sending = self.edge.queues.heads[terminal].vc;
        if sending != NO_VC {
            self.note_room(terminal << L::Mask::SHIFT | u32::from(sending));
        }
    }

    /// Notes whether a virtual channel of a shared buffer may send.
    pub(crate) fn note_room(&mut self, slot: u32) {
        let address = self.first_terminal_slot() + slot;
        let Some(buffers) = &self.buffers.shared else { return };
        let bit = 1 << (slot & 63);
        if buffers.room(address) > 0 {
            self.terminals.creditable[slot >> 6] |= bit;
        } else {
            self.terminals.creditable[slot >> 6] &= !bit;
        }
    }

    /// Draws packets where a queue's head has been sent, and finds virtual channels for the heads.
    #[inline(always)]
    pub(crate) fn serve_queues(&mut self, block: u32, now: u64) {
        if !self.edge.queues.has_active(block) {
            return;
        }
        let mut active = self.edge.queues.take_active(block);
        let mut kept = 0;
        for position in 0..active.len() {
            self.prefetch_source(&active, position);
            let terminal = active[position];
            let stays = self.serve_queue(terminal, now);
            active[kept] = terminal;
            kept += usize::from(stays);
            self.edge.queues.heads[terminal].listed = stays;
        }
        active.truncate(kept);
        self.edge.queues.put_active(block, active);
    }

    /// Fetches what bringing later heads to their virtual channels will look at: first the source, then the buffer behind its channel.
    #[inline(always)]
    fn prefetch_source(&self, active: &[u32], position: usize) {
        if !self.parameters.fetches {
            return;
        }
        if let Some(&terminal) = active.get(position + 2 * PREFETCH_DISTANCE) {
            prefetch(&self.edge.queues.heads[terminal]);
            prefetch(&self.terminals.injection[terminal << L::Mask::SHIFT]);
            self.wiring.links[self.parameters.first_terminal_port + terminal].prefetch();
        }
        if let Some(&terminal) = active.get(position + PREFETCH_DISTANCE) {
            self.prefetch_buffers(self.terminals.injection[terminal << L::Mask::SHIFT].to);
            prefetch(&self.terminals.free[terminal]);
        }
    }

    /// Brings the head of a queue to its virtual channel. Must the terminal be looked at in the next cycle?
    #[inline(always)]
    pub(crate) fn serve_queue(&mut self, terminal: u32, now: u64) -> bool {
        if self.edge.queues.heads[terminal].packet == NONE {
            match &self.edge.next_packet(terminal, now) {
                Next::Packet(drawn) => self.enter_packet(drawn, terminal, now),
                Next::Later => return true,
                Next::Nothing => return false,
            }
        }
        if self.edge.queues.heads[terminal].vc != NO_VC {
            return false;
        }
        if self.parameters.periodic && self.terminals.busy_until[terminal] > now {
            return true;
        }
        if self.parameters.enters_at_once {
            return self.enter_at_once(terminal, now);
        }
        let found = self.choose_virtual_channel(terminal, now);
        self.terminals.blocked[terminal] = !found;
        !found && self.parameters.redraws_entry
    }

    /// Sends a flit from every slot of a block that has one and a credit.
    #[inline(always)]
    pub(crate) fn send_flits(&mut self, block: u32, now: u64, ready: &mut Vec<u32>) {
        if self.terminals.senders[block as usize] == 0 {
            self.terminals.ready[block as usize] = false;
            return;
        }
        self.terminals.list_ready(block, ready);
        let before = self.statistics.interval.injected_flits;
        self.statistics.interval.injected_flits += ready.len() as u64;
        for position in 0..ready.len() {
            self.prefetch_sending(ready, position);
            self.send_flit(ready[position], now);
        }
        ready.clear();
        self.statistics.balance.flits_inside += (self.statistics.interval.injected_flits - before) as i64;
        self.terminals.note_ready(block);
    }

    /// Fetches what sending later flits of a list will look at: first their slots, then what ends with a packet.
    #[inline(always)]
    fn prefetch_sending(&self, ready: &[u32], position: usize) {
        if !self.parameters.fetches {
            return;
        }
        if let Some(&slot) = ready.get(position + 3 * PREFETCH_DISTANCE) {
            prefetch(&self.terminals.injection[slot]);
        }
        if let Some(&slot) = ready.get(position + PREFETCH_DISTANCE) {
            let source = &self.terminals.injection[slot];
            // A source reads nothing.
            if !source.gaps.are_usual() {
                self.packets.prefetch_gap(source.gaps, source.packet, source.index);
            }
            if source.left == 1 {
                let terminal = slot >> L::Mask::SHIFT;
                self.wiring.links[self.parameters.first_terminal_port + terminal].prefetch();
                prefetch(&self.edge.queues.heads[terminal]);
                self.packets.prefetch(source.packet);
                self.edge.feed().prefetch_tail_left(self.parameters.share.terminals.start + terminal);
            }
        }
    }

    /// Sends the next flit of a slot that has one and a credit.
    #[inline(always)]
    pub(crate) fn send_flit(&mut self, slot: u32, now: u64) {
        if self.parameters.periodic && !self.occupy_channel(slot, now) {
            self.statistics.interval.injected_flits -= 1;
            return;
        }
        let source = &mut self.terminals.injection[slot];
        source.credits -= 1;
        self.terminals.creditable[slot >> 6] &= !(u64::from(source.credits == 0) << (slot & 63));
        let gap = (now as u32).wrapping_sub(source.last);
        source.last = now as u32;
        let (packet, index) = (source.packet, source.index);
        source.index += 1;
        source.left -= 1;
        let (to, delay, left) = (source.to, source.delay, source.left);
        self.packets.set_gap(&mut source.gaps, packet, index, gap);
        if self.buffers.shared.is_some() {
            self.send_into_shared(slot, left == 0);
        }
        self.in_flight.arrivals.post((now as u32).wrapping_add(u32::from(delay)), to);
        if left == 0 {
            self.finish_injection(slot, now);
        }
    }

    /// Channels that need several cycles for a flit: is this one free? Then it is taken.
    pub(crate) fn occupy_channel(&mut self, slot: u32, now: u64) -> bool {
        let terminal = slot >> L::Mask::SHIFT;
        if self.terminals.busy_until[terminal] > now {
            return false;
        }
        let period = u64::from(self.wiring.period[self.parameters.first_terminal_port + terminal]);
        let after = self.parameters.cycles_after(self.terminals.injection[slot].left == 1);
        self.terminals.busy_until[terminal] = now + period + after;
        true
    }

    /// The tail has entered the network. The next packet may follow in the next cycle.
    pub(crate) fn finish_injection(&mut self, slot: u32, now: u64) {
        let (terminal, vc) = (slot >> L::Mask::SHIFT, slot & (L::Mask::BITS - 1));
        self.terminals.stop_sending(slot);
        let sent = &mut self.terminals.injection[slot];
        self.wiring.links[self.parameters.first_terminal_port + terminal].sent += u32::from(sent.index - sent.settled);
        (sent.index, sent.settled) = (0, 0);
        let source = &mut self.edge.queues.heads[terminal];
        let packet = source.packet;
        (source.packet, source.last_vc, source.vc) = (NONE, source.vc, NO_VC);
        if self.parameters.release == VcRelease::Tail {
            self.terminals.free[terminal] = self.terminals.free[terminal].or(L::Mask::bit(vc));
        }
        self.packets.end_gaps(packet);
        self.edge.tail_left(self.packets[packet].class, self.packets.tag(packet), terminal, now);
    }

    /// Puts a drawn packet at the head of its queue.
    #[inline(always)]
    pub(crate) fn enter_packet(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        let source = &mut self.edge.queues.heads[terminal];
        let serial = source.serial;
        source.serial += 1;
        let id = self.parameters.share.terminal(terminal);
        let mut choice = SourceChoice::new(packet_key(self.routing.seed, id.0, serial), serial);
        let route_state = self.routing.function.initial_state(id, drawn.destination, &mut choice);
        let record = Packet {
            created: drawn.created,
            injected: now,
            source: id.0,
            destination: drawn.destination.0,
            route_state,
            serial,
            flits: drawn.flits as u16,
            hops: 0,
            class: drawn.class,
            is_reply: drawn.is_reply,
            gaps: self.packets.first_gaps,
            alive: true,
        };
        self.statistics.balance.draining_live += i64::from(self.edge.drain.covers(drawn));
        self.statistics.balance.flits_in_flight += i64::from(record.flits);
        let packet = self.packets.store(record, drawn.tag);
        if drawn.is_reply {
            self.packets.origins.note_answer(packet, drawn.asked);
        }
        if self.packets.origins.measures_waiting {
            let waited = match drawn.again {
                Attempt::First => !drawn.is_reply && drawn.created < self.statistics.counting.measured_from,
                Attempt::Retransmission { has_waited } => has_waited,
            };
            self.packets.origins.note_waited(packet, waited);
        }
        self.edge.began(drawn, terminal, now);
        let source = &mut self.edge.queues.heads[terminal];
        (source.packet, source.vc) = (packet, NO_VC);
    }

    /// The virtual channels of a packet's first router by which its routing lets it enter; with queues for outputs those towards the
    /// output that it will take there.
    pub(crate) fn first_channels(&self, terminal: u32, packet: u32, available: VirtualChannels, now: u64) -> VirtualChannels {
        let record = &self.packets[packet];
        let (source, destination) = (self.parameters.share.terminal(terminal), TerminalId(record.destination));
        let (router, input) = self.scenario.network.injection_port(source);
        let hop = Hop { router, input, virtual_channel: available.begin, source, destination, available };
        // The same draws each time that the packet asks, unless it is to draw anew; and others than at its first router, where it draws
        // for its second. No packet crosses half as many routers.
        let attempt = if self.parameters.redraws_entry { now as u32 & u32::MAX >> 1 } else { 0 };
        let key = packet_key(self.routing.seed, source.0, record.serial);
        if self.routing.function.facts().observes_congestion {
            // What is weighed here for the first router is drawn there again.
            let view = SourceView { tile: self, terminal };
            let number = if self.parameters.redraws_entry { u32::MAX - attempt } else { 0 };
            return self.routing.function.entering(&hop, record.route_state, &mut HashedChoice::at_hop(key, number, view));
        }
        let mut choice = HashedChoice::at_hop(key, u32::MAX - attempt, NoView);
        self.routing.function.entering(&hop, record.route_state, &mut choice)
    }

    /// Finds the virtual channel of a packet: the first one after that of the packet before which is free and not full.
    #[inline(always)]
    pub(crate) fn find_virtual_channel(&self, terminal: u32, now: u64) -> Option<u16> {
        let source = self.edge.queues.heads[terminal];
        let record = &self.packets[source.packet];
        let of_class = self.routing.channels_of_class[usize::from(record.class)][usize::from(record.is_reply)];
        let needed = if self.parameters.switching == Switching::Wormhole { 1 } else { record.flits };
        let channels = self.scenario.router.entering(TerminalId(record.destination), of_class);
        let VirtualChannels { begin, end } =
            if self.parameters.restricts_entry { self.first_channels(terminal, source.packet, channels, now) } else { channels };
        let (mut pointer, end) = match (begin..end).contains(&source.last_vc) {
            true => (source.last_vc + 1, end),
            false if self.scenario.router.first_after_change => (begin, begin + 1),
            false => (begin, end),
        };
        let first = self.first_terminal_slot();
        let has_room = |slot: u32| {
            let in_pool = || self.buffers.shared.as_ref().is_none_or(|buffers| buffers.room(first + slot) >= needed.into());
            self.terminals.injection[slot].credits >= needed && in_pool()
        };
        let mut open = self.terminals.free[terminal].and(L::Mask::range(u32::from(begin), u32::from(end)));
        if self.buffers.shared.is_none() {
            open = self.terminals.with_credit(terminal, open);
        }
        loop {
            if open.is_empty() {
                return None;
            }
            let vc = open.first_from(u32::from(pointer)) as u16;
            if has_room(terminal << L::Mask::SHIFT | u32::from(vc)) {
                return Some(vc);
            }
            open = open.without(L::Mask::bit(u32::from(vc)));
            pointer = vc + 1;
        }
    }

    /// Gives the packet at the head of a queue a virtual channel, if there is one for it: its flits are sent from now on.
    pub(crate) fn choose_virtual_channel(&mut self, terminal: u32, now: u64) -> bool {
        let Some(vc) = self.find_virtual_channel(terminal, now) else { return false };
        let packet = self.edge.queues.heads[terminal].packet;
        let record = &mut self.packets[packet];
        record.injected = now;
        let flits = record.flits;
        let slot = terminal << L::Mask::SHIFT | u32::from(vc);
        let entering = &mut self.terminals.injection[slot];
        (entering.packet, entering.last, entering.index, entering.settled, entering.left) = (packet, now as u32, 0, 0, flits);
        entering.gaps = self.packets.first_gaps;
        if let Some(buffers) = &mut self.buffers.shared {
            buffers.take((self.parameters.first_terminal_port << L::Mask::SHIFT) + slot, flits);
            self.note_room(slot);
        }
        self.terminals.start_sending(slot);
        let free = &mut self.terminals.free[terminal];
        *free = free.without(L::Mask::bit(u32::from(vc)));
        self.edge.queues.heads[terminal].vc = vc;
        self.announce_packet(self.first_terminal_slot() + slot, packet);
        if self.routing.lookahead.is_some() {
            self.decide_ahead(packet, self.terminals.injection[slot].to);
        }
        true
    }
}
