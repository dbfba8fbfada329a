//! The parameters of schedules: ranks, sizes of messages, and the least volume of an operation.

use thiserror::Error;

/// What a schedule is made for.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// How many ranks take part, at least 2.
    pub ranks: u32,
    /// The rank from which a broadcast or scatter starts, at which a reduce or gather ends, and at which a tree has its root.
    pub root: u32,
    /// The size of a message: of the block for each destination in an all-to-all, of each rank's contribution elsewhere.
    pub size: MessageSize,
}

/// The size of a message, and how many flits hold some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSize {
    /// Bytes or flits.
    amount: u64,
    /// How much of the same one flit holds.
    per_flit: u32,
}

impl MessageSize {
    /// A message of so many flits.
    pub fn of_flits(flits: u64) -> Self {
        Self { amount: flits, per_flit: 1 }
    }

    /// A message of so many bytes where a flit holds `flit_bytes`, at least 1.
    pub fn of_bytes(bytes: u64, flit_bytes: u32) -> Self {
        Self { amount: bytes, per_flit: flit_bytes.max(1) }
    }

    /// Flits that hold so many whole messages together, at least 1.
    pub fn whole(&self, count: u32) -> u32 {
        self.to_flits(self.amount * u64::from(count))
    }

    /// Flits that hold the parts `from..to` of a message that is cut into `parts` as equally as possible, at least 1.
    pub fn range(&self, from: u32, to: u32, parts: u32) -> u32 {
        self.to_flits(self.up_to(to, parts) - self.up_to(from, parts))
    }

    /// Flits that hold one part of a message that is cut into `parts`, at least 1.
    pub fn part(&self, part: u32, parts: u32) -> u32 {
        self.range(part, part + 1, parts)
    }

    /// Flits of all parts together, of which each one is cut apart from the others: parts need not follow each other.
    pub fn of_parts(&self, list: impl IntoIterator<Item = u32>, parts: u32) -> u32 {
        self.to_flits(list.into_iter().map(|part| self.up_to(part + 1, parts) - self.up_to(part, parts)).sum())
    }

    fn up_to(&self, part: u32, parts: u32) -> u64 {
        // `build` has seen to it that the product fits.
        self.amount * u64::from(part) / u64::from(parts)
    }

    /// `build` has seen to it that the number fits.
    fn to_flits(self, amount: u64) -> u32 {
        amount.div_ceil(u64::from(self.per_flit)).max(1) as u32
    }
}

/// What an operation asks of the terminals, whatever the schedule: a bound for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Flits that some rank has to send at least.
    pub sent: u64,
    /// Flits that some rank has to receive at least.
    pub received: u64,
}

impl Least {
    /// The least volume of an operation; `None` of one without data, whose time is all latency.
    ///
    /// All-to-all and allgather: the blocks of the N - 1 others, in flits as full as they can be; so at the root of a gather or scatter.
    /// Broadcast and reduce: the message. Allreduce: 2 (N - 1) / N of the vector in each direction (Patarasuk and Yuan, J. Parallel Distrib.
    /// Comput. 69, 2009); reduce-scatter: half of that.
    pub fn of(operation: &str, parameters: &Parameters) -> Option<Self> {
        let Parameters { ranks, size, .. } = *parameters;
        let others = u64::from(size.whole(ranks - 1));
        let one = u64::from(size.whole(1));
        match operation {
            "alltoall" => Some(Self { sent: others, received: others }),
            "allgather" => Some(Self { sent: one, received: others }),
            "broadcast" | "reduce" => Some(Self { sent: one, received: one }),
            "gather" => Some(Self { sent: one, received: others }),
            "scatter" => Some(Self { sent: others, received: one }),
            "reducescatter" => {
                let all_but_one = u128::from(size.amount) * u128::from(ranks - 1) / u128::from(ranks);
                let flits = (all_but_one.div_ceil(u128::from(size.per_flit)) as u64).max(1);
                Some(Self { sent: flits, received: flits })
            }
            "allreduce" => {
                let both = u128::from(size.amount) * 2 * u128::from(ranks - 1) / u128::from(ranks);
                let flits = (both.div_ceil(u128::from(size.per_flit)) as u64).max(1);
                Some(Self { sent: flits, received: flits })
            }
            _ => None,
        }
    }
}

impl Parameters {
    /// Refuses what no schedule can do.
    ///
    /// # Errors
    /// Fewer than 2 ranks, a root that is no rank, messages of more than 2^32 flits.
    pub fn check(&self) -> Result<(), CollectiveError> {
        let Self { ranks, root, size } = *self;
        if ranks < 2 {
            return Err(CollectiveError::parameter("ranks", format!("is {ranks}; a collective needs at least 2")));
        }
        if root >= ranks {
            return Err(CollectiveError::parameter("root", format!("is {root}; with {ranks} ranks it must be 0 to {}", ranks - 1)));
        }
        let most = size.amount.checked_mul(u64::from(ranks)).map(|amount| amount.div_ceil(u64::from(size.per_flit)));
        if most.is_none_or(|flits| flits > u64::from(u32::MAX)) {
            let problem = format!("is too large: the messages of all {ranks} ranks together must have at most {} flits", u32::MAX);
            return Err(CollectiveError::parameter(MESSAGE, problem));
        }
        Ok(())
    }
}

/// The key of a [`CollectiveError`] about the size of messages, which `[workload]` gives by one of several keys.
pub const MESSAGE: &str = "message";

/// Why a schedule cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// A parameter is outside its range.
    #[error("{key} {problem}")]
    Parameter {
        /// The key of `[workload]`.
        key: &'static str,
        /// What was found and what would be right, to be read after the key.
        problem: String,
    },
}

impl CollectiveError {
    /// A problem with one key.
    pub fn parameter(key: &'static str, problem: impl Into<String>) -> Self {
        Self::Parameter { key, problem: problem.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_message_add_up_to_it() {
        for (amount, parts) in [(100, 7), (3, 8), (64, 64)] {
            let size = MessageSize::of_flits(amount);
            let held: u64 = (0..parts).map(|part| size.up_to(part + 1, parts) - size.up_to(part, parts)).sum();
            assert_eq!(held, amount);
            assert_eq!(u64::from(size.range(0, parts, parts)), amount);
            assert_eq!(size.of_parts(0..parts, parts), size.range(0, parts, parts));
        }
        assert_eq!(MessageSize::of_bytes(0, 8).whole(3), 1, "nothing at all is still one flit");
        assert_eq!(MessageSize::of_bytes(9, 8).whole(3), 4, "27 bytes");
    }
}
