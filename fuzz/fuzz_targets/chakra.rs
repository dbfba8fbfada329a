//! No bytes make the reader of execution traces panic, and pieces give what the whole gives.
#![no_main]

use kasuri_formats::chakra::{Reader, parse};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let whole = parse("fuzz.et", bytes);
    let mut reader = Reader::new("fuzz.et");
    let pieces = bytes.chunks(7).try_for_each(|piece| reader.push(piece)).and_then(|()| reader.finish());
    assert_eq!(whole, pieces);
    if let Ok(trace) = whole {
        let _ = (trace.cycle(), trace.missing_dependency());
    }
});
