//! The contract of traffic patterns: their parameters, and a pattern that knows its network.

use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::Stream;
use kasuri_network::topology::Files;
use thiserror::Error;

/// The parameters of a pattern, before it knows its network.
pub trait TrafficPattern: Send + Sync + std::fmt::Debug {
    /// Prepares the pattern for a network.
    ///
    /// # Errors
    /// The network does not fit the pattern (a bit permutation needs a power of two), or a file is wrong.
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError>;
}

/// What a pattern gets besides its own parameters.
#[derive(Clone, Copy)]
pub struct PatternContext<'a> {
    /// The network.
    pub network: &'a Network,
    /// `traffic.include_self`: may a terminal draw itself where the pattern draws at random?
    pub include_self: bool,
    /// Reads a file that a parameter names.
    pub files: &'a dyn Files,
}

impl std::fmt::Debug for PatternContext<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PatternContext").field("include_self", &self.include_self).finish_non_exhaustive()
    }
}

/// A pattern for one network: both faces, drawn for the flit engine and as a matrix for the coarser ones.
pub trait Pattern: Send + Sync + std::fmt::Debug {
    /// Draws the destination of the next packet of `source`, or `None` if this terminal sends nothing.
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId>;

    /// The probabilities of the destinations of `source` in ascending order of terminal: empty if it sends nothing, otherwise
    /// they sum to 1. `destination` draws by exactly these.
    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)>;

    /// The part of the class's load that `source` offers: 1 for the terminals that offer it all.
    fn share(&self, _source: TerminalId) -> f64 {
        1.0
    }

    /// Do terminals offer different parts?
    fn has_shares(&self) -> bool {
        false
    }

    /// Does this terminal send nothing? Overridden where `weights` would be costly to ask.
    fn is_silent(&self, source: TerminalId) -> bool {
        self.weights(source).is_empty()
    }
}

/// Why a pattern does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// The network's size or structure does not fit. Choose another pattern or size.
    #[error("pattern `{pattern}` does not fit {network}: {problem}")]
    Mismatch {
        /// The pattern's name.
        pattern: &'static str,
        /// The network's one-line form.
        network: String,
        /// What is missing.
        problem: String,
    },
    /// A parameter is outside its range, or its file is wrong. Change the named key.
    #[error("{key}: {problem}")]
    Parameter {
        /// The key of `[traffic]`.
        key: String,
        /// What was found and what would be right.
        problem: String,
    },
}
