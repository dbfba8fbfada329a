//! A traffic matrix from a file.

use kasuri_formats::traffic::parse_matrix;
use kasuri_network::registry::Member;
use kasuri_workload::traffic::pattern::weighted::Weighted;
use kasuri_workload::traffic::pattern::{Pattern, PatternContext, PatternError, TrafficPattern};
use schemars::JsonSchema;
use serde::Deserialize;

/// Destinations drawn by the rows of a matrix of weights: row s, column d is what terminal s sends to d.
///
/// Every terminal with a positive weight offers the same load, and one without sends nothing; with `normalise = false` the sums of the rows
/// count. The first line may name the destinations of the columns; then each other line begins with its source. Weights are separated by blanks or commas, one row per line; `#` starts a comment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// The file, relative to the experiment file.
    pub path: String,
    /// Does every terminal with a positive weight offer the load? Otherwise those with the greatest sum of weights offer it, and the others
    /// less, in proportion to their sums.
    #[serde(default = "yes")]
    pub normalise: bool,
}

fn yes() -> bool {
    true
}

impl Member for Matrix {
    const NAME: &'static str = "matrix";
    const SUMMARY: &'static str = "destinations drawn by the rows of a matrix from a file";
    const SOURCE: &'static str = "Dally and Towles (2004), section 3.2: the traffic matrix";
    const EXAMPLE: &'static str = "path = \"matrix.txt\"";
}

impl TrafficPattern for Matrix {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let wrong = |problem| PatternError::Parameter { key: "path".to_owned(), problem };
        let bytes = context.files.read(&self.path).map_err(wrong)?;
        let rows = parse_matrix(&self.path, &bytes, context.network).map_err(|error| wrong(error.to_string()))?;
        Ok(if self.normalise { Weighted::pattern(rows) } else { Weighted::by_sums(rows) })
    }
}
