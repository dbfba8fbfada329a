//! Sampled pattern matching: looks for earlier places in the history of an input port that end like its present end.
//!
//! Of the longest end that occurred before, of D outputs, the last half (rounded up) is the pattern. What followed the pattern
//! most often at its earlier places is the guess, the lower port if two did equally often.

use super::{Built, Predictor, inputs};
use kasuri_model::id::Port;
use kasuri_model::network::Network;
use std::collections::BTreeMap;

/// Outputs that an input port remembers.
const HISTORY: usize = 32;

struct SampledPattern {
    history: Vec<Vec<Port>>,
    guess: Vec<Option<Port>>,
}

pub(super) fn build(network: &Network) -> Built {
    let inputs = inputs(network);
    Ok(Box::new(SampledPattern { history: vec![Vec::new(); inputs], guess: vec![None; inputs] }))
}

impl Predictor for SampledPattern {
    fn predict(&self, input: usize) -> Option<Port> {
        self.guess[input]
    }

    fn learn(&mut self, input: usize, output: Port) {
        let history = &mut self.history[input];
        if history.len() == HISTORY {
            history.remove(0);
        }
        history.push(output);
        self.guess[input] = guess(history);
    }
}

/// What follows the end of a history by the rule above; the last output while nothing occurred twice.
fn guess(history: &[Port]) -> Option<Port> {
    let longest = (1..history.len()).map(|end| common_end(&history[..end], history)).max().unwrap_or(0);
    if longest == 0 {
        return history.last().copied();
    }
    let pattern = &history[history.len() - longest.div_ceil(2)..];
    let mut followers: BTreeMap<Port, u32> = BTreeMap::new();
    for end in pattern.len()..history.len() {
        if history[..end].ends_with(pattern) {
            *followers.entry(history[end]).or_default() += 1;
        }
    }
    // Ascending ports, and the last of equal maxima wins: so from the highest port down.
    followers.into_iter().rev().max_by_key(|&(_, times)| times).map(|(port, _)| port)
}

/// How many last outputs two histories have in common.
fn common_end(one: &[Port], other: &[Port]) -> usize {
    one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_found() {
        let history: Vec<Port> = [3, 1, 4, 1, 5].into_iter().cycle().take(20).collect();
        assert_eq!(guess(&history), Some(3));
        assert_eq!(guess(&history[..19]), Some(5));
        assert_eq!(guess(&history[..17]), Some(4));
    }

    #[test]
    fn before_anything_repeats_the_last_output_is_the_guess() {
        assert_eq!(guess(&[]), None);
        assert_eq!(guess(&[2]), Some(2));
        assert_eq!(guess(&[2, 0, 1]), Some(1));
    }

    /// After 7 came 1 once and 2 twice.
    #[test]
    fn the_majority_of_followers_wins() {
        assert_eq!(guess(&[7, 1, 7, 2, 7, 2, 0, 7]), Some(2));
    }
}
