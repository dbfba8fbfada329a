//! Timing wheels: what reaches which slot in which cycle.
//!
//! Addresses are cut into blocks of `2^block_shift` slots. Whatever is posted arrives at least one window later, so a block may be
//! advanced through a whole window of cycles before the next block is touched.

use crate::record::prefetch::prefetch;
use kasuri_network::memory::filled;

/// log2 of the addresses of a word.
pub(crate) const WORD_SHIFT: u32 = 6;

/// The bits of an address that tell its place in its word.
pub(crate) const IN_WORD: u32 = (1 << WORD_SHIFT) - 1;

/// Events by cycle of arrival and slot address; at most one per slot and cycle.
pub(crate) trait Wheel: Sized + Send {
    /// A wheel that takes delays up to `horizon - 1` cycles over `slots` addresses. `stride` slots belong to a port, and a port
    /// gets at most one event in a cycle. `None`: more places than 32-bit numbers name.
    fn new(horizon: u32, slots: u32, block_shift: u32, stride: u32) -> Option<Self>;

    /// Bytes of such a wheel.
    fn bytes(horizon: u32, slots: u32, block_shift: u32, stride: u32) -> usize;

    /// Can there be such a wheel?
    fn fits(horizon: u32, slots: u32, block_shift: u32, stride: u32) -> bool;

    /// Posts an event.
    fn post(&mut self, time: u32, address: u32);

    /// Fetches what posting an event will touch first.
    fn prefetch_post(&mut self, time: u32, address: u32);

    /// Takes the events of a block in a cycle out of the wheel, in any order that is the same each time, and does `each` with them.
    fn take_each(&mut self, time: u64, block: u32, each: impl FnMut(u32));

    /// The same with words of 64 addresses: `each` gets the number of a word and a bit for each event. A word comes once, and all in their
    /// order, but for second events of the same address.
    fn take_words(&mut self, time: u64, block: u32, each: impl FnMut(u32, u64));

    /// Moves the events of a block in a cycle to the end of `into`.
    #[inline(always)]
    fn take(&mut self, time: u64, block: u32, into: &mut Vec<u32>) {
        self.take_each(time, block, |address| into.push(address));
    }

    /// Are no events waiting at all?
    fn is_empty(&self) -> bool;

    /// Is an event waiting for a cycle?
    fn has_events(&self, time: u64) -> bool;

    /// All waiting addresses, for the checks of `paranoid` runs.
    fn waiting(&self) -> Vec<u32>;
}

/// One flat list of addresses per cycle and block.
#[derive(Clone, Debug)]
pub(crate) struct ListWheel {
    /// log2 of the lists of one cycle: the blocks, rounded up.
    blocks_shift: u32,
    block_shift: u32,
    /// Cycles of the wheel less one; the wheel is a power of two.
    mask: u32,
    /// Greatest number of events of a block in a cycle.
    capacity: u32,
    events: Box<[u32]>,
    /// For each list, the place in `events` where its next event goes.
    ends: Box<[u32]>,
    /// The words of a block; memory to use.
    words: Box<[u64]>,
}

impl Wheel for ListWheel {
    fn bytes(horizon: u32, slots: u32, block_shift: u32, stride: u32) -> usize {
        let lists = horizon.next_power_of_two() as usize * slots.div_ceil(1 << block_shift).next_power_of_two() as usize;
        4 * lists * (1 + ((1 << block_shift).min(slots) / stride) as usize)
    }

    fn fits(horizon: u32, slots: u32, block_shift: u32, stride: u32) -> bool {
        let blocks = slots.div_ceil(1 << block_shift).next_power_of_two();
        let lists = horizon.next_power_of_two().checked_mul(blocks);
        lists.and_then(|lists| lists.checked_mul((1 << block_shift).min(slots) / stride)).is_some()
    }

