//! Any network from a file.

use kasuri_formats::details::Details;
use kasuri_formats::edge_list::{self, EdgeList};
use kasuri_formats::file_kind::FileKind;
use kasuri_formats::recognise::{self, Form};
use kasuri_formats::{FormatError, graphml, network_json, uec};
use kasuri_network::network::{Network, NetworkError};
use kasuri_network::registry::Member;
use kasuri_network::topology::{BuildContext, ChannelParameters, Files, Topology};
use kasuri_workload::ethernet::fabric::Fabric;
use schemars::JsonSchema;
use serde::Deserialize;

/// The network of an edge list: lines `router A router B [latency=L] [period=P]` and `terminal T router A`, comments after `#`.
///
/// The grammar is in [`kasuri_formats::edge_list`]. Channels without a latency or period in their line have those of `[network]`. GraphML
/// is read in the same way. A file with a name that ends in `.json` is a network as `kasuri topology --export json` writes it, with its
/// labels, latencies and periods. One with a name that ends in `.topo` is a fabric of UEC htsim, with the names and tiers of its switches:
/// its fastest links have the periods of `[network]`, slower ones longer ones.
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

/// The content of a file.
pub(crate) enum Content {
    /// A network in JSON, and its description as a fabric.
    Network(Network, Option<Details>),
    /// An edge list or GraphML.
    List(EdgeList),
    /// A fabric of UEC htsim.
    Uec(Fabric),
}

/// The values that `[network]` needs so that the links have the rates and latencies of the file.
pub(crate) struct NeededUnits {
    /// Gbit/s of a channel of one cycle a flit.
    pub(crate) gbit_per_second: f64,
    /// Bytes of a flit, where latencies are cycles of such flits.
    pub(crate) flit_bytes: Option<u32>,
}

const NETWORK: Form = Form::Fabric(FileKind::Network);
const GRAPH_ML: Form = Form::Fabric(FileKind::GraphMl);
const EDGE_LIST: Form = Form::Fabric(FileKind::EdgeList);

impl File {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or its reader refuses it.
    pub(crate) fn content(&self, files: &dyn Files) -> Result<Content, NetworkError> {
        let bytes = files.read(&self.path).map_err(|problem| NetworkError::parameter("path", problem))?;
        let wrong = |expected: Form| {
            let (path, bytes) = (&self.path, &bytes);
            move |error: FormatError| NetworkError::parameter("path", recognise::explain(path, bytes, &[expected], error.to_string()))
        };
        if self.path.ends_with(".topo") {
            return Ok(Content::Uec(uec::fabric(&self.path, &bytes).map_err(wrong(Form::UecFabric))?));
        }
        let form = recognise::recognise(&bytes);
        if self.path.ends_with(".json") || form == Some(NETWORK) {
            let (network, details) = network_json::parse_fabric(&self.path, &bytes).map_err(wrong(NETWORK))?;
            return Ok(Content::Network(network, details));
        }
        let list = match form {
            Some(GRAPH_ML) => graphml::read(&self.path, &bytes).map_err(wrong(GRAPH_ML)),
            _ => edge_list::parse(&self.path, &bytes).map_err(wrong(EDGE_LIST)),
        };
        Ok(Content::List(list?))
    }
}

impl Content {
    /// The units that the file needs; `None` if it gives no rates.
    pub(crate) fn needed_units(&self, channels: &ChannelParameters) -> Option<NeededUnits> {
        match self {
            Self::Network(_, details) => {
                let Details { channel_gbit_per_second, latency_flit_bytes, .. } = *details.as_ref()?;
                let needed = NeededUnits { gbit_per_second: channel_gbit_per_second, flit_bytes: latency_flit_bytes };
                (channel_gbit_per_second > 0.0).then_some(needed)
            }
            Self::List(list) => {
                let gbit_per_second = list.rates()?.gbit_per_second * f64::from(channels.link(0).period);
                Some(NeededUnits { gbit_per_second, flit_bytes: None })
            }
            Self::Uec(_) => None,
        }
    }

    /// The network.
    ///
    /// # Errors
    /// The content is not a network.
    pub(crate) fn build(self, channels: &ChannelParameters) -> Result<Network, NetworkError> {
        channels.check(1)?;
        let (channel, terminal) = (channels.link(0), channels.terminal_link());
        match self {
            Self::Network(network, _) => Ok(network),
            Self::List(list) => list.network(channel, terminal),
            Self::Uec(fabric) => uec::network(&fabric, channel, terminal),
        }
    }
}

impl Topology for File {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        self.content(context.files)?.build(context.channels)
    }
}
