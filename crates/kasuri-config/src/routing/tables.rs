//! Forwarding tables of the network's own, or from a file.

use kasuri_formats::forwarding_csv;
use kasuri_network::network::Network;
use kasuri_network::registry::Member;
use kasuri_network::routing::forwarding::{AddressChoice, TableRouting};
use kasuri_network::routing::{Routing, RoutingAlgorithm, RoutingError};
use kasuri_network::topology::Files;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Each router looks the packet's destination up in its forwarding table.
///
/// The tables are those that the network brings along (`kasuri fabric import` writes networks with the tables of their switches), or those
/// of a file. Where they name virtual channels, or map service levels to virtual lanes, packets take these: each lane in use is a class of
/// virtual channels. Nothing is promised about deadlock: the channel dependency graph tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    /// A file of lines `router,destination,port` or `router,destination,port,virtual_channel`, relative to the experiment file: names or
    /// numbers of a router, a terminal, the router's output port. Without it the network's own tables are taken.
    pub path: Option<String>,
    /// Which of several addresses (LIDs) of its destination a packet takes: the first, one by a hash of source and destination, or one that
    /// it draws.
    pub lid: AddressChoice,
    /// The bytes of the file.
    #[serde(skip)]
    bytes: Vec<u8>,
}

impl Member for Tables {
    const NAME: &'static str = "tables";
    const SUMMARY: &'static str = "forwarding tables, of a real fabric or from a file";
    const SOURCE: &'static str = "InfiniBand Architecture Specification, volume 1, section 14.2.5 (LinearForwardingTable)";
    const EXAMPLE: &'static str = "path = \"tables.csv\"";
}

impl RoutingAlgorithm for Tables {
    fn read(&mut self, files: &dyn Files) -> Result<(), RoutingError> {
        if let Some(path) = &self.path {
            self.bytes = files.read(path).map_err(|problem| wrong("path", problem))?;
        }
        Ok(())
    }

    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let tables = match (&self.path, network.tables()) {
            (Some(path), _) => {
                let tables = forwarding_csv::parse(path, &self.bytes, network).map_err(|error| wrong("path", error.to_string()))?;
                Arc::new(tables)
            }
            (None, Some(tables)) => Arc::clone(tables),
            (None, None) => {
                let problem = "the network has no tables of its own; give `path`, or a network that `kasuri fabric import` wrote";
                return Err(self.mismatch(network, problem.to_owned()));
            }
        };
        let routing = TableRouting::new(network, tables, self.lid);
        let (count, first) = routing.unreachable();
        if let Some((source, destination)) = first {
            let (source, destination) = (network.terminal_name(source), network.terminal_name(destination));
            let problem = format!(
                "in {count} ordered pairs of terminals packets do not arrive, first from {source} to {destination}; mend the tables, or leave \
                 terminals out (`kasuri fabric import --hosts FILE`)"
            );
            return Err(self.mismatch(network, problem));
        }
        Ok(Box::new(routing))
    }
}

impl Tables {
    fn mismatch(&self, network: &Network, problem: String) -> RoutingError {
        RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem }
    }
}

fn wrong(key: &str, problem: String) -> RoutingError {
    RoutingError::Parameter { key: key.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::deadlock::{Verdict, check};
    use kasuri_network::id::{RouterId, TerminalId};
    use kasuri_network::routing::VirtualChannels;
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology, torus::Torus};

    fn ring() -> Arc<Network> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Arc::new(Torus { dimensions: vec![4], concentration: 1 }.build(&context).unwrap())
    }

    /// The file `t.csv`.
    struct Table<'a>(&'a str);

    impl Files for Table<'_> {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            if path == "t.csv" { Ok(self.0.into()) } else { Err(format!("`{path}` is not there")) }
        }
    }

    fn compiled(network: &Arc<Network>, text: &str) -> Result<Box<dyn Routing>, RoutingError> {
        let mut tables = Tables { path: Some("t.csv".to_owned()), ..Tables::default() };
        tables.read(&Table(text))?;
        tables.compile(network)
    }

    /// The port of router 0 to its neighbour 1, the same at every router of the ring.
    fn forwards(network: &Network) -> u16 {
        let towards = |port: u16| network.output_channel(RouterId(0), port).map(|channel| network.input_port(channel).0.0);
        (0..3).find(|&port| port != network.ejection_port(TerminalId(0)).1 && towards(port) == Some(1)).unwrap()
    }

    /// All one way round: the channels close a cycle. With another virtual channel once the packet has come past router 0 they do not
    /// (Dally and Seitz 1987: a dateline).
    #[test]
    fn a_ring_of_tables_needs_its_second_virtual_channel() {
        let network = ring();
        let (on, home) = (forwards(&network), network.ejection_port(TerminalId(0)).1);
        let row = |router: u32, to: u32, with: bool| {
            let port = if router == to { home } else { on };
            // Before the dateline a packet stands at a router of a higher number than its destination's.
            let channel = u32::from(router < to);
            if with { format!("{router},{to},{port},{channel}\n") } else { format!("{router},{to},{port}\n") }
        };
        let text = |with| (0..4).flat_map(|router| (0..4).map(move |to| row(router, to, with))).collect::<String>();
        let all = [VirtualChannels { begin: 0, end: 2 }];
        let plain = compiled(&network, &text(false)).unwrap();
        assert_eq!((plain.facts().virtual_channels_required, plain.port_to(RouterId(2), TerminalId(1))), (1, Some(on)));
        assert!(matches!(check(&network, &*plain, &all).verdict, Verdict::Cycle(cycle) if cycle.len() == 4));
        let dateline = compiled(&network, &text(true)).unwrap();
        assert_eq!(dateline.facts().virtual_channels_required, 2);
        assert_eq!(check(&network, &*dateline, &all).verdict, Verdict::Acyclic);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let network = ring();
        for (text, expected) in [
            ("", "in 12 ordered pairs of terminals packets do not arrive, first from terminal 0 to terminal 1"),
            ("router,destination,port\n9,0,0\n", "t.csv:2: `9` is not a router; they are numbered 0 to 3"),
            ("0,4,0\n", "t.csv:1: `4` is not a terminal; they are numbered 0 to 3"),
            ("0,1,7\n", "t.csv:1: `7` is not a port of router 0, which has 3 ports"),
            ("0,1,0\n0,1,1\n", "t.csv:2: duplicate entry of router 0 for terminal 1"),
            ("0,1\n", "t.csv:1: invalid entry `0,1`; expected router,destination,port"),
        ] {
            let error = compiled(&network, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        assert!(Tables::default().compile(&network).unwrap_err().to_string().contains("the network has no tables of its own"));
    }
}
