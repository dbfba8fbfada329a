//! Which packets stand in the buffers, in their order: a small ring for each slot.
//!
//! A packet enters the ring when it is announced, with its virtual channel upstream, and leaves it with its tail.

use crate::prefetch::prefetch;
use kasuri_model::memory::{Column, prefer_large_pages};

/// log2 of the packets that stand in one cache line.
const LINE_SHIFT: u32 = 4;

/// The rings of all slots. Positions are counted on without end by whoever reads or writes.
pub(crate) struct Rings {
    packets: Column<u32>,
    /// Places of a ring less one; a power of two.
    mask: u32,
    /// log2 of the distance between the same places of neighbouring slots, and between the places of a slot.
    slot_shift: u32,
    place_shift: u32,
}

impl Rings {
    /// Rings of at least so many places; `None` if they are more than 32-bit numbers name.
    pub(crate) fn new(slots: usize, places: u32) -> Option<Self> {
        let shift = places.next_power_of_two().trailing_zeros();
        // The places of a deep ring are seldom used but the first ones: those of all slots lie side by side.
        let rows_shift = slots.next_power_of_two().trailing_zeros();
        let (slot_shift, place_shift, rows) = if shift > LINE_SHIFT { (0, rows_shift, 1 << rows_shift) } else { (shift, 0, slots) };
        let length = rows.checked_shl(shift).filter(|&length| length as u64 <= 1 << 32)?;
        // Memory that the operating system zeroes becomes resident where it is used.
        let mut packets = vec![0; length];
        prefer_large_pages(&mut packets);
        Some(Self { packets: packets.into(), mask: (1 << shift) - 1, slot_shift, place_shift })
    }

    /// Does a ring begin anew whenever it is empty, so that little of it is ever touched?
    #[inline(always)]
    pub(crate) fn begin_anew(&self) -> bool {
        self.place_shift > 0
    }

    #[inline(always)]
    fn place(&self, slot: u32, position: u16) -> u32 {
        slot << self.slot_shift | (u32::from(position) & self.mask) << self.place_shift
    }

    #[inline(always)]
    pub(crate) fn get(&self, slot: u32, position: u16) -> u32 {
        self.packets[self.place(slot, position)]
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, slot: u32, position: u16, packet: u32) {
        let place = self.place(slot, position);
        self.packets[place] = packet;
    }

    /// Asks for the memory of a place.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: u32, position: u16) {
        prefetch(&self.packets[self.place(slot, position)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shallow and deep rings: each place of each slot is one of its own, also after a turn.
    #[test]
    fn places_are_apart() {
        for places in [1, 2, 16, 17, 300] {
            let mut rings = Rings::new(5, places).unwrap();
            let all = || (0..5).flat_map(|slot| (0..places as u16).map(move |position| (slot, position)));
            all().zip(0..).for_each(|((slot, position), packet)| rings.set(slot, position, packet));
            assert!(all().zip(0..).all(|((slot, position), packet)| rings.get(slot, position) == packet), "{places} places");
            let turn = places.next_power_of_two() as u16;
            assert_eq!(rings.get(3, 0), rings.get(3, turn), "{places} places");
            assert_eq!(rings.begin_anew(), places > 16);
        }
        assert!(Rings::new(1 << 20, 1 << 13).is_none(), "2^33 places");
    }
}
