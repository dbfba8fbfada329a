//! Predictors: which output port the next packet of an input port will take, guessed before it arrives.
//!
//! A prediction belongs to an input port and serves while the buffer of the arriving packet's virtual channel is empty. What a
//! right or wrong one leads to is the business of the engines: the flit engine lets routers act on it, the formulas count how
//! often one that never changes is right. Only guesses are here: no time, no buffers, no engine. Members import the contract (`contract.rs`),
//! never this file.
//!
//! To add one: a file here with a type that implements [`Predictor`] (or a function that fills a [`Fixed`]) and with its
//! [`PredictorEntry`], a `mod` line, and its line in [`PREDICTORS`].

mod by_level;
mod contract;
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
mod table_file;
mod tree;
mod up_priority;

pub use contract::{Built, EXPRESS, Fixed, NONE, Predictor, PredictorEntry, inputs};
pub use options::{Fold, Options};
pub use table_file::Table;

use crate::network::Network;
use contract::{BY_LEVEL, ORACLE, TABLE};

/// All predictors, in the order in which `kasuri list predictors` shows them; `none` stands for none of them.
pub static PREDICTORS: &[PredictorEntry] = &[
    static_straight::ENTRY,
    up_priority::ENTRY,
    latest_port::ENTRY,
    static_xy::ENTRY,
    finite_context::ENTRY,
    sampled_pattern::ENTRY,
    by_level::entry(|network, options| by_level::build(network, options, entry)),
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

#[cfg(test)]
mod tests;
