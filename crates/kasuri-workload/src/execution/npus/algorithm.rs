//! How one NPU takes part in a phase of a collective: which messages it sends when, by ASTRA-sim's rules.
//!
//! What a phase does is said in steps: a packet is *inserted* (at the beginning, and at each receive), becomes *ready* after the
//! endpoint's delay (and that of a reduction), and then the next message is sent and the matching receive posted.

mod steps;

use super::super::cluster::Pattern;
use super::super::trace::Trace;
use super::graph::Graph;
use super::messages::{Done, Sending};
use std::collections::VecDeque;
use std::sync::Arc;
pub use steps::{Sends, Step};

/// The NPUs that take part, in the order of their ring.
#[derive(Clone, Debug)]
pub(super) enum Members {
    /// At equal distances.
    Strided { base: u32, stride: u32 },
    /// As a communicator group lists them.
    Listed(Arc<[u32]>),
}

impl Members {
    pub(super) fn npu(&self, index: u32) -> u32 {
        match self {
            Self::Strided { base, stride } => base + index * stride,
            Self::Listed(list) => list[index as usize],
        }
    }
}

/// Where an NPU stands among those of its phase.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) members: Members,
    pub(super) count: u32,
    pub(super) index: u32,
    /// A group of its own, whose step delay is another.
    pub(super) grouped: bool,
}

impl Place {
    /// The NPU so many places ahead, or behind; at most `count` of them.
    fn at_distance(&self, distance: u32, ahead: bool) -> u32 {
        let n = self.count;
        self.members.npu(if ahead { (self.index + distance) % n } else { (self.index + n - distance) % n })
    }
}

/// A message to send and the receive that goes with it, both by NPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) bytes: u64,
    /// See [`Sending::anonymous`].
    pub(super) anonymous: bool,
}

/// The messages with which a direct collective begins: from an NPU to each of the others of its phase.
#[derive(Clone, Debug)]
pub struct Volley {
    source: u32,
    tag: u32,
    /// Phases that follow.
    left: u32,
    bytes: u64,
    place: Place,
    up: bool,
}

impl Volley {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.place.count - 1
    }

    /// Bytes of each.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Message `number`.
    pub fn message(&self, number: u32) -> Sending {
        let destination = self.place.at_distance(number + 1, self.up);
        let Self { source, tag, bytes, left, .. } = *self;
        Sending { source, destination, tag, bytes, sent: Done::Silent, exchanged: false, anonymous: Some(left) }
    }

    /// Who sends the like of message `number` to the NPU.
    pub(super) fn sender(&self, number: u32) -> u32 {
        self.place.at_distance(number + 1, !self.up)
    }
}

/// Which inserted packets are charged with a reduction: they come in rounds of some that are not and some that are.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    plain: u32,
    reducing: u32,
    first: bool,
}

impl Rounds {
    /// The next packet: whether it is charged.
    fn next(&mut self, pattern: Pattern, plain: u32, reducing: u32) -> bool {
        if self.plain == 0 && self.reducing == 0 {
            *self = Self { plain, reducing, first: !self.first };
        }
        if self.plain > 0 {
            self.plain -= 1;
            return false;
        }
        self.reducing = self.reducing.saturating_sub(1);
        pattern == Pattern::ReduceScatter || (pattern == Pattern::AllReduce && self.first)
    }
}

/// Ring and direct.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pattern: Pattern,
    place: Place,
    direct: bool,
    up: bool,
    bytes: u64,
    /// Packets under way at once.
    parallel: u32,
    rounds: Rounds,
    sends_left: u32,
    inserted: u64,
    sent: u64,
    ready: u32,
    received: u32,
}

