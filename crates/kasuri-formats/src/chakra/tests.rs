//! Tests of the reader on bytes that are made here, by the rules of protobuf alone.

use super::*;
use kasuri_workload::execution::trace::{Kind, Operation};

/// A field with bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    [&varint(u64::from(number) << 3 | 2)[..], &varint(content.len() as u64), content].concat()
}

/// A field with a number.
fn number(field: u8, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn record(fields: &[Vec<u8>]) -> Vec<u8> {
    let content = fields.concat();
    [varint(content.len() as u64), content].concat()
}

fn file(nodes: &[Vec<u8>]) -> Vec<u8> {
    [record(&[bytes(1, b"0.0.4")]), nodes.concat()].concat()
}

/// A collective in the schema since October 2023.
fn all_gather() -> Vec<u8> {
    let attribute = |name: &[u8], value: Vec<u8>| bytes(10, &[bytes(1, name), value].concat());
    record(&[
        bytes(2, b"gather"),
        number(3, 7),
        bytes(4, &[0x05]),
        number(5, 300),
        number(7, 12),
        attribute(b"comm_type", number(9, 2)),
        attribute(b"comm_size", number(13, 1 << 40)),
        attribute(b"involved_dim", bytes(28, &bytes(1, &[1, 0]))),
        attribute(b"pg_name", bytes(29, b"7")),
        attribute(b"colour", bytes(29, b"red")),
    ])
}

#[test]
fn a_node_has_what_its_fields_say() {
    let trace = parse("t.0.et", &file(&[all_gather()])).unwrap();
    let node = &trace.nodes[0];
    assert_eq!((node.id, &*node.name, node.duration_ns, &*node.waits_for), (0, "gather", 12_000, &[5, 300][..]));
    let Kind::Collective(collective) = &node.kind else { panic!("{node:?}") };
    assert_eq!((collective.operation, collective.bytes, collective.group), (Some(Operation::AllGather), Some(1 << 40), 7));
    assert_eq!(collective.dimensions.as_deref(), Some(&[true, false][..]));
    assert_eq!(trace.unmodelled.iter().collect::<Vec<_>>(), [(&"colour".to_owned(), &1)]);
}

/// Before October 2023: parents, attributes in field 11 with their kind in field 2, and other numbers of collectives.
#[test]
fn the_older_schema_means_the_same() {
    let attribute = |name: &[u8], kind: u64, value: Vec<u8>| bytes(11, &[bytes(1, name), number(2, kind), value].concat());
    let node = record(&[
        number(1, 9),
        bytes(2, b"old"),
        number(3, 7),
        number(4, 1),
        number(4, 2),
        bytes(6, b"[]"),
        attribute(b"comm_type", 3, number(7, 2)),
        attribute(b"comm_size", 3, number(7, 64)),
        attribute(b"involved_dim", 5, [number(9, 1), number(9, 0)].concat()),
        attribute(b"runtime", 2, number(6, 5)),
    ]);
    let trace = parse("t.0.et", &file(&[node])).unwrap();
    let node = &trace.nodes[0];
    assert_eq!((node.id, node.duration_ns, &*node.waits_for), (9, 5_000, &[1, 2][..]));
    let Kind::Collective(collective) = &node.kind else { panic!("{node:?}") };
    assert_eq!((collective.operation, collective.bytes), (Some(Operation::AllGather), Some(64)));
    assert_eq!(collective.dimensions.as_deref(), Some(&[true, false][..]));
}

#[test]
fn pieces_of_any_size_give_the_same_trace() {
    let bytes = file(&[all_gather(), record(&[number(1, 3), number(3, 4)])]);
    let whole = parse("t.0.et", &bytes).unwrap();
    for size in 1..bytes.len() {
        let mut reader = Reader::new("t.0.et");
        bytes.chunks(size).for_each(|piece| reader.push(piece).unwrap());
        assert_eq!(reader.finish().unwrap(), whole, "{size}");
    }
}

/// However many bytes are missing at the end, the file is refused, or it ends with a record.
#[test]
fn a_file_that_is_cut_off_is_refused() {
    let bytes = file(&[all_gather(), all_gather()]);
    let ends = [record(&[bytes_of_version()]).len(), file(&[all_gather()]).len()];
    for length in (0..bytes.len()).filter(|length| !ends.contains(length)) {
        let error = parse("t.0.et", &bytes[..length]).unwrap_err();
        assert!(error.problem.contains("cut off") || error.problem.contains("empty"), "{length}: {error}");
    }
    fn bytes_of_version() -> Vec<u8> {
        super::tests::bytes(1, b"0.0.4")
    }
}

#[test]
fn what_is_wrong_is_named_with_its_node() {
    let node = |fields: &[Vec<u8>]| parse("t.0.et", &file(&[record(fields)])).unwrap_err().to_string();
    let attribute = |name: &[u8], value: Vec<u8>| bytes(10, &[bytes(1, name), value].concat());
    assert!(node(&[number(1, 4), number(3, 8)]).contains("node 4 (``): has the type 8"));
    assert!(node(&[number(1, 4), number(3, 7), attribute(b"comm_type", number(9, 12))]).contains("comm_type is 12; it must be 0 to 9"));
    assert!(node(&[number(1, 4), attribute(b"comm_size", number(9, u64::MAX))]).contains("comm_size is -1"));
    assert!(node(&[number(1, 4), attribute(b"pg_name", bytes(29, b"tp"))]).contains("pg_name is `tp`"));
    assert!(node(&[bytes(1, b"x")]).contains("field 1"));
    let twice = parse("t.0.et", &file(&[record(&[number(1, 4)]), record(&[number(1, 4)])])).unwrap_err();
    assert!(twice.to_string().contains("node 4: duplicate id"), "{twice}");
    assert!(parse("t.0.et", b"\xff\xff\xff\xff\xff\x7f").unwrap_err().to_string().contains("Is this a trace of Chakra?"));
}

#[test]
fn process_groups_of_pytorch_are_read() {
    let list = br#"['[{"pg_name": "2", "ranks": [1, 3]}, {"pg_name": "0", "ranks": []}]']"#;
    let trace = parse("t.0.et", &file(&[record(&[number(3, 1), bytes(8, &bytes(1, list))])])).unwrap();
    let Kind::Metadata { groups } = &trace.nodes[0].kind else { panic!() };
    assert_eq!(**groups, [(2, [1, 3].into()), (0, [].into())]);
}

/// 2^60 ns are 1,152,921,504,606,846.976 us. Refused are a microsecond more, and times that overflow 64 bits
/// of nanoseconds.
#[test]
fn durations_that_are_not_simulated_are_refused() {
    let most = (1_u64 << 60) / 1000;
    let of_field = |us: u64| file(&[record(&[number(1, 3), bytes(2, b"gemm"), number(3, 4), number(7, us)])]);
    let runtime = |us: u64| bytes(11, &[bytes(1, b"runtime"), number(6, us)].concat());
    let of_attribute = |us: u64| file(&[record(&[number(1, 3), bytes(2, b"gemm"), number(3, 4), runtime(us)])]);
    for of in [&of_field as &dyn Fn(u64) -> Vec<u8>, &of_attribute] {
        assert_eq!(parse("t.4.et", &of(most)).unwrap().nodes[0].duration_ns, most * 1000);
        for us in [most + 1, 10_u64.pow(18), 1 << 63, u64::MAX, u64::MAX / 1000 + 1] {
            let problem = parse("t.4.et", &of(us)).unwrap_err().to_string();
            let expected = format!("node 3 (`gemm`): lasts {us} us; it may last at most 1152921504606846 us");
            assert!(problem.starts_with("t.4.et: record 1") && problem.contains(&expected), "{problem}");
        }
    }
}
