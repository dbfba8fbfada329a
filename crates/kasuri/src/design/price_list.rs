//! A price list: commercial switches, cables, adapters and optics.

use serde::{Deserialize, Serialize};

/// The example, as a file to start from.
pub const EXAMPLE_LIST: &str = include_str!("price_list.toml");

/// A price list. Prices in one currency, powers in watts, lengths in metres, rates in Gbit/s and direction.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PriceList {
    /// The day of the prices, `2026-11-01`.
    pub date: String,
    /// The currency, for headings.
    pub currency: String,
    /// The terminals to connect.
    pub terminal: TerminalPrice,
    /// Switches.
    pub switch: Vec<SwitchPrice>,
    /// Cables.
    pub cable: Vec<CableKind>,
    /// Transceivers.
    pub optics: OpticsPrice,
    /// Lengths of cables.
    pub length: Lengths,
}

/// A terminal.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalPrice {
    /// The rate of all its ports together.
    pub gbit_per_second: f64,
    /// Its adapter, without cable and optics.
    pub adapter_price: f64,
    /// Its power.
    pub adapter_watts: f64,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchPrice {
    /// Its name.
    pub name: String,
    /// Its cages.
    pub cages: u64,
    /// The rate of a cage.
    pub gbit_per_second: f64,
    /// The possible numbers of ports of a cage.
    pub breakout: Vec<u64>,
    /// Its price.
    pub price: f64,
    /// Its power, without optics.
    pub watts: f64,
}

/// A kind of cable.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CableKind {
    /// Its name.
    pub name: String,
    /// The greatest length.
    pub up_to_m: f64,
    /// The rate of a whole cable.
    pub gbit_per_second: f64,
    /// Price of a cable without length.
    pub base: f64,
    /// Price of a metre.
    pub per_m: f64,
    /// Power of both ends, without optics.
    pub watts: f64,
    /// True if it needs a transceiver at each end.
    pub optics: bool,
}

/// A transceiver.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpticsPrice {
    /// Its rate.
    pub gbit_per_second: f64,
    /// Its price.
    pub price: f64,
    /// Its power.
    pub watts: f64,
}

/// Lengths of cables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// From a terminal to its switch.
    pub terminal_m: f64,
    /// From a leaf to a switch of the second level.
    pub leaf_m: f64,
    /// From the second level to the third.
    pub core_m: f64,
}

/// Price and power of something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// In the currency of the list.
    pub price: f64,
    /// Watts.
    pub watts: f64,
}

impl Cost {
    /// This many of it.
    pub fn times(self, count: u64) -> Self {
        Self { price: self.price * count as f64, watts: self.watts * count as f64 }
    }

    /// Both.
    pub fn plus(self, other: Self) -> Self {
        Self { price: self.price + other.price, watts: self.watts + other.watts }
    }
}

impl PriceList {
    /// Reads a price list.
    ///
    /// # Errors
    /// Invalid TOML, a missing or unknown key, an invalid day, a meaningless number, or a length without a cable.
    pub fn parse(text: &str) -> Result<Self, String> {
        let list: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        list.check()?;
        Ok(list)
    }

