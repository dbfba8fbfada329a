//! The façade: it knows all engines, files, threads and the command line, and simulates nothing itself.

pub mod cli;
pub mod input;
pub mod measure;
pub mod results;
pub mod store;
