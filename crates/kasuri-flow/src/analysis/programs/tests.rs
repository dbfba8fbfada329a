//! Closed forms as the literature writes them, longest paths by hand, and the busiest link.

use super::{Answer, answer};
use kasuri_workload::execution::cluster::{Choice, Cluster, Dimension, Implementation, Optimization, Pattern, System, Topology};
use kasuri_workload::execution::npus::Job;
use kasuri_workload::execution::trace::{Collective, Kind, Message, Node, Operation, Trace};
use std::collections::BTreeMap;

/// Bytes per nanosecond of a link of 50 GB/s as ASTRA-sim counts them.
const RATE: f64 = 50.0 * 1.073_741_824;

const DIRECT: Implementation = Implementation::Direct { window: None };

fn dimension(topology: Topology, npus: u32, bandwidth: f64, latency_ns: f64) -> Dimension {
    Dimension { topology, npus, bandwidth, latency_ns }
}

fn one(topology: Topology, npus: u32) -> Vec<Dimension> {
    vec![dimension(topology, npus, 50.0, 500.0)]
}

fn system(implementation: Implementation, dimensions: usize, splits: u64) -> System {
    let choices = vec![Choice { implementation, over_all: false }; dimensions];
    System {
        endpoint_delay_ns: 10,
        active_chunks: 1,
        splits: Some(splits),
        implementations: Pattern::ALL.into_iter().map(|pattern| (pattern, choices.clone())).collect(),
        memory_gb_s: Some(50.0),
        optimization: Optimization::LocalBandwidthAware,
        ..System::default()
    }
}

fn node(id: u64, kind: Kind, waits_for: &[u64]) -> Node {
    Node { id, name: "n".into(), kind, duration_ns: 0, on_host: false, waits_for: waits_for.into() }
}

fn compute(id: u64, microseconds: u64, waits_for: &[u64]) -> Node {
    Node { duration_ns: 1000 * microseconds, ..node(id, Kind::Compute { operations: None, bytes: None }, waits_for) }
}

fn collective(id: u64, operation: Operation, bytes: u64, group: u32, waits_for: &[u64]) -> Node {
    let collective = Collective { operation: Some(operation), bytes: Some(bytes), group, ..Collective::default() };
    node(id, Kind::Collective(Box::new(collective)), waits_for)
}

fn trace(nodes: Vec<Node>) -> Trace {
    Trace { nodes, unmodelled: BTreeMap::new() }
}

fn ask(dimensions: Vec<Dimension>, system: &System, groups: &BTreeMap<u32, Vec<u32>>, traces: &[Trace]) -> Result<Answer, String> {
    let cluster = Cluster { dimensions };
    answer(Job { cluster: &cluster, system, groups, traces, algorithms: &BTreeMap::new(), queues: 1 })
}

/// One collective of all: its answer.
fn alone(dimensions: Vec<Dimension>, implementation: Implementation, splits: u64, operation: Operation, bytes: u64) -> Answer {
    let npus: u32 = dimensions.iter().map(|dimension| dimension.npus).product();
    let system = system(implementation, dimensions.len(), splits);
    let traces = vec![trace(vec![collective(0, operation, bytes, 0, &[])]); npus as usize];
    ask(dimensions, &system, &BTreeMap::new(), &traces).unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected + 1.0, "{found}, not {expected}");
}

/// Rings: E + S (L + m/B + E) + R P; the regression test of ASTRA-sim has 117,780 ns for this, in whole nanoseconds.
#[test]
fn rings_have_the_form_of_the_literature() {
    let found = alone(one(Topology::Ring, 8), Implementation::Ring, 4, Operation::AllReduce, 1 << 20);
    let message = f64::from(1 << 20) / 4.0 / 8.0;
    let reduction = 3.0 * (message / 50.0).floor();
    let time = 4.0 * (10.0 + 14.0 * (500.0 + message / RATE + 10.0) + 7.0 * reduction);
    assert!(found.npus.iter().all(|npu| npu.finish_ns == npu.collective_ns));
    close(found.npus[3].finish_ns, time);
    assert!((time - 117_780.0).abs() < 4.0 * 14.0, "{time}");
    let [all] = found.collectives.as_slice() else { panic!("{:?}", found.collectives) };
    assert_eq!((all.times, all.time.chunks, all.time.phases.len(), all.time.phases[0].steps), (1, 4, 1, 14));
    close(all.time.phases[0].latency_ns, 14.0 * 500.0);
    close(all.time.phases[0].serialisation_ns, 14.0 * message / RATE);
    // Two halves of n - 1 messages a chunk go over each link.
    close(found.busiest.unwrap().busy_ns, 4.0 * 14.0 * message / RATE);
}

