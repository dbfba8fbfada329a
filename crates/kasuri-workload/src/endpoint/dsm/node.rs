//! What stands behind the interfaces of a node, in time: its processor, its unit that translates, its memory.

use super::memory::Memory;
use crate::endpoint::tlb::Tlb;
use crate::translation::{Costs, Translator};

/// What a virtual processor does.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// The place in its program.
    pub(super) step: usize,
    /// Is the access of this step in the unit, not yet taken by an interface?
    pub(super) is_in_unit: bool,
    /// Its computation.
    pub(super) computes: Computes,
    /// Computations that have begun: those that end under an older number were interrupted.
    pub(super) serial: u32,
    /// Accesses that are not answered.
    pub(super) open: u32,
    /// Has the program ended, and are all its accesses answered?
    pub(super) has_ended: bool,
    /// When its last access was answered or its last computation ended.
    pub(super) last: u64,
    /// Writes to its memory by phase.
    pub(super) written: Vec<u32>,
}

/// A computation of a virtual processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Computes {
    /// There is none.
    #[default]
    No,
    /// It waits for the processor element, and needs so many cycles.
    Waits(u64),
    /// It ends then.
    Until(u64),
}

/// What the unit works on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Unit {
    /// Nothing.
    #[default]
    Idle,
    /// It looks up the node of a request; this read of memory follows.
    LooksUp(u32, u32),
    /// A request is held by a change of the table, since then.
    Held(u32, u64),
    /// A request waits for an interface.
    Ready(u32),
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) unit: Unit,
    pub(super) translator: Translator,
    /// Global addresses: pages by user, logical node and page.
    pub(super) pages: Tlb<(u16, u32, u32)>,
    pub(super) memory: Memory,
    /// The virtual processor that is asked first for an access.
    pub(super) turn: usize,
    /// The virtual processor that computes.
    pub(super) computing: Option<u32>,
    /// Accesses of all its virtual processors that are not answered.
    pub(super) open: u32,
}

impl Node {
    pub(super) fn new(costs: Costs) -> Self {
        let (translator, pages) = (Translator::new(costs), Tlb::new(costs.tlb_entries as usize));
        Self { unit: Unit::Idle, translator, pages, memory: Memory::default(), turn: 0, computing: None, open: 0 }
    }
}
