//! What happens when: a queue of events in which those of one time come in the order in which they were entered.
//!
//! A radix heap: an event lies in the bucket of the highest bit in which its time differs from the present one, so it moves at most once
//! for each bit. Events of the same time always share a bucket, hence their order stays. Source: Ahuja, Mehlhorn, Orlin and Tarjan,
//! Faster algorithms for the shortest path problem, J. ACM 37 (1990).

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// What an NPU has set itself for this time.
    Batch(u32),
    /// A message is at the end of a link, or at its destination.
    Arrival(u32),
    /// A link can take the next message.
    Free(u32),
    /// A receive ends whose message was there before.
    Received(u32),
}

/// Events and the present time.
#[derive(Debug)]
pub(super) struct Calendar {
    now: u64,
    /// Bucket 0 holds the present; bucket k times whose highest differing bit is k - 1.
    buckets: Vec<Vec<(u64, Event)>>,
    /// How many of the present have been taken.
    taken: usize,
    /// The bits of the buckets from 1 on that hold something.
    filled: u64,
    spare: Vec<(u64, Event)>,
}

impl Calendar {
    pub(super) fn new() -> Self {
        Self { now: 0, buckets: vec![Vec::new(); 65], taken: 0, filled: 0, spare: Vec::new() }
    }

    /// The present time, in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Enters an event; its time must not lie in the past.
    pub(super) fn enter(&mut self, time: u64, event: Event) {
        debug_assert!(time >= self.now);
        let bucket = 64 - (time ^ self.now).leading_zeros() as usize;
        if bucket > 0 {
            self.filled |= 1 << (bucket - 1);
        }
        self.buckets[bucket].push((time, event));
    }

    /// The next event, and its time becomes the present.
    pub(super) fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(&(_, event)) = self.buckets[0].get(self.taken) {
                self.taken += 1;
                return Some(event);
            }
            self.buckets[0].clear();
            self.taken = 0;
            if self.filled == 0 {
                return None;
            }
            let bucket = self.filled.trailing_zeros() as usize + 1;
            self.filled &= self.filled - 1;
            let mut moved = std::mem::replace(&mut self.buckets[bucket], std::mem::take(&mut self.spare));
            self.now = moved.iter().map(|&(time, _)| time).min().unwrap_or(self.now);
            moved.drain(..).for_each(|(time, event)| self.enter(time, event));
            self.spare = moved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entered at random and while others are taken out: by time, and in one time by entry.
    #[test]
    fn events_come_by_time_and_then_by_entry() {
        let (mut calendar, mut state, mut entered) = (Calendar::new(), 1_u64, 0_u32);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut times = Vec::new();
        let mut last = (0, 0);
        for round in 0..5000 {
            for _ in 0..random(4) {
                let time = calendar.now() + random(if round % 7 == 0 { 100_000 } else { 5 });
                calendar.enter(time, Event::Batch(entered));
                times.push(time);
                entered += 1;
            }
            if let Some(Event::Batch(number)) = calendar.next() {
                let found = (calendar.now(), number);
                assert_eq!(times[number as usize], found.0);
                assert!(found >= last, "{found:?} after {last:?}");
                last = found;
            }
        }
        while let Some(Event::Batch(number)) = calendar.next() {
            let found = (calendar.now(), number);
            assert!(times[number as usize] == found.0 && found > last);
            last = found;
        }
        assert!(entered > 1000);
    }
}