    fn new(horizon: u32, slots: u32, block_shift: u32, stride: u32) -> Option<Self> {
        let cycles = horizon.next_power_of_two();
        let blocks = slots.div_ceil(1 << block_shift).next_power_of_two();
        let capacity = (1 << block_shift).min(slots) / stride;
        let lists = cycles.checked_mul(blocks)?;
        let places = lists.checked_mul(capacity)?;
        // Zeroed memory costs nothing until it is touched, so only what the load uses becomes resident.
        Some(Self {
            blocks_shift: blocks.trailing_zeros(),
            block_shift,
            mask: cycles - 1,
            capacity,
            events: vec![0; places as usize].into_boxed_slice(),
            ends: (0..lists).map(|list| list * capacity).collect(),
            words: vec![0; 1 << (block_shift - WORD_SHIFT)].into_boxed_slice(),
        })
    }

    #[inline(always)]
    fn post(&mut self, time: u32, address: u32) {
        self.posts().post(time, address);
    }

    #[inline(always)]
    fn prefetch_post(&mut self, time: u32, address: u32) {
        self.posts().prefetch_end(time, address);
    }

    #[inline(always)]
    fn take_each(&mut self, time: u64, block: u32, each: impl FnMut(u32)) {
        self.events(time, block).iter().copied().for_each(each);
        self.clear(time, block);
    }

    #[inline(always)]
    fn take_words(&mut self, time: u64, block: u32, mut each: impl FnMut(u32, u64)) {
        let mut words = std::mem::take(&mut self.words);
        let first = block << (self.block_shift - WORD_SHIFT);
        self.take_each(time, block, |address| {
            let (word, bit) = (&mut words[((address >> WORD_SHIFT) - first) as usize], 1 << (address & IN_WORD));
            if *word & bit == 0 {
                *word |= bit;
            } else {
                // A buffer that is left twice in a cycle: a router that is faster than its channels.
                each(address >> WORD_SHIFT, bit);
            }
        });
        for (bits, word) in words.iter_mut().zip(first..) {
            if *bits != 0 {
                each(word, std::mem::take(bits));
            }
        }
        self.words = words;
    }

    fn has_events(&self, time: u64) -> bool {
        (0..1 << self.blocks_shift).any(|block| !self.is_empty_at(time, block))
    }

    fn is_empty(&self) -> bool {
        self.ends.iter().enumerate().all(|(list, &end)| end == list as u32 * self.capacity)
    }

    fn waiting(&self) -> Vec<u32> {
        let list = |list: usize| &self.events[list * self.capacity as usize..self.ends[list] as usize];
        (0..self.ends.len()).flat_map(list).copied().collect()
    }
}

impl ListWheel {
    /// The hot loops' hold on the wheel.
    #[inline(always)]
    pub(crate) fn posts(&mut self) -> Posts {
        Posts {
            ends: self.ends.as_mut_ptr(),
            events: self.events.as_mut_ptr(),
            mask: self.mask,
            blocks_shift: self.blocks_shift,
            block_shift: self.block_shift,
            #[cfg(debug_assertions)]
            capacity: self.capacity,
        }
    }

    #[inline(always)]
    fn index(&self, time: u64, block: u32) -> u32 {
        (time as u32 & self.mask) << self.blocks_shift | block
    }

    /// Has a block no events in a cycle?
    #[inline(always)]
    pub(crate) fn is_empty_at(&self, time: u64, block: u32) -> bool {
        let list = self.index(time, block);
        self.ends[list as usize] == list * self.capacity
    }

    /// The events of a block in a cycle. Their memory stays untouched until the wheel has turned.
    #[inline(always)]
    pub(crate) fn events(&self, time: u64, block: u32) -> &[u32] {
        let list = self.index(time, block);
        &self.events[(list * self.capacity) as usize..self.ends[list as usize] as usize]
    }

    /// The cycles from `now` on, which is the present one, in which an event waits for an address, ascending.
    pub(crate) fn times_of(&self, now: u64, address: u32) -> Vec<u64> {
        let block = address >> self.block_shift;
        (now..=now + u64::from(self.mask)).filter(|&time| self.events(time, block).contains(&address)).collect()
    }

    /// Takes one event of a cycle away, if it is there.
    pub(crate) fn remove(&mut self, time: u64, address: u32) {
        let list = self.index(time, address >> self.block_shift);
        let (first, end) = (list * self.capacity, self.ends[list as usize]);
        if let Some(place) = (first..end).find(|&place| self.events[place as usize] == address) {
            self.events[place as usize] = self.events[end as usize - 1];
            self.ends[list as usize] = end - 1;
        }
    }

