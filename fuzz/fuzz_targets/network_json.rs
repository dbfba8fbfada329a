//! No bytes make the reader of networks as JSON panic; what it reads is written and read as the same network.
#![no_main]

use kasuri_formats::network_json;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(network) = network_json::parse("fuzz.json", bytes) {
        let text = network_json::write(&network);
        assert_eq!(network_json::parse("again.json", text.as_bytes()).as_ref(), Ok(&network));
    }
});
