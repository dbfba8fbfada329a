//! Open traffic: where packets go ([`pattern`]), when they are created ([`process`]), how long they are ([`PacketSizes`]).

pub mod pattern;
pub mod process;

use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distribution of packet lengths, in flits.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketSizes {
    sizes: Vec<u32>,
    /// Cumulative probabilities, the last one 1.
    cumulative: Vec<f64>,
}

/// One line of a mixture of packet lengths.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// Length in flits.
    pub flits: u32,
    /// Relative frequency.
    pub weight: f64,
}

/// The longest packet, in flits.
pub const MAX_PACKET_FLITS: u32 = 65_535;

impl PacketSizes {
    /// Packets of one length.
    ///
    /// # Errors
    /// As [`PacketSizes::mixture`].
    pub fn fixed(flits: u32) -> Result<Self, String> {
        Self::mixture(&[WeightedSize { flits, weight: 1.0 }])
    }

    /// A mixture of lengths.
    ///
    /// # Errors
    /// An empty list, a length of 0 or above [`MAX_PACKET_FLITS`], weights that are negative or sum to nothing.
    pub fn mixture(lines: &[WeightedSize]) -> Result<Self, String> {
        let total: f64 = lines.iter().map(|line| line.weight).sum();
        if let Some(line) = lines.iter().find(|line| line.flits == 0 || line.flits > MAX_PACKET_FLITS) {
            return Err(format!("a packet of {} flits; it must have 1 to {MAX_PACKET_FLITS}", line.flits));
        }
        if lines.iter().any(|line| line.weight.is_nan() || line.weight < 0.0) || !total.is_finite() || total <= 0.0 {
            return Err("a mixture of wrong weights; they must be 0 or more and sum to more than 0".to_owned());
        }
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = lines
            .iter()
            .map(|line| {
                sum += line.weight / total;
                sum
            })
            .collect();
        if let Some(last) = cumulative.last_mut() {
            *last = 1.0;
        }
        Ok(Self { sizes: lines.iter().map(|line| line.flits).collect(), cumulative })
    }

    /// The mean length in flits.
    pub fn mean(&self) -> f64 {
        self.distribution().map(|(flits, probability)| f64::from(flits) * probability).sum()
    }

    /// The mean of the square of the length.
    pub fn mean_square(&self) -> f64 {
        self.distribution().map(|(flits, probability)| f64::from(flits).powi(2) * probability).sum()
    }

    /// Each length with its probability.
    pub fn distribution(&self) -> impl Iterator<Item = (u32, f64)> {
        let below = std::iter::once(0.0).chain(self.cumulative.iter().copied());
        self.sizes.iter().zip(&self.cumulative).zip(below).map(|((&flits, &up_to), below)| (flits, up_to - below))
    }

    /// The least length.
    pub fn min(&self) -> u32 {
        *self.sizes.iter().min().expect("at least one length")
    }

    /// The greatest length.
    pub fn max(&self) -> u32 {
        *self.sizes.iter().max().expect("at least one length")
    }

    /// Draws a length; a fixed length draws nothing.
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        if self.sizes.len() == 1 {
            return self.sizes[0];
        }
        let point = stream.unit();
        let line = self.cumulative.iter().position(|&up_to| point < up_to).unwrap_or(self.sizes.len() - 1);
        self.sizes[line]
    }
}