    /// Empties the list of a block in a cycle.
    #[inline(always)]
    pub(crate) fn clear(&mut self, time: u64, block: u32) {
        let list = self.index(time, block);
        self.ends[list as usize] = list * self.capacity;
    }
}

/// Posts events without going through the wheel's own fields. Valid as long as the wheel lives and nobody else uses it.
#[derive(Clone, Copy)]
pub(crate) struct Posts {
    ends: *mut u32,
    events: *mut u32,
    mask: u32,
    blocks_shift: u32,
    block_shift: u32,
    #[cfg(debug_assertions)]
    capacity: u32,
}

impl Posts {
    #[inline(always)]
    fn list(self, time: u32, address: u32) -> usize {
        ((time & self.mask) << self.blocks_shift | address >> self.block_shift) as usize
    }

    /// Fetches the end of the list on which an event will be posted.
    #[inline(always)]
    pub(crate) fn prefetch_end(self, time: u32, address: u32) {
        prefetch(self.ends.wrapping_add(self.list(time, address)));
    }

    /// Fetches the place of the next event of that list, once its end has been fetched.
    #[inline(always)]
    pub(crate) fn prefetch_place(self, time: u32, address: u32) {
        // SAFETY: as in `post`.
        let end = unsafe { *self.ends.add(self.list(time, address)) };
        prefetch(self.events.wrapping_add(end as usize));
    }

    /// Posts an event for `address` in cycle `time`.
    #[inline(always)]
    pub(crate) fn post(self, time: u32, address: u32) {
        let list = self.list(time, address);
        // SAFETY: an address belongs to a block of the wheel, and a port gets at most one event per cycle, so a list never
        // outgrows its capacity of one place per port of the block (checked where assertions are on).
        unsafe {
            let end = self.ends.add(list);
            let place = *end;
            #[cfg(debug_assertions)]
            assert!(place < (list as u32 + 1) * self.capacity, "more events than ports in a block");
            *self.events.add(place as usize) = address;
            // Not read once more: one event after the other is posted to the same list, and each waits for the end that the last one left.
            *end = place + 1;
        }
    }
}

/// The addresses of which the bits of a word tell.
#[inline(always)]
pub(crate) fn addresses_of(word: u32, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let first = (bits != 0).then(|| word << WORD_SHIFT | bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        first
    })
}

/// One bit per slot and cycle: half a byte of traffic for an event instead of eight, and masks for the vector loops.
#[derive(Clone, Debug)]
pub(crate) struct BitWheel {
    mask: u32,
    block_shift: u32,
    /// Words of one cycle.
    words_per_cycle: u32,
    words: Box<[u64]>,
}

impl Wheel for BitWheel {
    fn bytes(horizon: u32, slots: u32, _tile_shift: u32, _stride: u32) -> usize {
        8 * horizon.next_power_of_two() as usize * slots.div_ceil(64) as usize
    }

    fn fits(horizon: u32, slots: u32, _tile_shift: u32, _stride: u32) -> bool {
        horizon.next_power_of_two().checked_mul(slots.div_ceil(64)).is_some()
    }

    fn new(horizon: u32, slots: u32, block_shift: u32, _stride: u32) -> Option<Self> {
        let cycles = horizon.next_power_of_two();
        let words_per_cycle = slots.div_ceil(64);
        let words = cycles.checked_mul(words_per_cycle)?;
        Some(Self { mask: cycles - 1, block_shift, words_per_cycle, words: filled(words as usize, 0) })
    }

    #[inline(always)]
    fn post(&mut self, time: u32, address: u32) {
        let word = self.word(time, address >> WORD_SHIFT);
        debug_assert_eq!(self.words[word] >> (address & IN_WORD) & 1, 0, "one event per slot and cycle");
        self.words[word] |= 1 << (address & IN_WORD);
    }

    #[inline(always)]
    fn prefetch_post(&mut self, time: u32, address: u32) {
        prefetch(&self.words[self.word(time, address >> WORD_SHIFT)]);
    }

