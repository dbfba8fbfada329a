//! What is still to come of batches with which the run ends.

use crate::state::Packet;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;

/// Packets that have not arrived.
#[derive(Debug)]
pub(super) struct Batch {
    to_come: u64,
    /// By terminal: its own, replies not counted unless the batches count them.
    of_terminal: Vec<u64>,
    counts_answers: bool,
    /// Has some terminal none left?
    pub(super) first_finished: bool,
}

impl Batch {
    /// The batches of a scenario, if it has nothing else.
    pub(super) fn of(scenario: &Scenario) -> Option<Self> {
        if !scenario.has_only_batches() {
            return None;
        }
        let terminals = scenario.network.terminal_count();
        let (mut to_come, mut of_terminal) = (0, vec![0; terminals as usize]);
        for (class, count) in scenario.batches() {
            let answers_come_besides = class.reply.is_some() && !class.window.counts_answers;
            for terminal in (0..terminals).filter(|&terminal| !class.pattern.is_silent(TerminalId(terminal))) {
                of_terminal[terminal as usize] += count;
                to_come += count * if answers_come_besides { 2 } else { 1 };
            }
        }
        Some(Self { to_come, of_terminal, counts_answers: scenario.counts_answers(), first_finished: false })
    }

    /// Is nothing left?
    pub(super) fn is_done(&self) -> bool {
        self.to_come == 0
    }

    /// An answer is sent beyond the batch.
    pub(super) fn add(&mut self) {
        self.to_come += 1;
    }

    /// A packet has arrived.
    pub(super) fn packet_arrived(&mut self, packet: &Packet) {
        self.to_come -= 1;
        if !packet.is_reply || self.counts_answers {
            let left = &mut self.of_terminal[packet.source as usize];
            // Answers may go beyond the batch.
            *left = left.saturating_sub(1);
            self.first_finished |= *left == 0;
        }
    }

    /// A packet of a terminal will not be sent, nor answered.
    pub(super) fn drop_packet(&mut self, source: u32, answered: bool) {
        self.to_come -= 1 + u64::from(answered);
        let left = &mut self.of_terminal[source as usize];
        *left -= 1;
        self.first_finished |= *left == 0;
    }
}
