//! What the cycle needs to know of the routers, worked out once.

use crate::record::clock::Clock;
use crate::record::packet::Gaps;
use crate::state::full_parameters::FullParameters;
use crate::state::output_shares::Granted;
use crate::state::share::Share;
use kasuri_model::router::{AllocatorParameters, Bidding, Switching, VcRelease};
use kasuri_model::scenario::Scenario;

/// What the cycle needs to know of the router, worked out once. Many fields, because nothing changes them and every step reads some.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) virtual_channels: u32,
    pub(crate) block_shift: u32,
    pub(crate) buffer_flits: u16,
    pub(crate) route_cycles: u32,
    pub(crate) traversal_cycles: u32,
    /// The steps of the routers.
    pub(crate) clock: Clock,
    pub(crate) bidding: Bidding,
    pub(crate) switching: Switching,
    pub(crate) release: VcRelease,
    /// Have the routers a queue for each output, so that packets enter by that of their first one?
    pub(crate) restricts_entry: bool,
    /// Does a packet that has found no virtual channel draw others in the next cycle?
    pub(crate) redraws_entry: bool,
    /// Takes each output from its queues, whatever other outputs take from the same input?
    pub(crate) crosspoint: bool,
    /// Does any channel need more than one cycle for a flit, so that it is kept how long each is busy?
    pub(crate) periodic: bool,
    /// Cycles for which a packet keeps each channel busy beyond its flits: those of its hint bits.
    pub(crate) hint_cycles: u32,
    /// Is the state larger than the near caches, so that loops fetch what they will need?
    pub(crate) fetches: bool,
    /// Is it so large that even what is used in the same window must be fetched?
    pub(crate) is_far: bool,
    /// Does the processor have the features of `advance_window_modern`?
    pub(crate) modern: bool,
    pub(crate) vc_allocator: AllocatorParameters,
    pub(crate) switch_allocator: AllocatorParameters,
    /// Are all packets of one flit, and the routers such that the cycle for them serves?
    pub(crate) one_flit: bool,
    /// Do packets, all of one flit, enter as soon as they have a virtual channel?
    pub(crate) enters_at_once: bool,
    /// What routers in the full layout need besides.
    pub(crate) full: Option<FullParameters>,
    /// What users are granted of the switches' outputs, if these are divided.
    pub(crate) granted: Option<Granted>,
    /// Cycles that a block or a tile runs without looking at the others.
    pub(crate) window: u32,
    /// The tile's routers and terminals.
    pub(crate) share: Share,
    pub(crate) first_terminal_port: u32,
    pub(crate) router_blocks: u32,
    pub(crate) blocks: u32,
}

impl Parameters {
    /// Cycles for which a packet keeps a channel busy after one of its flits, beyond that flit's own time. The hint bits in front of a packet
    /// are counted behind its tail: so long the channel carries nothing else, wherever they stand.
    #[inline(always)]
    pub(crate) fn cycles_after(&self, is_tail: bool) -> u64 {
        if is_tail { u64::from(self.hint_cycles) } else { 0 }
    }

    /// Do flits that have crossed the switch queue for the channel?
    pub(crate) fn has_output_queue(&self) -> bool {
        !self.clock.is_plain() || self.full.as_ref().is_some_and(|full| full.router.output_speedup > 1)
    }

    /// What is known of packets without flits in the network. Where a memory access costs more than a branch that nobody foresees, and where
    /// most flits follow each other, usual gaps are left out of memory; else all gaps stand there.
    pub(crate) fn first_gaps(&self, scenario: &Scenario) -> Gaps {
        let is_open = scenario.workload.is_none() && scenario.classes.iter().all(|class| class.packets_per_terminal.is_none());
        if self.is_far && is_open { Gaps::UsualSoFar } else { Gaps::InMemory }
    }
}
