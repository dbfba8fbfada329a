//! The answers of several engines to the same question, side by side.

use crate::input::KNOWN;
use crate::results::RunRow;
use serde_json::Value;

/// The compared quantities.
const QUANTITIES: [&str; 6] =
    ["packet_latency_mean", "accepted_throughput_mean", "atr", "hops_mean", "channel_utilisation_max", "completion_time"];

/// One quantity of runs that differ only in their engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The input columns of the run, in their order.
    pub inputs: Vec<(String, Value)>,
    /// The compared column.
    pub quantity: &'static str,
    /// Each engine's answer, from the coarsest to the finest; `None` for no answer.
    pub answers: Vec<(&'static str, Option<f64>)>,
}

impl Comparison {
    /// The relative difference of an engine's answer from the finest one's: 0.1 is 10 % more. `None` for the finest itself and for an
    /// answer that is missing or 0.
    pub fn difference(&self, engine: &str) -> Option<f64> {
        let (finest, reference) = self.answers.iter().rev().find_map(|&(engine, answer)| Some((engine, answer?)))?;
        let &(_, answer) = self.answers.iter().find(|&&(name, _)| name == engine)?;
        (engine != finest && reference != 0.0).then(|| Some(answer? / reference - 1.0)).flatten()
    }
}

/// Compares the rows that differ only in their engine; empty if no two do. The order is that of the rows.
pub fn side_by_side(rows: &[RunRow]) -> Vec<Comparison> {
    let mut groups: Vec<(Vec<(String, Value)>, Vec<&RunRow>)> = Vec::new();
    for row in rows {
        let inputs = inputs(row);
        match groups.iter_mut().find(|(known, _)| *known == inputs) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((inputs, vec![row])),
        }
    }
    let mut comparisons = Vec::new();
    for (inputs, rows) in groups.iter().filter(|(_, rows)| rows.len() > 1) {
        for quantity in QUANTITIES {
            let answer = |engine: &'static str| {
                let row = rows.iter().find(|row| row.text("engine") == engine)?;
                Some((engine, row.number(quantity)))
            };
            let answers: Vec<_> = KNOWN.engine_names().filter_map(answer).collect();
            if answers.iter().filter(|(_, answer)| answer.is_some()).count() > 1 {
                comparisons.push(Comparison { inputs: inputs.clone(), quantity, answers });
            }
        }
    }
    comparisons
}

/// The dotted columns: the input without the engine. A case's label is left out, because its settings have columns.
fn inputs(row: &RunRow) -> Vec<(String, Value)> {
    row.columns().filter(|(name, _)| name.contains('.')).map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(engine: &str, load: f64, latency: Option<f64>) -> RunRow {
        RunRow::from_json(json!({"engine": engine, "traffic.load": load, "packet_latency_mean": latency, "hops_mean": 2.0})).unwrap()
    }

    #[test]
    fn runs_that_differ_in_their_engine_are_compared_with_the_finest() {
        let rows = [row("flit", 0.1, Some(20.0)), row("analysis", 0.1, Some(19.0)), row("flit", 0.2, None), row("flit", 0.3, Some(30.0))];
        let found = side_by_side(&rows);
        let quantities: Vec<_> = found.iter().map(|comparison| comparison.quantity).collect();
        assert_eq!(quantities, ["packet_latency_mean", "hops_mean"]);
        assert_eq!(found[0].answers, [("analysis", Some(19.0)), ("flit", Some(20.0))]);
        assert!((found[0].difference("analysis").unwrap() + 0.05).abs() < 1e-12);
        assert_eq!(found[0].difference("flit"), None);
    }

    #[test]
    fn columns_of_a_single_engine_are_not_compared() {
        let rows = [row("analysis", 0.1, None), row("flit", 0.1, Some(20.0))];
        assert!(side_by_side(&rows).iter().all(|comparison| comparison.quantity == "hops_mean"));
        assert_eq!(side_by_side(&[row("flit", 0.1, Some(20.0)), row("flit", 0.2, Some(20.0))]), []);
    }
}
