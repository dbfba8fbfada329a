//! No bytes make the readers of forwarding tables panic: those of ibroute and OpenSM, and those of lines.
#![no_main]

use kasuri_formats::{forwarding_csv, forwarding_dump};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology, full_mesh::FullMesh};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = forwarding_dump::parse("fuzz.txt", bytes, &mut |_| Ok(()));
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    let network = FullMesh { routers: 3, concentration: 2 }.build(&context).unwrap();
    let _ = forwarding_csv::parse("fuzz.csv", bytes, &network);
});
