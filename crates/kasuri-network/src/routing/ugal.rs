//! Universal globally-adaptive load-balanced routing, by what the source's router sees.

use super::choice::{Choice, CongestionView};
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::detour::{Detours, Leg, Stage};
use super::hop::{Candidate, Hop};
use super::shortest::{Classes, MinimalTie};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Chooses at the source's router between a shortest path and one by way of an intermediate place drawn at random, as `valiant`
/// takes it: the shortest path, unless q H > q' H' + `threshold`, where H and H' are the hops of both, and q and q' the flits
/// that wait for the ports by which they begin (UGAL-L: no knowledge of other routers).
///
/// Virtual-channel classes are those of `valiant`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ugal {
    /// Which of several shortest paths, on all paths.
    #[serde(default)]
    pub tie: MinimalTie,
    /// How the virtual channels are divided among the hops.
    #[serde(default)]
    pub classes: Classes,
    /// A packet takes the other path if flits times hops are greater for the shortest path by more than this number.
    #[serde(default)]
    pub threshold: u32,
}

impl Member for Ugal {
    const NAME: &'static str = "ugal";
    const SUMMARY: &'static str = "any network: minimal or Valiant's path, by the queues at the source's router";
    const SOURCE: &'static str = "Singh, Load-Balanced Routing in Interconnection Networks, Stanford (2005), chapter 5; UGAL-L: Kim, Dally, Scott and \
                                  Abts, ISCA 2008, section 4.1";
    const EXAMPLE: &'static str = "threshold = 0";
}

impl RoutingAlgorithm for Ugal {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let detours = Detours::find(Self::NAME, network, self.tie, self.classes, true)?;
        Ok(Box::new(Compiled { tie: self.tie, threshold: self.threshold.into(), detours }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        Detours::most_bytes(network, true)
    }
}

#[derive(Debug)]
struct Compiled {
    tie: MinimalTie,
    threshold: i64,
    detours: Detours,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: self.detours.classes.count,
            reads: self.tie.reads(),
            is_deadlock_free: self.detours.is_safe,
            searches_paths: true,
            table_bytes: self.detours.bytes(),
            build_peak_bytes: self.detours.build_peak_bytes(),
            ..RoutingFacts::default()
        }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let stage = Stage::unpack(*state);
        let stage = if stage.leg == Leg::Undecided {
            self.decide(hop, choice, candidates)
        } else {
            self.detours.advance(hop, stage, choice, candidates)
        };
        *state = stage.pack();
    }
}

impl Compiled {
    /// The first hop.
    fn decide(&self, hop: &Hop, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) -> Stage {
        let straight = Stage::new(Leg::Onward);
        let Some(direct) = self.detours.port_onward(hop, choice) else {
            return self.detours.advance(hop, straight, choice, candidates);
        };
        let place = choice.uniform(self.detours.places);
        let Some(out) = self.detours.port_out(hop, place, choice) else {
            return self.detours.take(hop, straight, direct, candidates);
        };
        let hops = self.detours.hops(hop.router, hop.destination);
        let hops_by = self.detours.hops_by(hop.router, out, place, hop.destination);
        let paths = [(direct, hops, 0), (out, hops_by, self.threshold)];
        // Twice the product, and 1 more for the detour: equal products are no tie, but speak for the shortest path.
        let cost = |view: &dyn CongestionView, path: u32| {
            let (port, hops, threshold) = paths[path as usize];
            2 * (i64::from(view.occupied(port, hop.available)) * i64::from(hops) + threshold) + i64::from(path)
        };
        let path = choice.least(2, &cost);
        let stage = if path == 0 { straight } else { Stage::new(Leg::Out(place)) };
        self.detours.take(hop, stage, paths[path as usize].0, candidates)
    }
}
