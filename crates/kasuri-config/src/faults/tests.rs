//! What `[faults]` names, and what it refuses.

use crate::Document;
use kasuri_network::deadlock::{Verdict, check};
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::network::metrics::Metrics;
use kasuri_network::routing::VirtualChannels;
use kasuri_network::topology::{Files, NoFiles};
use std::collections::BTreeSet;

const LEAF_SPINE: &str = "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\ndown = 3\ntrunk = 2";
const RING: &str = "topology = \"torus\"\ndimensions = [6]";

fn text(network: &str, routing: &str, faults: &str) -> String {
    format!("[network]\n{network}\n[routing]\n{routing}\n[faults]\n{faults}\n[traffic]\npattern = \"uniform\"\nload = 0.1\n")
}

fn network(network: &str, faults: &str, files: &dyn Files) -> Result<Network, String> {
    let document = Document::parse("f.toml", &text(network, "algorithm = \"minimal\"", faults)).map_err(|error| error.to_string())?;
    let points = document.points().map_err(|error| error.to_string())?;
    document.network(&points[0], files).map_err(|error| error.to_string())
}

/// The channels that are down.
fn down(of: &str, faults: &str) -> Vec<u32> {
    network(of, faults, &NoFiles)
        .unwrap()
        .damage()
        .map_or_else(Vec::new, |damage| damage.channels().iter().map(|channel| channel.0).collect())
}

fn study(of: &str, routing: &str, faults: &str) -> Result<crate::Study, String> {
    let document = Document::parse("f.toml", &text(of, routing, faults)).map_err(|error| error.to_string())?;
    let points = document.points().map_err(|error| error.to_string())?;
    document.study(&points[0], &NoFiles).map_err(|error| error.to_string())
}

/// A file of faults beside the experiment.
struct List(&'static str);

impl Files for List {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "list.txt" { Ok(self.0.into()) } else { Err(format!("`{path}` is not there")) }
    }
}

/// Leaf 1 has its terminals at ports 0 to 2 and the links to spines 4 and 5 at 3 and 4, their second copies at 5 and 6.
#[test]
fn every_form_names_the_same_link() {
    let one = down(LEAF_SPINE, "links = [\"1.6\"]");
    assert_eq!(one.len(), 2);
    for same in ["1 5 copy 1", "5 1 copy 1", "1 port 6", "5.5"] {
        assert_eq!(down(LEAF_SPINE, &format!("links = [\"{same}\"]")), one, "{same}");
    }
    let whole = network(LEAF_SPINE, "", &NoFiles).unwrap();
    assert_eq!(whole.damage(), None);
    let ends: Vec<String> = one.iter().map(|&channel| whole.channel_name(ChannelId(channel))).collect();
    assert_eq!(ends, ["router 1 port 6 -> router 5 port 5", "router 5 port 5 -> router 1 port 6"]);
    assert_eq!(down(LEAF_SPINE, "routers = [5]"), down(LEAF_SPINE, "routers = [\"5\"]"));
    assert_eq!(down(LEAF_SPINE, "routers = [5]").len(), 2 * 4 * 2);
    let list = network(LEAF_SPINE, "path = \"list.txt\"", &List("# one\nlink 1 5 copy 1\nlink 2 port 3 # two\nrouter 5\n")).unwrap();
    assert_eq!(list.damage().unwrap().channels().len(), 16 + 2);
    assert_eq!(list.damage().unwrap().routers(), [RouterId(5)]);
}

