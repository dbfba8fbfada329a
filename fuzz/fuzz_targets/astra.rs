//! No bytes make the readers of ASTRA-sim's files panic.
#![no_main]

use kasuri_config::format::astra;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = (astra::network("n.yml", bytes), astra::custom_nodes("c.yml", bytes));
    let _ = (astra::system("s.json", bytes), astra::groups("g.json", bytes, 8));
});
