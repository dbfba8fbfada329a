//! The contract of predictors: guesses, the line of the table, and what its members share.

use super::options::Options;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Guesses outputs. Input ports are numbered over the whole network, as by [`Network::port_index`]; outputs are ports of the
/// same router.
pub trait Predictor: Send {
    /// The output port that the next packet of an input port is expected to take, if any.
    fn predict(&self, input: usize) -> Option<Port>;

    /// A packet of an input port takes this output. Called once per packet and router, in the order of arrival.
    fn learn(&mut self, _input: usize, _output: Port) {}

    /// Does it know the routing's answer? Then `predict` is not asked.
    fn knows(&self) -> bool {
        false
    }

    /// Does it guess the same for an input port all the time, whatever it has seen? Then formulas can tell how often it is right.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Is it a way past the router for packets that are known to go on as it says? Then there is no attempt for any other, and these packets
    /// go before all that wait in the router.
    fn is_express(&self) -> bool {
        false
    }
}

/// A predictor that always guesses the same: one entry per input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed(pub(super) Vec<Option<Port>>);

impl Predictor for Fixed {
    fn predict(&self, input: usize) -> Option<Port> {
        self.0[input]
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

/// A predictor, or a sentence that says which networks it knows.
pub type Built = Result<Box<dyn Predictor>, String>;

/// A line of the table of predictors.
#[derive(Clone, Copy)]
pub struct PredictorEntry {
    /// The name in the experiment file.
    pub name: &'static str,
    /// One line for `kasuri list predictors`.
    pub summary: &'static str,
    /// Where the definition stands.
    pub source: &'static str,
    /// The keys of [`Options`] that it takes.
    pub(super) takes: &'static [&'static str],
    pub(super) build: fn(&Network, &Options) -> Built,
}

impl std::fmt::Debug for PredictorEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PredictorEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Matsutani et al. compare these predictors on meshes and trees.
pub(super) const MATSUTANI: &str = "Matsutani et al., Prediction router: yet another low latency on-chip router architecture (HPCA 2009)";

/// The name that stands for routers without a predictor.
pub const NONE: &str = "none";

/// The names of the predictors whose meaning other keys give, and of the one that is for all levels.
pub(super) const BY_LEVEL: &str = "by-level";
pub(super) const TABLE: &str = "table";
pub(super) const ORACLE: &str = "oracle";

/// The name of express virtual channels, which pass routers before all others.
pub const EXPRESS: &str = "express";

/// Input ports of all routers together.
pub fn inputs(network: &Network) -> usize {
    network.port_bases().last().map_or(0, |&ports| ports as usize)
}

/// One guess for each input port of each router that has a channel; a guess of an output without a channel is none.
pub(super) fn fixed(network: &Network, mut guess: impl FnMut(RouterId, Port) -> Option<Port>) -> Fixed {
    let mut guesses = vec![None; inputs(network)];
    for router in (0..network.router_count()).map(RouterId) {
        for input in 0..network.port_count(router) as Port {
            if network.input_channel(router, input).is_some() {
                guesses[network.port_index(router, input)] =
                    guess(router, input).filter(|&output| network.output_channel(router, output).is_some());
            }
        }
    }
    Fixed(guesses)
}
