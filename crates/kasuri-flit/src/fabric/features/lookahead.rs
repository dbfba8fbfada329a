//! Lookahead whose adaptive routing decides as a head leaves for a router, by what that router knows in that cycle.
//!
//! Touches traversal (a head that leaves is noted), the end of a cycle (its next router decides) and routing (the decision is taken).

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::layout::RouterState;
use crate::state::lookahead::Decision;
use crate::state::tile::Tile;

impl<L: RouterState> Tile<'_, L> {
    /// A flit leaves an input slot by an output slot. If it is a head, the next router decides about it at the end of the cycle.
    #[inline(always)]
    pub(crate) fn note_departure(&mut self, slot: u32, output: u32, left: u16) {
        if self.routing.lookahead.is_none() {
            return;
        }
        let packet = self.front_packet(slot);
        let Some(lookahead) = &mut self.routing.lookahead else { return };
        let to = self.wiring.links[output >> L::Mask::SHIFT].flit_link + (output & (L::Mask::BITS - 1));
        let is_head = left + 1 == self.packets[packet].flits;
        if is_head && to < self.parameters.first_terminal_port << L::Mask::SHIFT {
            lookahead.departed.push((packet, to));
        }
    }

    /// The next routers decide about the heads that have left in this cycle.
    #[inline(always)]
    pub(crate) fn decide_on_departure(&mut self) {
        if self.routing.lookahead.is_some() {
            self.decide_about_departed();
        }
    }

    fn decide_about_departed(&mut self) {
        let Some(lookahead) = &mut self.routing.lookahead else { return };
        let mut departed = std::mem::take(&mut lookahead.departed);
        for (packet, slot) in departed.drain(..) {
            self.decide_ahead(packet, slot);
        }
        if let Some(lookahead) = &mut self.routing.lookahead {
            lookahead.departed = departed;
        }
    }

    /// Decides about a packet at the router whose input slot it goes to.
    pub(crate) fn decide_ahead(&mut self, packet: u32, slot: u32) {
        debug_assert_ne!(slot, NONE, "who decides is connected");
        let (state, _) = self.find_candidates(slot, packet);
        let Some(lookahead) = &mut self.routing.lookahead else { return };
        if lookahead.decisions.len() <= packet as usize {
            lookahead.decisions.resize_with(packet as usize + 1, Decision::default);
        }
        let decision = &mut lookahead.decisions[packet as usize];
        decision.candidates.clone_from(&self.routing.candidates);
        decision.state = state;
    }
}
