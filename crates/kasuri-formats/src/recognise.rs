//! The form of a file by its content, for messages about a file of another form than was expected.

use crate::file_kind::{FileKind, kind_of};
use crate::text::meaningful_lines;
use crate::{ns3, text};

/// A known form of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One that `kasuri fabric` reads.
    Fabric(FileKind),
    /// `router A node B …`, of BookSim.
    AnyNet,
    /// BookSim's configuration.
    BookSim,
    /// A web page.
    Html,
    /// Graphviz.
    Dot,
    /// An experiment, or another file in TOML.
    Experiment,
    /// GEXF of Gephi.
    Gexf,
    /// The graph modelling language.
    Gml,
    /// `num_ranks N`.
    Goal,
    /// An algorithm of MSCCL.
    Msccl,
    /// Graphs in JSON, as networkx writes them.
    NodeLink,
    /// Two names a line.
    PlainEdges,
    /// topology.conf, or what scontrol shows.
    SlurmConf,
    /// topology.yaml.
    SlurmYaml,
    /// A network of ASTRA-sim.
    AstraNetwork,
    /// A fabric of UEC htsim.
    UecFabric,
    /// Flows of UEC htsim.
    UecFlows,
}

/// Lines that are examined.
const MAX_LINES: usize = 50;

/// Bytes that are examined.
const MAX_BYTES: usize = 20_000;

/// The form of a file, as far as its beginning shows it.
pub fn recognise(bytes: &[u8]) -> Option<Form> {
    let bytes = text::without_mark(bytes);
    let beginning = beginning(bytes);
    let lines = meaningful_lines("", beginning).ok()?;
    let is_comment = |line: &str| line.starts_with("//") || line.starts_with("/*");
    let lines: Vec<&str> = lines.into_iter().map(|(_, line)| line).filter(|line| !is_comment(line)).take(MAX_LINES).collect();
    let &first = lines.first()?;
    if first.starts_with('<') {
        return markup(beginning).or_else(|| kind_of(bytes).map(Form::Fabric));
    }
    // Text of any kind may follow the links.
    if ns3::is_topology(bytes) {
        return Some(Form::Fabric(FileKind::Ns3));
    }
    by_lines(first, &lines).or_else(|| kind_of(bytes).map(Form::Fabric)).or_else(|| plain_edges(&lines))
}

/// The first bytes, up to the end of a line, or at least of a character.
fn beginning(bytes: &[u8]) -> &[u8] {
    if bytes.len() <= MAX_BYTES {
        return bytes;
    }
    let most = &bytes[..MAX_BYTES];
    let is_first_of_character = |&byte: &u8| byte & 0xc0 != 0x80;
    let end = most.iter().rposition(|&byte| byte == b'\n').or_else(|| most.iter().rposition(is_first_of_character));
    &most[..end.unwrap_or(MAX_BYTES)]
}

/// A file in XML or HTML, by its first element.
fn markup(bytes: &[u8]) -> Option<Form> {
    let text = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
    let has = |element: &str| {
        text.match_indices(element).any(|(place, _)| text[place + element.len()..].starts_with([' ', '>', '\n', '\r', '\t']))
    };
    [("<html", Form::Html), ("<!doctype html", Form::Html), ("<algo", Form::Msccl), ("<gexf", Form::Gexf)]
        .into_iter()
        .find_map(|(element, form)| has(element).then_some(form))
}

/// Forms with first lines that no other form has.
fn by_lines(first: &str, lines: &[&str]) -> Option<Form> {
    let lower = first.to_ascii_lowercase();
    let words: Vec<&str> = first.split_whitespace().collect();
    let begins = |keys: &[&str]| keys.iter().any(|key| lower.starts_with(key));
    let any = |key: &str| lines.iter().any(|line| line.starts_with(key));
    let is_number = |word: Option<&&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
    let is_graph = matches!(words.first(), Some(&("graph" | "digraph" | "strict"))) || begins(&["graph{", "digraph{"]);
    if begins(&["switchname=", "blockname=", "blocksizes=", "aggregatedblock="]) {
        Some(Form::SlurmConf)
    } else if any("- topology:") {
        Some(Form::SlurmYaml)
    } else if any("npus_count:") {
        Some(Form::AstraNetwork)
    } else if begins(&["num_ranks "]) {
        Some(Form::Goal)
    } else if lines.iter().take(4).any(|line| *line == "graph [" || line.starts_with("graph [") || *line == "[")
        && lines.iter().any(|line| line.starts_with("graph"))
    {
        Some(Form::Gml)
    } else if is_graph && lines.iter().take(3).any(|line| line.contains('{')) {
        Some(Form::Dot)
    } else if begins(&["router "]) && words.windows(2).skip(2).any(|pair| pair[0] == "node" && is_number(pair.get(1))) {
        Some(Form::AnyNet)
    } else if matches!(words.as_slice(), ["Nodes", _]) {
        Some(if any("Connections ") { Form::UecFlows } else { Form::UecFabric })
    } else if lower.starts_with('{') && lines.iter().any(|line| line.contains("\"nodes\"")) {
        Some(Form::NodeLink)
    } else if is_section(lines) {
        Some(Form::Experiment)
    } else if lines.iter().any(|line| is_assignment(line)) && !begins(&["{", "vendid", "devid", "sysimgguid"]) {
        Some(Form::BookSim)
    } else {
        None
    }
}

