//! Wrong copies that have left their router: each holds a virtual channel, and has a place in the buffer downstream, until the router or
//! terminal there has found out that it does not belong there, one cycle after its arrival, and the credit is back.
//!
//! Nothing happens downstream that the sender's account does not tell: no packet can come by a virtual channel that is held, and the place
//! is one that a credit stands for. So all is kept on the sender's side.
//!
//! Touches arrivals: before they are taken, credits of copies come back and virtual channels become free.

use crate::fabric::features::passing::Predicts;
use crate::record::vc_mask::VcMask;
use crate::state::blocks::Block;
use crate::state::layout::RouterState;
use crate::state::prediction::PredictionUnit;
use crate::state::tile::Tile;

impl<L: Predicts> Tile<'_, L> {
    /// A copy has left by an output slot, and arrives in a cycle.
    pub(super) fn lend(&mut self, unit: &mut PredictionUnit<'_>, output: u32, arrival: u64) {
        L::lend(self, output);
        unit.copies.send(output >> self.parameters.block_shift, output >> L::Mask::SHIFT, output, arrival);
    }

    /// Credits of copies come back; where it is the last one, the virtual channel is free again.
    pub(crate) fn take_copies_back(&mut self, unit: &mut PredictionUnit<'_>, block: u32, now: u64, lists: &mut Block) {
        while let Some((output, is_last)) = unit.copies.next(block, now) {
            L::take_back(self, output, is_last, lists);
        }
    }
}

impl<L: RouterState> Tile<'_, L> {
    /// Is no copy away?
    pub(crate) fn has_no_copies(&self) -> bool {
        self.prediction.as_ref().is_none_or(|unit| unit.copies.is_empty())
    }

    /// Is none due in a block by a cycle?
    pub(crate) fn no_copies_due(&self, block: u32, now: u64) -> bool {
        self.prediction.as_ref().is_none_or(|unit| unit.copies.none_due(block, now))
    }

    /// Do copies hold an output slot?
    pub(crate) fn lends(&self, output: u32) -> bool {
        self.prediction.as_ref().is_some_and(|unit| unit.copies.hold(output))
    }
}
