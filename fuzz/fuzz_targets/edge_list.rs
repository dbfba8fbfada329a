//! No bytes make the reader of edge lists panic, nor the building of what it has read.
#![no_main]

use kasuri_formats::edge_list;
use kasuri_network::network::Link;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(list) = edge_list::parse("fuzz.txt", bytes) {
        let _ = list.network(Link::default(), Link::default());
    }
});
