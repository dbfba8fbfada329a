//! No bytes make the reader of NCCL's topologies panic, nor what makes a fabric of one.
#![no_main]

use kasuri_config::fabric::{Options, import};
use kasuri_formats::nccl;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = nccl::parse("fuzz.xml", bytes);
    let _ = import(&[("fuzz.xml".to_owned(), bytes.to_vec())], Options::default());
});
