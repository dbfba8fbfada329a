//! Separable input-first switch allocation with round-robin arbiters, in two passes over the ports that are active.

use crate::fabric::layouts::plain::{Plain, SwitchAllocation};
use crate::record::allocators::allocator::from_pointer;
use crate::record::list::List;
use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::tile::Tile;

impl<M: VcMask> Tile<'_, Plain<M>> {
    /// Each input port picks an output port, each output port one of those that picked it; a pointer moves one beyond the partner.
    pub(super) fn allocate_switch_input_first(&mut self, active: &List, winners: &mut List, now: u64) {
        for &port in active.as_slice() {
            if !self.is_busy(port, now) {
                self.let_inputs_pick(port, now);
            }
        }
        let Plain { input_port: ports, switch: SwitchAllocation { picks, row_pointer, column_pointer, .. }, .. } = &mut self.layout;
        for input_port in picks.inputs.drain(..) {
            let port = ports[input_port].candidate >> M::SHIFT;
            let rival = picks.chosen[port];
            if rival == NONE {
                picks.outputs.push(port);
            }
            let distance = |input_port: u32| from_pointer(input_port, column_pointer[port]);
            if rival == NONE || distance(input_port) < distance(rival) {
                picks.chosen[port] = input_port;
            }
            if rival != NONE {
                let loser = if picks.chosen[port] == rival { input_port } else { rival };
                ports[loser].candidate = NONE;
            }
        }
        for port in picks.outputs.drain(..) {
            let input_port = std::mem::replace(&mut picks.chosen[port], NONE);
            row_pointer[input_port] = port + 1;
            column_pointer[port] = input_port + 1;
            winners.push(input_port);
        }
    }

    /// Every input port that holds ready virtual channels of this port takes the first of them for its candidate, by its own pointers, if
    /// it comes before that of another port.
    #[inline(always)]
    fn let_inputs_pick(&mut self, port: u32, now: u64) {
        let unit = self.prediction.as_deref();
        let Plain { output, output_port, input_port: ports, switch: SwitchAllocation { picks, row_pointer, .. }, .. } = &mut self.layout;
        let mut ready = output_port[port].ready;
        while !ready.is_empty() {
            let slot = port << M::SHIFT | ready.first();
            ready = ready.rest();
            let holder = output[slot].holder;
            let input_port = holder >> M::SHIFT;
            if unit.is_some_and(|unit| unit.is_promised(input_port, port, now)) {
                continue;
            }
            let input = &mut ports[input_port];
            let vc_distance = from_pointer(holder & (M::BITS - 1), u32::from(input.vc_pointer));
            let distance = u64::from(from_pointer(port, row_pointer[input_port])) << 32 | u64::from(vc_distance);
            if input.candidate == NONE {
                picks.inputs.push(input_port);
            }
            if input.candidate == NONE || distance < picks.distance[input_port] {
                input.candidate = slot;
                picks.distance[input_port] = distance;
            }
        }
    }
}
