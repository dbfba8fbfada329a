//! Networks as GraphML, for networkx, igraph, Gephi and yEd.

use super::dot::node;
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_network::network::{Endpoint, Names, Network};
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
