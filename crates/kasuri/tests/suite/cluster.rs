//! Execution traces on the network of their cluster, by the flow and the flit engine, against closed forms.

use kasuri::cluster::{Options, run};
use kasuri_model::engine::Method;
use kasuri_workload::execution::alike::is_symmetric;
use kasuri_workload::execution::cluster::{Choice, Cluster, Dimension, Groups, Implementation, Optimization, Pattern, System, Topology};
use kasuri_workload::execution::layers::{Among, Exchange, Layer, LayerTable, Parallelism, Step, Transformer};
use kasuri_workload::execution::trace::{Collective, Kind, Message, Node, Operation, Trace};
use kasuri_workload::execution::workload::Traces;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const FLOW: Options = Options { method: Method::Rates, flit_bytes: None, packet_bytes: 4096, use_symmetry: false };
const FLIT: Options = Options { method: Method::Cycles, flit_bytes: Some(64), ..FLOW };
/// One NPU represents all equivalent ones.
const FOLDED: Options = Options { use_symmetry: true, ..FLOW };

/// Bytes per nanosecond of a link of 50 GB/s as ASTRA-sim counts them.
const RATE: f64 = 50.0 * 1.073_741_824;

pub(crate) fn node(id: u64, kind: Kind, waits_for: &[u64]) -> Node {
    Node { id, name: "n".into(), kind, duration_ns: 0, on_host: false, waits_for: waits_for.into() }
}

pub(crate) fn trace(nodes: Vec<Node>) -> Trace {
    Trace { nodes, unmodelled: BTreeMap::new() }
}

pub(crate) fn collective(operation: Operation, bytes: u64) -> Trace {
    let collective = Collective { operation: Some(operation), bytes: Some(bytes), ..Collective::default() };
    trace(vec![node(0, Kind::Collective(Box::new(collective)), &[])])
}

pub(crate) fn dimension(topology: Topology, npus: u32, bandwidth: f64, latency_ns: f64) -> Dimension {
    Dimension { topology, npus, bandwidth, latency_ns }
}

pub(crate) fn job(dimensions: Vec<Dimension>, implementation: Implementation, splits: u64, traces: Vec<Trace>) -> Traces {
    let choices = vec![Choice { implementation, over_all: false }; dimensions.len()];
    let system = System {
        endpoint_delay_ns: 10,
        active_chunks: 1,
        splits: Some(splits),
        implementations: Pattern::ALL.into_iter().map(|pattern| (pattern, choices.clone())).collect(),
        memory_gb_s: Some(50.0),
        optimization: Optimization::LocalBandwidthAware,
        ..System::default()
    };
    Traces {
        cluster: Cluster { dimensions },
        system,
        groups: Groups::new(),
        traces,
        algorithms: BTreeMap::new(),
        queues: 1,
        besides: Vec::new(),
    }
}

/// All NPUs have finished at this time, to `part` of it and `ns`.
fn assert_all(traces: Traces, options: &Options, expected: f64, (part, ns): (f64, f64)) {
    let about = format!("{:?} {:?}", traces.cluster, options.method);
    let npus = traces.cluster.npus() as usize;
    let times = run(traces, options).unwrap();
    assert_eq!(times.len(), npus);
    for time in times {
        assert!((time - expected).abs() <= part * expected + ns, "{about}: {time} ns, not {expected}");
    }
}

/// Rings: E + sends (L + m/B + E) + reductions P, chunk after chunk, since no two messages meet.
#[test]
fn rings_take_the_time_of_their_closed_form() {
    for npus in [2_u32, 3, 8] {
        for (operation, bytes, splits) in
            [(Operation::AllReduce, 1 << 20, 4), (Operation::AllGather, 40_000, 1), (Operation::ReduceScatter, 1 << 16, 2)]
        {
            let n = f64::from(npus);
            let chunk = bytes as f64 / splits as f64;
            let message = if operation == Operation::AllGather { chunk } else { chunk / n };
            let (sends, reductions) = match operation {
                Operation::AllReduce => (2.0 * (n - 1.0), n - 1.0),
                Operation::ReduceScatter => (n - 1.0, n - 1.0),
                _ => (n - 1.0, 0.0),
            };
            let time = splits as f64 * (10.0 + sends * (500.0 + message / RATE + 10.0) + reductions * 3.0 * message / 50.0);
            let traces = || {
                job(
                    vec![dimension(Topology::Ring, npus, 50.0, 500.0)],
                    Implementation::Ring,
                    splits,
                    vec![collective(operation, bytes); npus as usize],
                )
            };
            // ASTRA-sim cuts reductions to whole nanoseconds.
            assert_all(traces(), &FLOW, time, (2e-4, 3.0 * splits as f64 * n));
            assert_all(traces(), &FLIT, time, (0.02, 10.0 * splits as f64 * n));
        }
    }
}

