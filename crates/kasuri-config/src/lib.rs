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
mod context;
mod document;
mod effective;
mod endpoint;
mod error;
pub mod fabric;
mod faults;
mod flatten;
mod host_memory;
mod known;
mod measure;
mod network;
mod path;
pub mod pattern;
mod physical;
mod plot;
mod point;
mod pool;
mod recorded;
mod router;
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
pub use known::Known;
pub use measure::{BookSimRules, Measure, Rules, Search, SimType, Until};
pub use point::{CASE, Point};
pub use schema::json_schema;
pub use study::{Built, Preparation, Study};
pub use sweep::{MAX_POINTS, Sweep};

#[cfg(test)]
mod tests;
