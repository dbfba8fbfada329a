//! Every reader of text takes a file with a byte-order mark as the same file without one, and says so of a file in UTF-16.

use kasuri_config::{Document, fabric};
use kasuri_formats::{
    anynet, astra, edge_list, forwarding_csv, forwarding_dump, goal, graphml, hosts, ibnetdiscover, ibnetdiscover_ports, layers,
    mesh_graph, msccl, nccl, network_json, ns3, service_levels, sl2vl, slurm_topology, trace, traffic, uec,
};
use kasuri_network::network::Link;
use kasuri_network::network::Terminals;
use kasuri_workload::units::Units;
use std::fmt::Debug;

/// What a reader makes of a file, or its error, as text.
type Reader = fn(&[u8]) -> Result<String, String>;

fn shown<T: Debug, E: ToString>(read: Result<T, E>) -> Result<String, String> {
    read.map(|found| format!("{found:?}")).map_err(|error| error.to_string())
}

macro_rules! corpus {
    ($path:literal) => {
        include_bytes!(concat!("../../../../fuzz/corpus/", $path))
    };
}

const PORTS: &[u8] = b"CA  1  1 0x0002c90300000020 4x EDR - SW 2  1 0x0002c90300000010 ( 'n0 mlx5_0' - 'leaf' )\n";
const PAIR: &[u8] = b"router a router b\nterminal 0 router a\nterminal 1 router b\n";

/// Each reader and a file that it takes.
const READERS: [(&str, &[u8], Reader); 25] = [
    ("anynet", corpus!("anynet/ring.txt"), |bytes| shown(anynet::parse("f", bytes))),
    ("astra network", corpus!("astra/network.yml"), |bytes| shown(astra::network("f", bytes))),
    ("astra system", corpus!("astra/system.json"), |bytes| shown(astra::system("f", bytes))),
    ("astra groups", corpus!("astra/groups.json"), |bytes| shown(astra::groups("f", bytes, 4))),
    ("edge list", corpus!("edge_list/ring.txt"), |bytes| shown(edge_list::parse("f", bytes))),
    ("forwarding table", b"a,0,0\nb,1,0\n", |bytes| {
        let pair = edge_list::parse("f", PAIR).map_err(|error| error.to_string())?.network(Link::default(), Link::default());
        shown(forwarding_csv::parse("f", bytes, &pair.map_err(|error| error.to_string())?))
    }),
    ("forwarding dump", corpus!("forwarding_dump/leaf.txt"), |bytes| {
        let mut items = Vec::new();
        let read = forwarding_dump::parse("f", bytes, &mut |item| {
            items.push(format!("{item:?}"));
            Ok(())
        });
        shown(read.map(|()| items))
    }),
    ("goal", corpus!("goal/dependencies.goal"), |bytes| shown(goal::parse("f", bytes))),
    ("graphml", corpus!("graphml/pair.graphml"), |bytes| shown(graphml::read("f", bytes))),
    ("hosts", b"node017 0\nnode018 1-3\n", |bytes| {
        let hosts = hosts::parse("f", bytes, 4).map_err(|error| error.to_string())?;
        shown::<_, String>(Ok(hosts.terminals().map(|terminal| hosts.at(terminal).map(str::to_owned)).collect::<Vec<_>>()))
    }),
    ("ibnetdiscover", corpus!("ibnetdiscover/pair.txt"), |bytes| shown(ibnetdiscover::parse("f", bytes))),
    ("ibnetdiscover -p", PORTS, |bytes| shown(ibnetdiscover_ports::parse("f", bytes))),
    ("layers", b"DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 64 1\n", |bytes| shown(layers::parse("f", bytes))),
    ("mesh graph", corpus!("mesh_graph/two_meshes_4x4.textproto"), |bytes| shown(mesh_graph::parse("f", bytes))),
    ("mesh graph in YAML", corpus!("mesh_graph/dual_galaxy_mesh_graph_descriptor.yaml"), |bytes| shown(mesh_graph::parse_yaml("f", bytes))),
    ("msccl", corpus!("msccl/pair.xml"), |bytes| shown(msccl::parse("f", bytes))),
    ("nccl", corpus!("nccl/topo_3p_pcie.xml"), |bytes| shown(nccl::parse("f", bytes))),
    ("ns-3", corpus!("ns3/servers.txt"), |bytes| shown(ns3::parse("f", bytes))),
    ("service levels", corpus!("service_levels/levels.txt"), |bytes| {
        let mut levels = Vec::new();
        let read = service_levels::parse("f", bytes, &mut |level| {
            levels.push(level);
            Ok(())
        });
        shown(read.map(|()| levels))
    }),
    (
        "virtual lanes",
        b"Switch 0x02c9, base LID 2, \"T\"\n#in out : 0 1\n0   1   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  15\n",
        |bytes| {
            let mut items = Vec::new();
            let read = sl2vl::parse("f", bytes, &mut |item| {
                items.push(format!("{item:?}"));
                Ok(())
            });
            shown(read.map(|()| items))
        },
    ),
    ("topology.conf", b"SwitchName=leaf Nodes=n[1-2]\n", |bytes| shown(slurm_topology::parse_conf("f", bytes))),
    ("matrix", corpus!("traffic/matrix.txt"), |bytes| shown(traffic::parse_matrix("f", bytes, 4))),
    ("permutation", corpus!("traffic/pairs.txt"), |bytes| shown(traffic::parse_permutation("f", bytes, 4))),
    ("uec fabric", corpus!("uec/leaf-spine.topo"), |bytes| shown(uec::fabric("f", bytes))),
    ("uec flows", corpus!("uec/triggers.cm"), |bytes| shown(uec::matrix("f", bytes))),
];

