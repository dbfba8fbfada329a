//! What crosses the border of a tile: flits, credits, and the records of packets with their heads.
//!
//! The far end of a channel that leaves the tile has an address of its own behind the terminals'. Flits and credits are posted there as to
//! any other port, so that no loop over a tile's state knows of borders. At the end of each window what is due in the next one at these
//! addresses is put into mail for the tiles that own the far ends ([`Tile::put_mail`]). Between windows the mail is handed over, and each tile
//! takes what has come for it before it goes on ([`Tile::take_mail`]). Nothing arrives earlier than a window after it was posted, so
//! nothing comes late.
//!
//! Both tiles number the channels between them in the same order ([`Crossings`]), that of the ports of the tile that takes the mail. So credits
//! and most flits cross as words of 64 bits out of one tile's wheel, and what is posted in the other's lies side by side.

use crate::record::prefetch::{prefetch, prefetch_across};
use crate::record::vc_mask::VcMask;
use crate::record::wheel::{IN_WORD, WORD_SHIFT, Wheel, addresses_of};
use crate::state::addresses::Addresses;
use crate::state::crossings::Crossings;
use crate::state::feed::Tag;
use crate::state::layout::RouterLayout;
use crate::state::packets::{Gaps, usual_gap};
use crate::state::tile::{InFlight, Links, NONE, Packet, Tile};
use kasuri_network::memory::Column;
use std::ops::Range;
use std::sync::Arc;

/// Flits that are fetched ahead of their turn.
const PREFETCH_DISTANCE: usize = 24;

/// Heads whose records are fetched ahead of their turn.
const PREFETCH_HEADS: usize = 8;

/// Words that are fetched ahead of their turn.
const PREFETCH_WORDS: usize = 3;

/// The packet of which flits leave by a slot.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    packet: u32,
    /// Flits that have left, and that have not.
    index: u16,
    left: u16,
}

/// For whom a word of slots stands, and its number among those that stand for the same tile.
#[derive(Clone, Copy, Debug)]
struct Place {
    tile: u32,
    word: u32,
}

/// The packet of which flits come.
#[derive(Clone, Copy, Debug)]
struct Coming {
    packet: u32,
    gaps: Gaps,
}

/// A head that crosses, or a flit with another gap before it than the usual one. The mail is written by one processor core and read by
/// another, so it is kept small.
#[derive(Clone, Copy, Debug)]
struct CrossingFlit {
    /// The number of its slot among those of the channels between the two tiles.
    number: u32,
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

/// What a packet's record does not say: its name, and what [`Origins`](crate::state::statistics::Origins) knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Asides {
    tag: Tag,
    origin: (Option<u64>, bool),
}

/// A word of the wheel: which one of those of the channels between the two tiles, and a bit for each event.
#[derive(Clone, Copy, Debug)]
struct Word {
    number: u32,
    bits: u64,
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
    /// All other flits, which have the usual gap before them.
    followers: Vec<Word>,
    /// By heads among the flits, in their order.
    packets: Vec<Packet>,
    /// By heads that have any.
    asides: Vec<Asides>,
    long_gaps: Vec<u32>,
    credits: Vec<Word>,
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
    /// By slot: the packet that leaves by it, and what is known of its gaps.
    leaving: Column<Leaving>,
    leaving_gaps: Column<Gaps>,
    /// By word of slots: where its flits go, and its credits.
    flits_to: Column<Place>,
    credits_to: Column<Place>,
    /// By tile from which channels come, the first of its slots in `coming`: by slot, the packet that comes.
    first_coming: Vec<u32>,
    coming: Column<Coming>,
    /// The channels to each tile, and from it.
    channels_to: Vec<Arc<Crossings>>,
    channels_from: Vec<Arc<Crossings>>,
    /// Mail by the tile that it is for, and by the tile from which it has come.
    pub(crate) leaving_mail: Vec<Mail>,
    pub(crate) incoming_mail: Vec<Mail>,
    /// What is due in a cycle, as words and slot by slot; memory to use.
    due_words: Vec<Word>,
    due: Vec<u32>,
}

