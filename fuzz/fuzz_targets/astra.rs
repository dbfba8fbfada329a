//! No bytes make the readers of ASTRA-sim's files and of layer tables panic.
#![no_main]

use kasuri_formats::{astra, layers};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = (astra::network("n.yml", bytes), astra::custom_nodes("c.yml", bytes));
    let _ = (astra::system("s.json", bytes), astra::groups("g.json", bytes, 8));
    let _ = layers::parse("l.txt", bytes);
});