/// `[name]` or `[[name]]` in a line of its own, with a letter first: numbers in brackets are ports of ibnetdiscover.
fn is_section(lines: &[&str]) -> bool {
    lines.iter().any(|line| {
        let name = line.trim_start_matches('[').trim_end_matches(']');
        line.len() > name.len()
            && line.starts_with('[')
            && line.ends_with(']')
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
    })
}

/// `name = value;`
fn is_assignment(line: &str) -> bool {
    let statement = line.split("//").next().unwrap_or_default().trim_end();
    let Some((key, value)) = statement.strip_suffix(';').and_then(|statement| statement.split_once('=')) else { return false };
    let key = key.trim();
    !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') && !value.trim().is_empty()
}

/// Two words in each line, as networkx, SNAP and CAIDA write edges; weights and dictionaries may follow.
fn plain_edges(lines: &[&str]) -> Option<Form> {
    let is_edge = |line: &&str| {
        if line.contains(['=', '[', '"', '<']) {
            return false;
        }
        let words: Vec<&str> = line.split([' ', '\t', ',', '|']).filter(|word| !word.is_empty()).collect();
        let is_rest = |word: &&str| word.starts_with('{') || word.parse::<f64>().is_ok();
        match words.as_slice() {
            [_, _] => true,
            [_, _, third, ..] => is_rest(third),
            _ => false,
        }
    };
    lines.iter().all(is_edge).then_some(Form::PlainEdges)
}

impl Form {
    /// The message about a file of this form where another one was expected.
    pub fn say(self, name: &str) -> String {
        format!("{name}: {}", self.describe(name))
    }

    /// The same without the name in front: the form, and the command that reads it.
    pub fn describe(self, name: &str) -> String {
        format!("is {}", self.words().replace("FILE", name))
    }

    /// The form and the command that reads it, with FILE for the file's name.
    fn words(self) -> &'static str {
        match self {
            Self::Fabric(FileKind::GraphMl) => {
                "GraphML; `kasuri fabric import FILE -o network.json`, `topology = \"file\"` and Network.from_graphml read it"
            }
            Self::Fabric(FileKind::Network) => {
                "JSON, such as a network that Kasuri wrote; `topology = \"file\"`, `kasuri fabric` and Network.from_json read such files"
            }
            Self::Fabric(FileKind::EdgeList) => {
                "an edge list of Kasuri; `topology = \"file\"` and `kasuri fabric import FILE -o network.json` read it"
            }
            Self::Fabric(FileKind::Ns3) => "a topology of ns-3 or SimAI; `kasuri fabric import FILE -o network.json` reads it",
            Self::Fabric(FileKind::Nccl) => {
                "XML, such as NCCL's topology of a node, which `kasuri fabric import FILE -o network.json` reads"
            }
            Self::Fabric(FileKind::MeshGraph | FileKind::MeshGraphYaml) => {
                "a mesh graph descriptor; `kasuri fabric import FILE -o network.json` reads it"
            }
            Self::Fabric(FileKind::Discovery | FileKind::Ports) => {
                "a dump of ibnetdiscover; `kasuri fabric import FILE -o network.json` reads it"
            }
            Self::Fabric(FileKind::Tables | FileKind::Lanes | FileKind::Levels) => {
                "a dump of an InfiniBand fabric's tables; `kasuri fabric import` reads it together with ibnetdiscover's"
            }
            Self::AnyNet => "an anynet file of BookSim; `topology = \"anynet\"` reads it",
            Self::BookSim => "a configuration of BookSim; `kasuri booksim FILE` reads it",
            Self::Html => "a web page; take the file itself, such as the raw form of a repository's page",
            Self::Dot => "a graph of Graphviz (DOT); in Python, Network.from_networkx(networkx.nx_pydot.read_dot('FILE')) takes it",
            Self::Experiment => "an experiment in TOML; `kasuri run FILE` and `kasuri check FILE` read it",
            Self::Gexf => "a graph in GEXF; in Python, Network.from_networkx(networkx.read_gexf('FILE')) takes it",
            Self::Gml => "a graph in GML; in Python, Network.from_networkx(networkx.read_gml('FILE')) takes it",
            Self::Goal => "a program in GOAL; `[workload] trace` of an experiment names it",
            Self::Msccl => "an algorithm of MSCCL; `kasuri algorithm check FILE` reads it",
            Self::NodeLink => {
                "a graph in JSON, as networkx writes it; in Python, Network.from_networkx(networkx.node_link_graph(json.load(open('FILE')))) takes it"
            }
            Self::PlainEdges => {
                "a plain list of edges, as networkx, SNAP and CAIDA write them. Kasuri's edge list says what each name is: a line `router 0 \
                 router 1` for each link, and `terminal 0 router 0` for each terminal. In Python, Network.from_edges([(0, 1), …]) takes pairs, \
                 with a terminal at each router, and Network.from_networkx(networkx.read_edgelist('FILE')) the file"
            }
            Self::SlurmConf | Self::SlurmYaml => "a topology of Slurm; `kasuri fabric slurm FILE --write edges` makes an edge list of it",
            Self::AstraNetwork => "a network of ASTRA-sim; `kasuri astra` reads it",
            Self::UecFabric => "a fabric of UEC htsim; `topology = \"file\"` reads it if its name ends in .topo, and `kasuri uec`",
            Self::UecFlows => "flows of UEC htsim; `kasuri uec` reads them",
        }
    }
}

