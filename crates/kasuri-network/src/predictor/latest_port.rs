//! As the packet before.

use super::contract::{Built, Predictor, PredictorEntry, inputs};
use super::options::Options;
use crate::id::Port;
use crate::network::Network;

struct LatestPort(Vec<Option<Port>>);

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "latest-port",
    summary: "as the packet before it at the same input port",
    source: super::contract::MATSUTANI,
    takes: &[],
    build,
};

fn build(network: &Network, _options: &Options) -> Built {
    Ok(Box::new(LatestPort(vec![None; inputs(network)])))
}

impl Predictor for LatestPort {
    fn predict(&self, input: usize) -> Option<Port> {
        self.0[input]
    }

    fn learn(&mut self, input: usize, output: Port) {
        self.0[input] = Some(output);
    }
}
