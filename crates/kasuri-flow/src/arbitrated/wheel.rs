//! What happens when: a wheel with a bucket for each cycle of a horizon, and a heap for what lies beyond it.

use kasuri_network::memory::Column;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event in 8 bytes: what happens, and to which parcel at which place of its path, channel or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event(u64);

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The head of a parcel has come to the end of the channel on which it is.
    Head,
    /// The head of a parcel asks for a lane of its next channel.
    Ask,
    /// The tail of a parcel has crossed the channel at a place of its path.
    Tail,
    /// A channel is looked at again: somebody waits for it.
    Look,
    /// A message has arrived.
    Arrived,
}

impl Event {
    pub(super) fn new(kind: Kind, place: u16, number: u32) -> Self {
        Self((kind as u64) << 56 | u64::from(place) << 32 | u64::from(number))
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        match self.0 >> 56 {
            0 => Kind::Head,
            1 => Kind::Ask,
            2 => Kind::Tail,
            3 => Kind::Look,
            _ => Kind::Arrived,
        }
    }

    #[inline(always)]
    pub(super) fn place(self) -> u16 {
        (self.0 >> 32) as u16
    }

    #[inline(always)]
    pub(super) fn number(self) -> u32 {
        self.0 as u32
    }
}

/// Buckets with more room than this give their memory back when they are empty: the messages of a batch all begin in one cycle.
const KEPT: usize = 1024;

/// The most buckets.
const MOST_BUCKETS: u64 = 1 << 15;

/// The events of the cycles to come. Those of a cycle come in the order in which they were posted.
#[derive(Debug)]
pub(super) struct Wheel {
    buckets: Column<Vec<Event>>,
    /// A bit for each bucket that is not empty.
    occupied: Column<u64>,
    mask: u32,
    pending: u64,
    /// Events beyond the wheel: their cycle, and how many were posted before them.
    beyond: BinaryHeap<Reverse<(u32, u64, u64)>>,
    posted_beyond: u64,
}

impl Wheel {
    /// A wheel for events that mostly are at most `horizon` cycles ahead.
    pub(super) fn new(horizon: u64) -> Self {
        let size = (horizon + 2).next_power_of_two().clamp(64, MOST_BUCKETS) as u32;
        Self {
            buckets: (0..size).map(|_| Vec::new()).collect(),
            occupied: Column::filled(size as usize / 64, 0),
            mask: size - 1,
            pending: 0,
            beyond: BinaryHeap::new(),
            posted_beyond: 0,
        }
    }

    /// Cycles after which the buckets come again.
    pub(super) fn size(&self) -> u32 {
        self.mask + 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending == 0 && self.beyond.is_empty()
    }

    #[inline(always)]
    pub(super) fn post(&mut self, now: u32, time: u32, event: Event) {
        debug_assert!(time >= now, "cycle {time} is over in cycle {now}");
        if time - now > self.mask {
            return self.post_beyond(time, event);
        }
        self.put(time, event);
    }

    #[cold]
    fn post_beyond(&mut self, time: u32, event: Event) {
        self.beyond.push(Reverse((time, self.posted_beyond, event.0)));
        self.posted_beyond += 1;
    }

    #[inline(always)]
    fn put(&mut self, time: u32, event: Event) {
        let slot = time & self.mask;
        self.pending += 1;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.buckets[slot].push(event);
    }

    /// Does something happen in cycle `now`, to which the wheel has been turned?
    #[inline(always)]
    pub(super) fn has_any_at(&self, now: u32) -> bool {
        let slot = now & self.mask;
        self.occupied[slot / 64] >> (slot % 64) & 1 != 0
    }

    /// The next cycle, from `now` on, in which something happens.
    pub(super) fn next(&self, now: u32) -> Option<u32> {
        if self.pending == 0 {
            return self.beyond.peek().map(|next| next.0.0);
        }
        // As many words as buckets by 64: a power of two.
        let (first, words) = (now & self.mask, self.size() / 64);
        let ahead = self.occupied[first / 64] >> (first % 64);
        if ahead != 0 {
            return Some(now + ahead.trailing_zeros());
        }
        (1..=words).find_map(|turn| {
            let bits = self.occupied[(first / 64 + turn) & (words - 1)];
            (bits != 0).then(|| now + turn * 64 - first % 64 + bits.trailing_zeros())
        })
    }

    /// Says that the present cycle is `now`: what was beyond the wheel may be within it.
    #[inline(always)]
    pub(super) fn turn_to(&mut self, now: u32) {
        while let Some(&Reverse((time, _, event))) = self.beyond.peek()
            && time - now <= self.mask
        {
            self.beyond.pop();
            self.put(time, Event(event));
        }
    }

    /// All times are `cycles` less from now on, a multiple of the wheel's size.
    pub(super) fn rebase(&mut self, cycles: u32) {
        debug_assert!(cycles.is_multiple_of(self.size()));
        let beyond = std::mem::take(&mut self.beyond);
        self.beyond = beyond.into_iter().map(|Reverse((time, order, event))| Reverse((time - cycles, order, event))).collect();
    }

    /// Takes the events of this cycle that there are so far; `batch` is empty, and memory to use.
    pub(super) fn take(&mut self, now: u32, batch: &mut Vec<Event>) {
        let slot = now & self.mask;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        std::mem::swap(batch, &mut self.buckets[slot]);
        if self.buckets[slot].capacity() > KEPT {
            self.buckets[slot] = Vec::new();
        }
        self.pending -= batch.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events come in their cycle, in the order of posting, over several turns of the wheel.
    #[test]
    fn events_come_in_order() {
        let mut wheel = Wheel::new(100);
        let (mut now, mut batch, mut seen) = (0, Vec::new(), Vec::new());
        wheel.post(now, 90, Event::new(Kind::Look, 0, 1));
        wheel.post(now, 90, Event::new(Kind::Tail, 7, 2));
        wheel.post(now, 3, Event::new(Kind::Ask, 0, 3));
        wheel.post(now, 1000, Event::new(Kind::Head, 1, 4));
        wheel.post(now, 1000, Event::new(Kind::Head, 1, 5));
        while let Some(next) = wheel.next(now) {
            now = next;
            wheel.turn_to(now);
            wheel.take(now, &mut batch);
            for event in batch.drain(..) {
                seen.push((now, event.kind(), event.place(), event.number()));
                if event.number() == 3 && now < 300 {
                    wheel.post(now, now + 100, event);
                }
            }
        }
        let of_three = [3, 103, 203, 303].map(|time| (time, Kind::Ask, 0, 3));
        let near = [of_three[0], (90, Kind::Look, 0, 1), (90, Kind::Tail, 7, 2), of_three[1], of_three[2], of_three[3]];
        assert_eq!(seen[..6], near);
        assert_eq!(seen[6..], [(1000, Kind::Head, 1, 4), (1000, Kind::Head, 1, 5)]);
        assert!(wheel.is_empty());
    }
}