/// Direct: all at once, one round trip of delays; on a switch the messages of an NPU share its link.
#[test]
fn direct_collectives_take_one_step_or_as_long_as_the_link_of_an_npu() {
    let message = f64::from(1 << 20) / 8.0;
    let mesh = alone(one(Topology::FullyConnected, 8), DIRECT, 1, Operation::AllToAll, 1 << 20);
    close(mesh.npus[0].finish_ns, 20.0 + 500.0 + message / RATE);
    let switch = alone(one(Topology::Switch, 8), DIRECT, 1, Operation::AllToAll, 1 << 20);
    close(switch.npus[0].finish_ns, 20.0 + 1000.0 + 7.0 * message / RATE);
    // Up the ring go those over 1, 2, 3 and 4 places: 10 messages over each link.
    let ring = alone(one(Topology::Ring, 8), DIRECT, 1, Operation::AllToAll, 1 << 20);
    close(ring.npus[0].finish_ns, 20.0 + 4.0 * 500.0 + 10.0 * message / RATE);
    let reduce = alone(one(Topology::FullyConnected, 8), DIRECT, 1, Operation::AllReduce, 1 << 20);
    close(reduce.npus[0].finish_ns, 30.0 + 2.0 * (500.0 + message / RATE) + 3.0 * (message / 50.0).floor());
    // Two at once, seven messages: four rounds, the packets of every second of them charged.
    let rounds = alone(one(Topology::FullyConnected, 8), Implementation::Direct { window: Some(2) }, 1, Operation::AllGather, 1 << 20);
    close(rounds.npus[0].finish_ns, 10.0 + 4.0 * (510.0 + 8.0 * message / RATE));
}

/// Halving and doubling: log2 n exchanges of half of what is left, and back.
#[test]
fn exchanges_halve_and_double() {
    let bytes = f64::from(1 << 20);
    for npus in [2_u32, 8, 16] {
        let n = f64::from(npus);
        let found = alone(one(Topology::FullyConnected, npus), Implementation::HalvingDoubling, 1, Operation::AllGather, 1 << 20);
        close(found.npus[0].finish_ns, 10.0 + n.log2() * 510.0 + (n - 1.0) * bytes / RATE);
        let found = alone(one(Topology::FullyConnected, npus), Implementation::HalvingDoubling, 1, Operation::AllReduce, 1 << 20);
        let network = 2.0 * (n.log2() * 510.0 + (n - 1.0) / n * bytes / RATE);
        // What is reduced before the next step has the size of its message; the last is not charged.
        let charged: f64 = (2..=npus.ilog2()).map(|step| 3.0 * (bytes / f64::from(1 << step) / 50.0).floor()).sum();
        close(found.npus[0].finish_ns, 10.0 + network + charged);
    }
}

/// Trees: twice log2 n levels, whole chunks, reductions above the leaves.
#[test]
fn trees_go_up_and_down() {
    let bytes = f64::from(1 << 16);
    for npus in [2_u32, 4, 16] {
        let levels = f64::from(npus).log2();
        let found = alone(one(Topology::FullyConnected, npus), Implementation::DoubleBinaryTree, 1, Operation::AllReduce, 1 << 16);
        let reductions = (2.0 * levels - 1.0) * 3.0 * (bytes / 50.0).floor();
        close(found.npus[0].finish_ns, (2.0 * levels + 1.0) * 10.0 + 2.0 * levels * (500.0 + bytes / RATE) + reductions);
    }
}

/// Chunks follow each other through the dimensions; the slowest sets the pace.
#[test]
fn dimensions_are_stages_of_a_pipeline() {
    let dimensions = vec![dimension(Topology::FullyConnected, 4, 200.0, 100.0), dimension(Topology::Switch, 4, 50.0, 1000.0)];
    let found = alone(dimensions, Implementation::Ring, 6, Operation::AllGather, 6 << 16);
    let phase = |bytes: f64, latency: f64, rate: f64| 10.0 + 3.0 * (latency + 10.0 + bytes / rate);
    // An all-gather goes down the dimensions.
    let (last, first) = (phase(65536.0, 2000.0, RATE), phase(4.0 * 65536.0, 100.0, 4.0 * RATE));
    close(found.npus[0].finish_ns, last + first + 5.0 * last.max(first));
    let phases = &found.collectives[0].time.phases;
    assert_eq!(phases.iter().map(|phase| phase.dimension).collect::<Vec<_>>(), [Some(1), Some(0)]);
}

