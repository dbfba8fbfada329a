//! `[measure]`: how long a run lasts and what ends it.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::section::Section;
use kasuri_model::scenario::{ClosedWorkload, TrafficClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a run lasts and what ends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The seed of all random streams of the run.
    pub seed: u64,
    /// The run ends when the 95 % confidence interval's half-width is at most this fraction of the mean.
    pub precision: f64,
    /// The run ends after this many cycles at the latest.
    pub max_cycles: u64,
    /// Cycles before measuring begins, instead of finding the end of the warm-up.
    pub warmup: Option<u64>,
    /// Cycles to measure, instead of measuring to the asked precision.
    pub cycles: Option<u64>,
    /// Search a load instead of measuring at `traffic.load`.
    pub search: Option<Search>,
    /// What ends the run of a closed workload.
    pub until: Until,
    /// Whose rules decide.
    pub rules: Rules,
}

impl Default for Measure {
    fn default() -> Self {
        MeasureSection::default().measure()
    }
}

/// Whose rules decide when a run has settled and when it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rules {
    /// MSER-5 for the warm-up, batch means for the precision.
    Kasuri,
    /// Those of BookSim 2.
    BookSim(BookSimRules),
}

/// The keys of `[measure]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MeasureSection {
    /// The seed of all random streams of the run.
    seed: u64,
    /// The run ends when the 95 % confidence interval's half-width is at most this fraction of the mean, above 0 and below 1.
    precision: f64,
    /// The run ends after this many cycles at the latest.
    max_cycles: u64,
    /// Cycles before measuring begins, instead of finding the end of the warm-up.
    warmup: Option<u64>,
    /// Cycles to measure, instead of measuring to the asked precision.
    cycles: Option<u64>,
    /// Search a load instead of measuring at `traffic.load`.
    search: Option<Search>,
    /// What ends the run of a closed workload: `delivered`, the last message has arrived; `first-terminal`, of batches: the last
    /// message of some terminal has arrived, so that until then all terminals were sending.
    until: Until,
    /// Whose rules decide when the run has settled and when it ends.
    rules: RulesName,
    /// The keys of BookSim's rules.
    booksim: BookSimRules,
}

impl Default for MeasureSection {
    fn default() -> Self {
        Self {
            seed: 1,
            precision: 0.01,
            max_cycles: 1_000_000,
            warmup: None,
            cycles: None,
            search: None,
            until: Until::Delivered,
            rules: RulesName::Kasuri,
            booksim: BookSimRules::default(),
        }
    }
}

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// The least load that the network does not sustain, by bisection.
    Saturation,
}

/// What ends the run of a closed workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// All messages have arrived.
    #[default]
    Delivered,
    /// All messages of one terminal have arrived.
    FirstTerminal,
}

/// The name in `measure.rules`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RulesName {
    /// MSER-5 for the warm-up, batch means for the precision.
    #[default]
    Kasuri,
    /// Sample periods and thresholds as in BookSim 2, under `[measure.booksim]`.
    Booksim,
}

impl MeasureSection {
    /// The section as the rest of the program uses it.
    pub(super) fn measure(self) -> Measure {
        let rules = match self.rules {
            RulesName::Kasuri => Rules::Kasuri,
            RulesName::Booksim => Rules::BookSim(self.booksim),
        };
        let Self { seed, precision, max_cycles, warmup, cycles, search, until, .. } = self;
        Measure { seed, precision, max_cycles, warmup, cycles, search, until, rules }
    }

    /// Refuses impossible values: the key within `[measure]` and a sentence.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !(self.precision > 0.0 && self.precision < 1.0) {
            return Err(("precision", format!("is {}; it must be above 0 and below 1, for example 0.01", self.precision)));
        }
        for (key, cycles) in [("max_cycles", Some(self.max_cycles)), ("cycles", self.cycles)] {
            if cycles == Some(0) {
                return Err((key, "is 0; it must be at least 1 cycle".to_owned()));
            }
        }
        let fixed = self.warmup.unwrap_or(0).saturating_add(self.cycles.unwrap_or(0));
        if fixed > self.max_cycles {
            let key = if self.cycles.is_some() { "cycles" } else { "warmup" };
            let problem = format!(
                "lets the run last {fixed} cycles (warm-up included), more than max_cycles = {}; raise max_cycles or lower it",
                self.max_cycles
            );
            return Err((key, problem));
        }
        if self.until == Until::FirstTerminal && self.rules == RulesName::Booksim {
            return Err(("until", "is \"first-terminal\", which BookSim's rules do not know; leave rules = \"booksim\" out".to_owned()));
        }
        self.booksim.check()
    }
}

