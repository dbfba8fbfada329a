//! Sources with a queue for each class, whose flits take turns on the channel into the network.

use crate::record::vc_mask::VcMask;
use crate::state::feed::Next;
use crate::state::layout::RouterLayout;
use crate::state::queues::{NO_VC, Queues};
use crate::state::tile::{NONE, Tile};
use kasuri_model::router::Priority;
use kasuri_model::scenario::Scenario;
use std::cmp::Reverse;

/// The head of one of a terminal's queues.
#[derive(Clone, Copy, Debug)]
struct ClassHead {
    /// The packet at the head, or [`NONE`].
    packet: u32,
    /// The virtual channel that it goes by, or [`NO_VC`].
    vc: u16,
    /// The virtual channel of the packet before.
    last_vc: u16,
}

/// The queues of all sources. While one is served, its head stands in the terminal's [`Head`](super::queues::Head).
#[derive(Clone, Debug)]
pub(crate) struct ClassQueues {
    /// The queue of each class: its own, or that of the classes with which it shares its coins.
    pub(crate) queue_of_class: Vec<usize>,
    /// The highest priority of a queue's classes; 0 where priorities do not count.
    priority: Vec<i32>,
    /// Shape `[terminals, queues]`.
    heads: Vec<ClassHead>,
    /// By terminal: the queue that sent last.
    last: Vec<usize>,
    /// Does a queue that is in the midst of a packet go on before others?
    holds: bool,
    /// Terminals that send in this cycle.
    chosen: Vec<u32>,
    /// The order of a terminal's queues; memory to use.
    order: Vec<usize>,
}

impl ClassQueues {
    /// The queues of so many terminals of a scenario whose sources have several.
    pub(crate) fn of(scenario: &Scenario, terminals: usize) -> Option<Self> {
        let by_priority = scenario.router.priority == Priority::Class && scenario.classes.len() > 1;
        let mut queue_of_class: Vec<usize> = Vec::new();
        let mut queues = 0;
        for number in 0..scenario.classes.len() {
            let shared = scenario.coins_of(number).filter(|&first| first < number);
            queue_of_class.push(shared.map_or(queues, |first| queue_of_class[first]));
            queues += usize::from(shared.is_none());
        }
        // What a workload or a machine sends has one queue, of priority 0.
        let others = scenario.channels_of_classes().len() - scenario.classes.len();
        queue_of_class.extend(std::iter::repeat_n(queues, others));
        let open_queues = queues;
        queues += usize::from(others > 0);
        if !scenario.router.class_queues || queues < 2 {
            return None;
        }
        let mut priority = vec![if by_priority { i32::MIN } else { 0 }; open_queues];
        priority.resize(queues, 0);
        for (class, &queue) in scenario.classes.iter().zip(&queue_of_class).filter(|_| by_priority) {
            priority[queue] = priority[queue].max(class.priority);
        }
        let heads = vec![ClassHead { packet: NONE, vc: NO_VC, last_vc: NO_VC }; terminals * queues];
        Some(Self {
            queue_of_class,
            priority,
            heads,
            last: vec![0; terminals],
            holds: scenario.router.hold_switch,
            chosen: Vec::new(),
            order: Vec::new(),
        })
    }

    /// Queues of a terminal.
    pub(crate) fn queues(&self) -> usize {
        self.priority.len()
    }

    fn heads_of(&self, terminal: u32) -> &[ClassHead] {
        let first = terminal as usize * self.queues();
        &self.heads[first..first + self.queues()]
    }

    /// The virtual channel by which the packet at the head of a queue enters at present, if it has one.
    pub(crate) fn channel(&self, terminal: u32, queue: usize) -> Option<u16> {
        Some(self.heads_of(terminal)[queue].vc).filter(|&vc| vc != NO_VC)
    }

    /// Does a terminal hold a packet?
    pub(crate) fn has_packet(&self) -> bool {
        self.heads.iter().any(|head| head.packet != NONE)
    }

    /// The order in which a terminal's queues are asked: from the one after the last on, higher priorities first.
    fn take_order(&mut self, terminal: u32) -> Vec<usize> {
        let (queues, last) = (self.queues(), self.last[terminal as usize]);
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((1..=queues).map(|turn| (last + turn) % queues));
        // Who has sent last and has a virtual channel is in the midst of a packet.
        if self.holds && self.heads_of(terminal)[last].vc != NO_VC {
            order.rotate_right(1);
        }
        order.sort_by_key(|&queue| Reverse(self.priority[queue]));
        order
    }
}

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

impl<L: RouterLayout> Tile<'_, L> {
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
        asks_again || waits && self.parameters.redraws_entry || self.edge.owes_answer(terminal)
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
