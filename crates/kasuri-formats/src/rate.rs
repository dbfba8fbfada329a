//! Widths and speeds of InfiniBand cables.

use kasuri_network::network::MAX_CHANNEL_CYCLES;
use std::fmt;

/// The speed of a lane: its name, and the payload of four lanes in Mbit/s, after the line code.
///
/// SDR, DDR, QDR: 2.5, 5, 10 Gbit/s a lane with 8b/10b; FDR10 and FDR: 10.3125 and 14.0625 with 64b/66b; EDR: 25.78125 with 64b/66b and
/// forward error correction; from HDR on the nominal rate (InfiniBand Trade Association, roadmap; `ibnetdiscover` prints these names).
const SPEEDS: [(&str, u32); 9] = [
    ("SDR", 8_000),
    ("DDR", 16_000),
    ("QDR", 32_000),
    ("FDR10", 38_800),
    ("FDR", 54_500),
    ("EDR", 97_000),
    ("HDR", 200_000),
    ("NDR", 400_000),
    ("XDR", 800_000),
];

/// The widths that cables have, in lanes.
const WIDTHS: [u8; 5] = [1, 2, 4, 8, 12];

/// Width and speed of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// In lanes; 0 is what the tool printed as `??`.
    width: u8,
    /// The position in [`SPEEDS`]; `None` is what the tool printed as `???`.
    speed: Option<u8>,
}

impl Rate {
    /// Reads `4xEDR`, or `4x EDR`. A width or speed that the tool did not know (`??`, `???`) is read as unknown.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(speed) = text.strip_prefix("??") {
            let is_known = SPEEDS.iter().any(|(name, _)| *name == speed.trim());
            return (is_known || speed.trim() == "???").then_some(Self { width: 0, speed: None });
        }
        let (width, speed) = text.split_once('x')?;
        let width = width.parse().ok().filter(|width| WIDTHS.contains(width))?;
        let speed = speed.trim();
        let found = SPEEDS.iter().position(|(name, _)| *name == speed);
        let is_unknown = !speed.is_empty() && speed.chars().all(|character| character == '?');
        (found.is_some() || is_unknown).then(|| Self { width, speed: found.map(|place| place as u8) })
    }

    /// Is the speed known?
    pub fn is_known(self) -> bool {
        self.speed.is_some()
    }

    /// The payload in Mbit/s.
    pub fn mbit_per_second(self) -> Option<u32> {
        self.speed.map(|speed| SPEEDS[usize::from(speed)].1 / 4 * u32::from(self.width))
    }

    /// What a rate looks like, for messages.
    pub fn right() -> String {
        let names: Vec<&str> = SPEEDS.iter().map(|(name, _)| *name).collect();
        format!("a rate is a width of 1x, 2x, 4x, 8x or 12x and a speed ({}), such as 4xEDR", names.join(", "))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            0 => write!(formatter, "??")?,
            width => write!(formatter, "{width}x")?,
        }
        write!(formatter, "{}", self.speed.map_or("???", |speed| SPEEDS[usize::from(speed)].0))
    }
}

/// What a link carries in each direction, where it is told as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speed(u32);

impl Speed {
    /// Of so many Gbit/s, to the nearest Mbit/s; `None` of what is not above 0, or above 4 Pbit/s.
    pub fn from_gbit_per_second(gbit: f64) -> Option<Self> {
        let mbit = (gbit * 1000.0).round();
        (mbit >= 1.0 && mbit <= f64::from(u32::MAX)).then_some(Self(mbit as u32))
    }

    /// In Mbit/s.
    pub fn mbit_per_second(self) -> u32 {
        self.0
    }

    /// Is another one so many times as fast that no period of a flit can say it?
    pub fn is_too_slow(self, fastest: Self) -> bool {
        u64::from(self.0) * u64::from(MAX_CHANNEL_CYCLES) < u64::from(fastest.0)
    }

    /// So many links of this speed together, as far as that can be told.
    pub fn times(self, links: u32) -> Self {
        Self(self.0.saturating_mul(links.max(1)))
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} Gbit/s", f64::from(self.0) / 1000.0)
    }
}

/// Cycles that a flit takes on channels of these rates, in whole numbers whose ratios are those of the rates, and the rate in Mbit/s of a
/// channel of one cycle a flit. Ratios for which the numbers would pass `most` are rounded to a hundredth.
pub fn periods(rates: &[u32], most: u32) -> (Vec<u32>, f64) {
    let fastest = rates.iter().copied().max().unwrap_or(1).max(1);
    let exact = |scale: u64| rates.iter().all(|&rate| (u64::from(fastest) * scale).is_multiple_of(u64::from(rate.max(1))));
    let slowest = rates.iter().copied().min().unwrap_or(1).max(1);
    let fits = |scale: &u64| u64::from(fastest) * scale / u64::from(slowest) <= u64::from(most);
    let scale = (1..=MAX_FASTEST_PERIOD).take_while(fits).find(|&scale| exact(scale)).unwrap_or(MAX_FASTEST_PERIOD);
    let period = |&rate: &u32| ((u64::from(fastest) * scale + u64::from(rate) / 2) / u64::from(rate.max(1))).clamp(1, most.into()) as u32;
    (rates.iter().map(period).collect(), f64::from(fastest) * scale as f64)
}

/// The largest number of cycles that a flit takes on the fastest channel.
const MAX_FASTEST_PERIOD: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_widths_times_speeds() {
        let mbit = |text: &str| Rate::parse(text).unwrap().mbit_per_second();
        assert_eq!(["4xQDR", "2xHDR", "1xFDR", "4xNDR", "4xFDR10"].map(mbit), [32_000, 100_000, 13_625, 400_000, 38_800].map(Some));
        for unknown in ["4x???", "?????"] {
            assert_eq!((Rate::parse(unknown).unwrap().to_string(), mbit(unknown)), (unknown.to_owned(), None));
        }
        for wrong in ["", "4x", "QDR", "3xQDR", "4xqdr", "4xQDR2", "xQDR"] {
            assert_eq!(Rate::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn periods_have_the_ratios_of_the_rates() {
        assert_eq!(periods(&[400_000, 200_000], 1_000_000), (vec![1, 2], 400_000.0));
        // 100 over 40 is 5 : 2.
        assert_eq!(periods(&[100_000, 40_000], 1_000_000), (vec![2, 5], 200_000.0));
        // 97 over 54.5 is 194 : 109, both primes' multiples.
        assert_eq!(periods(&[97_000, 54_500], 1_000_000), (vec![109, 194], 97_000.0 * 109.0));
        assert_eq!(periods(&[32_000], 1_000_000), (vec![1], 32_000.0));
    }
}