impl Ring {
    /// A ring, or direct with a window (`u32::MAX` for all).
    pub(super) fn new(pattern: Pattern, place: Place, window: Option<u32>, up: bool, data: u64) -> Self {
        let n = place.count;
        let sends_left = match (pattern, window) {
            (Pattern::AllReduce, _) => 2 * (n - 1),
            (Pattern::AllToAll, None) => (u64::from(n) * u64::from(n - 1) / 2).min(u64::from(u32::MAX)) as u32,
            _ => n - 1,
        };
        Self {
            pattern,
            direct: window.is_some(),
            up,
            bytes: if pattern == Pattern::AllGather { data } else { data / u64::from(n) },
            parallel: window.map_or(1, |window| window.min(n - 1)),
            rounds: Rounds::default(),
            sends_left,
            inserted: 0,
            sent: 0,
            ready: 0,
            received: 0,
            place,
        }
    }

    fn insert(&mut self) -> bool {
        self.inserted += 1;
        let reducing = if self.direct && !self.place.grouped { self.parallel } else { (self.place.count - 1) * self.parallel };
        self.rounds.next(self.pattern, self.parallel, reducing)
    }

    /// How many sends are to be tried now that a packet more is ready; `None` where the second half has to wait.
    fn tries(&mut self) -> Option<u32> {
        self.ready += 1;
        let last = self.place.count - 1;
        if self.direct && self.pattern == Pattern::AllReduce && self.sends_left <= last {
            return (self.received >= last).then_some(self.parallel);
        }
        Some(1)
    }

    fn exchange(&mut self) -> Option<Exchange> {
        if self.inserted == self.sent || self.sends_left == 0 || self.ready == 0 {
            return None;
        }
        let n = self.place.count;
        let distance = if self.direct { 1 + (self.sent % u64::from(n - 1)) as u32 } else { 1 };
        self.sends_left -= 1;
        self.sent += 1;
        self.ready -= 1;
        let (to, from) = (self.place.at_distance(distance, self.up), self.place.at_distance(distance, !self.up));
        Some(Exchange { to, from, bytes: self.bytes, anonymous: self.is_anonymous() })
    }

    /// Whether everybody sends to everybody once and at once, so that it does not matter from whom a message comes.
    fn is_anonymous(&self) -> bool {
        self.direct && self.parallel == self.place.count - 1 && self.pattern != Pattern::AllReduce
    }

    /// All messages of a direct collective, when all its packets are ready together.
    pub(super) fn volley(&mut self, source: u32, (tag, left): (u32, u32), count: u32) -> Option<Volley> {
        if !self.is_anonymous() || count != self.parallel || self.sent > 0 || self.ready > 0 {
            return None;
        }
        self.sends_left -= count;
        self.sent += u64::from(count);
        Some(Volley { source, tag, left, bytes: self.bytes, place: self.place.clone(), up: self.up })
    }

    /// A message has come of which nothing follows but that one more is counted, as long as it is not the last.
    fn counts(&mut self) -> bool {
        let counts = self.is_anonymous() && self.sends_left == 0 && self.received < self.parallel;
        if counts {
            self.inserted += 1;
            self.ready += 1;
        }
        counts
    }
}

/// Exchanges at distances of powers of two.
#[derive(Clone, Debug)]
pub(super) struct Halving {
    pattern: Pattern,
    place: Place,
    bytes: u64,
    distance: u32,
    /// Distances double and messages halve, or the other way round.
    outwards: bool,
    rounds: Rounds,
    /// Partner and size of the packets that wait.
    packets: VecDeque<(u32, u64)>,
    sends_left: u32,
    ready: u32,
}

impl Halving {
    pub(super) fn new(pattern: Pattern, place: Place, data: u64) -> Self {
        let steps = f64::from(place.count).log2();
        let gather = pattern == Pattern::AllGather;
        Self {
            pattern,
            bytes: if gather { data } else { data / 2 },
            distance: if gather { place.count / 2 } else { 1 },
            outwards: !gather,
            rounds: Rounds::default(),
            packets: VecDeque::new(),
            sends_left: if pattern == Pattern::AllReduce { 2.0 * steps } else { steps } as u32,
            ready: 0,
            place,
        }
    }