/// A direct all-to-all: on a full mesh all messages flow at once, on a switch those of an NPU share its link.
#[test]
fn a_direct_all_to_all_is_bounded_by_the_links_of_an_npu() {
    let direct = Implementation::Direct { window: None };
    let (bytes, message) = (1_u64 << 20, f64::from(1 << 20) / 8.0);
    let of = |topology| job(vec![dimension(topology, 8, 50.0, 500.0)], direct, 1, vec![collective(Operation::AllToAll, bytes); 8]);
    for (options, part) in [(&FLOW, 1e-3), (&FLIT, 0.1)] {
        assert_all(of(Topology::FullyConnected), options, 20.0 + 500.0 + message / RATE, (part, 0.0));
        assert_all(of(Topology::Switch), options, 20.0 + 1000.0 + 7.0 * message / RATE, (part, 0.0));
    }
    // A ring carries each message as far as it goes: 1 + 2 + 3 + 4 hops up, 1 + 2 + 3 down.
    let times = run(of(Topology::Ring), &FLOW).unwrap();
    let bound = 10.0 * message / RATE;
    assert!(times.iter().all(|&time| time >= bound && time < 1.5 * bound), "{times:?} against {bound}");
}

/// An NPU that represents all finishes when all of them do.
#[test]
fn one_npu_represents_all_equivalent_ones() {
    let implementations = [Implementation::Ring, Implementation::Direct { window: None }, Implementation::HalvingDoubling];
    let mut folded = 0;
    let (ring, full, switch) = (Topology::Ring, Topology::FullyConnected, Topology::Switch);
    let of_one = [ring, full, switch].into_iter().flat_map(|topology| [3, 4, 7, 16].map(|npus| vec![(topology, npus)]));
    let of_several = [vec![(ring, 4), (switch, 2)], vec![(switch, 4), (full, 3)], vec![(full, 2), (ring, 5), (switch, 4)]];
    for places in of_one.chain(of_several) {
        let npus: u32 = places.iter().map(|(_, npus)| npus).product();
        for implementation in implementations {
            for operation in [Operation::AllToAll, Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter] {
                let nodes = |bytes| {
                    let collective = Collective { operation: Some(operation), bytes: Some(bytes), ..Collective::default() };
                    node(0, Kind::Collective(Box::new(collective)), &[])
                };
                let wait = Node { duration_ns: 2000, ..node(1, Kind::Compute { operations: None, bytes: None }, &[0]) };
                let program = trace(vec![nodes(1 << 16), wait, Node { id: 2, waits_for: [1].into(), ..nodes(3000) }]);
                let traces = || {
                    let rates = [50.0, 25.0, 80.0];
                    let of = |(&(topology, npus), rate)| dimension(topology, npus, rate, 500.0);
                    job(places.iter().zip(rates).map(of).collect(), implementation, 2, vec![program.clone(); npus as usize])
                };
                if is_symmetric(&traces().job(), true) {
                    let (all, one) = (run(traces(), &FLOW), run(traces(), &FOLDED));
                    let same = match (&all, &one) {
                        (Ok(all), Ok(one)) => {
                            folded += 1;
                            all.len() == one.len() && all.iter().zip(one).all(|(a, b)| (a - b).abs() <= 1e-6 * a)
                        }
                        // Halving-doubling has no all-to-all.
                        _ => all == one,
                    };
                    assert!(same, "{places:?} {implementation:?} {operation:?}: {one:?}, not {all:?}");
                }
            }
        }
    }
    assert!(folded > 60, "{folded} cases are alike");
}

