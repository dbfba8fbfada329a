//! Properties of the exported forms of every network.

use crate::common::networks;
use crate::random::any_network;
use kasuri_config::{Document, fabric};
use kasuri_formats::{astra, chakra, dot, edge_list, graphml, hostlist, hosts, mesh_graph, msccl, network_json, traffic, uec};
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_network::network::{Link, Network};
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

#[test]
fn json_keeps_everything() {
    for network in networks() {
        let text = network_json::write(&network);
        assert_eq!(network_json::parse("written", text.as_bytes()).as_ref(), Ok(&*network), "{}", network.name());
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
        let channels = network.channel_count() + 2 * network.further_home_count();
        assert_eq!(2 * both + text.matches("dir=forward").count(), channels as usize, "{}", network.name());
        for router in (0..network.router_count()).map(RouterId) {
            assert!(text.contains(&format!("\n  r{router} [")));
        }
    }
}

/// Whatever the writers say of a network of terminals with one port, `topology = "file"` reads as the same network, labels apart.
#[test]
fn graphml_reads_back_as_the_same_network() {
    for network in networks().into_iter().filter(|network| network.further_home_count() == 0) {
        let list = graphml::read("written", graphml::write(&network).as_bytes()).unwrap();
        let read = list.network(Link { latency: 9, period: 9 }, Link { latency: 8, period: 8 }).unwrap();
        assert_same_channels(&read, &network);
        assert_eq!(read.router_names().all(), network.router_names().all(), "{}", network.name());
        assert_eq!(read.terminal_names().all(), network.terminal_names().all());
    }
}

/// Ports, and each channel with its ends and speed.
fn assert_same_channels(read: &Network, network: &Network) {
    assert_eq!(read.port_bases(), network.port_bases(), "{}", network.name());
    assert_eq!((read.terminal_count(), read.channel_count()), (network.terminal_count(), network.channel_count()), "{}", network.name());
    for channel in (0..network.channel_count()).map(ChannelId) {
        assert_eq!((read.source(channel), read.destination(channel)), (network.source(channel), network.destination(channel)));
        assert_eq!(read.link(channel), network.link(channel));
    }
}

