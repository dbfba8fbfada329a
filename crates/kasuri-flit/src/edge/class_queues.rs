//! Sources with a queue for each class, whose flits take turns on the channel into the network.

use crate::record::marks::{NO_VC, NONE};
use crate::record::vc_mask::VcMask;
use crate::state::feed::Next;
use crate::state::layout::RouterState;
use crate::state::queues::Queues;
use crate::state::tile::Tile;

impl Queues {
    /// Brings the head of a queue into the terminal's record, or back.
    fn swap_head(&mut self, terminal: u32, queue: usize) {
        let Some(queues) = &mut self.by_class else { return };
        let place = terminal as usize * queues.queues() + queue;
        let (head, front) = (&mut queues.heads[place], &mut self.heads[terminal]);
        std::mem::swap(&mut head.packet, &mut front.packet);
        std::mem::swap(&mut head.vc, &mut front.vc);
        std::mem::swap(&mut head.last_vc, &mut front.last_vc);
    }
}

impl<L: RouterState> Tile<'_, L> {
    /// Each active source of a block sends a flit of the next queue that can.
    pub(crate) fn serve_class_queues(&mut self, block: u32, now: u64) {
        let mut active = self.edge.queues.take_active(block);
        active.retain(|&terminal| {
            let stays = self.choose_queue(terminal, now);
            self.edge.queues.heads[terminal].listed = stays;
            stays
        });
        self.edge.queues.put_active(block, active);
        let Some(queues) = &mut self.edge.queues.by_class else { return };
        let mut chosen = std::mem::take(&mut queues.chosen);
        self.statistics.interval.injected_flits += chosen.len() as u64;
        self.statistics.balance.flits_inside += chosen.len() as i64;
        for terminal in chosen.drain(..) {
            self.send_of_queue(terminal, now);
        }
        if let Some(queues) = &mut self.edge.queues.by_class {
            queues.chosen = chosen;
        }
        self.terminals.note_ready(block);
    }

    /// Finds the queue of a terminal that sends in this cycle. Must the terminal be looked at in the next one?
    fn choose_queue(&mut self, terminal: u32, now: u64) -> bool {
        if self.terminals.is_busy(terminal, now) {
            return true;
        }
        let Some(order) = self.edge.queues.by_class.as_mut().map(|queues| queues.take_order(terminal)) else { return false };
        let stays = self.choose_in_order(terminal, &order, now);
        if let Some(queues) = &mut self.edge.queues.by_class {
            queues.order = order;
        }
        stays
    }

    fn choose_in_order(&mut self, terminal: u32, order: &[usize], now: u64) -> bool {
        let (mut waits, mut asks_again) = (false, false);
        for &queue in order {
            self.edge.queues.swap_head(terminal, queue);
            let vc = self.serve_head(terminal, queue, now, &mut asks_again);
            waits |= self.edge.queues.heads[terminal].packet != NONE;
            self.edge.queues.swap_head(terminal, queue);
            if vc.is_some_and(|vc| self.terminals.has_credit(terminal << L::Mask::SHIFT | u32::from(vc)))
                && let Some(queues) = &mut self.edge.queues.by_class
            {
                queues.last[terminal as usize] = queue;
                queues.chosen.push(terminal);
                return true;
            }
        }
        self.terminals.set_blocked(terminal, waits);
        asks_again || waits && self.parameters.redraws_entry || self.edge.has_pending_reply(terminal)
    }

    /// Draws the packet of a queue that has none, and finds its virtual channel. Notes whether one may come in the next cycle.
    fn serve_head(&mut self, terminal: u32, queue: usize, now: u64, asks_again: &mut bool) -> Option<u16> {
        if self.edge.queues.heads[terminal].packet == NONE {
            match &self.edge.next_packet_of_queue(terminal, queue, now) {
                Next::Packet(drawn) => self.enter_packet(drawn, terminal, now),
                Next::Later => {
                    *asks_again = true;
                    return None;
                }
                Next::Nothing => return None,
            }
        }
        let vc = self.edge.queues.heads[terminal].vc;
        (vc != NO_VC || self.choose_virtual_channel(terminal, now)).then(|| self.edge.queues.heads[terminal].vc)
    }

    /// The queue chosen sends a flit.
    fn send_of_queue(&mut self, terminal: u32, now: u64) {
        let Some(queue) = self.edge.queues.by_class.as_ref().map(|queues| queues.last[terminal as usize]) else { return };
        self.edge.queues.swap_head(terminal, queue);
        let vc = self.edge.queues.heads[terminal].vc;
        self.send_flit(terminal << L::Mask::SHIFT | u32::from(vc), now);
        self.edge.queues.swap_head(terminal, queue);
    }
}
