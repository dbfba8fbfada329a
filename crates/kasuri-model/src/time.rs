//! Times as an experiment file writes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of cycles, or a time with its unit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "this is a number of cycles, or a time such as \"600 ns\"")]
pub enum CyclesOrTime {
    /// Cycles.
    Cycles(u64),
    /// A number and ps, ns, us or ms; how many cycles that are depends on the length of a cycle.
    Time(String),
}