/// A run sees each port of a terminal with several as a terminal. What it keeps is read as that, and as the network that it was made of.
#[test]
fn networks_by_ports_are_read_as_both() {
    for network in networks().into_iter().filter(|network| network.further_home_count() > 0) {
        let by_ports = network.by_terminal_ports();
        let read = network_json::parse("kept", network_json::write(&by_ports).as_bytes()).unwrap();
        assert_eq!(read, by_ports, "{}", network.name());
        assert_eq!(read.owners(), Some(&network));
        // Each terminal has two channels, each port of one by ports too.
        assert_eq!(read.channel_count(), network.channel_count() + 2 * network.further_home_count());
        // A terminal that is a port itself has no further ports.
        let text = network_json::write(&by_ports).replacen("\"of_terminals\"", "\"further_homes\":[[0,0,0]],\"of_terminals\"", 1);
        assert!(network_json::parse("kept", text.as_bytes()).unwrap_err().to_string().contains("has `further_homes` and `of_terminals`"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edge_lists_of_any_network_read_back(network in any_network()) {
        let list = edge_list::parse("written", edge_list::write(&network).as_bytes()).expect("what was written");
        let read = list.network(Link { latency: 7, period: 7 }, Link { latency: 7, period: 7 }).expect("what was written");
        prop_assert_eq!(read.port_bases(), network.port_bases());
        prop_assert_eq!(read.channel_count(), network.channel_count());
        for channel in (0..network.channel_count()).map(ChannelId) {
            prop_assert_eq!(read.channel_name(channel), network.channel_name(channel));
            prop_assert_eq!(read.link(channel), network.link(channel));
        }
    }

    /// Whatever the bytes, the parser answers, and what it accepts it can build or refuse.
    #[test]
    fn edge_list_parser_never_panics(text in "((router|terminal|port|->|[a-c0-3]|latency=[0-9x]|ports=9|#)[ \n]){0,40}") {
        if let Ok(list) = edge_list::parse("random", text.as_bytes()) {
            let _ = list.network(Link::default(), Link::default());
        }
    }

    #[test]
    fn host_parser_never_panics(text in "([a-c]|[0-9]{1,12}|-|,|#|[ \t\n]){0,40}") {
        if let Ok(hosts) = hosts::parse("random", text.as_bytes(), 8) {
            prop_assert!(hosts.terminals().all(|terminal| terminal.0 < 8 && hosts.at(terminal).is_some()));
        }
    }

    #[test]
    fn edge_list_parser_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(list) = edge_list::parse("random", &bytes) {
            prop_assert!(list.routers.len() <= bytes.len());
        }
    }

    #[test]
    fn traffic_parsers_take_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "([0-9.e,-]{1,4}[ \n#]){0,30}") {
        for bytes in [&bytes[..], text.as_bytes()] {
            if let Ok(destinations) = traffic::parse_permutation("random", bytes, 4) {
                prop_assert_eq!(destinations.len(), 4);
            }
            if let Ok(rows) = traffic::parse_matrix("random", bytes, 4) {
                prop_assert!(rows.iter().flatten().all(|&(to, weight)| to < 4 && weight > 0.0));
            }
        }
    }
}

/// The seeds of the fuzzer are read, and no beginning of one makes a parser panic.
#[test]
fn the_corpora_are_read() {
    let beginnings =
        |text: &str| (0..text.len()).filter(|&end| text.is_char_boundary(end)).map(|end| text[..end].to_owned()).collect::<Vec<_>>();
    let ring = include_str!("../../../../fuzz/corpus/edge_list/ring.txt");
    let network = edge_list::parse("ring.txt", ring.as_bytes()).unwrap().network(Link::default(), Link::default()).unwrap();
    assert_eq!((network.router_count(), network.terminal_count()), (3, 2));
    for text in beginnings(ring) {
        let _ = edge_list::parse("cut.txt", text.as_bytes()).map(|list| list.network(Link::default(), Link::default()));
    }
    let (permutation, pairs) =
        (include_str!("../../../../fuzz/corpus/traffic/permutation.txt"), include_str!("../../../../fuzz/corpus/traffic/pairs.txt"));
    assert_eq!(traffic::parse_permutation("p", permutation.as_bytes(), 4).unwrap(), [Some(3), Some(2), Some(0), Some(1)]);
    assert_eq!(traffic::parse_permutation("p", pairs.as_bytes(), 4).unwrap(), [Some(1), Some(0), None, None]);
    let matrix = include_str!("../../../../fuzz/corpus/traffic/matrix.txt");
    assert_eq!(traffic::parse_matrix("m", matrix.as_bytes(), 4).unwrap()[3], [(0, 1.0), (1, 1000.0), (2, 1.0)]);
    for text in beginnings(permutation).into_iter().chain(beginnings(pairs)).chain(beginnings(matrix)) {
        let _ = (traffic::parse_permutation("p", text.as_bytes(), 4), traffic::parse_matrix("m", text.as_bytes(), 4));
    }
    let rack = include_str!("../../../../fuzz/corpus/hosts/rack.txt");
    assert_eq!(hosts::parse("rack.txt", rack.as_bytes(), 7).unwrap().terminals().count(), 7);
    for text in beginnings(rack) {
        let _ = hosts::parse("cut.txt", text.as_bytes(), 7);
    }
    for text in
        [include_str!("../../../../fuzz/corpus/experiment/mesh.toml"), include_str!("../../../../fuzz/corpus/experiment/fat-tree.toml")]
    {
        assert!(!Document::parse("seed.toml", text).unwrap().points().unwrap().is_empty());
        for text in beginnings(text) {
            let _ = Document::parse("cut.toml", &text).map(|document| document.points().is_ok());
        }
    }
}

/// The same for the dumps of fabrics; of these a byte is another, too.
#[test]
fn the_corpora_of_fabrics_are_read() {
    let pair = include_bytes!("../../../../fuzz/corpus/ibnetdiscover/pair.txt");
    let leaf = include_bytes!("../../../../fuzz/corpus/forwarding_dump/leaf.txt");
    let levels = include_bytes!("../../../../fuzz/corpus/service_levels/levels.txt");
    let whole = |pair: &[u8], leaf: &[u8], levels: &[u8]| {
        let files = [("pair.txt", pair), ("leaf.txt", leaf), ("levels.txt", levels)].map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
        fabric::import(&files, fabric::Options::default())
    };
    let found = whole(pair, leaf, levels).unwrap();
    assert_eq!((found.network.router_count(), found.network.terminal_count()), (1, 2));
    let lists = include_bytes!("../../../../fuzz/corpus/hostlist/rack.txt");
    assert_eq!(hostlist::parse(std::str::from_utf8(lists).unwrap()).unwrap().len(), 8);
    for (which, bytes) in [&pair[..], leaf, levels].into_iter().enumerate() {
        for end in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[end] ^= 0x55;
            for bytes in [&bytes[..end], &changed] {
                let mut all = [&pair[..], leaf, levels];
                all[which] = bytes;
                let _ = whole(all[0], all[1], all[2]);
            }
        }
    }
}

