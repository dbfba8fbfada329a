//! Which packets stand in the buffers, in their order.
//!
//! A packet enters the queue of a buffer when it is announced, with its virtual channel upstream, and leaves it with its tail. The
//! first one stands in the slot's own record, and where a layout has room there, so do some behind it; the others stand in a ring, of which
//! little is ever touched.

use crate::record::prefetch::prefetch;
use kasuri_network::memory::{Column, prefer_large_pages};
use std::hint::select_unpredictable;

/// The packets of one buffer. 8 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    front: u32,
    /// The place in the ring of the last packet that stands in the slot's record, if it stood there.
    head: u16,
    packets: u16,
}

impl Queue {
    /// The first packet; of an empty queue, any number.
    #[inline(always)]
    pub(crate) fn front(&self) -> u32 {
        self.front
    }
}

/// The rings of all slots: the same places of all lie side by side.
pub(crate) struct Rings {
    packets: Column<u32>,
    /// Places of a ring less one; a power of two.
    mask: u32,
    /// log2 of the slots, rounded up.
    slots_shift: u32,
}

impl Rings {
    /// The numbers of rings of at least so many places; `None` if they are more than 32-bit numbers name.
    pub(crate) fn length(slots: usize, places: u32) -> Option<usize> {
        let shift = slots.next_power_of_two().trailing_zeros() + places.next_power_of_two().trailing_zeros();
        (shift <= u32::BITS).then(|| 1usize << shift)
    }

    /// Rings of at least so many places; `None` if they are more than 32-bit numbers name.
    pub(crate) fn new(slots: usize, places: u32) -> Option<Self> {
        let slots_shift = slots.next_power_of_two().trailing_zeros();
        let length = Self::length(slots, places)?;
        // Memory that the operating system zeroes becomes resident where it is used.
        let mut packets = vec![0; length];
        prefer_large_pages(&mut packets);
        Some(Self { packets: packets.into(), mask: places.next_power_of_two() - 1, slots_shift })
    }

    #[inline(always)]
    fn place(&self, slot: u32, position: u16) -> u32 {
        (u32::from(position) & self.mask) << self.slots_shift | slot
    }

    /// A packet joins the queue of a slot; `behind` are the places in the slot's record for those behind the front one.
    #[inline(always)]
    pub(crate) fn push(&mut self, queue: &mut Queue, behind: &mut [u32], slot: u32, packet: u32) {
        let position = usize::from(queue.packets);
        if position == 0 {
            queue.front = packet;
        } else if let Some(place) = behind.get_mut(position - 1) {
            *place = packet;
        } else {
            let in_ring = queue.packets - behind.len() as u16;
            debug_assert!(u32::from(in_ring) <= self.mask, "a buffer has room for the packets that are announced");
            let place = self.place(slot, queue.head.wrapping_add(in_ring));
            self.packets[place] = packet;
        }
        queue.packets += 1;
    }

    /// The same where the ring lies near, so that a place that is written for nothing costs less than a branch that nobody foresees. Uses no
    /// places behind: a queue that has some is served by this and [`Self::pop_near`] alone, or by the other two alone.
    #[inline(always)]
    pub(crate) fn push_near(&mut self, queue: &mut Queue, slot: u32, packet: u32) {
        let Queue { front, head, packets } = *queue;
        debug_assert!(u32::from(packets) <= self.mask, "a buffer has room for the packets that are announced");
        let place = self.place(slot, head.wrapping_add(packets));
        self.packets[place] = packet;
        (queue.front, queue.packets) = (select_unpredictable(packets == 0, packet, front), packets + 1);
    }

    /// Fetches the first packet of a slot's queue that stands in the ring; `behind` others stand in the slot's record behind the front one.
    #[inline(always)]
    pub(crate) fn prefetch_first(&self, queue: &Queue, behind: usize, slot: u32) {
        if usize::from(queue.packets) > 1 + behind {
            prefetch(&self.packets[self.place(slot, queue.head.wrapping_add(1))]);
        }
    }

    /// The packets of a slot's queue without places behind, in their order.
    pub(crate) fn packets(&self, queue: &Queue, slot: u32) -> Vec<u32> {
        let behind = |position: u16| self.packets[self.place(slot, queue.head.wrapping_add(position))];
        (0..queue.packets).map(|position| if position == 0 { queue.front } else { behind(position) }).collect()
    }

