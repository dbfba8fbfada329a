//! `kasuri schedule` of collectives other than the all-to-all: its counts, and that its algorithms for MSCCL do what they claim, by an
//! interpreter of the format that is independent of Kasuri's reader and checker.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::process::{Command, Output, Stdio};

fn kasuri(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kasuri")).args(arguments).stdin(Stdio::null()).output().expect("the binary that cargo has just built")
}

fn text(output: Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const TORUS: &str =
    "[network]\ntopology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\ntie = \"positive\"\n";
const TREE: &str =
    "[network]\ntopology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2\n[routing]\nalgorithm = \"nca\"\nup_port = \"d-mod-k\"\n";
const MESH: &str = "[network]\ntopology = \"mesh\"\ndimensions = [3, 2]\n[routing]\nalgorithm = \"dimension-order\"\n";

/// The elements of a text in XML without `>` in attributes: name and attributes.
fn elements(text: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut found = Vec::new();
    for piece in text.split('<').skip(1).filter(|piece| !piece.starts_with('/')) {
        let inside = piece.split('>').next().unwrap().trim_end_matches('/');
        let (name, rest) = inside.split_once(' ').unwrap_or((inside, ""));
        let quoted: Vec<&str> = rest.split('"').collect();
        let pair = |pair: &[&str]| (pair[0].trim().trim_end_matches('=').to_owned(), pair[1].to_owned());
        found.push((name.to_owned(), quoted.chunks_exact(2).map(pair).collect()));
    }
    found
}

#[derive(Clone, Debug)]
struct Step {
    kind: String,
    buffer: String,
    offset: usize,
    count: usize,
    waits_for: Option<(usize, usize)>,
}

#[derive(Debug, Default)]
struct Block {
    gpu: usize,
    id: usize,
    send: i64,
    receive: i64,
    steps: Vec<Step>,
}

/// The content of a rank's input chunk: a distinct number.
fn value(rank: usize, chunk: usize) -> u64 {
    (rank as u64 + 1) * 1_000_003 + (chunk as u64 + 1) * 7_919
}

/// Runs an algorithm with threadblocks taking turns by a seed. Returns the collective and the buffers that it works in.
fn interpret(xml: &str, seed: u64) -> (String, Vec<Vec<Option<u64>>>) {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut collective, mut gpus, mut chunks, mut gpu) = (String::new(), 0, 0, 0);
    for (name, attributes) in elements(xml) {
        let number = |key: &str| attributes[key].parse::<i64>().unwrap();
        match name.as_str() {
            "algo" => {
                (collective, gpus, chunks) = (attributes["coll"].clone(), number("ngpus") as usize, number("nchunksperloop") as usize);
                assert_eq!((attributes["inplace"].as_str(), attributes["proto"].as_str()), ("1", "Simple"));
            }
            "gpu" => gpu = number("id") as usize,
            "tb" => blocks.push(Block { gpu, id: number("id") as usize, send: number("send"), receive: number("recv"), steps: Vec::new() }),
            "step" => {
                let waits_for = (number("depid") >= 0).then(|| (number("depid") as usize, number("deps") as usize));
                let step = Step {
                    kind: attributes["type"].clone(),
                    buffer: attributes["srcbuf"].clone(),
                    offset: number("srcoff") as usize,
                    count: number("cnt") as usize,
                    waits_for,
                };
                blocks.last_mut().unwrap().steps.push(step);
            }
            other => panic!("<{other}>"),
        }
    }
    let begin = |rank: usize| -> Vec<Option<u64>> {
        let holds = |chunk: usize| match collective.as_str() {
            "allgather" => (chunk == rank).then(|| value(rank, 0)),
            "broadcast" => (rank == 0).then(|| value(0, chunk)),
            _ => Some(value(rank, chunk)),
        };
        (0..chunks).map(holds).collect()
    };
    let mut held: Vec<Vec<Option<u64>>> = (0..gpus).map(begin).collect();
    let mut wires: BTreeMap<(usize, usize), VecDeque<Vec<u64>>> = BTreeMap::new();
    let mut done: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut draw = seed.wrapping_mul(2_862_933_555_777_941_757) + 1;
    let mut idle = 0;
    while idle < 20_000 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = &blocks[(draw >> 33) as usize % blocks.len()];
        let next = done.get(&(block.gpu, block.id)).copied().unwrap_or(0);
        idle += 1;
        let Some(step) = block.steps.get(next) else { continue };
        if step.waits_for.is_some_and(|(other, last)| done.get(&(block.gpu, other)).copied().unwrap_or(0) <= last) {
            continue;
        }
        let cells = step.offset..step.offset + step.count;
        match step.kind.as_str() {
            "s" => {
                let sent: Vec<u64> = held[block.gpu][cells].iter().map(|cell| cell.expect("what is sent was set")).collect();
                let wire = wires.entry((block.gpu, block.send as usize)).or_default();
                if wire.len() >= 8 {
                    continue;
                }
                wire.push_back(sent);
            }
            "r" | "rrc" => {
                let Some(came) = wires.get_mut(&(block.receive as usize, block.gpu)).and_then(VecDeque::pop_front) else { continue };
                assert_eq!(came.len(), step.count);
                for (cell, came) in held[block.gpu][cells].iter_mut().zip(came) {
                    *cell = Some(if step.kind == "r" { came } else { cell.expect("what is added to was set") + came });
                }
            }
            "nop" => {}
            other => panic!("type {other}"),
        }
        assert!(["i", "o"].contains(&step.buffer.as_str()));
        *done.entry((block.gpu, block.id)).or_default() += 1;
        idle = 0;
    }
    assert!(blocks.iter().all(|block| done.get(&(block.gpu, block.id)).copied().unwrap_or(0) == block.steps.len()), "a deadlock");
    assert!(wires.values().all(VecDeque::is_empty), "messages are left over");
    (collective, held)
}

