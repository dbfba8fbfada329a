//! Planned events: each has at most one time, and those of one time come in the order in which they were planned.
//!
//! A wheel of buckets, each a linked list through the events themselves: planning is a store, and nothing is allocated. A bucket is
//! sorted when its time has come. What lies beyond the turn of the wheel waits in a list of its own until its turn begins.

/// No event.
const NONE: u32 = u32::MAX;

/// Buckets of a turn, at least and at most, as powers of two.
const BUCKET_BITS: [u32; 2] = [10, 18];

/// The events of a run, numbered from 0.
#[derive(Debug)]
pub(crate) struct Calendar {
    now: u64,
    /// When each event happens, and the event behind it in its list.
    times: Vec<u64>,
    nexts: Vec<u32>,
    /// First and last of each bucket's list; the first is valid where `occupied` has a bit.
    buckets: Vec<[u32; 2]>,
    occupied: Vec<u64>,
    /// A bucket has 2^shift picoseconds.
    shift: u32,
    /// The first bucket of this turn, counted from time 0, and the one that is open.
    turn: u64,
    open: u64,
    /// What is left of the open bucket: by time, those of one time as they were planned.
    today: Vec<(u64, u32)>,
    position: usize,
    /// Planned now for now.
    at_once: Vec<u32>,
    at_once_position: usize,
    /// Beyond this turn, as planned.
    far: Vec<u32>,
}

impl Calendar {
    /// For so many events, of which about one happens every `spacing` picoseconds, mostly within `reach` of being planned.
    pub(crate) fn new(events: usize, spacing: f64, reach: u64) -> Self {
        // Some dozens of events in a bucket, and nearly all within a turn.
        let wanted = (32.0 * spacing).clamp(1.0, 1e12) as u64;
        let fewest = (2 * reach.max(1)) >> BUCKET_BITS[1];
        let shift = wanted.max(fewest).max(1).ilog2();
        let bits = ((2 * reach) >> shift).max(1).ilog2().saturating_add(1).clamp(BUCKET_BITS[0], BUCKET_BITS[1]);
        Self {
            now: 0,
            times: vec![0; events],
            nexts: vec![NONE; events],
            buckets: vec![[NONE; 2]; 1 << bits],
            occupied: vec![0; 1 << (bits - 6)],
            shift,
            turn: 0,
            open: 0,
            today: Vec::new(),
            position: 0,
            at_once: Vec::new(),
            at_once_position: 0,
            far: Vec::new(),
        }
    }

    /// The present, in picoseconds.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Is any event planned?
    pub(crate) fn has_events(&self) -> bool {
        let is_open = self.position < self.today.len() || self.at_once_position < self.at_once.len();
        is_open || !self.far.is_empty() || self.occupied.iter().any(|word| *word != 0)
    }

    /// The event that comes so many places behind the next one, if it is known yet.
    #[inline]
    pub(crate) fn ahead(&self, places: usize) -> Option<u32> {
        self.today.get(self.position + places).map(|&(_, event)| event)
    }

    /// Plans an event that is not planned, not before the present.
    #[inline]
    pub(crate) fn plan(&mut self, event: u32, time: u64) {
        debug_assert!(time >= self.now);
        if time == self.now {
            self.at_once.push(event);
            return;
        }
        let bucket = time >> self.shift;
        if bucket <= self.open {
            let behind = self.today[self.position..].partition_point(|&(other, _)| other <= time);
            self.today.insert(self.position + behind, (time, event));
        } else if bucket - self.turn < self.buckets.len() as u64 {
            self.times[event as usize] = time;
            self.append(event, bucket);
        } else {
            self.times[event as usize] = time;
            self.far.push(event);
        }
    }

