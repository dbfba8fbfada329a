//! The values of a range: `{ from = 0.1, to = 0.9, step = 0.1 }`.

use super::MAX_POINTS;
use crate::shown::shown;
use kasuri_formats::names::unknown;
use toml::{Table, Value};

/// The values of `{ from, to, step }`; on error the path within it (with its dot) and a sentence.
pub(super) fn expand(range: &Table) -> Result<Vec<Value>, (String, String)> {
    const KEYS: [&str; 3] = ["from", "to", "step"];
    if let Some(key) = range.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err((format!(".{key}"), unknown("key", key, KEYS)));
    }
    let mut numbers = [0.0; 3];
    for (number, key) in numbers.iter_mut().zip(KEYS) {
        *number = match range.get(key) {
            Some(Value::Integer(whole)) => *whole as f64,
            Some(Value::Float(real)) if real.is_finite() => *real,
            Some(other) => return Err((format!(".{key}"), format!("is {}; it must be a number", shown(other)))),
            None => return Err((String::new(), format!("has no `{key}`; a range needs from, to and step"))),
        };
    }
    let [from, to, step] = numbers;
    if step <= 0.0 {
        return Err((".step".to_owned(), format!("is {step}; it must be above 0")));
    }
    if to < from {
        return Err((".to".to_owned(), format!("is {to}, below from = {from}: a sweep over nothing")));
    }
    // A part in 10^9 of a step forgives rounding, so that { from = 0.1, to = 0.3, step = 0.1 } has its last value.
    let steps = ((to - from) / step + 1e-9).floor();
    if steps >= MAX_POINTS as f64 {
        return Err((".step".to_owned(), format!("makes {} values; the limit is {MAX_POINTS}", steps + 1.0)));
    }
    let whole = KEYS.iter().all(|key| range.get(*key).is_some_and(Value::is_integer));
    let value = |index: u64| {
        let number = from + index as f64 * step;
        if whole { Value::Integer(number as i64) } else { Value::Float(rounded(number)) }
    };
    Ok((0..=steps as u64).map(value).collect())
}

/// To 12 significant digits, so that 0.1 + 2 * 0.1 is 0.3 and not 0.30000000000000004.
fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(range: &str) -> Result<Vec<Value>, (String, String)> {
        expand(&toml::from_str(range).unwrap())
    }

    #[test]
    fn a_range_includes_its_end_and_holds_round_numbers() {
        let expected: Vec<Value> = (1..=9).map(|tenth| Value::Float(f64::from(tenth) / 10.0)).collect();
        assert_eq!(values("from = 0.1\nto = 0.9\nstep = 0.1").unwrap(), expected);
        assert_eq!(values("from = 2\nto = 7\nstep = 2").unwrap(), [2, 4, 6].map(Value::Integer));
        assert_eq!(values("from = 0.5\nto = 0.5\nstep = 1").unwrap(), [Value::Float(0.5)]);
    }

    #[test]
    fn a_wrong_range_names_the_number() {
        for (range, path) in [
            ("from = 1\nto = 2\nstep = 0", ".step"),
            ("from = 1\nto = 2\nstep = -1", ".step"),
            ("from = 2\nto = 1\nstep = 1", ".to"),
            ("from = 1\nto = 2", ""),
            ("from = nan\nto = 2\nstep = 1", ".from"),
            ("from = 0\nto = 2\nstep = 1e-9", ".step"),
            ("from = 0\nto = \"2\"\nstep = 1", ".to"),
            ("from = 0\nto = 2\nstep = 1\nstop = 4", ".stop"),
        ] {
            assert_eq!(values(range).unwrap_err().0, path, "{range}");
        }
    }
}
