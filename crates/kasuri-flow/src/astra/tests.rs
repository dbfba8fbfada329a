//! Tests of the rules against closed forms and published figures, and of one NPU that stands for all against all of them.

use super::*;
use kasuri_workload::execution::cluster::{Choice, Cluster, Dimension, Groups, Implementation, Pattern, System, Topology};
use kasuri_workload::execution::trace::{Collective, Kind, Message, Node, Operation, Trace};
use std::collections::BTreeMap;

fn node(id: u64, kind: Kind, waits_for: &[u64]) -> Node {
    Node { id, name: "n".into(), kind, duration_ns: 0, on_host: false, waits_for: waits_for.into() }
}

fn trace(nodes: Vec<Node>) -> Trace {
    Trace { nodes, unmodelled: BTreeMap::new() }
}

fn collective(operation: Operation, bytes: u64) -> Node {
    let collective = Collective { operation: Some(operation), bytes: Some(bytes), ..Collective::default() };
    node(0, Kind::Collective(Box::new(collective)), &[])
}

fn cluster(topology: Topology, npus: u32, bandwidth: f64, latency_ns: f64) -> Cluster {
    Cluster { dimensions: vec![Dimension { topology, npus, bandwidth, latency_ns }] }
}

fn system(implementation: Implementation, splits: u64) -> System {
    let choice = vec![Choice { implementation, over_all: false }];
    System {
        endpoint_delay_ns: 10,
        active_chunks: 1,
        splits: Some(splits),
        implementations: Pattern::ALL.into_iter().map(|pattern| (pattern, choice.clone())).collect(),
        memory_gb_s: Some(50.0),
        ..System::default()
    }
}

fn run_on(cluster: &Cluster, system: &System, backend: Backend, traces: &[Trace], use_symmetry: bool) -> Result<Vec<u64>, String> {
    let (groups, algorithms) = (Groups::new(), BTreeMap::new());
    let job = Job { cluster, system, groups: &groups, traces, algorithms: &algorithms, queues: 1 };
    run(&Input { job, backend, use_symmetry })
}

/// The unit tests of the analytical network: 1 MiB from NPU 1 to 4 of 16, at 50 GB/s and 500 ns.
#[test]
fn a_message_takes_the_time_of_the_unit_tests() {
    let message = Message { source: Some(1), destination: Some(4), bytes: Some(1 << 20), tag: Some(3) };
    let mut traces = vec![Trace::default(); 16];
    traces[1].nodes.push(node(0, Kind::Send(message), &[]));
    traces[4].nodes.push(node(0, Kind::Receive(message), &[]));
    let expected = [
        (Topology::Ring, Backend::Unaware, 21_031),
        (Topology::FullyConnected, Backend::Unaware, 20_031),
        (Topology::Switch, Backend::Unaware, 20_531),
        (Topology::Ring, Backend::Aware, 60_093),
        (Topology::FullyConnected, Backend::Aware, 20_031),
        (Topology::Switch, Backend::Aware, 40_062),
    ];
    for (topology, backend, time) in expected {
        let system = system(Implementation::Ring, 1);
        let finished = run_on(&cluster(topology, 16, 50.0, 500.0), &system, backend, &traces, true).unwrap();
        assert_eq!((finished[1], finished[4], finished[0]), (time, time, 0), "{topology:?} {backend:?}");
    }
}

/// The regression test of ASTRA-sim: 8 NPUs, 1 MiB in 4 chunks.
#[test]
fn an_all_reduce_takes_the_time_of_the_regression_test() {
    let traces = vec![trace(vec![collective(Operation::AllReduce, 1 << 20)]); 8];
    for (backend, use_symmetry) in [(Backend::Aware, true), (Backend::Aware, false), (Backend::Unaware, true), (Backend::Unaware, false)] {
        let system = system(Implementation::Ring, 4);
        let finished = run_on(&cluster(Topology::Ring, 8, 50.0, 500.0), &system, backend, &traces, use_symmetry);
        assert_eq!(finished, Ok(vec![117_780; 8]), "{backend:?} {use_symmetry}");
    }
}

/// Chunk by chunk: E + sends (C + E) + reductions P, with the sends and reductions of each collective on a ring.
#[test]
fn rings_take_the_time_of_their_closed_form() {
    for npus in [3_u32, 5, 8] {
        for (operation, bytes, splits) in [
            (Operation::AllReduce, 1_000_003, 4),
            (Operation::AllGather, 40_000, 3),
            (Operation::ReduceScatter, 77_777, 1),
            (Operation::AllToAll, 5, 2),
        ] {
            let n = u64::from(npus);
            let chunk = if operation == Operation::AllGather { bytes / splits } else { (bytes / splits).max(n) };
            let chunks = if chunk == n { splits } else { bytes.div_ceil(chunk) };
            let message = if operation == Operation::AllGather { chunk } else { chunk / n };
            let (sends, reductions) = match operation {
                Operation::AllReduce => (2 * (n - 1), n - 1),
                Operation::ReduceScatter => (n - 1, n - 1),
                Operation::AllToAll => (n * (n - 1) / 2, 0),
                _ => (n - 1, 0),
            };
            let flight = (250.5 + message as f64 / (31.25 * f64::from(1 << 30) / 1e9)) as u64;
            let reduction = 3 * (message as f64 / 50e9 * 1e9) as u64;
            let expected = chunks * (10 + sends * (flight + 10) + reductions * reduction);
            let traces = vec![trace(vec![collective(operation, bytes)]); npus as usize];
            let network = cluster(Topology::Ring, npus, 31.25, 250.5);
            let finished = run_on(&network, &system(Implementation::Ring, splits), Backend::Aware, &traces, false);
            assert_eq!(finished, Ok(vec![expected; npus as usize]), "{npus} {operation:?}");
        }
    }
}

