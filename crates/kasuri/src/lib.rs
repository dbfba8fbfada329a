//! Kasuri's façade: runs scenarios on an engine, sweeps over threads, keeps results.

pub mod measure;
