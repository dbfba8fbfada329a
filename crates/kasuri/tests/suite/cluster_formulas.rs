//! Formulas for traces on their cluster against the flow engine: equal where nothing is shared, a bound everywhere.

use super::cluster::{FLOW, collective, dimension, job, node, trace};
use kasuri::cluster::run;
use kasuri_flow::analysis::programs::{Answer, answer};
use kasuri_workload::execution::cluster::{Implementation, Topology};
use kasuri_workload::execution::trace::{Collective, Kind, Message, Node, Operation, Trace};
use kasuri_workload::execution::workload::Traces;

const RING: Implementation = Implementation::Ring;
const DIRECT: Implementation = Implementation::Direct { window: None };
const HALVING: Implementation = Implementation::HalvingDoubling;
const TREE: Implementation = Implementation::DoubleBinaryTree;
const OPERATIONS: [Operation; 4] = [Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll];

/// When the last NPU has finished: by formulas and by flows.
fn both(traces: Traces) -> (Answer, f64) {
    let formulas = answer(traces.job()).unwrap();
    let flows = run(traces, &FLOW).unwrap();
    (formulas, flows.into_iter().fold(0.0, f64::max))
}

fn last(answer: &Answer) -> f64 {
    answer.npus.iter().map(|npu| npu.finish_ns).fold(0.0, f64::max)
}

fn is_there(implementation: Implementation, operation: Operation, npus: u32) -> bool {
    match implementation {
        TREE => operation == Operation::AllReduce && npus.is_power_of_two(),
        HALVING => operation != Operation::AllToAll && npus.is_power_of_two(),
        _ => true,
    }
}

/// Where no two messages meet on a link, flows take the time of the closed form, to the latency of one step; with trees, where the root
/// starts the next chunk first, to one step for each chunk.
#[test]
fn closed_forms_are_the_times_of_flows_where_nothing_is_shared() {
    let (mesh, ring, switch) = (Topology::FullyConnected, Topology::Ring, Topology::Switch);
    let windows = [1, 2, 3].map(|window| Implementation::Direct { window: Some(window) });
    let on_mesh = [RING, DIRECT, HALVING, TREE].into_iter().chain(windows).map(|algorithm| (mesh, algorithm));
    let mut compared = 0;
    for (topology, implementation) in on_mesh.chain([(ring, RING), (switch, RING), (switch, HALVING)]) {
        for npus in [2_u32, 3, 4, 8, 16] {
            for operation in OPERATIONS.into_iter().filter(|&operation| is_there(implementation, operation, npus)) {
                for (bytes, splits) in [(1 << 20, 1), (300_000, 3)] {
                    let traces = vec![collective(operation, bytes); npus as usize];
                    let (formulas, flows) = both(job(vec![dimension(topology, npus, 50.0, 500.0)], implementation, splits, traces));
                    let hops = if topology == switch { 2.0 } else { 1.0 };
                    let (found, about) = (last(&formulas), format!("{topology:?} {implementation:?} {npus} {operation:?} {splits}"));
                    let steps = if implementation == TREE { splits as f64 } else { 1.0 };
                    let near = steps * 520.0 * hops + 1e-3 * flows;
                    assert!((found - flows).abs() < near, "{about}: {found} ns, flows take {flows}");
                    assert!(formulas.bound_ns <= flows * (1.0 + 1e-3), "{about}: {} bounds {flows}", formulas.bound_ns);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

/// Rings over several dimensions, each with separate links, and chunks that follow each other.
#[test]
fn chunks_follow_each_other_through_dimensions_as_flows_do() {
    let (mesh, ring, switch) = (Topology::FullyConnected, Topology::Ring, Topology::Switch);
    for (places, splits) in [([(ring, 4), (switch, 2)], 1), ([(switch, 4), (mesh, 3)], 5), ([(mesh, 2), (ring, 5)], 8)] {
        for operation in OPERATIONS {
            let dimensions = vec![dimension(places[0].0, places[0].1, 100.0, 500.0), dimension(places[1].0, places[1].1, 50.0, 1000.0)];
            let npus = places[0].1 * places[1].1;
            let (formulas, flows) = both(job(dimensions, RING, splits, vec![collective(operation, 1 << 20); npus as usize]));
            let found = last(&formulas);
            assert!((found - flows).abs() < 2000.0 + 1e-3 * flows, "{places:?} {operation:?}: {found} ns, flows take {flows}");
        }
    }
}

/// Nothing ends before the busiest link has carried its bytes, nor before an NPU has computed; however much is shared.
#[test]
fn no_flow_ends_before_the_bound() {
    let (mesh, ring, switch) = (Topology::FullyConnected, Topology::Ring, Topology::Switch);
    let compute =
        |id, us, waits: &[u64]| Node { duration_ns: 1000 * us, ..node(id, Kind::Compute { operations: None, bytes: None }, waits) };
    let gathers = |id, operation, bytes, group, waits: &[u64]| {
        let collective = Collective { operation: Some(operation), bytes: Some(bytes), group, ..Collective::default() };
        node(id, Kind::Collective(Box::new(collective)), waits)
    };
    let mut tight = 0;
    for places in [vec![(ring, 8)], vec![(switch, 8)], vec![(mesh, 4), (switch, 2)], vec![(ring, 4), (ring, 2)]] {
        for implementation in [RING, DIRECT, HALVING] {
            for seed in 0..4_u64 {
                let operation = OPERATIONS[if implementation == HALVING { seed % 3 } else { seed } as usize];
                let program = |npu: u32| {
                    let (group, other) = (1 + npu % 2, (npu + 3) % 8);
                    let message = |source, destination| Message {
                        source: Some(source),
                        destination: Some(destination),
                        bytes: Some(50_000 << seed),
                        tag: Some(1),
                    };
                    trace(vec![
                        compute(0, 3 + u64::from(npu) * seed, &[]),
                        gathers(1, operation, 100_000 << seed, 0, &[0]),
                        node(2, Kind::Send(message(npu, other)), &[0]),
                        node(3, Kind::Receive(message((npu + 5) % 8, npu)), &[0]),
                        gathers(4, Operation::AllGather, 70_000, group, &[1]),
                        compute(5, 40, &[3, 4]),
                    ])
                };
                let dimension = |&(topology, npus)| dimension(topology, npus, 50.0, 500.0);
                let mut traces = job(places.iter().map(dimension).collect(), implementation, 2, (0..8).map(program).collect());
                traces.groups = [(1, vec![0, 2, 4, 6]), (2, vec![7, 5, 3, 1])].into();
                let (formulas, flows) = both(traces);
                let about = format!("{places:?} {implementation:?} {seed}");
                assert!(formulas.bound_ns <= flows * (1.0 + 1e-3), "{about}: {} bounds {flows}", formulas.bound_ns);
                assert!(formulas.npus.iter().all(|npu| npu.finish_ns >= npu.compute_ns && npu.finish_ns >= npu.collective_ns));
                tight += usize::from(formulas.bound_ns > 0.5 * flows);
            }
        }
    }
    assert!(tight > 3, "{tight} bounds are at least half of the time");
}

/// Traces of nothing end at once.
#[test]
fn empty_programs_take_no_time() {
    let (formulas, flows) = both(job(vec![dimension(Topology::Ring, 3, 50.0, 500.0)], RING, 1, vec![Trace::default(); 3]));
    assert_eq!((last(&formulas), flows, formulas.bound_ns, formulas.busiest), (0.0, 0.0, 0.0, None));
}
