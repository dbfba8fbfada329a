//! One cycle of a block of terminals: sinks take flits, sources take credits, create packets and send one flit each.
//!
//! What happens once per flit is a flat loop over a list of slots and touches one record of 32 bytes; what happens once per
//! packet (drawing it, choosing its virtual channel) is done for the terminals in a list.

use crate::record::list::put_back;
use crate::record::prefetch::prefetch;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;

/// Events between asking for a cache line and its use: a memory access takes as long as a few of them.
pub(crate) const PREFETCH_DISTANCE: usize = 12;

impl<L: RouterState> Tile<'_, L> {
    /// Advances a block of terminals, counted from the first such block, through cycle `now`.
    #[inline(always)]
    pub(crate) fn terminal_cycle(&mut self, block: u32, now: u64) {
        let mut events = std::mem::take(&mut self.in_flight.due);
        self.in_flight.arrivals.take(now, self.parameters.router_blocks + block, &mut events);
        self.statistics.interval.accepted_flits += events.len() as u64 * u64::from(!self.statistics.counts_whole_packets);
        self.statistics.balance.flits_inside -= events.len() as i64;
        self.statistics.balance.flits_in_flight -= events.len() as i64;
        let first_slot = self.first_terminal_slot();
        for position in 0..events.len() {
            self.prefetch_sink(&events, position);
            let slot = events[position] - first_slot;
            if self.parameters.enters_at_once { self.sink_at_once(slot, now) } else { self.sink(slot, now) }
        }
        events.clear();
        self.credit_sources(block, now, &mut events);
        self.edge.begin_cycle(block, now);
        if self.edge.queues.by_class.is_some() {
            self.serve_class_queues(block, now);
        } else {
            self.serve_queues(block, now);
            self.send_flits(block, now, &mut events);
        }
        self.edge.end_cycle(block, now + 1);
        put_back(&mut self.in_flight.due, events);
    }

    /// The sources of a block take the credits of cycle `now`. `events` is memory to use.
    #[inline(always)]
    pub(crate) fn credit_sources(&mut self, block: u32, now: u64, events: &mut Vec<u32>) {
        let first_slot = self.first_terminal_slot();
        self.in_flight.credits.take(now, self.parameters.router_blocks + block, events);
        for position in 0..events.len() {
            if let Some(&slot) = events.get(position + 3 * PREFETCH_DISTANCE) {
                prefetch(&self.terminals.injection[slot - first_slot]);
            }
            self.credit_source(events[position] - first_slot);
        }
        events.clear();
    }

    /// Adds the flits of packets that have entered or left in part to the counters. What has passed since then is added at the
    /// tail, so that a flit touches no counter of its own.
    pub(crate) fn settle_terminals(&mut self) {
        for slot in 0..self.terminals.injection.len() as u32 {
            let terminal = slot >> L::Mask::SHIFT;
            let source = &mut self.terminals.injection[slot];
            self.wiring.links[self.parameters.first_terminal_port + terminal].sent += u32::from(source.index - source.settled);
            source.settled = source.index;
            self.settle_sink(slot);
        }
    }
}
