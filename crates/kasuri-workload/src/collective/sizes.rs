//! Sizes of the messages of an all-to-all, one for each pair of ranks.

use super::parameters::Least;

/// What each rank has for each other one, in flits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    ranks: u32,
    /// By source, then by destination; 0 where nothing is sent.
    pub(super) flits: Vec<u32>,
}

impl Sizes {
    /// Row s, column d is what rank s has for rank d, of which a flit holds `per_flit`, at least 1. What a rank has for itself stays there.
    ///
    /// # Errors
    /// Fewer than 2 rows, a row that has not a number for each, more than 2^32 flits in a row or column, or nothing to send.
    pub fn of(rows: &[Vec<u64>], per_flit: u32) -> Result<Self, String> {
        let count = rows.len();
        let ranks = u32::try_from(count).ok().filter(|&ranks| ranks >= 2);
        let Some(ranks) = ranks else { return Err(format!("has {count} rows; an all-to-all needs at least 2, one for each rank")) };
        if let Some((rank, row)) = rows.iter().enumerate().find(|(_, row)| row.len() != count) {
            let length = row.len();
            return Err(format!("has {length} numbers for rank {rank}; there are {count} rows, so each has {count} numbers"));
        }
        let too_large = |what: &str, rank: usize| format!("has too much for rank {rank}: it may {what} at most {} flits", u32::MAX);
        let (mut flits, mut received) = (Vec::with_capacity(count * count), vec![0_u64; count]);
        for (source, row) in rows.iter().enumerate() {
            let mut sent = 0_u64;
            for (destination, &amount) in row.iter().enumerate() {
                let needed = if source == destination { 0 } else { amount.div_ceil(u64::from(per_flit)) };
                (sent, received[destination]) = (sent.saturating_add(needed), received[destination].saturating_add(needed));
                flits.push(u32::try_from(needed).map_err(|_| too_large("send", source))?);
            }
            if sent > u64::from(u32::MAX) {
                return Err(too_large("send", source));
            }
        }
        if let Some(rank) = received.iter().position(|&received| received > u64::from(u32::MAX)) {
            return Err(too_large("receive", rank));
        }
        if flits.iter().all(|&flits| flits == 0) {
            return Err("has nothing but zeros between different ranks; give at least one pair something to send".to_owned());
        }
        Ok(Self { ranks, flits })
    }

    /// So many flits for each pair.
    pub fn equal(ranks: u32, flits: u32) -> Self {
        Self { ranks, flits: vec![flits; ranks as usize * ranks as usize] }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Flits that a rank has for another one.
    pub fn between(&self, source: u32, destination: u32) -> u32 {
        self.flits[source as usize * self.ranks as usize + destination as usize]
    }

    /// The longest message, flits.
    pub fn longest(&self) -> u32 {
        self.flits.iter().copied().max().unwrap_or(0)
    }

    /// What the rank that sends most has to send, and what the one that receives most has to receive.
    pub fn least(&self) -> Least {
        let ranks = 0..self.ranks;
        let sum = |of: &dyn Fn(u32) -> u32| -> u64 { ranks.clone().map(|other| u64::from(of(other))).sum() };
        Least {
            sent: ranks.clone().map(|rank| sum(&|other| self.between(rank, other))).max().unwrap_or(0),
            received: ranks.clone().map(|rank| sum(&|other| self.between(other, rank))).max().unwrap_or(0),
        }
    }
}
