//! Networks of fabrics as they are built against counts, distances and digests that a program without any of this code has made.

use serde_json::Value;
use std::process::Command;

/// The columns of a row; the text of a JSON value as the table writes it.
fn text(column: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if column == "mean_hops" => format!("{:.6}", number.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}

fn topology(arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_kasuri")).arg("topology").args(arguments).args(["--format", "json"]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Builds every row of `tests/data/fabrics/networks.csv`, by its first two columns.
#[test]
fn every_network_of_the_table_is_built_exactly() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/fabrics/networks.csv");
    let mut table = csv::Reader::from_path(path).unwrap();
    let heads: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in table.records() {
        let row = row.unwrap();
        rows += 1;
        match topology(&[&row[0], &row[1]]) {
            Err(problem) => wrong.push(format!("{} {}: {problem}", &row[0], &row[1])),
            Ok(found) => {
                for (column, wanted) in heads.iter().zip(&row) {
                    let found = text(column, &found[column]);
                    if found != wanted {
                        wrong.push(format!("{} {}: {column} is {found}, not {wanted}", &row[0], &row[1]));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(rows, 123);
}
