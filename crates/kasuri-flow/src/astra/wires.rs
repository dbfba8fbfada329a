//! The network between the NPUs: how long a message takes, and its links where messages wait for each other.

use super::Backend;
use kasuri_workload::execution::cluster::{Cluster, Dimension, Topology};
use kasuri_workload::execution::trace::whole_ns;

/// Nobody.
pub(super) const NONE: u32 = u32::MAX;

/// A link in one direction, and the messages that wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) busy: bool,
    pub(super) first: u32,
    pub(super) last: u32,
}

const IDLE: Link = Link { busy: false, first: NONE, last: NONE };

/// Where a message goes next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Route {
    /// The device at which it is: an NPU, or the switch behind its first link.
    pub(super) at: u32,
    /// Links still to go; below 0 where they go down a ring.
    pub(super) links: i32,
}

/// The network.
#[derive(Debug)]
pub(super) struct Wires {
    dimensions: Vec<Dimension>,
    npus: u32,
    /// One NPU stands for all.
    alike: bool,
    /// Two for each NPU: up and down a ring, to and from the switch.
    links: Vec<Link>,
    /// Between each and each, for the NPUs that have sent.
    pairs: Vec<Vec<Link>>,
    /// The size that was asked for last, with its times.
    known: (u64, u64, u64),
}

impl Wires {
    /// # Errors
    /// What ASTRA-sim stops at.
    pub(super) fn new(cluster: &Cluster, backend: Backend, alike: bool) -> Result<Self, String> {
        let npus = cluster.npus();
        let mut wires =
            Self { dimensions: cluster.dimensions.clone(), npus, alike, links: Vec::new(), pairs: Vec::new(), known: (0, 0, 0) };
        if backend == Backend::Unaware {
            return Ok(wires);
        }
        let [dimension] = cluster.dimensions.as_slice() else {
            return Err("ASTRA-sim's congestion-aware backend has networks of one dimension only; use --backend unaware".to_owned());
        };
        let own = if alike { 1 } else { npus as usize };
        match dimension.topology {
            Topology::Ring if npus == 2 => {
                return Err(
                    "ASTRA-sim's congestion-aware backend stops by an assertion at a Ring of 2 NPUs: both links are the same".to_owned()
                );
            }
            Topology::FullyConnected if npus > 1 << 15 => {
                return Err(format!("a FullyConnected network of {npus} NPUs has more links than are simulated (at most 32768 NPUs)"));
            }
            Topology::FullyConnected => wires.pairs = vec![Vec::new(); own],
            _ => wires.links = vec![IDLE; 2 * own],
        }
        Ok(wires)
    }

    /// Without contention: how long a message takes from one NPU to another.
    ///
    /// # Errors
    /// The time is too long to be simulated.
    pub(super) fn delay(&self, source: u32, destination: u32, bytes: u64) -> Result<u64, String> {
        let (mut from, mut to) = (source, destination);
        for dimension in &self.dimensions {
            let (one, other) = (from % dimension.npus, to % dimension.npus);
            if one != other {
                let hops = match dimension.topology {
                    Topology::FullyConnected => 1,
                    Topology::Switch => 2,
                    Topology::Ring => one.abs_diff(other).min(dimension.npus - one.abs_diff(other)),
                };
                return whole_ns(f64::from(hops) * dimension.latency_ns + bytes as f64 / dimension.bytes_per_ns());
            }
            (from, to) = (from / dimension.npus, to / dimension.npus);
        }
        Ok(0)
    }

    /// How long a message occupies a link, and when it is at the other end.
    ///
    /// # Errors
    /// The time is too long to be simulated.
    pub(super) fn times(&mut self, bytes: u64) -> Result<(u64, u64), String> {
        if self.known.0 != bytes {
            let dimension = &self.dimensions[0];
            let serial = bytes as f64 / dimension.bytes_per_ns();
            self.known = (bytes, whole_ns(serial)?, whole_ns(dimension.latency_ns + serial)?);
        }
        Ok((self.known.1, self.known.2))
    }

    /// The way of a message from one NPU to another, if there is one.
    pub(super) fn route(&self, source: u32, destination: u32) -> Option<Route> {
        let up = (destination + self.npus - source) % self.npus;
        let links = match self.dimensions[0].topology {
            Topology::Switch => 2,
            _ if up == 0 => return None,
            Topology::FullyConnected => 1,
            Topology::Ring if self.npus - up < up => -((self.npus - up) as i32),
            Topology::Ring => up as i32,
        };
        Some(Route { at: source, links })
    }

    /// The next link of a message, by its number.
    pub(super) fn next_link(&mut self, route: Route, destination: u32) -> u32 {
        let own = if self.alike { 0 } else { route.at };
        match self.dimensions[0].topology {
            Topology::Ring => 2 * own + u32::from(route.links < 0),
            Topology::Switch if route.links == 2 => 2 * own,
            Topology::Switch => 2 * if self.alike { 0 } else { destination } + 1,
            Topology::FullyConnected => {
                let row = &mut self.pairs[own as usize];
                if row.is_empty() {
                    row.resize(self.npus as usize, IDLE);
                }
                own * self.npus + destination
            }
        }
    }

    pub(super) fn link(&mut self, number: u32) -> &mut Link {
        if self.pairs.is_empty() {
            &mut self.links[number as usize]
        } else {
            &mut self.pairs[(number / self.npus) as usize][(number % self.npus) as usize]
        }
    }

    /// The way that is left behind one link.
    pub(super) fn behind(&self, route: Route) -> Route {
        match self.dimensions[0].topology {
            Topology::Ring if route.links < 0 => {
                Route { at: if route.at == 0 { self.npus - 1 } else { route.at - 1 }, links: route.links + 1 }
            }
            Topology::Ring => Route { at: if route.at + 1 == self.npus { 0 } else { route.at + 1 }, links: route.links - 1 },
            _ => Route { at: route.at, links: route.links - 1 },
        }
    }
}
