//! The links of a cluster and the paths through it, by numbers alone.

use kasuri_workload::execution::cluster::{Cluster, Topology};
use std::collections::BTreeMap;

/// In the place of an NPU: any, where each has the same on its link.
pub(super) const ANY: u32 = u32::MAX;

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The NPU from which it leads; of a link from a switch, the one to which.
    pub npu: u32,
    /// Its dimension.
    pub dimension: u32,
    /// Up a ring 0 and down 1; to a switch 0 and from it 1; between each and each, how many places further it leads, less 1.
    pub number: u32,
}

/// Bytes by link.
pub(super) type Loads = BTreeMap<Link, f64>;

/// A message on an idle network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) latency_ns: f64,
    /// Of the slowest link.
    pub(super) bytes_per_ns: f64,
}

/// The network of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links<'a>(pub(super) &'a Cluster);

impl Links<'_> {
    /// The path of a message, one dimension after the other and the shorter way round a ring, upwards where both are equal, and each link of it.
    pub(super) fn path(self, source: u32, destination: u32, each: &mut dyn FnMut(Link)) -> Path {
        let (mut path, mut at, mut stride) = (Path { latency_ns: 0.0, bytes_per_ns: f64::INFINITY }, source, 1);
        for (dimension, of) in (0..).zip(&self.0.dimensions) {
            let (size, here) = (of.npus, at / stride % of.npus);
            let up = (destination / stride % size + size - here) % size;
            let moved = |places: u32| at - here * stride + (here + places) % size * stride;
            let mut link = |npu: u32, number: u32| each(Link { npu, dimension, number });
            let hops = match of.topology {
                _ if up == 0 => 0,
                Topology::Ring if 2 * up <= size => {
                    (0..up).for_each(|places| link(moved(places), 0));
                    up
                }
                Topology::Ring => {
                    (0..size - up).for_each(|places| link(moved(size - places), 1));
                    size - up
                }
                Topology::FullyConnected => {
                    link(at, up - 1);
                    1
                }
                Topology::Switch => {
                    link(at, 0);
                    link(moved(up), 1);
                    2
                }
            };
            if hops > 0 {
                path.latency_ns += f64::from(hops) * of.latency_ns;
                path.bytes_per_ns = path.bytes_per_ns.min(of.bytes_per_ns());
            }
            at = moved(up);
            stride *= size;
        }
        path
    }

    /// How long a link is busy with so many bytes, in nanoseconds.
    pub(super) fn busy_ns(self, link: Link, bytes: f64) -> f64 {
        bytes / self.0.dimensions[link.dimension as usize].bytes_per_ns()
    }

    /// The busiest link, and how long it is busy.
    pub(super) fn busiest(self, loads: &Loads) -> Option<(Link, f64)> {
        let all = loads.iter().map(|(&link, &bytes)| (link, self.busy_ns(link, bytes)));
        all.reduce(|most, next| if next.1 > most.1 { next } else { most })
    }
}
