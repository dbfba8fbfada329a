//! Arbiters: which of several requests for one thing is served.
//!
//! An arbiter puts its inputs in an order that changes as they are served; the least one wins. To add one: a file here that implements
//! [`Arbiters`], a `mod` line, its line in [`build`], and its name in `kasuri_model::router`.

mod age;
pub(crate) mod arbiter;
mod matrix;
mod round_robin;
mod single;
mod tree;

use arbiter::Arbiters;
use kasuri_model::router::ArbiterParameters;

/// So many arbiters of so many inputs each.
pub(crate) fn build(parameters: ArbiterParameters, arbiters: u32, inputs: u32) -> Box<dyn Arbiters> {
    match parameters {
        ArbiterParameters::Single(kind) => single::single(kind, arbiters, inputs),
        ArbiterParameters::Tree { groups, of } => Box::new(tree::Tree::new(groups, of, arbiters, inputs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::router::Arbiter;

    const KINDS: [ArbiterParameters; 5] = [
        ArbiterParameters::Single(Arbiter::RoundRobin),
        ArbiterParameters::Single(Arbiter::Matrix),
        ArbiterParameters::Single(Arbiter::Age),
        ArbiterParameters::Tree { groups: 4, of: Arbiter::RoundRobin },
        ArbiterParameters::Tree { groups: 4, of: Arbiter::Matrix },
    ];

    fn serve(arbiters: &mut dyn Arbiters, arbiter: u32, requests: &[(u32, u64)]) -> u32 {
        let winner = requests.iter().min_by_key(|&&(input, created)| arbiters.order(arbiter, input, created)).unwrap().0;
        arbiters.served(arbiter, winner);
        winner
    }

    /// Of n inputs that always ask, each is served once in n turns, whatever the arbiter beside it does.
    #[test]
    fn constant_requests_are_served_in_turn() {
        for kind in KINDS {
            let mut arbiters = build(kind, 2, 12);
            let requests: Vec<_> = (0..12).map(|input| (input, 7)).collect();
            for _ in 0..3 {
                let mut served: Vec<u32> = (0..12).map(|_| serve(arbiters.as_mut(), 1, &requests)).collect();
                serve(arbiters.as_mut(), 0, &requests[3..5]);
                served.sort_unstable();
                assert_eq!(served, (0..12).collect::<Vec<_>>(), "{kind:?}");
            }
        }
    }

    /// After 0, 1, 2, 3 have been served, 2 again: of 1, 2 and 3 it is 1 that has waited longest, then 3; round robin would take 3 first.
    #[test]
    fn the_matrix_serves_who_was_served_least_recently() {
        let matrix = ArbiterParameters::Single(Arbiter::Matrix);
        let mut arbiters = build(matrix, 1, 4);
        for input in [0, 1, 2, 3, 2] {
            serve(arbiters.as_mut(), 0, &[(input, 0)]);
        }
        let asking = [(1, 0), (2, 0), (3, 0)];
        assert_eq!([(); 3].map(|()| serve(arbiters.as_mut(), 0, &asking)), [1, 3, 2]);
        let mut round = build(ArbiterParameters::Single(Arbiter::RoundRobin), 1, 4);
        serve(round.as_mut(), 0, &[(2, 0)]);
        assert_eq!(serve(round.as_mut(), 0, &asking), 3);
    }

    #[test]
    fn the_oldest_packet_wins_and_equals_take_turns() {
        let mut arbiters = build(ArbiterParameters::Single(Arbiter::Age), 1, 4);
        assert_eq!(serve(arbiters.as_mut(), 0, &[(0, 9), (1, 3), (3, 5)]), 1);
        assert_eq!(serve(arbiters.as_mut(), 0, &[(0, 3), (1, 3), (2, 3)]), 2);
        assert_eq!(serve(arbiters.as_mut(), 0, &[(0, 3), (1, 3), (2, 3)]), 0);
    }

    /// Groups take turns however many of their inputs ask: 6 against 1 share an output in halves.
    #[test]
    fn a_tree_is_fair_to_groups() {
        let mut arbiters = build(ArbiterParameters::Tree { groups: 2, of: Arbiter::RoundRobin }, 1, 12);
        let requests = [0, 1, 2, 3, 4, 5, 8].map(|input| (input, 0));
        let lonely = (0..100).filter(|_| serve(arbiters.as_mut(), 0, &requests) == 8).count();
        assert_eq!(lonely, 50);
    }
}
