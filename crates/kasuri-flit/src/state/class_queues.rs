//! The queues of sources that have one for each class.

use crate::record::marks::{NO_VC, NONE};
use kasuri_model::router::Priority;
use kasuri_model::scenario::Scenario;
use std::cmp::Reverse;

/// The head of one of a terminal's queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassHead {
    /// The packet at the head, or [`NONE`].
    pub(crate) packet: u32,
    /// The virtual channel that it goes by, or [`NO_VC`].
    pub(crate) vc: u16,
    /// The virtual channel of the packet before.
    pub(crate) last_vc: u16,
}

/// The queues of all sources. While one is served, its head stands in the terminal's [`Head`](super::queues::Head).
#[derive(Clone, Debug)]
pub(crate) struct ClassQueues {
    /// The queue of each class: its own, or that of the classes with which it shares its coins.
    pub(crate) queue_of_class: Vec<usize>,
    /// The highest priority of a queue's classes; 0 where priorities do not count.
    pub(crate) priority: Vec<i32>,
    /// Shape `[terminals, queues]`.
    pub(crate) heads: Vec<ClassHead>,
    /// By terminal: the queue that sent last.
    pub(crate) last: Vec<usize>,
    /// Does a queue that is in the midst of a packet go on before others?
    pub(crate) holds: bool,
    /// Terminals that send in this cycle.
    pub(crate) chosen: Vec<u32>,
    /// The order of a terminal's queues; memory to use.
    pub(crate) order: Vec<usize>,
}

impl ClassQueues {
    /// The queues of so many terminals of a scenario whose sources have several.
    pub(crate) fn of(scenario: &Scenario, terminals: usize) -> Option<Self> {
        let by_priority = scenario.router.priority == Priority::Class && scenario.classes.len() > 1;
        let mut queue_of_class: Vec<usize> = Vec::new();
        let mut queues = 0;
        for number in 0..scenario.classes.len() {
            let shared = scenario.coin_stream_of(number).filter(|&first| first < number);
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

    pub(crate) fn heads_of(&self, terminal: u32) -> &[ClassHead] {
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
    pub(crate) fn take_order(&mut self, terminal: u32) -> Vec<usize> {
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
