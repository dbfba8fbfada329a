//! No bytes make the readers of mesh graph descriptors panic, nor what makes a fabric of one.
#![no_main]

use kasuri_config::fabric::{Join, Options, import};
use kasuri_formats::mesh_graph;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = mesh_graph::parse("fuzz.textproto", bytes);
    let _ = mesh_graph::parse_yaml("fuzz.yaml", bytes);
    let joins = [Join { ends: [(0, 12), (1, 0)], links: 2 }];
    let _ = import(&[("fuzz.textproto".to_owned(), bytes.to_vec())], Options { joins: &joins, ..Options::default() });
});
