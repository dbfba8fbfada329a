//! The engine's own section of the experiment file, `[flit]`: how it computes, never what.

use schemars::JsonSchema;
use serde::Deserialize;

/// The keys of `[flit]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlitOptions {}
