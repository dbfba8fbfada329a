//! Numbered entries whose keys change, and which of them comes first: which flow ends next, which terminal wakes next.
//!
//! Of very many entries most come late, and their keys change often before they do. So only those before a *horizon* stand in a
//! heap. The keys of the others lie in a plain column; when the heap is empty the horizon moves on over a part of them.

use kasuri_network::memory::Column;

/// The slot of an entry that has no key, and of one beyond the horizon; [`ROOT`] is the first that is used.
const ABSENT: u32 = 0;
const BEYOND: u32 = 1;

/// With fewer entries there is no horizon: with 4,096 it takes a twentieth more instructions.
const LEAST_BEYOND: usize = 8192;

/// The horizon moves over one entry in so many, and over all of them where fewer than one in so many have a key.
const PARTS: usize = 16;

/// Keys that are compared with the horizon at once.
const SCANNED: usize = 8;

/// Keys that are looked at to find out how far that is.
const SAMPLE: usize = 256;

/// The slot of the least entry. The children of slot s then are the slots of group s - 2, and the parent of slot s is s / 4 + 2.
const ROOT: usize = 3;

/// The key of a slot without an entry, above all others.
const NO_KEY: u64 = u64::MAX;

/// Four nodes that have one parent, in one cache line. A key is the bits of a number that is not negative, which are ordered as
/// the numbers are and compared faster.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group {
    keys: [u64; 4],
    entries: [u32; 4],
}

const EMPTY: Group = Group { keys: [NO_KEY; 4], entries: [0; 4] };

/// A binary heap's idea with four children a node, which touches fewer cache lines, and the slot of each entry.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    /// One more than the greatest number of an entry.
    capacity: usize,
    groups: Column<Group>,
    /// The slot of each entry. This column and the next are empty until the first entry comes.
    slots: Column<u32>,
    /// The keys of entries beyond the horizon; of the others, [`NO_KEY`].
    beyond: Column<u64>,
    /// No key of an entry in the heap is as great.
    horizon: u64,
    /// Entries in the heap, and beyond the horizon.
    length: usize,
    waiting: usize,
    /// Slots of nodes that are due; memory to use.
    due: Vec<u32>,
    /// Were many entries taken out together the last time?
    many: bool,
}

