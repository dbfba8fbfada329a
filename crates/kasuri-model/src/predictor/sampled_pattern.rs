//! Sampled pattern matching: looks for earlier places in the history of an input port that end like its present end.
//!
//! Of the longest end that occurred before, of D outputs, the last half (rounded up) is the pattern. What followed the pattern
//! most often at its earlier places is the guess, the lower port if two did equally often.
//!
//! Sets of places are words with a bit for each output that is remembered, so that a packet costs a few operations for each output
//! that is.

use super::{Built, Predictor, PredictorEntry, inputs};
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Outputs that an input port remembers: as many as a [`Set`] has bits.
const HISTORY: usize = 32;

/// Of so many ports each is asked how often it followed: that costs less than a branch that nobody can foretell.
const FEW_PORTS: usize = 16;

/// Remembered outputs, by the number of the output modulo [`HISTORY`]; also the places before them.
type Set = u32;

/// Of so many ports an input port's own memory has the places.
const PORTS_INSIDE: usize = 8;

/// By the place of the last output and n together: the place before which fewer than n + 1 outputs are remembered.
const TOO_EARLY: [Set; 2 * HISTORY] = {
    let mut column = [0; 2 * HISTORY];
    let mut at = 0;
    while at < column.len() {
        column[at] = 1 << ((at + 1) % HISTORY);
        at += 1;
    }
    column
};

/// What an input port remembers. What every packet needs comes first.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Memory {
    guess: Option<Port>,
    /// Outputs so far, modulo [`HISTORY`].
    next: u8,
    /// The most outputs at the end that occurred before.
    longest: u8,
    /// Where each output stands in the history, of few ports.
    inside: [Set; PORTS_INSIDE],
    /// Places before which at least n outputs are those at the end, for n from 1.
    agreeing: [Set; HISTORY],
}

impl Default for Memory {
    fn default() -> Self {
        Self { guess: None, next: 0, longest: 0, inside: [0; PORTS_INSIDE], agreeing: [0; HISTORY] }
    }
}

struct SampledPattern {
    memory: Vec<Memory>,
    /// Where each output stands in the history of each input port, shape `[inputs, ports]`; empty if the ports are few.
    occurrences: Vec<Set>,
    /// The outputs of each input port, each where its bit is; empty if the ports are few.
    outputs: Vec<[Port; HISTORY]>,
    ports: usize,
}

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "sampled-pattern",
    summary: "what followed most often where the recent outputs of the input port occurred before",
    source: "Jacquet, Szpankowski and Apostol, A universal predictor based on pattern matching, IEEE Trans. Inf. Theory 48 (2002)",
    build,
};

fn build(network: &Network) -> Built {
    let ports = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
    Ok(Box::new(SampledPattern::new(inputs(network), ports as usize)))
}

impl SampledPattern {
    fn new(inputs: usize, ports: usize) -> Self {
        let outside = if ports <= PORTS_INSIDE { 0 } else { inputs };
        Self { memory: vec![Memory::default(); inputs], occurrences: vec![0; outside * ports], outputs: vec![[0; HISTORY]; outside], ports }
    }
}

impl Predictor for SampledPattern {
    fn predict(&self, input: usize) -> Option<Port> {
        self.memory[input].guess
    }

    fn learn(&mut self, input: usize, output: Port) {
        let memory = &mut self.memory[input];
        if self.occurrences.is_empty() {
            memory.learn_of_few(output);
        } else {
            memory.learn(output, &mut self.outputs[input], &mut self.occurrences[input * self.ports..][..self.ports]);
        }
    }
}

