//! The records of the packets that are in the network or at the head of a queue.

use crate::record::packet::{Gaps, Packet, usual_gap};
use crate::record::prefetch::{prefetch, prefetch_across};
use crate::record::tag::Tag;
use crate::state::statistics::Origins;
use kasuri_model::engine::Counting;
use kasuri_network::memory::GrowingColumn;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut};

/// A gap of this or more cycles stands in `long_gaps`.
const LONG_GAP: u32 = 255;

/// The packets' records, by number.
#[derive(Debug)]
pub(crate) struct Packets {
    records: GrowingColumn<Packet>,
    /// Numbers that no packet has.
    free: Vec<u32>,
    /// Records of packets whose head is in another tile and whose tail is not.
    handed_over: u64,
    pub(crate) origins: Origins,
    /// By number: what feeds call the packets. Empty where they have no names for them.
    tags: GrowingColumn<Tag>,
    is_tagged: bool,
    /// Shape `[packets, longest]`: cycles between the injections of a packet's flit and the one before it, for the head since the packet got
    /// its virtual channel (longer where the memory of a host is shared); 255 means: look in `long_gaps`. Only of packets whose [`Gaps`] say
    /// so.
    gaps: GrowingColumn<u8>,
    /// What is known of the gaps of a packet none of whose flits has been injected.
    pub(crate) first_gaps: Gaps,
    long_gaps: BTreeMap<(u32, u16), u32>,
    /// Flits of the longest packet.
    longest: u32,
    /// Those that a failure has torn: what arrives of them is damaged.
    damaged: BTreeSet<u32>,
}

impl Index<u32> for Packets {
    type Output = Packet;

    #[inline(always)]
    fn index(&self, packet: u32) -> &Packet {
        &self.records[packet]
    }
}

impl IndexMut<u32> for Packets {
    #[inline(always)]
    fn index_mut(&mut self, packet: u32) -> &mut Packet {
        &mut self.records[packet]
    }
}

impl Packets {
    /// No packets yet, of at most so many flits each; those of classes before `first_class` are the background. `is_tagged`: have feeds names
    /// for them? `first_gaps` is what is known of the gaps of a packet that has none yet.
    pub(crate) fn new(longest: u32, first_class: u8, is_tagged: bool, first_gaps: Gaps) -> Self {
        let (records, free, tags, gaps) = (Vec::new().into(), Vec::new(), Vec::new().into(), Vec::new().into());
        let origins = Origins { first_class, ..Origins::default() };
        Self {
            records,
            free,
            handed_over: 0,
            origins,
            tags,
            is_tagged,
            gaps,
            first_gaps,
            long_gaps: BTreeMap::new(),
            longest,
            damaged: BTreeSet::new(),
        }
    }

    /// Gives a packet a number.
    #[inline(always)]
    pub(crate) fn store(&mut self, record: Packet, tag: Tag) -> u32 {
        let packet = self.place(record);
        if self.is_tagged {
            self.tags.resize(self.tags.len().max(packet as usize + 1), Tag::default());
            self.tags[packet] = tag;
        }
        packet
    }

    /// What feeds call a packet.
    #[inline(always)]
    pub(crate) fn tag(&self, packet: u32) -> Tag {
        self.tags.get(packet as usize).copied().unwrap_or_default()
    }

    /// Finds a number for a packet.
    #[inline(always)]
    fn place(&mut self, record: Packet) -> u32 {
        if let Some(packet) = self.free.pop() {
            self.records[packet] = record;
            return packet;
        }
        self.records.push(record);
        self.gaps.resize(self.records.len() * self.longest as usize, 0);
        self.records.len() as u32 - 1
    }

    /// Fetches where the record of a packet will stand, so many packets after the next one, if it gets the number of one that has gone.
    #[inline(always)]
    pub(crate) fn prefetch_place(&self, ahead: usize) {
        if let Some(&packet) = self.free.len().checked_sub(ahead + 1).and_then(|place| self.free.get(place)) {
            self.prefetch(packet);
            if !self.first_gaps.are_usual() {
                self.prefetch_gap(self.first_gaps, packet, 0);
            }
        }
    }

