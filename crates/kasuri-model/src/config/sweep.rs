//! `[sweep]`: the cartesian product of the values of some keys.

use super::document::{Document, Part, assign, section_problem};
use super::error::ConfigError;
use super::names::{compact, shown, unknown};
use toml::{Table, Value};

/// The largest number of points of a sweep, and of values in one range.
pub const MAX_POINTS: usize = 1_000_000;

/// One run of an experiment: the file's values with those of the sweep put in.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Everything but `[sweep]` and `[[plot]]`.
    pub table: Table,
    /// The swept keys with this point's values, in the order of the file.
    pub assignments: Vec<(String, Value)>,
}

/// All runs of an experiment, made one at a time: [`Document::sweep`].
#[derive(Clone, Debug)]
pub struct Sweep<'a> {
    document: &'a Document,
    /// Everything but `[sweep]` and `[[plot]]`.
    table: Table,
    /// The swept keys with their values, in the order of the file.
    axes: Vec<(String, Vec<Value>)>,
}

impl Sweep<'_> {
    /// How many runs there are.
    pub fn count(&self) -> usize {
        self.axes.iter().map(|(_, values)| values.len()).product()
    }

    /// The run of this number, from 0; the last key varies fastest.
    ///
    /// # Errors
    /// A swept key lies under a key that has a value of its own.
    pub fn point(&self, number: usize) -> Result<Point, ConfigError> {
        let mut table = self.table.clone();
        let mut assignments = Vec::with_capacity(self.axes.len());
        let mut repetitions = self.count();
        for (key, values) in &self.axes {
            repetitions /= values.len();
            let value = &values[number / repetitions % values.len()];
            let problem = |message| self.document.error(&format!("sweep.{key}"), Part::Key, message);
            assign(&mut table, key, value.clone()).map_err(problem)?;
            assignments.push((key.clone(), value.clone()));
        }
        Ok(Point { table, assignments })
    }
}

impl Document {
    /// All runs of the experiment: one without `[sweep]`, else the cartesian product in the order of the file, the last key
    /// fastest.
    ///
    /// # Errors
    /// A wrong `[[plot]]`; a key of `[sweep]` that belongs to no section, an axis without values, a wrong range, more than [`MAX_POINTS`] points.
    pub fn points(&self) -> Result<Vec<Point>, ConfigError> {
        let sweep = self.sweep()?;
        (0..sweep.count()).map(|number| sweep.point(number)).collect()
    }

    /// As [`Document::points`], without making them: a large sweep need not lie in memory.
    ///
    /// # Errors
    /// As [`Document::points`].
    pub fn sweep(&self) -> Result<Sweep<'_>, ConfigError> {
        self.check_plots()?;
        let mut table = self.table().clone();
        table.remove("plot");
        let swept = match table.remove("sweep") {
            Some(Value::Table(swept)) => swept,
            _ => return Ok(Sweep { document: self, table, axes: Vec::new() }),
        };
        if swept.is_empty() {
            return Err(self.error("sweep", Part::Value, "is a sweep over nothing; give a key with values, or leave [sweep] out"));
        }
        let mut sweep = Sweep { document: self, table, axes: Vec::new() };
        for (key, axis) in swept {
            let values = self.axis(&key, &axis)?;
            if sweep.count().saturating_mul(values.len()) > MAX_POINTS {
                return Err(self.error("sweep", Part::Value, format!("has more than {MAX_POINTS} points; split the experiment")));
            }
            sweep.axes.push((key, values));
        }
        Ok(sweep)
    }

    /// The values of one key of `[sweep]`.
    fn axis(&self, key: &str, axis: &Value) -> Result<Vec<Value>, ConfigError> {
        let path = format!("sweep.{key}");
        let section = key.split('.').next().unwrap_or_default();
        if matches!(section, "sweep" | "plot") {
            return Err(self.error(&path, Part::Key, format!("[{section}] itself cannot be swept")));
        }
        if let Some(problem) = section_problem(section) {
            return Err(self.error(&path, Part::Key, problem));
        }
        let values = match axis {
            Value::Array(values) => values.clone(),
            Value::Table(range) => expand(range).map_err(|(inner, message)| self.error(&format!("{path}{inner}"), Part::Value, message))?,
            other => {
                let message = format!("is {}; it must be a list of values, or {{ from = 0.1, to = 0.9, step = 0.1 }}", shown(other));
                return Err(self.error(&path, Part::Value, message));
            }
        };
        if values.is_empty() {
            return Err(self.error(&path, Part::Value, "is a sweep over nothing; give at least one value, or leave the key out"));
        }
        for (position, value) in values.iter().enumerate().take(1000) {
            if values[..position].contains(value) {
                let message = format!("{} stands twice; each value makes a run of its own, so give it once", compact(value));
                return Err(self.error(&format!("{path}.{position}"), Part::Value, message));
            }
        }
        Ok(values)
    }
}

/// The values of `{ from, to, step }`; on error the path within it (with its dot) and a sentence.
fn expand(range: &Table) -> Result<Vec<Value>, (String, String)> {
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
