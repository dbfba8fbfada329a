//! What happens once per packet and router: routing, virtual-channel allocation, release. Once per flit: see `lanes`.
//!
//! The order within a cycle: flits and credits that arrive are taken; heads that have been routed bid for virtual channels; new
//! heads are routed; held virtual channels with a flit and a credit bid for the switch; winners cross it, their flits and
//! credits are posted. Each step is one flat loop over a list, so that the cost follows the events and branches stay
//! predictable; the result does not depend on the order within a list, which is sorted where it would (`claims.rs`).

use crate::allocator::{PlainAllocator, Pointers, from_pointer};
use crate::choice::RouterView;
use crate::lanes::Lanes;
use crate::list::List;
use crate::prefetch::prefetch;
use crate::route_memo::Watched;
use crate::state::{InputSlot, NONE, Simulation, Tile};
use crate::vc_mask::VcMask;
use kasuri_model::router::{Switching, VcRelease};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::routing::{Candidate, HashedChoice, Hop, packet_key};

/// Packets between asking for a cache line and its use: a memory access takes as long as a few of them.
const PREFETCH_DISTANCE: usize = 4;

/// Where a head goes next, and its routing state after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) candidate: Candidate,
    pub(crate) state: u32,
}

impl<L: Lanes> Simulation<'_, L> {
    /// Puts a port on a list for virtual-channel allocation, once.
    #[inline(always)]
    pub(crate) fn list_for_allocation(&mut self, port: u32, list: &mut List) {
        let record = &mut self.wiring.links[port];
        if record.request_head != NONE && !record.listed {
            record.listed = true;
            list.push(port);
        }
    }

    /// The packet at the front of a buffer.
    #[inline(always)]
    pub(crate) fn front_packet(&self, slot: u32) -> u32 {
        self.lanes.input_slot(slot).queue.front()
    }

    /// Announces a packet to the buffer at the other end of an output virtual channel.
    #[inline(always)]
    pub(crate) fn announce_packet(&mut self, output: u32, packet: u32) {
        let (port, vc) = (output >> L::Mask::SHIFT, output & (L::Mask::BITS - 1));
        let downstream = self.wiring.links[port].flit_link + vc;
        self.buffers.rings.push(&mut self.lanes.input_slot_mut(downstream).queue, downstream, packet);
    }

    /// The front packet has left a buffer.
    #[inline(always)]
    pub(crate) fn leave_queue(&mut self, slot: u32) {
        self.buffers.rings.pop(&mut self.lanes.input_slot_mut(slot).queue, slot);
    }

    /// Routes the new heads: each asks for virtual channels of one output port.
    #[inline(always)]
    pub(crate) fn route_heads(&mut self, now: u64, lists: &mut Tile) {
        if self.routing.claims.is_some() {
            lists.heads.sort();
        }
        // First the ports, then the requests: meanwhile the ports' records are fetched.
        for position in 0..lists.heads.len() {
            self.prefetch_head(&lists.heads, position);
            let slot = lists.heads.at(position);
            let port = self.route_head(slot);
            prefetch(&self.wiring.links[port]);
            self.lanes.input_slot_mut(slot).request_next = port;
        }
        for position in 0..lists.heads.len() {
            let slot = lists.heads.at(position);
            let port = self.lanes.input_slot(slot).request_next;
            match self.parameters.route_cycles {
                0 => {
                    self.request(slot, port);
                    self.list_for_allocation(port, &mut lists.allocate);
                }
                1 => {
                    self.request(slot, port);
                    self.list_for_allocation(port, &mut lists.allocate_next);
                }
                cycles => {
                    debug_assert!(cycles > 1);
                    lists.delayed(now).push(slot);
                }
            }
        }
        lists.heads.clear();
    }

    /// Fetches what routing later heads of a list will look at: first the slot, then its packet.
    #[inline(always)]
    fn prefetch_head(&self, heads: &List, position: usize) {
        if !self.parameters.fetches {
            return;
        }
        if position + 2 * PREFETCH_DISTANCE < heads.len() {
            let slot = heads.at(position + 2 * PREFETCH_DISTANCE);
            prefetch(self.lanes.input_slot(slot));
        }
        if position + PREFETCH_DISTANCE < heads.len() {
            prefetch(&self.packets[self.front_packet(heads.at(position + PREFETCH_DISTANCE)) as usize]);
        }
    }

    /// Fetches what virtual-channel allocation at later ports of a list will look at: first the port, then its request.
    #[inline(always)]
    fn prefetch_request(&self, ports: &List, position: usize) {
        if !self.parameters.fetches {
            return;
        }
        if position + 2 * PREFETCH_DISTANCE < ports.len() {
            prefetch(&self.wiring.links[ports.at(position + 2 * PREFETCH_DISTANCE)]);
        }
        if position + PREFETCH_DISTANCE < ports.len() {
            let port = ports.at(position + PREFETCH_DISTANCE);
            let head = self.wiring.links[port].request_head;
            if head != NONE {
                prefetch(self.lanes.input_slot(head));
                prefetch(self.lanes.output_slot(port << L::Mask::SHIFT));
            }
        }
    }

    /// Heads whose route computation of several cycles ends now begin to bid.
    pub(crate) fn post_delayed_requests(&mut self, now: u64, lists: &mut Tile) {
        if self.parameters.route_cycles < 2 {
            return;
        }
        let mut due = std::mem::take(lists.delayed(now));
        for &slot in &due {
            let port = self.lanes.input_slot(slot).request_next;
            self.request(slot, port);
            self.list_for_allocation(port, &mut lists.allocate);
        }
        due.clear();
        *lists.delayed(now) = due;
    }

    /// Puts a head at the front of a port's list of requests.
    #[inline(always)]
    fn request(&mut self, slot: u32, port: u32) {
        let first = &mut self.wiring.links[port].request_head;
        self.lanes.input_slot_mut(slot).request_next = std::mem::replace(first, slot);
    }

    /// Asks the routing for the output port of a head, and notes the virtual channels that it may take there.
    fn route_head(&mut self, slot: u32) -> u32 {
        let packet = self.front_packet(slot);
        let known = self.prediction.as_mut().and_then(|unit| unit.take_route(slot));
        let Route { candidate, state } = known.unwrap_or_else(|| self.find_route(slot, packet));
        let flits = self.enter_router(slot, packet, state);
        debug_assert!(candidate.virtual_channels.count() > 0);
        let input = self.lanes.input_slot_mut(slot);
        input.request_first = candidate.virtual_channels.begin as u8;
        input.request_last = (candidate.virtual_channels.end - 1) as u8;
        input.length = flits;
        self.claim(slot, &candidate, flits);
        let input_port = slot >> L::Mask::SHIFT;
        if let Some(unit) = &mut self.prediction {
            let counted = self.packets.counts_predictions(&self.statistics.counting, packet);
            unit.note_head(input_port, candidate.port, counted);
        }
        self.wiring.router_port[self.wiring.router_of_port[input_port]] + u32::from(candidate.port)
    }

    /// A head that has been routed claims its output.
    #[inline(always)]
    pub(crate) fn claim(&mut self, slot: u32, candidate: &Candidate, flits: u16) {
        if let Some(claims) = &mut self.routing.claims {
            let port = self.wiring.router_port[self.wiring.router_of_port[slot >> L::Mask::SHIFT]] + u32::from(candidate.port);
            claims.make(slot, port << L::Mask::SHIFT | u32::from(candidate.virtual_channels.begin), u32::from(flits));
        }
    }

    /// Where a head stands, and its routing state.
    #[inline(always)]
    pub(crate) fn hop(&self, slot: u32, packet: u32) -> (Hop, u32) {
        let record = &self.packets[packet as usize];
        let input_port = slot >> L::Mask::SHIFT;
        let router = self.wiring.router_of_port[input_port];
        let available = self.routing.channels_of_class[usize::from(record.class)][usize::from(record.is_reply)];
        let hop = Hop {
            router: RouterId(router),
            input: (input_port - self.wiring.router_port[router]) as u16,
            virtual_channel: (slot & (L::Mask::BITS - 1)) as u16,
            source: TerminalId(record.source),
            destination: TerminalId(record.destination),
            available,
        };
        (hop, record.route_state)
    }

    /// Where a head goes next, by the routing. Changes nothing that a result depends on, so it may be asked again.
    #[inline(always)]
    pub(crate) fn find_route(&mut self, slot: u32, packet: u32) -> Route {
        let Some(memo) = &self.routing.memo else { return self.compute_route(slot, packet).0 };
        let record = &self.packets[packet as usize];
        let router = self.wiring.router_of_port[slot >> L::Mask::SHIFT];
        let available = self.routing.channels_of_class[usize::from(record.class)][usize::from(record.is_reply)];
        let question = memo.question(router, slot, record.destination, record.route_state, available);
        if let Some((candidate, state)) = memo.answer(&question) {
            return Route { candidate, state };
        }
        let (route, asked) = self.compute_route(slot, packet);
        if let (false, Some(memo)) = (asked, &mut self.routing.memo) {
            memo.keep(question, route.candidate, route.state);
        }
        route
    }

    /// Asks the routing for the only candidate. Has it left anything to its choice?
    fn compute_route(&mut self, slot: u32, packet: u32) -> (Route, bool) {
        let (state, asked) = self.find_candidates(slot, packet);
        debug_assert_eq!(self.routing.candidates.len(), 1, "routings that offer several ports have routers of the general form");
        (Route { candidate: self.routing.candidates[0], state }, asked)
    }

    /// Asks the routing wherever a head may go: into `candidates`. Returns its routing state after that, and whether the routing has
    /// left anything to its choice.
    pub(crate) fn find_candidates(&mut self, slot: u32, packet: u32) -> (u32, bool) {
        let (hop, mut state) = self.hop(slot, packet);
        let record = &self.packets[packet as usize];
        let (source, serial, hops) = (record.source, record.serial, record.hops + 1);
        let mut candidates = std::mem::take(&mut self.routing.candidates);
        candidates.clear();
        let view = RouterView { simulation: self, base: self.wiring.router_port[hop.router.0] };
        let mut choice = Watched::new(HashedChoice::at_hop(packet_key(self.routing.seed, source, serial), u32::from(hops), view));
        self.scenario.routing.route(&hop, &mut state, &mut choice, &mut candidates);
        let asked = choice.asked;
        self.routing.candidates = candidates;
        (state, asked)
    }

    /// Counts a head in at the router that it stands at, with its routing state there. Returns its length.
    #[inline(always)]
    pub(crate) fn enter_router(&mut self, slot: u32, packet: u32, state: u32) -> u16 {
        let record = &mut self.packets[packet as usize];
        record.hops += 1;
        record.route_state = state;
        let flits = record.flits;
        self.lanes.set_left(slot, flits);
        if self.edge.hears_heads {
            let router = self.wiring.router_of_port[slot >> L::Mask::SHIFT];
            self.edge.feed_mut().head_came(router, &self.packets[packet as usize], self.cycle);
        }
        flits
    }

    /// Virtual-channel allocation at every listed port.
    #[inline(always)]
    pub(crate) fn allocate_virtual_channels(&mut self, lists: &mut Tile) {
        for position in 0..lists.allocate.len() {
            self.prefetch_request(&lists.allocate, position);
            let port = lists.allocate.at(position);
            self.wiring.links[port].listed = false;
            let head = self.wiring.links[port].request_head;
            if head == NONE {
                continue;
            }
            if let Some(general) = &self.vc_allocation.allocator {
                match general.allocator {
                    PlainAllocator::InputFirst => self.allocate_port_input_first(port),
                    PlainAllocator::Other(_) => self.allocate_port_generally(port),
                }
            } else if self.lanes.input_slot(head).request_next == NONE {
                self.allocate_port_alone(port, head);
            } else {
                self.allocate_port_contended(port);
            }
            // Losers bid again in the next cycle as long as something is free; otherwise a release lists the port.
            if !self.lanes.free(port).is_empty() {
                self.list_for_allocation(port, &mut lists.allocate_next);
            }
        }
        lists.allocate.clear();
    }

    /// The virtual channels of a port that a head may take now.
    #[inline(always)]
    pub(crate) fn eligible(&self, port: u32, slot: u32) -> L::Mask {
        let InputSlot { request_first: first, request_last: last, .. } = *self.lanes.input_slot(slot);
        let free = self.lanes.free(port).and(L::Mask::range(u32::from(first), u32::from(last) + 1));
        if self.parameters.switching == Switching::Wormhole { free } else { self.with_room(port, slot, free) }
    }

    /// Cut-through and store-and-forward: only buffers with room for the whole packet.
    fn with_room(&self, port: u32, slot: u32, free: L::Mask) -> L::Mask {
        let flits = self.lanes.left(slot);
        let (mut rest, mut roomy) = (free, L::Mask::default());
        while !rest.is_empty() {
            let vc = rest.first();
            rest = rest.rest();
            if self.lanes.credits(port << L::Mask::SHIFT | vc) >= flits {
                roomy = roomy.or(L::Mask::bit(vc));
            }
        }
        roomy
    }

    /// One head alone at its port: every free virtual channel would grant it; it accepts by its pointer.
    #[inline(always)]
    fn allocate_port_alone(&mut self, port: u32, head: u32) {
        let eligible = self.eligible(port, head);
        if eligible.is_empty() {
            return;
        }
        let base = port << L::Mask::SHIFT;
        let offset = self.lanes.input_slot(head).accept_pointer.wrapping_sub(base);
        let vc = if offset < L::Mask::BITS { eligible.first_from(offset) } else { eligible.first() };
        let output = base | vc;
        self.wiring.links[port].request_head = NONE;
        self.lanes.output_slot_mut(output).grant_pointer = head + 1;
        self.lanes.input_slot_mut(head).accept_pointer = output + 1;
        self.hold(head, output);
    }

    /// iSLIP of one iteration among the heads and free virtual channels of a port.
    fn allocate_port_contended(&mut self, port: u32) {
        let base = port << L::Mask::SHIFT;
        let mut requests = std::mem::take(&mut self.vc_allocation.requests);
        requests.clear();
        let mut free = self.lanes.free(port);
        while !free.is_empty() {
            let output = base | free.first();
            free = free.rest();
            let pointer = self.lanes.output_slot(output).grant_pointer;
            let (mut best, mut best_distance) = (NONE, u32::MAX);
            let mut head = self.wiring.links[port].request_head;
            while head != NONE {
                let distance = from_pointer(head, pointer);
                // The first one that may, however far it is: the head served last has the greatest distance of all numbers.
                if (best == NONE || distance < best_distance) && self.may_take(head, output) {
                    (best, best_distance) = (head, distance);
                }
                head = self.lanes.input_slot(head).request_next;
            }
            if best != NONE {
                requests.push((best, output));
            }
        }
        self.accept_grants(port, &mut requests);
        self.vc_allocation.requests = requests;
    }

    #[inline(always)]
    fn may_take(&self, head: u32, output: u32) -> bool {
        let InputSlot { request_first: first, request_last: last, .. } = *self.lanes.input_slot(head);
        let vc = (output & (L::Mask::BITS - 1)) as u8;
        first <= vc
            && vc <= last
            && (self.parameters.switching == Switching::Wormhole || self.lanes.credits(output) >= self.lanes.left(head))
    }

    /// Each head accepts the first grant at or after its pointer. `grants` holds (head, output) by output.
    fn accept_grants(&mut self, port: u32, grants: &mut Vec<(u32, u32)>) {
        while let Some(&(head, _)) = grants.first() {
            let pointer = self.lanes.input_slot(head).accept_pointer;
            let of_head = grants.iter().filter(|&&(other, _)| other == head);
            let &(_, output) =
                of_head.min_by_key(|&&(_, output)| from_pointer(output, pointer)).expect("the head's own grant is among them");
            grants.retain(|&(other, _)| other != head);
            self.lanes.output_slot_mut(output).grant_pointer = head + 1;
            self.lanes.input_slot_mut(head).accept_pointer = output + 1;
            self.withdraw(port, head);
            self.hold(head, output);
        }
    }

    /// Separable input-first with round-robin arbiters: each head picks a virtual channel by its pointer, each of these then a head.
    fn allocate_port_input_first(&mut self, port: u32) {
        let base = port << L::Mask::SHIFT;
        let mut picked = std::mem::take(&mut self.vc_allocation.requests);
        picked.clear();
        let mut head = self.wiring.links[port].request_head;
        while head != NONE {
            let eligible = self.eligible(port, head);
            if !eligible.is_empty() {
                let pointers = self.vc_allocation.allocator.as_ref().expect("asked for only where there is one");
                let offset = pointers.row[head].wrapping_sub(base);
                let vc = if offset < L::Mask::BITS { eligible.first_from(offset) } else { eligible.first() };
                let output = base | vc;
                let distance = |head: u32| from_pointer(head, pointers.column[output]);
                match picked.iter_mut().find(|(_, other)| *other == output) {
                    Some((best, _)) if distance(head) < distance(*best) => *best = head,
                    Some(_) => {}
                    None => picked.push((head, output)),
                }
            }
            head = self.lanes.input_slot(head).request_next;
        }
        for &(head, output) in &picked {
            let pointers = self.vc_allocation.allocator.as_mut().expect("asked for only where there is one");
            pointers.row[head] = output + 1;
            pointers.column[output] = head + 1;
            self.withdraw(port, head);
            self.hold(head, output);
        }
        self.vc_allocation.requests = picked;
    }

    /// Any other allocator, on the requests of one port.
    fn allocate_port_generally(&mut self, port: u32) {
        let base = port << L::Mask::SHIFT;
        let mut requests = std::mem::take(&mut self.vc_allocation.requests);
        requests.clear();
        let mut head = self.wiring.links[port].request_head;
        while head != NONE {
            let mut eligible = self.eligible(port, head);
            while !eligible.is_empty() {
                requests.push((head, base | eligible.first()));
                eligible = eligible.rest();
            }
            head = self.lanes.input_slot(head).request_next;
        }
        requests.sort_unstable();
        let mut matches = std::mem::take(&mut self.vc_allocation.matches);
        matches.clear();
        if !requests.is_empty() {
            let general = self.vc_allocation.allocator.as_mut().expect("asked for only where there is one");
            let pointers = Pointers { row: &mut general.row, column: &mut general.column };
            if let PlainAllocator::Other(allocator) = &mut general.allocator {
                allocator.allocate(&requests, pointers, &mut matches);
            }
        }
        for &(head, output) in &matches {
            self.withdraw(port, head);
            self.hold(head, output);
        }
        (self.vc_allocation.requests, self.vc_allocation.matches) = (requests, matches);
    }

    /// Takes a head out of its port's list of requests.
    fn withdraw(&mut self, port: u32, head: u32) {
        let next = self.lanes.input_slot(head).request_next;
        if self.wiring.links[port].request_head == head {
            self.wiring.links[port].request_head = next;
            return;
        }
        let mut before = self.wiring.links[port].request_head;
        while self.lanes.input_slot(before).request_next != head {
            before = self.lanes.input_slot(before).request_next;
        }
        self.lanes.input_slot_mut(before).request_next = next;
    }

    /// Gives an output virtual channel to a head.
    #[inline(always)]
    pub(crate) fn hold(&mut self, head: u32, output: u32) {
        self.lanes.hold(head, output);
        if let Some(claims) = &mut self.routing.claims {
            claims.give_up(head);
        }
        let packet = self.front_packet(head);
        self.announce_packet(output, packet);
    }

    /// The tail has left: the output virtual channel becomes free, the next packet in the buffer becomes a head.
    #[inline(always)]
    pub(crate) fn release(&mut self, slot: u32, output: u32, lists: &mut Tile) {
        self.leave_queue(slot);
        if self.parameters.release == VcRelease::Tail {
            self.lanes.set_free(output);
            self.list_for_allocation(output >> L::Mask::SHIFT, &mut lists.allocate_next);
        }
        if self.lanes.flits(slot) > 0 && self.next_packet_is_ready(slot) {
            lists.heads_next.push(slot);
        }
    }

    #[inline(always)]
    fn next_packet_is_ready(&self, slot: u32) -> bool {
        self.parameters.switching != Switching::StoreAndForward
            || self.lanes.flits(slot) >= u32::from(self.packets[self.front_packet(slot) as usize].flits)
    }
}