/// The keys of `[measure.booksim]`, with BookSim 2's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BookSimRules {
    /// What is measured.
    pub sim_type: SimType,
    /// Cycles between two looks at the statistics.
    pub sample_period: u64,
    /// Sample periods of warm-up; 0: until the statistics change little.
    pub warmup_periods: u32,
    /// Sample periods at most, warm-up included.
    pub max_samples: u32,
    /// The run is unstable when the mean latency exceeds this, cycles.
    pub latency_threshold: f64,
    /// Warm-up ends when the relative change of latency is below this.
    pub warmup_threshold: f64,
    /// Warm-up ends when the relative change of accepted throughput is below this.
    pub acc_warmup_threshold: f64,
    /// Measuring ends when the relative change of latency is at most this, three times in turn.
    pub stopping_threshold: f64,
    /// Measuring ends when the relative change of accepted throughput is at most this, three times in turn.
    pub acc_stopping_threshold: f64,
    /// Also count packets that were created before the measurement and come to the head of their source's queue after it has begun.
    pub count_waiting: bool,
}

impl Default for BookSimRules {
    fn default() -> Self {
        Self {
            sim_type: SimType::Latency,
            sample_period: 1000,
            warmup_periods: 3,
            max_samples: 10,
            latency_threshold: 500.0,
            warmup_threshold: 0.05,
            acc_warmup_threshold: 0.05,
            stopping_threshold: 0.05,
            acc_stopping_threshold: 0.05,
            count_waiting: false,
        }
    }
}

/// BookSim's `sim_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SimType {
    /// Packet latency at a load; a latency above the threshold ends the run as unstable.
    #[default]
    Latency,
    /// Accepted throughput at a load.
    Throughput,
    /// Cycles until a batch has been delivered.
    Batch,
}

impl BookSimRules {
    fn check(&self) -> Result<(), (&'static str, String)> {
        if self.sample_period == 0 {
            return Err(("booksim.sample_period", "is 0; it must be at least 1 cycle".to_owned()));
        }
        if self.max_samples == 0 {
            return Err(("booksim.max_samples", "is 0; it must be at least 1 sample period".to_owned()));
        }
        let thresholds = [
            ("booksim.latency_threshold", self.latency_threshold),
            ("booksim.warmup_threshold", self.warmup_threshold),
            ("booksim.acc_warmup_threshold", self.acc_warmup_threshold),
            ("booksim.stopping_threshold", self.stopping_threshold),
            ("booksim.acc_stopping_threshold", self.acc_stopping_threshold),
        ];
        match thresholds.into_iter().find(|(_, threshold)| *threshold < 0.0) {
            Some((key, threshold)) => Err((key, format!("is {threshold}; a threshold must be 0 or more"))),
            None => Ok(()),
        }
    }
}

pub(super) fn read(context: Context<'_>) -> Result<Measure, ConfigError> {
    let Some(table) = context.table("measure")? else { return Ok(Measure::default()) };
    let section = Section::new(context, "measure", table);
    let measure: MeasureSection = section.whole()?;
    measure.check().map_err(|(key, problem)| section.error(key, problem))?;
    Ok(measure.measure())
}

/// A terminal that finishes is one with a batch of its own.
pub(super) fn check_end(
    context: Context<'_>,
    measure: &Measure,
    classes: &[TrafficClass],
    workload: Option<&ClosedWorkload>,
) -> Result<(), ConfigError> {
    let batches = workload.is_none() && !classes.is_empty() && classes.iter().all(|class| class.packets_per_terminal.is_some());
    if measure.until == Until::FirstTerminal && !batches {
        let problem = "is \"first-terminal\", which asks for a batch of each terminal: traffic.process = \"batch\"; or leave it out";
        return Err(context.error("measure.until", Part::Value, problem));
    }
    Ok(())
}
