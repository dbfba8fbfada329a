//! One cycle of a tile of terminals: sinks take flits, sources take credits, create packets and send one flit each.
//!
//! What happens once per flit is a flat loop over a list of slots and touches one record of 24 bytes; what happens once per
//! packet (drawing it, choosing its virtual channel) is done for the terminals in a list.

use super::class_queues::ClassQueues;
use super::feed::{AccessId, Arrival, Drawn, Next};
use super::queues::NO_VC;
use crate::lanes::Lanes;
use crate::prefetch::prefetch;
use crate::state::{Links, NONE, Packet, Parameters, Simulation};
use crate::vc_mask::VcMask;
use crate::wheel::Wheel;
use kasuri_model::router::{Switching, VcRelease};
use kasuri_network::id::TerminalId;
use kasuri_network::memory::Column;
use kasuri_network::routing::{HashedChoice, Hop, NoView, VirtualChannels, packet_key};

/// Events between asking for a cache line and its use: a memory access takes as long as a few of them.
const PREFETCH_DISTANCE: usize = 8;

/// The source's side of a virtual channel between a terminal and its router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injection {
    /// Cycle in which the last flit entered (its low 32 bits: only differences are used).
    last: u32,
    /// The packet that enters.
    packet: u32,
    /// Input slot of the router.
    to: u32,
    /// Cycles until a flit can be used there.
    delay: u16,
    /// Flits that have entered, that have not, and those that `Links::sent` holds already.
    index: u16,
    left: u16,
    settled: u16,
    /// Free places in the router's buffer.
    pub(crate) credits: u16,
}

/// The sink's side of a virtual channel between a router and a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ejection {
    /// Cycle in which the flit that arrived last was injected (its low 32 bits).
    clock: u32,
    /// The packet that arrives.
    pub(crate) packet: u32,
    /// Output slot of the router.
    to: u32,
    /// Cycles until a credit can be used there.
    delay: u16,
    /// Flits that have arrived, that have not, and those that `Statistics::accepted` holds already.
    pub(crate) index: u16,
    pub(crate) left: u16,
    settled: u16,
    /// Does the present phase count the packet?
    pub(crate) counted: bool,
    /// Does it stay in the buffer until an interface takes it?
    pub(crate) held: bool,
}

/// The terminals' virtual channels. Slots are counted from the first terminal's.
pub(crate) struct Terminals<M> {
    pub(crate) injection: Column<Injection>,
    pub(crate) ejection: Column<Ejection>,
    /// One bit per slot: has it a packet to send? has it a credit?
    sending: Column<u64>,
    creditable: Column<u64>,
    /// Senders of each tile, and whether one of them can send in the next cycle without a new event.
    senders: Vec<u32>,
    ready: Vec<bool>,
    /// By terminal: virtual channels of the injection port that no packet holds.
    free: Column<M>,
    /// By terminal: does the head of its queue find no virtual channel?
    blocked: Column<bool>,
    /// By terminal: cycle from which the injection channel is free; empty unless some channel needs several cycles for a flit.
    busy_until: Column<u64>,
    /// Words of a tile.
    tile_words: u32,
}

impl<M: VcMask> Terminals<M> {
    pub(crate) fn new(terminals: u32, parameters: &Parameters) -> Self {
        let slots = (terminals as usize) << M::SHIFT;
        let tiles = (parameters.tiles - parameters.router_tiles) as usize;
        let injection =
            Injection { last: 0, packet: NONE, to: NONE, delay: 0, index: 0, left: 0, settled: 0, credits: parameters.buffer_flits };
        let ejection = Ejection { clock: 0, packet: NONE, to: NONE, delay: 0, index: 0, left: 0, settled: 0, counted: false, held: false };
        Self {
            injection: Column::filled(slots, injection),
            ejection: Column::filled(slots, ejection),
            sending: Column::filled(slots.div_ceil(64), 0),
            creditable: Column::filled(slots.div_ceil(64), u64::MAX),
            senders: vec![0; tiles],
            ready: vec![false; tiles],
            free: Column::filled(terminals as usize, M::range(0, parameters.virtual_channels)),
            blocked: Column::filled(terminals as usize, false),
            busy_until: Column::filled(if parameters.periodic { terminals as usize } else { 0 }, 0),
            tile_words: 1 << (parameters.tile_shift - 6),
        }
    }

