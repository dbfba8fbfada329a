//! Several equal networks side by side, with a port of every terminal in each.

use super::contract::{BuildContext, Topology};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::terminal_ports::OF_PLANE;
use crate::network::{Endpoint, Network, NetworkBuilder, NetworkError};
use crate::registry::{Entry, Member, find};
use schemars::JsonSchema;
use serde::Deserialize;

/// `planes` equal networks of the topology `of`, whose keys stand beside these; port i of every terminal is in plane i. No link joins planes: a
/// packet stays in the plane in which it was injected.
///
/// Router number = plane x routers of a plane + its number in the plane; ports as in the plane.
///
/// Labels: routers `plane` and those of the topology; attributes `planes` = [planes, routers of a plane]; where the topology has them,
/// `terminal_digits` and `hops_per_class`; and all of its own with `plane.` before the name.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct Planes {
    /// How many, at least 2.
    pub planes: u32,
    /// The topology of a plane.
    pub of: String,
    /// The keys of that topology.
    #[serde(flatten)]
    #[schemars(skip)]
    pub keys: toml::Table,
}

/// The most planes.
const MOST: u32 = 256;

impl Member for Planes {
    const NAME: &'static str = "planes";
    const SUMMARY: &'static str = "equal networks side by side, each with a port of every terminal";
    const SOURCE: &'static str = "planes of InfiniBand and Ethernet fabrics; Hoefler et al., HammingMesh, SC22, section III, uses four";
    const EXAMPLE: &'static str = "planes = 2\nof = \"leaf-spine\"\nleaves = 2\nspines = 2\ndown = 2";
    const WRAPS: Option<&'static str> = Some("of");

    /// Its own: a structure that takes any key does not tell them.
    fn keys() -> &'static [&'static str] {
        &["planes", "of"]
    }
}

impl Planes {
    /// Builds the copies of one of these topologies.
    pub(super) fn build_of(&self, topologies: &[Entry<dyn Topology>], context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        if !(2..=MOST).contains(&self.planes) {
            return Err(NetworkError::parameter("planes", format!("is {}; it must be from 2 to {MOST}", self.planes)));
        }
        let entry = find(topologies, &self.of).filter(|entry| entry.name != Self::NAME);
        let Some(entry) = entry else {
            let names: Vec<&str> = topologies.iter().map(|entry| entry.name).filter(|&name| name != Self::NAME).collect();
            let problem = format!("is \"{}\"; it must be a topology that is built by a rule: {}", self.of, names.join(", "));
            return Err(NetworkError::parameter("of", problem));
        };
        let base = (entry.parse)(self.keys.clone()).map_err(|error| NetworkError::parameter("of", error.message().trim().to_owned()))?;
        self.copies(&base.build(context)?)
    }

    fn copies(&self, base: &Network) -> Result<Network, NetworkError> {
        let routers = base.router_count();
        let mut builder = NetworkBuilder::new(format!("{} planes of {}", self.planes, base.name()));
        for router in (0..self.planes).flat_map(|_| (0..routers).map(RouterId)) {
            builder.add_router(base.port_count(router) as usize)?;
        }
        let at = |plane: u32, (router, port): (RouterId, Port)| (RouterId(plane * routers + router.0), port);
        for terminal in (0..base.terminal_count()).map(TerminalId) {
            if base.injection_port(terminal) != base.ejection_port(terminal) {
                let problem = format!(
                    "is \"{}\", whose terminals send to one router and are served by another; planes need one port for both",
                    self.of
                );
                return Err(NetworkError::parameter("of", problem));
            }
            let (router, port) = base.injection_port(terminal);
            builder.add_terminal(router, port, base.link(base.injection_channel(terminal)));
        }
        for plane in 0..self.planes {
            for (terminal, router, port) in base.further_homes() {
                let (router, port) = at(plane, (router, port));
                builder.add_home(terminal, router, port);
            }
            for terminal in (0..base.terminal_count()).map(TerminalId).filter(|_| plane > 0) {
                let (router, port) = at(plane, base.injection_port(terminal));
                builder.add_home(terminal, router, port);
            }
            for channel in base.router_channels() {
                if let (Endpoint::Router(from, out), Endpoint::Router(to, into)) = (base.source(channel), base.destination(channel)) {
                    builder.add_channel(at(plane, (from, out)), at(plane, (to, into)), base.link(channel));
                }
            }
        }
        let labels = base.labels();
        for name in labels.router_names() {
            let column = labels.router(name).unwrap_or_default();
            builder.label_routers(name, column.repeat(self.planes as usize));
        }
        // What else a topology says of the whole holds of one plane only.
        for name in ["terminal_digits", "hops_per_class"] {
            labels.attribute(name).into_iter().for_each(|values| builder.set_attribute(name, values.to_vec()));
        }
        for name in labels.attribute_names() {
            builder.set_attribute(format!("{OF_PLANE}{name}"), labels.attribute(name).unwrap_or_default().to_vec());
        }
        builder.label_routers("plane", (0..self.planes * routers).map(|router| router / routers).collect());
        builder.set_attribute("planes", vec![self.planes, routers]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles, TOPOLOGIES};

    const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

    fn parsed(text: &str) -> Result<Network, NetworkError> {
        let planes: Planes = toml::from_str(text).unwrap();
        planes.build(&CONTEXT(&ChannelParameters::default()))
    }

    /// Every plane has all of the base network, terminals a port in each, and distances are those of the base.
    #[test]
    fn planes_multiply_all_but_terminals_and_distances() {
        for (of, keys) in [("mesh", "dimensions = [3, 2]"), ("xgft", "m = [3, 3]\nw = [2, 2]"), ("dragonfly", "p = 1\na = 2\nh = 1")] {
            let entry = find(TOPOLOGIES, of).unwrap();
            let base = (entry.parse)(toml::from_str(keys).unwrap()).unwrap().build(&CONTEXT(&ChannelParameters::default())).unwrap();
            let base = Summary::of(&base);
            let planes = Summary::of(&parsed(&format!("planes = 3\nof = \"{of}\"\n{keys}")).unwrap());
            assert_eq!((planes.terminals, planes.routers, planes.components), (base.terminals, 3 * base.routers, 3 * base.components));
            assert_eq!((planes.links, planes.terminal_links), (3 * base.links, 3 * base.terminal_links));
            assert_eq!(planes.histogram, base.histogram);
        }
    }

    #[test]
    fn what_is_no_topology_is_refused() {
        for (text, key) in [
            ("planes = 1\nof = \"mesh\"\ndimensions = [2]", "planes"),
            ("planes = 4294967295\nof = \"mesh\"\ndimensions = [2]", "planes"),
            ("planes = 2\nof = \"mash\"\ndimensions = [2]", "of"),
            ("planes = 2\nof = \"planes\"\ndimensions = [2]", "of"),
            ("planes = 2\nof = \"mesh\"\nlinks = 2", "of"),
            ("planes = 2\nof = \"mesh\"\ndimensions = [0]", "dimensions"),
            ("planes = 2\nof = \"omega\"\nradix = 2\nstages = 3", "of"),
        ] {
            assert!(matches!(parsed(text), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{text}");
        }
    }
}
