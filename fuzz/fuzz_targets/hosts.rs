//! No bytes make the reader of hosts panic.
#![no_main]

use kasuri_formats::hosts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = hosts::parse("fuzz.txt", bytes, 64);
});