    #[inline(always)]
    fn take_each(&mut self, time: u64, block: u32, mut each: impl FnMut(u32)) {
        self.take_words(time, block, |word, bits| addresses_of(word, bits).for_each(&mut each));
    }

    #[inline(always)]
    fn take_words(&mut self, time: u64, block: u32, mut each: impl FnMut(u32, u64)) {
        let first = block << (self.block_shift - WORD_SHIFT);
        let last = ((block + 1) << (self.block_shift - WORD_SHIFT)).min(self.words_per_cycle);
        for word in first..last {
            let place = self.word(time as u32, word);
            let bits = std::mem::take(&mut self.words[place]);
            if bits != 0 {
                each(word, bits);
            }
        }
    }

    fn has_events(&self, time: u64) -> bool {
        let first = self.word(time as u32, 0);
        self.words[first..first + self.words_per_cycle as usize].iter().any(|&word| word != 0)
    }

    fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    fn waiting(&self) -> Vec<u32> {
        let mut waiting = Vec::new();
        for (place, &word) in self.words.iter().enumerate() {
            let first = (place as u32 % self.words_per_cycle) << 6;
            waiting.extend((0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| first + bit));
        }
        waiting
    }
}

impl BitWheel {
    #[inline(always)]
    fn word(&self, time: u32, word: u32) -> usize {
        (time & self.mask) as usize * self.words_per_cycle as usize + word as usize
    }

    /// The first word of a cycle.
    #[inline(always)]
    pub(crate) fn cycle_words(&mut self, time: u64) -> *mut u64 {
        let first = self.word(time as u32, 0);
        self.words[first..].as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Streams};
    use std::collections::BTreeSet;

    const HORIZON: u32 = 5;
    const BLOCK_SHIFT: u32 = 8;
    /// The last block is not whole, nor is its last word.
    const SLOTS: u32 = 2 * 256 + 100;

    /// What is posted comes back once, in its cycle and from its block, slot by slot as well as in words.
    fn events_come_back<W: Wheel>() {
        let mut wheel = W::new(HORIZON, SLOTS, BLOCK_SHIFT, 1).unwrap();
        let mut draws = Streams::new(1).get(Purpose::Creation, 0);
        let mut posted: BTreeSet<(u64, u32)> = BTreeSet::new();
        for now in 0..200 {
            for _ in 0..draws.below(300) {
                let (time, slot) = (now + 1 + u64::from(draws.below(HORIZON - 1)), draws.below(SLOTS));
                if posted.insert((time, slot)) {
                    wheel.post(time as u32, slot);
                }
            }
            assert_eq!(wheel.waiting().len(), posted.len());
            for block in 0..SLOTS.div_ceil(1 << BLOCK_SHIFT) {
                let mut taken = Vec::new();
                if now % 2 == 0 {
                    wheel.take(now, block, &mut taken);
                } else {
                    wheel.take_words(now, block, |word, bits| taken.extend(addresses_of(word, bits)));
                }
                taken.sort_unstable();
                let due: Vec<u32> =
                    posted.iter().filter(|&&(time, slot)| time == now && slot >> BLOCK_SHIFT == block).map(|due| due.1).collect();
                assert_eq!(taken, due, "cycle {now}, block {block}");
            }
            posted.retain(|&(time, _)| time > now);
            assert!(!wheel.has_events(now));
        }
    }

    /// A router that is faster than its channels sends two credits of a buffer in a cycle: neither is lost in a word.
    #[test]
    fn two_events_of_a_slot_come_back_as_two() {
        let mut wheel = ListWheel::new(HORIZON, SLOTS, BLOCK_SHIFT, 1).unwrap();
        [70, 300, 70, 5].into_iter().for_each(|slot| wheel.post(3, slot));
        for block in 0..2 {
            let mut taken = Vec::new();
            wheel.take_words(3, block, |word, bits| taken.extend(addresses_of(word, bits)));
            taken.sort_unstable();
            assert_eq!(taken, [vec![5, 70, 70], vec![300]][block as usize]);
        }
        assert!(wheel.is_empty());
    }

    #[test]
    fn what_is_posted_comes_back_slot_by_slot_and_in_words() {
        events_come_back::<ListWheel>();
        events_come_back::<BitWheel>();
    }
}