    /// Removes an event that is planned for this time; false if it is not.
    pub(crate) fn withdraw(&mut self, event: u32, time: u64) -> bool {
        if time == self.now
            && let Some(position) = self.at_once[self.at_once_position..].iter().position(|&other| other == event)
        {
            self.at_once.remove(self.at_once_position + position);
            return true;
        }
        let bucket = time >> self.shift;
        if bucket <= self.open {
            let position = self.today[self.position..].iter().position(|&other| other == (time, event));
            position.map(|position| self.today.remove(self.position + position)).is_some()
        } else if bucket - self.turn < self.buckets.len() as u64 {
            self.unlink(event, bucket)
        } else {
            let position = self.far.iter().position(|&other| other == event);
            position.map(|position| self.far.remove(position)).is_some()
        }
    }

    /// Removes an event from the list of a bucket; false if it is not there.
    fn unlink(&mut self, event: u32, bucket: u64) -> bool {
        let index = bucket as usize & (self.buckets.len() - 1);
        let (word, bit) = (index / 64, 1 << (index % 64));
        let [first, last] = self.buckets[index];
        let (mut before, mut at) = (NONE, if self.occupied[word] & bit == 0 { NONE } else { first });
        while at != NONE && at != event {
            (before, at) = (at, self.nexts[at as usize]);
        }
        if at == NONE {
            return false;
        }
        let next = self.nexts[event as usize];
        if before != NONE {
            self.nexts[before as usize] = next;
        } else if next != NONE {
            self.buckets[index][0] = next;
        } else {
            self.occupied[word] &= !bit;
        }
        if last == event {
            self.buckets[index][1] = before;
        }
        true
    }

    /// All planned events with their times, in any order. A broken list, which may have no end, is followed up to a limit.
    pub(crate) fn planned(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<(u32, u64)> = self.today[self.position..].iter().map(|&(time, event)| (event, time)).collect();
        all.extend(self.at_once[self.at_once_position..].iter().map(|&event| (event, self.now)));
        all.extend(self.far.iter().map(|&event| (event, self.times[event as usize])));
        for (index, &[first, _]) in self.buckets.iter().enumerate() {
            let mut event = if self.occupied[index / 64] >> (index % 64) & 1 == 0 { NONE } else { first };
            while event != NONE && all.len() <= 2 * self.times.len() {
                all.push((event, self.times[event as usize]));
                event = self.nexts[event as usize];
            }
        }
        all
    }

    #[inline]
    fn append(&mut self, event: u32, bucket: u64) {
        let index = bucket as usize & (self.buckets.len() - 1);
        self.nexts[event as usize] = NONE;
        let (word, bit) = (index / 64, 1 << (index % 64));
        let [first, last] = &mut self.buckets[index];
        if self.occupied[word] & bit == 0 {
            self.occupied[word] |= bit;
            *first = event;
        } else {
            self.nexts[*last as usize] = event;
        }
        *last = event;
    }

    /// The next event, if it comes before `limit`; otherwise it is `limit` now.
    #[inline]
    pub(crate) fn next_before(&mut self, limit: u64) -> Option<u32> {
        if self.now >= limit {
            return None;
        }
        loop {
            if let Some(&(_, event)) = self.today.get(self.position).filter(|(time, _)| *time == self.now) {
                self.position += 1;
                return Some(event);
            }
            if let Some(&event) = self.at_once.get(self.at_once_position) {
                self.at_once_position += 1;
                return Some(event);
            }
            self.at_once.clear();
            self.at_once_position = 0;
            match self.today.get(self.position).copied() {
                Some((time, _)) if time < limit => self.now = time,
                Some(_) => break,
                None if self.open_bucket(limit) => {}
                None => break,
            }
        }
        self.now = limit;
        None
    }

    /// Opens the next bucket that has events; false if none begins before `limit` or with it.
    fn open_bucket(&mut self, limit: u64) -> bool {
        self.today.clear();
        self.position = 0;
        loop {
            let end = self.turn + self.buckets.len() as u64;
            match self.occupied_bucket(self.open + 1, end) {
                Some(bucket) if bucket << self.shift > limit => return false,
                Some(bucket) => {
                    self.take(bucket);
                    return true;
                }
                None => {
                    let Some(first) = self.far.iter().map(|&event| self.times[event as usize]).min() else { return false };
                    if first > limit {
                        return false;
                    }
                    self.begin_turn(first >> self.shift);
                }
            }
        }
    }