    /// Bytes of such terminals.
    pub(crate) fn bytes(terminals: u32) -> usize {
        let slots = (terminals as usize) << M::SHIFT;
        slots * (size_of::<Injection>() + size_of::<Ejection>()) + slots / 4 + terminals as usize * (size_of::<M>() + 9)
    }

    /// Copies the ways of a terminal's port into its slots.
    pub(crate) fn connect(&mut self, terminal: u32, links: &Links) {
        for vc in 0..M::BITS {
            let slot = terminal << M::SHIFT | vc;
            (self.injection[slot].to, self.injection[slot].delay) = (links.flit_link.wrapping_add(vc), links.flit_delay);
            (self.ejection[slot].to, self.ejection[slot].delay) = (links.credit_link.wrapping_add(vc), links.credit_delay);
        }
    }

    /// Can no source send in the next cycle without a new event?
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.ready.iter().any(|&ready| ready)
    }

    #[inline(always)]
    fn start_sending(&mut self, slot: u32) {
        self.sending[slot >> 6] |= 1 << (slot & 63);
        self.senders[(slot >> 6 >> self.tile_words.trailing_zeros()) as usize] += 1;
    }

    #[inline(always)]
    fn stop_sending(&mut self, slot: u32) {
        self.sending[slot >> 6] &= !(1 << (slot & 63));
        self.senders[(slot >> 6 >> self.tile_words.trailing_zeros()) as usize] -= 1;
    }

    /// The slots of a tile that have a flit and a credit, appended to `into`.
    #[inline(always)]
    fn list_ready(&self, tile: u32, into: &mut Vec<u32>) {
        for word in tile * self.tile_words..((tile + 1) * self.tile_words).min(self.sending.len() as u32) {
            let mut bits = self.sending[word] & self.creditable[word];
            while bits != 0 {
                into.push(word << 6 | bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Has the buffer behind a slot room for a flit?
    #[inline(always)]
    pub(crate) fn has_credit(&self, slot: u32) -> bool {
        self.creditable[slot >> 6] & 1 << (slot & 63) != 0
    }

    /// Is a terminal's channel into the network still taken by the flit before?
    pub(crate) fn is_busy(&self, terminal: u32, now: u64) -> bool {
        self.busy_until.len() > terminal as usize && self.busy_until[terminal] > now
    }

    /// Notes whether a terminal waits for a credit.
    pub(crate) fn set_blocked(&mut self, terminal: u32, blocked: bool) {
        self.blocked[terminal] = blocked;
    }

    /// Notes whether a source of the tile can send again in the next cycle.
    #[inline(always)]
    pub(crate) fn note_ready(&mut self, tile: u32) {
        let words = tile * self.tile_words..((tile + 1) * self.tile_words).min(self.sending.len() as u32);
        self.ready[tile as usize] = words.into_iter().any(|word| self.sending[word] & self.creditable[word] != 0);
    }
}

impl<L: Lanes> Simulation<'_, L> {
    /// Advances a tile of terminals, counted from the first such tile, through cycle `now`.
    #[inline(always)]
    pub(crate) fn terminal_cycle(&mut self, tile: u32, now: u64) {
        let mut events = std::mem::take(&mut self.events);
        self.arrivals.take(now, self.parameters.router_tiles + tile, &mut events);
        self.statistics.interval.accepted_flits += events.len() as u64;
        self.flits_inside -= events.len() as u64;
        let first_slot = self.first_terminal_slot();
        for position in 0..events.len() {
            self.prefetch_sink(&events, position);
            self.sink(events[position] - first_slot, now);
        }
        events.clear();
        self.credits.take(now, self.parameters.router_tiles + tile, &mut events);
        for position in 0..events.len() {
            if let Some(&slot) = events.get(position + 3 * PREFETCH_DISTANCE) {
                prefetch(&self.terminals.injection[slot - first_slot]);
            }
            self.credit_source(events[position] - first_slot);
        }
        events.clear();
        self.edge.begin_cycle(tile, now);
        if self.edge.queues.by_class.is_some() {
            self.serve_class_queues(tile, now);
        } else {
            self.serve_queues(tile, now);
            self.send_flits(tile, now, &mut events);
        }
        self.events = events;
    }

    /// A flit reaches its terminal. Sinks never block: its credit goes back in the same cycle, or an interface takes it in time.
    #[inline(always)]
    fn sink(&mut self, slot: u32, now: u64) {
        if self.terminals.ejection[slot].left == 0 {
            self.begin_packet(slot);
        }
        let sink = &mut self.terminals.ejection[slot];
        sink.clock = sink.clock.wrapping_add(self.packets.gap(sink.packet, sink.index));
        sink.index += 1;
        sink.left -= 1;
        if sink.counted {
            self.statistics.flit_latency.record(u64::from((now as u32).wrapping_sub(sink.clock)));
        }
        let (to, delay, left) = (sink.to, sink.delay, sink.left);
        if !sink.held {
            self.credits.post((now as u32).wrapping_add(u32::from(delay)), to);
        }
        if left == 0 {
            self.finish_packet(slot, now);
        }
    }

    /// A place in the buffer of a sink has become free in cycle `now`.
    #[inline(always)]
    pub(crate) fn free_place(sink: &Ejection, credits: &mut L::Wheel, now: u64) {
        credits.post((now as u32).wrapping_add(u32::from(sink.delay)), sink.to);
    }

    /// A head has arrived: looks its packet up.
    fn begin_packet(&mut self, slot: u32) {
        let packet = self.arriving_packet(slot);
        let record = self.packets[packet as usize];
        self.leave_queue(self.first_terminal_slot() + slot);
        let sink = &mut self.terminals.ejection[slot];
        (sink.packet, sink.clock, sink.index, sink.left) = (packet, record.injected as u32, 0, record.flits);
        sink.counted = self.packets.is_counted(&self.statistics.counting, packet);
        sink.held = record.class >= self.edge.first_held_class;
    }

    /// The packet that arrives next at a sink's slot, once its head is on its way.
    #[inline(always)]
    fn arriving_packet(&self, slot: u32) -> u32 {
        self.front_packet(self.first_terminal_slot() + slot)
    }

    /// Fetches step by step what the sinks of later events will look at: in large networks it is in no near cache.
    #[inline(always)]
    fn prefetch_sink(&self, events: &[u32], position: usize) {
        if !self.parameters.fetches {
            return;
        }
        let first_slot = self.first_terminal_slot();
        let ahead = |steps: usize| events.get(position + steps * PREFETCH_DISTANCE).map(|&slot| slot - first_slot);
        if let Some(slot) = ahead(3) {
            prefetch(&self.terminals.ejection[slot]);
        }
        if let Some(slot) = ahead(2)
            && self.terminals.ejection[slot].left == 0
        {
            prefetch(self.lanes.input_slot(first_slot + slot));
        }
        if let Some(slot) = ahead(1) {
            let sink = &self.terminals.ejection[slot];
            if sink.left > 0 {
                prefetch(self.packets.short_gap(sink.packet, sink.index));
            }
            if sink.left <= 1 {
                let packet = if sink.left == 0 { self.arriving_packet(slot) } else { sink.packet };
                prefetch(&self.packets[packet as usize]);
            }
        }
    }

    /// The tail has arrived.
    fn finish_packet(&mut self, slot: u32, now: u64) {
        self.settle_sink(slot);
        let sink = &mut self.terminals.ejection[slot];
        (sink.index, sink.settled) = (0, 0);
        let packet = sink.packet;
        let record = self.packets[packet as usize];
        debug_assert_eq!(record.destination, slot >> L::Mask::SHIFT, "a packet arrives at its destination");
        let counted = self.packets.is_counted(&self.statistics.counting, packet);
        self.statistics.count_packet(&record, counted, now);
        if record.class < self.packets.origins.first_class {
            self.count_background(packet, now);
        }
        let asked = self.packets.origins.decisive(&record, packet);
        // An answer takes the place of the packet that it answers among those that are waited for.
        if asked < self.edge.drain.before && self.packets.is_waited_for(&self.statistics.counting, packet) && !self.is_answered(&record) {
            self.statistics.draining_live -= 1;
        }
        self.packets.release(packet);
        self.edge.packet_arrived(&Arrival {
            packet,
            record: &record,
            slot,
            now,
            asked: if self.packets.origins.has_waited(packet) { self.statistics.counting.measured_from } else { asked },
            counted,
            rates: self.statistics.counting.rates,
            access: AccessId::default(),
        });
    }

    /// A packet of the background has arrived.
    #[cold]
    fn count_background(&mut self, packet: u32, now: u64) {
        let (record, counting) = (&self.packets[packet as usize], &self.statistics.counting);
        let latency = self.packets.is_in_time(counting, packet).then(|| now - record.created);
        self.statistics.background.count(u32::from(record.flits), counting.rates, latency);
    }

    /// Does the arrival of a packet bring an answer about?
    #[inline(always)]
    fn is_answered(&self, record: &Packet) -> bool {
        !record.is_reply && self.scenario.classes.get(usize::from(record.class)).is_some_and(|class| class.reply.is_some())
    }

    /// A credit comes back to a source.
    #[inline(always)]
    fn credit_source(&mut self, slot: u32) {
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
        if self.buffers.is_some() {
            self.free_shared(slot);
        }
        if self.terminals.blocked[terminal] {
            self.edge.queues.wake(terminal);
        }
    }

    /// A flit goes into a buffer that its virtual channel shares: is there room for another?
    #[cold]
    fn send_into_shared(&mut self, slot: u32, is_tail: bool) {
        let address = self.first_terminal_slot() + slot;
        if let Some(buffers) = &mut self.buffers {
            buffers.send(address, is_tail);
        }
        self.note_room(slot);
    }

    /// A place of a shared buffer is free again, which may help the packet that is being sent by another virtual channel.
    #[cold]
    fn free_shared(&mut self, slot: u32) {
        let (terminal, vc) = (slot >> L::Mask::SHIFT, slot & (L::Mask::BITS - 1));
        let is_free = !self.terminals.free[terminal].and(L::Mask::bit(vc)).is_empty();
        let address = self.first_terminal_slot() + slot;
        if let Some(buffers) = &mut self.buffers {
            buffers.free(address, !is_free);
        }
        for queue in 0..self.edge.queues.by_class.as_ref().map_or(0, ClassQueues::queues) {
            let sending = self.edge.queues.by_class.as_ref().and_then(|queues| queues.channel(terminal, queue));
            if let Some(vc) = sending {
                self.note_room(terminal << L::Mask::SHIFT | u32::from(vc));
            }
        }
        let sending = self.edge.queues.heads[terminal as usize].vc;
        if sending != NO_VC {
            self.note_room(terminal << L::Mask::SHIFT | u32::from(sending));
        }
    }

    /// Notes whether a virtual channel of a shared buffer may send.
    fn note_room(&mut self, slot: u32) {
        let address = self.first_terminal_slot() + slot;
        let Some(buffers) = &self.buffers else { return };
        let bit = 1 << (slot & 63);
        if buffers.room(address) > 0 {
            self.terminals.creditable[slot >> 6] |= bit;
        } else {
            self.terminals.creditable[slot >> 6] &= !bit;
        }
    }

    /// Draws packets where a queue's head has been sent, and finds virtual channels for the heads.
    #[inline(always)]
    fn serve_queues(&mut self, tile: u32, now: u64) {
        let mut active = self.edge.queues.take_active(tile);
        let mut kept = 0;
        for position in 0..active.len() {
            let terminal = active[position];
            let stays = self.serve_queue(terminal, now);
            active[kept] = terminal;
            kept += usize::from(stays);
            self.edge.queues.heads[terminal as usize].listed = stays;
        }
        active.truncate(kept);
        self.edge.queues.put_active(tile, active);
    }

    /// Brings the head of a queue to its virtual channel. Must the terminal be looked at in the next cycle?
    #[inline(always)]
    fn serve_queue(&mut self, terminal: u32, now: u64) -> bool {
        if self.edge.queues.heads[terminal as usize].packet == NONE {
            match self.edge.next_packet(terminal, now) {
                Next::Packet(drawn) => self.enter_packet(drawn, terminal, now),
                Next::Later => return true,
                Next::Nothing => return false,
            }
        }
        if self.edge.queues.heads[terminal as usize].vc != NO_VC {
            return false;
        }
        if self.parameters.periodic && self.terminals.busy_until[terminal] > now {
            return true;
        }
        let found = self.choose_virtual_channel(terminal, now);
        self.terminals.blocked[terminal] = !found;
        !found && self.parameters.redraws_entry
    }

    /// Sends a flit from every slot of a tile that has one and a credit.
    #[inline(always)]
    fn send_flits(&mut self, tile: u32, now: u64, ready: &mut Vec<u32>) {
        if self.terminals.senders[tile as usize] == 0 {
            self.terminals.ready[tile as usize] = false;
            return;
        }
        self.terminals.list_ready(tile, ready);
        let before = self.statistics.interval.injected_flits;
        self.statistics.interval.injected_flits += ready.len() as u64;
        for position in 0..ready.len() {
            if let Some(&slot) = ready.get(position + 3 * PREFETCH_DISTANCE) {
                prefetch(&self.terminals.injection[slot]);
            }
            if let Some(&slot) = ready.get(position + PREFETCH_DISTANCE) {
                let source = &self.terminals.injection[slot];
                prefetch(self.packets.short_gap(source.packet, source.index));
            }
            self.send_flit(ready[position], now);
        }
        ready.clear();
        self.flits_inside += self.statistics.interval.injected_flits - before;
        self.terminals.note_ready(tile);
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
        if self.buffers.is_some() {
            self.send_into_shared(slot, left == 0);
        }
        self.arrivals.post((now as u32).wrapping_add(u32::from(delay)), to);
        self.packets.set_gap(packet, index, gap);
        if left == 0 {
            self.finish_injection(slot, now);
        }
    }

    /// Channels that need several cycles for a flit: is this one free? Then it is taken.
    fn occupy_channel(&mut self, slot: u32, now: u64) -> bool {
        let terminal = slot >> L::Mask::SHIFT;
        if self.terminals.busy_until[terminal] > now {
            return false;
        }
        self.terminals.busy_until[terminal] = now + u64::from(self.period[self.parameters.first_terminal_port + terminal]);
        true
    }

    /// The tail has entered the network. The next packet may follow in the next cycle.
    fn finish_injection(&mut self, slot: u32, now: u64) {
        let (terminal, vc) = (slot >> L::Mask::SHIFT, slot & (L::Mask::BITS - 1));
        self.terminals.stop_sending(slot);
        let sent = &mut self.terminals.injection[slot];
        self.links[self.parameters.first_terminal_port + terminal].sent += u32::from(sent.index - sent.settled);
        (sent.index, sent.settled) = (0, 0);
        let source = &mut self.edge.queues.heads[terminal as usize];
        let packet = source.packet;
        (source.packet, source.last_vc, source.vc) = (NONE, source.vc, NO_VC);
        if self.parameters.release == VcRelease::Tail {
            self.terminals.free[terminal] = self.terminals.free[terminal].or(L::Mask::bit(vc));
        }
        self.edge.tail_left(packet, terminal, now);
    }

    /// Adds the flits of packets that have entered or left in part to the counters. What has passed since then is added at the
    /// tail, so that a flit touches no counter of its own.
    pub(crate) fn settle_terminals(&mut self) {
        for slot in 0..self.terminals.injection.len() as u32 {
            let terminal = slot >> L::Mask::SHIFT;
            let source = &mut self.terminals.injection[slot];
            self.links[self.parameters.first_terminal_port + terminal].sent += u32::from(source.index - source.settled);
            source.settled = source.index;
            self.settle_sink(slot);
        }
    }

    #[inline(always)]
    fn settle_sink(&mut self, slot: u32) {
        let sink = &mut self.terminals.ejection[slot];
        let flits = u64::from(sink.index - sink.settled) * u64::from(self.statistics.counting.rates);
        let terminal = slot >> L::Mask::SHIFT;
        self.statistics.accepted[terminal] += flits;
        if flits > 0 && self.packets[sink.packet as usize].source == terminal {
            self.statistics.to_self += flits;
        }
        sink.settled = sink.index;
    }

    /// Puts a drawn packet at the head of its queue.
    #[inline(always)]
    pub(crate) fn enter_packet(&mut self, drawn: Drawn, terminal: u32, now: u64) {
        let source = &mut self.edge.queues.heads[terminal as usize];
        let serial = source.serial;
        source.serial += 1;
        let mut choice = HashedChoice::at_source(packet_key(self.routing_seed, terminal, serial));
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
        self.statistics.draining_live += u64::from(self.edge.drain.covers(&drawn));
        let packet = self.packets.store(record);
        if drawn.is_reply {
            self.packets.origins.note_answer(packet, drawn.asked);
        }
        if self.packets.origins.measures_waiting {
            let waited = !drawn.is_reply && drawn.created < self.statistics.counting.measured_from;
            self.packets.origins.note_waited(packet, waited);
        }
        self.edge.began(packet, &drawn, terminal, now);
        let source = &mut self.edge.queues.heads[terminal as usize];
        (source.packet, source.vc) = (packet, NO_VC);
    }

    /// The virtual channels of a packet's first router by which its routing lets it enter; with queues for outputs those towards the
    /// output that it will take there.
    fn first_channels(&self, terminal: u32, packet: u32, available: VirtualChannels, now: u64) -> VirtualChannels {
        let record = &self.packets[packet as usize];
        let (router, input) = self.scenario.network.injection_port(TerminalId(terminal));
        let (source, destination) = (TerminalId(terminal), TerminalId(record.destination));
        let hop = Hop { router, input, virtual_channel: available.begin, source, destination, available };
        // The same draws each time that the packet asks, unless it is to draw anew; and others than at its first router, where it draws
        // for its second. No packet crosses half as many routers.
        let attempt = if self.parameters.redraws_entry { now as u32 & u32::MAX >> 1 } else { 0 };
        let mut choice = HashedChoice::at_hop(packet_key(self.routing_seed, terminal, record.serial), u32::MAX - attempt, NoView);
        self.scenario.routing.entering(&hop, record.route_state, &mut choice)
    }

    /// Chooses the virtual channel of a packet: the first one after that of the packet before which is free and not full.
    pub(crate) fn choose_virtual_channel(&mut self, terminal: u32, now: u64) -> bool {
        let source = self.edge.queues.heads[terminal as usize];
        let record = &self.packets[source.packet as usize];
        let of_class = self.packet_channels[usize::from(record.class)][usize::from(record.is_reply)];
        let needed = if self.parameters.switching == Switching::Wormhole { 1 } else { record.flits };
        let channels = self.scenario.router.entering(TerminalId(record.destination), of_class);
        let VirtualChannels { begin, end } =
            if self.parameters.restricts_entry { self.first_channels(terminal, source.packet, channels, now) } else { channels };
        let record = &mut self.packets[source.packet as usize];
        let (mut pointer, end) = match (begin..end).contains(&source.last_vc) {
            true => (source.last_vc + 1, end),
            false if self.scenario.router.first_after_change => (begin, begin + 1),
            false => (begin, end),
        };
        let free = self.terminals.free[terminal];
        let first = self.parameters.first_terminal_port << L::Mask::SHIFT;
        let has_room = |slot: u32| {
            let in_pool = || self.buffers.as_ref().is_none_or(|buffers| buffers.room(first + slot) > 0);
            self.terminals.injection[slot].credits >= needed && in_pool()
        };
        let mut open = free.and(L::Mask::range(u32::from(begin), u32::from(end)));
        let vc = loop {
            if open.is_empty() {
                return false;
            }
            let vc = open.first_from(u32::from(pointer)) as u16;
            if has_room(terminal << L::Mask::SHIFT | u32::from(vc)) {
                break vc;
            }
            open = open.without(L::Mask::bit(u32::from(vc)));
            pointer = vc + 1;
        };
        record.injected = now;
        let slot = terminal << L::Mask::SHIFT | u32::from(vc);
        let entering = &mut self.terminals.injection[slot];
        (entering.packet, entering.last, entering.index, entering.settled, entering.left) = (source.packet, now as u32, 0, 0, record.flits);
        if let Some(buffers) = &mut self.buffers {
            buffers.take(first + slot);
            self.note_room(slot);
        }
        self.terminals.start_sending(slot);
        self.terminals.free[terminal] = free.without(L::Mask::bit(u32::from(vc)));
        self.edge.queues.heads[terminal as usize].vc = vc;
        self.announce_packet(self.first_terminal_slot() + slot, source.packet);
        if self.lookahead.is_some() {
            self.decide_ahead(source.packet, self.terminals.injection[slot].to);
        }
        true
    }
}
