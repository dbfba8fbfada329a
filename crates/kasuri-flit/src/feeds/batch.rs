//! What is still to come of batches with which the run ends.

use crate::record::packet::Packet;
use crate::state::feed::Moves;
use crate::state::share::Share;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_workload::translation::users::Users;
use std::sync::Arc;

/// Packets that have not arrived.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Those of the tile's terminals, less those that have arrived at the tile's terminals.
    outstanding: i64,
    /// The number of the tile's first terminal in the network.
    first: u32,
    /// By terminal: its own, replies not counted unless the batches count them.
    of_terminal: Vec<u64>,
    /// Where tables change: what a terminal has left of its users' batches moves with their nodes.
    of_users: Option<OfUsers>,
    counts_answers: bool,
    /// Has some terminal none left?
    pub(crate) first_finished: bool,
}

/// Packets of batches that have not arrived, of each user.
#[derive(Debug)]
struct OfUsers {
    users: Arc<Users>,
    terminals: u32,
    /// Shape `[users, terminals]`; users have all terminals in one tile.
    left: Vec<u64>,
}

impl OfUsers {
    /// Of the user of a class, what a terminal has left.
    fn left(&mut self, class: usize, terminal: u32) -> Option<&mut u64> {
        let user = self.users.of_class(class)?;
        self.left.get_mut(user * self.terminals as usize + terminal as usize)
    }
}

impl Batch {
    /// The batches of a tile's terminals, if the scenario has nothing else.
    pub(crate) fn of(scenario: &Scenario, share: &Share) -> Option<Self> {
        if !scenario.has_only_batches() {
            return None;
        }
        let (first, terminals) = (share.terminals.start, share.terminals.len() as u32);
        let (mut outstanding, mut of_terminal) = (0, vec![0; terminals as usize]);
        let changing = scenario.users.clone().filter(|users| users.users.iter().any(|user| user.change_every.is_some()));
        let mut of_users = changing.map(|users| {
            let left = vec![0; users.users.len() * terminals as usize];
            OfUsers { users, terminals, left }
        });
        for (class, count) in scenario.batches() {
            let number = scenario.classes.iter().position(|other| std::ptr::eq(other, class)).unwrap_or_default();
            let answers_come_besides = class.reply.is_some() && !class.window.counts_answers;
            for terminal in (0..terminals).filter(|&terminal| !class.pattern.is_silent(TerminalId(first + terminal))) {
                of_terminal[terminal as usize] += count;
                if let Some(left) = of_users.as_mut().and_then(|users| users.left(number, terminal)) {
                    *left += count;
                }
                outstanding += count as i64 * if answers_come_besides { 2 } else { 1 };
            }
        }
        Some(Self { outstanding, first, of_terminal, of_users, counts_answers: scenario.counts_answers(), first_finished: false })
    }

    /// What is left, over all tiles.
    pub(crate) fn outstanding(&self) -> i64 {
        self.outstanding
    }

    /// An answer is sent beyond the batch.
    pub(crate) fn add(&mut self) {
        self.outstanding += 1;
    }

    /// A packet has arrived at a terminal of the tile. Does it count for the batch of its source ([`Self::delivered`])?
    pub(crate) fn packet_arrived(&mut self, packet: &Packet) -> bool {
        self.outstanding -= 1;
        !packet.is_reply || self.counts_answers
    }

    /// A packet of the batch of a terminal of the tile has arrived somewhere.
    pub(crate) fn delivered(&mut self, class: u8, source: u32) {
        let left = &mut self.of_terminal[(source - self.first) as usize];
        // Answers may go beyond the batch.
        *left = left.saturating_sub(1);
        self.first_finished |= *left == 0;
        self.note_gone(class, source);
    }

    /// A user has one packet less to deliver.
    fn note_gone(&mut self, class: u8, source: u32) {
        if let Some(left) = self.of_users.as_mut().and_then(|users| users.left(class.into(), source)) {
            *left = left.saturating_sub(1);
        }
    }

    /// What a user has left at terminals that have become each other goes along.
    pub(crate) fn moved(&mut self, moves: &Moves<'_>) {
        let Some(users) = &mut self.of_users else { return };
        for &[one, other] in moves.exchanged {
            let [of_one, of_other] = [one, other].map(|terminal| users.left(moves.classes.start, terminal.0).map_or(0, |left| *left));
            for (terminal, had, has) in [(one, of_one, of_other), (other, of_other, of_one)] {
                if let Some(left) = users.left(moves.classes.start, terminal.0) {
                    *left = has;
                }
                let left = &mut self.of_terminal[terminal.index()];
                *left = left.saturating_sub(had) + has;
            }
        }
    }

    /// A packet of a terminal will not be sent, nor answered.
    pub(crate) fn drop_packet(&mut self, class: u8, source: u32, answered: bool) {
        self.outstanding -= 1 + i64::from(answered);
        self.note_gone(class, source);
        let left = &mut self.of_terminal[(source - self.first) as usize];
        *left -= 1;
        self.first_finished |= *left == 0;
    }
}
