//! The interface between scenarios and engines.
//!
//! A [`scenario::Scenario`] holds the whole input of a simulation, immutable: a network and its routing, the [`router`]s, traffic or a
//! closed workload. An [`engine::Engine`] runs it under a [`engine::Controller`] and returns an [`engine::Outcome`]. This crate simulates
//! nothing and knows neither the experiment file nor the form of results.

pub mod counter;
pub mod engine;
mod outcome;
pub mod refusal;
pub mod router;
pub mod scenario;
pub mod sources;
pub mod time;