    fn check(&self) -> Result<(), String> {
        if !is_day(&self.date) {
            return Err(format!("date is `{}`; it must be a day such as 2026-11-01", self.date));
        }
        let above = |key: String, value: f64| match value > 0.0 && value.is_finite() {
            true => Ok(()),
            false => Err(format!("{key} is {value}; it must be above 0")),
        };
        let least = |key: String, value: f64| match value >= 0.0 && value.is_finite() {
            true => Ok(()),
            false => Err(format!("{key} is {value}; it must be 0 or more")),
        };
        above("terminal.gbit_per_second".to_owned(), self.terminal.gbit_per_second)?;
        above("optics.gbit_per_second".to_owned(), self.optics.gbit_per_second)?;
        let numbers = [
            ("terminal.adapter_price", self.terminal.adapter_price),
            ("terminal.adapter_watts", self.terminal.adapter_watts),
            ("optics.price", self.optics.price),
            ("optics.watts", self.optics.watts),
            ("length.terminal_m", self.length.terminal_m),
            ("length.leaf_m", self.length.leaf_m),
            ("length.core_m", self.length.core_m),
        ];
        numbers.into_iter().try_for_each(|(key, value)| least(key.to_owned(), value))?;
        for (switch, number) in self.switch.iter().zip(1..) {
            let key = |name: &str| format!("{name} of switch {number} (`{}`)", switch.name);
            above(key("gbit_per_second"), switch.gbit_per_second)?;
            least(key("price"), switch.price)?;
            least(key("watts"), switch.watts)?;
            let most = MAX_PORTS / switch.breakout.iter().copied().max().unwrap_or(1).max(1);
            if !(2..=most).contains(&switch.cages) {
                return Err(format!(
                    "{} is {}; it must be 2 to {most}, so that there are at most {MAX_PORTS} ports",
                    key("cages"),
                    switch.cages
                ));
            }
            if switch.breakout.is_empty() || switch.breakout.iter().any(|&ports| !(1..=16).contains(&ports)) {
                return Err(format!("{} is {:?}; it must be numbers of ports, 1 to 16, such as [1, 2]", key("breakout"), switch.breakout));
            }
        }
        for (cable, number) in self.cable.iter().zip(1..) {
            let key = |name: &str| format!("{name} of cable {number} (`{}`)", cable.name);
            above(key("up_to_m"), cable.up_to_m)?;
            above(key("gbit_per_second"), cable.gbit_per_second)?;
            [("base", cable.base), ("per_m", cable.per_m), ("watts", cable.watts)]
                .into_iter()
                .try_for_each(|(name, value)| least(key(name), value))?;
        }
        if self.switch.is_empty() || self.cable.is_empty() {
            return Err("has no [[switch]] or no [[cable]]".to_owned());
        }
        let longest = self.cable.iter().map(|cable| cable.up_to_m).fold(0.0, f64::max);
        let lengths = [("terminal_m", self.length.terminal_m), ("leaf_m", self.length.leaf_m), ("core_m", self.length.core_m)];
        match lengths.into_iter().find(|(_, length)| *length > longest) {
            Some((key, length)) => Err(format!("length.{key} is {length}; the longest cable of the list has {longest} m")),
            None => Ok(()),
        }
    }

    /// The cheapest link of a length and rate, with the parts at both its ends.
    pub fn link(&self, metres: f64, gbit_per_second: f64) -> Cost {
        let of = |cable: &CableKind| {
            let part = gbit_per_second / cable.gbit_per_second;
            let whole = Cost { price: (cable.base + cable.per_m * metres) * part, watts: cable.watts * part };
            let part = gbit_per_second / self.optics.gbit_per_second;
            let end = Cost { price: self.optics.price * part, watts: self.optics.watts * part };
            if cable.optics { whole.plus(end.times(2)) } else { whole }
        };
        let long_enough = self.cable.iter().filter(|cable| cable.up_to_m >= metres).map(of);
        long_enough.min_by(|one, other| one.price.total_cmp(&other.price)).unwrap_or_default()
    }
}

/// The most ports of a switch.
const MAX_PORTS: u64 = 512;

/// True for a text of a year, a month and a day.
fn is_day(text: &str) -> bool {
    let parts: Vec<Option<u32>> = text.split('-').map(|part| part.parse().ok()).collect();
    text.len() == 10 && matches!(parts[..], [Some(2000..=2999), Some(1..=12), Some(1..=31)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_right_and_wrong_entries_are_named() {
        let list = PriceList::parse(EXAMPLE_LIST).unwrap();
        assert_eq!(list.switch[0].cages * list.switch[0].breakout[1], 128);
        for (old, new, expected) in [
            ("2026-11-01", "November", "date is `November`; it must be a day such as 2026-11-01"),
            ("cages = 64", "cages = 1", "cages of switch 1 (`64 x 800G`) is 1; it must be 2 to 128"),
            ("[1, 2, 4]", "[0]", "breakout of switch 1 (`64 x 800G`) is [0]; it must be numbers of ports"),
            ("price = 42000", "price = -1", "price of switch 1 (`64 x 800G`) is -1; it must be 0 or more"),
            ("gbit_per_second = 400", "gbit_per_second = 0", "terminal.gbit_per_second is 0; it must be above 0"),
            ("up_to_m = 500.0", "up_to_m = 20.0", "length.core_m is 50; the longest cable of the list has 20 m"),
            ("adapter_price", "adaptor_price", "unknown field `adaptor_price`"),
            ("[length]", "[lengths]", "unknown field `lengths`"),
        ] {
            let error = PriceList::parse(&EXAMPLE_LIST.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(expected), "{new}: {error}");
        }
    }

    /// 2 m of copper at half the rate of a whole cable; 15 m of fibre with a transceiver at each end.
    #[test]
    fn links_are_the_cheapest_that_are_long_enough() {
        let list = PriceList::parse(EXAMPLE_LIST).unwrap();
        assert_eq!(list.link(2.0, 400.0), Cost { price: 100.0, watts: 0.1 });
        assert_eq!(list.link(15.0, 800.0), Cost { price: 70.0 + 1600.0, watts: 30.0 });
        assert_eq!(list.link(15.0, 400.0), Cost { price: 835.0, watts: 15.0 });
    }
}
