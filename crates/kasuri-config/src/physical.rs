//! The keys of `[network]` that say in Gbit/s and in ns how fast its channels are.
//!
//! Rates become periods: the cycle is as long as all of them need to be whole numbers of cycles whose ratios are those of the rates, so
//! nothing is rounded, and nothing drifts. Links of 100 and 40 Gbit/s have periods of 2 and 5 cycles of a channel of 200 Gbit/s.

use super::units::UnitParameters;
use kasuri_formats::rate::{Rate, Speed, periods};
use kasuri_model::time::CyclesOrTime;
use kasuri_network::network::MAX_CHANNEL_CYCLES;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use kasuri_workload::units::Units;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

/// How fast channels are, in place of `channel_period`, `channel_latency` and those of terminals.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PhysicalLinks {
    /// Rate of the channels between routers, such as `"400 Gbit/s"`, `"450 Gbyte/s"` or `"4xNDR"`; topologies with several kinds of links take
    /// a list. It needs `flit_bytes`, and makes the cycle as short as whole periods for all rates ask for.
    rate: Option<PerKind>,
    /// Rate of the injection and ejection channels; without it they are as fast as the fastest between routers.
    terminal_rate: Option<String>,
    /// Latency of the channels between routers, such as `"600 ns"` or `"0.6 us"`, to the nearest cycle; as with rates, a list where there are
    /// several kinds of links.
    latency: Option<PerKind>,
    /// Latency of the injection and ejection channels.
    terminal_latency: Option<String>,
}

/// A quantity for all kinds of links, or one for each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum PerKind {
    All(String),
    Each(Vec<String>),
}

impl PerKind {
    fn texts(&self) -> &[String] {
        match self {
            Self::All(text) => std::slice::from_ref(text),
            Self::Each(texts) => texts,
        }
    }

    /// The numbers that stand for the texts, in the same form.
    fn with(&self, numbers: &[u32]) -> PerDimension {
        match self {
            Self::All(_) => PerDimension::All(numbers[0]),
            Self::Each(_) => PerDimension::Each(numbers.to_vec()),
        }
    }
}

/// A key, and what is wrong with it.
type Problem = (String, String);

/// Keys that say the same in cycles, each after the one here.
const IN_CYCLES: [(&str, &str); 4] = [
    ("rate", "channel_period"),
    ("terminal_rate", "terminal_channel_period"),
    ("latency", "channel_latency"),
    ("terminal_latency", "terminal_channel_latency"),
];

/// The key that the table has in place of a key in cycles.
pub(super) fn alias_in_file<'k>(table: &Table, key: &'k str) -> &'k str {
    let here = IN_CYCLES.iter().find(|(here, in_cycles)| *in_cycles == key && table.contains_key(*here));
    here.map_or(key, |(here, _)| here)
}

impl PhysicalLinks {
    /// Puts what the keys say into the parameters in cycles, and returns the units. `table` is `[network]`.
    ///
    /// # Errors
    /// A key that is no rate or time, that says what another key says, or that lacks one.
    pub(super) fn apply(&self, table: &Table, channels: &mut ChannelParameters, units: &UnitParameters) -> Result<Units, Problem> {
        for (here, in_cycles) in IN_CYCLES {
            if table.contains_key(here) && table.contains_key(in_cycles) {
                return Err((here.to_owned(), format!("conflicts with {in_cycles}, which says the same in cycles; keep one")));
            }
        }
        let units = self.apply_rates(table, channels, units)?;
        self.apply_latencies(channels, units)?;
        Ok(units)
    }

    fn apply_rates(&self, table: &Table, channels: &mut ChannelParameters, units: &UnitParameters) -> Result<Units, Problem> {
        let of_units = |(key, problem): (&str, String)| (key.to_owned(), problem);
        let Some(rate) = &self.rate else {
            return match &self.terminal_rate {
                Some(_) => Err(problem("terminal_rate", "needs rate, the rate of the channels between routers")),
                None => units.units().map_err(of_units),
            };
        };
        for key in ["cycle_ns", "channel_gbit_per_second", "channel_period", "terminal_channel_period"] {
            if table.contains_key(key) {
                return Err(problem("rate", format!("conflicts with {key}: rates say how long a cycle and a flit last; leave {key} out")));
            }
        }
        let mut mbit = Vec::new();
        for (place, text) in rate.texts().iter().enumerate() {
            mbit.push(rate_of(text).ok_or_else(|| (self.place("rate", place), wrong_rate(text)))?);
        }
        let Some(&fastest) = mbit.iter().max() else { return Err(problem("rate", "is an empty list; give one rate, or one for each")) };
        mbit.push(match &self.terminal_rate {
            Some(text) => rate_of(text).ok_or_else(|| problem("terminal_rate", wrong_rate(text)))?,
            None => fastest,
        });
        let (numbers, mbit_per_second) = periods(&mbit, MAX_CHANNEL_CYCLES);
        let is_exact = numbers.iter().zip(&mbit).all(|(&period, &rate)| f64::from(period) * f64::from(rate) == mbit_per_second);
        if !is_exact {
            let reason = format!(
                "has no cycle of which a flit on each link takes a whole number up to {MAX_CHANNEL_CYCLES}: take rates with simpler ratios, \
                 such as 100, 40 and 25 Gbit/s"
            );
            return Err(problem("rate", reason));
        }
        let (of_terminals, between) = numbers.split_last().expect("terminals have a rate");
        channels.channel_period = rate.with(between);
        channels.terminal_channel_period = *of_terminals;
        units.at_rate(mbit_per_second / 1000.0).map_err(of_units)
    }