    /// Whether the packet is charged with a reduction, and of how many bytes.
    fn insert(&mut self) -> (bool, u64) {
        let reducing = (f64::from(self.place.count).log2() as u32).saturating_sub(1);
        let charged = self.rounds.next(self.pattern, 1, reducing);
        let bytes = self.bytes;
        self.packets.push_back((self.partner(), bytes));
        self.step();
        if self.distance == self.place.count && self.pattern == Pattern::AllReduce {
            self.outwards = false;
            self.step();
        }
        (charged, bytes)
    }

    fn step(&mut self) {
        if self.outwards {
            self.distance = self.distance.saturating_mul(2);
            self.bytes /= 2;
        } else {
            self.distance /= 2;
            self.bytes = self.bytes.saturating_mul(2);
        }
    }

    fn partner(&self) -> u32 {
        Self::partner_of(self.place.index, self.distance, self.place.count)
    }

    fn partner_of(index: u32, distance: u32, n: u32) -> u32 {
        let (ahead, distance) = (distance == 0 || (index / distance).is_multiple_of(2), distance % n);
        if ahead { (index + distance) % n } else { (index + n - distance) % n }
    }

    fn exchange(&mut self) -> Option<Exchange> {
        if self.sends_left == 0 || self.ready == 0 {
            return None;
        }
        let (partner, bytes) = self.packets.pop_front()?;
        self.sends_left -= 1;
        self.ready -= 1;
        let npu = self.place.members.npu(partner);
        Some(Exchange { to: npu, from: npu, bytes, anonymous: false })
    }
}

/// A node of one of the two trees.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) bytes: u64,
    pub(super) parent: Option<u32>,
    /// None at leaves, one at the root, else two.
    pub(super) children: Vec<u32>,
    pub(super) state: TreeState,
    pub(super) reduced: bool,
    /// The root is the last place, or the first.
    pub(super) root_last: bool,
}

/// What a node of a tree has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeState {
    Begin,
    /// Waits for so many of its children.
    Children(u8),
    ToParent,
    FromParent,
    ToChildren,
    End,
}

impl Tree {
    /// Place `position` of `count` (a power of two) in the tree whose root is the last, or the first; `npu` numbers the places.
    pub(super) fn new(bytes: u64, position: u32, count: u32, root_last: bool, npu: impl Fn(u32) -> u32) -> Self {
        let half = count / 2;
        let root = if root_last { count - 1 } else { 0 };
        // Number within the full tree below the root, from 1, and back.
        let number = if root_last { position + 1 } else { position };
        let place = |number: u32| npu(if root_last { number - 1 } else { number });
        let (parent, children) = if position == root {
            (None, vec![place(half)])
        } else {
            let level = number.trailing_zeros();
            let parent = if number == half { npu(root) } else { place(((number >> (level + 2)) * 2 + 1) << (level + 1)) };
            let below = 1 << level >> 1;
            (Some(parent), if level == 0 { Vec::new() } else { vec![place(number - below), place(number + below)] })
        };
        Self { bytes, parent, children, state: TreeState::Begin, reduced: false, root_last }
    }
}

/// A collective that is a trace of its own.
#[derive(Clone, Debug)]
pub(super) struct Custom {
    pub(super) trace: Arc<Trace>,
    pub(super) graph: Graph,
    pub(super) running: u32,
    pub(super) group: Option<Arc<[u32]>>,
}

/// How a phase is carried out.
#[derive(Clone, Debug)]
pub(super) enum Algorithm {
    Ring(Ring),
    Halving(Halving),
    Tree(Box<Tree>),
    Custom(Box<Custom>),
}

/// A packet that was inserted: its delay is a group's, and it is charged with the reduction of so many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) grouped: bool,
    pub(super) reduces: Option<u64>,
}

impl Algorithm {
    /// How many packets are inserted at the beginning.
    pub(super) fn at_once(&self) -> u32 {
        match self {
            Self::Ring(ring) => ring.parallel,
            _ => 1,
        }
    }

