//! Which of the files of a fabric a file is, by its content.

use crate::text::without_mark;
use crate::{ns3, service_levels, tool_messages};

/// What a file of a fabric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// What `ibnetdiscover` prints, or a network of ibsim.
    Discovery,
    /// What `ibnetdiscover -p` prints.
    Ports,
    /// Forwarding tables: `dump_lfts`, `ibroute`, `opensm-lfts.dump`.
    Tables,
    /// Virtual lanes by service level: `opensm-sl2vl.dump`.
    Lanes,
    /// Service levels by source and destination.
    Levels,
    /// A network as Kasuri writes it.
    Network,
    /// A mesh graph descriptor, in text of Protocol Buffers.
    MeshGraph,
    /// A mesh graph descriptor, in YAML.
    MeshGraphYaml,
    /// NCCL's topology of a node, or another file in XML, which is refused by its first element.
    Nccl,
    /// A graph in GraphML.
    GraphMl,
    /// An edge list.
    EdgeList,
    /// A topology of ns-3 or SimAI.
    Ns3,
}

impl FileKind {
    /// Those that say all of a fabric: one file is enough, and nothing can be added to it.
    pub fn is_whole(self) -> bool {
        !matches!(self, Self::Discovery | Self::Ports | Self::Tables | Self::Lanes | Self::Levels)
    }
}

/// Lines that are looked at to tell what a file is.
const MAX_LINES: usize = 20_000;

/// Bytes of XML that are looked at to find its first element.
const MAX_BYTES: usize = 10_000;

/// What a file is, by what its first lines say.
pub fn kind_of(bytes: &[u8]) -> Option<FileKind> {
    let bytes = without_mark(bytes);
    // It begins with numbers, as service levels do.
    if ns3::is_topology(bytes) {
        return Some(FileKind::Ns3);
    }
    let lines = bytes.split(|&byte| byte == b'\n').take(MAX_LINES).map(<[u8]>::trim_ascii);
    let says_something = |line: &&[u8]| {
        let is_message = || std::str::from_utf8(line).is_ok_and(tool_messages::is_message);
        !(line.is_empty() || line.starts_with(b"#") || line.starts_with(b"DR path") || is_message())
    };
    for line in lines.filter(says_something) {
        let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word.as_bytes()));
        if begins(&["{"]) {
            return Some(FileKind::Network);
        } else if begins(&["<"]) {
            let is_graph = bytes.windows(9).take(MAX_BYTES).any(|window| window == b"<graphml " || window == b"<graphml>");
            return Some(if is_graph { FileKind::GraphMl } else { FileKind::Nccl });
        } else if begins(&["router ", "terminal "]) {
            return Some(FileKind::EdgeList);
        } else if begins(&["Unicast lids", "Multicast mlids"]) {
            return Some(FileKind::Tables);
        } else if line.windows(10).any(|window| window == b", base LID") {
            return Some(FileKind::Lanes);
        } else if begins(&["mesh_descriptors", "graph_descriptors", "switch_descriptors", "top_level_instance", "pinnings"]) {
            return Some(FileKind::MeshGraph);
        } else if begins(&["ChipSpec"]) {
            return Some(FileKind::MeshGraphYaml);
        } else if begins(&["CA ", "SW ", "RT "]) {
            return Some(FileKind::Ports);
        } else if begins(&[
            "vendid=",
            "devid=",
            "sysimgguid=",
            "switchguid=",
            "caguid=",
            "rtguid=",
            "Switch",
            "Ca",
            "Hca",
            "Rt",
            "[",
            "Chassis",
        ]) {
            return Some(FileKind::Discovery);
        } else if std::str::from_utf8(line).is_ok_and(|line| service_levels::is_level(line.split('#').next().unwrap_or_default().trim())) {
            return Some(FileKind::Levels);
        }
    }
    None
}
