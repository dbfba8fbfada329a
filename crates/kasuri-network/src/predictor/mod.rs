//! Predictors: which output port the next packet of an input port will take, guessed before it arrives.
//!
//! A prediction belongs to an input port and serves while the buffer of the arriving packet's virtual channel is empty. What a
//! right or wrong one leads to is the business of the engines: the flit engine lets routers act on it, the formulas count how
//! often one that never changes is right. Here stands only what is guessed, without time.
//!
//! To add one: a file here with a type that implements [`Predictor`] (or a function that fills a [`Fixed`]) and with its
//! [`PredictorEntry`], a `mod` line, and its line in [`PREDICTORS`].

mod finite_context;
mod grid;
pub mod hint;
mod latest_port;
mod oracle;
mod sampled_pattern;
mod static_straight;
mod static_xy;
mod tree;
mod up_priority;

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
}

/// A predictor that always guesses the same: one entry per input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed(Vec<Option<Port>>);

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
    build: fn(&Network) -> Built,
}

impl std::fmt::Debug for PredictorEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PredictorEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Matsutani et al. compare these predictors on meshes and trees.
const MATSUTANI: &str = "Matsutani et al., Prediction router: yet another low latency on-chip router architecture (HPCA 2009)";

/// All predictors, in the order in which `kasuri list predictors` shows them; `none` stands for none of them.
pub static PREDICTORS: &[PredictorEntry] = &[
    static_straight::ENTRY,
    up_priority::ENTRY,
    latest_port::ENTRY,
    static_xy::ENTRY,
    finite_context::ENTRY,
    sampled_pattern::ENTRY,
    oracle::ENTRY,
];

/// The predictor of this name for a network.
///
/// # Errors
/// There is none of this name, or it does not know networks of this kind.
pub fn build(name: &str, network: &Network) -> Built {
    let entry = PREDICTORS.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| format!("there is no predictor {name}; there are {}", names().collect::<Vec<_>>().join(", ")))?;
    (entry.build)(network).map_err(|problem| format!("{name} does not fit {}: {problem}", network.name()))
}

/// What may stand for a predictor in the experiment file: `none`, and the names of all.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    std::iter::once(NONE).chain(PREDICTORS.iter().map(|entry| entry.name))
}

/// The name that stands for routers without a predictor.
pub const NONE: &str = "none";

/// Input ports of all routers together.
fn inputs(network: &Network) -> usize {
    network.port_bases().last().map_or(0, |&ports| ports as usize)
}

/// One guess for each input port of each router that has a channel; a guess of an output without a channel is none.
fn fixed(network: &Network, mut guess: impl FnMut(RouterId, Port) -> Option<Port>) -> Fixed {
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

#[cfg(test)]
mod tests;
