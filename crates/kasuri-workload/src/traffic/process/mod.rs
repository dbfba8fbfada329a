//! Injection processes: when a terminal creates its packets.
//!
//! Knows no destinations and no lengths. Members import the contract (`contract.rs`), never this file.
//!
//! To add one: a file here that implements [`InjectionProcess`] and [`Member`](kasuri_network::registry::Member), a `mod` line, and its
//! line in [`PROCESSES`].

pub mod batch;
pub mod bernoulli;
mod by_terminal;
mod contract;
pub mod on_off;
pub mod periodic;

pub use by_terminal::ByTerminal;
pub use contract::{InjectionProcess, Process, Window};

use kasuri_network::registry;

registry! {
    /// All processes.
    pub PROCESSES: dyn InjectionProcess = [
        bernoulli::Bernoulli,
        on_off::OnOff,
        periodic::Periodic,
        batch::Batch,
    ]
}
