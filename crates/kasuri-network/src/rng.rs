//! Random streams that belong to a purpose and an entity, never to a thread or to an order of creation.
//!
//! A stream is xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64 from `(seed, purpose, entity)`. A new consumer
//! takes a new purpose and so moves no other stream: results change only where the model changed.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// When a terminal creates packets.
    Creation = 1,
    /// Where a terminal's packets go, and how long they are.
    Destination = 2,
    /// Choices of a routing at a router.
    Routing = 3,
    /// Structure that is drawn once (random permutations, random graphs).
    Structure = 4,
    /// Random allocators and arbiters.
    Allocation = 5,
    /// When a rank of a workload starts.
    Start = 6,
    /// How long a message of a workload is held up before it sets out.
    Jitter = 7,
    /// Which terminals users get, and where the search for an embedding goes.
    Placement = 8,
    /// Local addresses of accesses, and which entries of tables change.
    Translation = 9,
    /// Bits that change and flits that get lost on channels.
    LinkErrors = 10,
    /// What one of several users draws.
    User = 11,
}

/// The family of all streams of one run.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of the run with this seed (`measure.seed`).
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of one entity (a terminal's or router's index) for one purpose.
    pub fn get(&self, purpose: Purpose, entity: u32) -> Stream {
        let mixed = split_mix(split_mix(self.seed) ^ split_mix(((purpose as u64) << 32) | u64::from(entity)));
        Stream(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// The streams of what one of several users does in this run.
    pub fn of_user(&self, user: u32) -> Self {
        Self { seed: split_mix(split_mix(self.seed) ^ split_mix((Purpose::User as u64) << 32 | u64::from(user))) }
    }

    /// A key for draws by [`split_mix`] where a stream per entity would make results depend on an order of evaluation.
    pub fn key(&self, purpose: Purpose) -> u64 {
        split_mix(split_mix(self.seed) ^ split_mix((purpose as u64) << 32 | u64::from(u32::MAX)))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a hash of 64 bits.
#[inline]
pub fn split_mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One random stream.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// A uniform integer in `0..bound`. `bound` must be positive.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0.random_range(0..bound)
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        // Signed, since processors convert signed numbers in one instruction.
        (self.0.next_u64() >> 11) as i64 as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// The number of Bernoulli trials up to and including the first success, 1 or more, by inversion.
    ///
    /// `log_failure` is `ln(1 - p)` of the success probability `p` of a trial, negative (minus infinity for `p = 1`).
    #[inline]
    pub fn trials(&mut self, log_failure: f64) -> u64 {
        // 1 - unit() lies in (0, 1], so the logarithm is finite.
        let failures = (1.0 - self.unit()).ln() / log_failure;
        if failures < 9_007_199_254_740_992.0 {
            // Not negative, and below 2^53: so the conversion rounds down, and adding 1 is exact.
            return 1 + failures as i64 as u64;
        }
        let trials = 1.0 + failures.floor();
        // A waiting time beyond 2^62 cycles never ends within a run.
        if trials < 4.6e18 { trials as u64 } else { 1 << 62 }
    }
}
