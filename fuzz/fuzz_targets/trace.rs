//! No bytes make the reader of traces panic, in however many pieces they come.
#![no_main]

use kasuri_formats::trace::Lines;
use kasuri_workload::units::Units;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut lines = Lines::new("fuzz.csv", 4.into(), Units { flit_bytes: Some(64), cycle_ns: Some(1.5) });
    bytes.chunks(7).all(|piece| lines.take(piece));
    let _ = lines.finish();
});
