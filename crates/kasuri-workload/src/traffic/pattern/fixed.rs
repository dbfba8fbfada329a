//! What patterns with one destination per source share: their compiled form, and addresses as bits or digits.

use super::contract::{Pattern, PatternContext, PatternError};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::Stream;

/// One destination for each source, or none.
#[derive(Debug)]
pub struct Fixed {
    destinations: Vec<Option<TerminalId>>,
}

impl Fixed {
    /// The pattern in which terminal `s` sends to `destination(s)`.
    pub fn pattern(terminals: u32, destination: impl Fn(u32) -> u32) -> Box<dyn Pattern> {
        Self::partial((0..terminals).map(|source| Some(destination(source))).collect())
    }

    /// The pattern in which some terminals may send nothing.
    pub fn partial(destinations: Vec<Option<u32>>) -> Box<dyn Pattern> {
        Box::new(Self { destinations: destinations.into_iter().map(|terminal| terminal.map(TerminalId)).collect() })
    }
}

impl Pattern for Fixed {
    fn destination(&self, source: TerminalId, _stream: &mut Stream) -> Option<TerminalId> {
        self.destinations[source.index()]
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        self.destinations[source.index()].map(|terminal| (terminal, 1.0)).into_iter().collect()
    }
}

/// The number of address bits of a network whose number of terminals is a power of two.
///
/// # Errors
/// It is not a power of two.
pub(super) fn address_bits(context: &PatternContext<'_>, pattern: &'static str) -> Result<u32, PatternError> {
    let terminals = context.network.terminal_count();
    if terminals.is_power_of_two() {
        return Ok(terminals.trailing_zeros());
    }
    Err(PatternError::Mismatch {
        pattern,
        network: context.network.name().to_owned(),
        problem: format!("it permutes address bits and needs a power of two of terminals, not {terminals}"),
    })
}

/// A terminal's number as digits, the least significant first: its coordinates on a grid, or its path in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    /// Terminals that share all digits (those on one router); they keep their order.
    concentration: u32,
    /// The radix of each digit.
    pub(super) radices: Vec<u32>,
}

impl Digits {
    /// The digits that the topology names in `terminal_digits` or `dimensions`; otherwise one digit, the number itself.
    pub(super) fn of(network: &Network) -> Self {
        let labels = network.labels();
        let radices = labels.attribute("terminal_digits").or_else(|| labels.attribute("dimensions"));
        let radices = radices.map_or_else(|| vec![network.terminal_count()], <[u32]>::to_vec);
        Self { concentration: network.terminal_count() / radices.iter().product::<u32>(), radices }
    }

    /// Digits of these radices, or those of the network.
    ///
    /// # Errors
    /// A radix of 0, or more numbers than terminals.
    pub(super) fn given_or_of(radices: Option<&[u32]>, network: &Network) -> Result<Self, PatternError> {
        let Some(radices) = radices else { return Ok(Self::of(network)) };
        let product = radices.iter().try_fold(1u32, |product, &radix| product.checked_mul(radix));
        match product {
            Some(1..) if product <= Some(network.terminal_count()) => Ok(Self { concentration: 1, radices: radices.to_vec() }),
            _ => {
                let problem = format!("is {radices:?}; their product must be 1 to {}, the terminals", network.terminal_count());
                Err(PatternError::Parameter { key: "digits".to_owned(), problem })
            }
        }
    }

    /// The terminal whose digit `i` is `map(i, digits of terminal)`.
    pub(super) fn map(&self, terminal: u32, map: impl Fn(usize, &[u32]) -> u32) -> u32 {
        let mut rest = terminal / self.concentration;
        let digits: Vec<u32> = self
            .radices
            .iter()
            .map(|radix| {
                let digit = rest % radix;
                rest /= radix;
                digit
            })
            .collect();
        let high_first = self.radices.iter().enumerate().rev();
        let mapped = high_first.fold(0, |number, (position, radix)| number * radix + map(position, &digits));
        mapped * self.concentration + terminal % self.concentration
    }
}
