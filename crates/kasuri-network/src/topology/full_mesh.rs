//! Full mesh: every router is linked to every other.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The complete graph. Ports: the other routers in ascending order, the router itself skipped; then the terminals.
///
/// Terminal `t` sits on router `t / concentration`. Attributes: `terminal_digits = [routers]`, `full_mesh` = [routers,
/// concentration], `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FullMesh {
    /// Routers, at least 2.
    pub routers: u32,
    /// Terminals on each router.
    #[serde(default = "one")]
    pub concentration: u32,
}

fn one() -> u32 {
    1
}

impl Member for FullMesh {
    const NAME: &'static str = "full-mesh";
    const SUMMARY: &'static str = "every router linked to every other";
    const SOURCE: &'static str = "Dally and Towles (2004), section 1.2: the fully connected network";
    const EXAMPLE: &'static str = "routers = 5\nconcentration = 2";
}

impl Topology for FullMesh {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        self.check()?;
        context.channels.check(1)?;
        let mut builder = NetworkBuilder::new(format!("full-mesh {} x {}", self.routers, self.concentration));
        let first_terminal_port = self.routers as usize - 1;
        for _ in 0..self.routers {
            builder.add_router(first_terminal_port + self.concentration as usize)?;
        }
        for low in 0..self.routers {
            for high in low + 1..self.routers {
                // Each skips itself: the higher router's number is one more than its port on the lower router.
                let (at_low, at_high) = ((RouterId(low), (high - 1) as Port), (RouterId(high), low as Port));
                builder.add_link(at_low, at_high, context.channels.link(0));
            }
        }
        for router in 0..self.routers {
            for terminal in 0..self.concentration {
                let port = (first_terminal_port + terminal as usize) as Port;
                builder.add_terminal(RouterId(router), port, context.channels.terminal_link());
            }
        }
        builder.set_attribute("terminal_digits", vec![self.routers]);
        builder.set_attribute("full_mesh", vec![self.routers, self.concentration]);
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

impl FullMesh {
    fn check(&self) -> Result<(), NetworkError> {
        if self.routers < 2 {
            return Err(NetworkError::parameter("routers", format!("is {}; a full mesh has at least 2 routers", self.routers)));
        }
        if self.concentration == 0 {
            return Err(NetworkError::parameter("concentration", "is 0; each router needs at least 1 terminal"));
        }
        Ok(())
    }
}
