//! Sampled pattern matching: looks for earlier places in the history of an input port that end like its present end.
//!
//! Of the longest end that occurred before, of D outputs, the last half (rounded up) is the pattern. What followed the pattern
//! most often at its earlier places is the guess, the lower port if two did equally often.
//!
//! An output is known by its age: the last one has age 0. For each remembered output the memory says how many outputs before it are
//! those at the end of the history. One more output turns that into the same for the next age, so nothing has to move but the history,
//! and bytes make a column of either one vector.

use super::contract::{Built, Predictor, PredictorEntry, inputs};
use super::options::Options;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Outputs that an input port remembers: as many as a [`Set`] has bits.
const HISTORY: usize = 32;

/// Of so many ports each is asked how often it followed: that costs less than a branch that nobody can foretell.
#[cfg(target_arch = "x86_64")]
const FEW_PORTS: usize = 16;

/// Remembered outputs, the bit of each by its age.
type Set = u32;

/// By age of an output: how many before it are remembered.
#[cfg(target_arch = "x86_64")]
const REMEMBERED: [u8; HISTORY] = {
    let mut column = [0; HISTORY];
    let mut age = 0;
    while age < column.len() {
        column[age] = (HISTORY - 1 - age) as u8;
        age += 1;
    }
    column
};

/// The number of a port in few bytes.
trait Number: Copy + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Stands for no port: more than any port's number.
    const NONE: Self;

    fn of(port: Port) -> Self;

    fn port(self) -> Port;

    /// Takes one more output. Returns the guess for the next one.
    fn learn(memory: &mut Memory<Self>, output: Self, _ports: usize) -> Self {
        memory.learn_by_any(output)
    }
}

impl Number for u16 {
    const NONE: Self = Self::MAX;

    fn of(port: Port) -> Self {
        port
    }

    fn port(self) -> Port {
        self
    }
}

impl Number for u8 {
    const NONE: Self = Self::MAX;

    fn of(port: Port) -> Self {
        port as Self
    }

    fn port(self) -> Port {
        self.into()
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    fn learn(memory: &mut Memory<Self>, output: Self, ports: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the instructions.
            return unsafe { memory.learn_by_avx2(output, ports) };
        }
        memory.learn_by_any(output)
    }
}

/// What an input port remembers; in bytes one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Memory<N> {
    /// Outputs by age, [`Number::NONE`] before the first.
    recent: [N; HISTORY],
    /// How many outputs before each are those at the end.
    agreeing: [u8; HISTORY],
}

struct SampledPattern<N> {
    memory: Vec<Memory<N>>,
    /// The guess of each input port.
    guesses: Vec<Option<Port>>,
    ports: usize,
}

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "sampled-pattern",
    summary: "what followed most often where the recent outputs of the input port occurred before",
    source: "Jacquet, Szpankowski and Apostol, A universal predictor based on pattern matching, IEEE Trans. Inf. Theory 48 (2002)",
    takes: &[],
    build,
};

fn build(network: &Network, _options: &Options) -> Built {
    let ports = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
    Ok(of_ports(inputs(network), ports as usize))
}

/// For routers of at most so many ports.
fn of_ports(inputs: usize, ports: usize) -> Box<dyn Predictor> {
    if ports <= usize::from(u8::NONE) {
        Box::new(SampledPattern::<u8>::new(inputs, ports))
    } else {
        Box::new(SampledPattern::<u16>::new(inputs, ports))
    }
}

impl<N: Number> SampledPattern<N> {
    fn new(inputs: usize, ports: usize) -> Self {
        let empty = Memory { recent: [N::NONE; HISTORY], agreeing: [0; HISTORY] };
        Self { memory: vec![empty; inputs], guesses: vec![None; inputs], ports }
    }
}

impl<N: Number> Predictor for SampledPattern<N> {
    fn predict(&self, input: usize) -> Option<Port> {
        self.guesses[input]
    }

    fn learn(&mut self, input: usize, output: Port) {
        self.guesses[input] = Some(N::learn(&mut self.memory[input], N::of(output), self.ports).port());
    }
}

