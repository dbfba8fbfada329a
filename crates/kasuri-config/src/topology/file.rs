//! Any network from a file.

use crate::fabric::{Details, FileKind};
use crate::format::recognise::{self, Form};
use crate::format::{FormatError, edge_list, graphml, network_json, uec};
use kasuri_network::network::{Network, NetworkError};
use kasuri_network::registry::Member;
use kasuri_network::topology::{BuildContext, Topology};
use schemars::JsonSchema;
use serde::Deserialize;

/// The network of an edge list: lines `router A router B [latency=L] [period=P]` and `terminal T router A`, comments after `#`.
///
/// The grammar stands in [`crate::format::edge_list`]. Channels whose line tells no latency or period have those of `[network]`. GraphML is
/// read alike. A file whose name ends in `.json` is a network as `kasuri topology --export json` writes it, with its labels: latencies and
/// periods are its own. One whose name ends in `.topo` is a fabric of UEC htsim, with the names and tiers of its switches: its fastest links
/// have the periods of `[network]`, slower ones longer ones.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The file, relative to the experiment file.
    pub path: String,
}

impl Member for File {
    const NAME: &'static str = "file";
    const SUMMARY: &'static str = "any network, from an edge list with latencies, or from JSON";
    const SOURCE: &'static str = "Kasuri's edge list, described in the reference";
    const EXAMPLE: &'static str = "path = \"network.txt\"";
}

/// What the rates and latencies of a file ask of `[network]`.
pub(crate) struct Asked {
    /// Gbit/s of a channel of one cycle a flit.
    pub(crate) gbit_per_second: f64,
    /// Bytes of a flit, where latencies are cycles of such flits.
    pub(crate) flit_bytes: Option<u32>,
}

/// The part of a network's file that says its rates.
#[derive(Deserialize)]
struct OfFabric {
    #[serde(default)]
    fabric: Option<Details>,
}

impl File {
    /// What rates this file's links have, if it tells them: with others they would all be scaled. `None` too where it cannot be read.
    pub(crate) fn asked(&self, context: &BuildContext<'_>) -> Option<Asked> {
        let bytes = context.files.read(&self.path).ok()?;
        if self.path.ends_with(".json") {
            let details = serde_json::from_slice::<OfFabric>(&bytes).ok()?.fabric?;
            let asked = Asked { gbit_per_second: details.channel_gbit_per_second, flit_bytes: details.latency_flit_bytes };
            return (asked.gbit_per_second > 0.0).then_some(asked);
        }
        if self.path.ends_with(".topo") {
            return None;
        }
        let rates = edge_list::parse(&self.path, &bytes).ok()?.rates()?;
        let gbit_per_second = rates.gbit_per_second * f64::from(context.channels.link(0).period);
        Some(Asked { gbit_per_second, flit_bytes: None })
    }
}

impl Topology for File {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        context.channels.check(1)?;
        let bytes = context.files.read(&self.path).map_err(|problem| NetworkError::parameter("path", problem))?;
        self.network(&bytes, context)
    }
}

impl File {
    fn network(&self, bytes: &[u8], context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let wrong = |expected: Form| {
            move |error: FormatError| NetworkError::parameter("path", recognise::explain(&self.path, bytes, &[expected], error.to_string()))
        };
        let (channel, terminal) = (context.channels.link(0), context.channels.terminal_link());
        if self.path.ends_with(".topo") {
            return uec::network(&uec::fabric(&self.path, bytes).map_err(wrong(Form::UecFabric))?, channel, terminal);
        }
        let form = recognise::recognise(bytes);
        if self.path.ends_with(".json") || form == Some(NETWORK) {
            return network_json::parse(&self.path, bytes).map_err(wrong(NETWORK));
        }
        let list = match form {
            Some(GRAPH_ML) => graphml::read(&self.path, bytes).map_err(wrong(GRAPH_ML)),
            _ => edge_list::parse(&self.path, bytes).map_err(wrong(EDGE_LIST)),
        };
        list?.network(channel, terminal)
    }
}

const NETWORK: Form = Form::Fabric(FileKind::Network);
const GRAPH_ML: Form = Form::Fabric(FileKind::GraphMl);
const EDGE_LIST: Form = Form::Fabric(FileKind::EdgeList);
