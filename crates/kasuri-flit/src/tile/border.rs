//! What crosses the border of a tile: flits, credits, and the records of packets with their heads.
//!
//! The far end of a channel that leaves the tile has an address of its own behind the terminals'. Flits and credits are posted there as to
//! any other port, so that no loop over a tile's state knows of borders. At the end of each window what is due in the next one at these
//! addresses is put into mail for the tiles that own the far ends ([`Tile::put_mail`]). Between windows the mail is handed over, and each tile
//! takes what has come for it before it goes on ([`Tile::take_mail`]). Nothing arrives earlier than a window after it was posted, so
//! nothing comes late.

use super::share::Partition;
use crate::edge::Tag;
use crate::fabric::layout::RouterLayout;
use crate::fabric::vc_mask::VcMask;
use crate::prefetch::prefetch;
use crate::tile::addresses::Addresses;
use crate::tile::wheel::Wheel;
use crate::tile::{NONE, Packet, Tile};
use kasuri_network::memory::Column;
use kasuri_network::network::Endpoint;
use std::ops::Range;

/// Flits that are fetched ahead of their turn.
const PREFETCH_DISTANCE: usize = 16;

/// The far end of a channel, in another tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarEnd {
    pub(crate) tile: u32,
    /// Its first slot there.
    pub(crate) slot: u32,
    /// The first slot of the address there that stands for this end.
    border: u32,
}

impl FarEnd {
    /// No channel.
    const NOWHERE: Self = Self { tile: NONE, slot: NONE, border: NONE };

    /// The far end of a channel, for a tile that has the other.
    pub(super) fn of<L: RouterLayout>(end: Endpoint, partition: &Partition, tiles: &[Addresses]) -> Self {
        let tile = partition.tile_of(end);
        let port = tiles[tile].port_of(end);
        Self { tile: tile as u32, slot: port << L::Mask::SHIFT, border: tiles[tile].far_end(port) << L::Mask::SHIFT }
    }
}

/// The packet of which flits leave by a slot.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    packet: u32,
    /// Flits that have left, and that have not.
    index: u16,
    left: u16,
}

/// A flit that crosses.
#[derive(Clone, Copy, Debug)]
struct CrossingFlit {
    /// The cycle in which it arrives, by its low 32 bits.
    time: u32,
    /// The slot that it goes to, and the one that stands for where it comes from.
    slot: u32,
    border: u32,
    /// Its number within its packet, and the cycles between its injection and that of the one before.
    index: u16,
    gap: u32,
}

/// The record of a packet whose head crosses.
#[derive(Clone, Copy, Debug)]
struct CrossingPacket {
    record: Packet,
    tag: Tag,
    /// What [`Origins`](crate::observe::statistics::Origins) knows of it.
    origin: (Option<u64>, bool),
}

/// What one tile has for another in a window.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    flits: Vec<CrossingFlit>,
    /// By heads among the flits, in their order.
    packets: Vec<CrossingPacket>,
    /// Cycle of arrival and slot.
    credits: Vec<(u32, u32)>,
}

/// The border of a tile.
pub(crate) struct Border {
    first_slot: u32,
    /// Blocks of the wheels.
    blocks: Range<u32>,
    /// By port: where its flits go, and where its credits go.
    flits_to: Column<FarEnd>,
    credits_to: Column<FarEnd>,
    /// By slot: the packet that leaves, and the packet that comes.
    leaving: Column<Leaving>,
    coming: Column<u32>,
    /// Mail by the tile that it is for, and by the tile from which it has come.
    pub(crate) leaving_mail: Vec<Mail>,
    pub(crate) incoming_mail: Vec<Mail>,
    /// What is due in a cycle; memory to use.
    due: Vec<u32>,
}

impl Border {
    /// The border of one of `tiles` tiles, before anything is connected.
    pub(super) fn new<L: RouterLayout>(addresses: &Addresses, tiles: usize) -> Self {
        let (shift, ports) = (L::Mask::SHIFT, addresses.border.len());
        let first_slot = addresses.first_border_port << shift;
        let end = ((u64::from(addresses.ports) << shift).div_ceil(1 << addresses.block_shift)) as u32;
        let blocks = if ports == 0 { 0..0 } else { first_slot >> addresses.block_shift..end };
        Self {
            first_slot,
            blocks,
            flits_to: Column::filled(ports, FarEnd::NOWHERE),
            credits_to: Column::filled(ports, FarEnd::NOWHERE),
            leaving: Column::filled(ports << shift, Leaving { packet: NONE, index: 0, left: 0 }),
            coming: Column::filled(ports << shift, NONE),
            leaving_mail: (0..tiles).map(|_| Mail::default()).collect(),
            incoming_mail: (0..tiles).map(|_| Mail::default()).collect(),
            due: Vec::new(),
        }
    }

