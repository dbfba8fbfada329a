//! The timing wheel: what reaches which slot in which cycle, as flat lists of addresses, one list per cycle and tile.
//!
//! A tile is a range of `2^tile_shift` slot addresses. Whatever is posted arrives at least one window later, so a tile may be
//! advanced through a whole window of cycles before the next tile is touched.

use crate::column::Column;

/// Lists of slot addresses by cycle of arrival and tile.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    tiles: u32,
    tile_shift: u32,
    /// Cycles of the wheel less one; the wheel is a power of two.
    mask: u32,
    /// Greatest number of events of a tile in a cycle.
    capacity: u32,
    /// Events posted and not yet cleared.
    pending: u32,
    events: Column<u32>,
    lengths: Column<u32>,
}

impl Wheel {
    /// A wheel that takes delays up to `horizon - 1` cycles. `capacity` bounds the events of a tile in one cycle.
    pub(crate) fn new(horizon: u32, tiles: u32, tile_shift: u32, capacity: u32) -> Self {
        let cycles = horizon.next_power_of_two();
        let lists = (cycles * tiles) as usize;
        // Zeroed memory costs nothing until it is touched, so only what the load uses becomes resident.
        Self {
            tiles,
            tile_shift,
            mask: cycles - 1,
            capacity,
            pending: 0,
            events: Column::filled(lists * capacity as usize, 0),
            lengths: Column::filled(lists, 0),
        }
    }

    /// Posts an event for `address` in cycle `time`.
    #[inline(always)]
    pub(crate) fn post(&mut self, time: u64, address: u32) {
        let list = (time as u32 & self.mask) * self.tiles + (address >> self.tile_shift);
        let length = self.lengths[list];
        debug_assert!(length < self.capacity, "more events than ports in a tile");
        self.events[list * self.capacity + length] = address;
        self.lengths[list] = length + 1;
        self.pending += 1;
    }

    /// The number of events of a tile in a cycle. The list starts at the second number.
    #[inline(always)]
    pub(crate) fn list(&self, time: u64, tile: u32) -> (u32, u32) {
        let list = (time as u32 & self.mask) * self.tiles + tile;
        (self.lengths[list], list * self.capacity)
    }

    /// One event of a list found by [`Wheel::list`].
    #[inline(always)]
    pub(crate) fn event(&self, start: u32, position: u32) -> u32 {
        self.events[start + position]
    }

    /// Empties the list of a tile in a cycle, after its events were handled.
    #[inline(always)]
    pub(crate) fn clear(&mut self, time: u64, tile: u32) {
        let list = (time as u32 & self.mask) * self.tiles + tile;
        self.pending -= self.lengths[list];
        self.lengths[list] = 0;
    }

    /// Are no events waiting at all?
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// All waiting addresses, for the books of `paranoid` runs.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        (0..self.lengths.len() as u32).flat_map(move |list| {
            let start = list * self.capacity;
            (0..self.lengths[list]).map(move |position| self.events[start + position])
        })
    }
}