    /// A message has come.
    pub(super) fn receive(&mut self) {
        if let Self::Ring(ring) = self {
            ring.received += 1;
        }
    }

    /// A message has come of which nothing follows but that one more is counted: it is, and needs no packet.
    pub(super) fn counts(&mut self) -> bool {
        if let Self::Ring(ring) = self { ring.counts() } else { false }
    }

    /// Inserts a packet.
    pub(super) fn insert(&mut self) -> Packet {
        match self {
            Self::Ring(ring) => {
                let charged = ring.insert();
                Packet { grouped: ring.place.grouped, reduces: charged.then_some(ring.bytes) }
            }
            Self::Halving(halving) => {
                let (charged, bytes) = halving.insert();
                Packet { grouped: halving.place.grouped, reduces: charged.then_some(bytes) }
            }
            Self::Tree(_) | Self::Custom(_) => Packet { grouped: false, reduces: None },
        }
    }

    /// A packet is ready: how many sends are to be tried.
    pub(super) fn tries(&mut self) -> Option<u32> {
        match self {
            Self::Ring(ring) => ring.tries(),
            Self::Halving(halving) => {
                halving.ready += 1;
                Some(1)
            }
            Self::Tree(_) | Self::Custom(_) => None,
        }
    }

    /// The next message, if one can go.
    pub(super) fn exchange(&mut self) -> Option<Exchange> {
        match self {
            Self::Ring(ring) => ring.exchange(),
            Self::Halving(halving) => halving.exchange(),
            Self::Tree(_) | Self::Custom(_) => None,
        }
    }

    /// How many messages are still to be sent.
    pub(super) fn messages(&self) -> u64 {
        match self {
            Self::Ring(ring) => u64::from(ring.sends_left),
            Self::Halving(halving) => u64::from(halving.sends_left),
            Self::Tree(tree) => u64::from(tree.parent.is_some()) + tree.children.len() as u64,
            Self::Custom(_) => 0,
        }
    }

    /// Bytes of the longest message of a phase that has not begun.
    pub(super) fn longest(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.bytes,
            Self::Halving(halving) if halving.outwards => halving.bytes,
            Self::Halving(halving) => halving.bytes.saturating_mul(u64::from(halving.place.count / 2).max(1)),
            Self::Tree(tree) => tree.bytes,
            Self::Custom(_) => 0,
        }
    }

    /// All messages of a phase that has not begun, as if none had to wait: receiver and bytes.
    pub(super) fn each_message(mut self, each: &mut dyn FnMut(u32, u64)) {
        if let Self::Tree(tree) = &self {
            tree.parent.iter().chain(&tree.children).for_each(|&npu| each(npu, tree.bytes));
            return;
        }
        for _ in 0..self.messages() {
            self.insert();
            match &mut self {
                Self::Ring(ring) => ring.ready += 1,
                Self::Halving(halving) => halving.ready += 1,
                Self::Tree(_) | Self::Custom(_) => {}
            }
            if let Some(exchange) = self.exchange() {
                each(exchange.to, exchange.bytes);
            }
        }
    }

    /// Everything is sent and received.
    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.sends_left == 0 && ring.ready == ring.parallel,
            Self::Halving(halving) => halving.sends_left == 0 && halving.ready == 1,
            Self::Tree(_) | Self::Custom(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In both trees each place is a child of its parent, there is one root, and all hang below it; roots are the last and the first.
    #[test]
    fn both_trees_hold_everyone_once() {
        for count in [2, 4, 8, 16, 64] {
            for root_last in [false, true] {
                let tree: Vec<Tree> = (0..count).map(|position| Tree::new(1, position, count, root_last, |place| place)).collect();
                let mut seen = vec![if root_last { count - 1 } else { 0 }];
                let mut next = 0;
                while let Some(&place) = seen.get(next) {
                    for &child in &tree[place as usize].children {
                        assert_eq!(tree[child as usize].parent, Some(place), "{count} {root_last} {child}");
                        seen.push(child);
                    }
                    next += 1;
                }
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
        }
    }
}
