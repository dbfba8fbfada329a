//! Traffic patterns: which destination a terminal's next packet has.
//!
//! Knows no time and no packet lengths. Members import the contract (`contract.rs`), never this file.
//!
//! To add one: a file here that implements [`TrafficPattern`] and [`Member`](kasuri_network::registry::Member), a `mod` line, and its line
//! in [`PATTERNS`].

pub mod asymmetric;
pub mod background;
pub mod bit_complement;
pub mod bit_reverse;
mod contract;
pub mod diagonal;
pub mod fixed;
pub mod hotspot;
pub mod neighbor;
pub mod next_group;
pub mod random_permutation;
pub mod row_to_column;
pub mod shuffle;
pub mod taper;
pub mod tornado;
pub mod transpose;
pub mod uniform;
pub mod weighted;

pub use contract::{Pattern, PatternContext, PatternError, TrafficPattern};

use kasuri_network::registry;

registry! {
    /// All patterns that are made by a rule, in the order in which `kasuri list patterns` shows them; those that are read from files follow
    /// in `kasuri-config`.
    pub PATTERNS: dyn TrafficPattern = [
        uniform::Uniform,
        bit_complement::BitComplement,
        bit_reverse::BitReverse,
        shuffle::Shuffle,
        transpose::Transpose,
        tornado::Tornado,
        neighbor::Neighbor,
        random_permutation::RandomPermutation,
        diagonal::Diagonal,
        asymmetric::Asymmetric,
        hotspot::Hotspot,
        background::Background,
        taper::Taper,
        next_group::NextGroup,
        row_to_column::RowToColumn,
    ]
}
