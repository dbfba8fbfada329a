//! No bytes make the reader or the checker of MSCCL's algorithms panic, and what was read is written so that it reads the same.
#![no_main]

use kasuri_formats::msccl;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(algorithm) = msccl::parse("fuzz.xml", bytes) else { return };
    let _ = msccl::check(&algorithm);
    assert_eq!(msccl::parse("again.xml", msccl::write(&algorithm).as_bytes()).as_ref(), Ok(&algorithm));
});
