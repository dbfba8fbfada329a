//! Networks as Graphviz DOT, to draw them.

use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, NONE, Names, Network};
use std::fmt::Write;

/// Writes a network as a directed DOT graph: routers `r0`, … as boxes, terminals `t0`, … as circles.
///
/// The two directions of a link are one edge with two heads; a latency other than 1 labels it. Router labels become
/// attributes of the node (`level=2`); a name of its own is what it is labelled with.
pub fn write(network: &Network) -> String {
    let mut text = format!("digraph \"{}\" {{\n  node [shape=box];\n", network.name().replace('"', "'").replace('\\', "/"));
    let mut line = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).expect("a string takes any text");
    for router in (0..network.router_count()).map(RouterId) {
        let labels = network.labels();
        let column = |name: &str| labels.router(name).map_or(0, |column| column[router.index()]);
        let name = name_label(network.router_names(), router.0);
        let labels: Vec<String> =
            name.into_iter().chain(labels.router_names().map(|name| format!("{}={}", name.replace('.', "_"), column(name)))).collect();
        line(format_args!("  r{router} [{}];\n", labels.join(", ")));
    }
    for terminal in 0..network.terminal_count() {
        let name = name_label(network.terminal_names(), terminal).map_or(String::new(), |label| format!(", {label}"));
        line(format_args!("  t{terminal} [shape=circle{name}];\n"));
    }
    for channel in (0..network.channel_count()).map(ChannelId).filter(|&channel| !network.is_down(channel)) {
        let back = way_back(network, channel);
        if back.is_some_and(|back| back < channel) {
            continue;
        }
        let direction = if back.is_some() { "both" } else { "forward" };
        let latency = network.link(channel).latency;
        let label = if latency == 1 { String::new() } else { format!(", label={latency}") };
        line(format_args!("  {} -> {} [dir={direction}{label}];\n", node(network.source(channel)), node(network.destination(channel))));
    }
    for (terminal, router, _) in network.further_homes() {
        line(format_args!("  t{terminal} -> r{router} [dir=both];\n"));
    }
    text.push_str("}\n");
    text
}

/// The attribute that shows a name, where there are names.
fn name_label(names: &Names, number: u32) -> Option<String> {
    let name = &names.all()?[number as usize];
    Some(format!("label=\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")))
}

/// The name of a router or terminal in exported graphs.
pub(super) fn node(endpoint: Endpoint) -> String {
    match endpoint {
        Endpoint::Router(router, _) => format!("r{router}"),
        Endpoint::Terminal(terminal) => format!("t{terminal}"),
    }
}

/// The channel between the same two ports in the other direction, if it is as fast.
fn way_back(network: &Network, channel: ChannelId) -> Option<ChannelId> {
    let back = match (network.source(channel), network.destination(channel)) {
        (_, Endpoint::Router(router, port)) => network.output_channel(router, port)?,
        (_, Endpoint::Terminal(TerminalId(terminal))) => network.injection_channel(TerminalId(terminal)),
    };
    debug_assert_ne!(back.0, NONE);
    let reversed = network.source(back) == network.destination(channel) && network.destination(back) == network.source(channel);
    (reversed && network.link(back) == network.link(channel)).then_some(back)
}
