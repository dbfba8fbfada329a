//! The routing's own answer.

use super::{Built, Predictor};
use kasuri_model::id::Port;
use kasuri_model::network::Network;

struct Oracle;

pub(super) fn build(_network: &Network) -> Built {
    Ok(Box::new(Oracle))
}

impl Predictor for Oracle {
    fn predict(&self, _input: usize) -> Option<Port> {
        None
    }

    fn knows(&self) -> bool {
        true
    }
}
