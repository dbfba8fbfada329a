//! The local memory of a node: one access at a time, first come, first served; and what its words are.

use kasuri_network::id::TerminalId;
use std::collections::BTreeMap;

/// What was written to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// A number that no other write has; 0 before the first.
    pub(super) value: u64,
    /// The interface by which it came; `None`: from the node itself, or nothing was written yet.
    pub(super) by: Option<TerminalId>,
}

/// The memory of a node.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// When it can take the next access.
    free: u64,
    /// By place.
    words: BTreeMap<u64, Written>,
}

impl Memory {
    /// An access that comes now and takes so many cycles. Returns when it is done; one that takes no time does not wait either.
    pub(super) fn serve(&mut self, now: u64, cycles: u32) -> u64 {
        if cycles == 0 {
            return now;
        }
        self.free = self.free.max(now) + u64::from(cycles);
        self.free
    }

    /// What a word is.
    pub(super) fn read(&self, place: u64) -> Written {
        self.words.get(&place).copied().unwrap_or(Written { value: 0, by: None })
    }

    /// Makes a word what was written.
    pub(super) fn write(&mut self, place: u64, written: Written) {
        self.words.insert(place, written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_wait_for_those_before_them() {
        let mut memory = Memory::default();
        assert_eq!([(0, 5), (2, 5), (20, 1), (20, 0)].map(|(now, cycles)| memory.serve(now, cycles)), [5, 10, 21, 20]);
    }
}
