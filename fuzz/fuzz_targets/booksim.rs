//! No text makes the reader of BookSim configurations panic.
#![no_main]

use kasuri_config::format::booksim::{Configuration, Rules};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut configuration = Configuration::default();
    if configuration.read("fuzz.cfg", text).is_ok() {
        let _ = configuration.translate(Rules::BookSim);
    }
});
