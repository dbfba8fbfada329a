//! What users of one machine lose to each other: their times together against those of runs in which each is alone.

use crate::results::{self, RunRow};
use serde_json::Value;
use std::collections::BTreeMap;

/// The key that names the only user that runs; empty where all do.
const ALONE: &str = "users.alone";

/// The columns of a user that tell how long its work takes, the one that says most first: of a workload, of open traffic.
const TIMES: [&str; 2] = ["completion_time", "packet_latency_mean"];

/// The runs of a sweep over `users.alone` in which a user is alone.
#[derive(Debug)]
pub struct Alone<'a> {
    names: Vec<&'a str>,
    /// By what else the run has of its input, and the user.
    rows: BTreeMap<(String, &'a str), &'a RunRow>,
}

impl<'a> Alone<'a> {
    /// Those among some runs.
    pub fn of(rows: &'a [RunRow]) -> Self {
        let is_input = |name: &&str| (results::is_input(name) || *name == "engine") && *name != ALONE;
        let names: Vec<&str> = results::names(rows).into_iter().filter(is_input).collect();
        let mut found = Self { names, rows: BTreeMap::new() };
        for row in rows {
            let user = row.text(ALONE);
            if !user.is_empty() {
                found.rows.insert((found.question(row), user), row);
            }
        }
        found
    }

    /// All of a run's input but who is alone.
    fn question(&self, row: &RunRow) -> String {
        self.names.iter().map(|name| row.get(name).to_string()).collect::<Vec<_>>().join("\n")
    }

    /// How many times as long a user takes in a run as in the one that differs in nothing but that the user is alone: until its workload ends, or
    /// of open traffic a packet in the mean. `None` where it is alone, or nobody has run it alone.
    pub fn slowdown(&self, row: &RunRow, user: &str) -> Option<f64> {
        if !row.text(ALONE).is_empty() {
            return None;
        }
        let alone = self.rows.get(&(self.question(row), user))?;
        let [together, alone] = [row, alone].map(|row| of_user(row, user));
        let time = |of: Option<&Value>, column: &str| of.and_then(|of| of[column].as_f64());
        TIMES.iter().find_map(|column| Some(time(together, column)? / time(alone, column).filter(|&time| time > 0.0)?))
    }
}

/// What a row tells of a user.
fn of_user<'a>(row: &'a RunRow, user: &str) -> Option<&'a Value> {
    row.get("users").as_array()?.iter().find(|of| of["name"] == user)
}
