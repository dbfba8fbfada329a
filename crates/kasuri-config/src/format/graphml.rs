//! Networks as GraphML, for networkx, igraph, Gephi and yEd.

use super::dot::node;
use super::edge_list::{Edge, EdgeList, Node};
use super::xml::{self, Xml};
use super::{FormatError, short};
use crate::fabric::Speed;
use kasuri_network::id::{ChannelId, Port, RouterId};
use kasuri_network::network::{Endpoint, MAX_CHANNEL_CYCLES, MAX_PORTS, Names, Network};
use roxmltree::Node as Element;
use std::collections::BTreeMap;
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
/// `period` (cycles), `source_port` and `target_port`. An undirected edge is a link, a directed one a channel. Where no node is a terminal,
/// every router has one of its name.
///
/// # Errors
/// No GraphML, an edge between nodes that are not there, an attribute that is not what it should be; with the line.
pub fn read(name: &str, bytes: &[u8]) -> Result<EdgeList, FormatError> {
    let document = xml::document(name, bytes)?;
    let mut reader = Reader { xml: Xml { name, document: &document }, keys: BTreeMap::new(), nodes: BTreeMap::new() };
    reader.graph()
}

struct Reader<'a> {
    xml: Xml<'a>,
    /// The attribute that a key's id stands for.
    keys: BTreeMap<&'a str, &'a str>,
    nodes: BTreeMap<&'a str, Node>,
}

impl<'a> Reader<'a> {
    fn data(&self, element: Element<'a, 'a>) -> BTreeMap<&'a str, &'a str> {
        let data = element.children().filter(|child| child.tag_name().name() == "data");
        let named = data.filter_map(|child| Some((*self.keys.get(child.attribute("key")?)?, child.text().unwrap_or_default().trim())));
        named.collect()
    }

    /// A whole number up to a limit, written as one or as `4.0`.
    fn number(&self, element: Element<'_, '_>, data: &BTreeMap<&str, &str>, key: &str, most: u32) -> Result<Option<u32>, FormatError> {
        let Some(text) = data.get(key) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..=f64::from(most)).contains(number));
        let wrong = || self.xml.error(element, format!("{key} is `{}`; it must be a whole number, 0 to {most}", short(text)));
        number.map(|number| Some(number as u32)).ok_or_else(wrong)
    }

    fn graph(&mut self) -> Result<EdgeList, FormatError> {
        let root = self.xml.document.root_element();
        if root.tag_name().name() != "graphml" {
            return Err(self.xml.error(root, format!("begins with <{}>; GraphML begins with <graphml>", short(root.tag_name().name()))));
        }
        for key in root.children().filter(|child| child.tag_name().name() == "key") {
            let id = self.xml.needed(key, "id")?;
            self.keys.insert(id, key.attribute("attr.name").unwrap_or(id));
        }
        let graph =
            root.children().find(|child| child.tag_name().name() == "graph").ok_or_else(|| self.xml.error(root, "has no <graph>"))?;
        let is_directed = graph.attribute("edgedefault") == Some("directed");
        let mut list = EdgeList { name: self.xml.name.to_owned(), ..EdgeList::default() };
        for element in graph.children().filter(|child| child.tag_name().name() == "node") {
            self.node(element, &mut list)?;
        }
        for element in graph.children().filter(|child| child.tag_name().name() == "edge") {
            let edge = self.edge(element, is_directed)?;
            list.edges.push(edge);
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

    fn node(&mut self, element: Element<'a, 'a>, list: &mut EdgeList) -> Result<(), FormatError> {
        let (id, data) = (self.xml.needed(element, "id")?, self.data(element));
        let name = data.get("name").filter(|name| !name.is_empty()).map_or(id, |name| *name).to_owned();
        let node = match data.get("kind").copied().unwrap_or("router") {
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

    fn edge(&self, element: Element<'a, 'a>, is_directed: bool) -> Result<Edge, FormatError> {
        let data = self.data(element);
        let end = |key: &str, port: &str| {
            let id = self.xml.needed(element, key)?;
            let node = *self.nodes.get(id).ok_or_else(|| self.xml.error(element, format!("{key} is `{}`, which is no node", short(id))))?;
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
        let both_ways = element.attribute("directed").map_or(!is_directed, |directed| directed != "true");
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
            ("target=\"b\"", "target=\"c\"", "g:9: target is `c`, which is no node"),
            ("target=\"b\"", "target=\"a\"", "g:9: joins a router to itself"),
            ("400.0", "fast", "g:9: gbit is `fast`; it must be Gbit/s above 0"),
            (">terminal<", ">host<", "g:8: kind is `host`; it must be router or terminal"),
            ("id=\"b\"", "id=\"a\"", "g:7: a second node `a`"),
            ("source=\"a\"", "", "g:9: <edge> has no attribute `source`"),
            ("graphml", "graph", "g:"),
        ] {
            let error = read("g", TRIANGLE.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{new}: {error}");
        }
        assert!(read("g", b"<svg/>").unwrap_err().to_string().contains("begins with <svg>; GraphML begins with <graphml>"));
        assert!(read("g", b"<graphml/>").unwrap_err().to_string().contains("has no <graph>"));
    }
}
