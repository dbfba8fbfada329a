//! The interface of a host: its flows take turns, packet by packet.

use crate::flows::Flow;
use crate::packets::{NONE, Packets, Queue};

/// Of so many turns in which data and acknowledgements wait, all but one are the acknowledgements'.
const TURNS: u8 = 11;

/// What the interface sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This acknowledgement.
    Acknowledgement(u32),
    /// The next packet of this flow.
    Data(u32),
}

/// An interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub(crate) busy: bool,
    /// Turns so far in which both waited, modulo [`TURNS`].
    turn: u8,
    /// The line of flows that have packets to send.
    first: u32,
    last: u32,
    /// In the order in which they were made.
    acknowledgements: Queue,
}

impl Interface {
    pub(crate) const IDLE: Self = Self { busy: false, turn: 0, first: NONE, last: NONE, acknowledgements: Queue::EMPTY };

    /// A flow joins the end of the line.
    #[inline]
    pub(crate) fn join(&mut self, flows: &mut [Flow], flow: u32) {
        flows[flow as usize].behind = NONE;
        if self.first == NONE {
            self.first = flow;
        } else {
            flows[self.last as usize].behind = flow;
        }
        self.last = flow;
    }

    pub(crate) fn acknowledge(&mut self, packets: &mut Packets, packet: u32) {
        self.acknowledgements.push(packets, packet);
    }

    /// What is sent next; a flow leaves the line.
    #[inline]
    pub(crate) fn next(&mut self, flows: &[Flow], packets: &Packets) -> Option<Next> {
        let mut acknowledge = !self.acknowledgements.is_empty();
        if acknowledge && self.first != NONE {
            acknowledge = self.turn != TURNS - 1;
            self.turn = (self.turn + 1) % TURNS;
        }
        if acknowledge {
            return self.acknowledgements.pop(packets).map(Next::Acknowledgement);
        }
        let flow = self.first;
        if flow == NONE {
            return None;
        }
        self.first = flows[flow as usize].behind;
        Some(Next::Data(flow))
    }
}
