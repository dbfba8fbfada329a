//! The tests of networks, routings and the deadlock check from outside, as one program: it is linked once, and its tests fill all cores.

mod cenju4;
mod common;
mod connectivity;
mod deadlock;
mod detours;
mod fabrics;
mod fabrics_deadlock;
mod metrics;
mod multicast;
#[path = "common/random.rs"]
mod random;
mod random_networks;
mod rdt;
mod rng_values;
mod routes;
mod table_bytes;
