//! A heap of numbered entries whose keys change: which flow ends next, which terminal wakes next.

use kasuri_model::memory::Column;

/// No place in the heap.
const ABSENT: u32 = u32::MAX;

/// A binary heap's idea with four children a node, which touches fewer cache lines, and the place of each entry.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    nodes: Vec<(f64, u32)>,
    place: Column<u32>,
    /// Places of nodes that are due; memory to use.
    due: Vec<usize>,
    /// Were many entries taken out together the last time?
    many: bool,
}

impl Heap {
    /// A heap for entries numbered below `entries`.
    pub(crate) fn new(entries: usize) -> Self {
        Self { nodes: Vec::new(), place: Column::filled(entries, ABSENT), due: Vec::new(), many: false }
    }

    /// The least key and its entry; of equal keys the entry with the least number, so that no order of insertion matters.
    pub(crate) fn first(&self) -> Option<(f64, u32)> {
        self.nodes.first().copied()
    }

    /// Some of the entries with the least keys, the very least first.
    pub(crate) fn foremost(&self, count: usize) -> impl Iterator<Item = u32> + '_ {
        self.nodes.iter().take(count).map(|&(_, entry)| entry)
    }

    /// Puts an entry in, or changes its key.
    #[inline]
    pub(crate) fn set(&mut self, entry: u32, key: f64) {
        let place = self.place[entry];
        if place == ABSENT {
            let last = self.nodes.len();
            self.nodes.push((key, entry));
            // Most flows end no sooner than those before them.
            if last == 0 || self.nodes[(last - 1) / 4] <= (key, entry) {
                self.place[entry] = last as u32;
            } else {
                self.rise(last);
            }
            return;
        }
        let before = std::mem::replace(&mut self.nodes[place as usize].0, key);
        if key < before {
            self.rise(place as usize);
        } else {
            self.sink(place as usize);
        }
    }

    /// Takes out all entries whose key is at most `limit`, by number. Where many go at once they are not taken one by one.
    pub(crate) fn pop_until(&mut self, limit: f64, into: &mut Vec<u32>) {
        let before = self.nodes.len();
        // Where many went together the last time they likely do again.
        if self.many || self.are_many_due(limit) {
            self.remove_due(limit, into);
        } else {
            while let Some((_, entry)) = self.first().filter(|&(key, _)| key <= limit) {
                self.pop();
                into.push(entry);
            }
        }
        self.many = (before - self.nodes.len()) * 8 > before;
        // They mostly are in order already.
        into.sort_unstable();
    }

    /// Is the key of more than an eighth of the entries at most `limit`? Those lie together at the top.
    fn are_many_due(&mut self, limit: f64) -> bool {
        let is_due = |place: usize| place < self.nodes.len() && self.nodes[place].0 <= limit;
        self.due.clear();
        self.due.extend(is_due(0).then_some(0));
        let mut looked_at = 0;
        while looked_at < self.due.len() && self.due.len() * 8 <= self.nodes.len() {
            let first_child = 4 * self.due[looked_at] + 1;
            self.due.extend((first_child..first_child + 4).filter(|&child| is_due(child)));
            looked_at += 1;
        }
        self.due.len() * 8 > self.nodes.len()
    }

    /// Takes the entries out whose key is at most `limit` and makes a heap of the others anew.
    fn remove_due(&mut self, limit: f64, into: &mut Vec<u32>) {
        let place = &mut self.place;
        self.nodes.retain(|&(key, entry)| {
            if key <= limit {
                place[entry] = ABSENT;
                into.push(entry);
            }
            key > limit
        });
        for (place, &(_, entry)) in self.nodes.iter().enumerate() {
            self.place[entry] = place as u32;
        }
        for place in (0..self.nodes.len().div_ceil(4)).rev() {
            self.sink(place);
        }
    }

    /// Takes the first entry out.
    pub(crate) fn pop(&mut self) -> Option<(f64, u32)> {
        let first = self.first()?;
        self.place[first.1] = ABSENT;
        let last = self.nodes.pop().expect("it has a first");
        if !self.nodes.is_empty() {
            self.nodes[0] = last;
            self.sink(0);
        }
        Some(first)
    }

    fn rise(&mut self, mut place: usize) {
        let node = self.nodes[place];
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.nodes[parent] <= node {
                break;
            }
            self.put(place, self.nodes[parent]);
            place = parent;
        }
        self.put(place, node);
    }

    fn sink(&mut self, mut place: usize) {
        let node = self.nodes[place];
        loop {
            let children = 4 * place + 1..(4 * place + 5).min(self.nodes.len());
            let Some(least) = children.reduce(|best, child| if self.nodes[child] < self.nodes[best] { child } else { best }) else {
                break;
            };
            if node <= self.nodes[least] {
                break;
            }
            self.put(place, self.nodes[least]);
            place = least;
        }
        self.put(place, node);
    }

    fn put(&mut self, place: usize, node: (f64, u32)) {
        self.nodes[place] = node;
        self.place[node.1] = place as u32;
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
        let found: Vec<_> = std::iter::from_fn(|| copy.pop()).collect();
        assert_eq!(found, expected);
        // In larger and smaller handfuls.
        for (limit, next) in [(0.0, 1.0), (20.0, 21.0), (21.0, 22.0), (49.0, f64::INFINITY)] {
            let mut due = Vec::new();
            heap.pop_until(limit, &mut due);
            let mut wanted: Vec<u32> = expected.iter().filter(|(key, _)| *key <= limit).map(|&(_, entry)| entry).collect();
            wanted.sort_unstable();
            assert_eq!(due, wanted);
            expected.retain(|(key, _)| *key > limit);
            assert!(heap.first().is_none_or(|(key, _)| key >= next));
            assert_eq!(heap.first(), expected.first().copied());
        }
    }
}
