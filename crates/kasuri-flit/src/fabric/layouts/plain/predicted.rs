//! Arrivals at routers that predict.
//!
//! A flit that arrives in cycle T and is predicted rightly has been through switch traversal in T: it leaves one cycle earlier than
//! one that wins the switch in T, and earlier still where it passes serialisation by and its front does not wait for its end. So
//! it takes the place on its channel of a flit that won the switch `advance` cycles ago. Real winners of that time have taken
//! their places already, and nothing that comes later can meet it: a prediction only ever gets what real requests left.

use super::{InputVc, Plain};
use crate::fabric::features::prediction::{Addresses, CONNECTED, COUNTED, InputPort, PredictionUnit, WRONG, WrongPath};
use crate::fabric::layout::RouterLayout;
use crate::fabric::routing::Route;
use crate::fabric::vc_mask::VcMask;
use crate::state::list::List;
use crate::state::wheel::Wheel;
use crate::state::{NONE, Simulation, Tile};
use kasuri_model::router::{OnMiss, Switching};
use kasuri_network::routing::{Candidate, VirtualChannels};

/// A head that finds a prediction.
struct Head {
    slot: u32,
    input_port: u32,
    place: InputPort,
    packet: u32,
    /// Is the packet measured?
    counted: bool,
}

impl<M: VcMask> Simulation<'_, Plain<M>> {
    /// Flits enter their buffers, or pass on at once. Credits of this cycle have been taken before. Compiled for the processor at
    /// hand, as windows are, and apart from those, which most runs go through without it.
    #[inline(always)]
    pub(super) fn take_predicted_arrivals(&mut self, tile: u32, now: u64, active: &mut List, lists: &mut Tile) {
        #[cfg(target_arch = "x86_64")]
        if self.parameters.modern {
            // SAFETY: `modern` says that the processor has these features.
            return unsafe { self.take_predicted_arrivals_modern(tile, now, active, lists) };
        }
        self.take_predicted_arrivals_portably(tile, now, active, lists);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt,avx2")]
    #[inline(never)]
    fn take_predicted_arrivals_modern(&mut self, tile: u32, now: u64, active: &mut List, lists: &mut Tile) {
        self.take_predicted_arrivals_portably(tile, now, active, lists);
    }

    #[inline(always)]
    fn take_predicted_arrivals_portably(&mut self, tile: u32, now: u64, active: &mut List, lists: &mut Tile) {
        let Some(mut unit) = self.prediction.take() else { return };
        let mut ordinary = std::mem::take(&mut unit.sorting.ordinary);
        let mut possible = std::mem::take(&mut unit.sorting.possible);
        // Which flits are which nobody can foretell: no branch before they are told apart.
        let is_possible = |slot: u32| {
            let InputVc { output, flits, .. } = self.layout.input[slot];
            (unit.flags[slot] & (CONNECTED | WRONG) != 0) | (output == NONE) & (flits == 0)
        };
        // Where two predictions meet at an output, the lower input port goes first, whatever the order of the events.
        let shift = self.parameters.tile_shift;
        let addresses = Addresses { first: tile << shift, span: 1 << shift };
        let count =
            unit.sorting.sorter.part(self.in_flight.arrivals.events(now, tile), addresses, is_possible, &mut possible, &mut ordinary);
        self.in_flight.arrivals.clear(now, tile);
        for &slot in &ordinary[..count] {
            self.enter_buffer(slot, active, lists);
        }
        for &slot in &possible {
            if !self.passes_on(&mut unit, slot, now, lists) {
                self.enter_buffer(slot, active, lists);
            }
        }
        possible.clear();
        (unit.sorting.possible, unit.sorting.ordinary) = (possible, ordinary);
        self.prediction = Some(unit);
    }

    /// The ordinary arrival, as in `Pointers::take_arrivals`.
    #[inline(always)]
    fn enter_buffer(&mut self, slot: u32, active: &mut List, lists: &mut Tile) {
        let input = &mut self.layout.input[slot];
        let (before, output) = (input.flits, input.output);
        input.flits = before + 1;
        if self.parameters.switching == Switching::StoreAndForward && output == NONE {
            self.arrive_store_and_forward(slot, lists);
        } else if before == 0 {
            if output == NONE {
                lists.heads.push(slot);
            } else if self.layout.output[output].credits > 0 {
                self.pointers().set_ready(output, active);
            }
        }
    }

    /// Does a flit pass on without entering its buffer? Not asked of flits that surely do not.
    #[inline(always)]
    fn passes_on(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, now: u64, lists: &mut Tile) -> bool {
        let input = self.layout.input[slot];
        if input.flits > 0 {
            self.copy_after_wrong_head(unit, slot, now);
            return false;
        }
        if input.output == NONE {
            return self.head_passes_on(unit, slot, now, lists);
        }
        if unit.flags[slot] & CONNECTED == 0 {
            return false;
        }
        let (input_port, port) = (slot >> M::SHIFT, input.output >> M::SHIFT);
        let may = self.is_open(unit, input_port, port, now) && self.has_turn(unit, input.output, now);
        if may {
            self.cross(unit, slot, input.output, now, lists);
        } else {
            unit.flags[slot] &= !CONNECTED;
        }
        may
    }

    /// Is there a free place from an input port to an output port for a flit that arrives now?
    #[inline(always)]
    fn is_open(&self, unit: &PredictionUnit<'_>, input_port: u32, port: u32, now: u64) -> bool {
        // Channels on which a flit takes several cycles are busy that long after each of them.
        let is_busy = || self.wiring.period[port] > 1 && self.layout.busy_until[port] > now.saturating_sub(unit.rules.advance.into());
        !(self.parameters.periodic && is_busy()) && unit.is_open(input_port, port, now)
    }

    /// Has a virtual channel a credit, and would a flit that passes on now keep the order there?
    #[inline(always)]
    fn has_turn(&self, unit: &PredictionUnit<'_>, output: u32, now: u64) -> bool {
        self.layout.output[output].credits > 0 && unit.keeps_order(output, now)
    }

    /// A head in front of an empty buffer: does a prediction take it on?
    #[inline(always)]
    fn head_passes_on(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, now: u64, lists: &mut Tile) -> bool {
        let input_port = slot >> M::SHIFT;
        let place = unit.input_ports[input_port];
        let guess = unit.predictor.predict(place.index as usize);
        if guess.is_none() && !unit.predictor.knows() {
            return false;
        }
        let packet = self.front_packet(slot);
        let counted = self.packets.counts_predictions(&self.statistics.counting, packet);
        let head = Head { slot, input_port, place, packet, counted };
        if counted {
            unit.counters.attempts += 1;
            unit.input_ports[input_port].counts[1] += 1;
        }
        // Where real requests have the output already, the route need not be known to say so.
        if guess.is_some_and(|guess| !self.is_idle_for(unit, &head, place.base + u32::from(guess), now)) {
            unit.counters.refused += u64::from(counted);
            return false;
        }
        match self.right_route(unit, &head, guess) {
            Some(route) => self.take_right_path(unit, &head, route, now, lists),
            None => {
                self.try_wrong_path(unit, &head, guess.expect("an oracle is always right"), now);
                false
            }
        }
    }

    /// The route of a head if the guess is right.
    #[inline(always)]
    fn right_route(&mut self, unit: &mut PredictionUnit<'_>, head: &Head, guess: Option<u16>) -> Option<Route> {
        if let (Some(port), true) = (guess, unit.rules.any_up) {
            let (hop, state) = self.hop(head.slot, head.packet);
            if let Some(virtual_channels) = self.scenario.routing.accepts(&hop, state, port) {
                return Some(Route { candidate: Candidate::new(port, virtual_channels), state });
            }
        }
        let route = self.find_route(head.slot, head.packet);
        unit.keep_route(head.slot, route);
        (unit.predictor.knows() || Some(route.candidate.port) == guess).then_some(route)
    }

    /// Has an output port neither a request nor a flit of another packet in this cycle?
    #[inline(always)]
    fn is_idle_for(&self, unit: &PredictionUnit<'_>, head: &Head, port: u32, now: u64) -> bool {
        self.wiring.links[port].request_head == NONE && self.is_open(unit, head.input_port, port, now)
    }

    /// The virtual channel of an output port that a head gets, if no real request is in its way.
    fn free_channel(&mut self, unit: &PredictionUnit<'_>, head: &Head, port: u32, channels: VirtualChannels, now: u64) -> Option<u32> {
        if !self.is_idle_for(unit, head, port, now) {
            return None;
        }
        let flits = self.packets[head.packet as usize].flits;
        self.layout.set_left(head.slot, flits);
        let input = self.layout.input_slot_mut(head.slot);
        (input.request_first, input.request_last) = (channels.begin as u8, (channels.end - 1) as u8);
        let (begin, pointer) = (port << M::SHIFT, input.accept_pointer);
        let mut eligible = self.eligible(port, head.slot);
        let (mut best, mut best_distance) = (None, u32::MAX);
        while !eligible.is_empty() {
            let output = begin | eligible.first();
            eligible = eligible.rest();
            let distance = output.wrapping_sub(pointer);
            if self.has_turn(unit, output, now) && (best.is_none() || distance < best_distance) {
                (best, best_distance) = (Some(output), distance);
            }
        }
        best
    }

    /// A right prediction: the head crosses, unless something is in its way.
    #[inline(always)]
    fn take_right_path(&mut self, unit: &mut PredictionUnit<'_>, head: &Head, route: Route, now: u64, lists: &mut Tile) -> bool {
        let port = head.place.base + u32::from(route.candidate.port);
        let Some(output) = self.free_channel(unit, head, port, route.candidate.virtual_channels, now) else {
            unit.counters.refused += u64::from(head.counted);
            return false;
        };
        unit.note_head(head.input_port, route.candidate.port, head.counted);
        if head.counted {
            unit.counters.hits += 1;
            unit.input_ports[head.input_port].counts[2] += 1;
        }
        let flits = self.enter_router(head.slot, head.packet, route.state);
        self.layout.input_slot_mut(head.slot).length = flits;
        self.layout.input_slot_mut(head.slot).accept_pointer = output + 1;
        self.layout.output_slot_mut(output).grant_pointer = head.slot + 1;
        self.layout.take(head.slot, output);
        self.announce_packet(output, head.packet);
        unit.flags[head.slot] = CONNECTED | if head.counted { COUNTED } else { 0 };
        self.cross(unit, head.slot, output, now, lists);
        true
    }

    /// A flit crosses to the output that its packet holds and leaves.
    #[inline(always)]
    fn cross(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, output: u32, now: u64, lists: &mut Tile) {
        let (input_port, port) = (slot >> M::SHIFT, output >> M::SHIFT);
        unit.take_place(input_port, port, now);
        unit.note_passed(output, now);
        unit.counters.speculative_traversals += u64::from(unit.flags[slot] & COUNTED != 0);
        if self.parameters.periodic {
            self.occupy_early(unit, port, now);
        }
        self.statistics.flit_hops += 1;
        self.layout.output[output].credits -= 1;
        let upstream = self.wiring.links[input_port];
        let credit = upstream.credit_link + (slot & (M::BITS - 1));
        self.in_flight.credits.post((now as u32).wrapping_add(u32::from(upstream.credit_delay)), credit);
        let downstream = &mut self.wiring.links[port];
        downstream.sent += 1;
        let time = (now as u32).wrapping_add(u32::from(downstream.flit_delay - unit.rules.advance));
        self.in_flight.arrivals.post(time, downstream.flit_link + (output & (M::BITS - 1)));
        let buffer = &mut self.layout.input[slot];
        buffer.left -= 1;
        if buffer.left == 0 {
            buffer.output = NONE;
            self.layout.output[output].holder = NONE;
            unit.flags[slot] = 0;
            self.release(slot, output, lists);
        }
    }

    /// A flit keeps a channel of several cycles busy from its early place on.
    fn occupy_early(&mut self, unit: &PredictionUnit<'_>, port: u32, now: u64) {
        let end = (now + u64::from(self.wiring.period[port])).saturating_sub(u64::from(unit.rules.advance));
        self.layout.busy_until[port] = self.layout.busy_until[port].max(end);
    }

    /// A wrong prediction: unless hint bits tell in time, a copy of the head crosses where real requests leave room for it.
    fn try_wrong_path(&mut self, unit: &mut PredictionUnit<'_>, head: &Head, guess: u16, now: u64) {
        let port = head.place.base + u32::from(guess);
        let (hop, _) = self.hop(head.slot, head.packet);
        let hinted = |hint: &kasuri_network::predictor::hint::Hint<'_>| hint.shows_wrong(hop.router, guess, hop.source, hop.destination);
        if unit.hint.as_ref().is_some_and(hinted) {
            return;
        }
        let channels = self.scenario.router.entering(hop.destination, hop.available);
        if self.free_channel(unit, head, port, channels, now).is_none() {
            unit.counters.refused += u64::from(head.counted);
            return;
        }
        self.copy_wrongly(unit, head.input_port, port, head.counted, now);
        unit.wrong[head.slot] = WrongPath { port, until: (now + unit.rules.blind_cycles) as u32 };
        unit.flags[head.slot] |= WRONG;
    }

    /// Until route computation has found a wrong prediction out, the flits behind the head are copied as well.
    fn copy_after_wrong_head(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, now: u64) {
        if unit.flags[slot] & WRONG == 0 {
            return;
        }
        let (path, input_port) = (unit.wrong[slot], slot >> M::SHIFT);
        if path.lasts(now) && self.is_open(unit, input_port, path.port, now) {
            let counted = self.packets.counts_predictions(&self.statistics.counting, self.front_packet(slot));
            self.copy_wrongly(unit, input_port, path.port, counted, now);
        }
        if !path.lasts(now) {
            unit.flags[slot] &= !WRONG;
        }
    }

    /// A copy crosses the switch to a wrong output. Killed there it costs no channel; forwarded it costs the channel its time and
    /// is dropped at the other end, so it needs neither a buffer nor a virtual channel, and nothing ever waits for it.
    fn copy_wrongly(&mut self, unit: &mut PredictionUnit<'_>, input_port: u32, port: u32, counted: bool, now: u64) {
        unit.take_place(input_port, port, now);
        unit.counters.speculative_traversals += u64::from(counted);
        if unit.rules.on_miss == OnMiss::Forward {
            unit.counters.wasted_flits += u64::from(counted);
            if self.parameters.periodic {
                self.occupy_early(unit, port, now);
            }
        }
    }
}
