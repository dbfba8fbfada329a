//! The border of a tile: the far ends of its channels, and the mail for the tiles that own them.
//!
//! The far end of a channel that leaves the tile has an address behind the terminals'. Flits and credits are posted there as to any other
//! port, so that no loop over a tile's state knows of borders. What becomes of them at the end of a window: `run/mail.rs`.
//!
//! Both tiles number the channels between them in the same order ([`Crossings`]), that of the ports of the tile that takes the mail. So credits
//! and most flits cross as words of 64 bits out of one tile's wheel, and what is posted in the other's lies side by side.

use crate::record::links::Links;
use crate::record::marks::NONE;
use crate::record::packet::{Gaps, Packet};
use crate::record::tag::Tag;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::{IN_WORD, WORD_SHIFT};
use crate::state::addresses::Addresses;
use crate::state::crossings::Crossings;
use crate::state::layout::RouterState;
use kasuri_network::memory::Column;
use std::ops::Range;
use std::sync::Arc;

/// No flit has such a number: packets have fewer.
pub(crate) const HEAD_WITH_ASIDES: u16 = u16::MAX;

impl CrossingFlit {
    #[inline(always)]
    pub(crate) fn is_head(self) -> bool {
        self.index == 0 || self.index == HEAD_WITH_ASIDES
    }
}

/// As many cycles or more between two injections stand elsewhere.
pub(crate) const LONG_GAP: u32 = u16::MAX as u32;

impl Mail {
    /// All that has been put in since the last cycle arrives in this one.
    pub(crate) fn end_cycle(&mut self, time: u32) {
        let last = self.cycles.last().copied().unwrap_or_default();
        let end = EndOfCycle { time, flits: self.flits.len(), followers: self.followers.len(), credits: self.credits.len() };
        if (end.flits, end.followers, end.credits) != (last.flits, last.followers, last.credits) {
            self.cycles.push(end);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }
}

impl Border {
    /// The border of one of `tiles` tiles, the one of this number.
    pub(crate) fn new<L: RouterState>(addresses: &Addresses, crossings: &[Arc<Crossings>], number: u32, tiles: usize) -> Self {
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
    pub(crate) fn bytes<L: RouterState>(addresses: &Addresses, crossings: &[Arc<Crossings>], number: u32) -> usize {
        let slots = ((addresses.ports - addresses.first_border_port) as usize) << L::Mask::SHIFT;
        let coming = crossings.iter().filter(|channels| channels.to == number).map(|channels| channels.ports_of_section::<L>());
        slots * (size_of::<Leaving>() + size_of::<Gaps>())
            + (slots >> WORD_SHIFT) * size_of::<Place>()
            + ((coming.sum::<u32>() as usize) << L::Mask::SHIFT) * size_of::<Coming>()
    }

    /// Leads the flits and the credits of the tile's own ports that cross the border to the addresses of their far ends.
    pub(crate) fn connect<L: RouterState>(&self, links: &mut Column<Links>) {
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
    pub(crate) fn each_far_end<L: RouterState>(
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
    pub(crate) fn is_crossed(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The tile and the slot to which the flits of a slot's virtual channel go, given the slot that stands for it here; `tile` is this
    /// one's number.
    pub(crate) fn behind<L: RouterState>(&self, tile: u32, slot: u32) -> (u32, u32) {
        self.far_slot::<L>(tile, slot, &self.flits_to, |to| &self.channels_to[to].of_flits.destination)
    }

    /// The tile and the slot to which credits go that are posted for a slot.
    pub(crate) fn upstream_of<L: RouterState>(&self, tile: u32, slot: u32) -> (u32, u32) {
        self.far_slot::<L>(tile, slot, &self.credits_to, |to| &self.channels_from[to].of_credits.source)
    }

    /// The slot itself, or the one that it stands for in another tile; `ports` are those of that tile.
    fn far_slot<'b, L: RouterState>(
        &self,
        tile: u32,
        slot: u32,
        to: &Column<Place>,
        ports: impl Fn(usize) -> &'b Column<u32>,
    ) -> (u32, u32) {
        if slot < self.first_slot || to.is_empty() {
            return (tile, slot);
        }
        let place = to[(slot - self.first_slot) >> WORD_SHIFT];
        let number = place.word << WORD_SHIFT | slot & IN_WORD;
        (place.tile, slot_of::<L>(ports(place.tile as usize), number))
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
pub(crate) fn places(slots: impl Iterator<Item = u32>) -> Column<Place> {
    let words = |slots: u32| slots >> WORD_SHIFT;
    (0..).zip(slots).flat_map(|(tile, slots)| (0..words(slots)).map(move |word| Place { tile, word })).collect()
}

/// The slot of this number among those of some ports.
#[inline(always)]
pub(crate) fn slot_of<L: RouterState>(ports: &Column<u32>, number: u32) -> u32 {
    ports[number >> L::Mask::SHIFT] << L::Mask::SHIFT | number & (L::Mask::BITS - 1)
}

/// The packet of which flits leave by a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) packet: u32,
    /// Flits that have left, and that have not.
    pub(crate) index: u16,
    pub(crate) left: u16,
}

/// For whom a word of slots stands, and its number among those that stand for the same tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) tile: u32,
    pub(crate) word: u32,
}

/// The packet of which flits come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) packet: u32,
    pub(crate) gaps: Gaps,
}

/// A head that crosses, or a flit with another gap before it than the usual one. The mail is written by one processor core and read by
/// another, so it is kept small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossingFlit {
    /// The number of its slot among those of the channels between the two tiles.
    pub(crate) number: u32,
    /// Its number within its packet; [`HEAD_WITH_ASIDES`]: a head, and the next of the mail's asides belong to its packet.
    pub(crate) index: u16,
    /// Cycles between its injection and that of the one before; [`LONG_GAP`]: the next of the mail's long gaps.
    pub(crate) gap: u16,
}

/// What a packet's record does not say: its name, and what [`Origins`](crate::state::statistics::Origins) knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Asides {
    pub(crate) tag: Tag,
    pub(crate) origin: (Option<u64>, bool),
}

/// A word of the wheel: which one of those of the channels between the two tiles, and a bit for each event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) number: u32,
    pub(crate) bits: u64,
}

