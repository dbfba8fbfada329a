//! What happens when: a queue of events in which those of one time come in the order in which they were entered.
//!
//! A wheel with a slot for each nanosecond of the near future; what lies further away waits in a map until the wheel comes near, before
//! anything else can be entered for its time. Source: Varghese and Lauck, Hashed and hierarchical timing wheels, SOSP 1987.

use std::collections::BTreeMap;

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

/// Slots of the wheel: a power of two.
const SLOTS: usize = 1 << 14;
/// Bits of a word of the map of slots.
const BITS: usize = 64;

/// Events and the present time.
#[derive(Debug)]
pub(super) struct Calendar {
    now: u64,
    /// The events of the present, and how many of them have been taken.
    present: Vec<Event>,
    taken: usize,
    /// Those of the next nanoseconds, by time modulo the slots.
    slots: Vec<Vec<Event>>,
    /// A bit for each slot that holds something.
    filled: Vec<u64>,
    /// A bit for each word of `filled` that is not 0.
    words: [u64; SLOTS / BITS / BITS],
    far: BTreeMap<u64, Vec<Event>>,
    /// Empty lists, with their room.
    spare: Vec<Vec<Event>>,
}

impl Calendar {
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            present: Vec::new(),
            taken: 0,
            slots: vec![Vec::new(); SLOTS],
            filled: vec![0; SLOTS / BITS],
            words: [0; SLOTS / BITS / BITS],
            far: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// The present time, in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Enters an event; its time must not lie in the past.
    pub(super) fn enter(&mut self, time: u64, event: Event) {
        debug_assert!(time >= self.now);
        let ahead = time - self.now;
        if ahead == 0 {
            self.present.push(event);
        } else if ahead < SLOTS as u64 {
            self.slot(time).push(event);
        } else {
            self.far.entry(time).or_default().push(event);
        }
    }

    /// The list of a near time.
    fn slot(&mut self, time: u64) -> &mut Vec<Event> {
        let number = time as usize % SLOTS;
        let (word, bit) = (number / BITS, 1_u64 << (number % BITS));
        let list = &mut self.slots[number];
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.words[word / BITS] |= 1 << (word % BITS);
            if let Some(spare) = self.spare.pop() {
                *list = spare;
            }
        }
        list
    }

    /// The next event, and its time becomes the present.
    pub(super) fn next(&mut self) -> Option<Event> {
        if let Some(&event) = self.present.get(self.taken) {
            self.taken += 1;
            return Some(event);
        }
        self.present.clear();
        self.taken = 0;
        let time = match self.next_slot() {
            Some(number) => self.now + ((number + SLOTS - self.now as usize % SLOTS) % SLOTS) as u64,
            None => *self.far.first_key_value()?.0,
        };
        self.go_to(time);
        self.taken = 1;
        self.present.first().copied()
    }

    /// Makes a time the present: its events, and those that become near.
    fn go_to(&mut self, time: u64) {
        self.now = time;
        let number = time as usize % SLOTS;
        let (word, bit) = (number / BITS, 1_u64 << (number % BITS));
        if self.filled[word] & bit != 0 {
            self.filled[word] &= !bit;
            if self.filled[word] == 0 {
                self.words[word / BITS] &= !(1 << (word % BITS));
            }
            let empty = std::mem::replace(&mut self.present, std::mem::take(&mut self.slots[number]));
            self.spare.push(empty);
        }
        while let Some(entry) = self.far.first_entry().filter(|entry| entry.key() - time < SLOTS as u64) {
            let (at, mut events) = entry.remove_entry();
            if at == time {
                self.present.append(&mut events);
            } else {
                self.slot(at).append(&mut events);
            }
        }
    }

    /// The next slot behind the present one that holds something.
    fn next_slot(&self) -> Option<usize> {
        let first = (self.now as usize + 1) % SLOTS;
        let word = first / BITS;
        let rest = self.filled[word] & (u64::MAX << (first % BITS));
        if rest != 0 {
            return Some(word * BITS + rest.trailing_zeros() as usize);
        }
        let word = self.next_word(word + 1).or_else(|| self.next_word(0))?;
        Some(word * BITS + self.filled[word].trailing_zeros() as usize)
    }

    /// The first word from this one on that is not 0.
    fn next_word(&self, first: usize) -> Option<usize> {
        (first / BITS..self.words.len()).find_map(|index| {
            let mask = if index == first / BITS { u64::MAX << (first % BITS) } else { u64::MAX };
            let rest = self.words[index] & mask;
            (rest != 0).then(|| index * BITS + rest.trailing_zeros() as usize)
        })
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
