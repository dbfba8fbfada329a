use super::*;
use crate::execution::cluster::{Dimension, Topology};

fn cluster(sizes: &[u32]) -> Cluster {
    let dimension = |&npus: &u32| Dimension { topology: Topology::Ring, npus, bandwidth: 1.0, latency_ns: 0.0 };
    Cluster { dimensions: sizes.iter().map(dimension).collect() }
}

fn exchange(operation: Operation, among: Among, bytes: u64) -> Option<Exchange> {
    Some(Exchange { operation, among, bytes })
}

/// Each layer computes for 100, 10 and 1 ns and exchanges three all-reduces.
fn layer(bytes: u64) -> Layer {
    let step = |compute_ns: u64, bytes: u64| Step { compute_ns, exchange: exchange(Operation::AllReduce, Among::Usual, bytes) };
    Layer {
        name: "l".into(),
        forward: step(100, bytes),
        input_gradient: step(10, bytes + 1),
        weight_gradient: step(1, bytes + 2),
        update_ns: 0,
    }
}

fn table(parallelism: Parallelism, layers: usize) -> LayerTable {
    LayerTable {
        parallelism,
        layers: (0..layers).map(|number| layer(1000 * (number as u64 + 1))).collect(),
        ignored: Vec::new(),
        job: None,
    }
}

fn transformer(tensor: u32, expert: u32) -> Transformer {
    Transformer { tensor, expert, checkpoints: BTreeSet::new(), recomputations: BTreeSet::new() }
}

/// The bytes of the exchanges of a program, in the order of its nodes.
fn exchanged(trace: &Trace) -> Vec<u64> {
    let bytes = |node: &Node| if let Kind::Collective(collective) = &node.kind { collective.bytes } else { None };
    trace.nodes.iter().filter_map(bytes).collect()
}

/// When each node ends if exchanges take `each` ns and nothing waits for anything but what it says.
fn ends(trace: &Trace, each: u64) -> Vec<u64> {
    let mut ends = Vec::new();
    for node in &trace.nodes {
        let begin = node.waits_for.iter().map(|&on| ends[on as usize]).max().unwrap_or(0);
        let takes = if matches!(node.kind, Kind::Collective(_)) { each } else { node.duration_ns };
        ends.push(begin + takes);
    }
    ends
}

fn duration(table: &LayerTable, sizes: &[u32], each: u64) -> u64 {
    let (_, traces) = table.programs(&cluster(sizes)).unwrap();
    ends(&traces[0], each).into_iter().max().unwrap()
}

/// Weights are exchanged beside what follows: of three layers the last exchange, that of the first layer, is waited for alone.
#[test]
fn data_parallel_steps_wait_for_the_last_weights_only() {
    let table = table(Parallelism::Data, 3);
    // Forward 3 x 100, then 1 for the weights of each layer and 10 for the input of all but the first.
    assert_eq!(duration(&table, &[4], 5), 3 * 100 + 3 + 2 * 10 + 5);
    // Slow exchanges: that of the last layer began first, they do not wait for each other here.
    assert_eq!(duration(&table, &[4], 1000), 3 * 100 + 3 + 2 * 10 + 1000);
    let (groups, traces) = table.programs(&cluster(&[4])).unwrap();
    assert!(groups.is_empty());
    assert_eq!(traces.len(), 4);
    assert_eq!(exchanged(&traces[3]), [3002, 2002, 1002]);
}

/// Forward exchanges are waited for; those of input gradients go on beside the 1 ns of the weights, and the first layer has none.
#[test]
fn model_parallel_steps_wait_forward_and_overlap_backward() {
    let table = table(Parallelism::Model, 3);
    assert_eq!(duration(&table, &[4], 50), 3 * (100 + 50) + 2 * (10 + 50) + 10 + 1);
    // Shorter than the gradient of the weights: hidden.
    assert_eq!(duration(&table, &[4], 1), 3 * (100 + 1) + 3 * (10 + 1));
    let (_, traces) = table.programs(&cluster(&[4])).unwrap();
    assert_eq!(exchanged(&traces[0]), [1000, 2000, 3000, 3001, 2001]);
}

