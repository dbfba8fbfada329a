//! WHAT is simulated: the description of a network, its routing and its traffic.
//!
//! This crate holds meaning without time. It builds a [`network::Network`] from a topology, gives a packet its next hop by a
//! [`routing::Routing`], draws destinations and creation times in [`traffic`], and hands all of it to an engine as one
//! immutable [`scenario::Scenario`]. It knows no clock, no engine, no files, no threads and no terminal: bytes come in
//! through [`topology::Files`], answers go out as values.

pub mod config;
pub mod engine;
pub mod format;
pub mod router;
pub mod scenario;
