//! Networks as GraphML, for networkx, igraph, Gephi and yEd.

use super::dot::node;
use crate::id::{ChannelId, RouterId};
use crate::network::{Endpoint, Network};
use std::fmt::Write;

/// Writes a network as a directed GraphML graph.
///
/// Nodes `r0`, … and `t0`, … have `kind` (`router` or `terminal`), `number` and the router labels; edges have `channel`,
/// `latency`, `period` (cycles), `source_port` and `target_port` (-1 at a terminal).
pub fn write(network: &Network) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n");
    let mut line = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).expect("a string takes any text");
    let labels: Vec<&str> = network.labels().router_names().collect();
    line(format_args!("  <key id=\"kind\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/>\n"));
    for name in ["number"].iter().chain(&labels) {
        line(format_args!("  <key id=\"{name}\" for=\"node\" attr.name=\"{name}\" attr.type=\"int\"/>\n", name = escaped(name)));
    }
    for name in ["channel", "latency", "period", "source_port", "target_port"] {
        line(format_args!("  <key id=\"{name}\" for=\"edge\" attr.name=\"{name}\" attr.type=\"int\"/>\n"));
    }
    line(format_args!("  <graph id=\"{}\" edgedefault=\"directed\">\n", escaped(network.name())));
    for router in (0..network.router_count()).map(RouterId) {
        line(format_args!("    <node id=\"r{router}\"><data key=\"kind\">router</data><data key=\"number\">{router}</data>"));
        for name in &labels {
            let value = network.labels().router(name).map_or(0, |column| column[router.index()]);
            line(format_args!("<data key=\"{}\">{value}</data>", escaped(name)));
        }
        line(format_args!("</node>\n"));
    }
    for terminal in 0..network.terminal_count() {
        line(format_args!(
            "    <node id=\"t{terminal}\"><data key=\"kind\">terminal</data><data key=\"number\">{terminal}</data></node>\n"
        ));
    }
    for channel in (0..network.channel_count()).map(ChannelId) {
        let (source, target, link) = (network.source(channel), network.destination(channel), network.link(channel));
        line(format_args!("    <edge id=\"c{channel}\" source=\"{}\" target=\"{}\">", node(source), node(target)));
        let (source_port, target_port) = (port(source), port(target));
        for (key, value) in [("channel", i64::from(channel.0)), ("latency", link.latency.into()), ("period", link.period.into())] {
            line(format_args!("<data key=\"{key}\">{value}</data>"));
        }
        line(format_args!("<data key=\"source_port\">{source_port}</data><data key=\"target_port\">{target_port}</data></edge>\n"));
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

fn port(endpoint: Endpoint) -> i64 {
    match endpoint {
        Endpoint::Router(_, port) => i64::from(port),
        Endpoint::Terminal(_) => -1,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
