//! A heap of numbered entries whose keys change: which flow ends next, which terminal wakes next.

use kasuri_model::memory::Column;

/// The slot of an entry that is not in the heap; [`ROOT`] is the first that is used.
const ABSENT: u32 = 0;

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
    /// Both columns are empty until the first entry comes.
    groups: Column<Group>,
    slots: Column<u32>,
    length: usize,
    /// Slots of nodes that are due; memory to use.
    due: Vec<u32>,
    /// Were many entries taken out together the last time?
    many: bool,
}

impl Heap {
    /// A heap for entries numbered below `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, groups: Vec::new().into(), slots: Vec::new().into(), length: 0, due: Vec::new(), many: false }
    }

    /// The least key.
    pub(crate) fn least(&self) -> Option<f64> {
        (self.length > 0).then(|| f64::from_bits(self.key(ROOT)))
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
        if slot == ABSENT {
            let last = ROOT + self.length;
            self.length += 1;
            self.rise(last, key, entry);
        } else if key < self.key(slot as usize) {
            self.rise(slot as usize, key, entry);
        } else {
            self.sink(slot as usize, key, entry);
        }
    }

    #[cold]
    fn make_room(&mut self) {
        self.groups = Column::filled((ROOT + self.capacity).div_ceil(4), EMPTY);
        self.slots = Column::filled(self.capacity, ABSENT);
    }

    /// Takes out all entries whose key is at most `limit`, by number. Where many go at once they are not taken one by one.
    pub(crate) fn pop_until(&mut self, limit: f64, into: &mut Vec<u32>) {
        let before = self.length;
        let limit = limit.to_bits();
        // Where many went together the last time they likely do again.
        if self.many || self.are_many_due(limit) {
            self.remove_due(limit, into);
        } else {
            while self.length > 0 && self.key(ROOT) <= limit {
                into.push(self.pop());
            }
        }
        self.many = (before - self.length) * 8 > before;
        // They mostly are in order already.
        into.sort_unstable();
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
        for slot in (ROOT..ROOT + self.length.div_ceil(4)).rev() {
            self.sink(slot, self.key(slot), self.entry(slot));
        }
    }

    /// Takes the first entry out, which there has to be.
    pub(crate) fn pop(&mut self) -> u32 {
        let first = self.entry(ROOT);
        self.slots[first] = ABSENT;
        self.length -= 1;
        let last = ROOT + self.length;
        let (key, entry) = (self.key(last), self.entry(last));
        self.clear(last);
        if self.length > 0 {
            self.sink(ROOT, key, entry);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::rng::{Purpose, Streams};

    #[test]
    fn entries_come_out_in_order_whatever_happened_to_their_keys() {
        let mut stream = Streams::new(5).get(Purpose::Structure, 0);
        let mut heap = Heap::new(200);
        let mut keys = vec![0.0; 200];
        for _ in 0..2000 {
            let entry = stream.below(200);
            keys[entry as usize] = f64::from(stream.below(50));
            heap.set(entry, keys[entry as usize]);
        }
        let mut expected: Vec<(f64, u32)> = keys.iter().zip(0..).map(|(&key, entry)| (key, entry)).collect();
        expected.sort_by(|one, other| one.partial_cmp(other).unwrap());
        let mut copy = heap.clone();
        let found: Vec<f64> = std::iter::from_fn(|| copy.least().map(|_| keys[copy.pop() as usize])).collect();
        assert_eq!(found, expected.iter().map(|&(key, _)| key).collect::<Vec<_>>());
        // In larger and smaller handfuls.
        for (limit, next) in [(0.0, 1.0), (20.0, 21.0), (21.0, 22.0), (49.0, f64::INFINITY)] {
            let mut due = Vec::new();
            heap.pop_until(limit, &mut due);
            let mut wanted: Vec<u32> = expected.iter().filter(|(key, _)| *key <= limit).map(|&(_, entry)| entry).collect();
            wanted.sort_unstable();
            assert_eq!(due, wanted);
            expected.retain(|(key, _)| *key > limit);
            assert!(heap.least().is_none_or(|key| key >= next));
            assert_eq!(heap.least(), expected.first().map(|&(key, _)| key));
        }
    }
}
