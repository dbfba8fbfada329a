//! Flits that pass a router on a prediction, in every layout that has predictors ([`Predicts`]).
//!
//! A flit that arrives in cycle T and is predicted rightly has been through switch traversal in T: it leaves one cycle earlier than
//! one that wins the switch in T, and earlier still where it passes serialisation by and its front does not wait for its end. So
//! it takes the place on its channel of a flit that won the switch `advance` cycles ago. Real winners of that time have taken
//! their places already, and nothing that comes later can meet it: a prediction only ever gets what real requests left.
//!
//! Express packets ([`Predictor::is_express`](kasuri_network::predictor::Predictor::is_express)) are announced a cycle ahead and go before
//! real requests: in the cycle before their arrival they take virtual channels and places of the switch before these are allocated, and the
//! allocation leaves them out.
//!
//! Touches arrivals: a flit that is predicted rightly passes on at once, a copy of one that is predicted wrongly crosses.

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::blocks::Block;
use crate::state::layout::RouterState;
use crate::state::prediction::{CONNECTED, COUNTED, InputPort, PredictionUnit, TRIED, WRONG, WrongPath};
use crate::state::routing::Route;
use crate::state::tile::Tile;
use kasuri_network::routing::{Candidate, VirtualChannels};

/// A head that finds a prediction.
pub(crate) struct Head {
    pub(crate) slot: u32,
    input_port: u32,
    place: InputPort,
    pub(crate) packet: u32,
    /// Is the packet measured?
    counted: bool,
}