impl Heap {
    /// A heap for entries numbered below `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        let (slots, beyond) = (Vec::new().into(), Vec::new().into());
        let horizon = first_horizon(capacity);
        let groups = Column::filled(ROOT.div_ceil(4), EMPTY);
        Self { capacity, groups, slots, beyond, horizon, length: 0, waiting: 0, due: Vec::new(), many: false }
    }

    /// Begins anew, as nothing is left: keys may be less than they have been.
    pub(crate) fn restart(&mut self) {
        debug_assert_eq!((self.length, self.waiting), (0, 0), "a heap begins anew when it is empty");
        (self.horizon, self.many) = (first_horizon(self.capacity), false);
    }

    /// The least key.
    #[inline(always)]
    pub(crate) fn least(&mut self) -> Option<f64> {
        if self.length == 0 && self.waiting > 0 {
            self.move_on();
        }
        (self.length > 0).then(|| f64::from_bits(self.key(ROOT)))
    }

    /// Moves the horizon on over a part of the entries beyond it.
    #[cold]
    fn move_on(&mut self) {
        let stride = self.capacity.div_ceil(SAMPLE);
        let mut sample: Vec<u64> = self.beyond.iter().step_by(stride).copied().filter(|&key| key != NO_KEY).collect();
        sample.sort_unstable();
        let is_full = self.waiting * PARTS > self.capacity && sample.len() > PARTS;
        self.move_to(if is_full { sample[sample.len() / PARTS] + 1 } else { NO_KEY });
    }

    /// Moves the horizon on.
    fn move_to(&mut self, horizon: u64) {
        let before = self.length;
        // Most keys stay: several are looked at at once, as the numbers that they are. NO_KEY is none and not less than any.
        let last = if horizon == NO_KEY { f64::INFINITY } else { f64::from_bits(horizon - 1) };
        let mut first = 0;
        while first + SCANNED <= self.capacity {
            let keys = &self.beyond.as_slice()[first..first + SCANNED];
            if keys.iter().fold(false, |any, &key| any | (f64::from_bits(key) <= last)) {
                (first..first + SCANNED).for_each(|entry| self.bring_in(entry as u32, horizon));
            }
            first += SCANNED;
        }
        (first..self.capacity).for_each(|entry| self.bring_in(entry as u32, horizon));
        self.waiting -= self.length - before;
        self.horizon = horizon;
        self.restore();
    }

    /// Puts an entry from beyond the horizon at the end of the heap if its key is less.
    #[inline(always)]
    fn bring_in(&mut self, entry: u32, horizon: u64) {
        let key = self.beyond[entry];
        if key < horizon {
            self.beyond[entry] = NO_KEY;
            let last = self.add();
            self.put(last, key, entry);
        }
    }

    /// Brings all nodes into their order.
    fn restore(&mut self) {
        for slot in (ROOT..ROOT + self.length.div_ceil(4)).rev() {
            self.sink(slot, self.key(slot), self.entry(slot));
        }
    }

    /// Makes room for one more entry, at the end.
    #[inline(always)]
    fn add(&mut self) -> usize {
        let last = ROOT + self.length;
        self.length += 1;
        if last / 4 >= self.groups.len() {
            self.grow();
        }
        last
    }

    #[cold]
    fn grow(&mut self) {
        let mut groups = Column::filled(2 * self.groups.len(), EMPTY);
        groups.iter_mut().zip(self.groups.iter()).for_each(|(new, old)| *new = *old);
        self.groups = groups;
    }

    /// Lists, in a list that is empty, entries whose key is at most `limit`, no more than about `most` of them.
    pub(crate) fn list_until(&self, limit: f64, most: usize, into: &mut Vec<u32>) {
        self.list_slots_until(limit.to_bits(), most, into);
        into.iter_mut().for_each(|slot| *slot = self.entry(*slot as usize));
    }

    /// Puts an entry in, or changes its key, which is not negative.
    #[inline]
    pub(crate) fn set(&mut self, entry: u32, key: f64) {
        debug_assert!(key >= 0.0, "a key of {key}");
        if self.slots.is_empty() {
            self.make_room();
        }
        let key = key.to_bits();
        let slot = self.slots[entry];
        if key >= self.horizon {
            if slot > BEYOND {
                self.take_out(slot as usize);
            }
            self.waiting += usize::from(slot != BEYOND);
            self.slots[entry] = BEYOND;
            self.beyond[entry] = key;
        } else if slot <= BEYOND {
            if slot == BEYOND {
                self.beyond[entry] = NO_KEY;
                self.waiting -= 1;
            }
            let last = self.add();
            self.rise(last, key, entry);
        } else if key < self.key(slot as usize) {
            self.rise(slot as usize, key, entry);
        } else {
            self.sink(slot as usize, key, entry);
        }
    }

    #[cold]
    fn make_room(&mut self) {
        self.slots = Column::filled(self.capacity, ABSENT);
        if self.horizon != NO_KEY {
            self.beyond = Column::filled(self.capacity, NO_KEY);
        }
    }

    /// Takes out all entries whose key is at most `limit`, by number.
    pub(crate) fn pop_until(&mut self, limit: f64, into: &mut Vec<u32>) {
        if !self.take_until(limit, into) {
            into.iter().for_each(|&entry| self.remove(entry));
        }
    }

    /// Lists, in a list that is empty, all entries whose key is at most `limit`, by number. Have they been taken out? They are where
    /// they are many; few stay, each to be set anew or removed.
    pub(crate) fn take_until(&mut self, limit: f64, into: &mut Vec<u32>) -> bool {
        let limit = limit.to_bits();
        if limit >= self.horizon && self.waiting > 0 {
            self.move_to(limit + 1);
        }
        let before = self.length;
        // Where many went together the last time they likely do again.
        let together = self.many || self.are_many_due(limit);
        if together {
            self.remove_due(limit, into);
        } else {
            into.extend(self.due.iter().map(|&slot| self.entry(slot as usize)));
        }
        self.many = into.len() * 8 > before;
        // They mostly are in order already.
        into.sort_unstable();
        together
    }

    /// Takes an entry out, which there has to be.
    pub(crate) fn remove(&mut self, entry: u32) {
        let slot = std::mem::replace(&mut self.slots[entry], ABSENT);
        if slot == BEYOND {
            self.beyond[entry] = NO_KEY;
            self.waiting -= 1;
        } else {
            self.take_out(slot as usize);
        }
    }

    /// Takes a node out of the heap.
    fn take_out(&mut self, slot: usize) {
        self.length -= 1;
        let last = ROOT + self.length;
        let (key, moved) = (self.key(last), self.entry(last));
        self.clear(last);
        if slot != last {
            if key < self.key(slot) { self.rise(slot, key, moved) } else { self.sink(slot, key, moved) }
        }
    }

    /// Is the key of more than an eighth of the entries at most `limit`?
    fn are_many_due(&mut self, limit: u64) -> bool {
        let mut due = std::mem::take(&mut self.due);
        due.clear();
        self.list_slots_until(limit, self.length / 8 + 1, &mut due);
        let many = due.len() * 8 > self.length;
        self.due = due;
        many
    }

    /// Lists, in a list that is empty, the slots whose key is at most `limit` until there are `most`. They lie together at the top.
    fn list_slots_until(&self, limit: u64, most: usize, slots: &mut Vec<u32>) {
        if self.length > 0 && self.key(ROOT) <= limit {
            slots.push(ROOT as u32);
        }
        let mut looked_at = 0;
        while looked_at < slots.len() && slots.len() < most {
            let children = slots[looked_at] - 2;
            if children as usize >= self.groups.len() {
                break;
            }
            let group = &self.groups[children];
            slots.extend((0..4).filter(|&child| group.keys[child as usize] <= limit).map(|child| 4 * children + child));
            looked_at += 1;
        }
    }

    /// Takes the entries out whose key is at most `limit` and makes a heap of the others anew.
    fn remove_due(&mut self, limit: u64, into: &mut Vec<u32>) {
        let end = ROOT + self.length;
        let mut kept = ROOT;
        for slot in ROOT..end {
            let (key, entry) = (self.key(slot), self.entry(slot));
            if key <= limit {
                self.slots[entry] = ABSENT;
                into.push(entry);
            } else {
                self.put(kept, key, entry);
                kept += 1;
            }
        }
        (kept..end).for_each(|slot| self.clear(slot));
        self.length = kept - ROOT;
        self.restore();
    }

    /// Takes the first entry out, which there has to be.
    #[cfg(test)]
    pub(crate) fn pop(&mut self) -> u32 {
        let first = self.entry(ROOT);
        self.remove(first);
        first
    }

    #[inline(always)]
    fn rise(&mut self, mut slot: usize, key: u64, entry: u32) {
        while slot > ROOT {
            let parent = slot / 4 + 2;
            if self.key(parent) <= key {
                break;
            }
            self.put(slot, self.key(parent), self.entry(parent));
            slot = parent;
        }
        self.put(slot, key, entry);
    }

    fn sink(&mut self, mut slot: usize, key: u64, entry: u32) {
        loop {
            let children = slot - 2;
            if children >= self.groups.len() {
                break;
            }
            let Group { keys, entries } = &self.groups[children as u32];
            // Which of four is the least cannot be foretold: no branches.
            let low = usize::from(keys[1] < keys[0]);
            let high = 2 + usize::from(keys[3] < keys[2]);
            let least = if keys[high] < keys[low] { high } else { low };
            if key <= keys[least] {
                break;
            }
            let (least_key, least_entry) = (keys[least], entries[least]);
            self.put(slot, least_key, least_entry);
            slot = 4 * children + least;
        }
        self.put(slot, key, entry);
    }

    #[inline(always)]
    fn key(&self, slot: usize) -> u64 {
        self.groups[(slot / 4) as u32].keys[slot % 4]
    }

    #[inline(always)]
    fn entry(&self, slot: usize) -> u32 {
        self.groups[(slot / 4) as u32].entries[slot % 4]
    }

    #[inline(always)]
    fn put(&mut self, slot: usize, key: u64, entry: u32) {
        let group = &mut self.groups[(slot / 4) as u32];
        group.keys[slot % 4] = key;
        group.entries[slot % 4] = entry;
        self.slots[entry] = slot as u32;
    }

    fn clear(&mut self, slot: usize) {
        self.groups[(slot / 4) as u32].keys[slot % 4] = NO_KEY;
    }
}

