//! Mesh of any number of dimensions, with a radix for each.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// A grid of routers, each linked to its neighbours in every dimension.
///
/// Router number = sum of coordinate(d) x product of the radices below d: dimension 0 varies fastest. Ports: `2d` towards the
/// next higher coordinate of dimension `d`, `2d + 1` towards the lower, then the terminals.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// Routers in each dimension, for example `[8, 8]`; each at least 2.
    pub dimensions: Vec<u32>,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

impl Member for Mesh {
    const NAME: &'static str = "mesh";
    const SUMMARY: &'static str = "k-ary n-mesh, a radix for each dimension";
    const SOURCE: &'static str = "Dally and Towles, Principles and Practices of Interconnection Networks (2004), chapter 5";
    const EXAMPLE: &'static str = "dimensions = [4, 3]";
}

impl Topology for Mesh {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        build_grid("mesh", &self.dimensions, self.concentration, context, Wrap::No)
    }
}

/// Does each dimension close into a ring?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrap {
    /// A torus.
    Yes,
    /// A mesh.
    No,
}

/// Builds a mesh or a torus. Labels: routers `coordinate.0`, `coordinate.1`, …; attributes `dimensions`, `wrap` (0 or 1).
pub(super) fn build_grid(
    name: &str,
    dimensions: &[u32],
    concentration: u32,
    context: &BuildContext<'_>,
    wrap: Wrap,
) -> Result<Network, NetworkError> {
    check_grid(dimensions, concentration)?;
    context.channels.check(dimensions.len())?;
    let mut builder = NetworkBuilder::new(format!("{name} {dimensions:?}"));
    let routers: u32 = dimensions.iter().product();
    let first_terminal_port = 2 * dimensions.len();
    for _ in 0..routers {
        builder.add_router(first_terminal_port + concentration as usize)?;
    }
    let mut stride = 1;
    for (dimension, &radix) in dimensions.iter().enumerate() {
        let coordinates: Vec<u32> = (0..routers).map(|router| router / stride % radix).collect();
        for router in 0..routers {
            let here = coordinates[router as usize];
            if here + 1 < radix || wrap == Wrap::Yes {
                let next = router - here * stride + (here + 1) % radix * stride;
                let (up, down) = (2 * dimension as Port, 2 * dimension as Port + 1);
                builder.add_link((RouterId(router), up), (RouterId(next), down), context.channels.link(dimension));
            }
        }
        builder.label_routers(format!("coordinate.{dimension}"), coordinates);
        stride *= radix;
    }
    for router in 0..routers {
        for terminal in 0..concentration {
            let port = first_terminal_port as Port + terminal as Port;
            builder.add_terminal(RouterId(router), port, context.channels.terminal_link());
        }
    }
    builder.set_attribute("dimensions", dimensions.to_vec());
    builder.set_attribute("wrap", vec![u32::from(wrap == Wrap::Yes)]);
    builder.finish()
}

fn check_grid(dimensions: &[u32], concentration: u32) -> Result<(), NetworkError> {
    if dimensions.is_empty() {
        return Err(NetworkError::parameter("dimensions", "is empty; give the routers of each dimension, e.g. [8, 8]"));
    }
    if let Some(&radix) = dimensions.iter().find(|&&radix| radix < 2) {
        return Err(NetworkError::parameter(
            "dimensions",
            format!("{dimensions:?} holds {radix}; each dimension needs at least 2 routers"),
        ));
    }
    if concentration == 0 {
        return Err(NetworkError::parameter("concentration", "is 0; each router needs at least 1 terminal"));
    }
    let routers = dimensions.iter().try_fold(1u32, |product, &radix| product.checked_mul(radix));
    if routers.and_then(|routers| routers.checked_mul(concentration)).is_none_or(|terminals| terminals > 1 << 28) {
        return Err(NetworkError::TooLarge(format!("{dimensions:?} with {concentration} terminals a router; the limit is 2^28 terminals")));
    }
    Ok(())
}
