//! A permutation from a file.

use kasuri_formats::traffic::parse_permutation;
use kasuri_network::registry::Member;
use kasuri_workload::traffic::pattern::fixed::Fixed;
use kasuri_workload::traffic::pattern::{Pattern, PatternContext, PatternError, TrafficPattern};
use schemars::JsonSchema;
use serde::Deserialize;

/// The destination of each terminal from a text file: one destination per line, or `source destination` pairs.
///
/// Terminals stand by number, or by name where the network gives them names. No terminal may be the destination of two. With pairs, a terminal that is no source sends nothing. `#` starts a comment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// The file, relative to the experiment file.
    pub path: String,
}

impl Member for Permutation {
    const NAME: &'static str = "permutation";
    const SUMMARY: &'static str = "the destination of each terminal from a file";
    const SOURCE: &'static str = "Dally and Towles (2004), section 3.2: permutation traffic";
    const EXAMPLE: &'static str = "path = \"permutation.txt\"";
}

impl TrafficPattern for Permutation {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let wrong = |problem| PatternError::Parameter { key: "path".to_owned(), problem };
        let bytes = context.files.read(&self.path).map_err(wrong)?;
        let destinations = parse_permutation(&self.path, &bytes, context.network);
        Ok(Fixed::partial(destinations.map_err(|error| wrong(error.to_string()))?))
    }
}
