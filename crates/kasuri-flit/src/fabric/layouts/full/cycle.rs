//! A cycle of routers in the full layout, step by step.

use crate::fabric::layouts::full::{Allocators, Bid, Full, InputVc, StepLists, Unit, Urgency};
use crate::record::allocators::allocator::Request;
use crate::record::list::put_back;
use crate::record::marks::{NEVER, NONE};
use crate::record::prefetch::prefetch;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::full_parameters::FullParameters;
use crate::state::layout::RouterState;
use crate::state::routing::Route;
use crate::state::tile::Tile;
use kasuri_model::router::{Bidding, Priority, Speculation, Switching, VcRelease};
use kasuri_network::routing::Candidate;

/// Events between asking for a cache line and its use: a memory access takes as long as a few of them.
const PREFETCH_DISTANCE: usize = 8;

impl<M: VcMask> Tile<'_, Full<M>> {
    /// Takes what arrives, then lets every router of the block that is awake take its steps.
    pub(super) fn full_cycle(&mut self, block: u32, now: u64) {
        let mut events = std::mem::take(&mut self.in_flight.due);
        if self.prediction.is_some() {
            // A prediction counts on what is known of credits and requests when the flit arrives.
            self.take_credits(block, now, &mut events);
            self.take_predicted_arrivals(block, now, &mut events);
        } else {
            self.take_arrivals(block, now, &mut events);
            self.take_credits(block, now, &mut events);
        }
        put_back(&mut self.in_flight.due, events);
        self.layout.wake_sleepers(block, now);
        let mut awake = std::mem::take(&mut self.layout.sleep.awake[block as usize]);
        let mut masks = self.layout.step.masks.take();
        let steps = self.layout.clock.steps(now);
        awake.retain(|&number| {
            let mut stays = false;
            for step in steps.clone() {
                stays = match &mut masks {
                    Some(masks) => self.masked_step(number as usize, step, now, masks),
                    None => self.router_step(number as usize, step, now),
                };
            }
            self.layout.units[number as usize].is_awake = stays;
            if !stays {
                self.layout.set_alarm(block, number);
            }
            stays
        });
        self.layout.step.masks = masks;
        self.layout.sleep.awake[block as usize] = awake;
    }

    fn take_arrivals(&mut self, block: u32, now: u64, events: &mut Vec<u32>) {
        self.in_flight.arrivals.take(now, block, events);
        for position in 0..events.len() {
            if let Some(&later) = events.get(position + PREFETCH_DISTANCE) {
                prefetch(&self.layout.input[later]);
            }
            self.take_arrival(events[position], now);
        }
        events.clear();
    }

    fn take_credits(&mut self, block: u32, now: u64, events: &mut Vec<u32>) {
        self.in_flight.credits.take(now, block, events);
        for position in 0..events.len() {
            if let Some(&later) = events.get(position + PREFETCH_DISTANCE) {
                prefetch(&self.layout.output[later]);
            }
            self.take_credit(events[position]);
        }
        events.clear();
    }

    /// A flit enters its buffer.
    pub(super) fn take_arrival(&mut self, slot: u32, now: u64) {
        if let Some(came) = self.layout.came.get_mut(slot as usize) {
            came.push_back(now);
        }
        let input = &mut self.layout.input[slot];
        input.flits += 1;
        let (flits, is_free) = (input.flits, input.output == NONE);
        if !is_free & (flits == 1) {
            self.layout.note_bidder(slot);
        }
        self.layout.wake(slot >> M::SHIFT);
        let whole = self.parameters.switching == Switching::StoreAndForward;
        let is_head = if whole { is_free && flits == self.packets[self.front_packet(slot)].flits } else { is_free & (flits == 1) };
        if is_head {
            // Its route is computed when its router's turn comes.
            prefetch(&self.packets[self.front_packet(slot)]);
            self.unit_of(slot).heads.push(slot);
        }
    }

    /// A credit comes back.
    fn take_credit(&mut self, slot: u32) {
        self.layout.output[slot].credits += 1;
        let is_free = !self.layout.port[slot >> M::SHIFT].free.and(M::bit(slot & (M::BITS - 1))).is_empty();
        if let Some(buffers) = &mut self.buffers.shared {
            buffers.free(slot, !is_free);
        }
        let output = self.layout.output[slot];
        if (output.holder != NONE) & (output.credits == 1) {
            self.layout.note_bidder(output.holder);
        }
        let all_back = (output.holder == NONE) & (output.credits == u32::from(self.parameters.buffer_flits));
        if all_back & (self.parameters.release == VcRelease::TailCredit) {
            self.layout.set_free_channel(slot);
        }
        self.layout.wake(slot >> M::SHIFT);
    }

    fn unit_of(&mut self, slot: u32) -> &mut Unit {
        let number = self.layout.unit_of_port[slot >> M::SHIFT];
        &mut self.layout.units[number as usize]
    }

    /// One step: route computation, virtual-channel allocation, switch allocation and traversal, each for those that were there before.
    fn router_step(&mut self, number: usize, step: u64, now: u64) -> bool {
        let at_once = self.parameters.route_cycles == 0;
        if at_once {
            self.compute_routes(number, step);
        }
        if self.parameters.bidding == Bidding::Speculative {
            self.note_speculative_bids(number, step, now);
        }
        self.layout.free_wanted(number, step, at_once);
        let mut asked = self.allocate_channels(number, step);
        asked |= self.layout.free_late(number);
        if !at_once {
            self.compute_routes(number, step);
        }
        asked |= self.cross_on_kept_paths(number, now);
        asked |= self.throw_flits_away(number, step, now);
        asked |= self.allocate_crossing(number, step, now);
        if self.parameters.bidding == Bidding::Speculative && self.layout.full.router.speculation == Speculation::Separate {
            self.grant_speculative_bids(number);
        }
        self.traverse_all(number, step, now);
        asked || self.has_to_come(number, step)
    }

    /// Has a router something to do in a later step without a new event?
    pub(super) fn has_to_come(&self, number: usize, step: u64) -> bool {
        let comes = |&slot: &u32| self.layout.input[slot].ready > step;
        self.has_heads_to_come(number, step) || self.layout.units[number].active.iter().any(comes)
    }

    /// Will a head bid for a virtual channel in a later step for the first time?
    pub(super) fn has_heads_to_come(&self, number: usize, step: u64) -> bool {
        let unit = &self.layout.units[number];
        !unit.heads.is_empty() || unit.waiting.iter().any(|&slot| self.layout.input[slot].ready > step)
    }

    /// New heads learn where they may go.
    pub(super) fn compute_routes(&mut self, number: usize, step: u64) {
        if self.layout.units[number].heads.is_empty() {
            return;
        }
        let mut heads = std::mem::take(&mut self.layout.units[number].heads);
        if self.routing.claims.is_some() {
            heads.sort_unstable();
        }
        for slot in heads.drain(..) {
            let packet = self.front_packet(slot);
            if self.is_dead(number) {
                self.enter_router(slot, packet, self.packets[packet].route_state);
                self.throw_away(number, slot);
                continue;
            }
            let ahead = self.routing.lookahead.as_mut().map(|lookahead| lookahead.take(packet, &mut self.routing.candidates));
            let state = if self.layout.full.offers_several {
                let state = ahead.unwrap_or_else(|| self.find_candidates(slot, packet).0);
                self.layout.heads.routes[slot as usize].clone_from(&self.routing.candidates);
                state
            } else {
                let known = self.prediction.as_mut().and_then(|unit| unit.take_route(slot));
                let Route { candidate, state } = match (ahead, known) {
                    (Some(state), _) => Route { candidate: self.routing.candidates[0], state },
                    (None, Some(route)) => route,
                    (None, None) => self.find_route(slot, packet),
                };
                self.layout.input[slot].candidate = candidate;
                state
            };
            let flits = self.enter_router(slot, packet, state);
            if !self.keep_living(number, slot) {
                self.throw_away(number, slot);
                continue;
            }
            if !self.layout.full.offers_several {
                let candidate = self.layout.input[slot].candidate;
                self.claim(slot, &candidate, flits);
                self.tell_predictor(slot, packet, candidate.port);
            }
            self.note_urgency(number, slot, packet);
            let unit = &mut self.layout.units[number];
            let wait = unit.computation.wait(step);
            unit.waiting.push(slot);
            self.layout.input[slot].ready = step + wait + u64::from(self.parameters.route_cycles);
        }
        self.layout.units[number].heads = heads;
    }

    /// The router knows the output of a packet.
    fn tell_predictor(&mut self, slot: u32, packet: u32, output: u16) {
        if let Some(unit) = &mut self.prediction {
            let counted = self.packets.counts_predictions(&self.statistics.counting, packet);
            unit.note_head(slot, slot >> M::SHIFT, output, counted, false);
        }
    }

    /// Notes how urgent the packet at the front of a buffer is, where allocators ask.
    pub(super) fn note_urgency(&mut self, number: usize, slot: u32, packet: u32) {
        if matches!(self.layout.units[number].allocators, Allocators::OnRequests { .. }) {
            let (created, priority) = (self.packets[packet].created, self.lasting_priority(packet));
            self.layout.heads.urgency[slot] = Urgency { created, priority };
        }
    }

    /// The priority of a packet, as far as it does not change while the packet is in the router.
    fn lasting_priority(&self, packet: u32) -> i64 {
        let record = &self.packets[packet];
        match self.layout.full.router.priority {
            Priority::Class => self.scenario.classes.get(usize::from(record.class)).map_or(0, |class| i64::from(class.priority)),
            Priority::Age => -(record.created as i64),
            Priority::NetworkAge => -(record.injected as i64),
            Priority::HopCount => i64::from(record.hops),
            Priority::Sequence => -i64::from(record.serial),
            Priority::None | Priority::LocalAge | Priority::QueueLength => 0,
        }
    }

    /// The virtual channels of a candidate's port that a head may take now.
    pub(super) fn open_channels(&self, slot: u32, port: u32, candidate: &Candidate) -> M {
        let range = M::range(u32::from(candidate.virtual_channels.begin), u32::from(candidate.virtual_channels.end));
        let free = self.layout.port[port].free.and(range);
        let needed = match self.parameters.switching {
            Switching::Wormhole => u32::from(self.layout.full.router.vc_busy_when_full),
            _ => u32::from(self.layout.input[slot].left),
        };
        if needed == 0 {
            return free;
        }
        let roomy = members(free).filter(|&vc| self.room(port << M::SHIFT | vc) >= needed);
        roomy.fold(M::default(), |set, vc| set.or(M::bit(vc)))
    }

    /// Heads bid for the free virtual channels of all their candidates. Did any?
    fn allocate_channels(&mut self, number: usize, step: u64) -> bool {
        if self.layout.units[number].waiting.is_empty() {
            return false;
        }
        let mut requests = std::mem::take(&mut self.layout.step.requests);
        requests.clear();
        self.request_channels(number, step, &mut requests);
        // Who waits for what is not free moves on the search of allocators that turn by themselves.
        let asked = !requests.is_empty() || self.layout.full.vc_turns && self.someone_waits(number, step);
        if asked {
            requests.sort_unstable_by_key(|request| (request.row, request.column));
            let mut granted = std::mem::take(&mut self.layout.step.granted);
            granted.clear();
            if let Allocators::OnRequests { channels, .. } = &mut self.layout.units[number].allocators {
                channels.allocate(&requests, &mut granted);
            }
            let (base, channels) = (self.layout.units[number].base, self.layout.full.router.virtual_channels);
            let slot = |place: u32| ((base + place / channels) << M::SHIFT) | (place % channels);
            for &position in &granted {
                let Request { row, column, .. } = requests[position as usize];
                self.hold_channel(number, slot(row), slot(column), step);
            }
            self.layout.step.granted = granted;
            self.leave_waiting(number);
        }
        self.layout.step.requests = requests;
        asked
    }

    /// Does any head wait for a virtual channel in this step?
    fn someone_waits(&self, number: usize, step: u64) -> bool {
        self.layout.units[number].waiting.iter().any(|&slot| self.layout.input[slot].ready <= step)
    }

    /// Does any flit without a path of its own wait for the switch in this step, or for a credit to ask for it?
    fn someone_stands(&self, number: usize, step: u64) -> bool {
        let has_path = |slot| self.layout.step.holders.contains(&slot);
        let stands = |&slot: &u32| self.layout.input[slot].ready <= step && self.layout.input[slot].flits > 0 && !has_path(slot);
        self.layout.units[number].active.iter().any(stands) || self.layout.full.speculates && self.someone_waits(number, step)
    }

    fn request_channels(&self, number: usize, step: u64, requests: &mut Vec<Request>) {
        let unit = &self.layout.units[number];
        let channels = self.layout.full.router.virtual_channels;
        for &slot in &unit.waiting {
            if self.layout.input[slot].ready > step {
                continue;
            }
            let created = self.layout.heads.urgency[slot].created;
            let priority = self.layout.priority(slot);
            let row = ((slot >> M::SHIFT) - unit.base) * channels + (slot & (M::BITS - 1));
            for candidate in self.layout.candidates(slot) {
                let place = u32::from(candidate.port) * channels;
                let prefers_empty = self.layout.full.router.vc_prefer_empty;
                let port = unit.base + u32::from(candidate.port);
                let is_filled = |vc: u32| self.layout.output[port << M::SHIFT | vc].credits < u32::from(self.parameters.buffer_flits);
                // Any empty one goes before all others.
                let preference = |vc: u32| i64::from(candidate.priority) - if prefers_empty && is_filled(vc) { 1 << 16 } else { 0 };
                requests.extend(members(self.open_channels(slot, port, candidate)).map(|vc| Request {
                    row,
                    column: place + vc,
                    preference: preference(vc),
                    priority,
                    created,
                }));
            }
        }
    }

    /// Gives a virtual channel to the head that asked for it.
    pub(super) fn hold_channel(&mut self, number: usize, head: u32, output: u32, step: u64) {
        self.take_channel(number, head, output, step + u64::from(self.parameters.bidding != Bidding::SameCycle));
        if let Some(claims) = &mut self.routing.claims {
            claims.give_up(head);
        }
        let packet = self.front_packet(head);
        self.announce_packet(output, packet);
        if self.layout.full.offers_several {
            let port = (output >> M::SHIFT) - self.layout.units[number].base;
            self.tell_predictor(head, packet, port as u16);
        }
    }

    /// A head holds a virtual channel, and bids for the switch from a step on.
    pub(super) fn take_channel(&mut self, number: usize, head: u32, output: u32, from: u64) {
        self.layout.hold(head, output);
        let flits = self.layout.input[head].left;
        if let Some(buffers) = &mut self.buffers.shared {
            buffers.take(output, flits);
        }
        self.layout.input[head].ready = from;
        self.layout.units[number].active.push(head);
        self.layout.note_bidder(head);
    }

    /// Heads that hold a virtual channel wait no more.
    pub(super) fn leave_waiting(&mut self, number: usize) {
        let Full { units, input, .. } = &mut self.layout;
        units[number].waiting.retain(|&slot| input[slot].output == NONE);
    }

    /// Paths through the switch that are kept are used, or given up where a credit or a place behind the switch is missing. In both cases they
    /// are taken in this step: who gives one up bids anew from the next on. Is there any?
    pub(super) fn cross_on_kept_paths(&mut self, number: usize, now: u64) -> bool {
        let Full { units, step: StepLists { taken, .. }, full, .. } = &mut self.layout;
        let unit = &mut units[number];
        taken.clear(unit.ports, full);
        self.layout.step.winners.clear();
        self.layout.step.holders.clear();
        if self.layout.units[number].kept.is_empty() {
            return false;
        }
        let mut kept = std::mem::take(&mut self.layout.units[number].kept);
        self.layout.step.holders.extend_from_slice(&kept);
        kept.retain(|&slot| {
            let output = self.layout.input[slot].output;
            let (row, column) = self.layout.crossing(number, slot, output);
            self.layout.step.taken.rows[row as usize] = true;
            self.layout.step.taken.columns[column as usize] = true;
            debug_assert!(self.layout.input[slot].flits > 0, "a path is given up with the last flit of a buffer");
            let goes_on = self.room(output) > 0 && self.place_from(output >> M::SHIFT, now) <= now;
            if goes_on {
                self.layout.step.winners.push(slot);
            }
            goes_on
        });
        self.layout.units[number].kept = kept;
        true
    }

    /// Flits bid for the switch: those with a virtual channel and a credit, and where all stand together those that speculate. Did any of
    /// the first?
    fn allocate_crossing(&mut self, number: usize, step: u64, now: u64) -> bool {
        let mut bids = std::mem::take(&mut self.layout.step.bids);
        bids.clear();
        let mut due = NEVER;
        for position in 0..self.layout.units[number].active.len() {
            let slot = self.layout.units[number].active[position];
            let InputVc { output, flits, ready, .. } = self.layout.input[slot];
            debug_assert!(self.has_room_for_rest(slot), "a packet that waits as a whole has a virtual channel with room for all of it");
            if ready <= step && flits > 0 && self.room(output) > 0 {
                match self.place_from(output >> M::SHIFT, now) {
                    from if from <= now => bids.extend(self.layout.bid(number, slot, output)),
                    from => due = due.min(from),
                }
            }
        }
        self.layout.units[number].due = due;
        self.layout.keep_turns(&mut bids);
        let turns = self.layout.full.switch_turns && self.someone_stands(number, step);
        let asked = !bids.is_empty() || turns;
        let together = self.layout.full.router.speculation == Speculation::Together;
        if together {
            let StepLists { speculative, taken, .. } = &mut self.layout.step;
            bids.extend(speculative.drain(..).filter(|bid| !taken.has(&bid.request)).map(Bid::last));
        }
        let kept = self.layout.step.winners.len();
        self.grant_bids(number, &mut bids, turns);
        if together {
            self.keep_right_guesses(number, kept, &bids);
        }
        self.layout.step.bids = bids;
        asked
    }

    /// Where packets wait as a whole: has a packet that holds a virtual channel room there for all that is left of it?
    pub(super) fn has_room_for_rest(&self, slot: u32) -> bool {
        let InputVc { output, left, .. } = self.layout.input[slot];
        self.parameters.switching == Switching::Wormhole || self.room(output) >= u32::from(left)
    }

    /// The cycle from which a flit may cross to this output port, as far as is known now: `now` if its channel, and a place in its buffer,
    /// are to be had.
    #[inline(always)]
    pub(super) fn place_from(&self, port: u32, now: u64) -> u64 {
        let traversal = u64::from(self.layout.full.traversal_steps);
        let channel = self.layout.port[port].next_departure;
        if self.parameters.periodic && channel > now + traversal {
            return channel - traversal;
        }
        self.place_behind_from(port, now)
    }

    /// The cycle from which the buffer behind the switch has a place. What crosses in this cycle has taken none yet.
    fn place_behind_from(&self, port: u32, now: u64) -> u64 {
        let Some(places) = self.layout.full.router.output_buffer_flits else { return now };
        let is_gone = |&&(_, departure): &&(u64, u64)| departure < now;
        let mut waiting = self.layout.buffered[port as usize].iter().skip_while(is_gone);
        let taken = waiting.clone().take_while(|&&(arrival, _)| arrival < now).count();
        // The first one there leaves first.
        waiting.next().filter(|_| taken >= places as usize).map_or(now, |&(_, departure)| departure + 1)
    }

    /// Of the bids of one input of the switch for one output only the first counts; the allocator decides among the rest.
    fn grant_bids(&mut self, number: usize, bids: &mut Vec<Bid>, turns: bool) {
        self.layout.step.granted.clear();
        if bids.is_empty() && !turns {
            return;
        }
        let pair = |bid: &Bid| (bid.request.row, bid.request.column);
        bids.sort_unstable_by_key(|bid| (pair(bid), std::cmp::Reverse(bid.request.priority), bid.distance));
        bids.dedup_by_key(|bid| pair(bid));
        let Full { units, step: StepLists { requests, granted, winners, taken, .. }, full, .. } = &mut self.layout;
        requests.clear();
        requests.extend(bids.iter().map(|bid| bid.request));
        if let Allocators::OnRequests { switch, .. } = &mut units[number].allocators {
            switch.allocate(requests, granted);
        }
        for &position in granted.iter() {
            let Bid { request, slot, .. } = bids[position as usize];
            taken.rows[request.row as usize] = true;
            taken.columns[request.column as usize] = true;
            winners.push(slot);
        }
        // In one allocation of both kinds of bids, one that turns out to be wasted has had its turn all the same.
        if full.router.speculation == Speculation::Together {
            for &position in granted.iter() {
                let Bid { request, slot, in_vain, .. } = bids[position as usize];
                if !in_vain {
                    units[number].pass_pointer(slot & (M::BITS - 1), request.row, full);
                }
            }
        }
    }

    /// Heads that bid for a virtual channel bid for the switch too, where one with a credit and a place behind the switch are to be had.
    /// In one allocation of both kinds of bids a head bids in vain if only some of its candidates have these, as in BookSim 2.
    fn note_speculative_bids(&mut self, number: usize, step: u64, now: u64) {
        let mut bids = std::mem::take(&mut self.layout.step.speculative);
        bids.clear();
        let unit = &self.layout.units[number];
        let (base, full) = (unit.base, &self.layout.full);
        for &slot in &unit.waiting {
            if self.layout.input[slot].ready > step {
                continue;
            }
            let (first, candidates) = (bids.len(), self.layout.candidates(slot));
            for candidate in candidates {
                let port = base + u32::from(candidate.port);
                let mut open = members(self.open_channels(slot, port, candidate)).map(|vc| port << M::SHIFT | vc);
                if let Some(output) = open.find(|&output| self.room(output) > 0 && self.place_from(port, now) <= now) {
                    let (row, column) = places(base, slot, output, M::SHIFT, full);
                    bids.push(self.layout.bid_at(number, slot, row, column));
                }
            }
            if full.router.speculation == Speculation::Together && bids.len() < first + candidates.len() {
                bids[first..].iter_mut().for_each(|bid| bid.in_vain = true);
            }
        }
        self.layout.step.speculative = bids;
    }

    /// Speculative bids have what the others left of inputs and outputs.
    fn grant_speculative_bids(&mut self, number: usize) {
        let mut bids = std::mem::take(&mut self.layout.step.speculative);
        let taken = &self.layout.step.taken;
        bids.retain(|bid| !taken.has(&bid.request));
        let real = self.layout.step.winners.len();
        self.grant_bids(number, &mut bids, false);
        self.keep_right_guesses(number, real, &bids);
        bids.clear();
        self.layout.step.speculative = bids;
    }

    /// Of the winners from `first` on, which `bids` were granted: a head without a virtual channel, or with another port's, or with one
    /// without a credit, wastes what it has won.
    fn keep_right_guesses(&mut self, number: usize, first: usize, bids: &[Bid]) {
        let mut kept = first;
        for position in first..self.layout.step.winners.len() {
            let slot = self.layout.step.winners[position];
            let output = self.layout.input[slot].output;
            let granted = self.layout.step.granted[position - first];
            let Bid { request: Request { row, column, .. }, in_vain, .. } = bids[granted as usize];
            if !in_vain && output != NONE && self.room(output) > 0 && self.layout.crossing(number, slot, output) == (row, column) {
                self.layout.step.winners[kept] = slot;
                kept += 1;
            }
        }
        self.layout.step.winners.truncate(kept);
    }

    /// The winners' flits cross the switch.
    pub(super) fn traverse_all(&mut self, number: usize, step: u64, now: u64) {
        let mut winners = std::mem::take(&mut self.layout.step.winners);
        self.statistics.flit_hops += winners.len() as u64;
        for slot in winners.drain(..) {
            let row = self.layout.crossing(number, slot, self.layout.input[slot].output).0;
            self.cross(number, slot, row, step, now);
        }
        self.layout.step.winners = winners;
    }

    /// One flit leaves its buffer by an input of the switch, its credit goes upstream, and it is sent as soon as its channel is free.
    pub(super) fn cross(&mut self, number: usize, slot: u32, row: u32, step: u64, now: u64) {
        let layout = &mut self.layout;
        let input = &mut layout.input[slot];
        input.flits -= 1;
        input.left -= 1;
        if let Some(came) = layout.came.get_mut(slot as usize) {
            came.pop_front();
        }
        let InputVc { output, flits, left, .. } = *input;
        debug_assert!(self.place_behind_from(output >> M::SHIFT, now) <= now, "who crosses has a place behind the switch");
        let layout = &mut self.layout;
        layout.output[output].credits -= 1;
        if let Some(shares) = &mut layout.shares {
            shares.charge(output >> M::SHIFT, output & (M::BITS - 1));
        }
        self.note_departure(slot, output, left);
        if let Some(buffers) = &mut self.buffers.shared {
            buffers.send(output, left == 0);
        }
        self.send_credit(slot, step, now);
        self.send_flit_on(number, slot, output, step, now);
        let (unit, full) = (&mut self.layout.units[number], &self.layout.full);
        unit.pass_pointer(slot & (M::BITS - 1), row, full);
        if full.router.hold_switch {
            unit.keep_path(slot, left > 0 && flits > 0);
        }
        if left == 0 {
            self.end_packet(number, slot, output);
        }
    }

    /// All flits that an input port sends in a step are told upstream at once; one such message goes in a cycle.
    pub(super) fn send_credit(&mut self, slot: u32, step: u64, now: u64) {
        let port = slot >> M::SHIFT;
        let state = &mut self.layout.port[port];
        if state.credit_step != step {
            state.credit_cycle = now.max(state.credit_cycle + 1);
            state.credit_step = step;
        }
        let upstream = &self.wiring.links[port];
        let time = state.credit_cycle as u32;
        self.in_flight.credits.post(time.wrapping_add(u32::from(upstream.credit_delay)), upstream.credit_link + (slot & (M::BITS - 1)));
    }

    fn send_flit_on(&mut self, number: usize, slot: u32, output: u32, step: u64, now: u64) {
        let port = output >> M::SHIFT;
        let layout = &mut self.layout;
        // The switch takes over in the next step.
        let wait = layout.units[number].traversal.wait(step + 1);
        let across = layout.clock.cycle_of(step + wait + u64::from(layout.full.traversal_steps), now);
        let state = &mut layout.port[port];
        let departure = across.max(state.next_departure);
        state.sent.add(departure);
        state.next_departure = departure + if self.parameters.periodic { u64::from(self.wiring.period[port]) } else { 1 };
        if let Some(buffered) = layout.buffered.get_mut(port as usize) {
            while buffered.front().is_some_and(|&(_, departure)| departure < now) {
                buffered.pop_front();
            }
            buffered.push_back((across, departure));
        }
        self.post_flit(output, departure);
        if let Some(unit) = &mut self.prediction {
            unit.note_step(self.layout.switch_places(slot, port), output, (port, departure), step);
        }
    }

    /// A flit is sent on its channel in a cycle.
    pub(super) fn post_flit(&mut self, output: u32, departure: u64) {
        let link = &mut self.wiring.links[output >> M::SHIFT];
        link.sent += 1;
        let delay = u32::from(link.flit_delay) - self.layout.full.traversal_steps;
        self.in_flight.arrivals.post((departure as u32).wrapping_add(delay), link.flit_link + (output & (M::BITS - 1)));
    }

    /// The tail has gone.
    fn end_packet(&mut self, number: usize, slot: u32, output: u32) {
        self.leave_router(number, slot, output);
        if self.parameters.release == VcRelease::Tail {
            self.layout.set_free_channel(output);
        }
        self.begin_next(number, slot);
    }

    /// The next packet of a buffer stands at its front.
    pub(super) fn begin_next(&mut self, number: usize, slot: u32) {
        let flits = u32::from(self.layout.input[slot].flits);
        let whole = self.parameters.switching == Switching::StoreAndForward;
        let waits_for = if whole && flits > 0 { u32::from(self.packets[self.front_packet(slot)].flits) } else { 1 };
        if flits >= waits_for {
            self.layout.units[number].heads.push(slot);
        }
    }

    /// A packet holds its virtual channel no more.
    pub(super) fn leave_router(&mut self, number: usize, slot: u32, output: u32) {
        self.layout.output[output].holder = NONE;
        self.layout.input[slot].output = NONE;
        let unit = &mut self.layout.units[number];
        let place = unit.active.iter().position(|&active| active == slot).expect("who sends holds a virtual channel");
        unit.active.swap_remove(place);
        self.leave_queue(slot);
    }
}

