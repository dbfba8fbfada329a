//! WHAT is wired: routers, channels and terminals, and the paths through them.
//!
//! This crate holds meaning without time and without traffic. A [`topology`] builds a [`network::Network`] and is then gone; a
//! [`routing::Routing`] gives a packet its next hop on it; [`deadlock`] proves that packets cannot wait for each other in a cycle;
//! a [`predictor`] guesses a packet's output. Beside them stand the numbers ([`id`]), random streams ([`rng`]) and tables of
//! interchangeable parts ([`mod@registry`]) that all crates use. It parses no text: what is read from files comes from a crate above.

pub mod cluster;
pub mod deadlock;
mod draws;
pub mod fields;
pub mod files;
pub mod id;
pub mod memory;
pub mod multicast;
pub mod network;
pub mod predictor;
pub mod registry;
pub mod rng;
pub mod routing;
pub mod topology;
