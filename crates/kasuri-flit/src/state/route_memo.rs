//! Routes that need not be computed again: what the routing of a small network has answered, alone or after one draw.
//!
//! A routing answers from a hop, the packet's state and what it asks of its [`Choice`]. Where it asks nothing, its answer is a function
//! of the other two, and of those parts of the hop that it [reads](kasuri_network::routing::RoutingFacts::reads). Where it asks once for one of
//! several alternatives, as for a way up a fat tree, it is a function of these and of the alternative that is drawn.

use crate::record::packet::Packet;
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
/// (two), first and last of the virtual channels that the packet may take, the last one plus 1. Where the routing draws, there is 0 for the
/// last one, and between it and the question where the answers stand (three) and of how many alternatives the draw is.
#[derive(Clone, Copy, Debug)]
struct Entry(u64);

/// Bits of the question.
const KEY: u64 = (1 << 24) - 1;

impl Entry {
    /// An answer to a question, if there is room for it in an entry.
    fn of(question: &Question, candidate: Candidate, after: u32) -> Option<Self> {
        let Candidate { port, virtual_channels: VirtualChannels { begin, end }, priority } = candidate;
        let answer = u64::from(end) << 32 | u64::from(begin) << 24 | u64::from(port) << 8 | u64::from(after);
        (priority == 0 && end <= 0xff && after <= 0xff && question.key <= KEY).then_some(Self(answer << 24 | question.key))
    }

    /// The answer of an entry that has one: the candidate and the packet's state after the hop.
    #[inline(always)]
    fn answer(self) -> (Candidate, u32) {
        let virtual_channels = VirtualChannels { begin: (self.0 >> 48) as u16 & 0xff, end: (self.0 >> 56) as u16 };
        (Candidate::new((self.0 >> 32) as u16, virtual_channels), (self.0 >> 24) as u32 & 0xff)
    }

    /// What the entry knows of a question.
    #[inline(always)]
    fn knows(self, question: &Question) -> Known {
        if self.0 & KEY != question.key {
            Known::Nothing
        } else if self.0 >> 56 != 0 {
            let (candidate, after) = self.answer();
            Known::Answer(candidate, after)
        } else {
            let draw = Draw { alternatives: (self.0 >> 48) as u32, first: (self.0 >> 24) as u32 & 0xff_ffff };
            if draw.alternatives == 0 { Known::Nothing } else { Known::Draw(draw) }
        }
    }

    /// Has the entry an answer, to packets in another state?
    fn has_other_state(self, question: &Question) -> bool {
        self.0 != 0 && (self.0 ^ question.key) & 0xff != 0
    }
}

/// What is known of a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Known {
    Nothing,
    /// The candidate, and the packet's state after the hop.
    Answer(Candidate, u32),
    /// That the routing draws first.
    Draw(Draw),
}

/// What a routing has asked of its choice: nothing, one of so many alternatives once (above, with what was drawn below), or more. One word,
/// since who reads together what has just been written in parts must wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked(u64);

impl Asked {
    pub(crate) const NOTHING: Self = Self(0);
    pub(crate) const MORE: Self = Self(u64::MAX);

    /// One of some alternatives, two at least, of which one was drawn.
    pub(crate) fn once(alternatives: u32, drawn: u32) -> Self {
        Self(u64::from(alternatives) << 32 | u64::from(drawn))
    }

    /// The alternatives of the only draw, and what was drawn.
    fn draw(self) -> (u32, u32) {
        ((self.0 >> 32) as u32, self.0 as u32)
    }
}

/// A draw from which an answer follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Draw {
    pub(crate) alternatives: u32,
    /// Where the answers stand, by what is drawn.
    first: u32,
}

/// Draws of more alternatives fit no entry.
const MOST_ALTERNATIVES: u32 = 0xff;

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
    /// log2 of the entries of a pair, 0 or [`STATES_SHIFT`], and these less one.
    states_shift: u32,
    states_mask: u32,
    by_slot: bool,
    /// By class, of its packets and of their replies in turn: their virtual channels, as in an entry.
    channels: Column<u64>,
    /// An [`Entry`] for each alternative of each draw.
    drawn: Vec<u64>,
}

impl RouteMemo {
    /// Entries of a memo for this routing of so many routers of this network, if it serves.
    fn entries(routing: &dyn Routing, network: &Network, routers: usize, slots: u32) -> Option<usize> {
        let reads = routing.facts().reads;
        let places = if reads.input || reads.virtual_channel { slots } else { routers as u32 };
        let entries = (places as usize).checked_mul(network.terminal_count() as usize)?.checked_mul(1 << STATES_SHIFT)?;
        (!reads.source && !routing.facts().offers_several && entries <= MAX_ENTRIES).then_some(entries)
    }