#[test]
fn readers_skip_the_mark_and_name_other_encodings() {
    for (name, text, read) in READERS {
        let plain = read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read(&[b"\xef\xbb\xbf", text].concat()).as_ref(), Ok(&plain), "{name}");
        let letters = std::str::from_utf8(text).unwrap().encode_utf16();
        let utf16: Vec<u8> = [0xfeff].into_iter().chain(letters).flat_map(u16::to_le_bytes).collect();
        let error = read(&utf16).expect_err(name);
        assert!(error.contains("f:1: is text in UTF-16") && error.contains("iconv"), "{name}: {error}");
    }
}

/// A trace comes in pieces: the mark may be cut.
#[test]
fn traces_skip_the_mark_wherever_pieces_end() {
    let text = [b"\xef\xbb\xbf", &corpus!("trace/messages.csv")[..]].concat();
    let units = Units { flit_bytes: Some(64), cycle_ns: Some(5.12) };
    let read = |pieces: &[&[u8]]| {
        let mut lines = trace::Lines::new("f", Terminals::from(4), units);
        pieces.iter().all(|piece| lines.take(piece));
        shown(lines.finish())
    };
    let plain = read(&[&text[3..]]);
    assert!(plain.is_ok(), "{plain:?}");
    for cut in 0..text.len().min(8) {
        assert_eq!(read(&[&text[..cut], &text[cut..]]), plain);
    }
    assert!(read(&[b"\xff\xfe0\0\n\0"]).unwrap_err().contains("f:1: is text in UTF-16"));
}

#[test]
fn whole_networks_and_experiments_may_have_a_mark() {
    let text = [b"\xef\xbb\xbf", &corpus!("network_json/mesh.json")[..]].concat();
    assert_eq!(network_json::parse("f", &text).unwrap(), network_json::parse("f", &text[3..]).unwrap());
    let text = std::str::from_utf8(corpus!("experiment/mesh.toml")).unwrap();
    assert!(Document::parse("f", &format!("\u{feff}{text}")).is_ok());
}

/// `kasuri fabric import` recognises what a marked file is.
#[test]
fn fabrics_with_a_mark_are_recognised() {
    for (name, text) in [
        ("pair.txt", &corpus!("ibnetdiscover/pair.txt")[..]),
        ("servers.txt", corpus!("ns3/servers.txt")),
        ("pair.graphml", corpus!("graphml/pair.graphml")),
        ("topo.xml", corpus!("nccl/topo_3p_pcie.xml")),
        ("edges.txt", b"router a router b gbit=100\nterminal 0 router a\nterminal 1 router b\n"),
    ] {
        let import = |bytes: Vec<u8>| fabric::import(&[(name.to_owned(), bytes)], fabric::Options::default()).map(|found| found.network);
        assert_eq!(import([b"\xef\xbb\xbf", text].concat()), import(text.to_vec()), "{name}");
        assert!(import(text.to_vec()).is_ok(), "{name}");
    }
}
