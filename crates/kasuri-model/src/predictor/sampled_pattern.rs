//! Sampled pattern matching: looks for earlier places in the history of an input port that end like its present end.
//!
//! Of the longest end that occurred before, of D outputs, the last half (rounded up) is the pattern. What followed the pattern
//! most often at its earlier places is the guess, the lower port if two did equally often.
//!
//! Of each earlier place is kept how many outputs before it agree with the present end: with one more output it is one more, or
//! none. Counted from the end, that is the same operation on each element of an array, so a packet costs a few vector instructions.

use super::{Built, Predictor, PredictorEntry, inputs};
use crate::id::Port;
use crate::network::{MAX_PORTS, Network};

/// Outputs that an input port remembers.
const HISTORY: usize = 32;

/// Outputs that are remembered before each place.
const BEHIND: [i16; HISTORY] = {
    let mut behind = [0; HISTORY];
    let mut place = 0;
    while place < HISTORY {
        behind[place] = (HISTORY - 1 - place) as i16;
        place += 1;
    }
    behind
};

/// Stands where no output is remembered yet; it is no port.
const NOTHING: Port = Port::MAX;

/// What an input port remembers. Place `i` is the one before the output `latest[i]`. The widths are those that vector instructions
/// of every processor compare.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// The last outputs, the latest first.
    latest: [Port; HISTORY],
    /// How many outputs before each place are those at the end.
    agreeing: [i16; HISTORY],
    guess: Option<Port>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { latest: [NOTHING; HISTORY], agreeing: [0; HISTORY], guess: None }
    }
}

struct SampledPattern {
    memory: Vec<Memory>,
    votes: Votes,
}

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "sampled-pattern",
    summary: "what followed most often where the recent outputs of the input port occurred before",
    source: "Jacquet, Szpankowski and Apostol, A universal predictor based on pattern matching, IEEE Trans. Inf. Theory 48 (2002)",
    build,
};

fn build(network: &Network) -> Built {
    Ok(Box::new(SampledPattern { memory: vec![Memory::default(); inputs(network)], votes: Votes::default() }))
}

impl Predictor for SampledPattern {
    fn predict(&self, input: usize) -> Option<Port> {
        self.memory[input].guess
    }

    fn learn(&mut self, input: usize, output: Port) {
        let memory = &mut self.memory[input];
        let longest = memory.remember(output);
        memory.guess = memory.guess_next(longest, &mut self.votes);
    }
}

impl Memory {
    /// Takes one more output; the most outputs at the end that occurred before.
    fn remember(&mut self, output: Port) -> i16 {
        let mut longest = 0;
        for ((agreeing, &before), &behind) in self.agreeing.iter_mut().zip(&self.latest).zip(&BEHIND) {
            let longer = (*agreeing + 1).min(behind);
            *agreeing = if before == output { longer } else { 0 };
            longest = longest.max(*agreeing);
        }
        let before = self.latest;
        self.latest[1..].copy_from_slice(&before[..HISTORY - 1]);
        self.latest[0] = output;
        longest
    }

    /// What follows the end of the history by the rule above; the last output while nothing occurred twice.
    fn guess_next(&self, longest: i16, votes: &mut Votes) -> Option<Port> {
        if longest == 0 {
            return Some(self.latest[0]);
        }
        let pattern = (longest + 1) / 2;
        let (mut followers, mut count) = ([0; HISTORY], 0);
        // Nothing lies before the last place, so it never agrees.
        for (&follower, &agreeing) in self.latest.iter().zip(&self.agreeing).take(HISTORY - 1) {
            followers[count] = follower;
            count += usize::from(agreeing >= pattern);
        }
        votes.winner(&followers[..count])
    }
}

/// Counts what stands in a list; all zero between two lists.
#[derive(Clone, Debug)]
struct Votes([u8; MAX_PORTS]);

impl Default for Votes {
    fn default() -> Self {
        Self([0; MAX_PORTS])
    }
}

impl Votes {
    /// The port that stands most often in a list, the lowest of several.
    fn winner(&mut self, ports: &[Port]) -> Option<Port> {
        ports.iter().for_each(|&port| self.0[usize::from(port)] += 1);
        // More votes first, then lower ports.
        let key = |port: Port| u32::from(self.0[usize::from(port)]) << 16 | u32::from(Port::MAX - port);
        let best = ports.iter().map(|&port| key(port)).max();
        ports.iter().for_each(|&port| self.0[usize::from(port)] = 0);
        best.map(|best| Port::MAX - best as Port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use std::collections::BTreeMap;

    /// The definition, word for word.
    fn by_definition(history: &[Port]) -> Option<Port> {
        let common_end = |end: usize| history[..end].iter().rev().zip(history.iter().rev()).take_while(|(one, other)| one == other).count();
        let longest = (1..history.len()).map(common_end).max().unwrap_or(0);
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

    fn guess(history: &[Port]) -> Option<Port> {
        let (mut memory, mut votes) = (Memory::default(), Votes::default());
        let longest = history.iter().map(|&output| memory.remember(output)).last()?;
        memory.guess_next(longest, &mut votes)
    }

    #[test]
    fn one_pass_guesses_what_the_definition_says() {
        let mut stream = Streams::new(1).get(Purpose::Routing, 0);
        for ports in 1..=6 {
            let outputs: Vec<Port> = (0..600).map(|_| stream.below(ports) as Port).collect();
            for end in 0..=outputs.len() {
                assert_eq!(
                    guess(&outputs[..end]),
                    by_definition(&outputs[end.saturating_sub(HISTORY)..end]),
                    "{ports} ports, {end} outputs"
                );
            }
        }
    }

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
