//! No bytes make the reader of ns-3's and SimAI's topologies panic, nor what makes a fabric of one.
#![no_main]

use kasuri_config::fabric::{Options, import};
use kasuri_formats::ns3;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = ns3::parse("fuzz.txt", bytes);
    let _ = import(&[("fuzz.txt".to_owned(), bytes.to_vec())], Options::default());
});
