//! Which terminal each rank of a workload runs on.

use kasuri_network::id::TerminalId;
use kasuri_network::rng::{Purpose, Streams};

/// Rank r on terminal r.
pub fn linear(ranks: u32) -> Vec<TerminalId> {
    (0..ranks).map(TerminalId).collect()
}

/// The first `ranks` of terminals 0, s, 2 s and so on, then 1, s + 1 and so on, with s = `stride`, at least 1; `ranks` is at most `terminals`.
pub fn cyclic(ranks: u32, terminals: u32, stride: u32) -> Vec<TerminalId> {
    let all = (0..stride.min(terminals)).flat_map(|first| (first..terminals).step_by(stride as usize));
    all.take(ranks as usize).map(TerminalId).collect()
}

/// The first `ranks` of a random order of all terminals, the same for the same seed; `ranks` is at most `terminals`.
///
/// Durstenfeld's shuffle (Commun. ACM 7, 1964).
pub fn random(ranks: u32, terminals: u32, seed: u64) -> Vec<TerminalId> {
    let mut stream = Streams::new(seed).get(Purpose::Structure, 0);
    let mut order = linear(terminals);
    for first in 0..ranks.min(terminals) {
        let chosen = first + stream.below(terminals - first);
        order.swap(first as usize, chosen as usize);
    }
    order.truncate(ranks as usize);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_cyclic_placement_uses_each_terminal_once() {
        for (terminals, stride) in [(7, 1), (7, 3), (12, 4), (5, 9)] {
            let all = cyclic(terminals, terminals, stride);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), terminals as usize);
            assert!(all.windows(2).all(|pair| pair[1].0 == pair[0].0 + stride || pair[0].0 + stride >= terminals), "{all:?}");
        }
    }

    #[test]
    fn a_random_placement_uses_no_terminal_twice_and_depends_on_its_seed() {
        let one = random(40, 64, 1);
        assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 40);
        assert!(one.iter().all(|terminal| terminal.0 < 64));
        assert_eq!(one, random(40, 64, 1));
        assert_ne!(one, random(40, 64, 2));
        assert_eq!(random(64, 64, 3).iter().collect::<BTreeSet<_>>().len(), 64);
    }
}
