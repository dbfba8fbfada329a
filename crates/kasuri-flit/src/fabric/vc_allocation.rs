//! Virtual-channel allocation and release, once per packet and router.

use crate::record::allocators::PlainAllocator;
use crate::record::allocators::allocator::{Pointers, from_pointer};
use crate::record::list::List;
use crate::record::marks::NONE;
use crate::record::prefetch::{prefetch, prefetch_range};
use crate::record::slots::InputSlot;
use crate::record::vc_mask::VcMask;
use crate::state::blocks::Block;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_model::router::{Switching, VcRelease};

/// Packets between asking for a cache line and its use: a memory access takes as long as a few of them.
pub(super) const PREFETCH_DISTANCE: usize = 12;

/// Buffers of a port that are fetched ahead of the announcement of a packet: four cache lines or fewer.
const MOST_BUFFERS_FETCHED: u32 = 8;

impl<L: RouterState> Tile<'_, L> {
    /// Puts a port on a list for virtual-channel allocation, once, if somebody waits there.
    #[inline(always)]
    pub(crate) fn list_for_allocation(&mut self, port: u32, list: &mut List) {
        self.wiring.links[port].list_for_allocation(port, list);
    }

    /// The packet at the front of a buffer.
    #[inline(always)]
    pub(crate) fn front_packet(&self, slot: u32) -> u32 {
        self.layout.input_slot(slot).queue.front()
    }

    /// Announces a packet to the buffer at the other end of an output virtual channel.
    #[inline(always)]
    pub(crate) fn announce_packet(&mut self, output: u32, packet: u32) {
        let (port, vc) = (output >> L::Mask::SHIFT, output & (L::Mask::BITS - 1));
        self.join_queue(self.wiring.links[port].flit_link + vc, packet);
    }

    /// A packet joins the queue of a buffer. Where nothing has to be fetched ahead, the rings lie near.
    #[inline(always)]
    pub(crate) fn join_queue(&mut self, slot: u32, packet: u32) {
        let (rings, (queue, behind)) = (&mut self.buffers.rings, self.layout.queue_mut(slot));
        if self.parameters.fetches {
            rings.push(queue, behind, slot, packet);
        } else {
            rings.push_near(queue, slot, packet);
        }
    }

    /// The front packet has left a buffer. As in [`Self::join_queue`].
    #[inline(always)]
    pub(crate) fn leave_queue(&mut self, slot: u32) {
        let (rings, (queue, behind)) = (&mut self.buffers.rings, self.layout.queue_mut(slot));
        if self.parameters.fetches {
            rings.pop(queue, behind, slot);
        } else {
            rings.pop_near(queue, slot);
        }
    }

    /// Fetches what virtual-channel allocation at later ports of a list will look at: first the port, then its request.
    #[inline(always)]
    pub(crate) fn prefetch_later_request(&self, ports: &List, position: usize) {
        if !self.parameters.fetches {
            return;
        }
        if position + 2 * PREFETCH_DISTANCE < ports.len() {
            self.wiring.links[ports.at(position + 2 * PREFETCH_DISTANCE)].prefetch();
        }
        self.prefetch_request(ports, position + PREFETCH_DISTANCE);
    }

    /// The same for the first ports of a list, which no port before them does. Those of new heads have been fetched.
    #[inline(always)]
    pub(crate) fn prefetch_first_requests(&self, ports: &List) {
        if self.parameters.fetches {
            (0..ports.len().min(PREFETCH_DISTANCE)).for_each(|position| self.prefetch_request(ports, position));
        }
    }

    #[inline(always)]
    fn prefetch_request(&self, ports: &List, position: usize) {
        if position < ports.len() {
            let port = ports.at(position);
            let head = self.wiring.links[port].request_head;
            if head != NONE {
                self.layout.prefetch_input(head);
                prefetch(self.layout.output_slot(port << L::Mask::SHIFT));
                self.layout.prefetch_free(port);
                self.prefetch_buffers(self.wiring.links[port].flit_link);
            }
        }
    }

    /// Fetches the buffers at the other end of a channel, in one of which a packet will be announced: the first of them is given. Only some,
    /// where virtual channels are many: most of their lines would be fetched in vain.
    #[inline(always)]
    pub(crate) fn prefetch_buffers(&self, first: u32) {
        let last = first + L::Mask::BITS.min(MOST_BUFFERS_FETCHED) - 1;
        prefetch_range(self.layout.input_slot(first), self.layout.input_slot(last));
    }

    /// Virtual-channel allocation at every listed port.
    #[inline(always)]
    pub(crate) fn allocate_virtual_channels(&mut self, lists: &mut Block) {
        self.prefetch_first_requests(&lists.allocate);
        for position in 0..lists.allocate.len() {
            self.prefetch_later_request(&lists.allocate, position);
            let port = lists.allocate.at(position);
            self.wiring.links[port].listed = false;
            let head = self.wiring.links[port].request_head;
            if head == NONE {
                continue;
            }
            if let Some(general) = &self.vc_allocation.allocator {
                match general.allocator {
                    PlainAllocator::InputFirst => self.allocate_port_input_first(port),
                    PlainAllocator::Other(_) => self.allocate_port_by_requests(port),
                }
            } else if self.layout.input_slot(head).request_next == NONE {
                self.allocate_port_alone(port, head);
            } else {
                self.allocate_port_contended(port);
            }
            // Losers bid again in the next cycle as long as something is free; otherwise a release lists the port.
            if !self.layout.free(port).is_empty() {
                self.list_for_allocation(port, &mut lists.allocate_next);
            }
        }
        lists.allocate.clear();
    }

    /// The virtual channels of a port that a head may take now.
    #[inline(always)]
    pub(crate) fn eligible(&self, port: u32, slot: u32) -> L::Mask {
        let free = self.free_of_range(port, slot);
        if self.parameters.switching == Switching::Wormhole { free } else { self.with_room(port, slot, free) }
    }

    /// The free virtual channels of a port among those that a head asks for.
    #[inline(always)]
    pub(crate) fn free_of_range(&self, port: u32, slot: u32) -> L::Mask {
        let InputSlot { request_first: first, request_last: last, .. } = *self.layout.input_slot(slot);
        self.layout.free(port).and(L::Mask::range(u32::from(first), u32::from(last) + 1))
    }

    /// Cut-through and store-and-forward: flits that must be free beyond an output virtual channel for a head to get it, those of the whole
    /// packet, or more where it enters a ring with a bubble.
    #[inline(always)]
    fn room_needed(&self, head: u32, output: u32) -> u32 {
        let flits = self.layout.left(head);
        self.vc_allocation.bubbles.as_ref().map_or(flits, |bubbles| bubbles.room(head, output, L::Mask::SHIFT, flits))
    }

    /// Cut-through and store-and-forward: only buffers with room for the whole packet.
    fn with_room(&self, port: u32, slot: u32, free: L::Mask) -> L::Mask {
        let (mut rest, mut roomy) = (free, L::Mask::default());
        while !rest.is_empty() {
            let vc = rest.first();
            rest = rest.rest();
            let output = port << L::Mask::SHIFT | vc;
            if self.layout.credits(output) >= self.room_needed(slot, output) {
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
        let offset = self.layout.input_slot(head).accept_pointer.wrapping_sub(base);
        let vc = if offset < L::Mask::BITS { eligible.first_from(offset) } else { eligible.first() };
        let output = base | vc;
        self.wiring.links[port].request_head = NONE;
        self.layout.output_slot_mut(output).grant_pointer = head + 1;
        self.layout.input_slot_mut(head).accept_pointer = output + 1;
        self.hold(head, output);
    }

    /// iSLIP of one iteration among the heads and free virtual channels of a port.
    fn allocate_port_contended(&mut self, port: u32) {
        let base = port << L::Mask::SHIFT;
        let mut requests = std::mem::take(&mut self.vc_allocation.requests);
        requests.clear();
        let mut free = self.layout.free(port);
        while !free.is_empty() {
            let output = base | free.first();
            free = free.rest();
            let best = self.first_that_may_take(output, self.layout.output_slot(output).grant_pointer);
            if best != NONE {
                requests.push((best, output));
            }
        }
        self.accept_grants(port, &mut requests);
        self.vc_allocation.requests = requests;
    }

    /// Of the heads that ask for a port, the first one at or after a pointer that may take this virtual channel of it, or [`NONE`].
    #[inline(always)]
    pub(crate) fn first_that_may_take(&self, output: u32, pointer: u32) -> u32 {
        let (mut best, mut best_distance) = (NONE, u32::MAX);
        let mut head = self.wiring.links[output >> L::Mask::SHIFT].request_head;
        while head != NONE {
            let distance = from_pointer(head, pointer);
            // The first one that may, however far it is: the head served last has the greatest distance of all numbers.
            if (best == NONE || distance < best_distance) && self.may_take(head, output) {
                (best, best_distance) = (head, distance);
            }
            head = self.layout.input_slot(head).request_next;
        }
        best
    }

    #[inline(always)]
    fn may_take(&self, head: u32, output: u32) -> bool {
        let InputSlot { request_first: first, request_last: last, .. } = *self.layout.input_slot(head);
        let vc = (output & (L::Mask::BITS - 1)) as u8;
        first <= vc
            && vc <= last
            && (self.parameters.switching == Switching::Wormhole || self.layout.credits(output) >= self.room_needed(head, output))
    }

    /// Each head accepts the first grant at or after its pointer. `grants` holds (head, output) by output.
    fn accept_grants(&mut self, port: u32, grants: &mut Vec<(u32, u32)>) {
        while let Some(&(head, _)) = grants.first() {
            let pointer = self.layout.input_slot(head).accept_pointer;
            let of_head = grants.iter().filter(|&&(other, _)| other == head);
            let &(_, output) =
                of_head.min_by_key(|&&(_, output)| from_pointer(output, pointer)).expect("the head's own grant is among them");
            grants.retain(|&(other, _)| other != head);
            self.layout.output_slot_mut(output).grant_pointer = head + 1;
            self.layout.input_slot_mut(head).accept_pointer = output + 1;
            self.withdraw(port, head);
            self.hold(head, output);
        }
    }

    /// Separable input-first with round-robin arbiters: each head picks a virtual channel by its pointer, each of these then a head.
    fn allocate_port_input_first(&mut self, port: u32) {
        let free = self.layout.free(port);
        if free.rest().is_empty() {
            return self.allocate_last_input_first(port, free);
        }
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
            head = self.layout.input_slot(head).request_next;
        }
        for &(head, output) in &picked {
            self.give_input_first(port, head, output);
        }
        self.vc_allocation.requests = picked;
    }

    /// The same where at most one virtual channel is free, as in a network that is full: whoever may take it picks it.
    fn allocate_last_input_first(&mut self, port: u32, free: L::Mask) {
        if free.is_empty() {
            return;
        }
        let output = port << L::Mask::SHIFT | free.first();
        let pointer = self.vc_allocation.allocator.as_ref().expect("asked for only where there is one").column[output];
        let best = self.first_that_may_take(output, pointer);
        if best != NONE {
            self.give_input_first(port, best, output);
        }
    }

    /// A head wins a virtual channel of separable input-first allocation; both pointers move behind the partner.
    fn give_input_first(&mut self, port: u32, head: u32, output: u32) {
        let pointers = self.vc_allocation.allocator.as_mut().expect("asked for only where there is one");
        pointers.row[head] = output + 1;
        pointers.column[output] = head + 1;
        self.withdraw(port, head);
        self.hold(head, output);
    }

    /// Any other allocator, on the requests of one port.
    fn allocate_port_by_requests(&mut self, port: u32) {
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
            head = self.layout.input_slot(head).request_next;
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
        let next = self.layout.input_slot(head).request_next;
        if self.wiring.links[port].request_head == head {
            self.wiring.links[port].request_head = next;
            return;
        }
        let mut before = self.wiring.links[port].request_head;
        while self.layout.input_slot(before).request_next != head {
            before = self.layout.input_slot(before).request_next;
        }
        self.layout.input_slot_mut(before).request_next = next;
    }

    /// Gives an output virtual channel to a head.
    #[inline(always)]
    pub(crate) fn hold(&mut self, head: u32, output: u32) {
        self.layout.hold(head, output);
        if let Some(claims) = &mut self.routing.claims {
            claims.give_up(head);
        }
        let packet = self.front_packet(head);
        self.announce_packet(output, packet);
    }

    /// The tail has left: the output virtual channel becomes free, the next packet in the buffer becomes a head.
    #[inline(always)]
    pub(crate) fn release(&mut self, slot: u32, output: u32, lists: &mut Block) {
        self.leave_queue(slot);
        if self.parameters.release == VcRelease::Tail {
            self.layout.set_free(output);
            self.list_for_allocation(output >> L::Mask::SHIFT, &mut lists.allocate_next);
        }
        if self.layout.flits(slot) > 0 && self.next_packet_is_ready(slot) {
            lists.heads_next.push(slot);
        }
    }

    #[inline(always)]
    fn next_packet_is_ready(&self, slot: u32) -> bool {
        self.parameters.switching != Switching::StoreAndForward
            || self.layout.flits(slot) >= u32::from(self.packets[self.front_packet(slot)].flits)
    }
}