impl<N: Number> Memory<N> {
    fn learn_by_any(&mut self, output: N) -> N {
        for ((agreeing, &before), remembered) in self.agreeing.iter_mut().zip(&self.recent).zip((0..HISTORY as u8).rev()) {
            *agreeing = if before == output { (*agreeing + 1).min(remembered) } else { 0 };
        }
        self.recent.copy_within(..HISTORY - 1, 1);
        self.recent[0] = output;
        let longest = self.agreeing.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return output;
        }
        let follows = set_of(&self.agreeing, |agreeing| agreeing >= longest.div_ceil(2));
        self.most_frequent(follows, |port| set_of(&self.recent, |recent| recent == port))
    }

    /// The port that most of these outputs are, the lowest of several; `outputs_to` tells the remembered outputs to a port.
    #[inline(always)]
    fn most_frequent(&self, mut follows: Set, outputs_to: impl Fn(N) -> Set) -> N {
        let (mut best, mut best_count) = (N::NONE, 0);
        while follows != 0 {
            let port = self.recent[follows.trailing_zeros() as usize];
            let same = follows & outputs_to(port);
            let count = same.count_ones();
            if count > best_count || count == best_count && port < best {
                (best, best_count) = (port, count);
            }
            follows &= !same;
        }
        best
    }
}

/// The ages of which something is true.
fn set_of<T: Copy>(column: &[T; HISTORY], is_in: impl Fn(T) -> bool) -> Set {
    column.iter().enumerate().fold(0, |set, (age, &value)| set | Set::from(is_in(value)) << age)
}

#[cfg(target_arch = "x86_64")]
mod by_avx2 {
    use super::{FEW_PORTS, HISTORY, Memory, REMEMBERED, Set};
    use std::arch::x86_64::*;

    /// A column as a vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn vector(column: &[u8; HISTORY]) -> __m256i {
        // SAFETY: the column is as long as the vector, and need not be aligned.
        unsafe { _mm256_loadu_si256(column.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(vector: __m256i, column: &mut [u8; HISTORY]) {
        // SAFETY: as before.
        unsafe { _mm256_storeu_si256(column.as_mut_ptr().cast(), vector) }
    }

    /// The ages at which a column holds a value.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal(column: __m256i, value: u8) -> Set {
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(column, _mm256_set1_epi8(value.cast_signed()))).cast_unsigned()
    }

    /// The greatest of a vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn greatest(vector: __m256i) -> u8 {
        let halves = _mm_max_epu8(_mm256_castsi256_si128(vector), _mm256_extracti128_si256(vector, 1));
        // The processor finds the least of eight words: so the complement, the lesser of two bytes in each word.
        let complement = _mm_xor_si128(halves, _mm_set1_epi8(-1));
        let least = _mm_minpos_epu16(_mm_min_epu8(complement, _mm_srli_epi16(complement, 8)));
        !(_mm_cvtsi128_si32(least) as u8)
    }

    impl Memory<u8> {
        /// The same as `learn_by_any`; with few ports no branch hangs on what is in the memory.
        #[target_feature(enable = "avx2,popcnt")]
        pub(super) fn learn_by_avx2(&mut self, output: u8, ports: usize) -> u8 {
            let (recent, newest) = (vector(&self.recent), _mm256_set1_epi8(output.cast_signed()));
            let same = _mm256_cmpeq_epi8(recent, newest);
            let longer = _mm256_and_si256(_mm256_sub_epi8(vector(&self.agreeing), same), same);
            let agreeing = _mm256_min_epu8(longer, vector(&REMEMBERED));
            store(agreeing, &mut self.agreeing);
            // All outputs become older by one: each half of the vector takes over the last byte of what is before it.
            let before = _mm256_permute2x128_si256(recent, newest, 0x03);
            let recent = _mm256_alignr_epi8(recent, before, 15);
            store(recent, &mut self.recent);
            let longest = greatest(agreeing);
            let half = _mm256_set1_epi8(longest.div_ceil(2).cast_signed());
            let follows = !_mm256_movemask_epi8(_mm256_cmpgt_epi8(half, agreeing)).cast_unsigned();
            if ports > FEW_PORTS {
                return if longest == 0 { output } else { self.most_frequent(follows, |port| equal(recent, port)) };
            }
            // A number that is larger for more outputs and, of as many, for the lower port.
            let mut best = 0;
            for port in 0..ports as u8 {
                best = best.max((follows & equal(recent, port)).count_ones() << 8 | u32::from(!port));
            }
            if longest == 0 { output } else { !(best as u8) }
        }
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
        guess_of(8, history)
    }

    /// On routers of so many ports.
    fn guess_of(ports: usize, history: &[Port]) -> Option<Port> {
        let mut predictor = of_ports(1, ports);
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
                for of_router in [ports as usize, 16, 17, 255, 256] {
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
