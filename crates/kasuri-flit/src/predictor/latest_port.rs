//! As the packet before.

use super::{Built, Predictor, inputs};
use kasuri_model::id::Port;
use kasuri_model::network::Network;

struct LatestPort(Vec<Option<Port>>);

pub(super) fn build(network: &Network) -> Built {
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
