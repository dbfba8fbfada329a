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
use crate::prefetch::{prefetch, prefetch_across};
use crate::tile::addresses::Addresses;
use crate::tile::packets::{Gaps, usual_gap};
use crate::tile::wheel::Wheel;
use crate::tile::{InFlight, NONE, Packet, Tile};
use kasuri_network::memory::Column;
use kasuri_network::network::Endpoint;
use std::ops::Range;

/// Flits that are fetched ahead of their turn.
const PREFETCH_DISTANCE: usize = 24;

/// Heads whose records are fetched ahead of their turn.
const PREFETCH_HEADS: usize = 8;

/// The far end of a channel or virtual channel, in another tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarEnd {
    pub(crate) tile: u32,
    /// Its slot there, the first if it is a channel's.
    pub(crate) slot: u32,
    /// The slot there that stands for this end, again the first.
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

/// Where the flits of a slot go, and the packet of which flits leave by it: one record, because each flit asks for both.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    to: FarEnd,
    packet: u32,
    /// Flits that have left, and that have not.
    index: u16,
    left: u16,
    gaps: Gaps,
}

/// The packet of which flits come.
#[derive(Clone, Copy, Debug)]
struct Coming {
    packet: u32,
    gaps: Gaps,
}

/// A head that crosses, or a flit with another gap before it than the usual one. The mail is written by one processor core and read by another, so it is kept
/// small.
#[derive(Clone, Copy, Debug)]
struct CrossingFlit {
    /// The slot that it goes to, and the one that stands for where it comes from.
    slot: u32,
    border: u32,
    /// Its number within its packet; [`HEAD_WITH_ASIDES`]: a head, and the next of the mail's asides belong to its packet.
    index: u16,
    /// Cycles between its injection and that of the one before; [`LONG_GAP`]: the next of the mail's long gaps.
    gap: u16,
}

/// No flit has such a number: packets have fewer.
const HEAD_WITH_ASIDES: u16 = u16::MAX;

impl CrossingFlit {
    #[inline(always)]
    fn is_head(self) -> bool {
        self.index == 0 || self.index == HEAD_WITH_ASIDES
    }
}

/// As many cycles or more between two injections stand elsewhere.
const LONG_GAP: u32 = u16::MAX as u32;

/// What a packet's record does not say: its name, and what [`Origins`](crate::observe::statistics::Origins) knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Asides {
    tag: Tag,
    origin: (Option<u64>, bool),
}

/// A cycle of arrival (its low 32 bits), and where what arrives then ends in each list of the mail.
#[derive(Clone, Copy, Debug, Default)]
struct EndOfCycle {
    time: u32,
    flits: usize,
    followers: usize,
    credits: usize,
}

/// What one tile has for another in a window.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    cycles: Vec<EndOfCycle>,
    flits: Vec<CrossingFlit>,
    /// Slots of all other flits, which have the usual gap before them.
    followers: Vec<u32>,
    /// By heads among the flits, in their order.
    packets: Vec<Packet>,
    /// By heads that have any.
    asides: Vec<Asides>,
    long_gaps: Vec<u32>,
    /// Slots.
    credits: Vec<u32>,
}

impl Mail {
    /// All that has been put in since the last cycle arrives in this one.
    fn end_cycle(&mut self, time: u32) {
        let last = self.cycles.last().copied().unwrap_or_default();
        let end = EndOfCycle { time, flits: self.flits.len(), followers: self.followers.len(), credits: self.credits.len() };
        if (end.flits, end.followers, end.credits) != (last.flits, last.followers, last.credits) {
            self.cycles.push(end);
        }
    }

    fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }
}

/// The border of a tile.
pub(crate) struct Border {
    first_slot: u32,
    /// Blocks of the wheels.
    blocks: Range<u32>,
    /// By slot: what leaves by it, and the packet that comes.
    leaving: Column<Leaving>,
    coming: Column<Coming>,
    /// By port: the tile to which its credits go, and their first slot there.
    credits_to: Column<(u32, u32)>,
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
            leaving: Column::filled(ports << shift, Leaving { to: FarEnd::NOWHERE, packet: NONE, index: 0, left: 0, gaps: Gaps::Usual }),
            coming: Column::filled(ports << shift, Coming { packet: NONE, gaps: Gaps::Usual }),
            credits_to: Column::filled(ports, (NONE, NONE)),
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

    /// A credit leaves the tile.
    #[inline(always)]
    fn mail_credit<L: RouterLayout>(&mut self, slot: u32) {
        let (tile, first) = self.credits_to[self.port_of::<L>(slot)];
        self.leaving_mail[tile as usize].credits.push(first + (slot & (L::Mask::BITS - 1)));
    }

    /// Has no mail come?
    pub(crate) fn has_no_mail(&self) -> bool {
        self.incoming_mail.iter().all(Mail::is_empty)
    }

    /// Packets whose heads are in the mail that has come.
    pub(crate) fn packets_in_mail(&self) -> u64 {
        self.incoming_mail.iter().map(|mail| mail.packets.len() as u64).sum()
    }

