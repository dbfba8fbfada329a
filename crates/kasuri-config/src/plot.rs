//! `[[plot]]`: checked here, drawn by the Python package.

use super::document::{Document, Part};
use super::error::ConfigError;
use super::shape;
use super::shown::shown;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use toml::Value;

/// The keys of `[[plot]]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used here; the Python package draws")]
pub(super) struct Plot {
    /// The column along the horizontal axis, for example `traffic.load`.
    x: String,
    /// The column along the vertical axis, or several.
    y: Columns,
    /// The column whose values make a curve each, or several whose combinations do.
    series: Option<Columns>,
    /// The heading.
    title: Option<String>,
    /// A logarithmic horizontal axis.
    #[serde(default)]
    log_x: bool,
    /// A logarithmic vertical axis.
    #[serde(default)]
    log_y: bool,
}

/// A column of the results, or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used here; the Python package draws")]
enum Columns {
    One(String),
    Several(Vec<String>),
}

impl Document {
    /// Checks the shape of all plots; whether their columns exist only the results show.
    pub(super) fn check_plots(&self) -> Result<(), ConfigError> {
        let wrong = |value: &Value| self.error("plot", Part::Value, format!("is {}; plots are written as [[plot]]", shown(value)));
        let Some(plots) = self.table().get("plot") else { return Ok(()) };
        for (number, plot) in plots.as_array().ok_or_else(|| wrong(plots))?.iter().enumerate() {
            let table = plot.as_table().ok_or_else(|| wrong(plots))?;
            shape::check(schema_for!(Plot).as_value(), table).map_err(|fault| {
                let part = if fault.at_key { Part::Key } else { Part::Value };
                self.error(&format!("plot.{number}.{}", fault.path), part, fault.message)
            })?;
        }
        Ok(())
    }
}
