//! A window of cycles in one tile: terminals first, then block after block of its routers.

use crate::fabric::cycle::RouterCycle;
use crate::observe::counters::OCCUPANCY_PERIOD;
use crate::record::wheel::Wheel;
use crate::state::interval_parts::Ends;
use crate::state::tile::Tile;
use std::ops::Range;

impl<L: RouterCycle> Tile<'_, L> {
    /// Lets the feed answer to what has happened.
    #[inline(always)]
    pub(crate) fn proceed(&mut self) {
        self.edge.proceed(self.cycle);
        for slot in self.edge.queues.freed.drain(..) {
            Self::free_place(&self.terminals.ejection[slot], &mut self.in_flight.credits, self.cycle);
        }
    }

    /// Nothing is on its way and nobody can act before a new packet is created.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        // What is most often not idle first.
        self.blocks.are_idle()
            && (0..self.parameters.router_blocks).all(|block| self.layout.is_idle(block))
            && self.in_flight.arrivals.is_empty()
            && self.in_flight.credits.is_empty()
            && self.terminals.is_idle()
            && self.edge.is_idle()
            && self.in_flight.border.has_no_mail()
            && self.has_no_copies()
    }

    /// Takes the mail, runs a window and puts what arrives in other tiles in these cycles into the mail.
    pub(crate) fn run_window(&mut self, length: u64, mail: Range<u64>, ends: &Ends) {
        self.take_mail();
        self.advance_window(length, ends);
        self.put_mail(mail);
    }

    /// Runs a window, compiled for the processor at hand: shifts by a variable amount cost two to three instructions less with
    /// BMI2. Both texts are the same, and so are their results.
    #[inline(always)]
    fn advance_window(&mut self, length: u64, ends: &Ends) {
        #[cfg(target_arch = "x86_64")]
        if self.parameters.modern {
            // SAFETY: `modern` says that the processor has these features.
            return unsafe { self.advance_window_modern(length, ends) };
        }
        self.advance_window_portably(length, ends);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt,avx2")]
    fn advance_window_modern(&mut self, length: u64, ends: &Ends) {
        self.advance_window_portably(length, ends);
    }

    /// Terminals first, then block after block. What one posts for another arrives after the window.
    #[inline(always)]
    fn advance_window_portably(&mut self, length: u64, ends: &Ends) {
        let first = self.cycle;
        let end = self.begin_window_with_ends(ends, length);
        if self.terminals.memories.is_some() {
            // Windows of one cycle.
            self.begin_block_with_ends(ends, end);
            self.shared_memory_cycle(first);
            self.note_end(ends, first + 1);
            self.end_block_with_ends(end);
        }
        for block in 0..self.blocks_of_terminals() {
            if self.parameters.is_far {
                self.edge.feed().prefetch_block(block);
            }
            self.begin_block_with_ends(ends, end);
            for now in first..first + length {
                self.terminal_cycle(block, now);
                self.note_end(ends, now + 1);
            }
            self.end_block_with_ends(end);
        }
        for block in 0..self.parameters.router_blocks {
            if self.parameters.is_far {
                L::prefetch_block(self, block, length);
            }
            for now in first..first + length {
                L::router_cycle(self, block, now);
            }
        }
        self.decide_on_departure();
        self.hand_on_events();
        if first / OCCUPANCY_PERIOD != (first + length) / OCCUPANCY_PERIOD {
            self.sample_occupancy();
        }
        self.cycle = first + length;
    }

    /// Blocks of terminals that go through a window one after the other: none where hosts share memories.
    #[inline(always)]
    fn blocks_of_terminals(&self) -> u32 {
        if self.terminals.memories.is_some() { 0 } else { self.parameters.blocks - self.parameters.router_blocks }
    }
}
