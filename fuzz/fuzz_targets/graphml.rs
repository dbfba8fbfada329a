//! No bytes make the reader of GraphML panic, nor what makes a fabric of one.
#![no_main]

use kasuri_config::fabric::{Options, import};
use kasuri_formats::graphml;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = graphml::read("fuzz.graphml", bytes);
    let _ = import(&[("fuzz.graphml".to_owned(), bytes.to_vec())], Options::default());
});
