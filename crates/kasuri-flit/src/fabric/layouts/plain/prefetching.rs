//! What the loops over a block of routers fetch ahead, where the state of all routers is larger than the caches.
//!
//! Each step takes the event a few places behind the one before it, which has fetched what it reads.

use crate::fabric::layouts::plain::{InputVc, OutputVc, Plain, Pointers};
use crate::record::list::List;
use crate::record::marks::NONE;
use crate::record::prefetch::{FLITS_AHEAD, prefetch, prefetch_all};
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Posts;
use crate::state::tile::Tile;

/// A block of routers is fetched whole where at least one flit or credit arrives in a window for so many ports.
const PORTS_FOR_EVENT: usize = 4;

impl<M: VcMask> Tile<'_, Plain<M>> {
    /// Fetches the state of a block of routers, unless so little arrives there in the window that most of it would be fetched in vain.
    pub(super) fn prefetch_plain_block(&self, block: u32, length: u64) {
        let Tile { layout, parameters, in_flight, wiring, .. } = self;
        let first = block << parameters.block_shift;
        let end = (first + (1 << parameters.block_shift)).min(self.first_terminal_slot());
        let events = |now| in_flight.arrivals.events(now, block).len() + in_flight.credits.events(now, block).len();
        let coming: usize = (self.cycle..self.cycle + length).map(events).sum();
        if coming * PORTS_FOR_EVENT < ((end - first) >> M::SHIFT) as usize {
            return;
        }
        let slots = first as usize..end as usize;
        let ports = slots.start >> M::SHIFT..slots.end >> M::SHIFT;
        prefetch_all(&layout.input.as_slice()[slots.clone()]);
        prefetch_all(&layout.output.as_slice()[slots]);
        prefetch_all(&layout.output_port.as_slice()[ports.clone()]);
        prefetch_all(&layout.input_port.as_slice()[ports.clone()]);
        prefetch_all(&wiring.links.as_slice()[ports]);
    }

    /// Fetches the packet behind the one of which a later winner sends the tail, once its buffer has been fetched.
    #[inline(always)]
    pub(super) fn prefetch_for_release(&self, pointers: Pointers<M>, winners: &List, position: usize) {
        if let Some(&input_port) = winners.as_slice().get(position + FLITS_AHEAD) {
            let slot = pointers.output(pointers.input_port(input_port).candidate).holder;
            let input = pointers.input(slot);
            if self.parameters.one_flit | (input.left == 1) {
                self.buffers.rings.prefetch_first(&input.packet.queue, 0, slot);
            }
        }
    }
}

impl<M: VcMask> Pointers<M> {
    /// Fetches what later flits of a list of arrivals will touch: first the buffers, then the outputs that their packets hold.
    #[inline(always)]
    pub(super) fn prefetch_for_arrivals(self, events: &[u32], position: usize) {
        if let Some(&slot) = events.get(position + 2 * FLITS_AHEAD) {
            prefetch(self.input(slot));
        }
        if let Some(&slot) = events.get(position + FLITS_AHEAD) {
            let InputVc { output, flits, .. } = *self.input(slot);
            if flits == 0 && output != NONE {
                prefetch(self.output(output));
                prefetch(self.output_port(output >> M::SHIFT));
            }
        }
    }

    /// The same for credits: first the accounts, then the buffers of the packets that wait for one.
    #[inline(always)]
    pub(super) fn prefetch_for_credits(self, events: &[u32], position: usize) {
        if let Some(&slot) = events.get(position + 2 * FLITS_AHEAD) {
            prefetch(self.output(slot));
        }
        if let Some(&slot) = events.get(position + FLITS_AHEAD) {
            let OutputVc { holder, credits, .. } = *self.output(slot);
            if credits == 0 && holder != NONE {
                prefetch(self.input(holder));
            }
        }
    }

    /// The same for grants: first the ports, then the accounts of what is ready, then the input ports that hold two of them.
    #[inline(always)]
    pub(super) fn prefetch_for_grants(self, active: &List, position: usize) {
        let later = |steps: usize| active.as_slice().get(position + steps * FLITS_AHEAD).copied();
        if let Some(port) = later(3) {
            prefetch(self.output_port(port));
        }
        if let Some(port) = later(2) {
            prefetch(self.output(port << M::SHIFT | self.output_port(port).ready.first()));
        }
        if let Some(port) = later(1) {
            let ready = self.output_port(port).ready;
            for vc in [ready, ready.rest()].into_iter().filter(|ready| !ready.is_empty()).map(M::first) {
                prefetch(self.input_port(self.output(port << M::SHIFT | vc).holder >> M::SHIFT));
            }
        }
    }

    /// The same for flits that cross the switch: first the buffers and links, then the places where the flit and its credit are posted.
    #[inline(always)]
    pub(super) fn prefetch_for_sending(self, winners: &List, position: usize, now: u64) {
        let later = |steps: usize| winners.as_slice().get(position + steps * FLITS_AHEAD).copied();
        if let Some(input_port) = later(3) {
            let output = self.input_port(input_port).candidate;
            prefetch(self.input(self.output(output).holder));
            prefetch(self.links(input_port));
            prefetch(self.links(output >> M::SHIFT));
        }
        for (steps, fetch) in [(2, Posts::prefetch_end as fn(Posts, u32, u32)), (1, Posts::prefetch_place)] {
            if let Some(input_port) = later(steps) {
                let (upstream, downstream) = (self.links(input_port), self.links(self.candidate_port(input_port)));
                fetch(self.credits, (now as u32).wrapping_add(u32::from(upstream.credit_delay)), upstream.credit_link);
                fetch(self.arrivals, (now as u32).wrapping_add(u32::from(downstream.flit_delay)), downstream.flit_link);
            }
        }
    }
}
