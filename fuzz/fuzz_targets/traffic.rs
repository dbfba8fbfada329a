//! No bytes make the readers of permutations, traffic matrices and sizes of messages panic.
#![no_main]

use kasuri_formats::traffic;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = traffic::parse_permutation("fuzz.txt", bytes, 4);
    let _ = traffic::parse_matrix("fuzz.txt", bytes, 4);
    let _ = traffic::parse_sizes("fuzz.txt", bytes);
});
