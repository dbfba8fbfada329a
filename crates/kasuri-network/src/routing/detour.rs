//! Routes of two shortest paths, by way of an intermediate router or group: what `valiant` and `ugal` share.

use super::choice::Choice;
use super::contract::RoutingError;
use super::hop::{Candidate, Hop};
use super::metric::Metric;
use super::shortest::{Classes, HopClasses, MinimalTie, Progress, Shortest, no_path, places_at_router};
use super::table::{Destination, Destinations};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};
use std::sync::Arc;

/// Shortest paths to all intermediate places and on to all destinations.
#[derive(Debug)]
pub(super) struct Detours {
    network: Arc<Network>,
    destinations: Destinations,
    /// To the router of each destination.
    onward: Shortest,
    /// To each group, where the routers have groups; otherwise the intermediate places are the routers of the destinations.
    to_group: Option<Shortest>,
    /// The number of intermediate places.
    pub(super) places: u32,
    tie: MinimalTie,
    terminal_places: Vec<u32>,
    pub(super) classes: HopClasses,
    pub(super) is_safe: bool,
}

/// What a packet has done so far; its 32 bits of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) leg: Leg,
    progress: Progress,
}

/// Where a packet is heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    /// Not decided yet.
    Undecided,
    /// To this intermediate place.
    Out(u32),
    /// To its destination.
    Onward,
}

/// Bits of an intermediate place's number.
const PLACE_BITS: u32 = 30 - Progress::BITS;

impl Stage {
    /// A packet that has made no hop.
    pub(super) fn new(leg: Leg) -> Self {
        Self { leg, progress: Progress::default() }
    }

    pub(super) fn pack(self) -> u32 {
        let (kind, place) = match self.leg {
            Leg::Undecided => (0, 0),
            Leg::Out(place) => (1, place),
            Leg::Onward => (2, 0),
        };
        kind << 30 | self.progress.pack() << PLACE_BITS | place
    }

    pub(super) fn unpack(state: u32) -> Self {
        let progress = Progress::unpack(state >> PLACE_BITS & ((1 << Progress::BITS) - 1));
        let leg = match state >> 30 {
            0 => Leg::Undecided,
            1 => Leg::Out(state & ((1 << PLACE_BITS) - 1)),
            _ => Leg::Onward,
        };
        Self { leg, progress }
    }
}

impl Detours {
    /// Finds the paths. `routing` is the routing's name, for messages; `keep_hops` if [`Self::hops`] will be asked.
    pub(super) fn find(
        routing: &'static str,
        network: &Arc<Network>,
        tie: MinimalTie,
        classes: Classes,
        keep_hops: bool,
    ) -> Result<Self, RoutingError> {
        let destinations = Destinations::of(network);
        let routers: Vec<_> = destinations.routers.iter().map(|router| vec![router.0]).collect();
        let find = |targets: &[Vec<u32>]| Shortest::find(network, Metric::InnerFirst, targets, keep_hops);
        let onward = find(&routers).map_err(|(source, column)| {
            let destination = destinations.terminals.iter().position(|place| place.column as usize == column).unwrap_or_default();
            no_path(routing, network, source, &network.terminal_name(TerminalId(destination as u32)))
        })?;
        check_returns(routing, network, &destinations, &onward)?;
        let groups = groups(network);
        let to_group = groups
            .as_deref()
            .map(find)
            .transpose()
            .map_err(|(source, group)| no_path(routing, network, source, &format!("group {group}")))?;
        let places = groups.map_or(routers.len(), |groups| groups.len()) as u32;
        let hops_per_class = classes.hops_per_class(network);
        let parts = [to_group.as_ref().unwrap_or(&onward).diameter, onward.diameter];
        let classes = if classes == Classes::None { HopClasses::none() } else { HopClasses::new(hops_per_class, &parts) };
        check_size(routing, network, places, classes.count)?;
        let terminal_places = places_at_router(network);
        let is_safe = hops_per_class.is_some();
        Ok(Self { network: Arc::clone(network), destinations, onward, to_group, places, tie, terminal_places, classes, is_safe })
    }

    /// No tables of a network take more bytes than these while they are made.
    pub(super) fn most_bytes(network: &Network, keep_hops: bool) -> u64 {
        let bytes = |targets: u64| Shortest::most_bytes(network, Metric::InnerFirst, targets, keep_hops);
        bytes(Destinations::count(network)) + groups(network).map_or(0, |groups| bytes(groups.len() as u64))
    }

    /// Bytes that the tables took at most while they were made: the second, if there is one, while the first stands.
    pub(super) fn build_peak_bytes(&self) -> u64 {
        self.to_group.as_ref().map_or(0, |to_group| self.onward.bytes() + to_group.build_peak_bytes()).max(self.onward.build_peak_bytes())
    }

