//! No bytes make the reader of BookSim 2's network files panic, nor the building of what it has read.
#![no_main]

use kasuri_config::topology::anynet::AnyNet;
use kasuri_network::topology::{BuildContext, ChannelParameters, Files, Topology};

struct OneFile<'a>(&'a [u8]);

impl Files for OneFile<'_> {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.to_vec())
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let context = BuildContext { channels: &ChannelParameters::default(), files: &OneFile(bytes), structure_seed: 0 };
    let _ = AnyNet { path: "fuzz.txt".to_owned() }.build(&context);
});