fn check_result(xml: &str, seed: u64) {
    let (collective, held) = interpret(xml, seed);
    let ranks = held.len();
    let sum = |chunk: usize| (0..ranks).map(|rank| value(rank, chunk)).sum::<u64>();
    for (rank, cells) in held.iter().enumerate() {
        for (chunk, cell) in cells.iter().enumerate() {
            let expected = match collective.as_str() {
                "allreduce" => sum(chunk),
                "allgather" => value(chunk, 0),
                "broadcast" => value(0, chunk),
                "reducescatter" if chunk == rank => sum(chunk),
                "reducescatter" => continue,
                other => panic!("{other}"),
            };
            assert_eq!(*cell, Some(expected), "{collective}: rank {rank} chunk {chunk}");
        }
    }
}

/// Every algorithm of each collective on three networks: accepted by `kasuri algorithm check`, and right by the interpreter.
#[test]
fn algorithms_of_msccl_do_what_they_claim() {
    let folder = tempfile::tempdir().unwrap();
    let algorithms: [(&str, &[&str]); 4] = [
        ("allreduce", &["ring", "recursive-doubling", "rabenseifner"]),
        ("allgather", &["ring", "recursive-doubling", "bruck"]),
        ("reducescatter", &["ring", "recursive-halving"]),
        ("broadcast", &["binomial", "linear", "scatter-allgather"]),
    ];
    let mut run = 0;
    for (number, network) in [TORUS, TREE, MESH].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.toml"));
        fs::write(&path, network).unwrap();
        let path = path.display().to_string();
        for (collective, names) in algorithms {
            for name in names.iter().copied().chain([""]) {
                let mut arguments = vec!["schedule", collective, "--network", &path, "--export", "msccl"];
                arguments.extend(if name.is_empty() { vec![] } else { vec!["--schedule", name] });
                let output = kasuri(&arguments);
                if output.status.code() == Some(2) && number == 2 {
                    // Six ranks are no power of two.
                    continue;
                }
                let xml = text(output);
                let file = folder.path().join("a.xml");
                fs::write(&file, &xml).unwrap();
                text(kasuri(&["algorithm", "check", &file.display().to_string()]));
                (0..3).for_each(|seed| check_result(&xml, seed));
                run += 1;
            }
        }
    }
    assert!(run > 35, "{run}");
    // Damaged: a receive in place of a sum is wrong, and both see it.
    let xml =
        text(kasuri(&["schedule", "allreduce", "--network", &folder.path().join("0.toml").display().to_string(), "--export", "msccl"]));
    let damaged = xml.replacen("rrc", "r", 1);
    let file = folder.path().join("damaged.xml");
    fs::write(&file, &damaged).unwrap();
    assert_eq!(kasuri(&["algorithm", "check", &file.display().to_string()]).status.code(), Some(2));
    assert!(std::panic::catch_unwind(|| check_result(&damaged, 1)).is_err());
}