/// A ring of a group over slow and fast links goes at the pace of the slow ones, and no faster than a chain of dependent messages.
#[test]
fn a_group_over_two_nodes_goes_at_the_pace_of_the_link_between_them() {
    let dimensions = vec![dimension(Topology::FullyConnected, 4, 400.0, 100.0), dimension(Topology::Switch, 2, 50.0, 1000.0)];
    let group = BTreeMap::from([(7, vec![0, 1, 4, 5])]);
    let gather = |bytes: u64| {
        let mut traces = vec![Trace::default(); 8];
        [0, 1, 4, 5].into_iter().for_each(|npu| traces[npu] = trace(vec![collective(0, Operation::AllGather, bytes, 7, &[])]));
        ask(dimensions.clone(), &system(Implementation::Ring, 2, 1), &group, &traces).unwrap()
    };
    // 1 to 4 and 5 to 0 take both dimensions, or the second and then the first.
    let (near, far) = (100.0 + 1000.0 / (8.0 * RATE), 2100.0 + 1000.0 / RATE);
    let small = gather(1000);
    close(small.npus[0].finish_ns, 10.0 + 2.0 * far + near + 3.0 * 10.0);
    assert_eq!((small.npus[2].finish_ns, small.collectives[0].gathering.group), (0.0, 7));
    let large = gather(1 << 30);
    assert!(large.npus[0].finish_ns >= 3.0 * f64::from(1 << 30) / RATE, "{:?}", large.npus[0]);
    assert_eq!((large.busiest.unwrap().link.dimension, large.collectives[0].time.phases[0].dimension), (1, None));
}

/// Computations, a message and a collective: the longest path over all NPUs, and what each place has to do.
#[test]
fn the_longest_path_goes_from_npu_to_npu() {
    let message = Message { source: Some(0), destination: Some(1), bytes: Some(1 << 16), tag: Some(3) };
    let mut traces = vec![trace(vec![collective(9, Operation::AllGather, 1000, 0, &[])]); 3];
    traces[0].nodes.splice(0..0, [compute(0, 7, &[]), node(1, Kind::Send(message), &[0]), compute(2, 1, &[0])]);
    traces[1].nodes.splice(0..0, [node(0, Kind::Receive(message), &[]), compute(1, 5, &[0])]);
    traces[1].nodes[2].waits_for = [1].into();
    let found = ask(one(Topology::FullyConnected, 3), &system(Implementation::Ring, 1, 1), &BTreeMap::new(), &traces).unwrap();
    let sent = 500.0 + f64::from(1 << 16) / RATE;
    let gathered = 10.0 + 2.0 * (510.0 + 1000.0 / RATE);
    for npu in &found.npus {
        close(npu.finish_ns, 7000.0 + sent + 5000.0 + gathered);
        close(npu.collective_ns, gathered);
    }
    assert_eq!(found.npus.iter().map(|npu| npu.compute_ns).collect::<Vec<_>>(), [8000.0, 5000.0, 0.0]);
    close(found.npus[0].message_ns, sent);
    assert_eq!((found.npus[1].message_ns, found.bound_ns), (0.0, 8000.0));
}

/// The k-th collective of a group meets the k-th of the others, in the order in which nodes can start.
#[test]
fn collectives_meet_in_the_order_of_their_program() {
    let program = trace(vec![compute(0, 3, &[2]), compute(1, 50, &[0]), collective(2, Operation::AllToAll, 4096, 0, &[])]);
    let late = trace(vec![collective(0, Operation::AllToAll, 4096, 0, &[4]), compute(4, 9, &[])]);
    let traces = [program, late];
    let found = ask(one(Topology::FullyConnected, 2), &system(DIRECT, 1, 1), &BTreeMap::new(), &traces).unwrap();
    let time = 20.0 + 500.0 + 2048.0 / RATE;
    close(found.npus[1].finish_ns, 9000.0 + time);
    close(found.npus[0].finish_ns, 9000.0 + time + 53_000.0);
}

#[test]
fn what_has_no_end_or_no_formula_is_refused() {
    let message = |bytes| Message { source: Some(0), destination: Some(1), bytes: Some(bytes), tag: Some(1) };
    let traces = [trace(vec![node(0, Kind::Send(message(10)), &[])]), trace(vec![node(4, Kind::Receive(message(11)), &[])])];
    let ring = system(Implementation::Ring, 1, 1);
    let ask = |system: &System, traces: &[Trace]| ask(one(Topology::FullyConnected, 2), system, &BTreeMap::new(), traces).unwrap_err();
    let problem = ask(&ring, &traces);
    assert!(problem.contains("NPU 1 never finishes: node 4"), "{problem}");
    let alone = [trace(vec![collective(0, Operation::AllReduce, 100, 0, &[])]), Trace::default()];
    assert!(ask(&ring, &alone).contains("NPU 0 never finishes"));
    let two = vec![alone[0].clone(); 2];
    let own = System { custom: [(Pattern::AllReduce, "ring".to_owned())].into(), ..ring.clone() };
    assert!(ask(&own, &two).contains("no trace `ring.0.et`"));
    let cycle = [trace(vec![compute(0, 1, &[1]), compute(1, 1, &[0])]), Trace::default()];
    assert!(ask(&ring, &cycle).contains("in a cycle"));
    let without = System { memory_gb_s: None, ..ring };
    assert!(ask(&without, &two).contains("local-mem-bw"));
}
