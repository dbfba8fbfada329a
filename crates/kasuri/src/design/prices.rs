//! Prices of routers and cables, and lengths of cables: a file that the user can replace.

use serde::Deserialize;

/// The example, used unless another file is named.
pub const EXAMPLE: &str = include_str!("prices.toml");

/// Prices in one currency, powers in watts, lengths in metres.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The currency, for the heading.
    pub currency: String,
    /// Routers.
    pub router: RouterPrice,
    /// Cables.
    pub cable: CablePrices,
    /// The floor plan of the routers.
    pub floor: Floor,
}

/// A router of k ports costs `base + k per_port`, whether the ports are used or not. All routers of a network have the ports of the widest.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterPrice {
    /// Price of a router without ports; may be negative where large routers are dearer than in proportion.
    pub base: f64,
    /// Price of a port.
    pub per_port: f64,
    /// Watts of a port in use.
    pub watts_per_port: f64,
}

/// Two kinds of cable.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CablePrices {
    /// Short ones.
    pub copper: CablePrice,
    /// Long ones.
    pub optical: CablePrice,
    /// The longest copper cable.
    pub copper_up_to_m: f64,
    /// The length of a terminal's cable.
    pub terminal_m: f64,
}

/// A cable of x metres costs `base + x per_m`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CablePrice {
    /// Price of the ends.
    pub base: f64,
    /// Price of a metre.
    pub per_m: f64,
}

/// Racks form a square of rows; each holds the same number of routers in the order of their numbers, and cables run along the rows and
/// across them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Routers in a rack, with their terminals around them.
    pub routers_per_rack: u32,
    /// From rack to rack in a row.
    pub rack_m: f64,
    /// From row to row.
    pub row_m: f64,
    /// Length of a cable within a rack.
    pub within_rack_m: f64,
    /// The extra length of a cable between racks, for both ends together.
    pub between_racks_m: f64,
}

impl Prices {
    /// Reads a price file.
    ///
    /// # Errors
    /// Invalid TOML, a missing or unknown key, or a number that must not be negative or infinite.
    pub fn parse(text: &str) -> Result<Self, String> {
        let prices: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let Self { router, cable, floor, .. } = &prices;
        let numbers = [
            ("router.per_port", router.per_port),
            ("router.watts_per_port", router.watts_per_port),
            ("cable.copper.base", cable.copper.base),
            ("cable.copper.per_m", cable.copper.per_m),
            ("cable.optical.base", cable.optical.base),
            ("cable.optical.per_m", cable.optical.per_m),
            ("cable.copper_up_to_m", cable.copper_up_to_m),
            ("cable.terminal_m", cable.terminal_m),
            ("floor.rack_m", floor.rack_m),
            ("floor.row_m", floor.row_m),
            ("floor.within_rack_m", floor.within_rack_m),
            ("floor.between_racks_m", floor.between_racks_m),
        ];
        if let Some((key, value)) = numbers.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
            return Err(format!("{key} is {value}; it must be 0 or more"));
        }
        if !router.base.is_finite() {
            return Err(format!("router.base is {}; it must be a number", router.base));
        }
        if floor.routers_per_rack == 0 {
            return Err("floor.routers_per_rack is 0; a rack holds at least 1".to_owned());
        }
        Ok(prices)
    }

    /// The price of a cable of this length, and whether it is copper.
    pub fn cable(&self, metres: f64) -> (f64, bool) {
        let is_copper = metres <= self.cable.copper_up_to_m;
        let price = if is_copper { self.cable.copper } else { self.cable.optical };
        (price.base + metres * price.per_m, is_copper)
    }
}

impl Floor {
    /// The length of a cable between two of `routers` routers, by their numbers.
    pub fn cable_length(&self, one: u32, other: u32, routers: u32) -> f64 {
        let (one, other) = (one / self.routers_per_rack, other / self.routers_per_rack);
        if one == other {
            return self.within_rack_m;
        }
        let racks = routers.div_ceil(self.routers_per_rack);
        let row = f64::from(racks).sqrt().ceil() as u32;
        let along = f64::from((one % row).abs_diff(other % row)) * self.rack_m;
        let across = f64::from((one / row).abs_diff(other / row)) * self.row_m;
        along + across + self.between_racks_m
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_right_and_wrong_numbers_are_named() {
        let prices = Prices::parse(EXAMPLE).unwrap();
        assert!(prices.cable(prices.cable.copper_up_to_m).1 && !prices.cable(prices.cable.copper_up_to_m + 0.1).1);
        let with = |from: &str, to: &str| Prices::parse(&EXAMPLE.replacen(from, to, 1)).unwrap_err();
        assert!(with("rack_m = 1.0", "rack_m = -1.0").contains("floor.rack_m is -1"));
        assert!(with("rack_m = 1.0", "").contains("missing field `rack_m`"));
        assert!(with("rack_m = 1.0", "rack_m = 1.0\nroom_m = 3.0").contains("room_m"));
        assert!(with("routers_per_rack = 16", "routers_per_rack = 0").contains("at least 1"));
    }

    /// Racks of 16 in a square of 3 x 3: from rack 0 to rack 5 it is two racks along and one row across.
    #[test]
    fn cables_run_along_rows_and_across() {
        let floor = Floor { routers_per_rack: 16, rack_m: 1.0, row_m: 2.0, within_rack_m: 1.5, between_racks_m: 4.0 };
        assert_eq!(floor.cable_length(0, 15, 140), 1.5);
        assert_eq!(floor.cable_length(3, 5 * 16, 140), 2.0 + 2.0 + 4.0);
        assert_eq!(floor.cable_length(5 * 16, 3, 140), floor.cable_length(3, 5 * 16, 140));
    }
}
