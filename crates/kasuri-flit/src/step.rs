//! One cycle of a tile of routers.
//!
//! The order within a cycle: flits and credits that arrive are taken; heads that have been routed bid for virtual channels; new
//! heads are routed; held virtual channels with a flit and a credit bid for the switch; winners cross it, their flits and
//! credits are posted. Each step is one flat loop over a list, so that the cost follows the events and branches stay
//! predictable; the result does not depend on the order within a list.

use crate::allocator::{Pointers, from_pointer};
use crate::choice::{HashedChoice, RouterView, packet_key};
use crate::list::List;
use crate::state::{NONE, OutputVc, Simulation, Tile};
use crate::vc_mask::VcMask;
use kasuri_model::id::{RouterId, TerminalId};
use kasuri_model::router::{Bidding, Switching, VcRelease};
use kasuri_model::routing::Hop;

impl<M: VcMask> Simulation<'_, M> {
    /// Advances one tile of routers through cycle `now`.
    #[inline(always)]
    pub(crate) fn router_cycle(&mut self, tile: u32, now: u64) {
        let mut lists = std::mem::take(&mut self.tiles[tile as usize]);
        self.take_arrivals(tile, now, &mut lists);
        self.take_credits(tile, now, &mut lists);
        match self.parameters.route_cycles {
            0 => {
                self.route_heads(now, &mut lists);
                self.allocate_virtual_channels(&mut lists);
            }
            1 => {
                self.allocate_virtual_channels(&mut lists);
                self.route_heads(now, &mut lists);
            }
            cycles => {
                self.post_delayed_requests(now, &mut lists);
                self.allocate_virtual_channels(&mut lists);
                self.route_heads(now, &mut lists);
                debug_assert_eq!(lists.delayed.len(), cycles as usize);
            }
        }
        if self.parameters.bidding == Bidding::SameCycle {
            self.activate_granted(&mut lists);
        }
        self.allocate_switch(&mut lists, now);
        if self.parameters.bidding == Bidding::Speculative {
            self.allocate_switch_speculatively(&mut lists, now);
        }
        self.traverse(&mut lists, now);
        self.lanes().keep_active(&mut lists.active);
        if self.parameters.bidding != Bidding::SameCycle {
            self.activate_granted(&mut lists);
        }
        std::mem::swap(&mut lists.allocate, &mut lists.allocate_next);
        std::mem::swap(&mut lists.heads, &mut lists.heads_next);
        lists.heads_next.clear();
        lists.allocate_next.clear();
        self.tiles[tile as usize] = lists;
    }

    /// Flits enter their buffers.
    #[inline(always)]
    fn take_arrivals(&mut self, tile: u32, now: u64, lists: &mut Tile) {
        let lanes = self.lanes();
        let events = self.arrivals.events(now, tile);
        if self.parameters.switching == Switching::StoreAndForward {
            for position in 0..events.len() {
                let slot = self.arrivals.events(now, tile)[position];
                self.input[slot].flits += 1;
                self.arrive_store_and_forward(slot, lists);
            }
        } else {
            lanes.take_arrivals(events, &mut lists.active, &mut lists.heads);
        }
        self.arrivals.clear(now, tile);
    }

    /// Store-and-forward: the front packet is routed when its tail has arrived; then all its flits are there.
    fn arrive_store_and_forward(&mut self, slot: u32, lists: &mut Tile) {
        let input = self.input[slot];
        if input.output == NONE && input.flits == self.packets[self.front_packet(slot) as usize].flits {
            lists.heads.push(slot);
        }
    }

    /// Credits come back.
    #[inline(always)]
    fn take_credits(&mut self, tile: u32, now: u64, lists: &mut Tile) {
        let lanes = self.lanes();
        let events = self.credits.events(now, tile);
        lanes.take_credits(events, &mut lists.active);
        if self.credits_free_channels() {
            for position in 0..events.len() {
                let slot = self.credits.events(now, tile)[position];
                if self.output[slot].holder == NONE {
                    self.credit_of_idle_channel(slot, lists);
                }
            }
        }
        self.credits.clear(now, tile);
    }

    /// Can a credit alone make an unheld virtual channel available?
    #[inline(always)]
    fn credits_free_channels(&self) -> bool {
        self.parameters.switching != Switching::Wormhole || self.parameters.release == VcRelease::TailCredit
    }

    fn credit_of_idle_channel(&mut self, slot: u32, lists: &mut Tile) {
        let (port, vc) = (slot >> M::SHIFT, slot & (M::BITS - 1));
        if self.parameters.release == VcRelease::TailCredit {
            if self.output[slot].credits < self.parameters.buffer_flits {
                return;
            }
            let port = &mut self.output_port[port];
            port.free = port.free.or(M::bit(vc));
        }
        self.list_for_allocation(port, &mut lists.allocate);
    }

    /// Puts a port on a list for virtual-channel allocation, once.
    #[inline(always)]
    fn list_for_allocation(&mut self, port: u32, list: &mut List) {
        if self.request_head[port] != NONE && !self.output_port[port].vc_listed {
            self.output_port[port].vc_listed = true;
            list.push(port);
        }
    }

    /// The packet at the front of a buffer.
    #[inline(always)]
    pub(crate) fn front_packet(&self, slot: u32) -> u32 {
        let ring_shift = self.parameters.ring_shift;
        self.ring[slot << ring_shift | u32::from(self.ring_head[slot]) & ((1 << ring_shift) - 1)]
    }

    /// Announces a packet to the buffer at the other end of an output virtual channel.
    #[inline(always)]
    pub(crate) fn announce_packet(&mut self, output: u32, packet: u32) {
        let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
        let downstream = self.output_port[port].link + vc;
        let ring_shift = self.parameters.ring_shift;
        let tail = &mut self.output[output].ring_tail;
        let place = downstream << ring_shift | u32::from(*tail) & ((1 << ring_shift) - 1);
        *tail = tail.wrapping_add(1);
        self.ring[place] = packet;
    }

    /// Routes the new heads: each asks for virtual channels of one output port.
    #[inline(always)]
    fn route_heads(&mut self, now: u64, lists: &mut Tile) {
        for position in 0..lists.heads.len() {
            let slot = lists.heads.at(position);
            let port = self.route_head(slot);
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
                    let list = ((now + u64::from(cycles)) % u64::from(cycles)) as usize;
                    self.request_next[slot] = port;
                    lists.delayed[list].push(slot);
                }
            }
        }
        lists.heads.clear();
    }

    /// Heads whose route computation of several cycles ends now begin to bid.
    fn post_delayed_requests(&mut self, now: u64, lists: &mut Tile) {
        let list = (now % u64::from(self.parameters.route_cycles)) as usize;
        let mut due = std::mem::take(&mut lists.delayed[list]);
        for &slot in &due {
            let port = self.request_next[slot];
            self.request(slot, port);
            self.list_for_allocation(port, &mut lists.allocate);
        }
        due.clear();
        lists.delayed[list] = due;
    }

    /// Puts a head at the front of a port's list of requests.
    #[inline(always)]
    fn request(&mut self, slot: u32, port: u32) {
        self.request_next[slot] = self.request_head[port];
        self.request_head[port] = slot;
    }

    /// Asks the routing for the output port of a head, and notes the virtual channels that it may take there.
    fn route_head(&mut self, slot: u32) -> u32 {
        let packet = self.front_packet(slot);
        let record = &mut self.packets[packet as usize];
        record.hops += 1;
        let input_port = slot >> M::SHIFT;
        let router = self.router_of_port[input_port];
        let base = self.router_port[router];
        let class = &self.scenario.classes[usize::from(record.class)];
        let available = match &class.reply {
            Some(reply) if record.is_reply => reply.virtual_channels,
            _ => class.virtual_channels,
        };
        let hop = Hop {
            router: RouterId(router),
            input: (input_port - base) as u16,
            virtual_channel: (slot & (M::BITS - 1)) as u16,
            source: TerminalId(record.source),
            destination: TerminalId(record.destination),
            available,
        };
        let (flits, mut state) = (record.flits, record.route_state);
        let draw_key = packet_key(self.routing_seed, record.source, record.serial).wrapping_add(u64::from(record.hops) << 32);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let mut choice = HashedChoice { key: draw_key, draws: 0, view: RouterView { simulation: self, base } };
        self.scenario.routing.route(&hop, &mut state, &mut choice, &mut candidates);
        debug_assert_eq!(candidates.len(), 1, "one candidate port per hop; adaptive sets come with their own router");
        let candidate = candidates[0];
        self.candidates = candidates;
        self.packets[packet as usize].route_state = state;
        self.input[slot].left = flits;
        debug_assert!(candidate.virtual_channels.count() > 0);
        self.request_range[slot] = (candidate.virtual_channels.begin as u8, (candidate.virtual_channels.end - 1) as u8);
        base + u32::from(candidate.port)
    }

    /// Virtual-channel allocation at every listed port.
    #[inline(always)]
    fn allocate_virtual_channels(&mut self, lists: &mut Tile) {
        for position in 0..lists.allocate.len() {
            let port = lists.allocate.at(position);
            self.output_port[port].vc_listed = false;
            let head = self.request_head[port];
            if head == NONE {
                continue;
            }
            if self.parameters.bidding == Bidding::Speculative {
                self.bid_speculatively(port, lists);
            }
            if self.vc_allocator.is_some() {
                self.allocate_port_generally(port, lists);
            } else if self.request_next[head] == NONE {
                self.allocate_port_alone(port, head, lists);
            } else {
                self.allocate_port_contended(port, lists);
            }
            // Losers bid again in the next cycle as long as something is free; otherwise a release lists the port.
            if !self.output_port[port].free.is_empty() {
                self.list_for_allocation(port, &mut lists.allocate_next);
            }
        }
        lists.allocate.clear();
    }

    /// The virtual channels of a port that a head may take now.
    #[inline(always)]
    fn eligible(&self, port: u32, slot: u32) -> M {
        let (first, last) = self.request_range[slot];
        let free = self.output_port[port].free.and(M::range(u32::from(first), u32::from(last) + 1));
        if self.parameters.switching == Switching::Wormhole { free } else { self.with_room(port, slot, free) }
    }

    /// Cut-through and store-and-forward: only buffers with room for the whole packet.
    fn with_room(&self, port: u32, slot: u32, free: M) -> M {
        let flits = self.input[slot].left;
        let (mut rest, mut roomy) = (free, M::default());
        while !rest.is_empty() {
            let vc = rest.first();
            rest = rest.rest();
            if self.output[port << M::SHIFT | vc].credits >= flits {
                roomy = roomy.or(M::bit(vc));
            }
        }
        roomy
    }

    /// One head alone at its port: every free virtual channel would grant it; it accepts by its pointer.
    #[inline(always)]
    fn allocate_port_alone(&mut self, port: u32, head: u32, lists: &mut Tile) {
        let eligible = self.eligible(port, head);
        if eligible.is_empty() {
            return;
        }
        let base = port << M::SHIFT;
        let offset = self.vc_accept_pointer[head].wrapping_sub(base);
        let vc = if offset < M::BITS { eligible.first_from(offset) } else { eligible.first() };
        let output = base | vc;
        self.request_head[port] = NONE;
        self.vc_grant_pointer[output] = head + 1;
        self.vc_accept_pointer[head] = output + 1;
        self.hold(head, output, lists);
    }

    /// iSLIP of one iteration among the heads and free virtual channels of a port.
    fn allocate_port_contended(&mut self, port: u32, lists: &mut Tile) {
        let base = port << M::SHIFT;
        lists.requests.clear();
        let mut free = self.output_port[port].free;
        while !free.is_empty() {
            let output = base | free.first();
            free = free.rest();
            let pointer = self.vc_grant_pointer[output];
            let (mut best, mut best_distance) = (NONE, u32::MAX);
            let mut head = self.request_head[port];
            while head != NONE {
                let distance = from_pointer(head, pointer);
                // The first one that may, however far it is: the head served last has the greatest distance of all numbers.
                if (best == NONE || distance < best_distance) && self.may_take(head, output) {
                    (best, best_distance) = (head, distance);
                }
                head = self.request_next[head];
            }
            if best != NONE {
                lists.requests.push((best, output));
            }
        }
        self.accept_grants(port, lists);
    }

    #[inline(always)]
    fn may_take(&self, head: u32, output: u32) -> bool {
        let (first, last) = self.request_range[head];
        let vc = (output & (M::BITS - 1)) as u8;
        first <= vc
            && vc <= last
            && (self.parameters.switching == Switching::Wormhole || self.output[output].credits >= self.input[head].left)
    }

    /// Each head accepts the first grant at or after its pointer. `lists.requests` holds (head, output) by output.
    fn accept_grants(&mut self, port: u32, lists: &mut Tile) {
        while let Some(&(head, _)) = lists.requests.first() {
            let pointer = self.vc_accept_pointer[head];
            let &(_, output) = lists
                .requests
                .iter()
                .filter(|&&(other, _)| other == head)
                .min_by_key(|&&(_, output)| from_pointer(output, pointer))
                .expect("the head's own grant is among them");
            lists.requests.retain(|&(other, _)| other != head);
            self.vc_grant_pointer[output] = head + 1;
            self.vc_accept_pointer[head] = output + 1;
            self.withdraw(port, head);
            self.hold(head, output, lists);
        }
    }

    /// Any other allocator, on the requests of one port.
    fn allocate_port_generally(&mut self, port: u32, lists: &mut Tile) {
        let base = port << M::SHIFT;
        lists.requests.clear();
        let mut head = self.request_head[port];
        while head != NONE {
            let mut eligible = self.eligible(port, head);
            while !eligible.is_empty() {
                lists.requests.push((head, base | eligible.first()));
                eligible = eligible.rest();
            }
            head = self.request_next[head];
        }
        if lists.requests.is_empty() {
            return;
        }
        lists.requests.sort_unstable();
        lists.matches.clear();
        let pointers = Pointers { row: &mut self.vc_accept_pointer, column: &mut self.vc_grant_pointer };
        let allocator = self.vc_allocator.as_mut().expect("asked for only where there is one");
        allocator.allocate(&lists.requests, pointers, &mut lists.matches);
        for position in 0..lists.matches.len() {
            let (head, output) = lists.matches[position];
            self.withdraw(port, head);
            self.hold(head, output, lists);
        }
    }

    /// Takes a head out of its port's list of requests.
    fn withdraw(&mut self, port: u32, head: u32) {
        let next = self.request_next[head];
        if self.request_head[port] == head {
            self.request_head[port] = next;
            return;
        }
        let mut before = self.request_head[port];
        while self.request_next[before] != head {
            before = self.request_next[before];
        }
        self.request_next[before] = next;
    }

    /// Gives an output virtual channel to a head.
    #[inline(always)]
    fn hold(&mut self, head: u32, output: u32, lists: &mut Tile) {
        let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
        let port = &mut self.output_port[port];
        port.free = port.free.without(M::bit(vc));
        self.output[output].holder = head;
        self.input[head].output = output;
        let packet = self.front_packet(head);
        self.announce_packet(output, packet);
        lists.granted.push(output);
    }

    /// Virtual channels granted in this cycle begin to bid for the switch, unless their packet is already gone.
    #[inline(always)]
    fn activate_granted(&mut self, lists: &mut Tile) {
        for position in 0..lists.granted.len() {
            let output = lists.granted.at(position);
            let OutputVc { holder, credits, .. } = self.output[output];
            if credits > 0 && holder != NONE && self.input[holder].flits > 0 {
                self.lanes().set_ready(output, &mut lists.active);
            }
        }
        lists.granted.clear();
    }

    /// Switch allocation: iSLIP of one iteration over input and output ports, or another allocator.
    #[inline(always)]
    fn allocate_switch(&mut self, lists: &mut Tile, now: u64) {
        if self.parameters.plain {
            return self.lanes().allocate_switch(&lists.active, &mut lists.winners);
        }
        if self.switch_allocator.is_some() {
            return self.allocate_switch_generally(lists, now);
        }
        for position in 0..lists.active.len() {
            let port = lists.active.at(position);
            if self.parameters.periodic && self.busy_until[port] > now {
                continue;
            }
            let output = self.lanes().pick_ready(port);
            let input_port = self.output[output].holder >> M::SHIFT;
            self.lanes().offer(input_port, output, &mut lists.winners);
        }
    }

    /// Any other switch allocator, on the requests of all routers of the tile at once.
    fn allocate_switch_generally(&mut self, lists: &mut Tile, now: u64) {
        lists.requests.clear();
        for &port in lists.active.as_slice() {
            if self.parameters.periodic && self.busy_until[port] > now {
                continue;
            }
            let mut ready = self.output_port[port].ready;
            while !ready.is_empty() {
                lists.requests.push((self.output[port << M::SHIFT | ready.first()].holder >> M::SHIFT, port));
                ready = ready.rest();
            }
        }
        lists.requests.sort_unstable();
        lists.requests.dedup();
        lists.matches.clear();
        let pointers = Pointers { row: &mut self.switch_row_pointer, column: &mut self.switch_column_pointer };
        let allocator = self.switch_allocator.as_mut().expect("asked for only where there is one");
        allocator.allocate(&lists.requests, pointers, &mut lists.matches);
        for position in 0..lists.matches.len() {
            let (input_port, port) = lists.matches[position];
            let output = self.pick_of_input(port, input_port);
            self.lanes().offer(input_port, output, &mut lists.winners);
        }
    }

    /// Of the ready virtual channels of `port` that `input_port` holds, the first by the input port's pointer.
    fn pick_of_input(&self, port: u32, input_port: u32) -> u32 {
        let pointer = u32::from(self.input_port[input_port].vc_pointer);
        let mut ready = self.output_port[port].ready;
        let (mut best, mut best_distance) = (NONE, u32::MAX);
        while !ready.is_empty() {
            let output = port << M::SHIFT | ready.first();
            ready = ready.rest();
            let holder = self.output[output].holder;
            let distance = from_pointer(holder & (M::BITS - 1), pointer);
            if holder >> M::SHIFT == input_port && (best == NONE || distance < best_distance) {
                (best, best_distance) = (output, distance);
            }
        }
        best
    }

    /// Notes the head that would cross to this port if nobody else does: the first by the switch pointers among those with a
    /// virtual channel to win and a credit there.
    fn bid_speculatively(&mut self, port: u32, lists: &mut Tile) {
        let grant_pointer = self.output_port[port].grant_pointer;
        let (mut best, mut best_key) = (NONE, u64::MAX);
        let mut head = self.request_head[port];
        while head != NONE {
            let input_port = head >> M::SHIFT;
            let port_distance = input_port.wrapping_sub(port).wrapping_sub(grant_pointer as u32);
            let vc_distance = (head & (M::BITS - 1)).wrapping_sub(u32::from(self.input_port[input_port].vc_pointer));
            let key = u64::from(port_distance) << 32 | u64::from(vc_distance);
            if (best == NONE || key < best_key) && self.has_credit(port, self.eligible(port, head)) {
                (best, best_key) = (head, key);
            }
            head = self.request_next[head];
        }
        if best != NONE {
            lists.speculative.push((port, best));
        }
    }

    fn has_credit(&self, port: u32, mut channels: M) -> bool {
        while !channels.is_empty() {
            if self.output[port << M::SHIFT | channels.first()].credits > 0 {
                return true;
            }
            channels = channels.rest();
        }
        false
    }

    /// Speculative bids take what real requests left: neither an output port that anyone asked for, nor an input port that won.
    /// A bid whose head won no virtual channel in this cycle, or one without a credit, wastes the slot.
    fn allocate_switch_speculatively(&mut self, lists: &mut Tile, now: u64) {
        let real = lists.winners.len();
        for position in 0..lists.speculative.len() {
            let (port, head) = lists.speculative[position];
            let input_port = head >> M::SHIFT;
            let busy = self.parameters.periodic && self.busy_until[port] > now;
            if busy || !self.output_port[port].ready.is_empty() || lists.winners.as_slice()[..real].contains(&input_port) {
                continue;
            }
            // The bid stands for its port until the outcome of virtual-channel allocation is looked up below.
            self.lanes().offer(input_port, port << M::SHIFT, &mut lists.winners);
        }
        let mut kept = real;
        for position in real..lists.winners.len() {
            let input_port = lists.winners.at(position);
            let port = self.input_port[input_port].candidate >> M::SHIFT;
            let &(_, head) = lists.speculative.iter().find(|&&(bid, _)| bid == port).expect("the candidate came from a bid");
            let output = self.input[head].output;
            if output != NONE && self.output[output].credits > 0 {
                self.input_port[input_port].candidate = output;
                lists.winners.set(kept, input_port);
                kept += 1;
            } else {
                self.input_port[input_port].candidate = NONE;
            }
        }
        lists.winners.truncate(kept);
        lists.speculative.clear();
    }

    /// Winners cross the switch.
    #[inline(always)]
    fn traverse(&mut self, lists: &mut Tile, now: u64) {
        self.statistics.flit_hops += lists.winners.len() as u64;
        let lanes = self.lanes();
        for position in 0..lists.winners.len() {
            let (output, slot, is_tail) = lanes.send(lists.winners.at(position), now as u32);
            if self.parameters.periodic {
                let port = output >> M::SHIFT;
                self.busy_until[port] = now + u64::from(self.period[port]);
            }
            if is_tail {
                self.release(slot, output, lists);
            }
        }
        lists.winners.clear();
    }

    /// The tail has left: the output virtual channel becomes free, the next packet in the buffer becomes a head.
    #[inline(always)]
    fn release(&mut self, slot: u32, output: u32, lists: &mut Tile) {
        let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
        self.output[output].holder = NONE;
        self.input[slot].output = NONE;
        self.ring_head[slot] = self.ring_head[slot].wrapping_add(1);
        if self.parameters.release == VcRelease::Tail {
            let out = &mut self.output_port[port];
            out.free = out.free.or(M::bit(vc));
            self.list_for_allocation(port, &mut lists.allocate_next);
        }
        if self.input[slot].flits > 0 && self.next_packet_is_ready(slot) {
            lists.heads_next.push(slot);
        }
    }

    #[inline(always)]
    fn next_packet_is_ready(&self, slot: u32) -> bool {
        self.parameters.switching != Switching::StoreAndForward
            || self.input[slot].flits >= self.packets[self.front_packet(slot) as usize].flits
    }
}