/// Every collective, implementation, topology and backend, on 3 to 9 NPUs, with sizes that divide and that do not.
#[test]
fn one_npu_stands_for_all() {
    let implementations = [
        Implementation::Ring,
        Implementation::Direct { window: None },
        Implementation::Direct { window: Some(2) },
        Implementation::HalvingDoubling,
    ];
    let operations = [Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll];
    let (mut compared, mut alike) = (0, 0);
    for npus in 3..=9 {
        for topology in Topology::ALL {
            for backend in [Backend::Aware, Backend::Unaware] {
                for (implementation, operation) in implementations.into_iter().flat_map(|one| operations.map(|other| (one, other))) {
                    for (bytes, splits, latency, endpoint) in
                        [(1 << 16, 1, 500.0, 10), (10_007, 3, 1.0, 1), (64, 1, 9.5, 10), (100, 2, 10.0, 10)]
                    {
                        let network = cluster(topology, npus, 50.0, latency);
                        let system = System { endpoint_delay_ns: endpoint, ..system(implementation, splits) };
                        let waits = Node { id: 2, waits_for: [0].into(), ..collective(operation, bytes / 2 + 9) };
                        let compute = Node { duration_ns: 3000, ..node(1, Kind::Compute { operations: None, bytes: None }, &[]) };
                        let traces = vec![trace(vec![collective(operation, bytes), compute, waits]); npus as usize];
                        let one = run_on(&network, &system, backend, &traces, true);
                        let all = run_on(&network, &system, backend, &traces, false);
                        assert_eq!(one.is_ok(), all.is_ok());
                        if let Ok(all) = all {
                            assert_eq!(one, Ok(all), "{npus} {topology:?} {backend:?} {implementation:?} {operation:?} {bytes}");
                            compared += 1;
                        }
                        let (groups, algorithms) = (Groups::new(), BTreeMap::new());
                        let job = Job {
                            cluster: &network,
                            system: &system,
                            groups: &groups,
                            traces: &traces,
                            algorithms: &algorithms,
                            queues: 1,
                        };
                        let input = Input { job, backend, use_symmetry: true };
                        alike += u32::from(are_alike(&input));
                    }
                }
            }
        }
    }
    assert!(compared > 1500 && alike > 1000, "{compared} {alike}");
}

#[test]
fn what_astra_sim_is_silent_about_is_an_error() {
    let refused = |traces: &[Trace], system: &System| {
        run_on(&cluster(Topology::Ring, traces.len() as u32, 50.0, 500.0), system, Backend::Aware, traces, true).unwrap_err()
    };
    let ring = system(Implementation::Ring, 4);
    let message = |bytes| Message { source: Some(0), destination: Some(1), bytes: Some(bytes), tag: Some(1) };
    let mut traces = vec![Trace::default(); 3];
    traces[0].nodes.push(node(0, Kind::Send(message(100)), &[]));
    traces[1].nodes.push(node(0, Kind::Receive(message(101)), &[]));
    assert!(refused(&traces, &ring).contains("NPU 1 never finishes"));
    let compute = Kind::Compute { operations: None, bytes: None };
    let cycle = trace(vec![node(0, compute.clone(), &[1]), node(1, compute, &[0])]);
    assert!(refused(&[cycle, Trace::default(), Trace::default()], &ring).contains("in a cycle"));
    let gather = vec![trace(vec![collective(Operation::AllGather, 3)]); 3];
    assert!(refused(&gather, &ring).contains("never ends"));
    assert!(refused(&vec![trace(vec![collective(Operation::Barrier, 3)]); 3], &ring).contains("BARRIER"));
    assert!(refused(&vec![trace(vec![collective(Operation::AllReduce, 3)]); 2], &ring).contains("Ring of 2"));
    assert!(
        refused(&vec![trace(vec![collective(Operation::AllReduce, 3)]); 3], &System { splits: None, ..ring.clone() }).contains("splits")
    );
    let alone = [trace(vec![collective(Operation::AllReduce, 300)]), Trace::default(), Trace::default()];
    assert!(refused(&alone, &ring).contains("others do not take part"));
    assert!(refused(&alone, &System { endpoint_delay_ns: 0, ..ring.clone() }).contains("at 0 ns"));
}