    /// The flits of a port go to another tile, by this address for its far end. Returns the address.
    pub(super) fn leads_to<L: RouterLayout>(&mut self, port: u32, far: FarEnd) -> u32 {
        for vc in 0..L::Mask::BITS {
            let to = FarEnd { slot: far.slot + vc, border: far.border + vc, ..far };
            self.leaving[(port << L::Mask::SHIFT) - self.first_slot + vc].to = to;
        }
        port
    }

    /// The credits of a port go to another tile, by this address for its far end. Returns the address.
    pub(super) fn comes_from<L: RouterLayout>(&mut self, port: u32, far: FarEnd) -> u32 {
        self.credits_to[port - (self.first_slot >> L::Mask::SHIFT)] = (far.tile, far.slot);
        port
    }
}

impl<L: RouterLayout> Tile<'_, L> {
    /// The tile and the slot to which the flits of a slot's virtual channel go, given the slot that stands for it here; `tile` is this
    /// one's number.
    pub(crate) fn behind(&self, tile: u32, slot: u32) -> (u32, u32) {
        let border = &self.in_flight.border;
        if slot < border.first_slot || border.leaving.is_empty() {
            return (tile, slot);
        }
        let far = border.leaving[slot - border.first_slot].to;
        (far.tile, far.slot)
    }

    /// The tile and the slot to which credits go that are posted for a slot.
    pub(crate) fn upstream_of(&self, tile: u32, slot: u32) -> (u32, u32) {
        let border = &self.in_flight.border;
        if slot < border.first_slot || border.credits_to.is_empty() {
            return (tile, slot);
        }
        let (to, first) = border.credits_to[border.port_of::<L>(slot)];
        (to, first + (slot & (L::Mask::BITS - 1)))
    }

    /// Puts what arrives in other tiles in these cycles into the mail.
    pub(crate) fn put_mail(&mut self, cycles: Range<u64>) {
        let mut due = std::mem::take(&mut self.in_flight.border.due);
        for now in cycles {
            // One list for all blocks: the first flits of a list come without what is fetched ahead.
            for block in self.in_flight.border.blocks.clone() {
                self.in_flight.arrivals.take(now, block, &mut due);
            }
            for position in 0..due.len() {
                self.prefetch_leaving(&due[position..]);
                self.mail_flit(due[position]);
            }
            due.clear();
            let InFlight { credits, border, .. } = &mut self.in_flight;
            for block in border.blocks.clone() {
                credits.take_each(now, block, |slot| border.mail_credit::<L>(slot));
            }
            border.leaving_mail.iter_mut().for_each(|mail| mail.end_cycle(now as u32));
        }
        self.in_flight.border.due = due;
    }

    /// Fetches what mailing later ones of these flits will look at: first the slot, then of a head the queue, then of a head the packet's
    /// record, which goes with it, of others the gap before them, and of a tail what freeing the packet's number asks for.
    #[inline(always)]
    fn prefetch_leaving(&self, due: &[u32]) {
        let border = &self.in_flight.border;
        if let Some(&slot) = due.get(3 * PREFETCH_DISTANCE) {
            prefetch_across(&border.leaving[slot - border.first_slot]);
        }
        if let Some(&slot) = due.get(2 * PREFETCH_DISTANCE) {
            let leaving = border.leaving[slot - border.first_slot];
            if leaving.left == 0 {
                self.layout.prefetch_input(slot);
            }
        }
        if let Some(&slot) = due.get(PREFETCH_DISTANCE) {
            let leaving = border.leaving[slot - border.first_slot];
            match leaving.left {
                0 => self.packets.prefetch(self.layout.input_slot(slot).queue.front()),
                _ => self.packets.prefetch_gap(leaving.gaps, leaving.packet, leaving.index),
            }
            if leaving.left == 1 {
                self.packets.prefetch_end(leaving.packet);
            }
        }
    }

    /// A flit leaves the tile, with its packet's record if it is the head. The tail lets go of what the tile knows of the packet.
    fn mail_flit(&mut self, slot: u32) {
        let border = &self.in_flight.border;
        let own = slot - border.first_slot;
        let far = border.leaving[own].to;
        let head = if border.leaving[own].left == 0 { self.mail_record(slot, far.tile) } else { 0 };
        let border = &mut self.in_flight.border;
        let mail = &mut border.leaving_mail[far.tile as usize];
        let leaving = &mut border.leaving[own];
        let (packet, index) = (leaving.packet, leaving.index);
        leaving.index += 1;
        leaving.left -= 1;
        let is_tail = leaving.left == 0;
        let gap = self.packets.gap(&mut leaving.gaps, packet, index);
        if index > 0 && gap == usual_gap(index) {
            mail.followers.push(far.slot);
        } else {
            if gap >= LONG_GAP {
                mail.long_gaps.push(gap);
            }
            let index = if index == 0 { head } else { index };
            mail.flits.push(CrossingFlit { slot: far.slot, border: far.border, index, gap: gap.min(LONG_GAP) as u16 });
        }
        if is_tail {
            self.packets.forget(packet);
        }
    }

    /// The record of the packet that is first in a slot's queue goes to another tile. Returns what stands in the place of its head's index.
    fn mail_record(&mut self, slot: u32, to: u32) -> u16 {
        let packet = self.front_packet(slot);
        self.leave_queue(slot);
        let record = self.packets[packet];
        let asides = Asides { tag: self.packets.tag(packet), origin: self.packets.origins.of(&record, packet) };
        let border = &mut self.in_flight.border;
        let mail = &mut border.leaving_mail[to as usize];
        mail.packets.push(record);
        let leaving = &mut border.leaving[slot - border.first_slot];
        *leaving = Leaving { to: leaving.to, packet, index: 0, left: record.flits, gaps: record.gaps };
        self.packets.hand_over(packet);
        if asides == Asides::default() {
            return 0;
        }
        mail.asides.push(asides);
        HEAD_WITH_ASIDES
    }

    /// Takes what has come from other tiles.
    pub(crate) fn take_mail(&mut self) {
        for from in 0..self.in_flight.border.incoming_mail.len() {
            let mut mail = std::mem::take(&mut self.in_flight.border.incoming_mail[from]);
            self.open_mail(&mut mail);
            self.in_flight.border.incoming_mail[from] = mail;
        }
    }

    /// Takes what has come from one tile, and leaves the mail empty.
    fn open_mail(&mut self, mail: &mut Mail) {
        let (mut asides, mut long_gaps, mut heads) = (mail.asides.drain(..), mail.long_gaps.drain(..), 0);
        let mut first = EndOfCycle::default();
        for end in mail.cycles.drain(..) {
            for position in first.flits..end.flits {
                self.prefetch_coming(&mail.flits[position..], end.time);
                let flit = mail.flits[position];
                if flit.is_head() {
                    if let Some(later) = mail.packets.get(heads + PREFETCH_HEADS) {
                        prefetch_across(later);
                    }
                    let asides = (flit.index == HEAD_WITH_ASIDES).then(|| asides.next().expect("they come with the head"));
                    self.take_head(flit, &mail.packets[heads], &asides.unwrap_or_default());
                    heads += 1;
                }
                let own = flit.border - self.in_flight.border.first_slot;
                let gap = if u32::from(flit.gap) < LONG_GAP { flit.gap.into() } else { long_gaps.next().expect("it stands apart") };
                let index = if flit.is_head() { 0 } else { flit.index };
                let coming = &mut self.in_flight.border.coming[own];
                self.packets.set_gap(&mut coming.gaps, coming.packet, index, gap);
                self.in_flight.arrivals.post(end.time, flit.slot);
            }
            post_all(&mut self.in_flight.arrivals, end.time, &mail.followers[first.followers..end.followers]);
            post_all(&mut self.in_flight.credits, end.time, &mail.credits[first.credits..end.credits]);
            first = end;
        }
        mail.flits.clear();
        mail.packets.clear();
        mail.followers.clear();
        mail.credits.clear();
    }

    /// A head comes: its packet gets a number here.
    #[inline(always)]
    fn take_head(&mut self, flit: CrossingFlit, record: &Packet, asides: &Asides) {
        self.packets.prefetch_place(PREFETCH_HEADS);
        let packet = self.packets.store(*record, asides.tag);
        self.packets.origins.note(packet, asides.origin);
        self.join_queue(flit.slot, packet);
        let border = &mut self.in_flight.border;
        border.coming[flit.border - border.first_slot] = Coming { packet, gaps: record.gaps };
        if !record.gaps.are_usual() {
            self.packets.begin_gaps(packet);
        }
    }

    /// Fetches what taking later ones of these flits will look at: first the slots, then the packet.
    #[inline(always)]
    fn prefetch_coming(&mut self, flits: &[CrossingFlit], time: u32) {
        if let Some(flit) = flits.get(PREFETCH_DISTANCE) {
            // Of the last flits of a cycle the wrong place is fetched: those after them arrive in the next one.
            self.in_flight.arrivals.prefetch_post(time, flit.slot);
        }
        let border = &self.in_flight.border;
        if let Some(flit) = flits.get(4 * PREFETCH_DISTANCE) {
            prefetch(flit);
        }
        if let Some(flit) = flits.get(2 * PREFETCH_DISTANCE) {
            prefetch(&border.coming[flit.border - border.first_slot]);
            if flit.is_head() {
                self.layout.prefetch_input(flit.slot);
            }
        }
        if let Some(flit) = flits.get(PREFETCH_DISTANCE)
            && !flit.is_head()
        {
            // Of a packet whose head is in the same mail, the wrong place is fetched: the one before is still noted as coming.
            let coming = border.coming[flit.border - border.first_slot];
            self.packets.prefetch_gap(coming.gaps, coming.packet, flit.index);
        }
    }
}

/// Posts an event for each of these slots.
#[inline(always)]
fn post_all(wheel: &mut impl Wheel, time: u32, slots: &[u32]) {
    for (position, &slot) in slots.iter().enumerate() {
        if let Some(&later) = slots.get(position + PREFETCH_DISTANCE) {
            wheel.prefetch_post(time, later);
        }
        wheel.post(time, slot);
    }
}
