//! Properties of the exported forms of every network.

mod common;

use common::networks;
use kasuri_model::format::{dot, edge_list, graphml};
use kasuri_model::id::{ChannelId, RouterId};
use kasuri_model::network::Link;
use proptest::prelude::*;

#[test]
fn edge_lists_keep_routers_ports_and_channels() {
    for network in networks() {
        let list = edge_list::parse("written", edge_list::write(&network).as_bytes()).unwrap();
        // Other usual speeds: the file tells every one.
        let read = list.network(Link { latency: 9, period: 9 }, Link { latency: 8, period: 8 }).unwrap();
        assert_eq!(read.port_bases(), network.port_bases());
        assert_eq!(read.terminal_count(), network.terminal_count());
        assert_eq!(read.channel_count(), network.channel_count());
        for channel in (0..network.channel_count()).map(ChannelId) {
            assert_eq!(read.channel_name(channel), network.channel_name(channel), "{}", network.name());
            assert_eq!(read.link(channel), network.link(channel));
        }
    }
}

/// Every router, terminal and channel is there once; a DOT edge with two heads stands for two channels.
#[test]
fn exports_hold_every_router_terminal_and_channel() {
    for network in networks() {
        let nodes = (network.router_count() + network.terminal_count()) as usize;
        let text = graphml::write(&network);
        assert_eq!(text.matches("<node id=").count(), nodes);
        assert_eq!(text.matches("<edge id=").count(), network.channel_count() as usize);
        assert_eq!(text.matches("<data key=\"latency\">").count(), network.channel_count() as usize);
        let text = dot::write(&network);
        let both = text.matches("dir=both").count();
        assert_eq!(2 * both + text.matches("dir=forward").count(), network.channel_count() as usize, "{}", network.name());
        for router in (0..network.router_count()).map(RouterId) {
            assert!(text.contains(&format!("\n  r{router} [")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bytes, the parser answers, and what it accepts it can build or refuse.
    #[test]
    fn edge_list_parser_never_panics(text in "((router|terminal|port|->|[a-c0-3]|latency=[0-9x]|ports=9|#)[ \n]){0,40}") {
        if let Ok(list) = edge_list::parse("random", text.as_bytes()) {
            let _ = list.network(Link::default(), Link::default());
        }
    }

    #[test]
    fn edge_list_parser_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(list) = edge_list::parse("random", &bytes) {
            prop_assert!(list.routers.len() <= bytes.len());
        }
    }
}
