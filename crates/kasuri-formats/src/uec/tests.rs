//! Tests of the readers of UEC htsim's files.

use super::{fabric, matrix, network};
use kasuri_network::id::RouterId;
use kasuri_network::network::Link;
use kasuri_workload::ethernet::matrix::{Begin, TriggerKind};

const LEAF_SPINE: &str = "# 16 hosts\nNodes 16\nTiers 2\nPodsize 16\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
                          Downlink_Latency_ns 1000\n\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 500\n";

const FAT_TREE: &str = "nodes 64\ntiers 3\npodsize 16\nTier 2\nDownlink_speed_Gbps 200\nRadix_Down 8\nBundle 2\nDownlink_Latency_ns 2000\n\
                        Tier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4 # to two switches\nDownlink_Latency_ns 300.7\n\
                        Switch_Latency_ns 400\n\
                        Tier 1\nBundle 2\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 4\nDownlink_Latency_ns 500\n";

#[test]
fn fabrics_are_read_whatever_the_order_of_their_tiers() {
    let leaf_spine = fabric("f", LEAF_SPINE.as_bytes()).unwrap();
    assert_eq!((leaf_spine.switches(), leaf_spine.pods()), (vec![4, 4], 1));
    assert_eq!(leaf_spine.latency_ps(0, 15), 3_000_000);
    let fat_tree = fabric("f", FAT_TREE.replace('\n', "\r\n").as_bytes()).unwrap();
    assert_eq!((fat_tree.switches(), fat_tree.pods()), (vec![16, 8, 4], 4));
    assert_eq!((fat_tree.tiers[0].link_latency_ns, fat_tree.tiers[0].switch_latency_ns), (300, 400));
    assert_eq!(fat_tree.picoseconds_per_byte(0, 63), [80, 80, 40, 40, 80, 80]);
}

