//! The lists of the blocks of routers: what each has to do without a new event.

use crate::record::list::{List, put_back};
use crate::state::parameters::Parameters;

/// The lists of the block of routers that is being advanced. They keep their memory from cycle to cycle and from block to block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Output ports where heads wait for a virtual channel and something has changed.
    pub(crate) allocate: List,
    /// The same for the next cycle.
    pub(crate) allocate_next: List,
    /// Input slots whose front is a new head.
    pub(crate) heads: List,
    /// The same for the next cycle: the tail before it has just left.
    pub(crate) heads_next: List,
    /// Routed heads that wait for the end of a long route computation, by cycle.
    delayed: Vec<Vec<u32>>,
}

impl Block {
    /// Empty lists for a block of so many ports of `2^shift` slots.
    fn new(parameters: &Parameters, ports: usize, shift: u32) -> Self {
        let list = List::with_capacity;
        Self {
            allocate: list(ports),
            allocate_next: list(ports),
            heads: list(ports << shift),
            heads_next: list(ports << shift),
            delayed: vec![Vec::new(); parameters.route_cycles as usize],
        }
    }

    /// Is there nothing to do without a new event?
    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.allocate.is_empty() && self.heads.is_empty() && self.delayed.iter().all(Vec::is_empty)
    }

    /// The lists for the next cycle become those of the present one.
    #[inline(always)]
    pub(crate) fn turn(&mut self) {
        std::mem::swap(&mut self.allocate, &mut self.allocate_next);
        std::mem::swap(&mut self.heads, &mut self.heads_next);
        self.heads_next.clear();
        self.allocate_next.clear();
    }

    /// The routed heads that begin to bid in cycle `now`, a multiple of the route computation after they were routed.
    pub(crate) fn delayed(&mut self, now: u64) -> &mut Vec<u32> {
        let cycles = self.delayed.len() as u64;
        &mut self.delayed[(now % cycles) as usize]
    }
}

/// What a block has to do when it is advanced next: the lists of a [`Block`] between cycles.
#[derive(Clone, Debug, Default)]
struct Kept {
    allocate: Vec<u32>,
    heads: Vec<u32>,
    delayed: Vec<Vec<u32>>,
}

impl Kept {
    fn is_idle(&self) -> bool {
        self.allocate.is_empty() && self.heads.is_empty() && self.delayed.iter().all(Vec::is_empty)
    }

    /// Keeps what the lists of a block say between two cycles, which become empty.
    fn keep(&mut self, lists: &mut Block) {
        debug_assert!(lists.allocate_next.is_empty() && lists.heads_next.is_empty(), "a block is left within a cycle");
        self.allocate.extend_from_slice(lists.allocate.as_slice());
        self.heads.extend_from_slice(lists.heads.as_slice());
        lists.allocate.clear();
        lists.heads.clear();
        std::mem::swap(&mut self.delayed, &mut lists.delayed);
    }

    /// Moves what is kept into the empty lists of a block.
    fn give(&mut self, lists: &mut Block) {
        self.allocate.drain(..).for_each(|port| lists.allocate.push(port));
        self.heads.drain(..).for_each(|slot| lists.heads.push(slot));
        std::mem::swap(&mut self.delayed, &mut lists.delayed);
    }
}

/// The lists of all blocks. One block is advanced at a time, mostly through a window of cycles: it alone has lists that hold each of its ports
/// and slots, and these stay in the cache; of the others little is kept.
pub(crate) struct Blocks {
    /// The lists of block `current`. Who advances it takes them out: a pointer, where all lists as values would be copied in every cycle.
    lists: Option<Box<Block>>,
    current: u32,
    kept: Box<[Kept]>,
}

impl Blocks {
    /// Empty lists for so many blocks of at most so many ports of `2^shift` slots.
    pub(crate) fn new(parameters: &Parameters, ports: usize, shift: u32) -> Self {
        let kept = Kept { delayed: vec![Vec::new(); parameters.route_cycles as usize], ..Kept::default() };
        Self {
            lists: Some(Box::new(Block::new(parameters, ports, shift))),
            current: 0,
            kept: vec![kept; parameters.router_blocks as usize].into_boxed_slice(),
        }
    }

    /// Takes the lists of a block.
    #[inline(always)]
    pub(crate) fn take(&mut self, block: u32) -> Box<Block> {
        let mut lists = self.lists.take().expect("who takes the lists of a block puts them back");
        if block != self.current {
            self.turn_to(block, &mut lists);
        }
        lists
    }

    /// Keeps what the lists of the block before say, and fills them with what was kept of another.
    #[inline(never)]
    fn turn_to(&mut self, block: u32, lists: &mut Block) {
        self.kept[self.current as usize].keep(lists);
        self.kept[block as usize].give(lists);
        self.current = block;
    }

    /// Puts the lists of the block that was taken last back.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, lists: Box<Block>) {
        put_back(&mut self.lists, Some(lists));
    }

    /// Is there nothing to do in a block without a new event?
    #[inline(always)]
    pub(crate) fn is_idle(&self, block: u32) -> bool {
        if block == self.current {
            return self.lists.as_ref().is_some_and(|lists| lists.is_idle());
        }
        self.kept[block as usize].is_idle()
    }

    /// Is there nothing to do in any block without a new event?
    #[inline(always)]
    pub(crate) fn are_idle(&self) -> bool {
        (0..self.kept.len() as u32).all(|block| self.is_idle(block))
    }
}
