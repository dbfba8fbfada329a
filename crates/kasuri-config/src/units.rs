//! The keys of `[network]` that say what flits and cycles are.

use kasuri_workload::units::Units;
use schemars::JsonSchema;
use serde::Deserialize;

/// What a flit holds and how long a cycle lasts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UnitParameters {
    /// Bytes that a flit holds, at least 1. Needed where messages are given in bytes.
    flit_bytes: Option<u32>,
    /// Nanoseconds of a cycle, above 0. With it results have columns in ns.
    cycle_ns: Option<f64>,
    /// Instead of `cycle_ns`: the rate in Gbit/s of a channel that carries one flit in each cycle, above 0. It makes a cycle last
    /// `flit_bytes` * 8 / rate ns.
    channel_gbit_per_second: Option<f64>,
}

impl UnitParameters {
    /// The units, or the key that is wrong and what is wrong with it.
    pub(super) fn units(&self) -> Result<Units, (&'static str, String)> {
        if self.flit_bytes == Some(0) {
            return Err(("flit_bytes", "is 0; a flit holds at least 1 byte".to_owned()));
        }
        let positive = |key, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && value.is_finite()) => Err((key, format!("is {value}; it must be above 0"))),
            other => Ok(other),
        };
        let cycle_ns = positive("cycle_ns", self.cycle_ns)?;
        let rate = positive("channel_gbit_per_second", self.channel_gbit_per_second)?;
        let cycle_ns = match (cycle_ns, rate, self.flit_bytes) {
            (Some(_), Some(_), _) => {
                let problem = "conflicts with cycle_ns; each of them gives the length of a cycle, so keep one";
                return Err(("channel_gbit_per_second", problem.to_owned()));
            }
            (None, Some(_), None) => {
                let problem = "does not give the length of a cycle without flit_bytes; give that too, or cycle_ns instead";
                return Err(("channel_gbit_per_second", problem.to_owned()));
            }
            // Gbit/s are bits per ns.
            (None, Some(rate), Some(bytes)) => Some(f64::from(bytes) * 8.0 / rate),
            (cycle_ns, None, _) => cycle_ns,
        };
        Ok(Units { flit_bytes: self.flit_bytes, cycle_ns })
    }
}

impl UnitParameters {
    /// The units where a channel of one cycle a flit has this rate in Gbit/s, or the key that is wrong and what is wrong with it.
    pub(super) fn at_rate(&self, gbit_per_second: f64) -> Result<Units, (&'static str, String)> {
        if self.flit_bytes.is_none() {
            return Err((
                "flit_bytes",
                "is missing: rates say how long a flit lasts only if it is known how many bytes it holds".to_owned(),
            ));
        }
        Self { channel_gbit_per_second: Some(gbit_per_second), ..self.clone() }.units()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_the_time_of_a_flit_on_a_channel() {
        let units = UnitParameters { flit_bytes: Some(64), cycle_ns: None, channel_gbit_per_second: Some(100.0) }.units().unwrap();
        // 512 bits at 100 bits per ns.
        assert_eq!(units, Units { flit_bytes: Some(64), cycle_ns: Some(5.12) });
        assert_eq!((units.flits(65), units.cycles(51.2)), (Some(2), Some(10.0)));
        assert_eq!(UnitParameters::default().units(), Ok(Units::default()));
    }
}