impl Border {
    /// The border of one of `tiles` tiles, the one of this number.
    pub(crate) fn new<L: RouterLayout>(addresses: &Addresses, crossings: &[Arc<Crossings>], number: u32, tiles: usize) -> Self {
        let (shift, first_port) = (L::Mask::SHIFT, addresses.first_border_port);
        let slots = ((addresses.ports - first_port) as usize) << shift;
        let first_slot = first_port << shift;
        let end = ((u64::from(addresses.ports) << shift).div_ceil(1 << addresses.block_shift)) as u32;
        let blocks = if slots == 0 { 0..0 } else { first_slot >> addresses.block_shift..end };
        let none = Arc::new(Crossings::none());
        let (mut channels_to, mut channels_from) = (vec![Arc::clone(&none); tiles], vec![none; tiles]);
        for channels in crossings {
            if channels.from == number {
                channels_to[channels.to as usize] = Arc::clone(channels);
            } else if channels.to == number {
                channels_from[channels.from as usize] = Arc::clone(channels);
            }
        }
        let slots_of = |channels: &Arc<Crossings>| channels.ports_of_section::<L>() << shift;
        let (mut coming, mut first_coming) = (0, Vec::with_capacity(tiles));
        for channels in &channels_from {
            first_coming.push(coming);
            coming += slots_of(channels);
        }
        Self {
            first_slot,
            blocks,
            leaving: Column::filled(slots, Leaving { packet: NONE, index: 0, left: 0 }),
            leaving_gaps: Column::filled(slots, Gaps::Usual),
            flits_to: places(channels_to.iter().map(slots_of)),
            credits_to: places(channels_from.iter().map(slots_of)),
            first_coming,
            coming: Column::filled(coming as usize, Coming { packet: NONE, gaps: Gaps::Usual }),
            channels_to,
            channels_from,
            leaving_mail: (0..tiles).map(|_| Mail::default()).collect(),
            incoming_mail: (0..tiles).map(|_| Mail::default()).collect(),
            due_words: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Bytes of the columns of the border of the tile with this number.
    pub(crate) fn bytes<L: RouterLayout>(addresses: &Addresses, crossings: &[Arc<Crossings>], number: u32) -> usize {
        let slots = ((addresses.ports - addresses.first_border_port) as usize) << L::Mask::SHIFT;
        let coming = crossings.iter().filter(|channels| channels.to == number).map(|channels| channels.ports_of_section::<L>());
        slots * (size_of::<Leaving>() + size_of::<Gaps>())
            + (slots >> WORD_SHIFT) * size_of::<Place>()
            + ((coming.sum::<u32>() as usize) << L::Mask::SHIFT) * size_of::<Coming>()
    }

    /// Leads the flits and the credits of the tile's own ports that cross the border to the addresses of their far ends.
    pub(crate) fn connect<L: RouterLayout>(&self, links: &mut Column<Links>) {
        self.each_far_end::<L>(&self.channels_to, |channels| &channels.of_flits.source, |port, slot| links[port].flit_link = slot);
        self.each_far_end::<L>(
            &self.channels_from,
            |channels| &channels.of_credits.destination,
            |port, slot| {
                links[port].credit_link = slot;
            },
        );
    }

    /// Does something with each of the tile's own ports of these channels, and the first slot that stands for the far end.
    fn each_far_end<L: RouterLayout>(
        &self,
        channels: &[Arc<Crossings>],
        own_ports: impl Fn(&Crossings) -> &Column<u32>,
        mut each: impl FnMut(u32, u32),
    ) {
        let mut first = self.first_slot;
        for channels in channels {
            for (position, &port) in (0..).zip(own_ports(channels).iter()) {
                each(port, first + (position << L::Mask::SHIFT));
            }
            first += channels.ports_of_section::<L>() << L::Mask::SHIFT;
        }
    }

    /// Do any channels cross the border? None do where the tile is the whole network.
    #[inline(always)]
    fn is_crossed(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Has no mail come?
    pub(crate) fn has_no_mail(&self) -> bool {
        self.incoming_mail.iter().all(Mail::is_empty)
    }

    /// Packets whose heads are in the mail that has come.
    pub(crate) fn packets_in_mail(&self) -> u64 {
        self.incoming_mail.iter().map(|mail| mail.packets.len() as u64).sum()
    }
}

/// By word: where it goes, given the slots that stand for each tile in turn.
fn places(slots: impl Iterator<Item = u32>) -> Column<Place> {
    let words = |slots: u32| slots >> WORD_SHIFT;
    (0..).zip(slots).flat_map(|(tile, slots)| (0..words(slots)).map(move |word| Place { tile, word })).collect()
}

/// The slot of this number among those of some ports.
#[inline(always)]
fn slot_of<L: RouterLayout>(ports: &Column<u32>, number: u32) -> u32 {
    ports[number >> L::Mask::SHIFT] << L::Mask::SHIFT | number & (L::Mask::BITS - 1)
}

impl<L: RouterLayout> Tile<'_, L> {
    /// The tile and the slot to which the flits of a slot's virtual channel go, given the slot that stands for it here; `tile` is this
    /// one's number.
    pub(crate) fn behind(&self, tile: u32, slot: u32) -> (u32, u32) {
        let border = &self.in_flight.border;
        self.far_slot(tile, slot, &border.flits_to, |to| &border.channels_to[to].of_flits.destination)
    }

    /// The tile and the slot to which credits go that are posted for a slot.
    pub(crate) fn upstream_of(&self, tile: u32, slot: u32) -> (u32, u32) {
        let border = &self.in_flight.border;
        self.far_slot(tile, slot, &border.credits_to, |to| &border.channels_from[to].of_credits.source)
    }

    /// The slot itself, or the one that it stands for in another tile; `ports` are those of that tile.
    fn far_slot<'b>(&self, tile: u32, slot: u32, to: &Column<Place>, ports: impl Fn(usize) -> &'b Column<u32>) -> (u32, u32) {
        let border = &self.in_flight.border;
        if slot < border.first_slot || to.is_empty() {
            return (tile, slot);
        }
        let place = to[(slot - border.first_slot) >> WORD_SHIFT];
        let number = place.word << WORD_SHIFT | slot & IN_WORD;
        (place.tile, slot_of::<L>(ports(place.tile as usize), number))
    }

    /// Puts what arrives in other tiles in these cycles into the mail.
    #[inline(always)]
    pub(crate) fn put_mail(&mut self, cycles: Range<u64>) {
        if self.in_flight.border.is_crossed() {
            cycles.for_each(|now| self.put_mail_of_cycle(now));
        }
    }

    /// Puts what arrives in other tiles in a cycle into the mail.
    fn put_mail_of_cycle(&mut self, now: u64) {
        self.put_flits(now);
        let InFlight { credits, border, .. } = &mut self.in_flight;
        let first = border.first_slot >> WORD_SHIFT;
        for block in border.blocks.clone() {
            credits.take_words(now, block, |word, bits| {
                let to = border.credits_to[word - first];
                border.leaving_mail[to.tile as usize].credits.push(Word { number: to.word, bits });
            });
        }
        border.leaving_mail.iter_mut().for_each(|mail| mail.end_cycle(now as u32));
    }

    /// Puts the flits that arrive in other tiles in a cycle into the mail.
    fn put_flits(&mut self, now: u64) {
        let InFlight { arrivals, border, .. } = &mut self.in_flight;
        let (mut words, mut due) = (std::mem::take(&mut border.due_words), std::mem::take(&mut border.due));
        // One list for all blocks: the first flits of a list come without what is fetched ahead.
        for block in border.blocks.clone() {
            arrivals.take_words(now, block, |number, bits| {
                words.push(Word { number, bits });
                due.extend(addresses_of(number, bits));
            });
        }
        let first = border.first_slot >> WORD_SHIFT;
        let mut position = 0;
        for word in words.drain(..) {
            let to = self.in_flight.border.flits_to[word.number - first];
            let mut followers = 0;
            for slot in addresses_of(word.number, word.bits) {
                self.prefetch_leaving(&due[position..]);
                followers |= u64::from(self.mail_flit(slot, to)) << (slot & IN_WORD);
                position += 1;
            }
            if followers != 0 {
                self.in_flight.border.leaving_mail[to.tile as usize].followers.push(Word { number: to.word, bits: followers });
            }
        }
        due.clear();
        let border = &mut self.in_flight.border;
        (border.due_words, border.due) = (words, due);
    }

    /// Fetches what mailing later ones of these flits will look at: first the slot, then of a head the queue, then of a head the packet's
    /// record, which goes with it, of others the gap before them, and of a tail what freeing the packet's number asks for.
    #[inline(always)]
    fn prefetch_leaving(&self, due: &[u32]) {
        let border = &self.in_flight.border;
        if let Some(&slot) = due.get(3 * PREFETCH_DISTANCE) {
            prefetch(&border.leaving[slot - border.first_slot]);
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
                _ => self.packets.prefetch_gap(border.leaving_gaps[slot - border.first_slot], leaving.packet, leaving.index),
            }
            if leaving.left == 1 {
                self.packets.prefetch_end(leaving.packet);
            }
        }
    }