impl<M: VcMask> Full<M> {
    pub(super) fn set_free_channel(&mut self, output: u32) {
        let port = &mut self.port[output >> M::SHIFT];
        port.free = port.free.or(M::bit(output & (M::BITS - 1)));
    }

    /// Input and output of the switch that a flit takes.
    pub(super) fn crossing(&self, number: usize, slot: u32, output: u32) -> (u32, u32) {
        places(self.units[number].base, slot, output, M::SHIFT, &self.full)
    }

    /// The input of the switch that the flits of a slot take.
    pub(super) fn switch_input(&self, number: usize, slot: u32) -> u32 {
        places(self.units[number].base, slot, slot, M::SHIFT, &self.full).0
    }

    /// Where outputs are divided among users, the bids for each are those of the user whose turn it is.
    fn keep_turns(&mut self, bids: &mut Vec<Bid>) {
        let Self { shares: Some(shares), input, .. } = self else { return };
        let port = |bid: &Bid| input[bid.slot].output >> M::SHIFT;
        let wanted = |bid: &Bid| M::bit(input[bid.slot].output & (M::BITS - 1));
        bids.sort_unstable_by_key(|bid| input[bid.slot].output);
        for bids in bids.chunk_by_mut(|one, other| port(one) == port(other)) {
            let all = bids.iter().fold(M::default(), |all, bid| all.or(wanted(bid)));
            let chosen = shares.choose(port(&bids[0]), all);
            bids.iter_mut().for_each(|bid| bid.in_vain = chosen.and(wanted(bid)).is_empty());
        }
        bids.retain(|bid| !bid.in_vain);
    }

