//! Hosts with a memory shared by their terminals, flit by flit: the same formula as for flows, and the same times within the grain of
//! flits.

use crate::hosts::{MESH, completion, hosts, study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::Engine;

/// 125 packets of 8 flits from each terminal.
fn messages(pattern: &str) -> String {
    format!("[traffic]\n{pattern}\nprocess = \"batch\"\nbatch_packets = 125\npacket_flits = 8\n")
}

/// The path of the first flit, and the turns of those of one host, cycles.
fn grain(terminals: u32, slowdown: f64) -> f64 {
    30.0 + 2.0 * f64::from(terminals) * slowdown
}

/// V terminals of a host that all send and receive 1000 flits; a memory of H Gbyte/s moves H / (10 w) of them in a cycle.
#[test]
fn a_memory_that_is_too_slow_makes_the_exchange_as_long_as_the_formula() {
    let exchange = messages("pattern = \"bit-complement\"");
    for (terminals, memory, copies) in [(1, 20.0, 0), (4, 80.0, 0), (4, 60.0, 0), (4, 100.0, 1), (2, 10.0, 2), (4, 33.0, 0)] {
        let asked = 2.0 * f64::from(terminals) * 10.0 * f64::from(1 + 2 * copies);
        let slowdown = f64::max(1.0, asked / memory);
        let (expected, text) = (1000.0 * slowdown, format!("{MESH}{}{exchange}", hosts(terminals, memory, copies)));
        let found = completion(&FlitEngine, &text);
        let case = format!("{terminals} terminals, {memory} Gbyte/s, {copies} copies");
        assert!((expected - slowdown..=expected + grain(terminals, slowdown)).contains(&found), "{case}: {found}, {expected}");
        let flows = completion(&FlowEngine, &text);
        assert!((found - flows).abs() <= grain(terminals, slowdown) + 1.0, "{case}: {found} as flits, {flows} as flows");
    }
}

/// Two messages, each read and written in the same memory.
#[test]
fn a_message_within_a_host_takes_its_memory_twice() {
    let pairs = messages("pattern = \"permutation\"\npath = \"pairs\"");
    let found = completion(&FlitEngine, &format!("{MESH}{}{pairs}", hosts(2, 20.0, 0)));
    assert!((1998.0..2040.0).contains(&found), "{found}");
}

/// Collectives with ranks that wait for each other, on hosts that share memories: as flows and as flits, with memories that are a
/// bottleneck and ones that are not.
#[test]
fn collectives_take_the_time_of_flows_within_the_grain() {
    let sends = "[workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 400\n";
    for (terminals, memory) in [(2, 20.0), (4, 40.0), (4, 20.0), (4, 100.0)] {
        let text = format!("{MESH}{}{sends}", hosts(terminals, memory, 0));
        let (flits, flows) = (completion(&FlitEngine, &text), completion(&FlowEngine, &text));
        assert!((flits / flows - 1.0).abs() < 0.05, "{terminals} terminals, {memory} Gbyte/s: {flits} as flits, {flows} as flows");
    }
}

/// Meaningless combinations are refused with the reason.
#[test]
fn machines_and_queues_for_classes_are_refused_with_shared_memories() {
    let machine = "[endpoint]\nmodel = \"dsm\"\n[workload]\nprogram = \"random-access\"\naccesses = 3\nwrite_fraction = 0.5\n";
    let queues = "[router]\nclass_queues = true\n[[traffic.class]]\npattern = \"uniform\"\nload = 0.1\n[[traffic.class]]\npattern = \"uniform\"\nload = 0.1\n";
    for (rest, reason) in [(machine, "have memories of their own"), (queues, "before its host's memory is")] {
        let study = study(&FlitEngine, &format!("{MESH}{}{rest}", hosts(2, 20.0, 0))).unwrap();
        let refusals = FlitEngine.prepare(&study.scenario).err().expect("a refusal");
        assert!(refusals.iter().any(|refusal| refusal.key == "hosts" && refusal.reason.contains(reason)), "{refusals:?}");
    }
}