/// What a file gives times of its own changes then, the rest when the section says; what is as before has the network of before.
#[test]
fn lines_of_a_file_have_times_of_their_own() {
    let list = "link 1 5 copy 1 at 100 until 300\nlink 2.3 until 250 # from the beginning on\nrouter 5 at 2us\nlink 0.3\n";
    let faults = "path = \"list.txt\"\nat = 400\nuntil = 3_000\ndetect_after = 7";
    let text = text(&format!("{LEAF_SPINE}\ncycle_ns = 2"), "algorithm = \"minimal\"", faults);
    let document = Document::parse("f.toml", &text).unwrap();
    let study = document.study(&document.points().unwrap()[0], &List(list)).unwrap();
    let failure = study.scenario.failure.as_ref().unwrap();
    let epochs: Vec<_> = failure
        .epochs
        .iter()
        .map(|epoch| (epoch.cycle, epoch.detected, epoch.network.damage().map_or(0, |damage| damage.channels().len())))
        .collect();
    // Router 5 has eight links, of which the copy 1 to router 1 is up again by then; the link of the third line is one of another router.
    assert_eq!(epochs, [(0, 0, 2), (100, 107, 4), (250, 257, 2), (300, 307, 0), (400, 407, 2), (1000, 1007, 18), (3000, 3007, 16)]);
    // What comes up again is part of the network of engines.
    assert!(study.scenario.network.damage().is_none());
    for (line, wanted) in [
        ("link 0.3 at soon", "list.txt:1: at is \"soon\"; a time is a number"),
        ("router 5 at 9 until 9", "until is cycle 9; it must be after at, cycle 9"),
        ("router 5 until", "`until` has no time behind it"),
        ("lunk 5 at 9", "invalid fault `lunk 5"),
    ] {
        let list: &'static str = line;
        let error = document.study(&document.points().unwrap()[0], &List(list)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{line}: {error}");
    }
}

/// 16 links: a quarter and a bit are 4.16, half of one more rounds up; equal seeds draw the same, and more links the same first ones.
#[test]
fn drawn_links_are_a_rounded_part() {
    for (part, links) in [("0.26", 4), ("0.28125", 5), ("0.0", 0), ("1.0", 16)] {
        assert_eq!(down(LEAF_SPINE, &format!("link_fraction = {part}")).len(), 2 * links, "{part}");
    }
    let three = down(LEAF_SPINE, "link_count = 3\nseed = 7");
    let four = down(LEAF_SPINE, "link_count = 4\nseed = 7");
    assert!(three.len() == 6 && three.iter().all(|channel| four.contains(channel)));
    assert_ne!(three, down(LEAF_SPINE, "link_count = 3\nseed = 8"));
}

/// A plane of the two loses its three routers, which have four links.
#[test]
fn a_plane_is_down_as_a_whole() {
    let planes = "topology = \"planes\"\nplanes = 2\nof = \"leaf-spine\"\nleaves = 2\nspines = 2\ndown = 2";
    let damaged = network(planes, "planes = [1]", &NoFiles).unwrap();
    assert_eq!(damaged.damage().unwrap().channels().len(), 8);
    assert_eq!(damaged.damage().unwrap().routers().len(), 4);
    assert_eq!(Metrics::of(&damaged).links, 4);
}

#[test]
fn what_is_not_there_cannot_be_down() {
    for (faults, expected) in [
        ("links = [\"1.9\"]", "faults.links.0: `9` is not a port of router 1, which has 7 ports"),
        ("links = [\"1.0\"]", "port 0 of router 1 leads to terminal 3, which no other path serves: only links between routers can be down"),
        ("links = [\"1 5\"]", "2 links join router 1 and router 5; say which: copy 0 to copy 1"),
        ("links = [\"1 5 copy 2\"]", "copy `2` is none of the 2 links between router 1 and router 5, which are numbered from 0"),
        ("links = [\"0 1\"]", "no link joins router 0 and router 1"),
        ("links = [\"spine\"]", "invalid link `spine`; name it as `A.p` (router and port), `A B` (two routers) or `A B copy c`"),
        ("links = [\"a b\"]", "`a` is not a router; they are numbered 0 to 5"),
        ("links = [3]", "faults.links.0: is 3; it must be a string"),
        ("routers = [6]", "faults.routers.0: `6` is not a router; they are numbered 0 to 5"),
        ("planes = [0]", "has no planes"),
        ("link_count = 17", "faults.link_count: is 17; the network has 16 links between routers"),
        ("link_fraction = 1.5", "faults.link_fraction: is 1.5; it must be from 0 to 1"),
        ("link_fraction = 0.1\nlink_count = 1", "conflicts with link_count"),
        ("link = 3", "unknown key `link`"),
        ("path = \"none.txt\"", "faults.path: `none.txt` is not there"),
        ("path = \"list.txt\"", "list.txt:2: invalid link `0 1 down at cycle 5`"),
    ] {
        let error = network(LEAF_SPINE, faults, &List("router 5\nlink 0 1 down at cycle 5\n")).unwrap_err();
        assert!(error.contains(expected), "{faults}: {error}");
    }
}

#[test]
fn terminals_that_nobody_reaches_are_named_before_the_run() {
    for (faults, expected) in [
        ("routers = [1]", "router 1 is down, and with it terminal 3 to terminal 5, 3 in all, which cannot be reached"),
        (
            "routers = [4, 5]",
            "32 of 32 channels between routers are down, all of 2 routers among them, and terminal 0 cannot reach terminal 3",
        ),
        ("link_fraction = 1.0", "cut the network"),
    ] {
        let error = study(LEAF_SPINE, "algorithm = \"minimal\"", faults).unwrap_err();
        assert!(error.contains(expected), "{faults}: {error}");
    }
}

/// The paths of these follow from numbers: one that takes what is down is refused. On the ring only 0 and 1 have lost their link, and the
/// packets that would take it.
#[test]
fn a_routing_that_does_not_search_is_refused_with_a_packet() {
    for (of, routing, faults, expected) in [
        (
            RING,
            "algorithm = \"dimension-order\"",
            "links = [\"0 1\"]",
            "a packet from terminal 1 to terminal 0: the routing takes port 1 of router 1, whose link is down",
        ),
        (LEAF_SPINE, "algorithm = \"nca\"\nup_port = \"d-mod-k\"", "routers = [5]", "whose link is down"),
        (LEAF_SPINE, "algorithm = \"nca\"", "links = [\"0.3\"]", "whose link is down"),
    ] {
        let error = study(of, routing, faults).unwrap_err();
        assert!(
            error.contains("routing.algorithm: routing `") && error.contains("does not lead round what is down: a packet from terminal "),
            "{error}"
        );
        assert!(error.contains(expected), "{error}");
    }
    // Nothing is down: nothing is refused.
    assert!(study(RING, "algorithm = \"dimension-order\"", "").is_ok());
}

/// The row of six that is left of a ring has no cycle of channels, the ring has: minimal routing needs one virtual channel there.
#[test]
fn the_deadlock_check_looks_at_what_is_left() {
    let verdict = |faults: &str| {
        let study = study(RING, "algorithm = \"minimal\"", faults).unwrap();
        assert!(!study.promises_no_deadlock());
        let scenario = &study.scenario;
        check(&scenario.network, &*scenario.routing, &[VirtualChannels { begin: 0, end: 1 }]).verdict
    };
    assert_eq!(verdict("links = [\"2 3\"]"), Verdict::Acyclic);
    assert!(matches!(verdict(""), Verdict::Cycle(_)));
}

/// From terminal 2 to 3 of the row the only way leads through all six routers; up-down finds it too.
#[test]
fn searched_paths_lead_round() {
    for algorithm in ["minimal", "up-down", "dijkstra"] {
        let study = study(RING, &format!("algorithm = \"{algorithm}\""), "links = [\"2 3\"]").unwrap();
        let network = &study.scenario.network;
        let mut walker =
            kasuri_network::routing::walk::Walker::new(network, &*study.scenario.routing, VirtualChannels { begin: 0, end: 1 });
        let mut routes = Default::default();
        walker.walk(TerminalId(3), &mut routes).unwrap();
        assert!(routes.steps.iter().all(|step| !network.is_down(step.channel)), "{algorithm}");
        // Sources 2, 1, 0, 5, 4 go one way: five channels between routers, and the terminal's.
        let channels: BTreeSet<_> = routes.steps.iter().map(|step| step.channel).collect();
        assert_eq!(channels.len(), 6, "{algorithm}");
    }
}

/// What is written as JSON comes back with its numbers and what is down; the other formats leave that out.
#[test]
fn damage_is_written_and_read() {
    use kasuri_formats::{dot, edge_list, graphml, network_json};
    let damaged = network(LEAF_SPINE, "routers = [5]\nlinks = [\"0.3\"]", &NoFiles).unwrap();
    let text = network_json::write(&damaged);
    let read = network_json::parse("n.json", text.as_bytes()).unwrap();
    assert_eq!(read, damaged);
    let wrong = text.replace("\"routers_down\":[5]", "\"routers_down\":[6]");
    assert!(network_json::parse("n.json", wrong.as_bytes()).unwrap_err().to_string().contains("`routers_down` has 6; there are 6 routers"));
    let wrong = text.replace("\"channels_down\":[", "\"channels_down\":[1,");
    assert!(network_json::parse("n.json", wrong.as_bytes()).unwrap_err().to_string().contains("`channels_down` has 1; those between"));
    let left = damaged.channel_count() as usize - 18;
    assert_eq!(graphml::write(&damaged).matches("<edge id=").count(), left);
    assert_eq!(2 * dot::write(&damaged).matches("dir=both").count(), left);
    let list = edge_list::parse("n.txt", edge_list::write(&damaged).as_bytes()).unwrap();
    let channels = list.network(Default::default(), Default::default()).unwrap().channel_count();
    assert_eq!(channels as usize, left);
}
