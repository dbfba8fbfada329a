//! Which sources create a packet in a cycle: a ring of buckets for each block of terminals.

use crate::record::marks::NONE;
use crate::record::prefetch::prefetch_all;
use kasuri_network::memory;

/// Buckets; a creation further away stays in its bucket for another turn.
const BUCKETS: usize = 4096;

/// The entries of one block of terminals.
#[derive(Clone, Debug)]
struct Ring {
    /// The first entry of each bucket, and a bit for each bucket that has one.
    first: Box<[u32]>,
    filled: Box<[u64]>,
    /// Entries in all buckets.
    scheduled: u32,
}

impl Ring {
    /// The next cycle from `now` on whose bucket has an entry.
    fn next_filled(&self, now: u64) -> Option<u64> {
        if self.scheduled == 0 {
            return None;
        }
        let (word, bit) = (now as usize % BUCKETS / 64, now % 64);
        let words = self.filled.len();
        let rest = self.filled[word] >> bit;
        if rest != 0 {
            return Some(now + u64::from(rest.trailing_zeros()));
        }
        // Once round, so that the buckets before the first one come last.
        let ahead = (1..=words).find(|ahead| self.filled[(word + ahead) % words] != 0)?;
        let bits = self.filled[(word + ahead) % words];
        Some(now - bit + 64 * ahead as u64 + u64::from(bits.trailing_zeros()))
    }
}

/// Entries by the cycle in which something is due.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    blocks: Vec<Ring>,
    /// log2 of the terminals of a block.
    pub(crate) block_shift: u32,
    /// By entry: the next one in the same bucket.
    next: Vec<u32>,
}

impl Calendar {
    /// An empty calendar of so many entries, for terminals in blocks of `2^block_shift`.
    pub(crate) fn new(terminals: u32, block_shift: u32, entries: usize) -> Self {
        let blocks = terminals.div_ceil(1 << block_shift) as usize;
        let (first, filled) = (vec![NONE; BUCKETS].into_boxed_slice(), vec![0; BUCKETS / 64].into_boxed_slice());
        let ring = Ring { first, filled, scheduled: 0 };
        Self { blocks: vec![ring; blocks], block_shift, next: memory::filled(entries, NONE).into_vec() }
    }

    /// Bytes of such a calendar.
    pub(crate) fn bytes(terminals: usize, block_shift: u32, entries: usize) -> usize {
        let blocks = terminals.div_ceil(1 << block_shift);
        blocks * (size_of::<Ring>() + 4 * BUCKETS + BUCKETS / 8) + 4 * entries
    }

    /// Notes an entry of a terminal under a cycle.
    pub(crate) fn schedule(&mut self, entry: u32, terminal: u32, cycle: u64) {
        let ring = &mut self.blocks[(terminal >> self.block_shift) as usize];
        let bucket = cycle as usize % BUCKETS;
        self.next[entry as usize] = std::mem::replace(&mut ring.first[bucket], entry);
        ring.filled[bucket / 64] |= 1 << (bucket % 64);
        ring.scheduled += 1;
    }

    /// Takes the bucket of a cycle: its first entry, or [`NONE`]. Each of its entries is given to [`Self::take`] in turn.
    #[inline(always)]
    pub(crate) fn open(&mut self, block: u32, cycle: u64) -> u32 {
        let (ring, bucket) = (&mut self.blocks[block as usize], cycle as usize % BUCKETS);
        if ring.filled[bucket / 64] >> (bucket % 64) & 1 == 0 {
            return NONE;
        }
        ring.filled[bucket / 64] &= !(1 << (bucket % 64));
        std::mem::replace(&mut ring.first[bucket], NONE)
    }

    /// Takes an entry out of an open bucket. Returns the one that follows, or [`NONE`].
    #[inline(always)]
    pub(crate) fn take(&mut self, block: u32, entry: u32) -> u32 {
        self.blocks[block as usize].scheduled -= 1;
        self.following(entry)
    }

    /// The entry that follows one in its bucket, or [`NONE`].
    #[inline(always)]
    pub(crate) fn following(&self, entry: u32) -> u32 {
        self.next[entry as usize]
    }

    /// Fetches which entries of a block's first class follow which.
    pub(crate) fn prefetch_block(&self, block: u32) {
        let first = (block as usize) << self.block_shift;
        let end = (first + (1 << self.block_shift)).min(self.next.len());
        prefetch_all(&self.next[first..end]);
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        for ring in &mut self.blocks {
            ring.first.fill(NONE);
            ring.filled.fill(0);
            ring.scheduled = 0;
        }
    }

    /// The next cycle from `now` on whose bucket has an entry, at most `limit`.
    pub(crate) fn next_filled(&self, now: u64, limit: u64) -> u64 {
        self.blocks.iter().filter_map(|ring| ring.next_filled(now)).fold(limit, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next filled bucket is found from every cycle, across the end of the ring and once round it.
    #[test]
    fn the_next_filled_bucket_is_the_next_cycle_of_an_entry() {
        let far = BUCKETS as u64;
        for due in [0, 1, 63, 64, 65, 4095, 4096, 5000] {
            let mut calendar = Calendar::new(4, 1, 4);
            calendar.schedule(3, 3, due);
            for now in [0, 1, 62, 63, 64, 100, 4090, 4095, 4096, 4999, 5000] {
                // An entry stands in its bucket at every turn.
                let next = (now..).find(|cycle| cycle % far == due % far).unwrap();
                assert_eq!(calendar.next_filled(now, u64::MAX), next, "an entry of cycle {due} from cycle {now} on");
                assert_eq!(calendar.next_filled(now, now), now);
            }
            assert_eq!(calendar.open(1, due), 3);
            calendar.take(1, 3);
            assert_eq!(calendar.next_filled(0, 77), 77);
        }
    }
}
