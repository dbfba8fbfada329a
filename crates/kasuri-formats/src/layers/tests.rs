use super::*;
use kasuri_workload::execution::cluster::System;

const TABLE: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 2 pp: 1 vpp: 8 ga: 1 all_gpus: 32 checkpoints: 1 0 \
                     checkpoint_initiates: 1 1 pp_comm 50331648
2
embedding_layer\t-1\t556000\tALLREDUCE\t16777216\t1\tNONE\t0\t1\tNONE\t0\t1

mlp_moelayer  -1 1 ALLTOALL_EP 100663296 2 ALLGATHER 7 3 REDUCESCATTER_DP_EP 9 100
";

#[test]
fn a_table_has_what_its_lines_say() {
    let table = parse("t.txt", TABLE.as_bytes()).unwrap();
    let Parallelism::Transformer(transformer) = &table.parallelism else { panic!("{table:?}") };
    assert_eq!((transformer.tensor, transformer.expert), (8, 2));
    assert_eq!((&transformer.checkpoints, &transformer.recomputations), (&BTreeSet::from([0]), &BTreeSet::from([1])));
    assert_eq!(table.ignored, ["pp_comm 50331648"]);
    let [first, second] = &table.layers[..] else { panic!("{table:?}") };
    let all_reduce = Exchange { operation: Operation::AllReduce, among: Among::Usual, bytes: 16_777_216 };
    assert_eq!((&*first.name, first.forward), ("embedding_layer", Step { compute_ns: 556_000, exchange: Some(all_reduce) }));
    assert_eq!((first.weight_gradient.exchange, first.update_ns), (None, 1));
    let among = [second.forward, second.input_gradient, second.weight_gradient].map(|step| step.exchange.unwrap().among);
    assert_eq!(among, [Among::Experts, Among::Usual, Among::SameExperts]);
    assert_eq!((second.weight_gradient.compute_ns, second.update_ns), (3, 100));
}

