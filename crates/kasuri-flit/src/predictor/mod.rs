//! Predictors: which output port the next packet of an input port will take, guessed before it arrives.
//!
//! A prediction belongs to an input port and serves while the buffer of the arriving packet's virtual channel is empty. What a
//! right or wrong one leads to is the router's business, see `lanes/portable/predicted.rs`; what the routers keep for it is in
//! [`unit`].
//!
//! To add one: a file here with a type that implements [`Predictor`] (or a function that fills a [`Fixed`]), a `mod` line, and
//! its line in [`PREDICTORS`].

mod finite_context;
mod grid;
pub(crate) mod hint;
mod latest_port;
mod oracle;
mod sampled_pattern;
mod static_straight;
mod static_xy;
mod tree;
pub(crate) mod unit;
mod up_priority;

use kasuri_model::id::Port;
use kasuri_model::network::Network;

/// Guesses outputs. Input ports are numbered over the whole network, as by [`Network::port_index`]; outputs are ports of the
/// same router.
pub(crate) trait Predictor: Send {
    /// The output port that the next packet of an input port is expected to take, if any.
    fn predict(&self, input: usize) -> Option<Port>;

    /// A packet of an input port takes this output. Called once per packet and router, in the order of arrival.
    fn learn(&mut self, _input: usize, _output: Port) {}

    /// Does it know the routing's answer? Then `predict` is not asked.
    fn knows(&self) -> bool {
        false
    }
}

/// A predictor that always guesses the same: one entry per input port.
pub(crate) struct Fixed(Vec<Option<Port>>);

impl Predictor for Fixed {
    fn predict(&self, input: usize) -> Option<Port> {
        self.0[input]
    }
}

/// A predictor, or a sentence that says which networks it knows.
type Built = Result<Box<dyn Predictor>, String>;

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

/// All predictors; `none` stands for none of them.
pub static PREDICTORS: &[PredictorEntry] = &[
    PredictorEntry {
        name: "static-straight",
        summary: "straight on: in trees up and down by the number of the input port, folding back at the top; in grids along the dimension",
        source: MATSUTANI,
        build: static_straight::build,
    },
    PredictorEntry {
        name: "up-priority",
        summary: "fat trees: packets from below go further up; no guess for those from above and at the top",
        source: "the static choice that needs no more than hint bits: a packet from below goes up or has reached its top",
        build: up_priority::build,
    },
    PredictorEntry {
        name: "latest-port",
        summary: "as the packet before it at the same input port",
        source: MATSUTANI,
        build: latest_port::build,
    },
    PredictorEntry {
        name: "static-xy",
        summary: "meshes and tori: the output that most destinations need under dimension-order routing",
        source: MATSUTANI,
        build: static_xy::build,
    },
    PredictorEntry {
        name: "finite-context",
        summary: "what followed the last two outputs of the input port before",
        source: "Sazeides and Smith, The predictability of data values (MICRO 1997), finite context method of order 2",
        build: finite_context::build,
    },
    PredictorEntry {
        name: "sampled-pattern",
        summary: "what followed most often where the recent outputs of the input port occurred before",
        source: "Jacquet, Szpankowski and Apostol, A universal predictor based on pattern matching, IEEE Trans. Inf. Theory 48 (2002)",
        build: sampled_pattern::build,
    },
    PredictorEntry {
        name: "oracle",
        summary: "always right: an upper bound for what prediction can gain",
        source: "the answer of the routing itself",
        build: oracle::build,
    },
];

/// The predictor of this name for a network.
///
/// # Errors
/// It does not know networks of this kind.
pub(crate) fn build(name: &str, network: &Network) -> Built {
    let entry = PREDICTORS.iter().find(|entry| entry.name == name).expect("the configuration checks the predictor's name");
    (entry.build)(network).map_err(|problem| format!("{name} does not fit {}: {problem}", network.name()))
}

/// Input ports of all routers together.
fn inputs(network: &Network) -> usize {
    network.port_bases().last().map_or(0, |&ports| ports as usize)
}

/// One guess for each input port of each router that has a channel; a guess of an output without a channel is none.
fn fixed(network: &Network, mut guess: impl FnMut(kasuri_model::id::RouterId, Port) -> Option<Port>) -> Fixed {
    let mut guesses = vec![None; inputs(network)];
    for router in (0..network.router_count()).map(kasuri_model::id::RouterId) {
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
