//! Networks as GraphML, for networkx, igraph, Gephi and yEd.

use crate::dot::node;
use crate::edge_list::{Edge, EdgeList, Node};
use crate::error::FormatError;
use crate::names::distinguish;
use crate::rate::Speed;
use crate::text::short;
use crate::xml::{self, Xml};
use kasuri_network::id::{ChannelId, Port, RouterId};
use kasuri_network::network::{Endpoint, MAX_CHANNEL_CYCLES, MAX_PORTS, Names, Network};
use roxmltree::Node as Element;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Writes a network as a directed GraphML graph.
///
/// Nodes `r0`, … and `t0`, … have `kind` (`router` or `terminal`), `number`, `name` where the network gives names; routers have `ports`
/// and the labels. Edges have `channel`, `latency`, `period` (cycles), `source_port` and `target_port` (none at a terminal).
/// `Network.from_graphml` reads it back as the same network, labels apart.
pub fn write(network: &Network) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n");
    let mut line = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).expect("a string takes any text");
    let labels: Vec<&str> = network.labels().router_names().collect();
    for name in ["kind", "name"] {
        line(format_args!("  <key id=\"{name}\" for=\"node\" attr.name=\"{name}\" attr.type=\"string\"/>\n"));
    }
    for name in ["number", "ports"].iter().chain(&labels) {
        line(format_args!("  <key id=\"{name}\" for=\"node\" attr.name=\"{name}\" attr.type=\"int\"/>\n", name = escaped(name)));
    }
    for name in ["channel", "latency", "period", "source_port", "target_port"] {
        line(format_args!("  <key id=\"{name}\" for=\"edge\" attr.name=\"{name}\" attr.type=\"int\"/>\n"));
    }
    line(format_args!("  <graph id=\"{}\" edgedefault=\"directed\">\n", escaped(network.name())));
    for router in (0..network.router_count()).map(RouterId) {
        let (name, ports) = (name_data(network.router_names(), router.0), network.port_count(router));
        line(format_args!("    <node id=\"r{router}\"><data key=\"kind\">router</data><data key=\"number\">{router}</data>{name}"));
        line(format_args!("<data key=\"ports\">{ports}</data>"));
        for name in &labels {
            let value = network.labels().router(name).map_or(0, |column| column[router.index()]);
            line(format_args!("<data key=\"{}\">{value}</data>", escaped(name)));
        }
        line(format_args!("</node>\n"));
    }
    for terminal in 0..network.terminal_count() {
        let name = name_data(network.terminal_names(), terminal);
        line(format_args!(
            "    <node id=\"t{terminal}\"><data key=\"kind\">terminal</data><data key=\"number\">{terminal}</data>{name}</node>\n"
        ));
    }
    for channel in (0..network.channel_count()).map(ChannelId).filter(|&channel| !network.is_down(channel)) {
        let (source, target, link) = (network.source(channel), network.destination(channel), network.link(channel));
        line(format_args!("    <edge id=\"c{channel}\" source=\"{}\" target=\"{}\">", node(source), node(target)));
        for (key, value) in [("channel", channel.0), ("latency", link.latency), ("period", link.period)] {
            line(format_args!("<data key=\"{key}\">{value}</data>"));
        }
        for (key, end) in [("source_port", source), ("target_port", target)] {
            if let Endpoint::Router(_, port) = end {
                line(format_args!("<data key=\"{key}\">{port}</data>"));
            }
        }
        line(format_args!("</edge>\n"));
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

fn name_data(names: &Names, number: u32) -> String {
    names.all().map_or(String::new(), |names| format!("<data key=\"name\">{}</data>", escaped(&names[number as usize])))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Reads a graph as an edge list: what networkx and others write, and [`write`].
///
/// Nodes have `kind` (`router` or `terminal`; without it a router), `name` (else their id) and `ports`; edges `gbit` (Gbit/s), or `latency` and
/// `period` (cycles), `source_port` and `target_port`. A missing attribute has the `<default>` of its key. An undirected edge is a
/// link, a directed one a channel. Where no node is a terminal, every router has one of its name. Nodes and edges of a graph within a node (a
/// group of yEd) count as the others; the node around them is a router only if an edge ends at it. `<port>` says where an edge ends in a
/// drawing, and has no effect.
///
/// # Errors
/// The text is not GraphML, or has several graphs, a hyperedge, an edge to a missing node, an invalid attribute or one without a declared
/// key; with the line. Source: the GraphML specification 1.1, graphml.graphdrawing.org.
pub fn read(name: &str, bytes: &[u8]) -> Result<EdgeList, FormatError> {
    let document = xml::document(name, bytes)?;
    let mut reader = Reader { xml: Xml { name, document: &document }, keys: BTreeMap::new(), nodes: BTreeMap::new() };
    reader.list()
}

struct Reader<'a> {
    xml: Xml<'a>,
    /// By id.
    keys: BTreeMap<&'a str, Key<'a>>,
    nodes: BTreeMap<&'a str, Node>,
}

/// An attribute of nodes or edges.
struct Key<'a> {
    name: &'a str,
    /// The element that has it, or `all`.
    of: &'a str,
    default: Option<String>,
}

