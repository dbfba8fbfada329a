//! The routes of real fabrics: destinations, credit loops and loaded cables.

pub mod audit;
pub mod job;
pub mod pairs;

pub use audit::{Audit, audit};
