//! A collective run backwards: its last round first, and who received sends.
//!
//! A scatter backwards is a gather, a broadcast backwards a reduce: what was given away comes back.

use super::contract::{Block, Collective, Entry, Transfer};
use super::parameters::{CollectiveError, Parameters};

/// The collective that is run backwards.
#[derive(Debug)]
pub(super) struct Backwards {
    forwards: Box<dyn Collective>,
    /// What a rank sends for a block that it received when the collective went forwards.
    block: fn(rank: u32, block: Block) -> Block,
}

impl Backwards {
    /// The collective of an entry in which all that a rank sends came to it before, the other way round.
    pub(super) fn of(
        entry: &Entry,
        parameters: &Parameters,
        block: fn(rank: u32, block: Block) -> Block,
    ) -> Result<Box<dyn Collective>, CollectiveError> {
        Ok(Box::new(Self { forwards: entry.build(parameters)?, block }))
    }

    /// The round of the other direction.
    fn mirrored(&self, round: u32) -> u32 {
        self.forwards.rounds() - 1 - round
    }
}

impl Collective for Backwards {
    fn rounds(&self) -> u32 {
        self.forwards.rounds()
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let round = self.mirrored(round);
        let peer = self.forwards.receive(rank, round)?;
        self.forwards.send(peer, round).map(|transfer| Transfer { peer, ..transfer })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.forwards.send(rank, self.mirrored(round)).map(|transfer| transfer.peer)
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn volume(&self, ranks: u32) -> Option<(u64, u32)> {
        self.forwards.volume(ranks)
    }

    fn parts(&self) -> u32 {
        self.forwards.parts()
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        let round = self.mirrored(round);
        let received = self.forwards.receive(rank, round).map(|peer| self.forwards.blocks(peer, round));
        received.into_iter().flatten().map(|block| (self.block)(rank, block)).collect()
    }
}