/// A node or an edge, and whether edges of its graph are directed by default.
type Part<'a> = (Element<'a, 'a>, bool);

/// The text in an element, comments left out.
fn text_in(element: Element<'_, '_>) -> String {
    let texts: String = element.children().filter(|child| child.is_text()).filter_map(|child| child.text()).collect();
    texts.trim().to_owned()
}

/// The elements of this name in another one.
fn within<'a>(element: Element<'a, 'a>, name: &'static str) -> impl Iterator<Item = Element<'a, 'a>> {
    element.children().filter(move |child| child.tag_name().name() == name)
}

impl<'a> Reader<'a> {
    /// The attributes of a node or edge, with defaults.
    fn data(&self, element: Element<'a, 'a>) -> Result<BTreeMap<&'a str, String>, FormatError> {
        let of = element.tag_name().name();
        let keys = self.keys.values().filter(|key| key.of == of || key.of == "all");
        let mut data: BTreeMap<&str, String> = keys.filter_map(|key| Some((key.name, key.default.clone()?))).collect();
        for child in within(element, "data") {
            let id = self.xml.needed(child, "key")?;
            let key = self.keys.get(id).ok_or_else(|| self.xml.error(child, format!("no <key> has the id `{}`", short(id))))?;
            data.insert(key.name, text_in(child));
        }
        Ok(data)
    }

    /// A whole number up to a limit, written as one or as `4.0`.
    fn number(&self, element: Element<'_, '_>, data: &BTreeMap<&str, String>, key: &str, most: u32) -> Result<Option<u32>, FormatError> {
        let Some(text) = data.get(key) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..=f64::from(most)).contains(number));
        let wrong = || self.xml.error(element, format!("{key} is `{}`; it must be a whole number, 0 to {most}", short(text)));
        number.map(|number| Some(number as u32)).ok_or_else(wrong)
    }

    fn list(&mut self) -> Result<EdgeList, FormatError> {
        let root = self.xml.document.root_element();
        if root.tag_name().name() != "graphml" {
            return Err(self.xml.error(root, format!("begins with <{}>; GraphML begins with <graphml>", short(root.tag_name().name()))));
        }
        for key in within(root, "key") {
            let id = self.xml.needed(key, "id")?;
            let default = within(key, "default").next().map(text_in);
            let (name, of) = (key.attribute("attr.name").unwrap_or(id), key.attribute("for").unwrap_or("all"));
            self.keys.insert(id, Key { name, of, default });
        }
        let mut graphs = within(root, "graph");
        let graph = graphs.next().ok_or_else(|| self.xml.error(root, "has no <graph>"))?;
        if let Some(second) = graphs.next() {
            let problem = format!("is a second graph; a network is one graph, and the file has {}", 2 + graphs.count());
            return Err(self.xml.error(second, problem));
        }
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        self.parts(graph, &mut nodes, &mut edges)?;
        let mut list = EdgeList { name: self.xml.name.to_owned(), ..EdgeList::default() };
        list.notes.extend(port_note(graph));
        let ends: BTreeSet<&str> =
            edges.iter().flat_map(|(edge, _)| [edge.attribute("source"), edge.attribute("target")]).flatten().collect();
        for (element, _) in nodes {
            let is_group = within(element, "graph").next().is_some();
            if !is_group || element.attribute("id").is_none_or(|id| ends.contains(id)) {
                self.node(element, &mut list)?;
            }
        }
        self.distinguish(&mut list);
        for (element, is_directed) in edges {
            let edge = self.edge(element, is_directed)?;
            list.edges.push(edge);
        }
        // A network without names has these ids.
        for (names, letter) in [(&mut list.routers, 'r'), (&mut list.terminals, 't')] {
            if names.iter().enumerate().all(|(number, name)| *name == format!("{letter}{number}")) {
                names.iter_mut().enumerate().for_each(|(number, name)| *name = number.to_string());
            }
        }
        if list.terminals.is_empty() {
            let line = self.xml.line(graph);
            let own = |number: u32| Edge {
                from: Node::Terminal(number),
                to: Node::Router(number, None),
                both_ways: true,
                latency: None,
                period: None,
                rate: None,
                line,
            };
            list.edges.extend((0..list.routers.len() as u32).map(own));
            list.terminals.clone_from(&list.routers);
        }
        Ok(list)
    }

    /// Puts the nodes and edges of a graph, and of the graphs within its nodes, into the lists.
    fn parts(&self, graph: Element<'a, 'a>, nodes: &mut Vec<Part<'a>>, edges: &mut Vec<Part<'a>>) -> Result<(), FormatError> {
        let mut open = vec![graph];
        while let Some(graph) = open.pop() {
            let is_directed = graph.attribute("edgedefault") == Some("directed");
            for element in graph.children() {
                match element.tag_name().name() {
                    "hyperedge" => return Err(self.xml.error(element, "is a hyperedge; a cable has two ends, write one <edge> for each")),
                    "node" => {
                        nodes.push((element, is_directed));
                        open.extend(within(element, "graph"));
                    }
                    "edge" => edges.push((element, is_directed)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, element: Element<'a, 'a>, list: &mut EdgeList) -> Result<(), FormatError> {
        let (id, data) = (self.xml.needed(element, "id")?, self.data(element)?);
        let name = data.get("name").filter(|name| !name.is_empty()).map_or(id, String::as_str).to_owned();
        let node = match data.get("kind").map_or("router", String::as_str) {
            "router" => {
                let number = list.routers.len() as u32;
                if let Some(ports) = self.number(element, &data, "ports", MAX_PORTS as u32)? {
                    list.ports.push((number, ports, self.xml.line(element)));
                }
                list.routers.push(name);
                Node::Router(number, None)
            }
            "terminal" => {
                list.terminals.push(name);
                Node::Terminal(list.terminals.len() as u32 - 1)
            }
            other => return Err(self.xml.error(element, format!("kind is `{}`; it must be router or terminal", short(other)))),
        };
        match self.nodes.insert(id, node) {
            None => Ok(()),
            Some(_) => Err(self.xml.error(element, format!("a second node `{}`", short(id)))),
        }
    }

    /// Appends their ids to names that several nodes have: in GraphML the id identifies a node.
    fn distinguish(&self, list: &mut EdgeList) {
        let mut ids = [vec![""; list.routers.len()], vec![""; list.terminals.len()]];
        for (&id, node) in &self.nodes {
            match *node {
                Node::Router(number, _) => ids[0][number as usize] = id,
                Node::Terminal(number) => ids[1][number as usize] = id,
            }
        }
        for (names, ids) in [&mut list.routers, &mut list.terminals].into_iter().zip(ids) {
            let mut named: Vec<(String, &str)> = std::mem::take(names).into_iter().zip(ids).collect();
            distinguish(&mut named, |id| (*id).to_owned());
            names.extend(named.into_iter().map(|(name, _)| name));
        }
    }

    fn edge(&self, element: Element<'a, 'a>, is_directed: bool) -> Result<Edge, FormatError> {
        let data = self.data(element)?;
        let end = |key: &str, port: &str| {
            let id = self.xml.needed(element, key)?;
            let node = *self.nodes.get(id).ok_or_else(|| self.xml.error(element, format!("{key}: unknown node `{}`", short(id))))?;
            let port = self.number(element, &data, port, MAX_PORTS as u32 - 1)?.map(|port| port as Port);
            Ok(if let Node::Router(router, _) = node { Node::Router(router, port) } else { node })
        };
        let (from, to) = (end("source", "source_port")?, end("target", "target_port")?);
        match (from, to) {
            (Node::Terminal(_), Node::Terminal(_)) => {
                return Err(self.xml.error(element, "joins two terminals; a terminal is joined to a router"));
            }
            (Node::Router(one, _), Node::Router(other, _)) if one == other => {
                return Err(self.xml.error(element, "joins a router to itself"));
            }
            _ => {}
        }
        let rate = data.get("gbit").map(|text| {
            let rate = text.parse().ok().and_then(Speed::from_gbit_per_second);
            rate.ok_or_else(|| self.xml.error(element, format!("gbit is `{}`; it must be Gbit/s above 0", short(text))))
        });
        let period = self.number(element, &data, "period", MAX_CHANNEL_CYCLES)?;
        if period == Some(0) {
            return Err(self.xml.error(element, "period is 0; a flit occupies a channel for at least 1 cycle"));
        }
        let rate = rate.transpose()?;
        let both_ways = match element.attribute("directed") {
            None => !is_directed,
            Some("true" | "1") => false,
            Some("false" | "0") => true,
            Some(other) => return Err(self.xml.error(element, format!("directed is `{}`; it must be true or false", short(other)))),
        };
        Ok(Edge {
            from,
            to,
            both_ways,
            latency: self.number(element, &data, "latency", MAX_CHANNEL_CYCLES)?,
            // A rate says more than a period.
            period: period.filter(|_| rate.is_none()),
            rate,
            line: self.xml.line(element),
        })
    }
}

/// A note about ports of a drawing, if there are some.
fn port_note(graph: Element<'_, '_>) -> Option<String> {
    let count = graph.descendants().filter(|element| element.tag_name().name() == "port").count();
    (count > 0)
        .then(|| format!("{count} <port> elements have no effect; source_port and target_port of an edge number the ports of routers"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::network::Link;

    const TRIANGLE: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="gbit" attr.type="double"/>
  <key id="d1" for="node" attr.name="kind" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a"/>
    <node id="b"/>
    <node id="h"><data key="d1">terminal</data></node>
    <edge source="a" target="b"><data key="d0">400.0</data></edge>
    <edge source="h" target="b"><data key="d0">100</data></edge>
  </graph>
</graphml>
"#;

    /// Several nodes may share a name; their ids differ.
    #[test]
    fn equal_names_are_distinguished_by_the_ids() {
        let text = TRIANGLE.replace(
            "<node id=\"a\"/>\n    <node id=\"b\"/>",
            "<node id=\"a\"><data key=\"d2\">x</data></node><node id=\"b\"><data key=\"d2\">x</data></node>",
        );
        let text = text.replace("  <graph ", "  <key id=\"d2\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n  <graph ");
        assert_eq!(read("g", text.as_bytes()).unwrap().routers, ["x (a)", "x (b)"]);
    }

    #[test]
    fn graphs_of_others_are_read() {
        let list = read("g", TRIANGLE.as_bytes()).unwrap();
        let network = list.network(Link::default(), Link::default()).unwrap();
        assert_eq!((network.router_count(), network.terminal_count(), network.channel_count()), (2, 1, 4));
        assert_eq!(
            (network.router_names().all().unwrap(), network.terminal_names().of(0)),
            (&["a".to_owned(), "b".to_owned()][..], "h".to_owned())
        );
        assert_eq!([0, 2].map(|channel| network.link(ChannelId(channel)).period), [4, 1]);
        let alone = TRIANGLE.replace(">terminal<", ">router<").replace("<data key=\"d0\">100</data>", "");
        let network = read("g", alone.as_bytes()).unwrap().network(Link::default(), Link::default()).unwrap();
        assert_eq!((network.router_count(), network.terminal_count(), network.channel_count()), (3, 3, 10));
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_line() {
        for (old, new, expected) in [
            ("target=\"b\"", "target=\"c\"", "g:9: target: unknown node `c`"),
            ("target=\"b\"", "target=\"a\"", "g:9: joins a router to itself"),
            ("400.0", "fast", "g:9: gbit is `fast`; it must be Gbit/s above 0"),
            (">terminal<", ">host<", "g:8: kind is `host`; it must be router or terminal"),
            ("id=\"b\"", "id=\"a\"", "g:7: a second node `a`"),
            ("source=\"a\"", "", "g:9: <edge> has no attribute `source`"),
            ("graphml", "graph", "g:"),
            ("source=\"a\"", "source=\"a\" directed=\"no\"", "g:9: directed is `no`; it must be true or false"),
            ("key=\"d0\">400", "key=\"d9\">400", "g:9: no <key> has the id `d9`"),
            ("<edge source=\"a\"", "<hyperedge><endpoint node=\"a\"/></hyperedge><edge source=\"a\"", "g:9: is a hyperedge"),
            (
                "  </graph>",
                "  </graph><graph edgedefault=\"directed\"/>",
                "g:11: is a second graph; a network is one graph, and the file has 2",
            ),
        ] {
            let error = read("g", TRIANGLE.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{new}: {error}");
        }
        assert!(read("g", b"<svg/>").unwrap_err().to_string().contains("begins with <svg>; GraphML begins with <graphml>"));
        assert!(read("g", b"<graphml/>").unwrap_err().to_string().contains("has no <graph>"));
    }

    /// Specification, section 2.4.4: the default of a key applies to every element of its kind without data for it.
    #[test]
    fn defaults_apply_where_data_is_missing() {
        let text = |of: &str| {
            format!(
                "<graphml><key id=\"k\" for=\"node\" attr.name=\"kind\"><default>terminal</default></key>\
                 <key id=\"g\" {of} attr.name=\"gbit\"><default><!-- usual -->100</default></key><graph edgedefault=\"undirected\">\
                 <node id=\"sw\"><data key=\"k\">router</data></node><node id=\"h1\"/><node id=\"h2\"/>\
                 <edge source=\"h1\" target=\"sw\"/><edge source=\"h2\" target=\"sw\"><data key=\"g\">40</data></edge></graph></graphml>"
            )
        };
        let speeds = |of: &str| {
            let list = read("g", text(of).as_bytes()).unwrap();
            assert_eq!((list.routers.len(), list.terminals.len()), (1, 2));
            list.edges.iter().map(|edge| edge.rate.map(|rate| rate.mbit_per_second())).collect::<Vec<_>>()
        };
        for of in ["for=\"edge\"", "for=\"all\"", ""] {
            assert_eq!(speeds(of), [Some(100_000), Some(40_000)], "{of}");
        }
        assert_eq!(speeds("for=\"port\""), [None, Some(40_000)]);
    }

    #[test]
    fn groups_of_yed_hold_nodes_and_edges() {
        let text = "<graphml><graph edgedefault=\"undirected\"><node id=\"rack\" yfiles.foldertype=\"group\"><graph edgedefault=\"undirected\">\
                    <node id=\"a\"><port name=\"north\"/></node><node id=\"b\"/><edge source=\"a\" target=\"b\" sourceport=\"north\"/></graph></node>\
                    <node id=\"c\"/><edge source=\"b\" target=\"c\"/></graph></graphml>";
        let list = read("g", text.as_bytes()).unwrap();
        let mut routers = list.routers.clone();
        routers.sort();
        assert_eq!((routers, list.edges.len()), (["a", "b", "c"].map(str::to_owned).to_vec(), 5));
        assert!(list.notes[0].starts_with("1 <port> elements have no effect"), "{:?}", list.notes);
        let linked = read("g", text.replace("target=\"c\"", "target=\"rack\"").as_bytes()).unwrap();
        assert_eq!(linked.routers.len(), 4, "an edge that ends at a group makes it a router");
    }
}
