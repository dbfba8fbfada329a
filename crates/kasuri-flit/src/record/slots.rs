//! What is done once per packet at a slot of a router, apart from any layout.

use crate::record::marks::NONE;
use crate::record::rings::Queue;

/// What is done once per packet at an input slot needs this, in one place. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputSlot {
    /// Round-robin pointer over output slots.
    pub(crate) accept_pointer: u32,
    /// The next input slot that waits for a virtual channel of the same output port.
    pub(crate) request_next: u32,
    /// The packets in the buffer, and announced to it.
    pub(crate) queue: Queue,
    /// The virtual channels that it may take.
    pub(crate) request_first: u8,
    pub(crate) request_last: u8,
    /// Length of the front packet, and its flits that [`Links::sent`] holds already (where the layout does not count each flit).
    pub(crate) length: u16,
    pub(crate) settled: u16,
}

impl Default for InputSlot {
    fn default() -> Self {
        Self { accept_pointer: 0, request_next: NONE, queue: Queue::default(), request_first: 0, request_last: 0, length: 0, settled: 0 }
    }
}

/// The same for an output slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputSlot {
    /// Round-robin pointer over input slots.
    pub(crate) grant_pointer: u32,
}
