//! Crosspoint-buffered routers: a queue at each crossing of an input and an output. An output takes a flit from any of its queues,
//! whatever other outputs take from the same input in the same cycle, so that there is no switch to be allocated.

use crate::fabric::layouts::plain::departures::Departure;
use crate::fabric::layouts::plain::{Plain, Pointers};
use crate::record::list::List;
use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::blocks::Block;
use crate::state::tile::Tile;

impl<M: VcMask> Tile<'_, Plain<M>> {
    /// Each output port with a ready queue sends a flit. All choose before any sends, so that their order is of no consequence.
    pub(super) fn serve_outputs(&mut self, active: &List, chosen: &mut List, lists: &mut Block, now: u64) {
        let pointers = self.pointers();
        for &port in active.as_slice() {
            if !self.is_busy(port, now) {
                let ready = self.ready_by_shares(port);
                let output = pointers.pick_queue(port, ready);
                chosen.push(output);
                if let Some(shares) = &mut self.layout.switch.shares {
                    shares.charge(port, output & (M::BITS - 1));
                }
            }
        }
        self.statistics.flit_hops += chosen.len() as u64;
        for &output in chosen.as_slice() {
            let slot = self.layout.output[output].holder;
            // Pointers of its own for each: in between the columns are used otherwise.
            let is_tail = self.pointers().send_to(output, Departure::at(now));
            let port = output >> M::SHIFT;
            self.layout.input_port[port].vc_pointer = (slot & (M::BITS - 1)) as u16 + 1;
            if self.parameters.periodic {
                self.layout.busy_until[port] = now + u64::from(self.wiring.period[port]);
            }
            if is_tail {
                self.layout.output[output].holder = NONE;
                self.layout.input[slot].output = NONE;
                self.release(slot, output, lists);
            }
        }
        chosen.clear();
    }
}

impl<M: VcMask> Pointers<M> {
    /// Of these ready queues the one whose turn it is at an output port: by the input port, then by the virtual channel. Both pointers are the output's;
    /// the second one stands where an input-queued router keeps that of the input port of the same address.
    #[inline(always)]
    fn pick_queue(self, port: u32, mut rest: M) -> u32 {
        let base = port << M::SHIFT;
        let grant_pointer = self.output_port(port).grant_pointer;
        let vc_pointer = u32::from(self.input_port(port).vc_pointer);
        let (mut best, mut best_key) = (NONE, u64::MAX);
        while !rest.is_empty() {
            let output = base | rest.first();
            rest = rest.rest();
            let holder = self.output(output).holder;
            let port_distance = (holder >> M::SHIFT).wrapping_sub(port).wrapping_sub(grant_pointer as u32);
            let vc_distance = (holder & (M::BITS - 1)).wrapping_sub(vc_pointer);
            let key = u64::from(port_distance) << 32 | u64::from(vc_distance);
            if best == NONE || key < best_key {
                (best, best_key) = (output, key);
            }
        }
        best
    }
}
