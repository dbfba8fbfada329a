//! The system: how collectives become messages, and what an NPU can do.

use super::{line_of, object, shown};
use crate::error::FormatError;
use kasuri_workload::execution::cluster::{Choice, Implementation, Optimization, Pattern, System};
use serde_json::{Map, Value};

/// Keys that are read, but change no time.
const WITHOUT_EFFECT: [&str; 7] = [
    "scheduling-policy",
    "boost-mode",
    "trace-enabled",
    "track-local-mem",
    "local-mem-trace-filename",
    "local-reduction-delay",
    "per-node-custom-implementation",
];
/// The bus between an NPU and its memory.
const BUS: [&str; 4] = ["L", "o", "g", "G"];

/// Reads a system, and the name of the file with traces of single nodes, if it names one.
///
/// # Errors
/// No JSON, a value of the wrong kind, an unknown name of an implementation, a bus that is not modelled.
pub fn system(name: &str, bytes: &[u8]) -> Result<(System, Option<String>), FormatError> {
    let reader = Reader { name, bytes, keys: object(name, bytes, "a system")? };
    let policy = reader.word("scheduling-policy", &["LIFO", "FIFO", "EXPLICIT"])?;
    let _ = policy;
    let optimization = match reader.word("collective-optimization", &["baseline", "localBWAware"])?.as_deref() {
        Some("localBWAware") => Optimization::LocalBandwidthAware,
        _ => Optimization::Baseline,
    };
    if reader.flag("model-shared-bus")? {
        return Err(reader.error("model-shared-bus", "is 1; the bus between an NPU and its memory is not modelled, it must be 0"));
    }
    let mut system = System {
        endpoint_delay_ns: reader.whole("endpoint-delay", 0, i32::MAX as u64)?.unwrap_or(10),
        active_chunks: reader.whole("active-chunks-per-dimension", 1, i32::MAX as u64)?.unwrap_or(1) as u32,
        splits: reader.whole("preferred-dataset-splits", 1, i32::MAX as u64)?,
        optimization,
        memory_gb_s: reader.positive("local-mem-bw")?,
        peak_tflops: reader.positive("peak-perf")?,
        roofline: reader.flag("roofline-enabled")?,
        replay_only: reader.flag("replay-only")?,
        ..System::default()
    };
    for pattern in Pattern::ALL {
        if let Some(choices) = reader.implementations(pattern)? {
            system.implementations.insert(pattern, choices);
        }
        if let Some(prefix) = reader.custom(pattern)? {
            system.custom.insert(pattern, prefix);
        }
    }
    if system.roofline && (system.memory_gb_s.is_none() || system.peak_tflops.is_none()) {
        return Err(reader.error("roofline-enabled", "needs local-mem-bw and peak-perf"));
    }
    system.ignored = reader.ignored();
    let nodes = match reader.keys.get("per-node-custom-implementation") {
        None => None,
        Some(Value::String(path)) => Some(path.clone()),
        Some(other) => return Err(reader.wrong("per-node-custom-implementation", other, "the name of a file")),
    };
    Ok((system, nodes))
}

struct Reader<'a> {
    name: &'a str,
    bytes: &'a [u8],
    keys: Map<String, Value>,
}

impl Reader<'_> {
    fn error(&self, key: &str, problem: &str) -> FormatError {
        FormatError::new(self.name, line_of(self.bytes, key), format!("{key} {problem}"))
    }

    fn wrong(&self, key: &str, value: &Value, wanted: &str) -> FormatError {
        self.error(key, &format!("is {}; it must be {wanted}", shown(value)))
    }

    fn word(&self, key: &str, known: &[&str]) -> Result<Option<String>, FormatError> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Value::String(word)) if known.contains(&word.as_str()) => Ok(Some(word.clone())),
            Some(other) => Err(self.wrong(key, other, &format!("one of {}", known.join(", ")))),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, FormatError> {
        match self.keys.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(value) => value.as_f64().map(|number| number != 0.0).ok_or_else(|| self.wrong(key, value, "0 or 1")),
        }
    }

    /// A whole number; one with a fraction is cut off, as ASTRA-sim does.
    fn whole(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, FormatError> {
        let Some(value) = self.keys.get(key) else { return Ok(None) };
        let number = value.as_f64().filter(|number| *number >= least as f64 && *number <= most as f64).map(|number| number as u64);
        number.map(Some).ok_or_else(|| self.wrong(key, value, &format!("a number, {least} to {most}")))
    }

    fn positive(&self, key: &str) -> Result<Option<f64>, FormatError> {
        let Some(value) = self.keys.get(key) else { return Ok(None) };
        let number = value.as_f64().filter(|number| *number > 0.0 && number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(key, value, "a number above 0"))
    }

    fn implementations(&self, pattern: Pattern) -> Result<Option<Vec<Choice>>, FormatError> {
        let key = format!("{}-implementation", pattern.name());
        let Some(value) = self.keys.get(&key) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(self.wrong(&key, value, "a list of names, one for each dimension")) };
        let choices = items.iter().map(|item| {
            let choice = item.as_str().and_then(choice);
            choice.ok_or_else(|| {
                let known =
                    "ring, direct, directN, halvingDoubling, doubleBinaryTree, oneRing, oneDirect, oneDirectN or oneHalvingDoubling";
                self.error(&key, &format!("names {}; it must be {known}", shown(item)))
            })
        });
        Ok(Some(choices.collect::<Result<_, _>>()?))
    }

    fn custom(&self, pattern: Pattern) -> Result<Option<String>, FormatError> {
        let key = format!("{}-implementation-custom", pattern.name());
        match self.keys.get(&key) {
            None => Ok(None),
            Some(Value::Array(items)) if items.len() == 1 && items[0].is_string() => Ok(items[0].as_str().map(str::to_owned)),
            Some(other) => Err(self.wrong(&key, other, "a list with one prefix of a trace")),
        }
    }

    fn ignored(&self) -> Vec<String> {
        const NUMBERS: [&str; 10] = [
            "endpoint-delay",
            "active-chunks-per-dimension",
            "preferred-dataset-splits",
            "local-mem-bw",
            "peak-perf",
            "roofline-enabled",
            "replay-only",
            "collective-optimization",
            "model-shared-bus",
            "custom",
        ];
        let implementations = |key: &str| {
            Pattern::ALL.iter().any(|pattern| {
                let rest = key.strip_prefix(pattern.name());
                matches!(rest, Some("-implementation" | "-implementation-custom"))
            })
        };
        let known = |key: &str| WITHOUT_EFFECT.contains(&key) || BUS.contains(&key) || NUMBERS.contains(&key) || implementations(key);
        self.keys.keys().filter(|key| !known(key)).cloned().collect()
    }
}

/// The implementation of this name.
fn choice(name: &str) -> Option<Choice> {
    let window = |digits: &str| match digits {
        "" => Some(None),
        digits => digits.parse().ok().filter(|&window| window > 0).map(Some),
    };
    let (rest, over_all) = match name.strip_prefix("one") {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let implementation = match (rest, over_all) {
        ("ring", false) | ("Ring", true) => Implementation::Ring,
        ("halvingDoubling", false) | ("HalvingDoubling", true) => Implementation::HalvingDoubling,
        ("doubleBinaryTree", false) => Implementation::DoubleBinaryTree,
        _ => {
            let digits = rest.strip_prefix(if over_all { "Direct" } else { "direct" })?;
            Implementation::Direct { window: window(digits)? }
        }
    };
    Some(Choice { implementation, over_all })
}