    /// The packet at the back of a slot's queue without places behind is taken away.
    pub(crate) fn take_back(&self, queue: &mut Queue) {
        queue.packets -= 1;
        if queue.packets <= 1 {
            queue.head = 0;
        }
    }

    /// The front packet of a slot's queue leaves. A ring with one packet or none begins anew, so that few of its places are ever touched: of a
    /// million terminals, each place of all rings is 70 MB.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queue: &mut Queue, behind: &mut [u32], slot: u32) {
        queue.packets -= 1;
        let in_record = match behind.first() {
            Some(&second) => {
                queue.front = second;
                behind.copy_within(1.., 0);
                behind.len() as u16
            }
            None => 0,
        };
        if queue.packets <= in_record {
            return;
        }
        let next = queue.head.wrapping_add(1);
        *behind.last_mut().unwrap_or(&mut queue.front) = self.packets[self.place(slot, next)];
        queue.head = match queue.packets - in_record {
            // It stands in the slot's record.
            1 => 0,
            2 => {
                let (first, only) = (self.place(slot, 1), self.place(slot, next.wrapping_add(1)));
                self.packets[first] = self.packets[only];
                0
            }
            _ => next,
        };
    }

    /// The front packet of a slot's queue leaves, as it came with [`Self::push_near`]: without a branch. What an empty queue has for its front
    /// nobody asks.
    #[inline(always)]
    pub(crate) fn pop_near(&mut self, queue: &mut Queue, slot: u32) {
        // All is read before anything is written: a processor waits where it reads in one piece what was just written in two.
        let Queue { head, packets, .. } = *queue;
        let (next, left) = (head.wrapping_add(1), packets - 1);
        // The head is shifted by 0 bits while packets are left in the ring, otherwise by 31, to 0: a comparison would be compiled to a branch.
        let shift = u32::from(left).wrapping_sub(2) >> 27;
        let front = self.packets[self.place(slot, next)];
        *queue = Queue { front, head: (u32::from(next) >> shift) as u16, packets: left };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Queues that fill and empty in turns, several times around, are those of the standard library.
    fn check<const BEHIND: usize>(
        push: impl Fn(&mut Rings, &mut Queue, &mut [u32; BEHIND], u32, u32, u32),
        pop: impl Fn(&mut Rings, &mut Queue, &mut [u32; BEHIND], u32, u32),
    ) {
        for places in [1, 2, 3, 16, 300] {
            let mut rings = Rings::new(5, places).unwrap();
            let mut queues = [(Queue::default(), [0; BEHIND]); 5];
            let mut expected = vec![VecDeque::new(); 5];
            for round in 0..400u32 {
                let slot = round % 5;
                let ((queue, behind), like) = (&mut queues[slot as usize], &mut expected[slot as usize]);
                let coming = (round * 7 + slot) % (places + 1 - like.len() as u32);
                for packet in 0..coming {
                    push(&mut rings, queue, behind, slot, 1000 * round + packet, round);
                    like.push_back(1000 * round + packet);
                }
                for _ in 0..(like.len() as u32).min(round % 11) {
                    assert_eq!(Some(queue.front()), like.pop_front(), "{places} places, {BEHIND} behind, round {round}");
                    pop(&mut rings, queue, behind, slot, round);
                }
            }
        }
    }

    #[test]
    fn packets_leave_in_the_order_of_their_coming() {
        // Near and far in turns: without places behind, both leave a queue as the other expects it.
        check::<0>(
            |rings, queue, behind, slot, packet, round| {
                if round % 3 == 0 { rings.push_near(queue, slot, packet) } else { rings.push(queue, behind, slot, packet) }
            },
            |rings, queue, behind, slot, round| if round % 3 == 0 { rings.pop_near(queue, slot) } else { rings.pop(queue, behind, slot) },
        );
        check::<1>(
            |rings, queue, behind, slot, packet, _| rings.push(queue, behind, slot, packet),
            |rings, queue, behind, slot, _| rings.pop(queue, behind, slot),
        );
        check::<2>(
            |rings, queue, behind, slot, packet, _| rings.push(queue, behind, slot, packet),
            |rings, queue, behind, slot, _| rings.pop(queue, behind, slot),
        );
        assert!(Rings::new(1 << 20, 1 << 13).is_none(), "2^33 places");
    }
}