    fn apply_latencies(&self, channels: &mut ChannelParameters, units: Units) -> Result<(), Problem> {
        if let Some(latency) = &self.latency {
            let texts = latency.texts().iter().enumerate();
            let numbers = texts.map(|(place, text)| cycles(&self.place("latency", place), text, units)).collect::<Result<Vec<_>, _>>()?;
            if numbers.is_empty() {
                return Err(problem("latency", "is an empty list; give one latency, or one for each"));
            }
            channels.channel_latency = latency.with(&numbers);
        }
        if let Some(text) = &self.terminal_latency {
            channels.terminal_channel_latency = cycles("terminal_latency", text, units)?;
        }
        Ok(())
    }

    /// The path of one of a key's texts.
    fn place(&self, key: &str, place: usize) -> String {
        let of = if key == "rate" { &self.rate } else { &self.latency };
        match of {
            Some(PerKind::Each(_)) => format!("{key}.{place}"),
            _ => key.to_owned(),
        }
    }
}

fn problem(key: &str, problem: impl Into<String>) -> Problem {
    (key.to_owned(), problem.into())
}

/// A number and the unit after it.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|character: char| !(character.is_ascii_digit() || ".eE+-_".contains(character))).unwrap_or(text.len());
    // An `E` or `e` may begin the unit.
    let number = text[..end].trim_end_matches(['e', 'E']);
    let value: f64 = number.replace('_', "").parse().ok()?;
    value.is_finite().then_some((value, text[number.len()..].trim()))
}

/// A rate in Mbit/s.
fn rate_of(text: &str) -> Option<u32> {
    if let Some(rate) = Rate::parse(text.trim()) {
        return rate.mbit_per_second();
    }
    let (value, unit) = quantity(text)?;
    let bits = ["bit/s", "b/s", "bps"].into_iter().find_map(|suffix| Some((unit.strip_suffix(suffix)?, 1.0)));
    let bytes = || ["byte/s", "B/s"].into_iter().find_map(|suffix| Some((unit.strip_suffix(suffix)?, 8.0)));
    let (prefix, of_unit) = bits.or_else(bytes)?;
    let giga = match prefix {
        "M" => 1e-3,
        "G" => 1.0,
        "T" => 1e3,
        _ => return None,
    };
    Some(Speed::from_gbit_per_second(value * of_unit * giga)?.mbit_per_second())
}

fn wrong_rate(text: &str) -> String {
    format!(
        "is \"{text}\"; a rate is a number above 0 and Mbit/s, Gbit/s, Tbit/s, Gbyte/s or Tbyte/s, such as \"400 Gbit/s\", or an InfiniBand rate, such as \"4xNDR\""
    )
}

/// Cycles of the latency of a channel, to the nearest.
fn cycles(key: &str, text: &str, units: Units) -> Result<u32, Problem> {
    let cycles = time(text, units).map_err(|reason| problem(key, reason))?.round();
    if cycles > f64::from(MAX_CHANNEL_CYCLES) {
        let reason = format!("is \"{text}\", {cycles} cycles; it must be at most {MAX_CHANNEL_CYCLES} cycles");
        return Err(problem(key, reason));
    }
    Ok(cycles as u32)
}

/// Cycles of what is written as cycles or as a time, to the nearest; what is wrong with it, if it is more than `most`.
pub(super) fn cycles_of(written: &CyclesOrTime, units: Units, most: u64) -> Result<u64, String> {
    let (cycles, text) = match written {
        CyclesOrTime::Cycles(cycles) => (*cycles, String::new()),
        CyclesOrTime::Time(text) => (time(text, units)?.round() as u64, format!("\"{text}\", ")),
    };
    if cycles > most { Err(format!("is {text}{cycles} cycles; it must be at most {most} cycles")) } else { Ok(cycles) }
}

