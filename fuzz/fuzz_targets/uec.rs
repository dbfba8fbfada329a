//! No bytes make the readers of UEC htsim's files panic.
#![no_main]

use kasuri_formats::uec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = (uec::fabric("f.topo", bytes), uec::matrix("m.cm", bytes));
});
