//! Routes that need not be computed again: what the routing of a small network has answered without leaving anything to its choice.
//!
//! A routing answers from a hop, the packet's state and what it asks of its [`Choice`]. Where it asks nothing, its answer is a function
//! of the other two, and of those parts of the hop that it [reads](kasuri_network::routing::Routing::reads).

use kasuri_network::network::Network;
use kasuri_network::routing::{Candidate, Choice, CongestionView, Routing, VirtualChannels};

/// A memo has at most this many entries of 8 bytes: more would drive the routers' state out of the cache.
const MAX_ENTRIES: usize = 1 << 18;

/// Entries for each pair of a place and a destination: packets in different states ask for both.
const STATES: usize = 8;

/// A question, without what its place in the table says already, and its answer.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// States that need more bits are not kept.
    before: u8,
    after: u8,
    available: (u8, u8),
    port: u16,
    /// The virtual channels that the packet may take; none in an entry that is empty.
    first: u8,
    end: u8,
}

/// What the answer depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The entry that has the answer, if any has: by the router, or the input slot where the routing looks at the input, the destination,
    /// and some bits of the state.
    index: usize,
    /// The packet's state.
    state: u32,
    /// First and last of the virtual channels of the packet's class.
    available: (u8, u8),
}

/// A table of answers. A later answer drives out an earlier one.
#[derive(Debug)]
pub(crate) struct RouteMemo {
    entries: Box<[Entry]>,
    terminals: u32,
    by_slot: bool,
}

impl RouteMemo {
    /// Entries of a memo for this routing of so many routers of this network, if it serves.
    fn entries(routing: &dyn Routing, network: &Network, routers: usize, slots: u32) -> Option<usize> {
        let reads = routing.reads();
        let places = if reads.input || reads.virtual_channel { slots } else { routers as u32 };
        let entries = (places as usize).checked_mul(network.terminal_count() as usize)?.checked_mul(STATES)?;
        (!reads.source && !routing.offers_several() && entries <= MAX_ENTRIES).then_some(entries)
    }

    /// Bytes of [`Self::new`].
    pub(crate) fn bytes(routing: &dyn Routing, network: &Network, routers: usize, slots: u32) -> usize {
        Self::entries(routing, network, routers, slots).unwrap_or(0) * size_of::<Entry>()
    }

    /// A memo for this routing of so many routers, whose places are `slots` input slots where it looks at them, if that serves: it must not
    /// look at the source, and the network must be small.
    pub(crate) fn new(routing: &dyn Routing, network: &Network, routers: usize, slots: u32) -> Option<Self> {
        let reads = routing.reads();
        let by_slot = reads.input || reads.virtual_channel;
        let terminals = network.terminal_count();
        let entries = Self::entries(routing, network, routers, slots)?;
        let empty = Entry { before: 0, after: 0, available: (0, 0), port: 0, first: 0, end: 0 };
        Some(Self { entries: vec![empty; entries].into_boxed_slice(), terminals, by_slot })
    }

    /// The question of a packet in this state at a router, by its number in the tile, in an input slot.
    #[inline(always)]
    pub(crate) fn question(&self, router: u32, slot: u32, destination: u32, state: u32, available: VirtualChannels) -> Question {
        let place = if self.by_slot { slot } else { router };
        let pair = (place * self.terminals + destination) as usize;
        let index = pair * STATES + (state ^ (state >> 2)) as usize % STATES;
        // Of at most 256 virtual channels.
        Question { index, state, available: (available.begin as u8, (available.end - 1) as u8) }
    }

    /// The answer, if it is known: the candidate and the packet's state after the hop.
    #[inline(always)]
    pub(crate) fn answer(&self, question: &Question) -> Option<(Candidate, u32)> {
        let entry = &self.entries[question.index];
        if entry.end == 0 || u32::from(entry.before) != question.state || entry.available != question.available {
            return None;
        }
        let virtual_channels = VirtualChannels { begin: u16::from(entry.first), end: u16::from(entry.end) };
        Some((Candidate::new(entry.port, virtual_channels), u32::from(entry.after)))
    }

    /// Keeps an answer for which the routing has asked nothing.
    pub(crate) fn keep(&mut self, question: Question, candidate: Candidate, after: u32) {
        let Candidate { port, virtual_channels, priority } = candidate;
        let Question { index, state, available } = question;
        let (Ok(first), Ok(end)) = (u8::try_from(virtual_channels.begin), u8::try_from(virtual_channels.end)) else { return };
        let (Ok(before), Ok(after)) = (u8::try_from(state), u8::try_from(after)) else { return };
        if priority == 0 {
            self.entries[index] = Entry { before, after, available, port, first, end };
        }
    }
}

/// A choice, and whether anybody has left anything to it.
#[derive(Debug)]
pub(crate) struct Watched<C> {
    choice: C,
    pub(crate) asked: bool,
}

impl<C> Watched<C> {
    pub(crate) fn new(choice: C) -> Self {
        Self { choice, asked: false }
    }
}

impl<C: Choice> Choice for Watched<C> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        self.asked |= alternatives > 1;
        self.choice.uniform(alternatives)
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.asked |= alternatives > 1;
        self.choice.least(alternatives, cost)
    }

    fn least_occupied(&mut self, alternatives: u32, occupied: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.asked |= alternatives > 1;
        self.choice.least_occupied(alternatives, occupied)
    }

    fn draw_ahead(&mut self) {
        self.choice.draw_ahead();
    }
}
