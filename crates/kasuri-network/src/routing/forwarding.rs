//! The routing that follows forwarding tables.

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::network::tables::{DROPPED, ForwardingTables};
use crate::rng::split_mix;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Which of several addresses of its destination a packet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressChoice {
    /// The first.
    #[default]
    First,
    /// By a hash of source and destination: all packets of a pair the same.
    Hash,
    /// Each packet draws one.
    Random,
}

/// Follows forwarding tables.
#[derive(Debug)]
pub struct TableRouting {
    tables: Arc<ForwardingTables>,
    choice: AddressChoice,
    /// By lane: which class of virtual channels it is, of how many.
    classes: Option<([u8; 256], u16)>,
    /// A bit for each address and router: does a packet arrive?
    arriving: Vec<u64>,
    words: usize,
    /// The router that each terminal injects into.
    homes: Vec<RouterId>,
}

/// The part of a state that is the service level; above it stands the number of the address among the destination's.
const LEVEL_BITS: u32 = 4;

impl TableRouting {
    /// Prepares to follow the tables of this network. Whether all pairs have a path is for [`Self::unreachable`] to say.
    pub fn new(network: &Network, tables: Arc<ForwardingTables>, choice: AddressChoice) -> Self {
        let lanes = tables.lanes_in_use();
        let mut classes = [0; 256];
        lanes.iter().zip(0..).for_each(|(&lane, class)| classes[usize::from(lane)] = class);
        let says_lanes = tables.names_virtual_channels() || tables.has_levels() || tables.lanes().is_some();
        let arriving = tables.arriving(network);
        let homes = (0..network.terminal_count()).map(|terminal| network.injection_port(TerminalId(terminal)).0).collect();
        Self {
            classes: (says_lanes && lanes.len() > 1).then_some((classes, lanes.len() as u16)),
            words: (tables.router_count() as usize).div_ceil(64),
            tables,
            choice,
            arriving,
            homes,
        }
    }

    /// The tables.
    pub fn tables(&self) -> &ForwardingTables {
        &self.tables
    }

    /// How many ordered pairs of terminals have no path, and the first of them.
    pub fn unreachable(&self) -> (u64, Option<(TerminalId, TerminalId)>) {
        let (mut count, mut first) = (0, None);
        let terminals = || (0..self.homes.len() as u32).map(TerminalId);
        for source in terminals() {
            for destination in terminals().filter(|&destination| destination != source) {
                if !self.connects(source, destination) {
                    count += 1;
                    first = first.or(Some((source, destination)));
                }
            }
        }
        (count, first)
    }

    fn address(&self, destination: TerminalId, state: u32) -> u32 {
        self.tables.addresses(destination).start + (state >> LEVEL_BITS)
    }

    fn arrives(&self, router: RouterId, address: u32) -> bool {
        self.arriving[self.words * address as usize + router.index() / 64] & 1 << (router.index() % 64) != 0
    }

    /// The virtual channels of the channel by which a packet leaves.
    fn virtual_channels(&self, hop: &Hop, address: u32, state: u32, port: Port) -> Option<VirtualChannels> {
        let Some((classes, count)) = &self.classes else { return Some(hop.available) };
        let level = (state & ((1 << LEVEL_BITS) - 1)) as u8;
        let lane = match (self.tables.virtual_channel(hop.router, address), self.tables.lanes()) {
            (Some(lane), _) => lane,
            (None, Some(lanes)) => lanes.get(hop.router, hop.input, port)[usize::from(level)],
            (None, None) => level,
        };
        let is_dropped = !self.tables.names_virtual_channels() && lane == DROPPED;
        (!is_dropped).then(|| hop.available.class(classes[usize::from(lane)].into(), *count))
    }
}

impl Routing for TableRouting {
    fn facts(&self) -> RoutingFacts {
        let table_bytes = self.tables.bytes() + 8 * self.arriving.len() as u64;
        RoutingFacts {
            virtual_channels_required: self.classes.as_ref().map_or(1, |(_, count)| u32::from(*count)),
            reads: {
                let pairs = self.tables.has_levels() || self.choice == AddressChoice::Hash;
                Reads { source: pairs, input: self.tables.lanes().is_some(), virtual_channel: false, terminal: true }
            },
            is_deadlock_free: false,
            observes_congestion: false,
            table_bytes,
            build_peak_bytes: table_bytes,
            ..RoutingFacts::default()
        }
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        let home = self.homes[source.index()];
        let addresses = self.tables.addresses(destination);
        let last = if self.choice == AddressChoice::First { addresses.end.min(addresses.start + 1) } else { addresses.end };
        !addresses.is_empty() && (addresses.start..last).all(|address| self.arrives(home, address))
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        let addresses = self.tables.addresses(destination);
        let offset = match (self.choice, addresses.len() as u32) {
            (_, 0 | 1) | (AddressChoice::First, _) => 0,
            (AddressChoice::Random, count) => choice.uniform(count),
            (AddressChoice::Hash, count) => pair_hash(source, destination) % count,
        };
        let level = u32::from(self.tables.level(source, addresses.start + offset)) & ((1 << LEVEL_BITS) - 1);
        offset << LEVEL_BITS | level
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        let addresses = self.tables.addresses(destination);
        let is_plain = self.classes.is_none() && self.tables.address_count() as usize == self.homes.len();
        is_plain.then(|| self.tables.port(router, addresses.start)).flatten()
    }

    fn route(&self, hop: &Hop, state: &mut u32, _choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let address = self.address(hop.destination, *state);
        let Some(port) = self.tables.port(hop.router, address) else { return };
        let range = self.virtual_channels(hop, address, *state, port);
        candidates.extend(range.map(|range| Candidate::new(port, range)));
    }
}

/// Pairs spread over the addresses.
fn pair_hash(source: TerminalId, destination: TerminalId) -> u32 {
    (split_mix(u64::from(source.0) << 32 | u64::from(destination.0)) >> 32) as u32
}
