//! The loops that run once per flit: arrivals, credits, switch allocation and traversal of plain routers.
//!
//! [`Lanes`] holds bare pointers to the columns. As local values they stay in registers, where fields of `Simulation` would be
//! loaded again after every store: the loops need half the instructions. Each loop does the same as its general counterpart in
//! `step.rs`; the tests hold the two together.

use crate::list::List;
use crate::state::{InputPort, InputVc, NONE, OutputPort, OutputVc};
use crate::vc_mask::VcMask;
use crate::wheel::Posts;

/// Pointers to the columns of a simulation, valid while it is not moved or changed otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<M> {
    pub(crate) input: *mut InputVc,
    pub(crate) output: *mut OutputVc,
    pub(crate) output_port: *mut OutputPort<M>,
    pub(crate) input_port: *mut InputPort,
    pub(crate) arrivals: Posts,
    pub(crate) credits: Posts,
    #[cfg(debug_assertions)]
    pub(crate) slots: u32,
}

// SAFETY of all accessors: addresses come from the engine's own tables and lie within the columns; where assertions are on each
// access is checked. No two references to the same entry live at the same time.
impl<M: VcMask> Lanes<M> {
    #[inline(always)]
    fn check(self, _slot: u32) {
        #[cfg(debug_assertions)]
        assert!(_slot < self.slots, "slot {_slot} of {}", self.slots);
    }

    #[inline(always)]
    fn input<'l>(self, slot: u32) -> &'l mut InputVc {
        self.check(slot);
        unsafe { &mut *self.input.add(slot as usize) }
    }

    #[inline(always)]
    fn output<'l>(self, slot: u32) -> &'l mut OutputVc {
        self.check(slot);
        unsafe { &mut *self.output.add(slot as usize) }
    }

    #[inline(always)]
    fn output_port<'l>(self, port: u32) -> &'l mut OutputPort<M> {
        self.check(port << M::SHIFT);
        unsafe { &mut *self.output_port.add(port as usize) }
    }

    #[inline(always)]
    fn input_port<'l>(self, port: u32) -> &'l mut InputPort {
        self.check(port << M::SHIFT);
        unsafe { &mut *self.input_port.add(port as usize) }
    }

    /// Marks an output virtual channel as ready and its port as active.
    #[inline(always)]
    pub(crate) fn set_ready(self, slot: u32, active: &mut List) {
        let address = slot >> M::SHIFT;
        let port = self.output_port(address);
        port.ready = port.ready.or(M::bit(slot & (M::BITS - 1)));
        if !port.listed {
            port.listed = true;
            active.push(address);
        }
    }

    /// Flits enter their buffers. One that finds an empty buffer makes its virtual channel ready, or is a new head.
    #[inline(always)]
    pub(crate) fn take_arrivals(self, events: &[u32], active: &mut List, heads: &mut List) {
        for &slot in events {
            let input = self.input(slot);
            let before = input.flits;
            input.flits = before + 1;
            if before == 0 {
                let output = input.output;
                if output == NONE {
                    heads.push(slot);
                } else if self.output(output).credits > 0 {
                    self.set_ready(output, active);
                }
            }
        }
    }

    /// Credits come back.
    #[inline(always)]
    pub(crate) fn take_credits(self, events: &[u32], active: &mut List) {
        for &slot in events {
            let output = self.output(slot);
            let before = output.credits;
            output.credits = before + 1;
            if before == 0 && output.holder != NONE && self.input(output.holder).flits > 0 {
                self.set_ready(slot, active);
            }
        }
    }

    /// iSLIP of one iteration over the ports of the tile: see `Simulation::allocate_switch`.
    #[inline(always)]
    pub(crate) fn allocate_switch(self, active: &List, winners: &mut List) {
        for &port in active.as_slice() {
            let output = self.pick_ready(port);
            let input_port = self.output(output).holder >> M::SHIFT;
            self.offer(input_port, output, winners);
        }
    }

    /// The output port grants: the first requesting input port at or after its pointer, and of its virtual channels the first
    /// at or after that port's pointer.
    #[inline(always)]
    pub(crate) fn pick_ready(self, port: u32) -> u32 {
        let base = port << M::SHIFT;
        let OutputPort { ready, grant_pointer, .. } = *self.output_port(port);
        let mut best = base | ready.first();
        let mut rest = ready.rest();
        if rest.is_empty() {
            return best;
        }
        let mut best_key = self.grant_key(port, grant_pointer, best);
        while !rest.is_empty() {
            let output = base | rest.first();
            rest = rest.rest();
            let key = self.grant_key(port, grant_pointer, output);
            best = if key < best_key { output } else { best };
            best_key = best_key.min(key);
        }
        best
    }

    #[inline(always)]
    fn grant_key(self, port: u32, grant_pointer: i16, output: u32) -> u64 {
        let holder = self.output(output).holder;
        let input_port = holder >> M::SHIFT;
        let port_distance = input_port.wrapping_sub(port).wrapping_sub(grant_pointer as u32);
        let vc_distance = (holder & (M::BITS - 1)).wrapping_sub(u32::from(self.input_port(input_port).vc_pointer));
        u64::from(port_distance) << 32 | u64::from(vc_distance)
    }

    /// The input port accepts the first granting output port at or after its pointer.
    #[inline(always)]
    pub(crate) fn offer(self, input_port: u32, output: u32, winners: &mut List) {
        let input = self.input_port(input_port);
        let held = input.candidate;
        if held == NONE {
            input.candidate = output;
            winners.push(input_port);
            return;
        }
        let pointer = input_port.wrapping_add(input.accept_pointer as u32);
        let distance = |output: u32| (output >> M::SHIFT).wrapping_sub(pointer);
        if distance(output) < distance(held) {
            input.candidate = output;
        }
    }

    /// Sends one flit from the front of the buffer that holds the candidate of an input port. Returns the output slot, the
    /// input slot, and whether the flit was a tail.
    #[inline(always)]
    pub(crate) fn send(self, input_port: u32, now: u32) -> (u32, u32, bool) {
        let input = self.input_port(input_port);
        let output = input.candidate;
        input.candidate = NONE;
        let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
        let account = self.output(output);
        let slot = account.holder;
        let credits = account.credits - 1;
        account.credits = credits;
        let buffer = self.input(slot);
        let (flits, left) = (buffer.flits - 1, buffer.left - 1);
        (buffer.flits, buffer.left) = (flits, left);

        let input_vc = slot & (M::BITS - 1);
        let towards = port.wrapping_sub(input_port);
        input.accept_pointer = towards.wrapping_add(1) as i16;
        input.vc_pointer = input_vc as u16 + 1;
        self.credits.post(now.wrapping_add(u32::from(input.credit_delay)), input.link + input_vc);

        let out = self.output_port(port);
        out.grant_pointer = 1u32.wrapping_sub(towards) as i16;
        out.sent += 1;
        self.arrivals.post(now.wrapping_add(u32::from(out.flit_delay)), out.link + vc);
        let stops = flits == 0 || credits == 0 || left == 0;
        out.ready = out.ready.without(if stops { M::bit(vc) } else { M::default() });
        (output, slot, left == 0)
    }

    /// Ports that still have something ready stay active.
    #[inline(always)]
    pub(crate) fn keep_active(self, active: &mut List) {
        let mut kept = 0;
        for position in 0..active.len() {
            let address = active.at(position);
            active.set(kept, address);
            let port = self.output_port(address);
            let stays = !port.ready.is_empty();
            port.listed = stays;
            kept += usize::from(stays);
        }
        active.truncate(kept);
    }
}