/// Over two dimensions: reduce-scatter in the first, all-reduce of the rest in the second, all-gather back.
#[test]
fn dimensions_follow_each_other() {
    let dimensions = vec![dimension(Topology::Ring, 4, 100.0, 500.0), dimension(Topology::Switch, 2, 50.0, 1000.0)];
    let bytes = 1_u64 << 20;
    let traces = job(dimensions, Implementation::Ring, 1, vec![collective(Operation::AllReduce, bytes); 8]);
    let part = bytes as f64 / 4.0;
    let ring = |sends: f64, latency: f64, message: f64, rate: f64| 10.0 + sends * (latency + message / rate + 10.0);
    let reductions = 3.0 * 3.0 * part / 50.0 + 3.0 * (part / 2.0) / 50.0;
    let time = ring(3.0, 500.0, part, 2.0 * RATE) + ring(2.0, 2000.0, part / 2.0, RATE) + ring(3.0, 500.0, part, 2.0 * RATE) + reductions;
    assert_all(traces, &FLOW, time, (1e-3, 20.0));
}

/// A message over two dimensions, computations before and behind it, and an NPU that does nothing.
#[test]
fn computations_and_messages_follow_each_other() {
    let message = Message { source: Some(0), destination: Some(5), bytes: Some(1 << 16), tag: Some(3) };
    let compute = |id, waits: &[u64]| Node { duration_ns: 7000, ..node(id, Kind::Compute { operations: None, bytes: None }, waits) };
    let mut traces = vec![Trace::default(); 8];
    traces[0] = trace(vec![compute(0, &[]), node(1, Kind::Send(message), &[0])]);
    traces[5] = trace(vec![node(0, Kind::Receive(message), &[]), compute(1, &[0])]);
    let dimensions = vec![dimension(Topology::Ring, 4, 50.0, 500.0), dimension(Topology::FullyConnected, 2, 50.0, 250.0)];
    let times = run(job(dimensions, Implementation::Ring, 1, traces), &FLOW).unwrap();
    let arrival = 7000.0 + 750.0 + f64::from(1 << 16) / RATE;
    for (npu, time) in times.iter().enumerate() {
        let expected = [arrival, 0.0, 0.0, 0.0, 0.0, arrival + 7000.0, 0.0, 0.0][npu];
        assert!((time - expected).abs() < 1.0, "NPU {npu}: {time} ns, not {expected}");
    }
}

/// A table of layers without overlap takes its computations and its exchanges one after the other, in every engine: two NPUs share a layer,
/// as neighbours on a private link.
#[test]
fn layers_that_wait_for_each_other_take_the_sum_of_their_parts() {
    let exchange = Exchange { operation: Operation::AllReduce, among: Among::Usual, bytes: 1 << 16 };
    let step = |compute_ns, exchange| Step { compute_ns, exchange };
    let layer = |name: &str| Layer {
        name: name.into(),
        forward: step(5_000, Some(exchange)),
        input_gradient: step(6_000, Some(exchange)),
        weight_gradient: step(7_000, None),
        update_ns: 100,
    };
    let groups = Transformer { tensor: 2, expert: 1, checkpoints: BTreeSet::new(), recomputations: BTreeSet::new() };
    let table = LayerTable {
        parallelism: Parallelism::Transformer(groups),
        layers: vec![layer("a"), layer("b"), layer("c")],
        ignored: Vec::new(),
        job: None,
    };
    for (options, tolerance) in [(FLOW, (1e-3, 10.0)), (FLIT, (2e-2, 100.0))] {
        let mut alone = job(vec![dimension(Topology::FullyConnected, 4, 50.0, 500.0)], Implementation::Ring, 1, Vec::new());
        let cluster = alone.cluster.clone();
        let exchanged = Collective { operation: Some(Operation::AllReduce), bytes: Some(1 << 16), group: 1, ..Collective::default() };
        let member = trace(vec![node(0, Kind::Collective(Box::new(exchanged)), &[])]);
        (alone.groups, alone.traces) = (Groups::from([(1, vec![0, 1])]), vec![member.clone(), member, Trace::default(), Trace::default()]);
        let once = run(alone.clone(), &options).unwrap()[0];
        let mut layers = alone;
        (layers.groups, layers.traces) = table.programs(&cluster).unwrap();
        assert_all(layers, &options, 3.0 * (5_000.0 + 6_000.0 + 7_000.0 + 2.0 * (once + 100.0)), tolerance);
    }
}