    /// A flit leaves the tile by a slot, with its packet's record if it is the head. The tail lets go of what the tile knows of the packet.
    /// Returns whether it goes as a bit of a word: it is no head, and has the usual gap before it.
    #[inline(always)]
    fn mail_flit(&mut self, slot: u32, to: Place) -> bool {
        let own = slot - self.in_flight.border.first_slot;
        let head = if self.in_flight.border.leaving[own].left == 0 { self.mail_record(slot, to.tile) } else { 0 };
        let border = &mut self.in_flight.border;
        let leaving = &mut border.leaving[own];
        let (packet, index) = (leaving.packet, leaving.index);
        leaving.index += 1;
        leaving.left -= 1;
        let is_tail = leaving.left == 0;
        let gap = self.packets.gap(&mut border.leaving_gaps[own], packet, index);
        let follows = index > 0 && gap == usual_gap(index);
        if !follows {
            let mail = &mut border.leaving_mail[to.tile as usize];
            if gap >= LONG_GAP {
                mail.long_gaps.push(gap);
            }
            let index = if index == 0 { head } else { index };
            let number = to.word << WORD_SHIFT | slot & IN_WORD;
            mail.flits.push(CrossingFlit { number, index, gap: gap.min(LONG_GAP) as u16 });
        }
        if is_tail {
            self.packets.forget(packet);
        }
        follows
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
        let own = slot - border.first_slot;
        border.leaving[own] = Leaving { packet, index: 0, left: record.flits };
        border.leaving_gaps[own] = record.gaps;
        self.packets.hand_over(packet);
        if asides == Asides::default() {
            return 0;
        }
        mail.asides.push(asides);
        HEAD_WITH_ASIDES
    }