    /// The first bucket with events from one to before another.
    fn occupied_bucket(&self, from: u64, end: u64) -> Option<u64> {
        let mask = self.buckets.len() - 1;
        let mut bucket = from;
        while bucket < end {
            let index = bucket as usize & mask;
            let word = self.occupied[index / 64] >> (index % 64);
            if word != 0 {
                let found = bucket + u64::from(word.trailing_zeros());
                return (found < end).then_some(found);
            }
            bucket += 64 - (index % 64) as u64;
        }
        None
    }

    fn take(&mut self, bucket: u64) {
        let index = bucket as usize & (self.buckets.len() - 1);
        self.occupied[index / 64] &= !(1 << (index % 64));
        self.open = bucket;
        let mut event = self.buckets[index][0];
        while event != NONE {
            self.today.push((self.times[event as usize], event));
            event = self.nexts[event as usize];
        }
        // Stable: those of one time stay as they were planned.
        self.today.sort_by_key(|&(time, _)| time);
    }

    /// The wheel turns on to a bucket, and takes what was beyond.
    fn begin_turn(&mut self, bucket: u64) {
        self.turn = bucket;
        self.open = bucket - 1;
        let end = bucket + self.buckets.len() as u64;
        let mut far = std::mem::take(&mut self.far);
        far.retain(|&event| {
            let due = self.times[event as usize] >> self.shift;
            if due < end {
                self.append(event, due);
            }
            due >= end
        });
        self.far = far;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is searched for the least time and, of those, the one planned first.
        #[test]
        fn events_come_by_time_and_then_as_planned(
            delays in prop::collection::vec((0_u64..4, 0_u64..5000), 1..200),
            spacing in 0.1_f64..100.0,
            reach in 1_u64..2000,
            limits in prop::collection::vec(0_u64..20_000, 0..4),
            withdrawn in prop::collection::vec(any::<prop::sample::Index>(), 200),
        ) {
            const EVENTS: u32 = 16;
            let mut calendar = Calendar::new(EVENTS as usize, spacing, reach);
            let mut planned: Vec<(u64, usize, u32)> = Vec::new();
            let mut delays = delays.into_iter().enumerate();
            let delay = |(scale, delay): (u64, u64)| [0, delay % 3, delay, 100 * delay][scale as usize];
            for event in 0..EVENTS {
                if let Some((number, drawn)) = delays.next() {
                    calendar.plan(event, delay(drawn));
                    planned.push((delay(drawn), number, event));
                }
            }
            let mut limits = limits;
            limits.sort_unstable();
            limits.push(u64::MAX >> 1);
            for limit in limits {
                if limit < calendar.now() {
                    continue;
                }
                while let Some(event) = calendar.next_before(limit) {
                    let expected = planned.iter().copied().min().unwrap();
                    prop_assert_eq!((calendar.now(), event), (expected.0, expected.2));
                    planned.retain(|&other| other != expected);
                    if let Some((number, drawn)) = delays.next() {
                        let time = calendar.now() + delay(drawn);
                        calendar.plan(event, time);
                        planned.push((time, number, event));
                        // Every third time an event is removed, and perhaps planned once more.
                        if number.is_multiple_of(3) {
                            let (time, number, event) = planned.swap_remove(withdrawn[number].index(planned.len()));
                            prop_assert!(calendar.withdraw(event, time) && !calendar.withdraw(event, time));
                            if let Some((number, drawn)) = delays.next().filter(|_| number.is_multiple_of(2)) {
                                let time = calendar.now() + delay(drawn);
                                calendar.plan(event, time);
                                planned.push((time, number, event));
                            }
                        }
                        let mut found: Vec<(u32, u64)> = planned.iter().map(|&(time, _, event)| (event, time)).collect();
                        let mut all = calendar.planned();
                        found.sort_unstable();
                        all.sort_unstable();
                        prop_assert_eq!(all, found);
                    }
                }
                prop_assert_eq!(calendar.now(), limit);
                prop_assert!(planned.iter().all(|&(time, ..)| time >= limit));
            }
            prop_assert!(planned.is_empty());
        }
    }
}
