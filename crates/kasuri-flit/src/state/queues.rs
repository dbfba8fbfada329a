//! The terminals' queues: the packet at the head of each, and which terminals have something to do.

use crate::record::list::put_back;
use crate::record::marks::{NO_VC, NONE};
use crate::state::class_queues::ClassQueues;
use crate::state::feed::EdgeMessage;
use crate::state::share::Share;
use kasuri_model::scenario::Scenario;
use kasuri_network::memory::Column;

/// The head of a terminal's queue. What its flits need lies in [`Injection`](super::terminals::Injection).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The packet at the head of the queue, or [`NONE`].
    pub(crate) packet: u32,
    /// Packets drawn so far.
    pub(crate) serial: u32,
    /// The virtual channel that it goes by, or [`NO_VC`].
    pub(crate) vc: u16,
    /// The virtual channel of the packet before.
    pub(crate) last_vc: u16,
    /// Is the terminal in its block's list of active terminals?
    pub(crate) listed: bool,
}

/// The queues of all terminals.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(crate) heads: Column<Head>,
    /// By block of terminals: those whose next packet may be drawn or find a virtual channel.
    active: Vec<Vec<u32>>,
    /// log2 of the terminals of a block.
    block_shift: u32,
    /// The number of the first terminal in the network.
    first_terminal: u32,
    /// The other heads, where terminals have a queue for each class.
    pub(crate) by_class: Option<ClassQueues>,
    /// Slots of sinks, counted from the first, in which a place has become free since they were last looked at.
    pub(crate) freed: Vec<u32>,
    /// What feeds have for those of other tiles.
    pub(crate) messages: Vec<EdgeMessage>,
}

impl Queues {
    /// Empty queues of a tile's terminals in blocks of `2^block_shift`.
    pub(crate) fn new(scenario: &Scenario, share: &Share, block_shift: u32) -> Self {
        let terminals = share.terminals.len() as u32;
        let head = Head { packet: NONE, serial: 0, vc: NO_VC, last_vc: NO_VC, listed: false };
        Self {
            heads: Column::filled(terminals as usize, head),
            active: vec![Vec::new(); terminals.div_ceil(1 << block_shift) as usize],
            block_shift,
            first_terminal: share.terminals.start,
            by_class: ClassQueues::of(scenario, terminals as usize),
            freed: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Bytes of the queues of so many terminals, with the list of those that are active.
    pub(crate) fn bytes(terminals: usize) -> usize {
        terminals * (size_of::<Head>() + 8)
    }

    /// Wakes a terminal, named by its number in the network.
    #[inline(always)]
    pub(crate) fn wake(&mut self, terminal: u32) {
        self.wake_own(terminal - self.first_terminal);
    }

    /// Puts a terminal, named by its number in the tile, into its block's list of active ones.
    #[inline(always)]
    pub(crate) fn wake_own(&mut self, terminal: u32) {
        let head = &mut self.heads[terminal];
        if !head.listed {
            head.listed = true;
            self.active[(terminal >> self.block_shift) as usize].push(terminal);
        }
    }

    /// Is a terminal of a block active?
    #[inline(always)]
    pub(crate) fn has_active(&self, block: u32) -> bool {
        !self.active[block as usize].is_empty()
    }

    /// Is no terminal active?
    #[inline(always)]
    pub(crate) fn are_idle(&self) -> bool {
        self.active.iter().all(Vec::is_empty)
    }

    /// Takes a block's list of active terminals; [`Self::put_active`] gives it back.
    #[inline(always)]
    pub(crate) fn take_active(&mut self, block: u32) -> Vec<u32> {
        std::mem::take(&mut self.active[block as usize])
    }

    /// Gives the memory of a list of active terminals back. None may have been woken meanwhile.
    #[inline(always)]
    pub(crate) fn put_active(&mut self, block: u32, list: Vec<u32>) {
        debug_assert!(self.active[block as usize].is_empty());
        put_back(&mut self.active[block as usize], list);
    }

    /// Does a terminal hold a packet that it cannot send?
    pub(crate) fn have_stuck_packet(&self) -> bool {
        self.heads.iter().any(|head| head.packet != NONE) || self.by_class.as_ref().is_some_and(ClassQueues::has_packet)
    }
}