/// The error for a file that its reader refused with `problem`: the file's true form, if it is not an expected one, else `problem`.
pub fn explain(name: &str, bytes: &[u8], expected: &[Form], problem: String) -> String {
    match recognise(bytes) {
        Some(form) if !expected.contains(&form) => form.say(name),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without line breaks is known wherever its beginning ends within a character of two or three bytes.
    #[test]
    fn files_of_one_long_line_are_known() {
        for shift in 0..6 {
            for letters in ["\u{e9}", "\u{20ac}"] {
                let text = format!("<graphml>{}<graph>{}", " ".repeat(shift), letters.repeat(MAX_BYTES));
                assert_eq!(recognise(text.as_bytes()), Some(Form::Fabric(FileKind::GraphMl)), "{shift} {letters}");
            }
        }
    }

    /// Files as their own programs write them, with and without a byte-order mark.
    #[test]
    fn files_are_known_by_their_content() {
        use Form::*;
        for (text, form) in [
            ("<graphml xmlns=\"x\"><graph/></graphml>", Fabric(FileKind::GraphMl)),
            ("<?xml version=\"1.0\"?>\n<!DOCTYPE graphml SYSTEM \"g.dtd\">\n<graphml>", Fabric(FileKind::GraphMl)),
            ("<?xml version=\"1.0\"?>\n<system version=\"1\">", Fabric(FileKind::Nccl)),
            ("<!-- made -->\n<algo name=\"a\">", Msccl),
            ("<!DOCTYPE html>\n<html lang=\"en\">", Html),
            ("<gexf version=\"1.2\">", Gexf),
            ("// made\nstrict graph {\n a -- b\n}", Dot),
            ("digraph \"x\" {", Dot),
            ("graph [\n  node [\n    id 0\n", Gml),
            ("Creator \"x\"\ngraph\n[\n", Gml),
            ("{\"format\": \"kasuri-network\", \"version\": 1}", Fabric(FileKind::Network)),
            ("{\"directed\": false, \"graph\": {}, \"nodes\": [{\"id\": 0}], \"links\": []}", NodeLink),
            ("0 1\n1 2\n2 0\n", PlainEdges),
            ("# Directed graph: a.txt\n# FromNodeId\tToNodeId\n0\t4\n0\t5\n", PlainEdges),
            ("0 1 {'weight': 3}\n1 2 {}\n", PlainEdges),
            ("1|11537|0|bgp\n1|21616|-1|bgp\n", PlainEdges),
            ("a b\nb c\n", PlainEdges),
            ("router a router b\n", Fabric(FileKind::EdgeList)),
            ("router 0 node 0 router 1\nrouter 1 node 1\n", AnyNet),
            ("router 0 router 1 4 node 0\n", AnyNet),
            ("3 1 2\n2\n0 2 100Gbps 1us 0\n", Fabric(FileKind::Ns3)),
            ("vendid=0x2c9\ndevid=0xd2f0\n", Fabric(FileKind::Discovery)),
            ("SwitchName=l1 Nodes=n[1-2]\n", SlurmConf),
            ("# a\nswitchname=l1 nodes=n1\n", SlurmConf),
            ("---\n- topology: a\n", SlurmYaml),
            ("topology = mesh;\nk = 2;\n", BookSim),
            ("// 8x8\ntopology = mesh;\n", BookSim),
            ("title = \"a\"\n[network]\ntopology = \"mesh\"\n", Experiment),
            ("num_ranks 2\nrank 0 {\n}\n", Goal),
            ("topology: [ Ring ]\nnpus_count: [ 4 ]\n", AstraNetwork),
            ("Nodes 16\nConnections 2\n", UecFlows),
            ("Nodes 16\nTiers 2\n", UecFabric),
        ] {
            assert_eq!(recognise(text.as_bytes()), Some(form), "{text}");
            assert_eq!(recognise(format!("\u{feff}{text}").as_bytes()), Some(form), "{text}");
        }
        for text in ["", "\0\u{1}\n", "some prose of no known form at all\n", "a = 3\n"] {
            assert_eq!(recognise(text.as_bytes()), None, "{text:?}");
        }
    }
}
