//! A random permutation, the same for the whole run.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use super::fixed::Fixed;
use kasuri_network::registry::Member;
use kasuri_network::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::Deserialize;

/// One permutation, drawn uniformly from `permutation_seed` alone; a terminal may be its own destination.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomPermutation {
    /// Which permutation; `measure.seed` does not matter.
    #[serde(default)]
    pub permutation_seed: u64,
}

impl Member for RandomPermutation {
    const NAME: &'static str = "random-permutation";
    const SUMMARY: &'static str = "one random permutation for the whole run, drawn from permutation_seed";
    const SOURCE: &'static str = "Dally and Towles (2004), section 3.2; Durstenfeld's shuffle, Commun. ACM 7 (1964)";
    const EXAMPLE: &'static str = "permutation_seed = 3";
}

impl TrafficPattern for RandomPermutation {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        let mut stream = Streams::new(self.permutation_seed).get(Purpose::Structure, 0);
        let mut permutation: Vec<u32> = (0..terminals).collect();
        for last in (1..terminals).rev() {
            permutation.swap(last as usize, stream.below(last + 1) as usize);
        }
        Ok(Fixed::pattern(terminals, |source| permutation[source as usize]))
    }
}
