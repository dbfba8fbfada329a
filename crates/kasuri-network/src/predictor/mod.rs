//! Predictors: which output port the next packet of an input port will take, guessed before it arrives.
//!
//! A prediction belongs to an input port and serves while the buffer of the arriving packet's virtual channel is empty. What a
//! right or wrong one leads to is the business of the engines: the flit engine lets routers act on it, the formulas count how
//! often one that never changes is right. Here stands only what is guessed, without time.
//!
//! To add one: a file here with a type that implements [`Predictor`] (or a function that fills a [`Fixed`]) and with its
//! [`PredictorEntry`], a `mod` line, and its line in [`PREDICTORS`].

mod by_level;
pub mod direction;
mod express;
mod finite_context;
mod grid;
pub mod hint;
mod latest_port;
mod options;
mod oracle;
mod sampled_pattern;
mod static_straight;
mod static_xy;
mod table;
mod tree;
mod up_priority;

use crate::id::{Port, RouterId};
use crate::network::Network;
pub use options::{Fold, Options};
pub use table::Table;

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
    /// The keys of [`Options`] that it takes.
    takes: &'static [&'static str],
    build: fn(&Network, &Options) -> Built,
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
    by_level::ENTRY,
    table::ENTRY,
    express::ENTRY,
    oracle::ENTRY,
];

/// The predictor of this name for a network.
///
/// # Errors
/// There is none of this name, or it does not know networks of this kind.
pub fn build(name: &str, network: &Network, options: &Options) -> Built {
    (entry(name)?.build)(network, options).map_err(|problem| format!("{name} does not fit {}: {problem}", network.name()))
}

/// The line of the table with this name.
fn entry(name: &str) -> Result<&'static PredictorEntry, String> {
    let entry = PREDICTORS.iter().find(|entry| entry.name == name);
    entry.ok_or_else(|| format!("there is no predictor {name}; there are {}", names().collect::<Vec<_>>().join(", ")))
}

/// Checks what does not depend on the network: names, the ranges of numbers, and that the predictor takes what it is given.
///
/// # Errors
/// The key of `[router]` and a sentence.
pub fn check(name: &str, options: &Options) -> Result<(), (&'static str, String)> {
    let levels = options.levels.as_deref().filter(|_| name == BY_LEVEL).unwrap_or_default();
    for level in levels {
        if [BY_LEVEL, ORACLE, EXPRESS].contains(&level.as_str()) {
            return Err(("predictor_levels", format!("has {level}, which is for all levels; set predictor = \"{level}\" for them")));
        }
        if level != NONE {
            entry(level).map_err(|problem| ("predictor_levels", problem))?;
        }
    }
    for (key, number, most) in
        [("predictor_entries", options.entries, Options::MOST_ENTRIES), ("predictor_history", options.history, Options::MOST_HISTORY)]
    {
        if let Some(number) = number.filter(|number| !(1..=most).contains(number)) {
            return Err((key, format!("is {number}; it must be 1 to {most}")));
        }
    }
    let takes = |key: &str| {
        let mut named = std::iter::once(name).chain(levels.iter().map(String::as_str));
        named.any(|name| entry(name).is_ok_and(|entry| entry.takes.contains(&key)))
    };
    if let Some(key) = Options::KEYS.into_iter().find(|key| options.gives(key) && !takes(key)) {
        let users: Vec<&str> = PREDICTORS.iter().filter(|entry| entry.takes.contains(&key)).map(|entry| entry.name).collect();
        return Err((key, format!("means nothing to predictor = \"{name}\", only to {}; leave it out", users.join(", "))));
    }
    match name {
        BY_LEVEL if options.levels.is_none() => Err(("predictor", needs(name, "predictor_levels = [\"up-priority\", \"none\"]"))),
        TABLE if options.table.is_none() => Err(("predictor", needs(name, "predictor_table = \"guesses.csv\""))),
        _ if levels.iter().any(|level| level == TABLE) && options.table.is_none() => {
            Err(("predictor_levels", needs(TABLE, "predictor_table = \"guesses.csv\"")))
        }
        _ => Ok(()),
    }
}

fn needs(name: &str, key: &str) -> String {
    format!("is \"{name}\", which needs another key, for example {key}")
}

/// What may stand for a predictor in the experiment file: `none`, and the names of all.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    std::iter::once(NONE).chain(PREDICTORS.iter().map(|entry| entry.name))
}

/// The name that stands for routers without a predictor.
pub const NONE: &str = "none";

/// The names of the predictors whose meaning other keys give, and of the one that is for all levels.
const BY_LEVEL: &str = "by-level";
const TABLE: &str = "table";
const ORACLE: &str = "oracle";

/// The name of express virtual channels, which pass routers before all others.
pub const EXPRESS: &str = "express";

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
