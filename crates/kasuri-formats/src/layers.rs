//! Layer tables of ASTRA-sim 1.0 and SimAI (AICB): the parallelism, the number of layers, a line for each layer.
//!
//! A layer has its name, the layer on which it depends (not used), and three times the time in nanoseconds, the collective and its bytes:
//! forward, input gradient, weight gradient; then the time of an update. Source: `Workload.cc` of aliyun/SimAI at cef83f9.

use crate::error::FormatError;
use crate::names::unknown;
use crate::text::{short, text_of};
use kasuri_workload::execution::layers::{Among, Exchange, Layer, LayerTable, Parallelism, Phase, Step, Transformer};
use kasuri_workload::execution::trace::{MAX_NS, Operation};
use std::collections::BTreeSet;

/// Parallelisms that are read.
const PARALLELISMS: [&str; 7] =
    ["DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "MICRO", "HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD"];

/// Collectives by their names in a table.
const COLLECTIVES: [(&str, Operation); 4] = [
    ("ALLREDUCE", Operation::AllReduce),
    ("ALLGATHER", Operation::AllGather),
    ("REDUCESCATTER", Operation::ReduceScatter),
    ("ALLTOALL", Operation::AllToAll),
];

/// The words of a layer's line.
const COLUMNS: [&str; 12] = [
    "the name",
    "the dependency",
    "the forward time",
    "the forward collective",
    "the forward bytes",
    "the input-gradient time",
    "the input-gradient collective",
    "the input-gradient bytes",
    "the weight-gradient time",
    "the weight-gradient collective",
    "the weight-gradient bytes",
    "the update time",
];

/// Reads a table.
///
/// # Errors
/// A parallelism that is not known, a header without what it needs, more or fewer layers than the second line says, a line with more or
/// fewer than 12 words, a collective or a number that is none: each with its line.
pub fn parse(name: &str, bytes: &[u8]) -> Result<LayerTable, FormatError> {
    let text = text_of(name, bytes)?;
    let mut lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let at = |line: usize| move |problem: String| FormatError::new(name, line, problem);
    let (first, line) = lines.next().ok_or_else(|| at(1)("the file is empty; a layer table begins with its parallelism".to_owned()))?;
    let Header { parallelism, ignored, job } = header(line).map_err(at(first))?;
    let (second, line) = lines.next().ok_or_else(|| at(first + 1)("is missing; it is the number of layers".to_owned()))?;
    let count: usize = line.parse().map_err(|_| at(second)(format!("has `{}` for the number of layers", short(line))))?;
    let mut last = second;
    let mut layers = Vec::new();
    for (number, line) in lines {
        if layers.len() == count {
            return Err(at(number)(format!("is one layer more than the {count} of line {second}")));
        }
        layers.push(layer(line).map_err(at(number))?);
        last = number;
    }
    if layers.is_empty() || layers.len() < count {
        return Err(at(last)(format!(
            "is the last line, after {} of the {count} layers of line {second}; is the file cut off?",
            layers.len()
        )));
    }
    let table = LayerTable { parallelism, layers, ignored, job };
    check_layers(&table).map_err(at(first))?;
    Ok(table)
}

/// What the first line says.
struct Header {
    parallelism: Parallelism,
    ignored: Vec<String>,
    /// All GPUs, and stages of the pipeline.
    job: Option<(u64, u64)>,
}

fn header(line: &str) -> Result<Header, String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let parallelism = match name {
        "DATA" => Parallelism::Data,
        "MODEL" => Parallelism::Model,
        "HYBRID_DATA_MODEL" => Parallelism::ModelThenData,
        "HYBRID_MODEL_DATA" => Parallelism::DataThenModel,
        "MICRO" => Parallelism::Micro,
        "HYBRID_TRANSFORMER" | "HYBRID_TRANSFORMER_FWD_IN_BCKWD" => return transformer(words),
        other => return Err(unknown("parallelism", &short(other), PARALLELISMS)),
    };
    match words.next() {
        None => Ok(Header { parallelism, ignored: Vec::new(), job: None }),
        Some(word) => Err(format!("unexpected `{}` after {name}", short(word))),
    }
}

/// The words after HYBRID_TRANSFORMER: keys with numbers.
fn transformer<'a>(words: impl Iterator<Item = &'a str>) -> Result<Header, String> {
    let mut words = words.peekable();
    let (mut tensor, mut expert, mut ignored) = (None, 1, Vec::new());
    let (mut all, mut stages) = (None, 1);
    let (mut checkpoints, mut recomputations) = (BTreeSet::new(), BTreeSet::new());
    while let Some(key) = words.next() {
        match key.trim_end_matches(':') {
            "model_parallel_NPU_group" => tensor = Some(npus(key, &mut words)?),
            "ep" => expert = npus(key, &mut words)?,
            "checkpoints" => checkpoints = numbers(key, &mut words)?,
            "checkpoint_initiates" => recomputations = numbers(key, &mut words)?,
            // The layers of a stage.
            "vpp" => drop(number(key, &mut words)?),
            "all_gpus" => all = Some(number(key, &mut words)?),
            word @ ("pp" | "ga" | "pp_comm") => {
                let value = number(key, &mut words)?;
                if value > u64::from(word != "pp_comm") {
                    ignored.push(format!("{word} {value}"));
                }
                stages = if word == "pp" { value } else { stages };
            }
            other => {
                words.next_if(|word| word.parse::<f64>().is_ok());
                ignored.push(other.to_owned());
            }
        }
    }
    let tensor = tensor.ok_or("has no `model_parallel_NPU_group: N`, the number of NPUs that share each layer")?;
    let parallelism = Parallelism::Transformer(Transformer { tensor, expert, checkpoints, recomputations });
    Ok(Header { parallelism, ignored, job: all.map(|all| (all, stages)) })
}