/// On a torus a walk from neighbour to neighbour makes a ring without contention, which meets its closed form: 2 (N - 1) parts, N - 1
/// blocks.
#[test]
fn a_ring_on_a_torus_has_no_contention() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torus.toml");
    fs::write(&path, TORUS).unwrap();
    let path = path.display().to_string();
    for (collective, phases, units) in [("allreduce", 30, 30), ("allgather", 15, 15), ("reducescatter", 15, 15)] {
        let answer = text(kasuri(&["schedule", collective, "--network", &path, "--schedule", "ring", "--export", "json"]));
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["phases"].as_array().unwrap().len(), phases);
        assert_eq!((answer["time_units"].as_u64(), answer["least_units"].as_u64()), (Some(units), Some(units)), "{collective}");
        assert!(answer["loads"].as_array().unwrap().iter().all(|load| load == 1), "{collective}");
    }
}

/// A program in GOAL of each collective is run by the flow engine; on a tree its time is the closed form.
#[test]
fn programs_in_goal_run() {
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("tree.toml");
    fs::write(&network, TREE).unwrap();
    let path = network.display().to_string();
    let program =
        text(kasuri(&["schedule", "allgather", "--network", &path, "--schedule", "ring", "--export", "goal", "--message-bytes", "8000"]));
    fs::write(folder.path().join("p.goal"), program).unwrap();
    let run = TREE.replace("levels = 2\n", "levels = 2\nflit_bytes = 8\ncycle_ns = 1.0\n");
    let experiment = folder.path().join("run.toml");
    fs::write(&experiment, format!("engine = \"flow\"\n{run}[workload]\ntrace = \"p.goal\"\n")).unwrap();
    let out = folder.path().join("out").display().to_string();
    text(kasuri(&["run", &experiment.display().to_string(), "--out", &out]));
    let rows = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let place = reader.headers().unwrap().iter().position(|name| name == "completion_time").unwrap();
    let time: f64 = reader.records().next().unwrap().unwrap()[place].parse().unwrap();
    // 15 rounds of 1000 flits, and the latency of each.
    assert!((15_000.0..15_600.0).contains(&time), "{time}");
}

#[test]
fn impossible_arrangements_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.toml");
    fs::write(&path, MESH).unwrap();
    let path = path.display().to_string();
    let problem = |more: &[&str]| {
        let operation = if more.first() == Some(&"broadcast") { "broadcast" } else { "allreduce" };
        let output = kasuri(&[&["schedule", operation, "--network", &path], more.strip_prefix(&["broadcast"]).unwrap_or(more)].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(problem(&["--schedule", "bruck"]).contains("none of its algorithms: recursive-doubling, ring, rabenseifner"));
    assert!(problem(&["broadcast", "--export", "mpi"]).contains("runs alltoall, allgather, reducescatter and allreduce, no broadcast"));
    assert!(problem(&["--ranks", "1"]).contains("2 to 4096"));
    assert!(problem(&["--terminals", "0,9"]).contains("terminal 9"));
}

/// Layout 3 of the file that the MPI library reads: the collective, its parts, and a table of the given number of words that fills the
/// rest.
#[test]
fn a_collective_is_written_for_mpi() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.toml");
    fs::write(&path, MESH).unwrap();
    let path = path.display().to_string();
    for (number, collective, schedule, parts) in
        [(1, "allgather", "ring", 6), (2, "reducescatter", "ring", 6), (3, "allreduce", "rabenseifner", 4)]
    {
        let output = kasuri(&["schedule", collective, "--network", &path, "--schedule", schedule, "--min-bytes", "5", "--export", "mpi"]);
        assert!(output.status.success());
        let bytes = output.stdout;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes[..8], *b"KASURI\r\n");
        assert_eq!([word(8), word(12), word(20), word(24), word(28), word(32)], [3, 6, 0, 5, number, parts]);
        assert_eq!(bytes.len(), 40 + 2 * word(36) as usize + 4);
    }
}