    /// A flit's bid, unless its path through the switch is kept by another, or by itself.
    fn bid(&self, number: usize, slot: u32, output: u32) -> Option<Bid> {
        let (row, column) = self.crossing(number, slot, output);
        let bid = self.bid_at(number, slot, row, column);
        (!self.step.taken.has(&bid.request)).then_some(bid)
    }

    fn bid_at(&self, number: usize, slot: u32, row: u32, column: u32) -> Bid {
        let (vc, pointer) = (slot & (M::BITS - 1), self.units[number].vc_pointer[row as usize]);
        let distance = (vc + self.full.router.virtual_channels - pointer) % self.full.router.virtual_channels;
        let (priority, created) = (self.priority(slot), self.heads.urgency[slot].created);
        Bid { request: Request { row, column, preference: priority, priority, created }, distance, slot, in_vain: false }
    }

    /// The priority of the flit at the front of a buffer.
    fn priority(&self, slot: u32) -> i64 {
        match self.full.router.priority {
            Priority::QueueLength => i64::from(self.input[slot].flits),
            Priority::LocalAge => self.came[slot as usize].front().map_or(0, |&came| -(came as i64)),
            _ => self.heads.urgency[slot].priority,
        }
    }
}

/// Input and output of the switch between an input slot and an output slot of a router.
fn places(base: u32, slot: u32, output: u32, shift: u32, full: &FullParameters) -> (u32, u32) {
    let (inputs, outputs) = (full.router.input_speedup, full.router.output_speedup);
    let (from, to) = ((slot >> shift) - base, (output >> shift) - base);
    let vc = slot & ((1 << shift) - 1);
    (from * inputs + vc % inputs, to * outputs + from % outputs)
}

/// The virtual channels of a set, in order.
fn members<M: VcMask>(mut set: M) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (!set.is_empty()).then(|| {
            let first = set.first();
            set = set.rest();
            first
        })
    })
}
