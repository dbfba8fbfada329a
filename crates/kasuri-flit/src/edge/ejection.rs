//! Ejection: what becomes of flits that arrive at a terminal.

use crate::edge::terminals::PREFETCH_DISTANCE;
use crate::record::packet::Packet;
use crate::record::prefetch::prefetch;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::feed::Arrival;
use crate::state::layout::RouterState;
use crate::state::terminals::Ejection;
use crate::state::tile::Tile;

impl<L: RouterState> Tile<'_, L> {
    /// A flit reaches its terminal. Sinks never block: its credit goes back in the same cycle, or an interface takes it in time.
    #[inline(always)]
    pub(crate) fn sink(&mut self, slot: u32, now: u64) {
        if self.terminals.ejection[slot].left == 0 {
            self.begin_packet(slot);
        }
        let sink = &mut self.terminals.ejection[slot];
        sink.clock = sink.clock.wrapping_add(self.packets.gap(&mut sink.gaps, sink.packet, sink.index));
        sink.index += 1;
        sink.left -= 1;
        if sink.counted {
            self.statistics.flit_latency.record(u64::from((now as u32).wrapping_sub(sink.clock)));
        }
        let (to, delay, left) = (sink.to, sink.delay, sink.left);
        if !sink.held {
            self.in_flight.credits.post((now as u32).wrapping_add(u32::from(delay)), to);
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
    pub(crate) fn begin_packet(&mut self, slot: u32) {
        let packet = self.arriving_packet(slot);
        let record = self.packets[packet];
        self.leave_queue(self.first_terminal_slot() + slot);
        let sink = &mut self.terminals.ejection[slot];
        (sink.packet, sink.clock, sink.index, sink.left, sink.gaps) = (packet, record.injected as u32, 0, record.flits, record.gaps);
        sink.counted = self.packets.is_counted(&self.statistics.counting, packet);
        sink.held = record.class >= self.edge.first_held_class;
    }

    /// The packet that arrives next at a sink's slot, once its head is on its way.
    #[inline(always)]
    pub(crate) fn arriving_packet(&self, slot: u32) -> u32 {
        self.front_packet(self.first_terminal_slot() + slot)
    }

    /// Fetches step by step what the sinks of later events will look at: in large networks it is in no near cache.
    #[inline(always)]
    pub(crate) fn prefetch_sink(&self, events: &[u32], position: usize) {
        if !self.parameters.fetches {
            return;
        }
        let first_slot = self.first_terminal_slot();
        let ahead = |steps: usize| events.get(position + steps * PREFETCH_DISTANCE).map(|&slot| slot - first_slot);
        if let Some(slot) = ahead(4) {
            prefetch(&self.terminals.ejection[slot]);
        }
        if let Some(slot) = ahead(2)
            && self.terminals.ejection[slot].left == 0
        {
            self.layout.prefetch_input(first_slot + slot);
        }
        if let Some(slot) = ahead(1) {
            let sink = &self.terminals.ejection[slot];
            if sink.left > 0 {
                self.packets.prefetch_gap(sink.gaps, sink.packet, sink.index);
            }
            if sink.left <= 1 {
                let packet = if sink.left == 0 { self.arriving_packet(slot) } else { sink.packet };
                self.packets.prefetch(packet);
                prefetch(&self.statistics.accepted[slot >> L::Mask::SHIFT]);
            }
        }
    }

    /// The tail has arrived.
    pub(crate) fn finish_packet(&mut self, slot: u32, now: u64) {
        self.settle_sink(slot);
        let sink = &mut self.terminals.ejection[slot];
        (sink.index, sink.settled) = (0, 0);
        let packet = sink.packet;
        if self.packets.is_damaged(packet) {
            return self.refuse(packet, now);
        }
        let counted = self.packets.is_counted(&self.statistics.counting, packet);
        self.deliver(packet, slot, counted, now);
    }

    /// A packet has arrived as a whole; `counted` among those that are measured.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, packet: u32, slot: u32, counted: bool, now: u64) {
        let record = self.packets[packet];
        debug_assert_eq!(
            record.destination,
            self.parameters.share.terminal(slot >> L::Mask::SHIFT).0,
            "a packet arrives at its destination"
        );
        self.statistics.count_packet(&record, counted, now);
        if record.class < self.packets.origins.first_class {
            self.count_background(packet, now);
        }
        let asked = self.packets.origins.decisive(&record, packet);
        // An answer takes the place of the packet that it answers among those that are waited for.
        if asked < self.edge.drain.before && self.packets.is_waited_for(&self.statistics.counting, packet) && !self.is_answered(&record) {
            self.statistics.balance.draining_live -= 1;
        }
        self.packets.release(packet);
        self.edge.packet_arrived(&Arrival {
            record: &record,
            slot,
            now,
            asked: if self.packets.origins.has_waited(packet) { self.statistics.counting.measured_from } else { asked },
            counted,
            rates: self.statistics.counting.rates,
            tag: self.packets.tag(packet),
        });
    }

    /// A packet of the background has arrived.
    #[cold]
    pub(crate) fn count_background(&mut self, packet: u32, now: u64) {
        let (record, counting) = (&self.packets[packet], &self.statistics.counting);
        let latency = self.packets.is_in_time(counting, packet).then(|| now - record.created);
        self.statistics.background.count(u32::from(record.flits), counting.rates, latency);
    }

    /// Does the arrival of a packet bring an answer about?
    #[inline(always)]
    pub(crate) fn is_answered(&self, record: &Packet) -> bool {
        !record.is_reply && self.scenario.classes.get(usize::from(record.class)).is_some_and(|class| class.reply.is_some())
    }

    /// Counts the flits that have come to a sink.
    #[inline(always)]
    pub(crate) fn settle_sink(&mut self, slot: u32) {
        let sink = &mut self.terminals.ejection[slot];
        if self.statistics.counts_whole_packets && sink.left > 0 {
            return;
        }
        let counts = self.statistics.counting.rates && !self.packets.is_damaged(sink.packet);
        let flits = u64::from(sink.index - sink.settled) * u64::from(counts);
        let terminal = slot >> L::Mask::SHIFT;
        self.statistics.accepted[terminal] += flits;
        if flits > 0 && self.packets[sink.packet].source == self.parameters.share.terminal(terminal).0 {
            self.statistics.to_self += flits;
        }
        sink.settled = sink.index;
    }
}
