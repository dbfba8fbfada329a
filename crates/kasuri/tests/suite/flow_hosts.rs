//! Hosts with a memory shared by their terminals, as flows.

use crate::hosts::{MESH, completion, hosts, study};
use kasuri_flow::FlowEngine;
use proptest::prelude::*;

fn messages(pattern: &str) -> String {
    format!("[traffic]\n{pattern}\nprocess = \"batch\"\nbatch_packets = 1\npacket_flits = 1000\n")
}

/// Each terminal sends and receives at the channel's rate C, so that a host of V terminals asks its memory of rate H for 2 V C w, where w is the
/// number of passes of a message: the exchange takes max(1, 2 V C w / H) times as long.
#[test]
fn a_memory_that_is_too_slow_is_shared_by_all_messages_of_its_host() {
    let exchange = messages("pattern = \"bit-complement\"");
    assert_eq!(completion(&FlowEngine, &format!("{MESH}{exchange}")), 1000.0);
    for (terminals, memory, copies) in [(1, 20.0, 0), (4, 80.0, 0), (4, 60.0, 0), (4, 100.0, 1), (2, 10.0, 2)] {
        let asked = 2.0 * f64::from(terminals) * 10.0 * f64::from(1 + 2 * copies);
        let expected = 1000.0 * f64::max(1.0, asked / memory);
        let found = completion(&FlowEngine, &format!("{MESH}{}{exchange}", hosts(terminals, memory, copies)));
        assert!((found - expected).abs() <= 1.0, "{terminals} terminals, {memory} Gbyte/s, {copies} copies: {found}, {expected}");
    }
}

/// Two messages, each read and written in the same memory: four times 10 Gbyte/s from one of 20.
#[test]
fn a_message_within_a_host_takes_its_memory_twice() {
    let pairs = messages("pattern = \"permutation\"\npath = \"pairs\"");
    assert_eq!(completion(&FlowEngine, &format!("{MESH}{}{pairs}", hosts(2, 20.0, 0))), 2000.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A memory faster than all messages changes nothing, and a slower one makes nothing faster, by both sharings, with their rates
    /// checked.
    #[test]
    fn a_slower_memory_never_helps(terminals in 1u32..5, memory in 5.0f64..200.0, slower in 1.0f64..4.0, max_min: bool) {
        let sharing = if max_min { "max-min" } else { "equal-share" };
        let sends = "[workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 100\nsynchronisation = \"barrier\"\n";
        let time = |hosts: &str| completion(&FlowEngine, &format!("flow.sharing = \"{sharing}\"\n{MESH}{hosts}{sends}"));
        let without = time("");
        prop_assert!((time(&hosts(terminals, 1e6, 0)) - without).abs() <= 1e-6 * without);
        let (fast, slow) = (time(&hosts(terminals, memory, 0)), time(&hosts(terminals, memory / slower, 0)));
        prop_assert!(fast >= without * (1.0 - 1e-9));
        prop_assert!(slow >= fast * (1.0 - 1e-9));
    }
}

#[test]
fn impossible_hosts_are_refused_with_their_key() {
    let exchange = messages("pattern = \"bit-complement\"");
    let without_units = MESH.replace("flit_bytes = 8\nchannel_gbit_per_second = 80\n", "");
    for (network, hosts, problem) in [
        (MESH, hosts(0, 1.0, 0), "hosts.terminals_per_host: is 0; a host has at least 1 terminal"),
        (MESH, hosts(1, 0.0, 0), "hosts.memory_gbyte_per_second: is 0; it must be above 0"),
        (MESH, hosts(1, 1.0, 2000), "hosts.copies: is 2000; it must be 0 to 1000"),
        (&without_units, hosts(1, 1.0, 0), "hosts: asks what a flit and a cycle are: network.flit_bytes"),
    ] {
        let errors = study(&FlowEngine, &format!("{network}{hosts}{exchange}")).unwrap_err();
        assert!(errors.contains(problem), "{errors}");
    }
}
