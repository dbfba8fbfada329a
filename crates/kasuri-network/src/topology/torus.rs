//! Torus of any number of dimensions, with a radix for each.

use super::contract::{BuildContext, Topology};
use super::mesh::{Wrap, build_grid};
use crate::network::{Network, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// A mesh whose every dimension closes into a ring. Routers and ports are numbered as in a mesh.
///
/// A dimension of radix 2 is a ring of two routers with two links between them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Torus {
    /// Routers in each dimension, for example `[8, 8]`; each at least 2.
    pub dimensions: Vec<u32>,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

impl Member for Torus {
    const NAME: &'static str = "torus";
    const SUMMARY: &'static str = "k-ary n-cube, a radix for each dimension";
    const SOURCE: &'static str = "Dally and Towles, Principles and Practices of Interconnection Networks (2004), chapter 5";
    const EXAMPLE: &'static str = "dimensions = [4, 3]";
}

impl Topology for Torus {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        build_grid("torus", &self.dimensions, self.concentration, context, Wrap::Yes)
    }
}