    /// Takes what has come from other tiles.
    #[inline(always)]
    pub(crate) fn take_mail(&mut self) {
        if self.in_flight.border.is_crossed() {
            self.open_all_mail();
        }
    }

    /// Opens the mail of all tiles that have sent some.
    fn open_all_mail(&mut self) {
        for from in 0..self.in_flight.border.incoming_mail.len() {
            let border = &mut self.in_flight.border;
            if border.incoming_mail[from].is_empty() {
                continue;
            }
            let mut mail = std::mem::take(&mut border.incoming_mail[from]);
            self.open_mail(&mut mail, from);
            self.in_flight.border.incoming_mail[from] = mail;
        }
    }

    /// Takes what has come from one tile, and leaves the mail empty.
    fn open_mail(&mut self, mail: &mut Mail, from: usize) {
        let border = &self.in_flight.border;
        let (flits, credits) = (Arc::clone(&border.channels_from[from]), Arc::clone(&border.channels_to[from]));
        let (inputs, outputs) = (&flits.of_flits.destination, &credits.of_credits.source);
        let first_coming = border.first_coming[from];
        let (mut asides, mut long_gaps, mut heads) = (mail.asides.drain(..), mail.long_gaps.drain(..), 0);
        let mut first = EndOfCycle::default();
        for end in mail.cycles.drain(..) {
            for position in first.flits..end.flits {
                self.prefetch_coming(&mail.flits[position..], inputs, first_coming, end.time);
                let flit = mail.flits[position];
                let (slot, own) = (slot_of::<L>(inputs, flit.number), first_coming + flit.number);
                if flit.is_head() {
                    if let Some(later) = mail.packets.get(heads + PREFETCH_HEADS) {
                        prefetch_across(later);
                    }
                    let asides = (flit.index == HEAD_WITH_ASIDES).then(|| asides.next().expect("they come with the head"));
                    let packet = self.take_head(slot, &mail.packets[heads], &asides.unwrap_or_default());
                    self.in_flight.border.coming[own] = Coming { packet, gaps: mail.packets[heads].gaps };
                    heads += 1;
                }
                let gap = if u32::from(flit.gap) < LONG_GAP { flit.gap.into() } else { long_gaps.next().expect("it stands apart") };
                let index = if flit.is_head() { 0 } else { flit.index };
                let coming = &mut self.in_flight.border.coming[own];
                self.packets.set_gap(&mut coming.gaps, coming.packet, index, gap);
                self.in_flight.arrivals.post(end.time, slot);
            }
            post_words::<L>(&mut self.in_flight.arrivals, end.time, inputs, &mail.followers[first.followers..end.followers]);
            post_words::<L>(&mut self.in_flight.credits, end.time, outputs, &mail.credits[first.credits..end.credits]);
            first = end;
        }
        mail.flits.clear();
        mail.packets.clear();
        mail.followers.clear();
        mail.credits.clear();
    }

