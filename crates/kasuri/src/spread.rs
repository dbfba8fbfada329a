//! Sweeps over failed links: percentiles of the answers over the drawn faults.

use crate::results::{self, RunRow};
use serde_json::Value;

/// The key with the seed of the faults.
const FAULT_SEED: &str = "faults.seed";

/// Keys of random seeds, which do not change the question.
const SEEDS: [&str; 2] = [FAULT_SEED, "measure.seed"];

/// The summarised columns of each group of runs, where they have them. For times in cycles the same in ns follows.
const QUANTITIES: [&str; 5] =
    ["completion_time", "accepted_throughput_mean", "packet_latency_mean", "saturation_load", "static_throughput"];

/// The reported percentiles.
pub const PERCENTILES: [f64; 3] = [10.0, 50.0, 90.0];

/// An answer over the drawn faults of equal number.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The inputs that vary, seeds excepted.
    pub inputs: Vec<(String, Value)>,
    /// The column.
    pub quantity: &'static str,
    /// Runs with the answer.
    pub runs: usize,
    /// By [`PERCENTILES`].
    pub values: [f64; 3],
}

/// The spreads of a sweep over `faults.seed`, in the order of its rows; none for other sweeps.
pub fn spreads(rows: &[RunRow]) -> Vec<Spread> {
    let Some(first) = rows.first() else { return Vec::new() };
    let varies = |name: &str| rows.iter().any(|row| row.get(name) != first.get(name));
    if !varies(FAULT_SEED) {
        return Vec::new();
    }
    let is_input = |name: &&str| (results::is_input(name) || *name == "engine") && !SEEDS.contains(name) && varies(name);
    let inputs: Vec<&str> = results::names(rows).into_iter().filter(is_input).collect();
    let values_of = |row: &RunRow| -> Vec<Value> { inputs.iter().map(|name| row.get(name).clone()).collect() };
    let mut groups: Vec<(Vec<Value>, Vec<&RunRow>)> = Vec::new();
    for row in rows {
        let values = values_of(row);
        match groups.iter_mut().find(|(known, _)| *known == values) {
            Some((_, group)) => group.push(row),
            None => groups.push((values, vec![row])),
        }
    }
    let named = |values: &[Value]| inputs.iter().map(|name| (*name).to_owned()).zip(values.iter().cloned()).collect();
    groups.iter().flat_map(|(values, group)| of_group(named(values), group)).collect()
}

fn of_group(inputs: Vec<(String, Value)>, group: &[&RunRow]) -> Vec<Spread> {
    let spread = |quantity: &'static str| {
        let mut known: Vec<f64> = group.iter().filter_map(|row| row.number(quantity)).collect();
        if known.is_empty() {
            return None;
        }
        known.sort_unstable_by(f64::total_cmp);
        Some(Spread { inputs: inputs.clone(), quantity, runs: known.len(), values: PERCENTILES.map(|percent| percentile(&known, percent)) })
    };
    QUANTITIES.into_iter().filter_map(spread).collect()
}

/// The percentile of ascending values, at least one: linear between the two neighbours, the first at 0 and the last at 100.
pub fn percentile(ascending: &[f64], percent: f64) -> f64 {
    let place = percent / 100.0 * (ascending.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(ascending.len() - 1);
    ascending[below] + part * (ascending[above] - ascending[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_the_values_next_to_them() {
        let values: Vec<f64> = (0..=10).map(|value| f64::from(value * value)).collect();
        assert_eq!(PERCENTILES.map(|percent| percentile(&values, percent)), [1.0, 25.0, 81.0]);
        assert_eq!(percentile(&[3.0, 4.0], 50.0), 3.5);
        assert_eq!(PERCENTILES.map(|percent| percentile(&[7.0], percent)), [7.0; 3]);
    }
}