    /// Bytes of a memo at most.
    pub(crate) fn bytes(routing: &dyn Routing, network: &Network, routers: usize, slots: u32) -> usize {
        Self::entries(routing, network, routers, slots).unwrap_or(0) * size_of::<Entry>()
    }

    /// A memo for this routing of so many routers, whose places are `slots` input slots where it looks at them, if that serves: it must not
    /// look at the source, and the network must be small. `channels` are the virtual channels of the classes' packets and of their replies.
    pub(crate) fn new(
        routing: &dyn Routing,
        network: &Network,
        routers: usize,
        slots: u32,
        channels: &[[VirtualChannels; 2]],
    ) -> Option<Self> {
        let reads = routing.facts().reads;
        let by_slot = reads.input || reads.virtual_channel;
        let terminals = network.terminal_count();
        let entries = Self::entries(routing, network, routers, slots)?;
        // Of at most 256 virtual channels.
        let in_entry = |channels: VirtualChannels| u64::from(channels.end.max(1) - 1) << 16 | u64::from(channels.begin) << 8;
        Some(Self {
            entries: vec![0; entries >> STATES_SHIFT].into(),
            terminals,
            states_shift: 0,
            states_mask: 0,
            by_slot,
            channels: channels.iter().flatten().map(|&channels| in_entry(channels)).collect::<Vec<_>>().into(),
            drawn: Vec::new(),
        })
    }

    /// The question of a packet at a router, by its number in the tile, in an input slot.
    #[inline(always)]
    pub(crate) fn question(&self, router: u32, slot: u32, packet: &Packet) -> Question {
        let place = if self.by_slot { slot } else { router };
        let pair = place * self.terminals + packet.destination;
        let state = packet.route_state;
        let channels = self.channels[2 * u32::from(packet.class) + u32::from(packet.is_reply)];
        // A state of more bits fits no entry.
        let key = if state <= 0xff { channels | u64::from(state) } else { u64::MAX };
        let entry = (state ^ (state >> 2)) & self.states_mask;
        Question { index: (pair << self.states_shift) + entry, key }
    }

    /// What is known of a question.
    #[inline(always)]
    pub(crate) fn known(&self, question: &Question) -> Known {
        Entry(self.entries[question.index]).knows(question)
    }

    /// The answer that follows from a draw, if it is known.
    #[inline(always)]
    pub(crate) fn answer_to_draw(&self, draw: Draw, drawn: u32) -> Option<(Candidate, u32)> {
        let entry = self.drawn[(draw.first + drawn) as usize];
        (entry != 0).then(|| Entry(entry).answer())
    }

    /// Begins anew with several entries for each pair: what was known is soon asked again.
    #[cold]
    fn make_room_for_states(&mut self) {
        (self.states_shift, self.states_mask) = (STATES_SHIFT, (1 << STATES_SHIFT) - 1);
        let entries = std::mem::replace(&mut self.entries, Vec::new().into()).len();
        self.entries = vec![0; entries << STATES_SHIFT].into();
        self.drawn.clear();
    }

    /// Keeps an answer, if it follows from the question and at most one draw.
    pub(crate) fn keep(&mut self, question: &Question, asked: Asked, candidate: Candidate, after: u32) {
        let Some(answer) = Entry::of(question, candidate, after) else { return };
        if self.states_shift == 0 && Entry(self.entries[question.index]).has_other_state(question) {
            return self.make_room_for_states();
        }
        match asked {
            Asked::NOTHING => self.entries[question.index] = answer.0,
            Asked::MORE => {}
            once => self.keep_drawn(question, once.draw(), answer),
        }
    }

    /// Keeps the answer that followed from a draw.
    fn keep_drawn(&mut self, question: &Question, (alternatives, drawn): (u32, u32), answer: Entry) {
        let draw = match self.known(question) {
            Known::Draw(draw) => draw,
            _ if alternatives > MOST_ALTERNATIVES || self.drawn.len() + alternatives as usize > MAX_ENTRIES => return,
            _ => {
                let first = self.drawn.len() as u32;
                self.drawn.resize(self.drawn.len() + alternatives as usize, 0);
                self.entries[question.index] = u64::from(alternatives) << 48 | u64::from(first) << 24 | question.key;
                Draw { alternatives, first }
            }
        };
        self.drawn[(draw.first + drawn) as usize] = answer.0;
    }
}