/// The model is shared in one dimension, the data in the others.
#[test]
fn hybrid_steps_exchange_in_their_dimensions() {
    for (parallelism, model) in [(Parallelism::ModelThenData, [true, false]), (Parallelism::DataThenModel, [false, true])] {
        let (_, traces) = table(parallelism, 1).programs(&cluster(&[4, 2])).unwrap();
        let dimensions = |node: &Node| if let Kind::Collective(collective) = &node.kind { collective.dimensions.clone() } else { None };
        let found: Vec<_> = traces[0].nodes.iter().filter_map(dimensions).collect();
        assert_eq!(found, [Box::from(model), Box::from(model.map(|is_model: bool| !is_model))]);
    }
}

/// 16 NPUs, 2 share a layer, of the 8 that share the data 4 share the experts.
#[test]
fn transformers_have_groups_as_megatron_numbers_them() {
    let mut table = table(Parallelism::Transformer(transformer(2, 4)), 1);
    table.layers[0].forward.exchange = exchange(Operation::AllToAll, Among::Experts, 8);
    table.layers[0].input_gradient.exchange = exchange(Operation::AllGather, Among::Usual, 4001);
    let mut second = layer(7);
    second.weight_gradient.exchange = exchange(Operation::AllGather, Among::SameExperts, 10);
    table.layers.push(second);
    let (groups, traces) = table.programs(&cluster(&[16])).unwrap();
    let mut sets: Vec<Vec<u32>> = groups.into_values().collect();
    sets.sort();
    let mut expected: Vec<Vec<u32>> = (0..8).map(|first| vec![2 * first, 2 * first + 1]).collect();
    expected.extend((0..2).map(|place| (0..8).map(|data| 2 * data + place).collect()));
    expected.extend([0, 1, 8, 9].map(|first| vec![first, first + 2, first + 4, first + 6]));
    expected.extend((0..8).map(|first| vec![first, first + 8]));
    expected.sort();
    assert_eq!(sets, expected);
    // Of an all-gather each of the 2 contributes a half, rounded up.
    assert_eq!(exchanged(&traces[5]), [8, 7, 8, 5, 2001, 1002]);
}

/// Of a layer that is computed once more on the way back, what runs is what lies between its checkpoint and it.
#[test]
fn recomputation_runs_from_the_checkpoint_on() {
    let plain = table(Parallelism::Transformer(transformer(4, 1)), 5);
    let recomputing = Transformer { checkpoints: BTreeSet::from([1]), recomputations: BTreeSet::from([4]), ..transformer(4, 1) };
    let again = LayerTable { parallelism: Parallelism::Transformer(recomputing), ..plain.clone() };
    let step = 5 * (100 + 20) + 5 * (10 + 20 + 1);
    assert_eq!(duration(&plain, &[4], 20), step);
    assert_eq!(duration(&again, &[4], 20), step + 3 * (100 + 20));
}

#[test]
fn updates_follow_exchanges() {
    let mut table = table(Parallelism::Transformer(transformer(4, 1)), 2);
    table.layers.iter_mut().for_each(|layer| layer.update_ns = 3);
    // Weights are exchanged among those who share the data: nobody here.
    assert_eq!(duration(&table, &[4], 20), 2 * (100 + 20 + 3) + 2 * (10 + 20 + 3 + 1));
}

#[test]
fn npus_that_cannot_be_divided_are_refused() {
    let of =
        |tensor: u32, expert: u32| table(Parallelism::Transformer(transformer(tensor, expert)), 1).programs(&cluster(&[12])).unwrap_err();
    assert!(of(5, 1).contains("model_parallel_NPU_group 5") && of(0, 1).contains("12 NPUs"));
    assert!(of(4, 2).contains("ep 2") && of(4, 2).contains("3 NPUs") && of(4, 0).contains("ep 0"));
}

#[test]
fn a_micro_benchmark_is_one_exchange() {
    let (_, traces) = table(Parallelism::Micro, 2).programs(&cluster(&[4])).unwrap();
    assert!(traces.iter().all(|trace| exchanged(trace) == [1002] && trace.nodes.len() == 1));
}
