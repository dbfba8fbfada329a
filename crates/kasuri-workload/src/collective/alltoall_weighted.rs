//! All-to-all by weighted phases: the matrix of sizes as a sum of permutations, each with a weight.
//!
//! Whatever the sizes, the weights add up to what the busiest rank has to send or to receive: where ranks keep to the phases, no order of
//! messages is faster on a network that never holds two of them up (Birkhoff, Univ. Nac. Tucuman Rev. A 5, 1946; in time slots of a switch:
//! Inukai, IEEE Trans. Commun. 27, 1979). A message goes in as many parts as it has phases. Of all such sums this is one of few phases: those
//! of large weight are taken out first, by a threshold that is halved whenever no permutation is above it (Liu et al., "Scheduling
//! techniques for hybrid circuit/packet networks", CoNEXT 2015, section 4).

use super::contract::{Block, Collective, Entry, Transfer};
use super::parameters::CollectiveError;
use super::sizes::Sizes;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    collective: "alltoall",
    schedule: "weighted",
    summary: "permutations with weights that add up to what the busiest rank has; made for alltoallv, whose messages it cuts",
    source: "Birkhoff, Univ. Nac. Tucuman Rev. A 5 (1946); Inukai, IEEE Trans. Commun. 27 (1979)",
    rooted: false,
    build: |parameters| {
        let ranks = parameters.ranks;
        check(ranks).map_err(|problem| CollectiveError::parameter("ranks", problem))?;
        Ok(Box::new(Weighted::of(&Sizes::equal(ranks, parameters.size.whole(1)))))
    },
};

/// With more ranks the sum takes minutes.
const MOST_RANKS: u32 = 512;

/// Nobody.
const NONE: u32 = u32::MAX;

/// Refuses more ranks than can be decomposed.
fn check(ranks: u32) -> Result<(), String> {
    if ranks <= MOST_RANKS {
        return Ok(());
    }
    Err(format!(
        "is {ranks}; the schedule `weighted` decomposes a matrix of at most {MOST_RANKS} ranks, the schedule `shift` takes any number"
    ))
}

/// The schedule.
#[derive(Debug)]
pub(super) struct Weighted {
    ranks: u32,
    rounds: u32,
    /// Shape `[rounds, ranks]`: to whom a rank sends, or [`NONE`], and the flits.
    sends: Vec<Transfer>,
    /// Shape `[rounds, ranks]`: from whom a rank receives, or [`NONE`].
    sources: Vec<u32>,
}

impl Weighted {
    /// The schedule for these sizes.
    pub(super) fn of(sizes: &Sizes) -> Self {
        let ranks = sizes.ranks();
        let mut schedule = Self { ranks, rounds: 0, sends: Vec::new(), sources: Vec::new() };
        let mut rest = Rest::of(sizes);
        while let Some(permutation) = rest.next_permutation() {
            schedule.add(&rest.take(&permutation));
        }
        schedule
    }

    /// Adds a phase, unless nobody sends in it.
    fn add(&mut self, sends: &[Transfer]) {
        if sends.iter().all(|transfer| transfer.flits == 0) {
            return;
        }
        let first = self.sources.len();
        self.sources.resize(first + self.ranks as usize, NONE);
        for (transfer, rank) in sends.iter().zip(0..) {
            if transfer.flits > 0 {
                self.sources[first + transfer.peer as usize] = rank;
            }
        }
        self.sends.extend_from_slice(sends);
        self.rounds += 1;
    }

    fn place(&self, rank: u32, round: u32) -> usize {
        round as usize * self.ranks as usize + rank as usize
    }
}

impl Collective for Weighted {
    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn send(&self, rank: u32, round: u32) -> Option<Transfer> {
        Some(self.sends[self.place(rank, round)]).filter(|transfer| transfer.flits > 0)
    }

    fn receive(&self, rank: u32, round: u32) -> Option<u32> {
        Some(self.sources[self.place(rank, round)]).filter(|&source| source != NONE)
    }

    fn needs_receive(&self) -> bool {
        false
    }

    fn is_made_for_sizes(&self) -> bool {
        true
    }

    fn with_sizes(&self, sizes: &Sizes) -> Option<Box<dyn Collective>> {
        Some(Box::new(Self::of(sizes)))
    }

