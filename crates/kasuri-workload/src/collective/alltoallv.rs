//! All-to-all with a size for each pair (MPI's alltoallv): the rounds of an all-to-all in which every block goes straight to its destination.

use super::contract::{Block, Collective, Transfer};
pub use super::sizes::Sizes;

/// The operation: its schedules are those of the all-to-all.
pub const NAME: &str = "alltoallv";

/// An all-to-all whose messages have sizes of their own.
#[derive(Debug)]
pub struct Alltoallv {
    all_to_all: Box<dyn Collective>,
    sizes: Sizes,
}

impl Alltoallv {
    /// The rounds of an all-to-all of as many ranks with these sizes; `None` of one in which ranks pass blocks on.
    pub fn over(all_to_all: Box<dyn Collective>, sizes: Sizes) -> Option<Box<dyn Collective>> {
        if all_to_all.needs_receive() {
            return None;
        }
        let made_for_them = all_to_all.with_sizes(&sizes);
        Some(made_for_them.unwrap_or_else(|| Box::new(Self { all_to_all, sizes })))
    }
}

impl Collective for Alltoallv {
    fn rounds(&self) -> u32 {
        self.all_to_all.rounds()
    }

    /// Nothing is sent to whom there is nothing for.
    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        let Transfer { peer, .. } = self.all_to_all.send(rank, round)?;
        let flits = self.sizes.between(rank, peer);
        (flits > 0).then_some(Transfer { peer, flits })
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        self.all_to_all.receive(rank, round).filter(|&peer| self.sizes.between(peer, rank) > 0)
    }

    fn needs_receive(&self) -> bool {
        false
    }

    fn volume(&self, _ranks: u32) -> Option<(u64, u32)> {
        let messages = self.sizes.flits.iter().filter(|&&flits| flits > 0).count();
        Some((messages as u64, self.sizes.longest()))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.send(rank, round).map(|transfer| Block { origin: rank, part: transfer.peer }).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Least, MessageSize, Parameters, schedules};
    use super::*;

    #[test]
    fn every_pair_gets_its_size_once_and_the_diagonal_stays() {
        for ranks in [2_u64, 4, 8] {
            let rows: Vec<Vec<u64>> = (0..ranks).map(|source| (0..ranks).map(|to| (source * 5 + to * 3) % 4).collect()).collect();
            let sizes = Sizes::of(&rows, 1).unwrap();
            let parameters = Parameters { ranks: ranks as u32, root: 0, size: MessageSize::of_flits(1) };
            let mut tried = 0;
            for entry in schedules(NAME) {
                let Some(collective) = Alltoallv::over(entry.build(&parameters).unwrap(), sizes.clone()) else { continue };
                let mut sent = vec![vec![0; ranks as usize]; ranks as usize];
                let mut messages = 0;
                for round in 0..collective.rounds() {
                    for rank in 0..ranks as u32 {
                        let Some(transfer) = collective.send(rank, round) else { continue };
                        assert_eq!(collective.receive(transfer.peer, round), Some(rank), "{}", entry.schedule);
                        sent[rank as usize][transfer.peer as usize] += u64::from(transfer.flits);
                        messages += 1;
                    }
                }
                let expected = rows.iter().enumerate().map(|(rank, row)| {
                    row.iter().enumerate().map(|(peer, &size)| if peer == rank { 0 } else { size }).collect::<Vec<u64>>()
                });
                assert_eq!(sent, expected.collect::<Vec<_>>(), "{}", entry.schedule);
                let (all, longest) = collective.volume(ranks as u32).unwrap();
                assert!(all == messages && longest <= sizes.longest(), "{}", entry.schedule);
                tried += 1;
            }
            assert!(tried >= 3, "shift, pairwise and weighted");
        }
    }

    #[test]
    fn sizes_are_counted_in_flits() {
        let sizes = Sizes::of(&[vec![99, 9, 0], vec![8, 0, 1], vec![17, 0, 0]], 8).unwrap();
        assert_eq!([sizes.between(0, 1), sizes.between(1, 0), sizes.between(1, 2), sizes.between(2, 0)], [2, 1, 1, 3]);
        assert_eq!((sizes.least(), sizes.longest()), (Least { sent: 3, received: 4 }, 3));
    }

    #[test]
    fn what_are_no_sizes_is_refused() {
        let problem = |rows: &[Vec<u64>]| Sizes::of(rows, 1).unwrap_err();
        assert!(problem(&[vec![0]]).contains("has 1 rows"));
        assert!(problem(&[vec![0, 1], vec![1]]).contains("has 1 numbers for rank 1; there are 2 rows"));
        assert!(problem(&[vec![5, 0], vec![0, 5]]).contains("nothing but zeros"));
        let half = 1 << 31;
        assert!(problem(&[vec![0, half, half], vec![0; 3], vec![0; 3]]).contains("rank 0: it may send"));
        assert!(problem(&[vec![0; 3], vec![half, 0, 0], vec![half, 0, 0]]).contains("rank 0: it may receive"));
        assert!(problem(&[vec![0, u64::MAX], vec![0; 2]]).contains("rank 0: it may send"));
    }
}
