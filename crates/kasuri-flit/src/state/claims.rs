//! What heads have claimed of the outputs of their router and not sent: what it can know of congestion before any credit is missing.
//!
//! A packet is counted at its output port from the moment at which its head is routed, so that the next head, in the same cycle even, sees
//! it. While it waits for a virtual channel its flits are counted here, at the first one that it may take; once it holds one, what is left
//! of it is known there. Heads are routed in the order of their input ports and virtual channels, and equal outputs are drawn.
//!
//! Touches routing (a head claims its output) and virtual-channel allocation (it gives the claim up with the virtual channel that it gets).

use crate::record::marks::NONE;
use kasuri_network::memory::Column;

/// A head that waits for a virtual channel.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// The output slot at which it is counted, or [`NONE`], and its packet's flits.
    output: u32,
    flits: u32,
}

/// The claims of all heads that wait for a virtual channel.
pub(crate) struct Claims {
    /// By input slot.
    of_head: Column<Claim>,
    /// By output slot: the flits of all packets that are counted there.
    flits: Column<u32>,
}

impl Claims {
    /// No claims, on so many slots of routers.
    pub(crate) fn new(slots: usize) -> Self {
        Self { of_head: Column::filled(slots, Claim { output: NONE, flits: 0 }), flits: Column::filled(slots, 0) }
    }

    /// Bytes for each slot.
    pub(crate) const SLOT_BYTES: usize = size_of::<Claim>() + size_of::<u32>();

    /// A head waits for a virtual channel, of which `output` is the first that it may take.
    pub(crate) fn make(&mut self, head: u32, output: u32, flits: u32) {
        self.give_up(head);
        self.of_head[head] = Claim { output, flits };
        self.flits[output] += flits;
    }

    /// It waits no more.
    pub(crate) fn give_up(&mut self, head: u32) {
        let Claim { output, flits } = self.of_head[head];
        if output != NONE {
            self.flits[output] -= flits;
            self.of_head[head].output = NONE;
        }
    }

    /// Flits that are claimed at an output slot.
    pub(crate) fn at(&self, output: u32) -> u32 {
        self.flits[output]
    }
}