/// The same for fabrics that one file says.
#[test]
fn the_corpora_of_whole_fabrics_are_read() {
    let meshes = include_bytes!("../../../../fuzz/corpus/mesh_graph/two_meshes_4x4.textproto").as_slice();
    let galaxy = include_bytes!("../../../../fuzz/corpus/mesh_graph/dual_galaxy_mesh_graph_descriptor.yaml").as_slice();
    let joins = [fabric::Join::parse("0:12=1:0*2").unwrap()];
    let whole = |bytes: &[u8]| {
        let options = fabric::Options { joins: &joins, ..fabric::Options::default() };
        fabric::import(&[("f".to_owned(), bytes.to_vec())], options)
    };
    let node = include_bytes!("../../../../fuzz/corpus/nccl/topo_3p_pcie.xml").as_slice();
    let servers = include_bytes!("../../../../fuzz/corpus/ns3/servers.txt").as_slice();
    let graph = include_bytes!("../../../../fuzz/corpus/graphml/pair.graphml").as_slice();
    for (bytes, routers) in [(meshes, 32), (node, 9), (servers, 7), (graph, 2)] {
        assert_eq!(whole(bytes).unwrap().network.router_count(), routers);
        for end in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[end] ^= 0x55;
            let _ = (whole(&bytes[..end]), whole(&changed));
        }
    }
    assert_eq!(mesh_graph::parse_yaml("y", galaxy).unwrap().meshes[0].shape.chips(), 64);
    for end in 0..galaxy.len() {
        let mut changed = galaxy.to_vec();
        changed[end] ^= 0x55;
        let _ = (mesh_graph::parse_yaml("y", &galaxy[..end]), mesh_graph::parse_yaml("y", &changed));
    }
}

/// The same for the seeds of the formats of AI clusters, which are bytes.
#[test]
fn the_corpora_of_ai_clusters_are_read() {
    let trace = include_bytes!("../../../../fuzz/corpus/chakra/groups.et");
    assert_eq!(chakra::parse("groups.et", trace).unwrap().missing_dependency(), None);
    let (network, system) =
        (include_bytes!("../../../../fuzz/corpus/astra/network.yml"), include_bytes!("../../../../fuzz/corpus/astra/system.json"));
    assert_eq!(astra::network("network.yml", network).unwrap().npus(), 32);
    assert_eq!(astra::system("system.json", system).unwrap().0.splits, Some(4));
    let groups = include_bytes!("../../../../fuzz/corpus/astra/groups.json");
    assert_eq!(astra::groups("groups.json", groups, 4).unwrap()[&2], [3, 2]);
    let pair = include_bytes!("../../../../fuzz/corpus/msccl/pair.xml");
    assert!(msccl::check(&msccl::parse("pair.xml", pair).unwrap()).is_ok());
    for bytes in [&trace[..], network, system, groups, pair] {
        for end in 0..bytes.len() {
            // The end of the file, and a byte that is another.
            let mut changed = bytes.to_vec();
            changed[end] ^= 0x55;
            for bytes in [&bytes[..end], &changed] {
                let _ = (
                    chakra::parse("cut", bytes),
                    astra::network("cut", bytes),
                    astra::system("cut", bytes),
                    astra::groups("cut", bytes, 4),
                );
                let _ = msccl::parse("cut", bytes).map(|algorithm| msccl::check(&algorithm));
            }
        }
    }
}

/// The same for the seeds of fabrics of Ethernet switches and their flows.
#[test]
fn the_corpus_of_uec_htsim_is_read() {
    let fabrics = [
        include_bytes!("../../../../fuzz/corpus/uec/leaf-spine.topo").as_slice(),
        include_bytes!("../../../../fuzz/corpus/uec/fat-tree.topo"),
    ];
    let matrix = include_bytes!("../../../../fuzz/corpus/uec/triggers.cm");
    for bytes in fabrics {
        assert_eq!(uec::fabric("f.topo", bytes).unwrap().hosts, 16);
    }
    assert_eq!(uec::matrix("triggers.cm", matrix).unwrap().matrix.triggers.len(), 2);
    for bytes in fabrics.into_iter().chain([matrix.as_slice()]) {
        for place in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[place] ^= 0x55;
            for bytes in [&bytes[..place], &changed] {
                let _ = (uec::fabric("cut", bytes), uec::matrix("cut", bytes));
            }
        }
    }
}
