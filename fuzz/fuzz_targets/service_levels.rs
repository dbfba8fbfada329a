//! No bytes make the readers of service levels and virtual lanes panic.
#![no_main]

use kasuri_formats::{service_levels, sl2vl};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = service_levels::parse("fuzz.txt", bytes, &mut |_| Ok(()));
    let _ = sl2vl::parse("fuzz.txt", bytes, &mut |_| Ok(()));
});
