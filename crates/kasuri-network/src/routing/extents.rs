//! How far the routes of a network reach, for estimates of what it takes to walk them.

use super::contract::Routing;
use super::hop::VirtualChannels;
use super::walk::{MANY_PLACES, Place, Routes, Step, Walker};
use crate::network::Network;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many parts the routes to a destination have, and for how many destinations there are such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Places on the way to one destination, at most, as far as two of them tell.
    pub places: u64,
    /// Steps between them.
    pub steps: u64,
    /// Groups of sources whose routes are the same.
    pub groups: u64,
    /// Destinations whose routes differ in more than their last channel.
    pub destinations: u64,
    /// Ranges of virtual channels that steps offer.
    pub ranges: u64,
    /// Bytes that such a walk takes at most.
    pub walk_bytes: u64,
}

/// Bytes of what finds a place again.
const PLACE_BYTES: u64 = 40;

/// The extents of routings that were asked for, the last one first.
#[derive(Debug, Default)]
pub struct Extents {
    known: Vec<(Asked, Extent)>,
}

/// Of what an extent is.
#[derive(Clone, Debug)]
struct Asked {
    network: Arc<Network>,
    routing: Arc<dyn Routing>,
    available: VirtualChannels,
    most_places: u64,
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.network, &other.network) && Arc::ptr_eq(&self.routing, &other.routing);
        same && self.available == other.available && self.most_places == other.most_places
    }
}

/// So many are remembered: the points of a sweep that follow each other have mostly the same.
const KEPT: usize = 4;

impl Extents {
    /// The extent of the routes that packets take which may use these virtual channels: those to two of the destinations are walked, as far
    /// as somebody walks them who samples them where they have more places than `most_places`.
    pub fn of(&mut self, network: &Arc<Network>, routing: &Arc<dyn Routing>, available: VirtualChannels, most_places: u64) -> Extent {
        let asked = Asked { network: Arc::clone(network), routing: Arc::clone(routing), available, most_places };
        if let Some((_, extent)) = self.known.iter().find(|(known, _)| *known == asked) {
            return *extent;
        }
        let extent = extent(&asked);
        self.known.insert(0, (asked, extent));
        self.known.truncate(KEPT);
        extent
    }
}

fn extent(asked: &Asked) -> Extent {
    let most_places = usize::try_from(asked.most_places).unwrap_or(usize::MAX);
    let mut walker = Walker::new(&asked.network, asked.routing.as_ref(), asked.available).with_most_places(most_places);
    let destinations = walker.destinations();
    let mut extent = Extent { groups: walker.group_count() as u64, destinations: destinations.len() as u64, ..Extent::default() };
    let mut routes = Routes::default();
    let mut ranges = BTreeSet::new();
    let is_small = most_places < MANY_PLACES;
    for place in [0, destinations.len() / 2] {
        let Some(&destination) = destinations.get(place) else { continue };
        // What does not arrive is told by those who walk for the sake of the answer.
        let fits = if is_small { walker.glance(destination, &mut routes) } else { walker.walk(destination, &mut routes).map(|()| true) };
        extent.places = extent.places.max(routes.places.len() as u64);
        extent.steps = extent.steps.max(routes.steps.len() as u64);
        ranges.extend(routes.steps.iter().map(|step| (step.virtual_channels.begin, step.virtual_channels.end)));
        if fits == Ok(false) {
            // The sample that is walked then has about as many.
            extent.places = extent.places.max(asked.most_places);
            extent.steps = extent.steps.max(asked.most_places);
        }
    }
    extent.ranges = ranges.len().max(1) as u64;
    let least = extent.places * (size_of::<Place>() as u64 + PLACE_BYTES) + extent.steps * size_of::<Step>() as u64;
    extent.walk_bytes = (walker.bytes() + routes.bytes()).max(least);
    extent
}
