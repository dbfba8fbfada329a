//! Execution traces of Chakra for tests, written without a library by the rules of protobuf.

/// The action of a node.
#[derive(Clone, Copy)]
pub(crate) enum Does {
    /// Computes for this many microseconds.
    Compute(u64),
    /// Sends bytes to an NPU, under a tag.
    Send { to: u64, bytes: u64, tag: u64 },
    /// Receives bytes from an NPU, under a tag.
    Receive { from: u64, bytes: u64, tag: u64 },
    /// Gathers this many bytes of each NPU at all of them.
    AllGather(u64),
}

/// The file of an NPU: nodes that are numbered in their order, each with the numbers of those that it waits for.
pub(crate) fn file(nodes: &[(Does, Vec<u64>)]) -> Vec<u8> {
    let nodes = (0..).zip(nodes).flat_map(|(id, (does, waits_for))| record(&node(id, *does, waits_for)));
    record(&bytes(1, b"0.0.4")).into_iter().chain(nodes).collect()
}

fn node(id: u64, does: Does, waits_for: &[u64]) -> Vec<u8> {
    let attribute = |(name, value): (&str, u64)| bytes(10, &[bytes(1, name.as_bytes()), number(13, value)].concat());
    let (kind, duration, attributes) = match does {
        Does::Compute(us) => (4, us, vec![]),
        Does::Send { to, bytes, tag } => (5, 0, vec![("comm_dst", to), ("comm_size", bytes), ("comm_tag", tag)]),
        Does::Receive { from, bytes, tag } => (6, 0, vec![("comm_src", from), ("comm_size", bytes), ("comm_tag", tag)]),
        Does::AllGather(bytes) => (7, 0, vec![("comm_type", 2), ("comm_size", bytes)]),
    };
    let waits: Vec<u8> = waits_for.iter().flat_map(|&on| number(4, on)).collect();
    let attributes: Vec<u8> = attributes.into_iter().chain([("is_cpu_op", 0)]).flat_map(attribute).collect();
    [number(1, id), bytes(2, b"node"), number(3, kind), waits, number(7, duration), attributes].concat()
}

/// A record behind its length.
fn record(content: &[u8]) -> Vec<u8> {
    [&varint(content.len() as u64), content].concat()
}

/// A field with bytes.
fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [&varint(field << 3 | 2)[..], &record(content)].concat()
}

/// A field with a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
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

/// A system of ASTRA-sim in which nothing takes time but messages and computations.
pub(crate) const SYSTEM: &str = r#"{
    "endpoint-delay": 0, "preferred-dataset-splits": 1,
    "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"], "local-mem-bw": 1600
}"#;