#[test]
fn errors_of_fabrics_name_the_line_and_the_key() {
    for (from, to, expected) in [
        ("Nodes 16\n", "", "f:1: nodes is missing"),
        ("Nodes 16", "Nodes\t16", "f:1: nodes is missing"),
        ("Nodes 16", "Nodes 0", "f:2: nodes: 0 hosts"),
        ("Nodes 16", "Nodes 15", "f:4: podsize: the 15 hosts do not fill pods of 16"),
        ("Nodes 16", "Nodes x", "f:2: nodes: `x` is not a whole number"),
        ("Nodes 16", "Nodes 99999999999", "f:2: nodes: `99999999999` is not a whole number"),
        ("Tiers 2\n", "", "f:1: tiers is missing"),
        ("Tiers 2", "Tiers 4", "f:3: tiers: 4 is neither 2 (leaf-spine) nor 3"),
        ("Tiers 2", "Tiers 3", "f:1: `Tier 2` is missing"),
        ("Podsize 16\n", "", "f:1: podsize is missing"),
        ("Podsize 16", "Podsize 8", "f:4: podsize: a fabric of two tiers is one pod, so it is 16, not 8"),
        ("Tier 1", "Tier 3", "f:12: Tier 3: there are only 0"),
        ("Tier 1", "Tier 2", "f:1: `Tier 1` is missing"),
        ("Radix_Down 4\nRadix_Up 4", "Radix_Down 4", "f:6: radix_up of tier 0 is missing or 0"),
        ("Radix_Up 4\n", "Radix_Up 4\nRadix_Up 4\n", "f:10: duplicate key radix_up in tier 0; the first is on line 9"),
        ("Radix_Up 4\n", "Radix_Up 4\nColour 4\n", "f:10: unknown key `colour` of a tier"),
        ("Radix_Up 4\n", "Radix_Up 4\n Colour 4\n", "f:10: a line inside a tier must begin with a key"),
        ("Radix_Up 4\n", "Radix_Up 4\n\r\n", "f:10: a line inside a tier must begin with a key"),
        ("Radix_Up 4", "Radix_Up 2", "f:6: oversubscribed: 1, but Radix_Down 4 over Radix_Up 2 is 2"),
        ("Radix_Up 4", "Radix_Up 4\nOversubscribed 0", "f:10: oversubscribed: 0"),
        ("Radix_Up 4", "Radix_Up 4\nBundle 2", "f:10: bundle: 2 links; hosts have one link"),
        ("Downlink_Latency_ns 500", "Downlink_Latency_ns 0", "f:15: downlink_latency_ns of tier 1 is missing or 0"),
        (
            "Radix_Down 4\nDownlink_Latency_ns 500",
            "Radix_Down 4\nBundle 3\nDownlink_Latency_ns 500",
            "f:14: radix_down: 4 links are not a multiple",
        ),
        (
            "Radix_Down 4\nDownlink_Latency_ns 500",
            "Radix_Down 8\nDownlink_Latency_ns 500",
            "f:9: radix_up: the rates and radices make 2 switches",
        ),
        ("Radix_Down 4\nDownlink_Latency_ns 500", "Radix_Down 8\nDownlink_Latency_ns 500", "a Bundle of 2 would fit"),
        ("Tier 1\nDownlink_speed_Gbps 100", "Tier 1\nDownlink_speed_Gbps 200", "f:9: radix_up: the rates and radices make 2 switches"),
        ("Tier 1\nDownlink_speed_Gbps 100", "Tier 1\nDownlink_speed_Gbps 9000", "f:13: downlink_speed_gbps: 9000 is more than 8000"),
    ] {
        assert!(LEAF_SPINE.contains(from), "{from}");
        let error = fabric("f", LEAF_SPINE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{to:?}: {error}");
    }
    for (from, to, expected) in [
        ("Bundle 2\nDownlink_Latency_ns 2000", "Bundle 2\nRadix_Up 4\nDownlink_Latency_ns 2000", "f:8: radix_up: the switches of tier 2"),
        ("Bundle 2\nDownlink_Latency_ns 2000", "Bundle 2\nQueue_Up 4\nDownlink_Latency_ns 2000", "f:8: queue_up: the switches of tier 2"),
        ("Radix_Up 4\nDownlink_Latency_ns 500", "Radix_Up 5\nDownlink_Latency_ns 500", "radix_up: 5 links are not a multiple of 2"),
        ("Nodes 64", "Nodes 4294967295", "nodes: 4294967295 hosts; there may be 1 to"),
    ] {
        let error = fabric("f", FAT_TREE.replace("nodes", "Nodes").replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{to:?}: {error}");
    }
}

/// Every link has the same two ends seen from either side, and slower links a longer period.
#[test]
fn fabrics_become_networks_with_names_and_tiers() {
    let fabric = fabric("f", FAT_TREE.as_bytes()).unwrap();
    let network = network(&fabric, Link { latency: 9, period: 1 }, Link { latency: 3, period: 1 }).unwrap();
    assert_eq!((network.router_count(), network.terminal_count()), (28, 64));
    assert_eq!(network.router_channels().count(), 2 * (64 + 32));
    let names = [0, 16, 24].map(|router| network.router_name(RouterId(router)));
    assert_eq!(names, ["router tor0", "router aggregation0", "router core0"]);
    assert_eq!(network.labels().router("level").unwrap()[15..25], [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    assert_eq!(network.labels().router("pod").unwrap()[15..25], [3, 0, 0, 1, 1, 2, 2, 3, 3, 4]);
    for channel in network.router_channels() {
        let ends = [network.source(channel), network.destination(channel)].map(|end| network.endpoint_name(end));
        let expected = if ends.iter().any(|end| end.contains("core")) { 1 } else { 2 };
        assert_eq!(network.link(channel), Link { latency: 9, period: expected }, "{ends:?}");
    }
}

const MATRIX: &str = "# three in turn\nNodes 16\nSomething else\nConnections 3\nTriggers 1\n\
                      0->13 id 5 start 1.9 size 1000000 send_done_trigger 7 \r\n\
                      \n13->7 id 2 start 3 trigger 7 size 500000\n7->0 id 3 trigger 7 prio 1 size 2\ntrigger id 7 oneshot\n";

#[test]
fn matrices_have_flows_and_triggers() {
    let read = matrix("m", MATRIX.as_bytes()).unwrap();
    assert_eq!(read.ignored.into_iter().collect::<Vec<_>>(), [("prio", 1)]);
    let flows = &read.matrix.connections;
    assert_eq!((flows[0].begin, flows[0].bytes, flows[0].tells), (Begin::At(1_000_000), 1_000_000, Some(0)));
    assert_eq!((flows[1].begin, flows[1].source, flows[1].destination, flows[1].id), (Begin::Trigger(0), 13, 7, 2));
    assert_eq!((read.matrix.triggers[0].kind, read.matrix.triggers[0].flows.as_slice()), (TriggerKind::Oneshot, [1, 2].as_slice()));
    let unnamed = matrix("m", b"Nodes 2\nConnections 2\n0->1 start 16777217 size 1\n1->0 id 1 start 0 size 1\n").unwrap().matrix;
    assert_eq!(unnamed.connections.iter().map(|flow| flow.id).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(unnamed.connections[0].begin, Begin::At(16_777_216_000_000), "a start has 24 binary digits");
}

#[test]
fn errors_of_matrices_name_the_line_and_the_word() {
    for (from, to, expected) in [
        ("Nodes 16\n", "", "m:1: Nodes is missing"),
        ("Connections 3", "Connections 4", "m:4: Connections: the header says 4, the file holds 3"),
        ("Triggers 1\n", "", "m:1: Triggers: the header says 0, the file holds 1"),
        ("Triggers 1", "Triggers 1\nFailures 1", "m:6: Failures: the header says 1, the file holds 0"),
        ("0->13", "0->16", "m:6: destination: invalid number `16`; expected a whole number from 0 to 15"),
        ("0->13", "13->13", "m:6: the flow leads from host 13 to itself"),
        ("id 5", "id 0", "m:6: id: invalid flow number 0"),
        ("id 5", "id  5", "m:6: id: invalid number ``"),
        ("id 5", " id 5", "m:6: two blanks in a row"),
        ("id 2", "id 5", "m:8: id: flow 5 is also on line 6"),
        ("start 1.9", "start -1", "m:6: start: invalid time `-1`; expected µs"),
        ("start 1.9", "", "two blanks"),
        ("start 1.9 ", "", "m:6: neither start nor trigger says when the flow begins"),
        ("start 3 trigger 7", "trigger 7 start 3", "m:8: start behind trigger"),
        ("id 3 trigger 7", "trigger 7", "m:9: trigger: the flow needs an `id` before it"),
        (" size 500000", "", "m:8: size is missing"),
        ("size 500000", "size 0", "m:8: size: a flow of 0 bytes begins and never ends"),
        ("size 500000", "size 2147483648", "m:8: size: invalid number `2147483648`; expected a whole number from 0 to 2147483647"),
        ("size 500000", "size 5 msg 1", "m:8: msg: connections that send several messages"),
        ("size 500000", "size 5 colour", "m:8: unknown word `colour` of a connection"),
        ("\n13->7", "\n# more\n13->7", "m:8: comments are allowed before the first connection only"),
        ("\n13->7", "\nfailure switch_type AGG switch_id 0 link_id 0\n13->7", "m:8: failure: missing links are not modelled"),
        ("\n13->7", "\nsomething\n13->7", "m:8: `something` begins neither a connection"),
        ("id 7 oneshot", "id 8 oneshot", "m:6: send_done_trigger: trigger 7 is not described"),
        ("id 7 oneshot", "id 7 barrier", "m:10: barrier: `count` and a number of signals"),
        ("id 7 oneshot", "id 7 sometimes", "m:10: unknown trigger kind `sometimes`"),
        ("id 7 oneshot", "id 7 oneshot now", "m:10: unexpected `now` after the trigger"),
        ("id 7 oneshot", "7 oneshot", "m:10: a trigger is written"),
        ("oneshot\n", "oneshot\ntrigger id 7 oneshot\n", "m:11: trigger 7 is described a second time"),
        (
            "size 2\n",
            "size 2 send_done_trigger 7\n",
            "m:9: send_done_trigger: trigger 7 (line 10) would be signalled 2 times; at most 1 are possible",
        ),
    ] {
        assert!(MATRIX.contains(from), "{from}");
        let error = matrix("m", MATRIX.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{to:?}: {error}");
    }
    let untold = "Nodes 2\nConnections 1\nTriggers 1\n0->1 start 0 size 1 send_done_trigger 1\ntrigger id 1 oneshot\n";
    assert!(matrix("m", untold.as_bytes()).unwrap_err().to_string().contains("m:5: trigger 1 is signalled and starts no flow"));
}
