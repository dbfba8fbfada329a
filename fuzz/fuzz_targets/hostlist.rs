//! No text makes the reader of host lists panic, and what is written is read again.
#![no_main]

use kasuri_formats::hostlist;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(names) = std::str::from_utf8(bytes).map_err(drop).and_then(|text| hostlist::parse(text).map_err(drop)) {
        let plain = names.iter().all(|name| !name.contains(['[', ']', ',']) && name.trim() == name && !name.is_empty());
        assert!(!plain || hostlist::parse(&hostlist::write(&names)).as_ref() == Ok(&names));
    }
});
