//! The timing wheel: what reaches which slot in which cycle, as flat lists of addresses, one list per cycle and tile.
//!
//! A tile is a range of `2^tile_shift` slot addresses. Whatever is posted arrives at least one window later, so a tile may be
//! advanced through a whole window of cycles before the next tile is touched.

/// Lists of slot addresses by cycle of arrival and tile.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    /// log2 of the lists of one cycle: the tiles, rounded up.
    tiles_shift: u32,
    tile_shift: u32,
    /// Cycles of the wheel less one; the wheel is a power of two.
    mask: u32,
    /// Greatest number of events of a tile in a cycle.
    capacity: u32,
    events: Box<[u32]>,
    /// For each list, the place in `events` where its next event goes.
    ends: Box<[u32]>,
}

impl Wheel {
    /// A wheel that takes delays up to `horizon - 1` cycles. `capacity` bounds the events of a tile in one cycle. `None`: the
    /// lists would need more places than 32-bit numbers name.
    pub(crate) fn new(horizon: u32, tiles: u32, tile_shift: u32, capacity: u32) -> Option<Self> {
        let cycles = horizon.next_power_of_two();
        let tiles = tiles.next_power_of_two();
        let lists = cycles.checked_mul(tiles)?;
        let places = lists.checked_mul(capacity)?;
        // Zeroed memory costs nothing until it is touched, so only what the load uses becomes resident.
        Some(Self {
            tiles_shift: tiles.trailing_zeros(),
            tile_shift,
            mask: cycles - 1,
            capacity,
            events: vec![0; places as usize].into_boxed_slice(),
            ends: (0..lists).map(|list| list * capacity).collect(),
        })
    }

    /// The hot loops' hold on the wheel.
    #[inline(always)]
    pub(crate) fn posts(&mut self) -> Posts {
        Posts {
            ends: self.ends.as_mut_ptr(),
            events: self.events.as_mut_ptr(),
            mask: self.mask,
            tiles_shift: self.tiles_shift,
            tile_shift: self.tile_shift,
            #[cfg(debug_assertions)]
            capacity: self.capacity,
        }
    }

    #[inline(always)]
    fn index(&self, time: u64, tile: u32) -> u32 {
        (time as u32 & self.mask) << self.tiles_shift | tile
    }

    /// The number of events of a tile in a cycle.
    #[inline(always)]
    pub(crate) fn length(&self, time: u64, tile: u32) -> u32 {
        let list = self.index(time, tile);
        self.ends[list as usize] - list * self.capacity
    }

    /// The events of a tile in a cycle. Their memory stays untouched until the wheel has turned.
    #[inline(always)]
    pub(crate) fn events(&self, time: u64, tile: u32) -> &[u32] {
        let list = self.index(time, tile);
        &self.events[(list * self.capacity) as usize..self.ends[list as usize] as usize]
    }

    /// Empties the list of a tile in a cycle.
    #[inline(always)]
    pub(crate) fn clear(&mut self, time: u64, tile: u32) {
        let list = self.index(time, tile);
        self.ends[list as usize] = list * self.capacity;
    }

    /// Are no events waiting at all?
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.iter().enumerate().all(|(list, &end)| end == list as u32 * self.capacity)
    }

    /// All waiting addresses, for the books of `paranoid` runs.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        let list = |list: usize| &self.events[list * self.capacity as usize..self.ends[list] as usize];
        (0..self.ends.len()).flat_map(list).copied()
    }
}

/// Posts events without going through the wheel's own fields. Valid as long as the wheel lives and nobody else uses it.
#[derive(Clone, Copy)]
pub(crate) struct Posts {
    ends: *mut u32,
    events: *mut u32,
    mask: u32,
    tiles_shift: u32,
    tile_shift: u32,
    #[cfg(debug_assertions)]
    capacity: u32,
}

impl Posts {
    /// Posts an event for `address` in cycle `time`.
    #[inline(always)]
    pub(crate) fn post(self, time: u32, address: u32) {
        let list = (time & self.mask) << self.tiles_shift | address >> self.tile_shift;
        // SAFETY: an address belongs to a tile of the wheel, and a port gets at most one event per cycle, so a list never
        // outgrows its capacity of one place per port of the tile (checked where assertions are on).
        unsafe {
            let end = self.ends.add(list as usize);
            #[cfg(debug_assertions)]
            assert!(*end < (list + 1) * self.capacity, "more events than ports in a tile");
            *self.events.add(*end as usize) = address;
            *end += 1;
        }
    }
}