/// The number behind a key.
fn number<'a>(key: &str, words: &mut impl Iterator<Item = &'a str>) -> Result<u64, String> {
    let word = words.next().ok_or_else(|| format!("ends after `{}`, which has a number behind it", short(key)))?;
    word.parse().map_err(|_| format!("has `{}` behind `{}`; it must be a whole number", short(word), short(key)))
}

/// A number of NPUs.
fn npus<'a>(key: &str, words: &mut impl Iterator<Item = &'a str>) -> Result<u32, String> {
    let value = number(key, words)?;
    u32::try_from(value).map_err(|_| format!("has {value} behind `{key}`; it must be below 2^32"))
}

/// The numbers of layers behind a key and their count.
fn numbers<'a>(key: &str, words: &mut impl Iterator<Item = &'a str>) -> Result<BTreeSet<usize>, String> {
    let count = number(key, words)?;
    (0..count).map(|_| number(key, words).map(|layer| layer as usize)).collect()
}

fn layer(line: &str) -> Result<Layer, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() != COLUMNS.len() {
        let missing = COLUMNS.get(words.len()).map(|column| format!(" ({column} is missing)")).unwrap_or_default();
        return Err(format!("has {} words{missing}; a layer has {}", words.len(), COLUMNS.len()));
    }
    let number = |column: usize| {
        let wrong = || format!("has `{}` for {}; it must be a whole number, 0 or more", short(words[column]), COLUMNS[column]);
        words[column].parse::<u64>().map_err(|_| wrong())
    };
    let time = |column: usize| {
        let ns = number(column)?;
        let wrong = || format!("has {ns} ns for {}; at most 2^60 ns (36 years) are simulated", COLUMNS[column]);
        if ns <= MAX_NS { Ok(ns) } else { Err(wrong()) }
    };
    let step = |column: usize| {
        let compute_ns = time(column)?;
        let bytes = number(column + 2)?;
        let exchange = exchange(words[column + 1], bytes).ok_or_else(|| {
            let names = COLLECTIVES.map(|(name, _)| name).join(", ");
            format!(
                "has `{}` for {}; it must be NONE, {names}, or one of these with _EP or _DP_EP behind it",
                short(words[column + 1]),
                COLUMNS[column + 1]
            )
        })?;
        Ok::<_, String>(Step { compute_ns, exchange })
    };
    Ok(Layer { name: words[0].into(), forward: step(2)?, input_gradient: step(5)?, weight_gradient: step(8)?, update_ns: time(11)? })
}

/// The exchange of a word and so many bytes: none for NONE or 0 bytes. `None`: no such word.
fn exchange(word: &str, bytes: u64) -> Option<Option<Exchange>> {
    if word == "NONE" {
        return Some(None);
    }
    let (_, operation, behind) = COLLECTIVES.iter().find_map(|&(name, operation)| Some((name, operation, word.strip_prefix(name)?)))?;
    let among = match behind {
        "" => Among::Usual,
        "_EP" => Among::Experts,
        "_DP_EP" => Among::SameExperts,
        _ => return None,
    };
    Some((bytes > 0).then_some(Exchange { operation, among, bytes }))
}

/// Groups of experts are those of transformers, and checkpoints are layers.
fn check_layers(table: &LayerTable) -> Result<(), String> {
    let layers = table.layers.len();
    if let Parallelism::Transformer(Transformer { checkpoints, recomputations, .. }) = &table.parallelism {
        return match checkpoints.iter().chain(recomputations).find(|&&layer| layer >= layers) {
            Some(layer) => Err(format!("names layer {layer} for a checkpoint; the layers are 0 to {}", layers - 1)),
            None => Ok(()),
        };
    }
    let is_of_experts = |exchange: Exchange| exchange.among != Among::Usual;
    let has_experts = |layer: &Layer| Phase::ALL.iter().any(|&phase| layer.step(phase).exchange.is_some_and(is_of_experts));
    match table.layers.iter().find(|layer| has_experts(layer)) {
        Some(layer) => {
            Err(format!("has no experts, but layer `{}` exchanges among them (_EP); HYBRID_TRANSFORMER_FWD_IN_BCKWD has", layer.name))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
