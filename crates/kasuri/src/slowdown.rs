//! The slowdown of users of a shared machine: their times together against those of lone runs.

use crate::results::{self, RunRow};
use serde_json::Value;
use std::collections::BTreeMap;

/// The key with the only user of a run; empty for all users.
const ALONE_KEY: &str = "users.alone";

/// The columns with the time of a user's work, the most meaningful first: of a workload, of open traffic.
const TIMES: [&str; 2] = ["completion_time", "packet_latency_mean"];

/// The runs of a sweep over `users.alone` with a single user.
#[derive(Debug)]
pub struct LoneRuns<'a> {
    names: Vec<&'a str>,
    /// By the other input of the run, and the user.
    rows: BTreeMap<(String, &'a str), &'a RunRow>,
}

impl<'a> LoneRuns<'a> {
    /// The lone runs among some runs.
    pub fn of(rows: &'a [RunRow]) -> Self {
        let is_input = |name: &&str| (results::is_input(name) || *name == "engine") && *name != ALONE_KEY;
        let names: Vec<&str> = results::names(rows).into_iter().filter(is_input).collect();
        let mut found = Self { names, rows: BTreeMap::new() };
        for row in rows {
            let user = row.text(ALONE_KEY);
            if !user.is_empty() {
                found.rows.insert((found.question(row), user), row);
            }
        }
        found
    }

    /// All input of a run except `users.alone`.
    fn question(&self, row: &RunRow) -> String {
        self.names.iter().map(|name| row.get(name).to_string()).collect::<Vec<_>>().join("\n")
    }

    /// The time of a user in a run, over that in the run that differs only in being the user's lone run: until its workload ends, or the
    /// mean of a packet of open traffic. `None` for a lone run, or without one.
    pub fn slowdown(&self, row: &RunRow, user: &str) -> Option<f64> {
        if !row.text(ALONE_KEY).is_empty() {
            return None;
        }
        let alone = self.rows.get(&(self.question(row), user))?;
        let [together, alone] = [row, alone].map(|row| of_user(row, user));
        let time = |of: Option<&Value>, column: &str| of.and_then(|of| of[column].as_f64());
        TIMES.iter().find_map(|column| Some(time(together, column)? / time(alone, column).filter(|&time| time > 0.0)?))
    }
}

/// The object of a user in a row.
fn of_user<'a>(row: &'a RunRow, user: &str) -> Option<&'a Value> {
    row.get("users").as_array()?.iter().find(|of| of["name"] == user)
}
