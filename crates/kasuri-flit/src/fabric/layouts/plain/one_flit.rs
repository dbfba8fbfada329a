//! The cycle of canonical routers all of whose packets are of one flit.
//!
//! Such a packet wins a virtual channel and gives it back with the same flit, so that nothing has to be kept between the stages but who
//! waits for what. In each step the switch is allocated first, among the packets that have had a virtual channel since the cycle before;
//! then heads win virtual channels, and may bid for the switch in the next cycle; last, the winners of the switch cross, and each leaves
//! its buffer and its virtual channel in the same visit. Routers with an internal speed-up take several steps in a cycle. The results are
//! those of the general cycle, bit for bit.
//!
//! Round-robin pointers are those of the slots and ports themselves, also of the separable input-first allocators, which the general cycle
//! keeps apart.

use crate::fabric::layouts::plain::departures::Departure;
use crate::fabric::layouts::plain::notes::NOTHING_CHOSEN;
use crate::fabric::layouts::plain::notes::Notes;
use crate::fabric::layouts::plain::{Plain, Pointers};
use crate::record::allocators::allocator::from_pointer;
use crate::record::allocators::masks::Rule;
use crate::record::list::{List, put_back};
use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::state::blocks::Block;
use crate::state::parameters::Parameters;
use crate::state::tile::Tile;
use kasuri_model::router::{Bidding, VcRelease};
use std::hint::select_unpredictable;

