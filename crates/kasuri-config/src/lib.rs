//! HOW an experiment is written: the experiment file.
//!
//! ```text
//! text ── Document::parse ──> Document ── points ──> Point … ── Preparation::study ──> Study { scenario, measure, engine }
//! ```
//! Every error, from the TOML syntax to a pattern that does not fit its network, is a [`ConfigError`]: it names the place in
//! the file (or the `--set` that the value comes from), the key, the value, and what would be right. `kasuri-formats` parses and writes all
//! other files; this crate makes networks and workloads of them: [`fabric`], [`topology`], [`pattern`], [`routing`], [`booksim`].
//!
//! No engine sees this crate, so that a new key compiles none of them again. It reads no file either: bytes come in through
//! [`Files`](kasuri_network::topology::Files).

pub mod booksim;
mod document;
mod effective;
mod endpoint;
mod error;
pub mod fabric;
mod faults;
mod host_memory;
mod measure;
pub mod pattern;
mod physical;
mod plot;
mod pool;
mod recorded;
pub mod routing;
mod schema;
mod schemas;
mod section;
mod shape;
mod shown;
mod study;
mod sweep;
mod terminal_ports;
pub mod topology;
mod trace;
mod traffic;
mod units;
mod users;
pub mod words;
mod workload;

pub use document::Document;
pub use effective::Record;
pub use error::{ConfigError, ConfigErrors, Location};
pub use measure::{BookSimRules, Measure, Rules, Search, SimType, Until};
pub use schema::json_schema;
pub use study::{Built, Preparation, Study};
pub use sweep::{CASE, MAX_POINTS, Point, Sweep};

use kasuri_model::engine::Engine;

/// What only the program knows that reads an experiment file.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Its engines: their names may stand in `engine`, their sections at the top of the file. Where there are none, any name may stand
    /// there, and the section of that name is passed on unchecked.
    pub engines: &'a [&'a dyn Engine],
    /// The engine of a file that names none.
    pub default_engine: &'a str,
    /// The names of allocators.
    pub allocators: &'a [&'a str],
    /// Bytes that tables may take: what asks for more is refused before it is made.
    pub memory_bytes: u64,
}

impl Default for Known<'_> {
    fn default() -> Self {
        let allocators = &["islip", "separable-input-first", "separable-output-first"];
        Self { engines: &[], default_engine: "", allocators, memory_bytes: u64::MAX }
    }
}

impl std::fmt::Debug for Known<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let engines: Vec<&str> = self.engine_names().collect();
        formatter.debug_struct("Known").field("engines", &engines).field("allocators", &self.allocators).finish_non_exhaustive()
    }
}

impl<'a> Known<'a> {
    /// The engine of this name.
    pub fn engine(&self, name: &str) -> Option<&'a dyn Engine> {
        self.engines.iter().copied().find(|engine| engine.name() == name)
    }

    /// The names of the engines, in their order.
    pub fn engine_names(&self) -> impl Iterator<Item = &'static str> {
        self.engines.iter().map(|engine| engine.name())
    }
}

#[cfg(test)]
mod tests;
