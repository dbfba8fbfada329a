//! WHAT is asked of a network: open traffic, closed workloads, and the machines at its terminals.
//!
//! This crate holds meaning without an engine's time. [`traffic`] draws destinations and creation times; a [`collective`] or a
//! [`schedule`] says which messages an operation consists of; a [`workload`] sends messages because something has happened;
//! [`endpoint`] knows what stands between a processor and the network; [`translation`] maps the nodes of users to those of the machine;
//! [`terminal_ports`] says what of it each port of a terminal with several does;
//! [`execution`] is a trace of an AI cluster with the cluster that it was written for; [`ethernet`] is a fabric of Ethernet switches with
//! the flows on it.
//! It parses no text: what is read from files comes from a crate above.

pub mod collective;
pub mod endpoint;
pub mod ethernet;
pub mod execution;
pub mod schedule;
pub mod terminal_ports;
pub mod timeline;
pub mod traffic;
pub mod translation;
pub mod units;
pub mod workload;