/// Parts of the header that are not modelled are named: GPUs that are neither all nor those of a stage, several stages, accumulated steps.
#[test]
fn unmodelled_parts_of_a_header_are_named() {
    let left_out = |from: &str, to: &str, npus: u32| {
        parse("t.txt", TABLE.replacen(from, to, 1).as_bytes()).unwrap().leave_out(&mut System::default(), npus)
    };
    let comm = "`pp_comm 50331648` of the table's header";
    assert_eq!(left_out("ga: 1", "ga: 1", 32), [comm]);
    assert_eq!(left_out("ga: 1", "ga: 1", 16), [comm, "`all_gpus` 32 of the table's header (the network has 16 NPUs)"]);
    assert_eq!(left_out("pp: 1", "pp: 2", 16), ["`pp 2` of the table's header", comm]);
    assert_eq!(left_out("ga: 1", "ga: 8", 32), ["`ga 8` of the table's header", comm]);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let told = |from: &str, to: &str| parse("t.txt", TABLE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
    for (from, to, place, problem) in [
        ("556000", "1152921504606846977", "t.txt:3", "has 1152921504606846977 ns for the forward time; at most 2^60 ns"),
        ("\t0\t1\n", "\t0\t18446744073709551615\n", "t.txt:3", "ns for the update time; at most 2^60 ns"),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER_FWD", "t.txt:1", "did you mean `HYBRID_TRANSFORMER`"),
        ("model_parallel_NPU_group: 8", "", "t.txt:1", "model_parallel_NPU_group: N"),
        ("ep: 2", "ep: two", "t.txt:1", "`two` behind `ep:`"),
        ("checkpoints: 1 0", "checkpoints: 1 7", "t.txt:1", "names layer 7"),
        ("\n2\n", "\n3\n", "t.txt:5", "2 of the 3 layers"),
        ("\n2\n", "\n1\n", "t.txt:5", "one layer more"),
        ("\n2\n", "\nmany\n", "t.txt:2", "`many`"),
        ("ALLREDUCE", "ALLREDUCEALLTOALL", "t.txt:3", "`ALLREDUCEALLTOALL` for the forward collective"),
        ("556000", "-1", "t.txt:3", "`-1` for the forward time"),
        (" 100\n", "\n", "t.txt:5", "11 words (the update time is missing)"),
    ] {
        let told = told(from, to);
        assert!(told.starts_with(place) && told.contains(problem), "{from} -> {to}: {told}");
    }
    assert!(parse("t.txt", b"").unwrap_err().to_string().contains("empty"));
    assert!(parse("t.txt", b"DATA fast\n1\n").unwrap_err().to_string().contains("unexpected `fast` after DATA"));
    let experts = parse("t.txt", b"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE_EP 8 1\n").unwrap_err().to_string();
    assert!(experts.starts_with("t.txt:1") && experts.contains("layer `a`"), "{experts}");
}

/// Lines are those of the file, blank ones included.
#[test]
fn blank_lines_count() {
    let told = |text: &str| parse("t.txt", text.as_bytes()).unwrap_err().to_string();
    let layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
    assert!(told(&format!("\n\nDATA\n\n2\n{layer}")).starts_with("t.txt:6: is the last line, after 1 of the 2 layers of line 5"));
    assert!(told(&format!("\nDATA\n\n\n1\n{layer}{layer}")).starts_with("t.txt:7: is one layer more than the 1 of line 5"));
    assert!(told(&format!("\nDATA\n1\n{}", layer.replacen("NONE 0", "ALLREDUCE_EP 8", 1))).starts_with("t.txt:2: "));
}

/// Each cut is told with its line and what is missing, but one through the last number, which leaves a whole table.
#[test]
fn tables_that_are_cut_short_are_refused_with_what_is_missing() {
    let whole = TABLE.rfind("100").unwrap();
    for length in 0..=TABLE.len() {
        let cut = &TABLE[..length];
        match parse("t.txt", cut.as_bytes()) {
            Ok(table) => assert!(length > whole && table.layers.len() == 2, "{cut:?}"),
            Err(error) => {
                let ((line, problem), told) = (missing(cut), error.to_string());
                assert!(length <= whole && told.starts_with(&format!("t.txt:{line}: ")) && told.contains(&problem), "{cut:?}: {told}");
            }
        }
    }
}

/// What is missing behind the beginning of the table, and where.
fn missing(cut: &str) -> (usize, String) {
    let lines: Vec<(usize, &str)> = (1..).zip(cut.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    match lines[..] {
        [] => (1, "begins with its parallelism".into()),
        [(_, header)] => missing_in_header(header),
        [.., (line, _)] if lines.len() == 2 => (line, "after 0 of the 2 layers".into()),
        [.., (line, layer)] => match COLUMNS.get(layer.split_whitespace().count()) {
            Some(column) => (line, format!("({column} is missing)")),
            None => (line, format!("after {} of the 2 layers", lines.len() - 2)),
        },
    }
}

fn missing_in_header(header: &str) -> (usize, String) {
    let words: Vec<&str> = header.split_whitespace().collect();
    let key = words.iter().rposition(|word| word.parse::<u64>().is_err()).unwrap();
    let numbers = match words[key].trim_end_matches(':') {
        "checkpoints" | "checkpoint_initiates" => 2,
        "model_parallel_NPU_group" | "ep" | "pp" | "vpp" | "ga" | "all_gpus" | "pp_comm" => 1,
        _ => 0,
    };
    if !PARALLELISMS.contains(&words[0]) {
        (1, format!("unknown parallelism `{header}`"))
    } else if words.len() - 1 - key < numbers {
        (1, format!("ends after `{}`", words[key]))
    } else if key == 0 || (key, numbers) == (1, 0) {
        (1, "has no `model_parallel_NPU_group: N`".into())
    } else {
        (2, "is missing; it is the number of layers".into())
    }
}