    /// Fetches what freeing the number of a packet asks for.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self, packet: u32) {
        if !self.long_gaps.is_empty() {
            prefetch(&self.records[packet].gaps);
        }
    }

    /// A packet has arrived: its number is free.
    #[inline(always)]
    pub(crate) fn release(&mut self, packet: u32) {
        self.records[packet].alive = false;
        self.free_number(packet);
    }

    /// Nothing is known any more of who had a number. Most packets' records stay untouched.
    #[inline(always)]
    fn free_number(&mut self, packet: u32) {
        self.free.push(packet);
        if !self.damaged.is_empty() {
            self.damaged.remove(&packet);
        }
        if !self.long_gaps.is_empty() && self.records[packet].gaps == Gaps::Long {
            let own: Vec<_> = self.long_gaps.range((packet, 0)..=(packet, u16::MAX)).map(|(&key, _)| key).collect();
            for key in own {
                self.long_gaps.remove(&key);
            }
        }
    }

    /// A failure has torn a packet.
    pub(crate) fn damage(&mut self, packet: u32) {
        self.damaged.insert(packet);
    }

    #[inline(always)]
    pub(crate) fn is_damaged(&self, packet: u32) -> bool {
        !self.damaged.is_empty() && self.damaged.contains(&packet)
    }

    /// Packets that have a number, to be changed.
    pub(crate) fn live_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.records.iter_mut().filter(|packet| packet.alive)
    }

    /// The head of a packet has gone to another tile, which has the packet's record from now on.
    pub(crate) fn hand_over(&mut self, packet: u32) {
        self.records[packet].alive = false;
        self.handed_over += 1;
    }

    /// The tail of a packet that was handed over has gone as well: its number is free.
    pub(crate) fn forget(&mut self, packet: u32) {
        self.handed_over -= 1;
        self.free_number(packet);
    }

    /// Packets that have a number, in the tile of their head.
    pub(crate) fn live_count(&self) -> u64 {
        (self.records.len() - self.free.len()) as u64 - self.handed_over
    }

    /// The packets that have a number, with it, in the tile of their head.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&Packet, u32)> {
        self.records.iter().zip(0..).filter(|(packet, _)| packet.alive)
    }

    /// Fetches what routers ask of the record of a packet, if there is such a packet.
    #[inline(always)]
    pub(crate) fn prefetch_for_routing(&self, packet: u32) {
        if let Some(record) = self.records.get(packet as usize) {
            prefetch(&record.source);
            prefetch(&record.alive);
        }
    }

    /// Where the gap before a packet's flit stands.
    #[inline(always)]
    fn gap_place(&self, packet: u32, index: u16) -> usize {
        packet as usize * self.longest as usize + usize::from(index)
    }

    /// Fetches the record of a packet, if there is such a packet.
    #[inline(always)]
    pub(crate) fn prefetch(&self, packet: u32) {
        if let Some(record) = self.records.get(packet as usize) {
            prefetch_across(record);
        }
    }

    /// Fetches the gap before a packet's flit, or what may tell where it stands. There need not be such a packet.
    #[inline(always)]
    pub(crate) fn prefetch_gap(&self, known: Gaps, packet: u32, index: u16) {
        match known {
            Gaps::Usual => {}
            Gaps::UsualSoFar => self.prefetch(packet),
            Gaps::InMemory | Gaps::Long => prefetch(self.gaps.as_ptr().wrapping_add(self.gap_place(packet, index))),
        }
    }

    /// Cycles between the injection of a packet's flit and the one before it; `known` is what has been known of the packet's gaps.
    #[inline(always)]
    pub(crate) fn gap(&self, known: &mut Gaps, packet: u32, index: u16) -> u32 {
        if *known == Gaps::UsualSoFar {
            *known = self.records[packet].gaps;
        }
        if known.are_usual() {
            return usual_gap(index);
        }
        let gap = u32::from(self.gaps.as_slice()[self.gap_place(packet, index)]);
        if gap < LONG_GAP { gap } else { self.long_gaps[&(packet, index)] }
    }

    /// Notes them.
    #[inline(always)]
    pub(crate) fn set_gap(&mut self, known: &mut Gaps, packet: u32, index: u16, gap: u32) {
        if known.are_usual() {
            if gap == usual_gap(index) {
                return;
            }
            self.begin_gaps(packet);
            *known = Gaps::InMemory;
        }
        let place = self.gap_place(packet, index);
        self.gaps.as_mut_slice()[place] = gap.min(LONG_GAP) as u8;
        if gap >= LONG_GAP {
            self.long_gaps.insert((packet, index), gap);
            self.records[packet].gaps = Gaps::Long;
        }
    }

    /// A packet's gaps stand in memory from now on; so far they have been the usual ones.
    pub(crate) fn begin_gaps(&mut self, packet: u32) {
        let record = &mut self.records[packet];
        record.gaps = Gaps::InMemory;
        let flits = usize::from(record.flits);
        let first = self.gap_place(packet, 0);
        self.gaps.as_mut_slice()[first..first + flits].fill(usual_gap(1) as u8);
        self.gaps.as_mut_slice()[first] = usual_gap(0) as u8;
    }

    /// All flits of a packet have been injected.
    #[inline(always)]
    pub(crate) fn end_gaps(&mut self, packet: u32) {
        let gaps = &mut self.records[packet].gaps;
        if *gaps == Gaps::UsualSoFar {
            *gaps = Gaps::Usual;
        }
    }

    /// Is a packet measured, among those of the run's subject that are whole?
    #[inline(always)]
    pub(crate) fn is_counted(&self, counting: &Counting, packet: u32) -> bool {
        self.records[packet].class >= self.origins.first_class && self.is_in_time(counting, packet) && !self.is_damaged(packet)
    }

    /// Do the predictions that are made for a packet count? Answers by their own creation.
    #[inline(always)]
    pub(crate) fn counts_predictions(&self, counting: &Counting, packet: u32) -> bool {
        let record = &self.records[packet];
        record.class >= self.origins.first_class && counting.covers(record.created)
    }

    /// Is a packet measured as far as its time decides?
    #[inline(always)]
    pub(crate) fn is_in_time(&self, counting: &Counting, packet: u32) -> bool {
        counting.covers(self.origins.decisive(&self.records[packet], packet)) || self.origins.has_waited(packet)
    }

    /// Is a packet one that draining waits for, if it was created before that?
    #[inline(always)]
    pub(crate) fn is_waited_for(&self, counting: &Counting, packet: u32) -> bool {
        self.origins.decisive(&self.records[packet], packet) >= counting.measured_from || self.origins.has_waited(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Stream, Streams};

    const FLITS: u16 = 9;

    fn record(gaps: Gaps) -> Packet {
        Packet {
            created: 0,
            injected: 0,
            source: 0,
            destination: 0,
            route_state: 0,
            serial: 0,
            flits: FLITS,
            hops: 0,
            class: 0,
            is_reply: false,
            gaps,
            alive: true,
        }
    }

    /// Flits that arrive while others are still injected, and gaps of all lengths: where usual gaps are left out of memory, sinks read the
    /// same as where all of them stand there, also of numbers that packets with other gaps have had before.
    #[test]
    fn gaps_that_are_left_out_are_read_as_if_they_stood_in_memory() {
        for first_gaps in [Gaps::UsualSoFar, Gaps::InMemory] {
            let mut packets = Packets::new(FLITS.into(), 0, false, first_gaps);
            let mut draws = Streams::new(1).get(Purpose::Creation, 0);
            let mut unusual = 0;
            for _ in 0..300 {
                let packet = packets.store(record(first_gaps), Tag::default());
                let evenness = draws.below(3);
                let gap_of = |draws: &mut Stream, index| match draws.below(8) {
                    0 if evenness > 0 => 250 + draws.below(10),
                    1 if evenness > 1 => draws.below(5),
                    _ => usual_gap(index),
                };
                let gaps: Vec<u32> = (0..FLITS).map(|index| gap_of(&mut draws, index)).collect();
                let (mut at_source, mut at_sink) = (first_gaps, None);
                let ahead = 1 + draws.below(FLITS.into()) as usize;
                for step in 0..usize::from(FLITS) + ahead {
                    if let Some(&gap) = gaps.get(step) {
                        packets.set_gap(&mut at_source, packet, step as u16, gap);
                    }
                    if step + 1 == usize::from(FLITS) {
                        packets.end_gaps(packet);
                    }
                    if let Some(index) = step.checked_sub(ahead) {
                        let known = at_sink.get_or_insert(packets[packet].gaps);
                        assert_eq!(packets.gap(known, packet, index as u16), gaps[index]);
                    }
                }
                unusual += u32::from(!packets[packet].gaps.are_usual());
                packets.release(packet);
            }
            assert!(unusual > 100 && (first_gaps == Gaps::InMemory || unusual < 300), "{unusual}");
            assert!(packets.long_gaps.is_empty());
        }
    }
}
