//! No text makes the reader of BookSim configurations panic.
#![no_main]

use kasuri_config::booksim::{Rules, translate};
use kasuri_formats::booksim::Configuration;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut configuration = Configuration::default();
    if configuration.read("fuzz.cfg", text).is_ok() {
        let _ = translate(&configuration, Rules::BookSim);
    }
});