    /// Bytes of the tables.
    pub(super) fn bytes(&self) -> u64 {
        self.onward.bytes() + self.to_group.as_ref().map_or(0, Shortest::bytes)
    }

    pub(super) fn destination(&self, terminal: TerminalId) -> Destination {
        self.destinations.terminals[terminal.index()]
    }

    fn out(&self) -> &Shortest {
        self.to_group.as_ref().unwrap_or(&self.onward)
    }

    /// The port towards an intermediate place; `None` there.
    pub(super) fn port_out(&self, hop: &Hop, place: u32, choice: &mut dyn Choice) -> Option<Port> {
        self.tie.pick(self.out().ports(hop.router, place), hop, &self.terminal_places, choice)
    }

    /// The port towards the destination; `None` at its router.
    pub(super) fn port_onward(&self, hop: &Hop, choice: &mut dyn Choice) -> Option<Port> {
        let column = self.destination(hop.destination).column;
        self.tie.pick(self.onward.ports(hop.router, column), hop, &self.terminal_places, choice)
    }

    /// Takes the next hop of a packet that has decided. A packet that comes by its destination is delivered.
    pub(super) fn advance(&self, hop: &Hop, mut stage: Stage, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) -> Stage {
        let destination = self.destination(hop.destination);
        if destination.router == hop.router {
            candidates.push(Candidate::new(destination.port, hop.available));
            return stage;
        }
        if let Leg::Out(place) = stage.leg {
            match self.port_out(hop, place, choice) {
                Some(port) => return self.take(hop, stage, port, candidates),
                None => stage = Stage { leg: Leg::Onward, progress: self.classes.next_part(stage.progress) },
            }
        }
        match self.port_onward(hop, choice) {
            Some(port) => self.take(hop, stage, port, candidates),
            None => stage,
        }
    }

    /// Takes a port.
    pub(super) fn take(&self, hop: &Hop, stage: Stage, port: Port, candidates: &mut Vec<Candidate>) -> Stage {
        candidates.push(Candidate::new(port, self.classes.channels(hop.available, stage.progress)));
        Stage { progress: self.classes.after_hop(stage.progress), ..stage }
    }

    /// Hops straight to a terminal's router.
    pub(super) fn hops(&self, from: RouterId, destination: TerminalId) -> u32 {
        self.onward.hops(from, self.destination(destination).column)
    }

    /// Hops by way of a place that is left by the router at which a packet that leaves by `port` reaches it first, taking the
    /// lowest ports.
    pub(super) fn hops_by(&self, from: RouterId, port: Port, place: u32, destination: TerminalId) -> u32 {
        let next =
            |router: RouterId, port: Port| match self.network.output_channel(router, port).map(|channel| self.network.destination(channel))
            {
                Some(Endpoint::Router(next, _)) => next,
                _ => router,
            };
        let mut router = next(from, port);
        for _ in 0..self.out().hops(router, place) {
            router = self.out().ports(router, place).first().map_or(router, |&port| next(router, port));
        }
        self.out().hops(from, place) + self.hops(router, destination)
    }
}

/// The routers of each group, if the routers have groups.
fn groups(network: &Network) -> Option<Vec<Vec<u32>>> {
    let column = network.labels().router("group")?;
    let mut groups = vec![Vec::new(); column.iter().max().map_or(0, |&last| last as usize + 1)];
    column.iter().zip(0..).for_each(|(&group, router)| groups[group as usize].push(router));
    Some(groups)
}

/// Can packets go on from every router that delivers? In unidirectional networks they cannot.
fn check_returns(routing: &'static str, network: &Network, destinations: &Destinations, onward: &Shortest) -> Result<(), RoutingError> {
    let dead_end = |&router: &RouterId| {
        (0..).zip(&destinations.routers).any(|(column, &target)| target != router && onward.ports(router, column).is_empty())
    };
    let Some(router) = destinations.routers.iter().copied().find(dead_end) else { return Ok(()) };
    Err(RoutingError::Mismatch {
        routing,
        network: network.name().to_owned(),
        problem: format!("from router {router}, which could be intermediate, no path leads on to every terminal"),
    })
}

/// Does the state of a packet hold its place and class?
fn check_size(routing: &'static str, network: &Network, places: u32, classes: u32) -> Result<(), RoutingError> {
    let mismatch = |problem: String| Err(RoutingError::Mismatch { routing, network: network.name().to_owned(), problem });
    if places > 1 << PLACE_BITS {
        return mismatch(format!("it knows at most {} intermediate routers or groups, not {places}", 1 << PLACE_BITS));
    }
    if classes > 1 << (Progress::BITS / 2) {
        return mismatch(format!(
            "its longest routes need {classes} classes of virtual channels; the limit is {}",
            1 << (Progress::BITS / 2)
        ));
    }
    Ok(())
}