#[test]
fn endless_traces_are_refused_with_their_npu() {
    let ring = |traces| job(vec![dimension(Topology::Ring, 3, 50.0, 500.0)], Implementation::Ring, 1, traces);
    let message = |bytes| Message { source: Some(0), destination: Some(1), bytes: Some(bytes), tag: Some(1) };
    let mut traces = vec![Trace::default(); 3];
    traces[0].nodes.push(node(0, Kind::Send(message(100)), &[]));
    traces[1].nodes.push(node(0, Kind::Receive(message(101)), &[]));
    for options in [FLOW, FLIT] {
        let problem = run(ring(traces.clone()), &options).unwrap_err();
        assert!(problem.contains("NPU 1 never finishes") && problem.contains("node 0"), "{problem}");
        let alone = vec![collective(Operation::AllReduce, 300), Trace::default(), Trace::default()];
        let problem = run(ring(alone), &options).unwrap_err();
        assert!(problem.contains("others do not take part"), "{problem}");
    }
    let compute = Kind::Compute { operations: None, bytes: None };
    let cycle = trace(vec![node(0, compute.clone(), &[1]), node(1, compute, &[0])]);
    assert!(run(ring(vec![cycle, Trace::default(), Trace::default()]), &FLOW).unwrap_err().contains("in a cycle"));
    assert!(run(ring(vec![Trace::default(); 2]), &FLOW).unwrap_err().contains("3 NPUs"));
}

/// Times beyond 2^60 ns, as durations, as sums of them, of messages, reductions and all-gathers of more than 2^64 bytes: each is refused with its
/// NPU, by the engines, by formulas and by ASTRA-sim's rules. Eleven days are simulated.
#[test]
fn times_that_are_not_simulated_are_refused() {
    const MAX_NANOSECONDS: u64 = 1 << 60;
    let computes = |id: u64, ns: u64| Node { duration_ns: ns, ..node(id, Kind::Compute { operations: None, bytes: None }, &[]) };
    let on = |bandwidth: f64, program: Vec<Node>| {
        let traces = (0..4).map(|npu| trace(if npu == 3 || bandwidth < 1.0 { program.clone() } else { Vec::new() })).collect();
        job(vec![dimension(Topology::Ring, 4, bandwidth, 500.0)], Implementation::Ring, 1, traces)
    };
    let gathers = |operation, bytes| collective(operation, bytes).nodes;
    let slow_memory = |mut traces: Traces| {
        traces.system.memory_gb_s = Some(1e-12);
        traces
    };
    let cases: [(Traces, &str); 5] = [
        (on(50.0, vec![computes(5, MAX_NANOSECONDS + 1)]), "NPU 3: node 5 (`n`) lasts"),
        (
            on(50.0, vec![computes(1, MAX_NANOSECONDS), computes(7, 1)]),
            "NPU 3: node 7 (`n`) lasts 1 ns; all nodes of an NPU may last at most 2^60 ns",
        ),
        (
            on(0.5, gathers(Operation::AllGather, 1 << 62)),
            "NPU 0: node 0 (`n`): gathers 4611686018427387904 bytes of each of 4 NPUs, 2^64 or more",
        ),
        (on(1e-9, gathers(Operation::AllGather, 1 << 40)), "ns; at most 2^60 ns (36 years) are simulated"),
        (slow_memory(on(0.5, gathers(Operation::AllReduce, 1 << 40))), "a reduction of 274877906944 bytes: takes"),
    ];
    for (traces, expected) in cases {
        let by_formulas = kasuri_flow::analysis::programs::answer(traces.job()).map(|answer| answer.bound_ns);
        let input = kasuri_flow::astra::Input { job: traces.job(), backend: kasuri_flow::astra::Backend::Unaware, use_symmetry: true };
        let by_rules = kasuri_flow::astra::run(&input).map(|times| times[0] as f64);
        let by_flows = run(traces.clone(), &FLOW).map(|times| times[0]);
        for (who, found) in [("formulas", by_formulas), ("ASTRA-sim", by_rules), ("flows", by_flows)] {
            let problem = found.expect_err(who);
            let is_named =
                problem.contains(expected) || problem.contains("2^60 ns") || problem.contains("status") || problem.contains("2^31 flits");
            assert!(is_named && !problem.contains("18446744073709551615"), "{who}: {problem}");
        }
        assert!(kasuri_flow::astra::run(&input).unwrap_err().contains(expected), "{expected}");
    }
    // A cycle of flits of one byte is shorter than a nanosecond: then less than 2^60 ns are simulated, and the error says so.
    assert!(
        run(on(50.0, vec![computes(1, MAX_NANOSECONDS / 2)]), &FLOW)
            .unwrap_err()
            .starts_with("NPU 3: node 1 (`n`): it and the nodes before it last")
    );
    let days = on(50.0, vec![computes(1, 1_000_000_000_000_000)]);
    assert!((run(days, &FLOW).unwrap()[3] - 1e15).abs() < 1.0);
}

