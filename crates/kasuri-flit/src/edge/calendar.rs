//! Which sources create a packet in a cycle: a ring of buckets for each block of terminals.

use crate::tile::NONE;

/// Buckets; a creation further away stays in its bucket for another turn.
const BUCKETS: usize = 4096;

/// The entries of one block of terminals.
#[derive(Clone, Debug)]
struct Ring {
    /// The first entry of each bucket.
    first: Box<[u32]>,
    /// Entries in all buckets.
    scheduled: u32,
}

/// Entries by the cycle in which something is due.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    blocks: Vec<Ring>,
    /// log2 of the terminals of a block.
    pub(super) block_shift: u32,
    /// By entry: the next one in the same bucket.
    next: Vec<u32>,
}

impl Calendar {
    /// An empty calendar of so many entries, for terminals in blocks of `2^block_shift`.
    pub(super) fn new(terminals: u32, block_shift: u32, entries: usize) -> Self {
        let blocks = terminals.div_ceil(1 << block_shift) as usize;
        let ring = Ring { first: vec![NONE; BUCKETS].into_boxed_slice(), scheduled: 0 };
        Self { blocks: vec![ring; blocks], block_shift, next: vec![NONE; entries] }
    }

    /// Bytes of such a calendar.
    pub(super) fn bytes(terminals: usize, block_shift: u32, entries: usize) -> usize {
        let blocks = terminals.div_ceil(1 << block_shift);
        blocks * (size_of::<Ring>() + 4 * BUCKETS) + 4 * entries
    }

    /// Notes an entry of a terminal under a cycle.
    pub(super) fn schedule(&mut self, entry: u32, terminal: u32, cycle: u64) {
        let ring = &mut self.blocks[(terminal >> self.block_shift) as usize];
        let first = &mut ring.first[cycle as usize % BUCKETS];
        self.next[entry as usize] = std::mem::replace(first, entry);
        ring.scheduled += 1;
    }

    /// Takes the bucket of a cycle: its first entry, or [`NONE`]. Each of its entries is given to [`Self::take`] in turn.
    #[inline(always)]
    pub(super) fn open(&mut self, block: u32, cycle: u64) -> u32 {
        std::mem::replace(&mut self.blocks[block as usize].first[cycle as usize % BUCKETS], NONE)
    }

    /// Takes an entry out of an open bucket. Returns the one that follows, or [`NONE`].
    #[inline(always)]
    pub(super) fn take(&mut self, block: u32, entry: u32) -> u32 {
        self.blocks[block as usize].scheduled -= 1;
        self.next[entry as usize]
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        for ring in &mut self.blocks {
            ring.first.fill(NONE);
            ring.scheduled = 0;
        }
    }

    /// The next cycle from `now` on whose bucket has an entry, at most `limit`.
    pub(super) fn next_filled(&self, now: u64, limit: u64) -> u64 {
        let filled: Vec<&Ring> = self.blocks.iter().filter(|ring| ring.scheduled > 0).collect();
        let has_entry = |bucket: usize| filled.iter().any(|ring| ring.first[bucket] != NONE);
        let turn = if filled.is_empty() { 0 } else { BUCKETS as u64 };
        let ahead = (0..turn).find(|ahead| has_entry((now + ahead) as usize % BUCKETS));
        ahead.map_or(limit, |ahead| (now + ahead).min(limit))
    }
}
