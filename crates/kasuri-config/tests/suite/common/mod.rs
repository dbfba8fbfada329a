//! What the tests over whole families share: members from the tables, built by their own examples.

// Each test binary uses its own part of this.
#![allow(dead_code)]
#![allow(unused_imports)]

#[path = "../../../../kasuri-workload/tests/suite/common/closed.rs"]
pub(crate) mod closed;
#[path = "../../../../kasuri-network/tests/suite/common/mod.rs"]
mod network_common;

use kasuri_config::topology::ALL_TOPOLOGIES;
use kasuri_network::network::Network;
use kasuri_network::topology::{BuildContext, ChannelParameters, Files};
pub(crate) use network_common::{example, network, wired};
use std::sync::Arc;

/// The files that the examples name, written for 16 terminals.
pub(crate) struct ExampleFiles;

impl Files for ExampleFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let terminals = 16u32;
        match path {
            "permutation.txt" => Ok((0..terminals).map(|source| format!("{}\n", (source * 5 + 3) % terminals)).collect::<String>().into()),
            "matrix.txt" => Ok((0..terminals).map(|source| matrix_row(source, terminals)).collect::<String>().into()),
            "anynet_file" => Ok(ANYNET.as_bytes().to_vec()),
            "network.txt" => Ok(EDGE_LIST.as_bytes().to_vec()),
            _ => Err(format!("`{path}` is not among the examples' files")),
        }
    }
}

fn matrix_row(source: u32, terminals: u32) -> String {
    let weights: Vec<String> = (0..terminals).map(|destination| (source * destination % 5).to_string()).collect();
    weights.join(" ") + "\n"
}

/// A ring of four routers with a chord, one terminal each.
const EDGE_LIST: &str = "\
router a router b
router b router c latency=2
router c router d
router d router a
router a router c latency=3
terminal 0 router a
terminal 1 router b
terminal 2 router c
terminal 3 router d
";

/// A square of four routers with a slow diagonal, one to three terminals each.
const ANYNET: &str = "\
router 0 node 0 node 1 router 1 router 2 3
router 3 node 2 router 1 2 router 2
router 2 node 3 node 4 node 5 router 0 2
router 1 node 6
";

/// The networks of the routings' tests, and the examples of those that are read from files.
pub(crate) fn networks() -> Vec<Arc<Network>> {
    let from_files = ALL_TOPOLOGIES.iter().filter(|entry| ["file", "anynet"].contains(&entry.name)).map(|entry| {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &ExampleFiles, structure_seed: 0 };
        let topology = (entry.parse)(example(entry.example)).expect("parameters of the topology");
        Arc::new(topology.build(&context).expect("parameters in their range"))
    });
    network_common::networks().into_iter().chain(from_files).collect()
}
