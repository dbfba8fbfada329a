//! A network from BookSim 2's network files.

use kasuri_formats::anynet;
use kasuri_formats::recognise::{self, Form};
use kasuri_network::id::{Port, RouterId};
use kasuri_network::network::{Link, Network, NetworkBuilder, NetworkError};
use kasuri_network::registry::Member;
use kasuri_network::topology::{BuildContext, Topology};
use schemars::JsonSchema;
use serde::Deserialize;

/// The network of a file of lines `router NUMBER node NUMBER … router NUMBER [LATENCY] …`.
///
/// Ports: the terminals of a router in ascending order, then the other routers in ascending order. Latencies are those of the
/// file; `channel_latency` and `terminal_channel_latency` have no effect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnyNet {
    /// The file, relative to the experiment file.
    pub path: String,
}

impl Member for AnyNet {
    const NAME: &'static str = "anynet";
    const SUMMARY: &'static str = "any network, from a network file of BookSim 2";
    const SOURCE: &'static str = "BookSim 2 (anynet), its examples/anynet/README";
    const EXAMPLE: &'static str = "path = \"anynet_file\"";
}

impl Topology for AnyNet {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        context.channels.check(1)?;
        let bytes = context.files.read(&self.path).map_err(|problem| NetworkError::parameter("path", problem))?;
        let list = anynet::parse(&self.path, &bytes)
            .map_err(|error| NetworkError::parameter("path", recognise::explain(&self.path, &bytes, &[Form::AnyNet], error.to_string())))?;
        let ports = Ports::of(&list);
        let mut builder = NetworkBuilder::new(format!("anynet {}", self.path));
        for router in 0..list.routers as usize {
            builder.add_router(ports.terminals[router].len() + ports.neighbours[router].len())?;
        }
        for (&(from, to), &latency) in &list.channels {
            let link = Link { latency, ..context.channels.link(0) };
            builder.add_channel((RouterId(from), ports.towards(from, to)), (RouterId(to), ports.towards(to, from)), link);
        }
        for (terminal, &(router, latency)) in list.terminals.iter().enumerate() {
            let port = ports.terminals[router as usize].partition_point(|&other| other < terminal);
            builder.add_terminal(RouterId(router), port as Port, Link { latency, ..context.channels.terminal_link() });
        }
        builder.finish()
    }
}

/// What is on the ports of each router.
struct Ports {
    /// Its terminals, ascending.
    terminals: Vec<Vec<usize>>,
    /// Its neighbours, ascending. Every channel has a way back, so inputs and outputs are the same.
    neighbours: Vec<Vec<u32>>,
}

impl Ports {
    fn of(list: &anynet::AnyNet) -> Self {
        let routers = list.routers as usize;
        let mut ports = Self { terminals: vec![Vec::new(); routers], neighbours: vec![Vec::new(); routers] };
        for (terminal, &(router, _)) in list.terminals.iter().enumerate() {
            ports.terminals[router as usize].push(terminal);
        }
        for &(from, to) in list.channels.keys() {
            ports.neighbours[from as usize].push(to);
        }
        ports
    }

    fn towards(&self, from: u32, to: u32) -> Port {
        let router = from as usize;
        (self.terminals[router].len() + self.neighbours[router].partition_point(|&other| other < to)) as Port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::id::TerminalId;
    use kasuri_network::network::Endpoint;
    use kasuri_network::topology::{ChannelParameters, Files};

    struct OneFile(&'static str);

    impl Files for OneFile {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            if path == "net" { Ok(self.0.into()) } else { Err(format!("`{path}` is not there")) }
        }
    }

    fn build(path: &str) -> Result<Network, NetworkError> {
        let files = OneFile("router 2 node 3 router 0 4 router 1\nrouter 0 node 0 node 2 router 1\nrouter 1 node 1\n");
        AnyNet { path: path.to_owned() }.build(&BuildContext { channels: &ChannelParameters::default(), files: &files, structure_seed: 0 })
    }

    /// Router 0 has nodes 0 and 2 at its ports 0 and 1, router 1 at 2, router 2 at 3.
    #[test]
    fn ports_are_nodes_then_routers_in_order() {
        let network = build("net").unwrap();
        let end = |router, port| {
            let channel = network.output_channel(RouterId(router), port).unwrap();
            (network.destination(channel), network.link(channel).latency)
        };
        assert_eq!(network.ejection_port(TerminalId(2)), (RouterId(0), 1));
        assert_eq!(end(0, 2), (Endpoint::Router(RouterId(1), 1), 1));
        assert_eq!(end(0, 3), (Endpoint::Router(RouterId(2), 1), 1));
        assert_eq!(end(2, 1), (Endpoint::Router(RouterId(0), 3), 4));
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        assert!(matches!(build("other"), Err(NetworkError::Parameter { key, .. }) if key == "path"));
    }
}
