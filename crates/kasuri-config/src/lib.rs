//! HOW an experiment is written: the experiment file, and every other file format.
//!
//! ```text
//! text ── Document::parse ──> Document ── points ──> Point … ── Preparation::study ──> Study { scenario, measure, engine }
//! ```
//! Every error, from the TOML syntax to a pattern that does not fit its network, is a [`ConfigError`]: it names the place in
//! the file (or the `--set` that the value comes from), the key, the value, and what would be right. [`mod@format`] has the parsers and
//! writers of everything else, [`topology`] and [`pattern`] what is read from files among their families, with the tables of all.
//!
//! No engine sees this crate, so that a new key or format compiles none of them again. It reads no file either: bytes come in through
//! [`Files`](kasuri_network::topology::Files).

mod document;
mod endpoint;
mod error;
pub mod format;
mod measure;
mod names;
pub mod pattern;
mod plot;
mod pool;
mod schema;
mod schemas;
mod section;
mod shape;
mod study;
mod sweep;
pub mod topology;
mod trace;
mod traffic;
mod units;
mod users;
mod workload;

pub use document::Document;
pub use error::{ConfigError, Location};
pub use measure::{BookSimRules, Measure, Rules, Search, SimType, Until};
pub use names::printable;
pub use schema::json_schema;
pub use study::{Built, EngineName, Preparation, Study};
pub use sweep::{CASE, MAX_POINTS, Point, Sweep};

/// The names that this crate cannot know because engines define them.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The engines that this program has.
    pub engines: &'a [EngineName],
    /// The sections of the engines; one that is not listed is passed on unchecked.
    pub engine_sections: &'a [EngineSection],
    /// The names of allocators.
    pub allocators: &'a [&'a str],
    /// Bytes that tables may take: what asks for more is refused before it is made.
    pub memory_bytes: u64,
}

impl Default for Known<'_> {
    fn default() -> Self {
        let allocators = &["islip", "separable-input-first", "separable-output-first"];
        Self { engines: &EngineName::ALL, engine_sections: &[], allocators, memory_bytes: u64::MAX }
    }
}

/// An engine's own section of the file: `[flit]`, `[flow]` or `[analysis]`.
#[derive(Clone, Copy, Debug)]
pub struct EngineSection {
    /// Whose section.
    pub engine: EngineName,
    /// Its keys.
    pub schema: fn() -> schemars::Schema,
}

#[cfg(test)]
mod tests;