    /// The place of a slot's port among those of the border.
    #[inline(always)]
    fn port_of<L: RouterLayout>(&self, slot: u32) -> u32 {
        (slot - self.first_slot) >> L::Mask::SHIFT
    }

    /// Has no mail come?
    pub(crate) fn has_no_mail(&self) -> bool {
        self.incoming_mail.iter().all(|mail| mail.flits.is_empty() && mail.credits.is_empty())
    }

    /// Packets whose heads are in the mail that has come.
    pub(crate) fn packets_in_mail(&self) -> u64 {
        self.incoming_mail.iter().map(|mail| mail.packets.len() as u64).sum()
    }

    /// The flits of a port go to another tile, by this address for its far end. Returns the address.
    pub(super) fn leads_to<L: RouterLayout>(&mut self, port: u32, far: FarEnd) -> u32 {
        self.flits_to[port - (self.first_slot >> L::Mask::SHIFT)] = far;
        port
    }

    /// The credits of a port go to another tile, by this address for its far end. Returns the address.
    pub(super) fn comes_from<L: RouterLayout>(&mut self, port: u32, far: FarEnd) -> u32 {
        self.credits_to[port - (self.first_slot >> L::Mask::SHIFT)] = far;
        port
    }
}

impl<L: RouterLayout> Tile<'_, L> {
    /// The tile and the slot to which the flits of a slot's virtual channel go, given the slot that stands for it here; `tile` is this
    /// one's number.
    pub(crate) fn behind(&self, tile: u32, slot: u32) -> (u32, u32) {
        let border = &self.in_flight.border;
        if slot < border.first_slot || border.flits_to.is_empty() {
            return (tile, slot);
        }
        let far = border.flits_to[border.port_of::<L>(slot)];
        (far.tile, far.slot + (slot & (L::Mask::BITS - 1)))
    }

    /// The tile and the slot to which credits go that are posted for a slot.
    pub(crate) fn upstream_of(&self, tile: u32, slot: u32) -> (u32, u32) {
        let border = &self.in_flight.border;
        if slot < border.first_slot || border.credits_to.is_empty() {
            return (tile, slot);
        }
        let far = border.credits_to[border.port_of::<L>(slot)];
        (far.tile, far.slot + (slot & (L::Mask::BITS - 1)))
    }

    /// Puts what arrives in other tiles in these cycles into the mail.
    pub(crate) fn put_mail(&mut self, cycles: Range<u64>) {
        let mut due = std::mem::take(&mut self.in_flight.border.due);
        for now in cycles {
            for block in self.in_flight.border.blocks.clone() {
                self.in_flight.arrivals.take(now, block, &mut due);
                for position in 0..due.len() {
                    self.prefetch_leaving(&due[position..]);
                    self.mail_flit(due[position], now as u32);
                }
                due.clear();
                self.in_flight.credits.take(now, block, &mut due);
                for position in 0..due.len() {
                    if let Some(&slot) = due.get(position + PREFETCH_DISTANCE) {
                        prefetch(&self.in_flight.border.credits_to[self.in_flight.border.port_of::<L>(slot)]);
                    }
                    self.mail_credit(due[position], now as u32);
                }
                due.clear();
            }
        }
        self.in_flight.border.due = due;
    }

    /// Fetches what mailing later ones of these flits will look at: first the slot, then the packet.
    #[inline(always)]
    fn prefetch_leaving(&self, due: &[u32]) {
        let border = &self.in_flight.border;
        if let Some(&slot) = due.get(2 * PREFETCH_DISTANCE) {
            prefetch(&border.leaving[slot - border.first_slot]);
            prefetch(&border.flits_to[border.port_of::<L>(slot)]);
            prefetch(self.layout.input_slot(slot));
        }
        if let Some(&slot) = due.get(PREFETCH_DISTANCE) {
            let leaving = border.leaving[slot - border.first_slot];
            let (packet, index) = match leaving.left {
                0 => (self.layout.input_slot(slot).queue.front(), 0),
                _ => (leaving.packet, leaving.index),
            };
            self.packets.prefetch_gap(packet, index);
            // The record goes with the head, and its number becomes free with the tail.
            if leaving.left <= 1 {
                self.packets.prefetch(packet);
            }
        }
    }

    /// A flit leaves the tile, with its packet's record if it is the head. The tail lets go of what the tile knows of the packet.
    fn mail_flit(&mut self, slot: u32, time: u32) {
        let border = &mut self.in_flight.border;
        let own = slot - border.first_slot;
        let far = border.flits_to[border.port_of::<L>(slot)];
        let mail = &mut border.leaving_mail[far.tile as usize];
        if border.leaving[own].left == 0 {
            let queue = &mut self.layout.input_slot_mut(slot).queue;
            let packet = queue.front();
            self.buffers.rings.pop(queue, slot);
            let record = self.packets[packet as usize];
            let origin = self.packets.origins.of(&record, packet);
            mail.packets.push(CrossingPacket { record, tag: self.packets.tag(packet), origin });
            border.leaving[own] = Leaving { packet, index: 0, left: record.flits };
            self.packets.hand_over(packet);
        }
        let leaving = &mut border.leaving[own];
        let (packet, index, vc) = (leaving.packet, leaving.index, slot & (L::Mask::BITS - 1));
        leaving.index += 1;
        leaving.left -= 1;
        let is_tail = leaving.left == 0;
        mail.flits.push(CrossingFlit { time, slot: far.slot + vc, border: far.border + vc, index, gap: self.packets.gap(packet, index) });
        if is_tail {
            self.packets.forget(packet);
        }
    }

    /// A credit leaves the tile.
    fn mail_credit(&mut self, slot: u32, time: u32) {
        let border = &mut self.in_flight.border;
        let far = border.credits_to[border.port_of::<L>(slot)];
        border.leaving_mail[far.tile as usize].credits.push((time, far.slot + (slot & (L::Mask::BITS - 1))));
    }

    /// Takes what has come from other tiles.
    pub(crate) fn take_mail(&mut self) {
        for from in 0..self.in_flight.border.incoming_mail.len() {
            let mut mail = std::mem::take(&mut self.in_flight.border.incoming_mail[from]);
            self.open_mail(&mut mail);
            self.in_flight.border.incoming_mail[from] = mail;
        }
    }

    fn open_mail(&mut self, mail: &mut Mail) {
        let mut packets = mail.packets.drain(..);
        for position in 0..mail.flits.len() {
            self.prefetch_coming(&mail.flits[position..]);
            let flit = mail.flits[position];
            let own = flit.border - self.in_flight.border.first_slot;
            if flit.index == 0 {
                let CrossingPacket { record, tag, origin } = packets.next().expect("a record comes with each head");
                let packet = self.packets.store(record, tag);
                self.packets.origins.note(packet, origin);
                self.buffers.rings.push(&mut self.layout.input_slot_mut(flit.slot).queue, flit.slot, packet);
                self.in_flight.border.coming[own] = packet;
            }
            self.packets.set_gap(self.in_flight.border.coming[own], flit.index, flit.gap);
            self.in_flight.arrivals.post(flit.time, flit.slot);
        }
        mail.flits.clear();
        for (time, slot) in mail.credits.drain(..) {
            self.in_flight.credits.post(time, slot);
        }
    }

    /// Fetches what taking later ones of these flits will look at: first the slots, then the packet.
    #[inline(always)]
    fn prefetch_coming(&self, flits: &[CrossingFlit]) {
        let border = &self.in_flight.border;
        if let Some(flit) = flits.get(4 * PREFETCH_DISTANCE) {
            prefetch(flit);
        }
        if let Some(flit) = flits.get(2 * PREFETCH_DISTANCE) {
            prefetch(&border.coming[flit.border - border.first_slot]);
            if flit.index == 0 {
                prefetch(self.layout.input_slot(flit.slot));
            }
        }
        if let Some(flit) = flits.get(PREFETCH_DISTANCE)
            && flit.index > 0
        {
            // Of a packet whose head is in the same mail, the wrong place is fetched: the one before is still noted as coming.
            self.packets.prefetch_gap(border.coming[flit.border - border.first_slot], flit.index);
        }
    }
}
