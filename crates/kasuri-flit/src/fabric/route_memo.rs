//! Routes that need not be computed again: what the routing of a small network has answered without leaving anything to its choice.
//!
//! A routing answers from a hop, the packet's state and what it asks of its [`Choice`]. Where it asks nothing, its answer is a function
//! of the other two, and of those parts of the hop that it [reads](kasuri_network::routing::Routing::reads).

use kasuri_network::memory::Column;
use kasuri_network::network::Network;
use kasuri_network::routing::{Candidate, Choice, CongestionView, Routing, VirtualChannels};

/// A memo has at most this many entries of 8 bytes: more would drive the routers' state out of the cache.
const MAX_ENTRIES: usize = 1 << 18;

/// Entries for each pair of a place and a destination, once packets in different states have asked for both: 2^3. Most routings know no
/// states, and ask of a table that is dense.
const STATES_SHIFT: u32 = 3;

/// A question, without what its place in the table says already, and its answer; 0 where there is none.
///
/// From the low byte on: the state before, first and last of the virtual channels of the packet's class, the state after, the port
/// (two), first and last of the virtual channels that the packet may take, the last one plus 1.
#[derive(Clone, Copy, Debug)]
struct Entry(u64);

/// Bits of the question.
const KEY: u64 = (1 << 24) - 1;

impl Entry {
    /// The answer, if the entry has that of this question.
    #[inline(always)]
    fn answer(self, question: &Question) -> Option<(Candidate, u32)> {
        let end = (self.0 >> 56) as u16;
        if self.0 & KEY != question.key || end == 0 {
            return None;
        }
        let virtual_channels = VirtualChannels { begin: (self.0 >> 48) as u16 & 0xff, end };
        Some((Candidate::new((self.0 >> 32) as u16, virtual_channels), (self.0 >> 24) as u32 & 0xff))
    }

    /// Has the entry an answer, to packets in another state?
    fn has_other_state(self, question: &Question) -> bool {
        self.0 != 0 && (self.0 ^ question.key) & 0xff != 0
    }
}

/// What the answer depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The entry that has the answer, if any has: by the router, or the input slot where the routing looks at the input, the destination,
    /// and some bits of the state.
    index: u32,
    /// The packet's state and the virtual channels of its class, as in an entry; states that need more bits fit no entry.
    key: u64,
}

/// A table of answers. A later answer drives out an earlier one.
#[derive(Debug)]
pub(crate) struct RouteMemo {
    /// An [`Entry`] each.
    entries: Column<u64>,
    terminals: u32,
    /// log2 of the entries of a pair: 0 or [`STATES_SHIFT`].
    states_shift: u32,
    by_slot: bool,
}

impl RouteMemo {
    /// Entries of a memo for this routing of so many routers of this network, if it serves.
    fn entries(routing: &dyn Routing, network: &Network, routers: usize, slots: u32) -> Option<usize> {
        let reads = routing.reads();
        let places = if reads.input || reads.virtual_channel { slots } else { routers as u32 };
        let entries = (places as usize).checked_mul(network.terminal_count() as usize)?.checked_mul(1 << STATES_SHIFT)?;
        (!reads.source && !routing.offers_several() && entries <= MAX_ENTRIES).then_some(entries)
    }

    /// Bytes of a memo at most.
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
        Some(Self { entries: vec![0; entries >> STATES_SHIFT].into(), terminals, states_shift: 0, by_slot })
    }

    /// The question of a packet in this state at a router, by its number in the tile, in an input slot.
    #[inline(always)]
    pub(crate) fn question(&self, router: u32, slot: u32, destination: u32, state: u32, available: VirtualChannels) -> Question {
        let place = if self.by_slot { slot } else { router };
        let pair = place * self.terminals + destination;
        // Of at most 256 virtual channels.
        let key = u64::from(available.end - 1) << 16 | u64::from(available.begin) << 8;
        let outside = u64::from(state >> 8) << 24;
        let entry = (state ^ (state >> 2)) & ((1 << self.states_shift) - 1);
        Question { index: (pair << self.states_shift) + entry, key: key | outside | u64::from(state & 0xff) }
    }

    /// The answer, if it is known: the candidate and the packet's state after the hop.
    #[inline(always)]
    pub(crate) fn answer(&self, question: &Question) -> Option<(Candidate, u32)> {
        Entry(self.entries[question.index]).answer(question)
    }

    /// Begins anew with several entries for each pair: what was known is soon asked again.
    #[cold]
    fn make_room_for_states(&mut self) {
        self.states_shift = STATES_SHIFT;
        let entries = std::mem::replace(&mut self.entries, Vec::new().into()).len();
        self.entries = vec![0; entries << STATES_SHIFT].into();
    }

    /// Keeps an answer for which the routing has asked nothing.
    pub(crate) fn keep(&mut self, question: Question, candidate: Candidate, after: u32) {
        let Candidate { port, virtual_channels: VirtualChannels { begin, end }, priority } = candidate;
        if priority == 0 && end <= 0xff && after <= 0xff && question.key <= KEY {
            let answer = u64::from(end) << 32 | u64::from(begin) << 24 | u64::from(port) << 8 | u64::from(after);
            if self.states_shift == 0 && Entry(self.entries[question.index]).has_other_state(&question) {
                return self.make_room_for_states();
            }
            self.entries[question.index] = answer << 24 | question.key;
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

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::registry::find;
    use kasuri_network::routing::ROUTINGS;
    use kasuri_network::topology::mesh::Mesh;
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
    use std::sync::Arc;

    /// What is kept is found again, also where packets in several states ask; of more states than there is room for the later ones.
    #[test]
    fn answers_are_those_of_their_questions() {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Mesh { dimensions: vec![3, 3], concentration: 1 }.build(&context).expect("a mesh"));
        let routing = (find(ROUTINGS, "dimension-order").expect("it is there").parse)(toml::Table::new()).expect("no keys");
        let routing = routing.compile(&network).expect("a mesh has coordinates");
        let available = VirtualChannels { begin: 0, end: 2 };
        for states in [1, 2, 8, 40] {
            let mut memo = RouteMemo::new(&*routing, &network, 9, 360).expect("the network is small");
            let mut found = 0;
            for round in 0..4 {
                for (router, destination, state) in
                    (0..9).flat_map(|router| (0..9).flat_map(move |to| (0..states).map(move |state| (router, to, state))))
                {
                    let question = memo.question(router, 0, destination, state, available);
                    let right = (Candidate::new((router + destination) as u16, VirtualChannels { begin: 0, end: 1 }), state + 1);
                    match memo.answer(&question) {
                        Some(answer) => {
                            assert_eq!(answer, right);
                            found += u32::from(round == 3);
                        }
                        None => memo.keep(question, right.0, right.1),
                    }
                }
            }
            assert!(states > 8 || found == 81 * states, "{found} of {} answers are found again", 81 * states);
            assert_eq!(memo.entries.len(), if states == 1 { 81 } else { 648 });
        }
    }
}
