//! What the routers have noted for the edge reaches it here: heads that have come to routers, and packets that are lost.

use crate::record::event::{Event, Loss};
use crate::state::layout::RouterState;
use crate::state::tile::Tile;

impl<L: RouterState> Tile<'_, L> {
    /// Hands on what the routers have noted since this was last done.
    #[inline(always)]
    pub(crate) fn hand_on_events(&mut self) {
        if !self.in_flight.events.list.is_empty() {
            self.hand_on_all_events();
        }
    }

    #[inline(never)]
    fn hand_on_all_events(&mut self) {
        let mut events = std::mem::take(&mut self.in_flight.events.list);
        for event in events.drain(..) {
            match event {
                Event::Head(head) => self.edge.on_head_at_router(head),
                Event::Loss(loss) => self.hand_on_loss(loss),
            }
        }
        self.in_flight.events.list = events;
    }

    fn hand_on_loss(&mut self, loss: Loss) {
        let Loss { drawn, source, serial, now, is_measured } = loss;
        let comes_again = self.edge.lost(drawn, source, serial, now);
        let is_waited_for = is_measured && drawn.asked < self.edge.drain.before;
        self.statistics.balance.draining_live -= i64::from(is_waited_for && !comes_again);
    }

    /// A terminal discards a damaged packet when its tail arrives. None of its flits has been counted: [`Statistics::counts_whole_packets`].
    ///
    /// [`Statistics::counts_whole_packets`]: crate::state::statistics::Statistics::counts_whole_packets
    #[cold]
    pub(crate) fn refuse(&mut self, packet: u32, now: u64) {
        self.lose(packet, 0, now);
        self.hand_on_events();
    }
}
