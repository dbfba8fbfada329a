//! What crosses the borders of tiles: each puts into the mail what arrives elsewhere, and takes what has come for it.
//!
//! At the end of each window what is due in the next one at the far ends of channels is put into mail for the tiles that own them
//! ([`Tile::put_mail`]). Between windows the mail is handed over, and each tile takes what has come for it before it goes on
//! ([`Tile::take_mail`]). Nothing arrives earlier than a window after it was posted, so nothing comes late.

use crate::record::packet::{Packet, usual_gap};
use crate::record::prefetch::{prefetch, prefetch_across};
use crate::record::wheel::{IN_WORD, WORD_SHIFT, Wheel, addresses_of};
use crate::state::border::slot_of;
use crate::state::border::{Asides, Coming, CrossingFlit, EndOfCycle, HEAD_WITH_ASIDES, LONG_GAP, Leaving, Mail, Place, Word};
use crate::state::in_flight::InFlight;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_network::memory::Column;
use std::ops::Range;
use std::sync::Arc;

/// Flits that are fetched ahead of their turn.
const PREFETCH_DISTANCE: usize = 24;

/// Heads whose records are fetched ahead of their turn.
const PREFETCH_HEADS: usize = 8;

/// Words that are fetched ahead of their turn.
const PREFETCH_WORDS: usize = 3;

impl<L: RouterState> Tile<'_, L> {
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
fn post_words<L: RouterState>(wheel: &mut L::Wheel, time: u32, ports: &Column<u32>, words: &[Word]) {
    for (position, word) in words.iter().enumerate() {
        if let Some(later) = words.get(position + PREFETCH_WORDS) {
            wheel.prefetch_post(time, slot_of::<L>(ports, later.number << WORD_SHIFT));
        }
        addresses_of(word.number, word.bits).for_each(|number| wheel.post(time, slot_of::<L>(ports, number)));
    }
}