    /// A head comes: its packet gets a number here, which is returned.
    #[inline(always)]
    fn take_head(&mut self, slot: u32, record: &Packet, asides: &Asides) -> u32 {
        self.packets.prefetch_place(PREFETCH_HEADS);
        let packet = self.packets.store(*record, asides.tag);
        self.packets.origins.note(packet, asides.origin);
        self.join_queue(slot, packet);
        if !record.gaps.are_usual() {
            self.packets.begin_gaps(packet);
        }
        packet
    }

    /// Fetches what taking later ones of these flits will look at: first the slots, then the packet.
    #[inline(always)]
    fn prefetch_coming(&mut self, flits: &[CrossingFlit], inputs: &Column<u32>, first_coming: u32, time: u32) {
        if let Some(flit) = flits.get(PREFETCH_DISTANCE) {
            // Of the last flits of a cycle the wrong place is fetched: those after them arrive in the next one.
            self.in_flight.arrivals.prefetch_post(time, slot_of::<L>(inputs, flit.number));
        }
        let border = &self.in_flight.border;
        if let Some(flit) = flits.get(4 * PREFETCH_DISTANCE) {
            prefetch(flit);
        }
        if let Some(flit) = flits.get(2 * PREFETCH_DISTANCE) {
            prefetch(&border.coming[first_coming + flit.number]);
            if flit.is_head() {
                self.layout.prefetch_input(slot_of::<L>(inputs, flit.number));
            }
        }
        if let Some(flit) = flits.get(PREFETCH_DISTANCE)
            && !flit.is_head()
        {
            // Of a packet whose head is in the same mail, the wrong place is fetched: the one before is still noted as coming.
            let coming = border.coming[first_coming + flit.number];
            self.packets.prefetch_gap(coming.gaps, coming.packet, flit.index);
        }
    }
}

/// Posts an event for each bit of these words, which stand for slots of these ports.
#[inline(always)]
fn post_words<L: RouterLayout>(wheel: &mut L::Wheel, time: u32, ports: &Column<u32>, words: &[Word]) {
    for (position, word) in words.iter().enumerate() {
        if let Some(later) = words.get(position + PREFETCH_WORDS) {
            wheel.prefetch_post(time, slot_of::<L>(ports, later.number << WORD_SHIFT));
        }
        addresses_of(word.number, word.bits).for_each(|number| wheel.post(time, slot_of::<L>(ports, number)));
    }
}