/// The horizon of an empty heap.
fn first_horizon(capacity: usize) -> u64 {
    if capacity < LEAST_BEYOND { NO_KEY } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Streams};

    #[test]
    fn entries_come_out_in_order_whatever_happened_to_their_keys() {
        for capacity in [200, LEAST_BEYOND as u32, 3 * LEAST_BEYOND as u32] {
            in_order(capacity);
        }
    }

    fn in_order(capacity: u32) {
        let mut stream = Streams::new(5).get(Purpose::Structure, 0);
        let mut heap = Heap::new(capacity as usize);
        let mut keys: Vec<Option<f64>> = vec![None; capacity as usize];
        let least = |keys: &[Option<f64>]| keys.iter().flatten().copied().reduce(f64::min);
        for round in 0..10 * capacity {
            let entry = stream.below(capacity);
            let key = &mut keys[entry as usize];
            if key.is_some() && stream.below(4) == 0 {
                heap.remove(entry);
                *key = None;
            } else {
                *key = Some(f64::from(round / capacity + stream.below(50)));
                heap.set(entry, key.unwrap());
            }
            // What is asked for in between moves the horizon on.
            let found = round.is_multiple_of(8).then(|| heap.least());
            if round.is_multiple_of(8 * capacity.div_ceil(512)) {
                assert_eq!(found, Some(least(&keys)));
            }
        }
        let mut copy = heap.clone();
        let found: Vec<f64> = std::iter::from_fn(|| copy.least().map(|_| keys[copy.pop() as usize].unwrap())).collect();
        let mut expected: Vec<f64> = keys.iter().flatten().copied().collect();
        expected.sort_by(f64::total_cmp);
        assert_eq!(found, expected);
        // In larger and smaller handfuls.
        for limit in [0.0, 5.0, 20.0, 21.0, 49.0, 1000.0] {
            let mut due = Vec::new();
            heap.pop_until(limit, &mut due);
            let is_due = |key: Option<f64>| key.is_some_and(|key| key <= limit);
            assert_eq!(due, (0..capacity).filter(|&entry| is_due(keys[entry as usize])).collect::<Vec<_>>());
            keys.iter_mut().filter(|key| is_due(**key)).for_each(|key| *key = None);
            assert_eq!(heap.least(), least(&keys));
        }
    }
}
