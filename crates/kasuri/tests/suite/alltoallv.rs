//! All-to-alls with a size for each pair: closed forms on a network in which no two pairs share a channel between routers, and what arrives.

use kasuri::measure::controller;
use kasuri_config::Document;
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Status};
use kasuri_network::topology::NoFiles;

type Matrix = [[u64; 4]; 4];

/// The time of completion and what each terminal got, on a full mesh of four routers with a terminal each.
fn run(engine: &dyn Engine, matrix: &Matrix, more: &str) -> (f64, Vec<u64>) {
    let text = format!(
        "[network]\ntopology = \"full-mesh\"\nrouters = 4\nconcentration = 1\nflit_bytes = 8\n[routing]\nalgorithm = \"minimal\"\n\
         [router]\nvirtual_channels = 4\nbuffer_flits = 16\n[workload]\ncollective = \"alltoallv\"\n{more} = {matrix:?}\n"
    );
    let document = Document::parse("a.toml", &text).unwrap();
    let study = document.study(&document.points().unwrap()[0], &NoFiles).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = engine.run(&study.scenario, &mut *controller(&study)).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    (outcome.completion_time.unwrap(), outcome.accepted_flits)
}

/// Rank r sends `sizes[k]` to rank r + k.
fn circulant(sizes: [u64; 4]) -> Matrix {
    std::array::from_fn(|source| std::array::from_fn(|destination| sizes[(destination + 4 - source) % 4]))
}

/// If all ranks send equal amounts in a round, no two messages meet, and the flits of a terminal follow each other without a gap: the time
/// is that of one message and of all flits but its own. The same holds if only one rank sends or only one receives: its channel is always
/// busy.
#[test]
fn flits_follow_each_other_without_a_gap() {
    for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
        let mut lone = Matrix::default();
        lone[0][1] = 10;
        let latency = run(engine, &lone, "matrix_flits").0 - 10.0;
        let (mut row, mut column) = (Matrix::default(), Matrix::default());
        row[2] = [90, 40, 0, 70];
        (column[0][2], column[1][2], column[3][2]) = (90, 40, 70);
        for (name, matrix) in [("circulant", circulant([0, 60, 110, 30])), ("a row", row), ("a column", column)] {
            let expected = 200.0 + latency;
            let found = run(engine, &matrix, "matrix_flits").0;
            // Heads of packets of several sources are a few cycles behind each other at a receiver.
            let more = if engine.name() == FlowEngine.name() { 1e-6 } else { 8.0 };
            assert!(found >= expected - 1e-6 && found <= expected + more, "{name} on {}: {found} for {expected}", engine.name());
        }
    }
}

/// Every terminal gets the flits of the data for it; a rank's data for itself is not sent.
#[test]
fn terminals_receive_the_columns_of_the_matrix() {
    let matrix: Matrix = [[1000, 1, 8, 0], [9, 1000, 0, 0], [100, 64, 0, 63], [0, 0, 7, 5]];
    let held = |source: usize, destination: usize| if source == destination { 0 } else { matrix[source][destination].div_ceil(8) };
    let columns: Vec<u64> = (0..4).map(|destination| (0..4).map(|source| held(source, destination)).sum()).collect();
    for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
        for more in
            ["", "schedule = \"pairwise\"\n", "schedule = \"general\"\nsynchronisation = \"barrier\"\n", "schedule = \"full-mesh\"\n"]
        {
            let (time, accepted) = run(engine, &matrix, &format!("{more}matrix_bytes"));
            assert_eq!(accepted, columns, "{more} on {}", engine.name());
            let busiest = (0..4).map(|source| (0..4).map(|destination| held(source, destination)).sum::<u64>());
            assert!(time >= busiest.chain(columns.iter().copied()).max().unwrap() as f64);
        }
    }
}

/// Three long messages of three distances: phases by distance take one after the other, phases made for the matrix take all at a time.
#[test]
fn weighted_phases_take_the_time_of_the_busiest_rank() {
    let mut matrix: Matrix = [[100; 4]; 4];
    (matrix[0][1], matrix[1][3], matrix[3][2]) = (1000, 1000, 1000);
    let busiest = 1200.0;
    for engine in [&FlitEngine as &dyn Engine, &FlowEngine] {
        let time =
            |schedule: &str| run(engine, &matrix, &format!("schedule = \"{schedule}\"\nsynchronisation = \"barrier\"\nmatrix_flits")).0;
        let (by_distance, weighted) = (time("shift"), time("weighted"));
        assert!(by_distance >= 3000.0, "{}: {by_distance}", engine.name());
        // A phase more costs the way of a message and of the barrier.
        assert!(weighted >= busiest && weighted <= 1.25 * busiest, "{}: {weighted}", engine.name());
    }
}
