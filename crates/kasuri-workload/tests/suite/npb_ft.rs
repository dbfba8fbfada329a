//! NPB FT beside recorded runs of it: the order of its calls, and their bytes.

use kasuri_workload::workload::application::APPLICATIONS;
use std::fs;
use std::path::Path;

/// Collective calls of a rank after the barrier that begins the timed part: the name, and bytes for each other rank.
fn timed_calls(file: &str) -> Vec<(String, u64)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/npb-ft").join(file);
    let text = fs::read_to_string(path).unwrap();
    let calls: Vec<_> = text.lines().filter_map(|line| if file.ends_with("csv") { open_mpi(line) } else { simgrid(line) }).collect();
    let barrier = calls.iter().position(|(call, _)| call == "barrier").expect("a timed part");
    // Before it: once everything untimed, with one all-to-all.
    assert_eq!(calls[..barrier].iter().filter(|(call, _)| call == "alltoall").count(), 1);
    calls[barrier + 1..].to_vec()
}

/// `rank,call,peer_or_root,count,type_bytes,bytes,…`
fn open_mpi(line: &str) -> Option<(String, u64)> {
    let fields: Vec<&str> = line.split(',').collect();
    Some((fields[1].to_owned(), fields[5].parse().ok()?))
}

/// `rank call count …`, elements of 16 bytes where it is a number of them.
fn simgrid(line: &str) -> Option<(String, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let count = fields.get(2).and_then(|count| count.parse::<u64>().ok());
    (!["init", "compute", "finalize"].contains(&fields[1])).then(|| (fields[1].to_owned(), 16 * count.unwrap_or(0)))
}

/// A forward transform; then in each iteration a transform back and its checksum, a number of 16 bytes. Every transform has one
/// all-to-all, which is what the application sends: the checksums are left out.
#[test]
fn stages_and_bytes_are_those_of_recorded_runs() {
    for (class, ranks, file) in [("S", 16, "ft.S.16_0.csv"), ("W", 32, "ft.W.32_0.txt"), ("A", 8, "ft.A.8_0.txt")] {
        let demand = (APPLICATIONS.iter().find(|entry| entry.name == "npb-ft").unwrap().demand)(class, ranks).unwrap();
        let calls = timed_calls(file);
        let transform = ("alltoall".to_owned(), demand.block_bytes);
        let iteration = [transform.clone(), ("reduce".to_owned(), 16)];
        assert_eq!(calls[0], transform, "class {class}");
        let iterations: Vec<_> = calls[1..].chunks(2).collect();
        assert_eq!(iterations.len() as u32, demand.stages - 1, "class {class}");
        assert!(iterations.iter().all(|calls| *calls == iteration), "class {class}: {iterations:?}");
    }
}