impl Memory {
    /// Learns where each port's places stand in the memory itself.
    fn learn_of_few(&mut self, output: Port) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the instructions.
            return unsafe { self.learn_of_few_by_avx2(output) };
        }
        self.learn_of_few_by_any(output);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt")]
    fn learn_of_few_by_avx2(&mut self, output: Port) {
        self.learn_of_few_by_any(output);
    }

    #[inline(always)]
    fn learn_of_few_by_any(&mut self, output: Port) {
        let bit = self.turn();
        // Whichever port had the oldest output has it no more.
        self.inside.iter_mut().for_each(|places| *places &= !(1 << bit));
        let own = usize::from(output) % PORTS_INSIDE;
        self.compare(bit, self.inside[own]);
        self.inside[own] |= 1 << bit;
        self.guess = Some(if self.longest == 0 { output } else { most_frequent_by_any(self.pattern(), &self.inside) });
    }

    fn learn(&mut self, output: Port, outputs: &mut [Port; HISTORY], occurrences: &mut [Set]) {
        let bit = self.turn();
        // The oldest output is forgotten.
        occurrences[usize::from(outputs[bit as usize])] &= !(1 << bit);
        self.compare(bit, occurrences[usize::from(output)]);
        outputs[bit as usize] = output;
        occurrences[usize::from(output)] |= 1 << bit;
        self.guess = Some(if self.longest == 0 { output } else { most_frequent(self.pattern(), outputs, occurrences) });
    }

    /// The place of the next output.
    fn turn(&mut self) -> u32 {
        let bit = u32::from(self.next);
        self.next = (self.next + 1) % HISTORY as u8;
        bit
    }

    /// Takes one more output, which stands at these earlier places: one more output agrees before a place that follows it. All lengths
    /// are worked off whatever the longest is: nobody can foretell it, and several are done at once.
    #[inline(always)]
    fn compare(&mut self, bit: u32, places: Set) {
        let mut before = [Set::MAX; HISTORY];
        before[1..].copy_from_slice(&self.agreeing[..HISTORY - 1]);
        let too_early = &TOO_EARLY[bit as usize..][..HISTORY];
        let mut longest = 0;
        for length in 0..HISTORY {
            self.agreeing[length] = (before[length] & places).rotate_left(1) & !too_early[length];
            longest += u32::from(self.agreeing[length] != 0);
        }
        self.longest = longest as u8;
    }

    /// The places after the pattern.
    #[inline(always)]
    fn pattern(&self) -> Set {
        self.agreeing[usize::from(self.longest.div_ceil(2)) - 1]
    }
}

/// The port that has most of these places, the lowest of several.
fn most_frequent(mut places: Set, outputs: &[Port; HISTORY], occurrences: &[Set]) -> Port {
    if occurrences.len() <= FEW_PORTS {
        return most_frequent_of_few(places, occurrences);
    }
    let (mut best, mut best_count) = (Port::MAX, 0);
    while places != 0 {
        let port = outputs[places.trailing_zeros() as usize];
        let same = places & occurrences[usize::from(port)];
        let count = same.count_ones();
        if count > best_count || count == best_count && port < best {
            (best, best_count) = (port, count);
        }
        places &= !same;
    }
    best
}

/// The same by asking each port.
fn most_frequent_of_few(places: Set, occurrences: &[Set]) -> Port {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instruction.
        return unsafe { most_frequent_by_popcnt(places, occurrences) };
    }
    most_frequent_by_any(places, occurrences)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn most_frequent_by_popcnt(places: Set, occurrences: &[Set]) -> Port {
    most_frequent_by_any(places, occurrences)
}

#[inline(always)]
fn most_frequent_by_any(places: Set, occurrences: &[Set]) -> Port {
    // A number that is larger for more places and, of as many, for the lower port.
    let last = FEW_PORTS as u32 - 1;
    let rank = |(port, &set): (u32, &Set)| (places & set).count_ones() * FEW_PORTS as u32 + (last - port);
    let best = (0..).zip(occurrences).map(rank).max().unwrap_or(0);
    (last - best % FEW_PORTS as u32) as Port
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
        guess_of(8, history)
    }

    /// On routers of so many ports.
    fn guess_of(ports: usize, history: &[Port]) -> Option<Port> {
        let mut predictor = SampledPattern::new(1, ports);
        history.iter().for_each(|&output| predictor.learn(0, output));
        predictor.predict(0)
    }

    #[test]
    fn one_pass_guesses_what_the_definition_says() {
        let mut stream = Streams::new(1).get(Purpose::Routing, 0);
        for ports in 1..=6 {
            let outputs: Vec<Port> = (0..600).map(|_| stream.below(ports) as Port).collect();
            for end in 0..=outputs.len() {
                let expected = by_definition(&outputs[end.saturating_sub(HISTORY)..end]);
                for of_router in [ports as usize, PORTS_INSIDE + 1, FEW_PORTS, FEW_PORTS + 1] {
                    assert_eq!(guess_of(of_router, &outputs[..end]), expected, "{ports} of {of_router} ports, {end} outputs");
                }
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