impl<M: VcMask> Tile<'_, Plain<M>> {
    /// Advances a block of routers through cycle `now`.
    #[inline(always)]
    pub(super) fn one_flit_cycle(&mut self, block: u32, now: u64) {
        if self.layout.active[block as usize].is_empty()
            && self.blocks.is_idle(block)
            && self.in_flight.arrivals.is_empty_at(now, block)
            && self.in_flight.credits.is_empty_at(now, block)
        {
            return;
        }
        let mut lists = self.blocks.take(block);
        let mut active = std::mem::take(&mut self.layout.active[block as usize]);
        let mut winners = std::mem::take(&mut self.layout.winners);
        self.take_packets(block, now, &mut lists);
        self.take_places(block, now, &mut active, &mut lists);
        for step in self.parameters.clock.steps(now) {
            if self.parameters.fetches {
                self.one_flit_step::<true>(&mut active, &mut winners, &mut lists, step, now);
            } else {
                self.one_flit_step::<false>(&mut active, &mut winners, &mut lists, step, now);
            }
        }
        self.blocks.put_back(lists);
        put_back(&mut self.layout.active[block as usize], active);
        put_back(&mut self.layout.winners, winners);
    }

    /// One step of a block's routers; those without an internal speed-up take one in each cycle. `FETCHES` is that of the parameters: what
    /// fetches ahead is code of its own, for which near routers need no registers.
    #[inline(always)]
    fn one_flit_step<const FETCHES: bool>(&mut self, active: &mut List, winners: &mut List, lists: &mut Block, step: u64, now: u64) {
        if self.parameters.route_cycles == 0 {
            self.route_packets::<FETCHES>(step, lists);
        } else {
            self.post_delayed_requests(step, lists);
        }
        let moving = if self.parameters.bidding == Bidding::SameCycle {
            self.give_channels::<FETCHES>(lists, active);
            self.match_ports(active, winners)
        } else {
            let moving = self.match_ports(active, winners);
            self.give_channels::<FETCHES>(lists, active);
            moving
        };
        if self.parameters.route_cycles > 0 {
            self.route_packets::<FETCHES>(step, lists);
        }
        if self.parameters.clock.is_plain() {
            self.cross::<FETCHES>(winners, moving, active, lists, |_, _, _| Departure::at(now));
        } else {
            let Parameters { clock, traversal_cycles, .. } = self.parameters;
            let across = clock.cycle_of(step + u64::from(traversal_cycles), now);
            self.cross::<FETCHES>(winners, moving, active, lists, |layout, input_port, port| {
                let departures = layout.departures.as_mut().expect("made for routers with several steps in a cycle");
                departures.send(input_port, port, across, traversal_cycles, now)
            });
        }
        winners.clear();
        if !self.notes().lists_slots() {
            self.pointers().keep_active(active);
        }
        lists.turn();
    }

    /// Packets enter their buffers. One that finds an empty buffer is a new head.
    #[inline(always)]
    fn take_packets(&mut self, block: u32, now: u64, lists: &mut Block) {
        let pointers = self.pointers();
        for &slot in self.in_flight.arrivals.events(now, block) {
            let input = pointers.input(slot);
            let before = input.flits;
            input.flits = before + 1;
            lists.heads.push_if(slot, before == 0);
        }
        self.in_flight.arrivals.clear(now, block);
    }

    /// Credits come back. A virtual channel that is held has its packet in the buffer, where it waits for one.
    #[inline(always)]
    fn take_places(&mut self, block: u32, now: u64, active: &mut List, lists: &mut Block) {
        let pointers = self.pointers();
        let by_slot = self.notes().lists_slots();
        let full = if self.parameters.release == VcRelease::TailCredit { self.parameters.buffer_flits } else { u16::MAX };
        for &slot in self.in_flight.credits.events(now, block) {
            let output = pointers.output(slot);
            let credits = output.credits + 1;
            output.credits = credits;
            let is_held = output.holder != NONE;
            if is_held & (credits == 1) {
                pointers.bid(slot, by_slot, active);
            }
            if !is_held & (credits == full) {
                let port = slot >> M::SHIFT;
                let free = &mut pointers.output_port(port).free;
                *free = free.or(M::bit(slot & (M::BITS - 1)));
                pointers.links(port).list_for_allocation(port, &mut lists.allocate);
            }
        }
        self.in_flight.credits.clear(now, block);
    }

    /// Routes the new heads: each asks for virtual channels of one output port.
    #[inline(always)]
    fn route_packets<const FETCHES: bool>(&mut self, step: u64, lists: &mut Block) {
        let pointers = self.pointers();
        let Parameters { route_cycles, .. } = self.parameters;
        if FETCHES {
            self.prefetch_first_heads(&lists.heads);
        }
        for position in 0..lists.heads.len() {
            if FETCHES {
                self.prefetch_head(&lists.heads, position);
            }
            let slot = lists.heads.at(position);
            let packet = pointers.input(slot).packet.queue.front();
            let route = self.find_route(slot, packet);
            self.enter_router(slot, packet, route.state);
            let channels = route.candidate.virtual_channels;
            let input = pointers.input(slot);
            (input.packet.length, input.packet.request_first, input.packet.request_last) =
                (1, channels.begin as u8, (channels.end - 1) as u8);
            let port = self.wiring.router_at(slot >> M::SHIFT).first_port + u32::from(route.candidate.port);
            if route_cycles > 1 {
                input.packet.request_next = port;
                lists.delayed(step).push(slot);
                continue;
            }
            let links = pointers.links(port);
            input.packet.request_next = std::mem::replace(&mut links.request_head, slot);
            let list = if route_cycles == 0 { &mut lists.allocate } else { &mut lists.allocate_next };
            list.push_if(port, !links.listed);
            links.listed = true;
        }
        lists.heads.clear();
    }

    /// Virtual-channel allocation at every listed port.
    #[inline(always)]
    fn give_channels<const FETCHES: bool>(&mut self, lists: &mut Block, active: &mut List) {
        let pointers = self.pointers();
        let by_slot = self.notes().lists_slots();
        if FETCHES {
            self.prefetch_first_requests(&lists.allocate);
        }
        for position in 0..lists.allocate.len() {
            if FETCHES {
                self.prefetch_later_request(&lists.allocate, position);
            }
            let port = lists.allocate.at(position);
            let links = pointers.links(port);
            links.listed = false;
            let head = links.request_head;
            if head == NONE {
                continue;
            }
            if pointers.input(head).packet.request_next != NONE {
                self.give_channels_contended(port, by_slot, active);
            } else if self.give_channel(port, head, by_slot, active) {
                continue;
            }
            // Losers bid again in the next cycle as long as something is free; otherwise a release lists the port.
            if !pointers.output_port(port).free.is_empty() {
                pointers.links(port).list_for_allocation(port, &mut lists.allocate_next);
            }
        }
        lists.allocate.clear();
    }

    #[inline(always)]
    fn notes(&mut self) -> &mut Notes {
        self.layout.notes.as_mut().expect("made for routers whose packets are of one flit")
    }

    /// One head alone at its port: whoever chooses first, it gets the first free virtual channel from its pointer on, if there is one. Then
    /// nobody asks for the port any more.
    #[inline(always)]
    fn give_channel(&mut self, port: u32, head: u32, by_slot: bool, active: &mut List) -> bool {
        let pointers = self.pointers();
        let eligible = self.free_of_range(port, head);
        if !eligible.is_empty() {
            pointers.links(port).request_head = NONE;
            let output = pointers.pick_channel(port, head, eligible);
            pointers.move_behind(head, output);
            self.win_channel(head, output, by_slot, active);
        }
        !eligible.is_empty()
    }

    /// A head wins an output slot: the packet is announced to the next buffer, and bids for the switch from now on, the slot by itself or with
    /// its port.
    #[inline(always)]
    fn win_channel(&mut self, head: u32, output: u32, by_slot: bool, active: &mut List) {
        let pointers = self.pointers();
        let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
        let free = &mut pointers.output_port(port).free;
        *free = free.without(M::bit(vc));
        let (input, account) = (pointers.input(head), pointers.output(output));
        input.output = output;
        account.holder = head;
        let (packet, downstream) = (input.packet.queue.front(), pointers.links(port).flit_link + vc);
        self.buffers.rings.push_near(&mut pointers.input(downstream).packet.queue, downstream, packet);
        if account.credits > 0 {
            pointers.bid(output, by_slot, active);
        }
    }

    /// The free virtual channels of a port, if there are any, go to some of the heads that ask for them.
    #[inline(always)]
    fn give_channels_contended(&mut self, port: u32, by_slot: bool, active: &mut List) {
        let free = self.pointers().output_port(port).free;
        if free.is_empty() {
            return;
        }
        if free.rest().is_empty() {
            return self.give_last_channel(port << M::SHIFT | free.first(), by_slot, active);
        }
        match self.notes().channels {
            Rule::InputFirst => self.give_channels_input_first(port, by_slot, active),
            Rule::Islip(iterations) => self.give_channels_output_first(port, iterations, by_slot, active),
        }
    }

    /// The only free virtual channel of a port, for which several heads ask: by either rule its arbiter alone decides, since every head that
    /// may take it picks it, and has no other offer. Saturated ports are in this state in most cycles. The walk is that of
    /// [`Self::first_that_may_take`] without a branch that depends on the data, and remembers which link to cut.
    #[inline(always)]
    fn give_last_channel(&mut self, output: u32, by_slot: bool, active: &mut List) {
        let pointers = self.pointers();
        let (vc, pointer) = ((output & (M::BITS - 1)) as u8, pointers.output(output).packet.grant_pointer);
        let mut link = &raw mut pointers.links(output >> M::SHIFT).request_head;
        let (mut best, mut distance_of_best, mut link_to_best) = (NONE, u32::MAX, link);
        // SAFETY: `link` points to the port's link or to that of an earlier head. Both stand in columns that nothing else uses meanwhile.
        unsafe {
            let mut head = *link;
            while head != NONE {
                let packet = &mut pointers.input(head).packet;
                let distance = from_pointer(head, pointer);
                let may_take = (packet.request_first <= vc) & (vc <= packet.request_last);
                // The first one that may, however far it is: the head served last has the greatest distance of all numbers.
                let is_better = may_take & ((best == NONE) | (distance < distance_of_best));
                best = select_unpredictable(is_better, head, best);
                distance_of_best = select_unpredictable(is_better, distance, distance_of_best);
                link_to_best = select_unpredictable(is_better, link, link_to_best);
                link = &raw mut packet.request_next;
                head = *link;
            }
            if best != NONE {
                *link_to_best = pointers.input(best).packet.request_next;
                pointers.move_behind(best, output);
                self.win_channel(best, output, by_slot, active);
            }
        }
    }

    /// iSLIP among the heads and free virtual channels of a port. Pointers move in the first iteration.
    fn give_channels_output_first(&mut self, port: u32, iterations: u32, by_slot: bool, active: &mut List) {
        let pointers = self.pointers();
        let mut offers = std::mem::take(&mut self.notes().offers);
        for iteration in 0..iterations {
            self.offer_channels(port, &mut offers);
            if offers.is_empty() {
                break;
            }
            for &(head, _) in &offers {
                if pointers.input(head).output != NONE {
                    continue;
                }
                let pointer = pointers.input(head).packet.accept_pointer;
                let of_head = offers.iter().filter(|&&(other, _)| other == head).map(|&(_, output)| output);
                let output = of_head.min_by_key(|&output| from_pointer(output, pointer)).expect("the head's own offer is among them");
                if iteration == 0 {
                    pointers.move_behind(head, output);
                }
                self.win_channel(head, output, by_slot, active);
            }
            pointers.withdraw_winners(port);
            offers.clear();
        }
        put_back(&mut self.notes().offers, offers);
    }

    /// Each free virtual channel of a port is offered to the first head from its pointer on that may take it.
    fn offer_channels(&mut self, port: u32, offers: &mut Vec<(u32, u32)>) {
        let pointers = self.pointers();
        let mut free = pointers.output_port(port).free;
        while !free.is_empty() {
            let output = port << M::SHIFT | free.first();
            free = free.rest();
            let head = self.first_that_may_take(output, pointers.output(output).packet.grant_pointer);
            if head != NONE {
                offers.push((head, output));
            }
        }
    }

    /// Separable input-first with round-robin arbiters: each head picks a virtual channel by its pointer, each of these then a head.
    fn give_channels_input_first(&mut self, port: u32, by_slot: bool, active: &mut List) {
        let pointers = self.pointers();
        let claims = self.notes().claims.as_mut_ptr();
        // SAFETY: there is an entry for each virtual channel of a port.
        let claim = |vc: u32| unsafe { &mut *claims.add(vc as usize) };
        let mut claimed = M::default();
        let mut head = pointers.links(port).request_head;
        while head != NONE {
            let eligible = self.free_of_range(port, head);
            if !eligible.is_empty() {
                let output = pointers.pick_channel(port, head, eligible);
                let vc = output & (M::BITS - 1);
                let pointer = pointers.output(output).packet.grant_pointer;
                let rival = *claim(vc);
                let is_first = claimed.and(M::bit(vc)).is_empty();
                let is_better = is_first | (from_pointer(head, pointer) < from_pointer(rival, pointer));
                *claim(vc) = select_unpredictable(is_better, head, rival);
                claimed = claimed.or(M::bit(vc));
            }
            head = pointers.input(head).packet.request_next;
        }
        if claimed.is_empty() {
            return;
        }
        while !claimed.is_empty() {
            let vc = claimed.first();
            claimed = claimed.rest();
            pointers.move_behind(*claim(vc), port << M::SHIFT | vc);
            self.win_channel(*claim(vc), port << M::SHIFT | vc, by_slot, active);
        }
        pointers.withdraw_winners(port);
    }

    /// Switch allocation: which input ports send, each from the virtual channel that it has for its candidate. Returns for how many of them,
    /// the first ones, the pointers move.
    #[inline(always)]
    fn match_ports(&mut self, active: &List, winners: &mut List) -> usize {
        let pointers = self.pointers();
        let Rule::Islip(iterations) = self.notes().switch else {
            self.match_ports_input_first(active, winners);
            return winners.len();
        };
        for &port in active.as_slice() {
            pointers.grant(port, winners);
        }
        let first = winners.len();
        if iterations > 1 && first < active.len() {
            self.match_open_ports(active, iterations, winners);
        }
        first
    }

    /// The further iterations of iSLIP: output ports that no input port has accepted grant those that have accepted none.
    fn match_open_ports(&mut self, active: &List, iterations: u32, winners: &mut List) {
        let pointers = self.pointers();
        let mut open = std::mem::take(&mut self.notes().open);
        let chosen = self.notes().chosen.as_mut_ptr();
        // SAFETY: there is an entry for each port of the routers.
        let chosen_by = |port: u32| unsafe { &mut *chosen.add(port as usize) };
        active.as_slice().iter().for_each(|&port| open.push(port));
        let mut settled = 0;
        for _ in 1..iterations {
            for &input_port in &winners.as_slice()[settled..] {
                *chosen_by(pointers.input_port(input_port).candidate >> M::SHIFT) = input_port;
            }
            settled = winners.len();
            open.retain(|port| *chosen_by(port) == NONE);
            for &port in open.as_slice() {
                let ready = pointers.ready_of_open_inputs(port, |port| *chosen_by(port));
                if !ready.is_empty() {
                    pointers.grant_among(port, ready, winners);
                }
            }
            if winners.len() == settled {
                break;
            }
        }
        for &input_port in &winners.as_slice()[..settled] {
            *chosen_by(pointers.input_port(input_port).candidate >> M::SHIFT) = NONE;
        }
        open.clear();
        put_back(&mut self.notes().open, open);
    }

    /// Separable input-first: each input port picks an output port, each output port one of those that picked it. Here `active` holds the
    /// output slots that bid, each once. Nothing of this can be foreseen by a processor, so it is done without branches where it can be.
    fn match_ports_input_first(&mut self, active: &List, winners: &mut List) {
        let pointers = self.pointers();
        let (distances, chosen) = (self.notes().distance.as_mut_ptr(), self.notes().chosen.as_mut_ptr());
        // SAFETY: there are entries for all ports of routers.
        let distance_of = |input_port: u32| unsafe { &mut *distances.add(input_port as usize) };
        let chosen_by = |port: u32| unsafe { &mut *chosen.add(port as usize) };
        for &output in active.as_slice() {
            let (port, holder) = (output >> M::SHIFT, pointers.output(output).holder);
            let input_port = holder >> M::SHIFT;
            let input = pointers.input_port(input_port);
            let port_distance = port.wrapping_sub(input_port).wrapping_sub(input.accept_pointer as u32);
            let vc_distance = from_pointer(holder & (M::BITS - 1), u32::from(input.vc_pointer));
            let distance = u64::from(port_distance) << 32 | u64::from(vc_distance);
            let nearest = distance_of(input_port);
            winners.push_if(input_port, input.candidate == NONE);
            // No two of a port are equally far.
            let is_better = distance <= *nearest;
            input.candidate = select_unpredictable(is_better, output, input.candidate);
            *nearest = select_unpredictable(is_better, distance, *nearest);
        }
        for &input_port in winners.as_slice() {
            *distance_of(input_port) = NOTHING_CHOSEN;
            let port = pointers.input_port(input_port).candidate >> M::SHIFT;
            let pointer = port.wrapping_add(pointers.output_port(port).grant_pointer as u32);
            let rival = *chosen_by(port);
            let is_better = (rival == NONE) | (from_pointer(input_port, pointer) < from_pointer(rival, pointer));
            *chosen_by(port) = select_unpredictable(is_better, input_port, rival);
        }
        // Who finds itself chosen clears the place for the next cycle; those that come after it find that they are not.
        winners.retain(|input_port| {
            let candidate = &mut pointers.input_port(input_port).candidate;
            let chosen = chosen_by(*candidate >> M::SHIFT);
            let wins = *chosen == input_port;
            *chosen = select_unpredictable(wins, NONE, *chosen);
            *candidate = select_unpredictable(wins, *candidate, NONE);
            wins
        });
    }

    /// Winners cross the switch: each packet leaves its buffer and gives back its virtual channel. By layout, input port and output port,
    /// `depart` says when it and its credit leave the router. Pointers move for the first `moving` winners. Their output slots leave the
    /// list of active ones, if slots are what it lists.
    #[inline(always)]
    fn cross<const FETCHES: bool>(
        &mut self,
        winners: &List,
        moving: usize,
        active: &mut List,
        lists: &mut Block,
        mut depart: impl FnMut(&mut Plain<M>, u32, u32) -> Departure,
    ) {
        self.statistics.flit_hops += winners.len() as u64;
        let pointers = self.pointers();
        let by_slot = self.notes().lists_slots();
        let frees = self.parameters.release == VcRelease::Tail;
        for (position, &input_port) in winners.as_slice().iter().enumerate() {
            if FETCHES {
                self.prefetch_for_release(pointers, winners, position);
            }
            let sender = pointers.input_port(input_port);
            let output = std::mem::replace(&mut sender.candidate, NONE);
            let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
            let departure = depart(&mut self.layout, input_port, port);
            let account = pointers.output(output);
            let slot = std::mem::replace(&mut account.holder, NONE);
            account.credits -= 1;
            if by_slot {
                let place = account.place;
                pointers.output(active.swap_remove(place as usize)).place = place;
            }
            let input_vc = slot & (M::BITS - 1);
            let towards = port.wrapping_sub(input_port);
            let out = pointers.output_port(port);
            sender.vc_pointer = input_vc as u16 + 1;
            if position < moving {
                sender.accept_pointer = towards.wrapping_add(1) as i16;
                out.grant_pointer = 1u32.wrapping_sub(towards) as i16;
            }

            let upstream = pointers.links(input_port);
            pointers.credits.post(departure.credit.wrapping_add(u32::from(upstream.credit_delay)), upstream.credit_link + input_vc);
            let downstream = pointers.links(port);
            downstream.sent += 1;
            pointers.arrivals.post(departure.flit.wrapping_add(u32::from(downstream.flit_delay)), downstream.flit_link + vc);

            out.ready = out.ready.without(M::bit(vc));
            if frees {
                out.free = out.free.or(M::bit(vc));
                pointers.links(port).list_for_allocation(port, &mut lists.allocate_next);
            }
            let buffer = pointers.input(slot);
            buffer.output = NONE;
            buffer.flits -= 1;
            self.buffers.rings.pop_near(&mut buffer.packet.queue, slot);
            lists.heads_next.push_if(slot, buffer.flits > 0);
        }
    }
}

