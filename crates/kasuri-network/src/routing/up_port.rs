//! Policies of the path up a tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a packet chooses its up port at level l, of p ports, where q is the number of down ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpPort {
    /// Uniformly, for each packet at each router.
    #[default]
    Random,
    /// ((destination div q^(l-1)) mod q) mod p: the path down never leaves the column of the path up.
    DModK,
    /// ((source div q^(l-1)) mod q) mod p, which is the same as `straight`.
    SModK,
    /// The number of the down port by which it came in, mod p.
    Straight,
    /// The port whose virtual channels have the most credits left, ties drawn.
    Adaptive,
    /// The better of two ports drawn independently, by the flits of their virtual channels; they may be the same.
    BetterOfTwo,
}
