//! Barrier along a binomial tree: up to the root, and down again.

use super::contract::{Block, Collective, Entry, Transfer, ahead, behind, doublings};

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "barrier",
    schedule: "tree",
    summary: "one flit up a binomial tree to the root and one down again; 2 log2 N rounds, rounded up",
    source: "Hoefler, Mehlan, Mietke and Rehm, A Survey of Barrier Algorithms for Coarse Grained Supercomputers (2004)",
    rooted: true,
    build: |parameters| Ok(Box::new(Tree { ranks: parameters.ranks, root: parameters.root })),
};

#[derive(Debug)]
struct Tree {
    ranks: u32,
    root: u32,
}

impl Tree {
    fn height(&self) -> u32 {
        doublings(self.ranks)
    }

    /// The child end and the parent end of a link have different roles: what a rank is in a round, and who is at the other end.
    fn link(&self, rank: u32, round: u32) -> Option<Link> {
        let up = round < self.height();
        let level = if up { round } else { 2 * self.height() - 1 - round };
        let (position, distance) = (u64::from(behind(rank, self.root, self.ranks)), 1_u64 << level);
        let is_child = position % (2 * distance) == distance;
        let is_parent = position % (2 * distance) == 0 && position + distance < u64::from(self.ranks);
        let other = match (is_child, is_parent) {
            (true, _) => behind(rank, distance as u32, self.ranks),
            (_, true) => ahead(rank, distance as u32, self.ranks),
            _ => return None,
        };
        Some(Link { other, sends: is_child == up })
    }

    /// The ranks of the subtree below a rank when it sends up in a round.
    fn below(&self, rank: u32, round: u32) -> Vec<Block> {
        let first = behind(rank, self.root, self.ranks);
        let end = (u64::from(first) + (1 << round)).min(u64::from(self.ranks)) as u32;
        (first..end).map(|position| Block { origin: ahead(position, self.root, self.ranks), part: 0 }).collect()
    }
}

/// A rank's part in a round.
struct Link {
    other: u32,
    sends: bool,
}

impl Collective for Tree {
    fn rounds(&self) -> u32 {
        2 * self.height()
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        self.link(rank, round).filter(|link| link.sends).map(|link| Transfer { peer: link.other, flits: 1 })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.link(rank, round).filter(|link| !link.sends).map(|link| link.other)
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        match self.send(rank, round) {
            None => Vec::new(),
            Some(_) if round < self.height() => self.below(rank, round),
            Some(_) => (0..self.ranks).map(|origin| Block { origin, part: 0 }).collect(),
        }
    }
}