/// A time in cycles, and parts of them.
fn time(text: &str, units: Units) -> Result<f64, String> {
    let nanoseconds = quantity(text).filter(|(value, _)| *value >= 0.0).and_then(|(value, unit)| {
        let of_unit = match unit {
            "ps" => 1e-3,
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            _ => return None,
        };
        Some(value * of_unit)
    });
    let wrong = || format!("is \"{text}\"; a time is a number and ps, ns, us or ms, such as \"600 ns\"");
    let without_cycle = || "needs the length of a cycle: give rate and flit_bytes, or cycle_ns".to_owned();
    units.cycles(nanoseconds.ok_or_else(wrong)?).ok_or_else(without_cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `[network]` with these lines means.
    fn applied(lines: &str) -> Result<(ChannelParameters, Units), Problem> {
        let table: Table = lines.parse().expect("TOML");
        let picked = |keys: &[&str]| -> Table {
            table.iter().filter(|(key, _)| keys.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let links: PhysicalLinks = picked(&["rate", "terminal_rate", "latency", "terminal_latency"]).try_into().unwrap();
        let units: UnitParameters = picked(&["flit_bytes", "cycle_ns", "channel_gbit_per_second"]).try_into().unwrap();
        let mut channels = ChannelParameters::default();
        let units = links.apply(&table, &mut channels, &units)?;
        Ok((channels, units))
    }

    #[test]
    fn periods_have_the_ratios_of_the_rates_and_a_flit_lasts_as_long_as_its_bytes() {
        let (channels, units) = applied("rate = ['100 Gbit/s', '40 Gbit/s']\nlatency = ['600 ns', '1.28 us']\nflit_bytes = 64").unwrap();
        assert_eq!(channels.channel_period, PerDimension::Each(vec![2, 5]));
        assert_eq!(channels.terminal_channel_period, 2);
        // 512 bits at 200 Gbit/s.
        assert_eq!(units.cycle_ns, Some(2.56));
        assert_eq!(channels.channel_latency, PerDimension::Each(vec![234, 500]));
        let (channels, units) =
            applied("rate = '400 Gbit/s'\nterminal_rate = '200Gb/s'\nflit_bytes = 64\nterminal_latency = '0 ns'").unwrap();
        assert_eq!((channels.channel_period, channels.terminal_channel_period), (PerDimension::All(1), 2));
        assert_eq!((units.cycle_ns, channels.terminal_channel_latency), (Some(1.28), 0));
    }

    #[test]
    fn times_of_routers_become_cycles() {
        let units = applied("cycle_ns = 2.5").unwrap().1;
        let time = |text: &str| CyclesOrTime::Time(text.to_owned());
        assert_eq!(cycles_of(&CyclesOrTime::Cycles(7), Units::default(), 10), Ok(7));
        assert_eq!(cycles_of(&time("600 ns"), units, 1 << 20), Ok(240));
        assert_eq!(cycles_of(&time("1.5us"), units, 1 << 20), Ok(600));
        for (written, most, wanted) in [
            (CyclesOrTime::Cycles(11), 10, "is 11 cycles; it must be at most 10 cycles"),
            (time("1 ms"), 100, "is \"1 ms\", 400000 cycles; it must be at most 100 cycles"),
            (time("soon"), 100, "is \"soon\"; a time is a number and ps, ns, us or ms, such as \"600 ns\""),
        ] {
            assert_eq!(cycles_of(&written, units, most).unwrap_err(), wanted);
        }
        assert!(cycles_of(&time("1 ns"), Units::default(), 10).unwrap_err().contains("needs the length of a cycle"));
    }

    #[test]
    fn rates_are_told_in_bits_in_bytes_and_by_names() {
        let texts = ["400 Gbit/s", "0.4 Tbit/s", "50 GB/s", "50 Gbyte/s", "400_000 Mbit/s", "4xNDR", "4e2 Gbps", " 400Gbit/s "];
        assert_eq!(texts.map(rate_of), [Some(400_000); 8]);
        assert_eq!(["", "400", "Gbit/s", "400 bit/s", "-1 Gbit/s", "0 Gbit/s", "4x???", "nan Gbit/s"].map(rate_of), [None; 8]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let cases = [
            ("rate = '400'\nflit_bytes = 64", "rate", "is \"400\"; a rate is"),
            ("rate = ['400 Gbit/s', 'fast']\nflit_bytes = 64", "rate.1", "is \"fast\""),
            ("rate = '400 Gbit/s'", "flit_bytes", "is missing"),
            ("rate = '400 Gbit/s'\nflit_bytes = 64\ncycle_ns = 1.0", "rate", "conflicts with cycle_ns"),
            ("rate = '400 Gbit/s'\nflit_bytes = 64\nchannel_period = 2", "rate", "conflicts with channel_period"),
            ("rate = []\nflit_bytes = 64", "rate", "empty list"),
            ("rate = ['800 Gbit/s', '1 Mbit/s', '3.001 Gbit/s']\nflit_bytes = 64", "rate", "no cycle"),
            ("terminal_rate = '400 Gbit/s'\nflit_bytes = 64", "terminal_rate", "needs rate"),
            ("latency = '600 ns'", "latency", "needs the length of a cycle"),
            ("latency = '600'\ncycle_ns = 1.0", "latency", "is \"600\""),
            ("latency = '-1 ns'\ncycle_ns = 1.0", "latency", "is \"-1 ns\""),
            ("latency = '600 ns'\nchannel_latency = 4\ncycle_ns = 1.0", "latency", "conflicts with channel_latency"),
            ("terminal_latency = '2000 ms'\ncycle_ns = 1.0", "terminal_latency", "at most"),
        ];
        for (lines, key, message) in cases {
            let (at, problem) = applied(lines).unwrap_err();
            assert!(at == key && problem.contains(message), "{lines}: {at}: {problem}");
        }
    }
}
