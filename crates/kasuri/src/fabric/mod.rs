//! What a real fabric's tables do: where packets go, what waits for what, which cables are loaded.

pub mod audit;
pub mod job;
pub mod pairs;

pub use audit::{Audit, audit};