impl<M: VcMask> Pointers<M> {
    /// An output virtual channel whose packet has a credit bids for the switch: it, or its port, is noted as active.
    #[inline(always)]
    fn bid(self, output: u32, by_slot: bool, active: &mut List) {
        if by_slot {
            self.output(output).place = active.len() as u32;
            active.push(output);
        } else {
            self.set_ready(output, active);
        }
    }

    /// The pointers of a head and of the output slot that it has won move behind the partner.
    #[inline(always)]
    fn move_behind(self, head: u32, output: u32) {
        self.input(head).packet.accept_pointer = output + 1;
        self.output(output).packet.grant_pointer = head + 1;
    }

    /// The ready virtual channels of a port whose input ports are not matched, where `matched_to` says to which input port an output port is.
    fn ready_of_open_inputs(self, port: u32, matched_to: impl Fn(u32) -> u32) -> M {
        let (mut rest, mut ready) = (self.output_port(port).ready, M::default());
        while !rest.is_empty() {
            let vc = rest.first();
            rest = rest.rest();
            let input_port = self.output(port << M::SHIFT | vc).holder >> M::SHIFT;
            let candidate = self.input_port(input_port).candidate;
            if candidate == NONE || matched_to(candidate >> M::SHIFT) != input_port {
                ready = ready.or(M::bit(vc));
            }
        }
        ready
    }

    /// Of some virtual channels of a port the first one from a head's pointer on.
    #[inline(always)]
    fn pick_channel(self, port: u32, head: u32, eligible: M) -> u32 {
        let base = port << M::SHIFT;
        let offset = self.input(head).packet.accept_pointer.wrapping_sub(base);
        base | eligible.first_from(select_unpredictable(offset < M::BITS, offset, 0))
    }

    /// Takes the heads that have won a virtual channel out of a port's list of requests. Without a branch: the link before a head is always set
    /// to it, and after a winner the same link is set again, to the next head.
    #[inline(always)]
    fn withdraw_winners(self, port: u32) {
        let mut link = &raw mut self.links(port).request_head;
        // SAFETY: `link` points to the port's link or to that of an earlier head. Both stand in columns that nothing else uses meanwhile.
        unsafe {
            let mut head = *link;
            while head != NONE {
                let input = self.input(head);
                let next = input.packet.request_next;
                *link = head;
                link = select_unpredictable(input.output == NONE, &raw mut input.packet.request_next, link);
                head = next;
            }
            *link = NONE;
        }
    }
}