/// A cycle of arrival (its low 32 bits), and where what arrives then ends in each list of the mail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndOfCycle {
    pub(crate) time: u32,
    pub(crate) flits: usize,
    pub(crate) followers: usize,
    pub(crate) credits: usize,
}

/// What one tile has for another in a window.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) cycles: Vec<EndOfCycle>,
    pub(crate) flits: Vec<CrossingFlit>,
    /// All other flits, which have the usual gap before them.
    pub(crate) followers: Vec<Word>,
    /// By heads among the flits, in their order.
    pub(crate) packets: Vec<Packet>,
    /// By heads that have any.
    pub(crate) asides: Vec<Asides>,
    pub(crate) long_gaps: Vec<u32>,
    pub(crate) credits: Vec<Word>,
}

/// The border of a tile.
pub(crate) struct Border {
    pub(crate) first_slot: u32,
    /// Blocks of the wheels.
    pub(crate) blocks: Range<u32>,
    /// By slot: the packet that leaves by it, and what is known of its gaps.
    pub(crate) leaving: Column<Leaving>,
    pub(crate) leaving_gaps: Column<Gaps>,
    /// By word of slots: where its flits go, and its credits.
    pub(crate) flits_to: Column<Place>,
    pub(crate) credits_to: Column<Place>,
    /// By tile from which channels come, the first of its slots in `coming`: by slot, the packet that comes.
    pub(crate) first_coming: Vec<u32>,
    pub(crate) coming: Column<Coming>,
    /// The channels to each tile, and from it.
    pub(crate) channels_to: Vec<Arc<Crossings>>,
    pub(crate) channels_from: Vec<Arc<Crossings>>,
    /// Mail by the tile that it is for, and by the tile from which it has come.
    pub(crate) leaving_mail: Vec<Mail>,
    pub(crate) incoming_mail: Vec<Mail>,
    /// What is due in a cycle, as words and slot by slot; memory to use.
    pub(crate) due_words: Vec<Word>,
    pub(crate) due: Vec<u32>,
}