    fn volume(&self, _ranks: u32) -> Option<(u64, u32)> {
        let messages = self.sends.iter().filter(|transfer| transfer.flits > 0).count();
        Some((messages as u64, self.sends.iter().map(|transfer| transfer.flits).max().unwrap_or(0)))
    }

    fn blocks(&self, rank: u32, round: u32) -> Vec<Block> {
        self.send(rank, round).map(|transfer| Block { origin: rank, part: transfer.peer }).into_iter().collect()
    }
}

/// What is left of a matrix of sizes.
struct Rest {
    ranks: usize,
    /// Shape `[ranks, ranks]`: flits, and the same filled up so that all rows and columns have the same sum.
    flits: Vec<u32>,
    filled: Vec<u64>,
    /// That sum, of what is left.
    sum: u64,
    /// The least that a permutation may take of each row.
    threshold: u64,
    /// By row its column in the last permutation, by column its row.
    column: Vec<u32>,
    row: Vec<u32>,
    phases: usize,
}

impl Rest {
    fn of(sizes: &Sizes) -> Self {
        let count = sizes.ranks();
        let ranks = count as usize;
        let flits: Vec<u32> = (0..count)
            .flat_map(|source| (0..count).map(move |to| (source, to)))
            .map(|(source, to)| if source == to { 0 } else { sizes.between(source, to) })
            .collect();
        let mut filled: Vec<u64> = flits.iter().map(|&flits| u64::from(flits)).collect();
        let rows: Vec<u64> = filled.chunks(ranks).map(|row| row.iter().sum()).collect();
        let columns: Vec<u64> = (0..ranks).map(|column| filled.iter().skip(column).step_by(ranks).sum()).collect();
        let sum = rows.iter().chain(&columns).copied().max().unwrap_or(0);
        // What rows and columns lack together is the same.
        let (mut row, mut column) = (0, 0);
        let mut lacks = [rows.iter().map(|row| sum - row).collect::<Vec<_>>(), columns.iter().map(|column| sum - column).collect()];
        while row < ranks && column < ranks {
            let more = lacks[0][row].min(lacks[1][column]);
            filled[row * ranks + column] += more;
            lacks[0][row] -= more;
            lacks[1][column] -= more;
            if lacks[0][row] == 0 {
                row += 1;
            } else {
                column += 1;
            }
        }
        Self { ranks, flits, filled, sum, threshold: sum.next_power_of_two(), column: vec![NONE; ranks], row: vec![NONE; ranks], phases: 0 }
    }

    fn is_open(&self, row: usize, column: usize) -> bool {
        self.filled[row * self.ranks + column] >= self.threshold
    }

    /// A permutation that takes at least the threshold of each row, which is halved until there is one; none when nothing is left.
    fn next_permutation(&mut self) -> Option<Vec<u32>> {
        if self.sum == 0 {
            return None;
        }
        while !self.find() {
            // With 1 there is one, by Hall's theorem, since all rows and columns have the same sum.
            self.threshold = (self.threshold / 2).max(1);
        }
        self.phases += 1;
        Some(self.column.clone())
    }

    /// Finds a permutation above the threshold: keeps what is left of the last one, tries ranks at one distance, then paths that change others.
    fn find(&mut self) -> bool {
        for row in 0..self.ranks {
            let column = self.column[row];
            if column != NONE && !self.is_open(row, column as usize) {
                self.row[column as usize] = NONE;
                self.column[row] = NONE;
            }
        }
        for row in 0..self.ranks {
            let column = (row + self.phases + 1) % self.ranks;
            if self.column[row] == NONE && self.row[column] == NONE && self.is_open(row, column) {
                self.join(row, column);
            }
        }
        (0..self.ranks).all(|row| self.column[row] != NONE || self.augment(row))
    }

    fn join(&mut self, row: usize, column: usize) {
        self.column[row] = column as u32;
        self.row[column] = row as u32;
    }

    /// Finds a column for a row, breadth first, where rows on the way change theirs.
    fn augment(&mut self, start: usize) -> bool {
        let mut came_from = vec![NONE; self.ranks];
        let mut rows = std::collections::VecDeque::from([start]);
        while let Some(row) = rows.pop_front() {
            for column in 0..self.ranks {
                if came_from[column] != NONE || !self.is_open(row, column) {
                    continue;
                }
                came_from[column] = row as u32;
                match self.row[column] {
                    NONE => {
                        self.change(column, &came_from, start);
                        return true;
                    }
                    next => rows.push_back(next as usize),
                }
            }
        }
        false
    }

