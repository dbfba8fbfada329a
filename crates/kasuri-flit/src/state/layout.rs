//! How the state of the routers' virtual channels lies in memory: the accessors over which everything is written that runs once per packet.

use crate::record::links::Links;
use crate::record::options::LayoutName;
use crate::record::prefetch::prefetch;
use crate::record::rings::Queue;
use crate::record::slots::{InputSlot, OutputSlot};
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::parameters::Parameters;
use kasuri_network::memory::Column;
use kasuri_network::routing::Candidate;

/// The state of the routers' virtual channels. Addresses as in `state/tile.rs`, below the terminals'.
pub(crate) trait RouterState: Sized + Send {
    /// Holds the virtual channels of a port.
    type Mask: VcMask;
    /// What is on its way.
    type Wheel: Wheel;
    /// The column of `support.rs` that says what this layout can do.
    const LAYOUT: LayoutName;
    /// log2 of the slots of a block: its state then fits into a second-level cache beside its neighbours' lists.
    const BLOCK_SLOTS_SHIFT: u32 = 14;

    /// Slots that a router of `slots` slots takes in the address space, when the widest router has `widest`.
    fn reserved_slots(slots: u32, widest: u32) -> u32;

    /// RouterState of `ports` port addresses of routers; with the terminals' there are `all_ports`.
    fn new(parameters: &Parameters, ports: u32, all_ports: u32) -> Self;

    /// Bytes of such a layout.
    fn bytes(parameters: &Parameters, ports: u32, all_ports: u32) -> usize;

    /// Flits of an output port that have been granted the switch and will be sent on its channel in cycle `from` or later, in routers that
    /// put more of them before a channel than it takes. Each takes the channel for `period` cycles.
    fn before_channel(&self, _port: u32, _from: u64, _period: u32) -> u32 {
        0
    }

    /// What is done once per packet at an input slot of a router or a terminal.
    fn input_slot(&self, slot: u32) -> &InputSlot;

    fn input_slot_mut(&mut self, slot: u32) -> &mut InputSlot;

    /// The packets of its buffer, and those places for packets behind the front one that lie beside it.
    #[inline(always)]
    fn queue_mut(&mut self, slot: u32) -> (&mut Queue, &mut [u32]) {
        (&mut self.input_slot_mut(slot).queue, &mut [])
    }

    /// The same at an output slot of a router.
    fn output_slot(&self, slot: u32) -> &OutputSlot;

    fn output_slot_mut(&mut self, slot: u32) -> &mut OutputSlot;

    /// Makes an output port usable: its virtual channels are free, with full credit. `first` is the router's first port.
    fn connect_output(&mut self, port: u32, first: u32, parameters: &Parameters);

    /// Sets the pointers of an input port to the router's first port.
    fn connect_input(&mut self, port: u32, first: u32);

    /// Called once, when all links are known.
    fn connect_links(&mut self, _links: &Column<Links>) {}

    /// Adds the flits that the layout itself has counted per channel to `Links::sent`.
    fn collect_sent(&mut self, _links: &mut Column<Links>) {}

    /// Flits in the buffer of an input slot.
    fn flits(&self, slot: u32) -> u32;

    /// The output slot that the front packet of an input slot holds, or `NONE`.
    fn held_output(&self, slot: u32) -> u32;

    /// Flits of the front packet that have not left.
    fn left(&self, slot: u32) -> u32;

    /// Notes the length of the front packet, when it is routed.
    fn set_left(&mut self, slot: u32, flits: u16);

    /// Free places in the buffer downstream of an output slot.
    fn credits(&self, slot: u32) -> u32;

    /// The input slot that holds an output slot, or `NONE`.
    fn holder(&self, slot: u32) -> u32;

    /// The virtual channels of a port that nobody holds.
    fn free(&self, port: u32) -> Self::Mask;

    /// Fetches an input slot, which lies in one cache line unless the layout says otherwise.
    #[inline(always)]
    fn prefetch_input(&self, slot: u32) {
        prefetch(self.input_slot(slot));
    }

    /// Fetches what [`Self::free`] looks at.
    fn prefetch_free(&self, _port: u32) {}

    /// Gives an output slot to a head.
    fn hold(&mut self, head: u32, output: u32);

    /// Makes a virtual channel free.
    fn set_free(&mut self, output: u32);

    /// Does an output slot bid for the switch? `None` where that is not kept between cycles.
    fn is_ready(&self, output: u32) -> Option<bool>;

    /// Heads that wait for a virtual channel and stand in no port's list of requests: input slot and what they ask for, appended.
    fn append_waiting(&self, _waiting: &mut Vec<(u32, Candidate)>) {}

    /// Is there nothing to do in a block before a new event arrives?
    fn is_idle(&self, block: u32) -> bool;
}
