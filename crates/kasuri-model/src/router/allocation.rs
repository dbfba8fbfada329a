//! Allocators and arbiters by name, as the keys of `[router]` give them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An allocator's name, with or without its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum AllocatorParameters {
    /// Only the name.
    Name(String),
    /// Name and parameters.
    Detailed {
        /// The allocator's name.
        name: String,
        /// Rounds of request, grant and accept in one cycle (`islip`, `pim`, `select`).
        #[serde(default = "one")]
        iterations: u32,
        /// How one of several requests is picked (the separable allocators).
        #[serde(default)]
        arbiter: ArbiterParameters,
        /// How one of several requests is drawn (`pim`).
        #[serde(default)]
        draw: Draw,
        /// When the input from which the search begins moves on (`maximum-size`).
        #[serde(default)]
        turns: Turns,
    },
}

fn one() -> u32 {
    1
}

impl Default for AllocatorParameters {
    fn default() -> Self {
        Self::Name("islip".to_owned())
    }
}

impl AllocatorParameters {
    /// The allocator's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Detailed { name, .. } => name,
        }
    }

    /// Rounds in one cycle, 1 unless given.
    pub fn iterations(&self) -> u32 {
        match self {
            Self::Name(_) => 1,
            Self::Detailed { iterations, .. } => *iterations,
        }
    }

    /// How one of several requests is picked, round robin unless given.
    pub fn arbiter(&self) -> ArbiterParameters {
        match self {
            Self::Name(_) => ArbiterParameters::default(),
            Self::Detailed { arbiter, .. } => *arbiter,
        }
    }

    /// How one of several requests is drawn, uniformly unless given.
    pub fn draw(&self) -> Draw {
        match self {
            Self::Name(_) => Draw::default(),
            Self::Detailed { draw, .. } => *draw,
        }
    }

    /// When the input from which the search begins moves on, with each request unless given.
    pub fn turns(&self) -> Turns {
        match self {
            Self::Name(_) => Turns::default(),
            Self::Detailed { turns, .. } => *turns,
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.iterations() == 0 {
            return Err("has 0 iterations; an allocator needs at least 1".to_owned());
        }
        if self.iterations() > 1 && !["islip", "pim", "select"].contains(&self.name()) {
            return Err(format!("gives `{}` iterations; only islip, pim and select iterate", self.name()));
        }
        if self.arbiter() != ArbiterParameters::default() && !self.name().starts_with("separable-") {
            return Err(format!(
                "gives `{}` an arbiter; only separable-input-first and separable-output-first are made of arbiters",
                self.name()
            ));
        }
        if self.draw() != Draw::default() && self.name() != "pim" {
            return Err(format!("gives `{}` a draw; only pim draws", self.name()));
        }
        if self.turns() != Turns::default() && self.name() != "maximum-size" {
            return Err(format!("gives `{}` turns; only maximum-size has a rotating first input", self.name()));
        }
        match self.arbiter() {
            ArbiterParameters::Tree { groups: 0, .. } => Err("has a tree of 0 groups; give at least 1".to_owned()),
            _ => Ok(()),
        }
    }
}

/// An arbiter: by its name, or a tree with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum ArbiterParameters {
    /// A single arbiter.
    Single(Arbiter),
    /// Arbiters of equal groups of inputs, and one among the groups.
    Tree {
        /// Groups of inputs.
        groups: u32,
        /// The arbiter within a group and among the groups.
        #[serde(default)]
        of: Arbiter,
    },
}

impl Default for ArbiterParameters {
    fn default() -> Self {
        Self::Single(Arbiter::RoundRobin)
    }
}

/// How one of several requests is picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// The first request at or after the input that follows the last winner.
    #[default]
    RoundRobin,
    /// The request that has not won for longest.
    Matrix,
    /// The one with the oldest packet.
    Age,
}

/// How a random allocator draws one of several requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Each with the same probability.
    #[default]
    Uniform,
    /// The first request at or after a place drawn uniformly among all inputs (or outputs), requesting or not, cyclically: one behind a gap
    /// of g without requests is g + 1 times as likely as one without a gap. BookSim 2 does so.
    RandomStart,
}

/// When the input from which a search begins moves on by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// In each cycle with a request for a free resource.
    #[default]
    #[serde(rename = "asked")]
    Requested,
    /// In each cycle with a waiting request, even if none of its resources is free. BookSim 2 does so.
    Waiting,
}