    /// Rows from the start to a free column take the columns by which they were reached.
    fn change(&mut self, free: usize, came_from: &[u32], start: usize) {
        let mut column = free;
        loop {
            let row = came_from[column] as usize;
            let before = self.column[row];
            self.join(row, column);
            if row == start {
                return;
            }
            column = before as usize;
        }
    }

    /// Takes as much as a permutation has in each row: what each rank sends of it.
    fn take(&mut self, permutation: &[u32]) -> Vec<Transfer> {
        let places = permutation.iter().enumerate().map(|(row, &column)| row * self.ranks + column as usize);
        let weight = places.clone().map(|place| self.filled[place]).min().unwrap_or(0);
        self.sum -= weight;
        places
            .zip(permutation)
            .map(|(place, &peer)| {
                let flits = u64::from(self.flits[place]).min(weight) as u32;
                self.filled[place] -= weight;
                self.flits[place] -= flits;
                Transfer { peer, flits }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(rows: &[Vec<u64>]) -> Sizes {
        Sizes::of(rows, 1).unwrap()
    }

    /// The longest messages of all phases together.
    fn time(schedule: &Weighted) -> u64 {
        let longest =
            |round: u32| (0..schedule.ranks).filter_map(|rank| schedule.send(rank, round)).map(|sent| u64::from(sent.flits)).max();
        (0..schedule.rounds).filter_map(longest).sum()
    }

    proptest! {
        /// Every pair gets its size, everyone sends and receives at most one message in a phase, and phase after phase takes no longer than the
        /// busiest rank has to send or to receive.
        #[test]
        fn the_phases_add_up_to_the_matrix(ranks in 2usize..12, values in prop::collection::vec(prop_oneof![Just(0u64), 0u64..9, 0u64..5000], 144)) {
            let mut rows: Vec<Vec<u64>> = (0..ranks).map(|row| values[row * ranks..(row + 1) * ranks].to_vec()).collect();
            rows[0][1] += 1;
            let sizes = sizes(&rows);
            let schedule = Weighted::of(&sizes);
            let mut sent = vec![vec![0u64; ranks]; ranks];
            let mut messages = 0;
            for round in 0..schedule.rounds() {
                let mut receives = vec![false; ranks];
                for rank in 0..ranks as u32 {
                    let Some(transfer) = schedule.send(rank, round) else { continue };
                    prop_assert_eq!(schedule.receive(transfer.peer, round), Some(rank));
                    prop_assert!(!std::mem::replace(&mut receives[transfer.peer as usize], true));
                    sent[rank as usize][transfer.peer as usize] += u64::from(transfer.flits);
                    messages += 1;
                }
                let silent = (0..ranks).filter(|&rank| !receives[rank]);
                prop_assert!(silent.clone().all(|rank| schedule.receive(rank as u32, round).is_none()));
            }
            (0..ranks).for_each(|rank| rows[rank][rank] = 0);
            prop_assert_eq!(sent, rows);
            let least = sizes.least();
            prop_assert!(time(&schedule) <= least.sent.max(least.received));
            prop_assert_eq!(schedule.volume(ranks as u32).unwrap().0, messages);
        }
    }

    /// Of equal blocks it makes the phases of a shift.
    #[test]
    fn equal_sizes_are_ranks_at_one_distance() {
        for ranks in [2, 5, 64] {
            let schedule = Weighted::of(&Sizes::equal(ranks, 7));
            assert_eq!(schedule.rounds(), ranks - 1);
            for round in 0..ranks - 1 {
                for rank in 0..ranks {
                    assert_eq!(schedule.send(rank, round), Some(Transfer { peer: (rank + round + 1) % ranks, flits: 7 }));
                }
            }
        }
    }

    /// A matrix for which one message after the other by distance takes 300: the long ones are of different distances and ranks.
    #[test]
    fn long_messages_go_side_by_side() {
        let mut rows = vec![vec![1; 4]; 4];
        (rows[0][1], rows[1][3], rows[3][2]) = (100, 100, 100);
        let schedule = Weighted::of(&sizes(&rows));
        assert_eq!(time(&schedule), 102);
        assert!(schedule.rounds() <= 8, "{}", schedule.rounds());
    }
}
