//! Which sources create a packet in a cycle: a ring of buckets for each tile of terminals.

use crate::state::NONE;

/// Buckets; a creation further away stays in its bucket for another turn.
const BUCKETS: usize = 4096;

/// The entries of one tile of terminals.
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
    tiles: Vec<Ring>,
    /// log2 of the terminals of a tile.
    pub(super) tile_shift: u32,
    /// By entry: the next one in the same bucket.
    next: Vec<u32>,
}

impl Calendar {
    /// An empty calendar of so many entries, for terminals in tiles of `2^tile_shift`.
    pub(super) fn new(terminals: u32, tile_shift: u32, entries: usize) -> Self {
        let tiles = terminals.div_ceil(1 << tile_shift) as usize;
        let ring = Ring { first: vec![NONE; BUCKETS].into_boxed_slice(), scheduled: 0 };
        Self { tiles: vec![ring; tiles], tile_shift, next: vec![NONE; entries] }
    }

    /// Bytes of such a calendar.
    pub(super) fn bytes(terminals: usize, tile_shift: u32, entries: usize) -> usize {
        let tiles = terminals.div_ceil(1 << tile_shift);
        tiles * (size_of::<Ring>() + 4 * BUCKETS) + 4 * entries
    }

    /// Notes an entry of a terminal under a cycle.
    pub(super) fn schedule(&mut self, entry: u32, terminal: u32, cycle: u64) {
        let ring = &mut self.tiles[(terminal >> self.tile_shift) as usize];
        let first = &mut ring.first[cycle as usize % BUCKETS];
        self.next[entry as usize] = std::mem::replace(first, entry);
        ring.scheduled += 1;
    }

    /// Takes the bucket of a cycle: its first entry, or [`NONE`]. Each of its entries is given to [`Self::take`] in turn.
    #[inline(always)]
    pub(super) fn open(&mut self, tile: u32, cycle: u64) -> u32 {
        std::mem::replace(&mut self.tiles[tile as usize].first[cycle as usize % BUCKETS], NONE)
    }

    /// Takes an entry out of an open bucket. Returns the one that follows, or [`NONE`].
    #[inline(always)]
    pub(super) fn take(&mut self, tile: u32, entry: u32) -> u32 {
        self.tiles[tile as usize].scheduled -= 1;
        self.next[entry as usize]
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        for ring in &mut self.tiles {
            ring.first.fill(NONE);
            ring.scheduled = 0;
        }
    }

    /// The next cycle from `now` on whose bucket has an entry, at most `limit`.
    pub(super) fn next_filled(&self, now: u64, limit: u64) -> u64 {
        let filled: Vec<&Ring> = self.tiles.iter().filter(|ring| ring.scheduled > 0).collect();
        let has_entry = |bucket: usize| filled.iter().any(|ring| ring.first[bucket] != NONE);
        let turn = if filled.is_empty() { 0 } else { BUCKETS as u64 };
        let ahead = (0..turn).find(|ahead| has_entry((now + ahead) as usize % BUCKETS));
        ahead.map_or(limit, |ahead| (now + ahead).min(limit))
    }
}
