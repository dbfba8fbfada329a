//! The contract between what is simulated and the engines that simulate it.
//!
//! A [`scenario::Scenario`] holds everything that is simulated, immutable: a network and its routing, the [`router`]s, traffic or a closed
//! workload. An [`engine::Engine`] runs it under a [`engine::Controller`] and returns an [`engine::Outcome`]. This crate simulates nothing
//! itself, and knows neither how an experiment is written nor who reads the answer.

pub mod counter;
pub mod engine;
mod outcome;
pub mod refusal;
pub mod router;
pub mod scenario;
pub mod sources;
pub mod time;
