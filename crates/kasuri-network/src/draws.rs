//! Draws of random graphs: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) and the shuffle of Fisher and Yates, so that a seed means the
//! same graph everywhere.

use crate::rng::split_mix;

/// The generator's increment.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        let output = split_mix(self.state);
        self.state = self.state.wrapping_add(GOLDEN);
        output
    }

    /// One of `0..bound`: the high 64 bits of 64 bits times the bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// From the last place down to the second each changes with one at or before it.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's published outputs for seed 0, and draws and shuffles of `tests/data/fabrics/vectors.csv`.
    #[test]
    fn draws_are_the_known_ones() {
        let mut draws = SplitMix64::new(0);
        let outputs = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec];
        assert_eq!([0; 4].map(|_| draws.next()), outputs);
        for (seed, below, shuffled) in [
            (0, [1, 1, 0, 970, 6969], [4, 9, 2, 5, 1, 7, 6, 0, 3, 8]),
            (1, [1, 2, 9, 444, 29115], [9, 0, 1, 4, 8, 2, 3, 7, 6, 5]),
            (42, [1, 0, 2, 344, 2492], [8, 3, 6, 5, 4, 0, 9, 2, 1, 7]),
        ] {
            let mut draws = SplitMix64::new(seed);
            assert_eq!([2, 3, 10, 1000, 65536].map(|bound| draws.below(bound)), below, "{seed}");
            let mut items = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
            SplitMix64::new(seed).shuffle(&mut items);
            assert_eq!(items, shuffled, "{seed}");
        }
    }
}