/// A choice, and what has been left to it.
#[derive(Debug)]
pub(crate) struct Watched<C> {
    choice: C,
    pub(crate) asked: Asked,
    is_ahead: bool,
}

impl<C> Watched<C> {
    pub(crate) fn new(choice: C) -> Self {
        Self { choice, asked: Asked::NOTHING, is_ahead: false }
    }

    fn note(&mut self, alternatives: u32) {
        if alternatives > 1 {
            self.asked = Asked::MORE;
        }
    }
}

impl<C: Choice> Choice for Watched<C> {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        let drawn = self.choice.uniform(alternatives);
        if self.asked == Asked::NOTHING && alternatives > 1 && !self.is_ahead {
            self.asked = Asked::once(alternatives, drawn);
        } else {
            self.note(alternatives);
        }
        drawn
    }

    fn least(&mut self, alternatives: u32, cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.note(alternatives);
        self.choice.least(alternatives, cost)
    }

    fn least_occupied(&mut self, alternatives: u32, occupied: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.note(alternatives);
        self.choice.least_occupied(alternatives, occupied)
    }

    fn draw_ahead(&mut self) {
        self.is_ahead = true;
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

    /// The memo of a 3x3 mesh.
    fn memo_of_mesh() -> RouteMemo {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let network = Arc::new(Mesh { dimensions: vec![3, 3], concentration: 1 }.build(&context).expect("a mesh"));
        let routing = (find(ROUTINGS, "dimension-order").expect("it is there").parse)(toml::Table::new()).expect("no keys");
        let routing = routing.compile(&network).expect("a mesh has coordinates");
        let available = VirtualChannels { begin: 0, end: 2 };
        RouteMemo::new(&*routing, &network, 9, 360, &[[available; 2]]).expect("the network is small")
    }

    /// A draw of more alternatives than an entry counts is made again each time.
    #[test]
    fn a_draw_of_too_many_alternatives_is_not_kept() {
        let mut memo = memo_of_mesh();
        let question = memo.question(0, 0, &Packet { destination: 1, ..Packet::default() });
        let candidate = Candidate::new(2, VirtualChannels { begin: 0, end: 1 });
        memo.keep(&question, Asked::once(MOST_ALTERNATIVES + 1, 7), candidate, 0);
        assert_eq!(memo.known(&question), Known::Nothing);
        memo.keep(&question, Asked::once(MOST_ALTERNATIVES, 7), candidate, 0);
        let Known::Draw(draw) = memo.known(&question) else { panic!("a draw of so many is kept") };
        assert_eq!((draw.alternatives, memo.answer_to_draw(draw, 6)), (MOST_ALTERNATIVES, None));
        assert_eq!(memo.answer_to_draw(draw, 7), Some((candidate, 0)));
    }

    /// What is kept is found again, also where packets in several states ask, and where answers follow from draws; of more states than there is
    /// room for the later ones.
    #[test]
    fn answers_are_those_of_their_questions() {
        for (states, draws) in [1, 2, 8, 40].into_iter().flat_map(|states| [(states, false), (states, true)]) {
            let mut memo = memo_of_mesh();
            let mut found = 0;
            for round in 0..8 {
                for (router, destination, state) in
                    (0..9).flat_map(|router| (0..9).flat_map(move |to| (0..states).map(move |state| (router, to, state))))
                {
                    let question = memo.question(router, 0, &Packet { destination, route_state: state, ..Packet::default() });
                    let (alternatives, drawn) = (2 + router % 3, round % 2);
                    let port = router + destination + if draws { drawn } else { 0 };
                    let right = (Candidate::new(port as u16, VirtualChannels { begin: 0, end: 1 }), state + 1);
                    let answer = match memo.known(&question) {
                        Known::Nothing => None,
                        Known::Answer(candidate, after) => Some((candidate, after)),
                        Known::Draw(draw) => {
                            assert!(draws && draw.alternatives == alternatives);
                            memo.answer_to_draw(draw, drawn)
                        }
                    };
                    let asked = if draws { Asked::once(alternatives, drawn) } else { Asked::NOTHING };
                    match answer {
                        Some(answer) => {
                            assert_eq!(answer, right);
                            found += u32::from(round == 7);
                        }
                        None => memo.keep(&question, asked, right.0, right.1),
                    }
                }
            }
            assert!(states > 8 || found == 81 * states, "{found} of {} answers are found again", 81 * states);
            assert_eq!(memo.entries.len(), if states == 1 { 81 } else { 648 });
        }
    }
}