/// Tables without waiting between exchanges run as the formulas say, by hand: two layers forward (2 x 1000), the input gradient of the
/// second (1000), its exchange (a ring of 4: 4 messages of 1 KiB and so on, in parallel to 500 of weights), then the rest (1000 + 500 +
/// 10). ASTRA-sim does not look for the node that the update frees; that is a limit of ASTRA-sim.
#[test]
fn tables_that_astra_sim_forgets_run() {
    let exchange = Some(Exchange { operation: Operation::AllReduce, among: Among::Usual, bytes: 4096 });
    let layer = |name: &str| Layer {
        name: name.into(),
        forward: Step { compute_ns: 1000, exchange: None },
        input_gradient: Step { compute_ns: 1000, exchange },
        weight_gradient: Step { compute_ns: 500, exchange: None },
        update_ns: 10,
    };
    for (parallelism, npus) in
        [(Parallelism::Model, vec![4]), (Parallelism::ModelThenData, vec![2, 2]), (Parallelism::DataThenModel, vec![2, 2])]
    {
        let layers = vec![layer("a"), layer("b")];
        let table = LayerTable { parallelism: parallelism.clone(), layers, ignored: Vec::new(), job: None };
        let dimensions: Vec<Dimension> = npus.iter().map(|&npus| dimension(Topology::Ring, npus, 50.0, 500.0)).collect();
        let (groups, programs) = table.programs(&Cluster { dimensions: dimensions.clone() }).unwrap();
        let traces = || Traces { groups: groups.clone(), ..job(dimensions.clone(), Implementation::Ring, 1, programs.clone()) };
        // 2 (n - 1) messages of 1/n of 4 KiB, each after the endpoint's 10 ns, n - 1 reductions of three accesses at 50 GB/s, and the first
        // 10 ns.
        let n = f64::from(npus[0]);
        let ring = 10.0 + 2.0 * (n - 1.0) * (510.0 + 4096.0 / n / RATE) + (n - 1.0) * 3.0 * (4096.0 / n / 50.0).floor();
        let expected = 2000.0 + 1000.0 + ring + 10.0 + 1000.0 + 500.0;
        for options in [&FLOW, &FLIT] {
            assert_all(traces(), options, expected, (5e-3, 5.0));
        }
        let all = traces();
        let input = kasuri_flow::astra::Input { job: all.job(), backend: kasuri_flow::astra::Backend::Unaware, use_symmetry: true };
        assert!(kasuri_flow::astra::run(&input).unwrap_err().contains("no event comes"), "{parallelism:?}");
    }
}