/// A layout whose routers predict.
pub(crate) trait Predicts: RouterState {
    /// Is there a free place from an input slot to an output port for a flit that arrives now?
    fn is_open(tile: &Tile<'_, Self>, unit: &PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> bool;

    /// Does a head wait for a virtual channel of an output port?
    fn is_wanted(tile: &Tile<'_, Self>, port: u32, now: u64) -> bool;

    /// Has a virtual channel a credit, and would a flit that passes on now keep the order there?
    fn has_turn(tile: &Tile<'_, Self>, unit: &PredictionUnit<'_>, output: u32, now: u64) -> bool;

    /// The free virtual channel of an output port that a head takes which nobody else asks for.
    fn choose_channel(
        tile: &mut Tile<'_, Self>,
        unit: &PredictionUnit<'_>,
        slot: u32,
        port: u32,
        channels: VirtualChannels,
        now: u64,
    ) -> Option<u32>;

    /// The route of a head if the guess is right; nobody guesses where the predictor knows.
    fn right_route(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, head: &Head, guess: Option<u16>, now: u64) -> Option<Route>;

    /// Gives an output slot to a head that crosses at once, a packet of so many flits.
    fn connect_head(tile: &mut Tile<'_, Self>, head: &Head, output: u32, flits: u16, now: u64);

    /// A flit crosses to the output that its packet holds and leaves.
    fn cross_early(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, slot: u32, output: u32, now: u64, lists: &mut Block);

    /// A copy of a flit crosses to a wrong output port, and leaves if wrong flits are forwarded. Returns when it arrives then.
    fn copy(tile: &mut Tile<'_, Self>, unit: &mut PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> u64;

    /// A copy takes a virtual channel and a credit of it.
    fn lend(tile: &mut Tile<'_, Self>, output: u32);

    /// The credit of a copy is back, and with that of the last one the virtual channel.
    fn take_back(tile: &mut Tile<'_, Self>, output: u32, is_last: bool, lists: &mut Block);
}

impl PredictionUnit<'_> {
    /// Something is tried for a head.
    #[inline(always)]
    fn note_attempt(&mut self, head: &Head) {
        if head.counted {
            self.counters.attempts += 1;
            self.flags[head.slot] |= TRIED;
            self.input_ports[head.input_port].counts[1] += 1;
        }
    }
}

impl<L: Predicts> Tile<'_, L> {
    /// Does a flit pass on without entering its buffer? Not asked of flits that surely do not.
    #[inline(always)]
    pub(crate) fn passes_on(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, now: u64, lists: &mut Block) -> bool {
        let output = self.layout.held_output(slot);
        if self.layout.flits(slot) > 0 {
            self.copy_after_wrong_head(unit, slot, now);
            return false;
        }
        if output == NONE {
            return self.head_passes_on(unit, slot, now, lists);
        }
        if unit.flags[slot] & CONNECTED == 0 {
            return false;
        }
        let may = L::is_open(self, unit, slot, output >> L::Mask::SHIFT, now) && L::has_turn(self, unit, output, now);
        if may {
            L::cross_early(self, unit, slot, output, now, lists);
        } else {
            unit.flags[slot] &= !CONNECTED;
        }
        may
    }

    /// A head in front of an empty buffer: does a prediction take it on?
    #[inline(always)]
    fn head_passes_on(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, now: u64, lists: &mut Block) -> bool {
        let input_port = slot >> L::Mask::SHIFT;
        let place = unit.input_ports[input_port];
        let guess = unit.predictor.predict(place.index as usize);
        if guess.is_none() && !unit.predictor.knows() {
            return false;
        }
        let packet = self.front_packet(slot);
        let counted = self.packets.counts_predictions(&self.statistics.counting, packet);
        let head = Head { slot, input_port, place, packet, counted };
        if unit.rules.is_express {
            let Some(route) = L::right_route(self, unit, &head, guess, now) else { return false };
            unit.note_attempt(&head);
            return self.forward_on_hit(unit, &head, route, now, lists);
        }
        unit.note_attempt(&head);
        // Where real requests have the output already, the route need not be known to say so.
        if guess.is_some_and(|guess| !self.is_idle_for(unit, slot, place.base + u32::from(guess), now)) {
            unit.counters.refused += u64::from(counted);
            return false;
        }
        match L::right_route(self, unit, &head, guess, now) {
            Some(route) => self.forward_on_hit(unit, &head, route, now, lists),
            None => {
                self.try_wrong_path(unit, &head, guess.expect("an oracle is always right"), now);
                false
            }
        }
    }

    /// The output port that the routing would accept for a head in place of its own answer.
    #[inline(always)]
    pub(crate) fn accepted_route(&self, unit: &PredictionUnit<'_>, head: &Head, guess: Option<u16>) -> Option<Route> {
        let port = guess.filter(|_| unit.rules.any_up)?;
        let (hop, state) = self.hop(head.slot, head.packet);
        let virtual_channels = self.routing.function.accepts(&hop, state, port)?;
        Some(Route { candidate: Candidate::new(port, virtual_channels), state })
    }

    /// The only answer of the routing for a head, if the guess is right.
    #[inline(always)]
    pub(crate) fn only_route(&mut self, unit: &mut PredictionUnit<'_>, head: &Head, guess: Option<u16>) -> Option<Route> {
        let route = self.find_route(head.slot, head.packet);
        unit.keep_route(head.slot, route);
        (unit.predictor.knows() || Some(route.candidate.port) == guess).then_some(route)
    }

    /// Has an output port neither a request nor a flit of another packet in this cycle? Who goes first does not ask for requests.
    #[inline(always)]
    pub(crate) fn is_idle_for(&self, unit: &PredictionUnit<'_>, slot: u32, port: u32, now: u64) -> bool {
        (unit.rules.is_express || !L::is_wanted(self, port, now)) && L::is_open(self, unit, slot, port, now)
    }

    /// The virtual channel of an output port that a head gets, if no real request is in its way.
    #[inline(always)]
    pub(crate) fn free_channel(
        &mut self,
        unit: &PredictionUnit<'_>,
        head: &Head,
        port: u32,
        channels: VirtualChannels,
        now: u64,
    ) -> Option<u32> {
        if !self.is_idle_for(unit, head.slot, port, now) {
            return None;
        }
        let flits = self.packets[head.packet].flits;
        self.layout.set_left(head.slot, flits);
        L::choose_channel(self, unit, head.slot, port, channels, now)
    }

    /// A right prediction: the head crosses, unless something is in its way.
    #[inline(always)]
    fn forward_on_hit(&mut self, unit: &mut PredictionUnit<'_>, head: &Head, route: Route, now: u64, lists: &mut Block) -> bool {
        let port = head.place.base + u32::from(route.candidate.port);
        let Some(output) = self.free_channel(unit, head, port, route.candidate.virtual_channels, now) else {
            unit.counters.refused += u64::from(head.counted);
            return false;
        };
        unit.note_head(head.slot, head.input_port, route.candidate.port, head.counted, true);
        if head.counted {
            unit.counters.hits += 1;
            unit.input_ports[head.input_port].counts[2] += 1;
        }
        let flits = self.enter_router(head.slot, head.packet, route.state);
        L::connect_head(self, head, output, flits, now);
        self.announce_packet(output, head.packet);
        unit.flags[head.slot] = CONNECTED | if head.counted { COUNTED } else { 0 };
        L::cross_early(self, unit, head.slot, output, now, lists);
        true
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
        let Some(output) = self.free_channel(unit, head, port, channels, now) else {
            unit.counters.refused += u64::from(head.counted);
            return;
        };
        self.forward_on_miss(unit, head.slot, output, head.counted, now);
        unit.wrong[head.slot] = WrongPath { output, until: (now + unit.rules.blind_cycles) as u32 };
        unit.flags[head.slot] |= WRONG;
    }

    /// Until route computation has found a wrong prediction out, the flits behind the head are copied as well.
    fn copy_after_wrong_head(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, now: u64) {
        if unit.flags[slot] & WRONG == 0 {
            return;
        }
        let path = unit.wrong[slot];
        // A copy that leaves needs the virtual channel of the one before it, and a place of its own.
        let has_place = !unit.forwards() || unit.copies.hold(path.output) && self.room(path.output) > 0;
        if path.lasts(now) && has_place && L::is_open(self, unit, slot, path.output >> L::Mask::SHIFT, now) {
            let counted = self.packets.counts_predictions(&self.statistics.counting, self.front_packet(slot));
            self.forward_on_miss(unit, slot, path.output, counted, now);
        }
        if !path.lasts(now) {
            unit.flags[slot] &= !WRONG;
        }
    }

    /// A copy crosses the switch to a wrong output. Killed there it costs no channel; forwarded it costs the channel its time, and a
    /// virtual channel with a place of its buffer until it is dropped at the other end. It can delay others only by its own transmission time.
    fn forward_on_miss(&mut self, unit: &mut PredictionUnit<'_>, slot: u32, output: u32, counted: bool, now: u64) {
        let arrival = L::copy(self, unit, slot, output >> L::Mask::SHIFT, now);
        unit.counters.speculative_traversals += u64::from(counted);
        if unit.forwards() {
            unit.counters.wasted_flits += u64::from(counted);
            self.lend(unit, output, arrival);
        }
    }
}
