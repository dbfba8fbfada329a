//! Rows before columns on a HammingMesh.

use super::choice::Choice;
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Along the row to the destination's column, then along the column: within a board from accelerator to accelerator, to another board by its
/// nearer edge, through the switch, and in at the edge that is nearer to the destination. Equally near edges are drawn.
///
/// The class of virtual channels is the number of switches that the packet has crossed: three classes, in each of which paths go along rows
/// before columns, so that no cycle can close.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HxMeshOrder {}

impl Member for HxMeshOrder {
    const NAME: &'static str = "hxmesh-order";
    const SUMMARY: &'static str = "HammingMesh: along the row, then along the column, by the nearer edges of boards";
    const SOURCE: &'static str =
        "Hoefler et al., HammingMesh, SC22, section III; classes by switches crossed: Gunther, IEEE Trans. Commun. 29 (1981)";
    const EXAMPLE: &'static str = "";
}

/// Classes: no switch, a row switch or a column switch, both.
const CLASSES: u16 = 3;

impl RoutingAlgorithm for HxMeshOrder {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let Some(&[a, b, x, y]) = network.labels().attribute("hxmesh") else {
            let (network, problem) = (network.name().to_owned(), "it needs a HammingMesh (topology hxmesh)".to_owned());
            return Err(RoutingError::Mismatch { routing: Self::NAME, network, problem });
        };
        let homes = (0..network.terminal_count()).map(|terminal| network.ejection_port(TerminalId(terminal))).collect();
        Ok(Box::new(Compiled { boards: [a, b], columns: a * x, rows: b * y, homes }))
    }
}

#[derive(Debug)]
struct Compiled {
    /// Columns and rows of a board.
    boards: [u32; 2],
    columns: u32,
    rows: u32,
    homes: Vec<(RouterId, Port)>,
}

/// Where a router stands.
enum Place {
    /// At a column and a row.
    Accelerator([u32; 2]),
    /// Between the boards of a row (0) or a column (1).
    Switch(usize),
}

impl Compiled {
    fn place(&self, router: RouterId) -> Place {
        match router.0.checked_sub(self.columns * self.rows) {
            None => Place::Accelerator(self.coordinates(router)),
            Some(switch) => Place::Switch(usize::from(switch >= self.rows)),
        }
    }

    fn coordinates(&self, router: RouterId) -> [u32; 2] {
        [router.0 % self.columns, router.0 / self.columns]
    }

    /// The end of a board (0 low, 1 high) that is nearer to a place on it.
    fn nearer_end(&self, dimension: usize, at: u32, choice: &mut dyn Choice) -> u32 {
        let length = self.boards[dimension];
        let (low, high) = (at % length, length - 1 - at % length);
        match low.cmp(&high) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Equal => choice.uniform(2),
        }
    }
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: CLASSES.into(),
            reads: Reads::DESTINATION_ROUTER,
            observes_congestion: false,
            ..RoutingFacts::default()
        }
    }

    /// The state is the number of switches crossed. With fewer virtual channels than classes the last ones share.
    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, eject) = self.homes[hop.destination.index()];
        if router == hop.router {
            candidates.push(Candidate::new(eject, hop.available));
            return;
        }
        let to = self.coordinates(router);
        let port = match self.place(hop.router) {
            Place::Switch(dimension) => {
                *state += 1;
                2 * (to[dimension] / self.boards[dimension]) + self.nearer_end(dimension, to[dimension], choice)
            }
            Place::Accelerator(at) => {
                let dimension = usize::from(at[0] == to[0]);
                let length = self.boards[dimension];
                let upwards = if at[dimension] / length == to[dimension] / length {
                    to[dimension] > at[dimension]
                } else {
                    self.nearer_end(dimension, at[dimension], choice) == 1
                };
                // East, west, north, south.
                2 * dimension as u32 + u32::from(!upwards)
            }
        };
        let classes = CLASSES.min(hop.available.count());
        let class = (*state as u16).min(classes.saturating_sub(1));
        candidates.push(Candidate::new(port as Port, hop.available.class(class, classes.max(1))));
    }
}
