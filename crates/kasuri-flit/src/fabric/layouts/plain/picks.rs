//! What separable input-first switch allocation notes within a cycle.

use crate::record::marks::NONE;
use kasuri_network::memory::Column;

/// What is noted within a cycle.
pub(super) struct Picks {
    /// By input port: how far its candidate is from its pointers.
    pub(super) distance: Column<u64>,
    /// By output port: the input port that has the best claim to it, or [`NONE`].
    pub(super) chosen: Column<u32>,
    /// Input ports that have picked, and output ports that they picked.
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<u32>,
}

impl Picks {
    pub(super) fn new(ports: usize) -> Self {
        Self { distance: Column::filled(ports, 0), chosen: Column::filled(ports, NONE), inputs: Vec::new(), outputs: Vec::new() }
    }
}
