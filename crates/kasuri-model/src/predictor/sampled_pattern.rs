//! Sampled pattern matching: looks for earlier places in the history of an input port that end like its present end.
//!
//! Of the longest end that occurred before, of D outputs, the last half (rounded up) is the pattern. What followed the pattern
//! most often at its earlier places is the guess, the lower port if two did equally often.
//!
//! Of each earlier place is kept how many outputs before it agree with the present end: with one more output it is one more, or
//! none. Counted from the end, that is the same operation on each element of an array, so a packet costs a few vector instructions.

use super::{Built, Predictor, PredictorEntry, inputs};
use crate::id::Port;
use crate::network::Network;

/// Outputs that an input port remembers.
const HISTORY: usize = 32;

/// What an input port remembers. Place `i` is the one before the output `latest[i]`.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// How many outputs are known.
    length: usize,
    /// The last outputs, the latest first.
    latest: [Port; HISTORY],
    /// How many outputs before each place are those at the end.
    agreeing: [u16; HISTORY],
    guess: Option<Port>,
}

struct SampledPattern(Vec<Memory>);

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "sampled-pattern",
    summary: "what followed most often where the recent outputs of the input port occurred before",
    source: "Jacquet, Szpankowski and Apostol, A universal predictor based on pattern matching, IEEE Trans. Inf. Theory 48 (2002)",
    build,
};

fn build(network: &Network) -> Built {
    Ok(Box::new(SampledPattern(vec![Memory::default(); inputs(network)])))
}

impl Predictor for SampledPattern {
    fn predict(&self, input: usize) -> Option<Port> {
        self.0[input].guess
    }

    fn learn(&mut self, input: usize, output: Port) {
        let memory = &mut self.0[input];
        memory.remember(output);
        memory.guess = memory.guess_next();
    }
}

impl Memory {
    fn remember(&mut self, output: Port) {
        for (place, (agreeing, &before)) in self.agreeing.iter_mut().zip(&self.latest).enumerate() {
            // No more are remembered before a place than lie behind it.
            let longer = (*agreeing + 1).min((HISTORY - 1 - place) as u16);
            *agreeing = if before == output { longer } else { 0 };
        }
        // What is no output yet agrees with nothing.
        self.agreeing[self.length..].fill(0);
        self.latest.copy_within(..HISTORY - 1, 1);
        self.latest[0] = output;
        self.length = (self.length + 1).min(HISTORY);
    }

    /// What follows the end of the history by the rule above; the last output while nothing occurred twice.
    fn guess_next(&self) -> Option<Port> {
        let longest = self.agreeing.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return (self.length > 0).then_some(self.latest[0]);
        }
        let pattern = longest.div_ceil(2);
        let (mut followers, mut count) = ([0; HISTORY], 0);
        for (&follower, &agreeing) in self.latest.iter().zip(&self.agreeing) {
            followers[count] = follower;
            count += usize::from(agreeing >= pattern);
        }
        most_frequent(&followers[..count])
    }
}

/// The port that stands most often in a list, the lowest of several.
fn most_frequent(ports: &[Port]) -> Option<Port> {
    let times = |port: Port| ports.iter().filter(|&&other| other == port).count();
    let mut best: Option<(usize, Port)> = None;
    for (position, &port) in ports.iter().enumerate() {
        // No later port can occur more often than there are ports left.
        if best.is_some_and(|(most, _)| most > ports.len() - position) {
            break;
        }
        let times = times(port);
        if best.is_none_or(|(most, lowest)| times > most || times == most && port < lowest) {
            best = Some((times, port));
        }
    }
    best.map(|(_, port)| port)
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
        let mut memory = Memory::default();
        history.iter().for_each(|&output| memory.remember(output));
        memory.guess_next()
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
