//! Packets of one flit: they enter as soon as they have a virtual channel, and are whole when they arrive.
//!
//! Nothing has to be kept of a packet that is being sent or received, and no gap between its flits. Not where something else decides when a
//! flit enters: a channel that takes it several cycles, the memory of a host, a buffer that virtual channels share, a queue for each class.

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_model::router::VcRelease;

impl<L: RouterState> Tile<'_, L> {
    /// Sends the packet at the head of a queue, if there is a virtual channel for it. Must the terminal be looked at in the next cycle?
    #[inline(always)]
    pub(crate) fn enter_at_once(&mut self, terminal: u32, now: u64) -> bool {
        let Some(vc) = self.find_virtual_channel(terminal, now) else {
            self.terminals.blocked[terminal] = true;
            return self.parameters.redraws_entry;
        };
        self.terminals.blocked[terminal] = false;
        let slot = terminal << L::Mask::SHIFT | u32::from(vc);
        let head = &mut self.edge.queues.heads[terminal];
        let packet = head.packet;
        (head.packet, head.last_vc) = (NONE, vc);
        let record = &mut self.packets[packet];
        record.injected = now;
        let class = record.class;
        self.announce_packet(self.first_terminal_slot() + slot, packet);
        let source = &mut self.terminals.injection[slot];
        source.credits -= 1;
        let (to, delay) = (source.to, source.delay);
        self.terminals.creditable[slot >> 6] &= !(u64::from(source.credits == 0) << (slot & 63));
        if self.routing.lookahead.is_some() {
            self.decide_ahead(packet, to);
        }
        if self.parameters.release == VcRelease::TailCredit {
            let free = &mut self.terminals.free[terminal];
            *free = free.without(L::Mask::bit(u32::from(vc)));
        }
        self.wiring.links[self.parameters.first_terminal_port + terminal].sent += 1;
        self.in_flight.arrivals.post((now as u32).wrapping_add(u32::from(delay)), to);
        self.statistics.interval.injected_flits += 1;
        self.statistics.balance.flits_inside += 1;
        self.edge.has_next(class, self.packets.tag(packet), terminal, now)
    }

    /// A packet reaches its terminal. Its credit goes back in the same cycle.
    #[inline(always)]
    pub(crate) fn sink_at_once(&mut self, slot: u32, now: u64) {
        let packet = self.arriving_packet(slot);
        self.leave_queue(self.first_terminal_slot() + slot);
        let sink = &self.terminals.ejection[slot];
        self.in_flight.credits.post((now as u32).wrapping_add(u32::from(sink.delay)), sink.to);
        let record = &self.packets[packet];
        let terminal = slot >> L::Mask::SHIFT;
        let rates = u64::from(self.statistics.counting.rates);
        self.statistics.accepted[terminal] += rates;
        if record.source == record.destination {
            self.statistics.to_self += rates;
        }
        let counted = self.packets.is_counted(&self.statistics.counting, packet);
        if counted {
            self.statistics.flit_latency.record(now - record.injected);
        }
        self.deliver(packet, slot, counted, now);
    }
}
