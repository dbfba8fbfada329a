//! No bytes make the readers of ibnetdiscover panic, nor what puts a fabric together from one file.
#![no_main]

use kasuri_config::fabric::{Options, import};
use kasuri_formats::{ibnetdiscover, ibnetdiscover_ports};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = ibnetdiscover::parse("fuzz.txt", bytes);
    let _ = ibnetdiscover_ports::parse("fuzz.txt", bytes);
    let _ = import(&[("fuzz.txt".to_owned(), bytes.to_vec())], Options::default());
});