/// Inputs at which only ASTRA-sim stops: a collective of one NPU, an all-gather of fewer bytes than chunks, a message without a tag.
#[test]
fn limits_of_astra_sim_are_its_own() {
    let message = Message { source: Some(0), destination: Some(1), bytes: Some(1 << 20), tag: None };
    let gather = Collective { operation: Some(Operation::AllGather), bytes: Some(3), ..Collective::default() };
    let alone = Collective { operation: Some(Operation::AllReduce), bytes: Some(1 << 20), group: 1, ..Collective::default() };
    let programs: [(Vec<Node>, Vec<Node>); 3] = [
        (vec![node(0, Kind::Send(message), &[])], vec![node(0, Kind::Receive(message), &[])]),
        (vec![node(0, Kind::Collective(Box::new(gather.clone())), &[])], vec![node(0, Kind::Collective(Box::new(gather)), &[])]),
        (vec![node(0, Kind::Collective(Box::new(alone)), &[])], Vec::new()),
    ];
    for (first, others) in programs {
        let programs = (0..3).map(|npu| trace(if npu == 0 { first.clone() } else { others.clone() })).collect();
        let mut traces = job(vec![dimension(Topology::Switch, 3, 50.0, 500.0)], Implementation::Ring, 4, programs);
        traces.groups = Groups::from([(1, vec![0])]);
        // Only one of the others receives the message.
        if matches!(first[0].kind, Kind::Send(_)) {
            traces.traces[2].nodes.clear();
        }
        let input = kasuri_flow::astra::Input { job: traces.job(), backend: kasuri_flow::astra::Backend::Unaware, use_symmetry: true };
        assert!(kasuri_flow::astra::run(&input).is_err());
        assert!(kasuri_flow::analysis::programs::answer(traces.job()).is_ok());
        let times = run(traces, &FLOW).unwrap();
        assert!(times.iter().all(|&time| time < 25_000.0), "{times:?}");
    }
}

/// A group of the four NPUs of the second dimension, which has the implementation `direct`: an all-gather of three messages at once over
/// the link to the switch, not a ring of three steps. A group over both dimensions is a ring, and so is any group by ASTRA-sim's rules;
/// notes say so.
#[test]
fn groups_follow_the_implementation_of_their_dimension() {
    let bytes = 1_u64 << 20;
    let gather = Collective { operation: Some(Operation::AllGather), bytes: Some(bytes), group: 1, ..Collective::default() };
    let of = |members: Vec<u32>| {
        let nodes =
            |npu: u32| if members.contains(&npu) { vec![node(0, Kind::Collective(Box::new(gather.clone())), &[])] } else { Vec::new() };
        let traces = (0..8).map(|npu| trace(nodes(npu))).collect();
        let dimensions = vec![dimension(Topology::Ring, 2, 50.0, 500.0), dimension(Topology::Switch, 4, 50.0, 500.0)];
        let mut traces = job(dimensions, Implementation::Ring, 1, traces);
        let direct = Choice { implementation: Implementation::Direct { window: None }, over_all: false };
        traces.system.implementations.values_mut().for_each(|choices| choices[1] = direct);
        traces.groups = Groups::from([(1, members.clone())]);
        traces
    };
    let column = of(vec![1, 3, 5, 7]);
    let direct = 20.0 + 1000.0 + 3.0 * bytes as f64 / RATE;
    let ring = 10.0 + 3.0 * (1010.0 + bytes as f64 / RATE);
    let times = run(column.clone(), &FLOW).unwrap();
    assert!(times[1] < direct + 100.0 && times[1] > direct - 100.0 && direct < ring - 1000.0, "{times:?}: {direct}, {ring}");
    let input = kasuri_flow::astra::Input { job: column.job(), backend: kasuri_flow::astra::Backend::Unaware, use_symmetry: true };
    assert!((kasuri_flow::astra::run(&input).unwrap()[1] as f64 - ring).abs() < 10.0);
    assert_eq!(column.unmodelled(false), Vec::<String>::new());
    assert_eq!(
        column.unmodelled(true),
        [
            "all-gather-implementation of 1 communicator groups, which are one ring each, as ASTRA-sim has it where a file names several implementations,"
        ]
    );
    let mixed = of(vec![0, 1, 2]);
    assert_eq!(
        mixed.unmodelled(false),
        ["all-gather-implementation of 1 communicator groups, which are one ring each, since they are in several dimensions,"]
    );
    // If all implementations are rings, a group is what the file says.
    let mut rings = of(vec![0, 1, 2]);
    rings.system.implementations.values_mut().for_each(|choices| choices[1] = choices[0]);
    assert_eq!(rings.unmodelled(true), Vec::<String>::new());
}
