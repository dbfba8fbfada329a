//! Valiant's routing: a shortest path to somewhere drawn at random, and from there to the destination.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::detour::{Detours, Leg, Stage};
use super::hop::{Candidate, Hop};
use super::shortest::{Classes, MinimalTie};
use crate::id::TerminalId;
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Sends each packet on a shortest path to an intermediate router, drawn from those with terminals, and from there on a shortest
/// path to its destination. So any traffic loads the channels as two phases of uniform traffic do.
///
/// On a network with groups (dragonfly) a group is drawn instead, and the packet turns to its destination at the first router
/// of that group. A packet that comes by its destination's router is delivered there, also before it has been at the
/// intermediate place.
///
/// Against deadlock the virtual channels are divided into classes that only rise, as `classes` says; the second path never uses
/// a class of the first. Slim fly needs 4 of them, dragonfly 5, MLFM, OFT, full mesh and fat trees 2, a flattened butterfly 2 for
/// each dimension. On other networks it promises nothing unless `classes = "hop"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Valiant {
    /// Which of several shortest paths, on both paths.
    #[serde(default)]
    pub tie: MinimalTie,
    /// How the virtual channels are divided among the hops.
    #[serde(default)]
    pub classes: Classes,
}

impl Member for Valiant {
    const NAME: &'static str = "valiant";
    const SUMMARY: &'static str = "any network: shortest paths by way of a random router (dragonfly: group)";
    const SOURCE: &'static str = "Valiant and Brebner, STOC 1981; Dally and Towles (2004), section 9.1; on dragonfly: Kim, Dally, Scott and Abts, ISCA \
                                  2008, section 4";
    const EXAMPLE: &'static str = "";
}

impl RoutingAlgorithm for Valiant {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let detours = Detours::find(Self::NAME, network, self.tie, self.classes, false)?;
        Ok(Box::new(Compiled { tie: self.tie, detours }))
    }

    fn most_table_bytes(&self, network: &Network) -> u64 {
        Detours::most_bytes(network, false)
    }
}

#[derive(Debug)]
struct Compiled {
    tie: MinimalTie,
    detours: Detours,
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: self.detours.classes.count,
            reads: self.tie.reads(),
            is_deadlock_free: self.detours.is_safe,
            searches_paths: true,
            observes_congestion: false,
            table_bytes: self.detours.bytes(),
            build_peak_bytes: self.detours.build_peak_bytes(),
            ..RoutingFacts::default()
        }
    }

    fn initial_state(&self, _source: TerminalId, _destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        Stage::new(Leg::Out(choice.uniform(self.detours.places))).pack()
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        *state = self.detours.advance(hop, Stage::unpack(*state), choice, candidates).pack();
    }
}
