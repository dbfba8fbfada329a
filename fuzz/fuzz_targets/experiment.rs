//! No text makes the reader of experiment files panic, up to the values of its points.
#![no_main]

use kasuri_config::Document;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(document) = Document::parse("fuzz.toml", text) {
        let _ = document.points();
    }
});
