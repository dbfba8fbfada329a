//! What predictors may be given beside their names: `predictor_fold` and the other keys of `[router]` that begin so.

use super::table_file::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the top level of a fat tree, which has no ports up, predicts for an input from below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// Input i and output i + 1, the last one and the first.
    #[default]
    Next,
    /// Inputs 2i and 2i + 1 and each other's outputs.
    Pairs,
    /// Input i and output i, by which no minimal route leaves.
    Back,
}

impl Fold {
    /// The output that an input of a router with so many ports is folded to.
    ///
    /// # Errors
    /// Ports of an odd number make no pairs.
    pub(super) fn of(self, input: u32, ports: u32) -> Result<u32, String> {
        match self {
            Self::Next => Ok((input + 1) % ports),
            Self::Pairs if !ports.is_multiple_of(2) => {
                Err(format!("predictor_fold = \"pairs\" needs an even number of ports at the top, and there are {ports}; take \"next\""))
            }
            Self::Pairs => Ok(input ^ 1),
            Self::Back => Ok(input),
        }
    }
}

/// The keys of `[router]` that some predictors take; nothing of one that is not given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `predictor_fold`.
    pub fold: Option<Fold>,
    /// `predictor_entries`: lines of an input port's table.
    pub entries: Option<u32>,
    /// `predictor_history`: outputs that an input port remembers.
    pub history: Option<u32>,
    /// `predictor_levels`: the predictor of each level of routers, the leaves' first.
    pub levels: Option<Vec<String>>,
    /// What stands in the file `predictor_table`.
    pub table: Option<Arc<Table>>,
}

impl Options {
    /// The keys that predictors may take.
    pub const KEYS: [&'static str; 5] = ["predictor_fold", "predictor_entries", "predictor_history", "predictor_levels", "predictor_table"];

    /// The most lines of an input port's table.
    pub const MOST_ENTRIES: u32 = 1024;

    /// The most outputs that an input port remembers.
    pub const MOST_HISTORY: u32 = 4;

    /// Is a key given?
    pub fn gives(&self, key: &str) -> bool {
        match key {
            "predictor_fold" => self.fold.is_some(),
            "predictor_entries" => self.entries.is_some(),
            "predictor_history" => self.history.is_some(),
            "predictor_levels" => self.levels.is_some(),
            "predictor_table" => self.table.is_some(),
            _ => false,
        }
    }
}
