//! The list of an experiment's runs, for processes that share them: the output of `kasuri run --plan`, the parts chosen by `--shard` and
//! `--points-from`, and the table of `kasuri collect`.
//!
//! ```text
//! OUT/plan.jsonl     a line about the whole (version, number of runs), then a line for each run: its key, the head of its row, its cost
//! ```

use crate::checksums::{Table, damage, is_whole, read_table, sealed};
use crate::estimate::{Costs, Total, Work};
use crate::input::{FolderFiles, KNOWN, read_experiment};
use crate::plan::{RESULTS_VERSION, RunError, Runs, Summary, assignments};
use crate::record;
use crate::results::{RowHead, RunRow, SCHEMA_VERSION};
use crate::store::{Access, EFFECTIVE, Store, StoreError, StoredRun};
use kasuri_config::Document;
use kasuri_network::topology::Files;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The identity of a program that two processes must share to compute runs of one experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The version of kasuri.
    pub kasuri: String,
    /// [`RESULTS_VERSION`].
    pub results: u64,
    /// [`SCHEMA_VERSION`].
    pub schema: u64,
    /// The sources of the build: two builds between releases have one version. Empty in lists of older programs.
    #[serde(default)]
    pub build: String,
    /// Processor and operating system.
    pub platform: String,
}

impl Identity {
    /// That of this program.
    pub fn own() -> Self {
        Self {
            kasuri: env!("CARGO_PKG_VERSION").to_owned(),
            results: RESULTS_VERSION,
            schema: SCHEMA_VERSION,
            build: env!("KASURI_BUILD").to_owned(),
            platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kasuri, results, schema, build, platform } = self;
        write!(formatter, "{kasuri} (results {results}, layout {schema}, build {build}, {platform})")
    }
}

/// Errors of a list of runs.
#[derive(Debug, Error)]
pub enum ListingError {
    /// An experiment or its runs.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The folder of results.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no list.
    #[error("{}: there is no list of runs (plan.jsonl) and no table (runs.json); `kasuri run FILE --out {} --plan` writes the list", folder.display(), folder.display())]
    Missing {
        /// The folder of results.
        folder: PathBuf,
    },
    /// The list is damaged.
    #[error("{}, line {line}: {problem}; `kasuri run FILE --plan` writes it again", path.display())]
    Damaged {
        /// The list.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// The table is damaged.
    #[error("{}: {problem}; `kasuri run` writes it again", path.display())]
    DamagedTable {
        /// The table.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Another kasuri made the folder.
    #[error(
        "{}: kasuri {found} planned the runs of this folder, this is kasuri {own}; use that version, or another folder with --out",
        folder.display()
    )]
    Version {
        /// The folder of results.
        folder: PathBuf,
        /// The program that made it.
        found: Box<Identity>,
        /// This program.
        own: Box<Identity>,
    },
    /// An invalid part.
    #[error("--shard {text}: {problem}")]
    Shard {
        /// As given.
        text: String,
        /// The remedy.
        problem: &'static str,
    },
}

impl ListingError {
    /// The exit status: 2 if the input has to be changed, 1 if the machine failed.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Run(error) => error.exit_status(),
            Self::Store(error) if !error.is_usage() => 1,
            _ => 2,
        }
    }
}

/// The first line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ListHead {
    #[serde(flatten)]
    identity: Identity,
    /// The experiment file.
    document: String,
    /// Lines that follow.
    runs: usize,
    /// A hash over their keys, which identifies the list.
    experiment: String,
    /// The files that they name, relative to the experiment file.
    files: Vec<String>,
    /// The text of the experiment as it is run, for the table of [`collect`]. Missing in lists of older programs.
    #[serde(default)]
    input: Option<String>,
}

/// One run in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    key: String,
    number: usize,
    title: String,
    engine: String,
    seed: u64,
    inputs: Map<String, Value>,
    cpu_seconds: f64,
    memory_mib: f64,
}

impl Line {
    fn head(self) -> Result<RowHead, String> {
        let engine = KNOWN.engine_names().find(|name| *name == self.engine);
        let engine = engine.ok_or_else(|| format!("unknown engine `{}`", self.engine))?;
        Ok(RowHead { key: self.key, title: self.title, engine, seed: self.seed, inputs: self.inputs.into_iter().collect() })
    }
}

/// One run with the data to compute it.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// Its position in the sweep, from 0.
    pub number: usize,
    /// Its key.
    pub key: String,
    /// Its size.
    pub work: Work,
    /// The swept keys with their values, separated by tabs.
    pub assignments: String,
}

/// All runs of an experiment, checked.
pub struct Listing<'a> {
    runs: Runs<'a>,
    about: ListHead,
    costs: Costs,
}

impl std::fmt::Debug for Listing<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Listing").field("about", &self.about).finish_non_exhaustive()
    }
}

impl<'a> Listing<'a> {
    /// Checks all runs of an experiment and lists them with their `costs`.
    ///
    /// # Errors
    /// The first error of any run.
    pub fn of(document: &'a Document, files: &'a (dyn Files + Sync), costs: &Costs) -> Result<Self, RunError> {
        let runs = Runs::all(*KNOWN, document, files)?;
        let mut keys = blake3::Hasher::new();
        runs.planned().iter().for_each(|run| {
            keys.update(run.key.to_string().as_bytes());
        });
        let about = ListHead {
            identity: Identity::own(),
            document: document.name().to_owned(),
            runs: runs.planned().len(),
            experiment: experiment_of(&keys),
            files: runs.named_files().map(|(name, _)| name.to_owned()).collect(),
            input: None,
        };
        Ok(Self { runs, about, costs: costs.clone() })
    }

    /// The runs in the order of the table.
    pub fn runs(&self) -> impl Iterator<Item = Result<ListedRun, RunError>> {
        self.runs.planned().iter().map(|run| {
            let assignments = assignments(&self.runs.point(run)?);
            Ok(ListedRun { number: run.number(), key: run.key.to_string(), work: run.work, assignments })
        })
    }

    /// Their cost together.
    pub fn total(&self, costs: &Costs) -> Total {
        Total::of(costs, self.runs.planned().iter().map(|run| run.work))
    }

    /// Writes the list into a folder of results, for [`collect`], and the experiment as it is run. A list of the same runs stays as it is.
    ///
    /// # Errors
    /// Another version of kasuri made the folder, or it cannot be written.
    pub fn keep(&self, store: &Store) -> Result<(), ListingError> {
        let about = ListHead { input: Some(record::keep(&self.runs, store)?), ..self.about.clone() };
        match read_about(store) {
            Ok(None) | Err(ListingError::Damaged { .. }) => {}
            Err(error) => return Err(error),
            Ok(Some(kept)) => {
                check_identity(store, &kept)?;
                if kept == about && read_lines(store, &kept, |_| Ok(())).is_ok() {
                    return Ok(());
                }
            }
        }
        let lines = self.runs.planned().iter().map(|run| {
            let head = self.runs.head(run, &self.runs.point(run)?);
            let RowHead { key, title, engine, seed, inputs } = head;
            let (cpu_seconds, memory_mib) = (self.costs.seconds(&run.work), self.costs.memory_mib(&run.work));
            let (number, engine, inputs) = (run.number(), engine.to_owned(), inputs.into_iter().collect());
            Ok(to_line(&Line { key, number, title, engine, seed, inputs, cpu_seconds, memory_mib }))
        });
        store.keep_plan(std::iter::once(Ok(to_line(&about))).chain(lines))
    }

    /// Numbers of the runs of one of several parts of about equal cost: the longest run to the first, the next to the second, and so on.
    /// All processes deal in the same way, independent of their machines.
    pub fn shard(&self, shard: Shard) -> Vec<usize> {
        let mut order: Vec<_> = self.runs.planned().iter().collect();
        order.sort_by(|one, other| other.work.order(&one.work).then(one.number().cmp(&other.number())));
        let parts = shard.of as usize;
        // There and back again, so that the first part does not get the longest of every round.
        let is_ours = |position: usize| {
            let (round, place) = (position / parts, position % parts);
            shard.index as usize == 1 + if round % 2 == 0 { place } else { parts - 1 - place }
        };
        let mut numbers: Vec<usize> =
            order.iter().enumerate().filter(|&(position, _)| is_ours(position)).map(|(_, run)| run.number()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Numbers of the runs in a text with a line for each: its key, then optionally its number, as `kasuri run --plan` prints them.
    ///
    /// # Errors
    /// A line names a run that is not in this list.
    pub fn numbers(&self, text: &str) -> Result<Vec<usize>, RunError> {
        let keys: BTreeMap<String, usize> = self.runs.planned().iter().map(|run| (run.key.to_string(), run.number())).collect();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(position, line)| {
                let key = line.split_whitespace().next().unwrap_or_default();
                let problem = || format!("line {} of --points-from: none of the {} runs has the key `{key}`", position + 1, keys.len());
                keys.get(key).copied().ok_or_else(|| RunError::Listed { document: self.about.document.clone(), problem: problem() })
            })
            .collect()
    }
}

/// Keys and numbers of a list of runs, if every line has both: then only these runs need to be checked.
pub fn keys_and_numbers(text: &str) -> Option<Vec<(&str, usize)>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.parse().ok()?))
        })
        .collect()
}

/// A line of a list with its checksum.
fn to_line(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("maps with text as keys and finite numbers are always JSON");
    format!("{}\n", sealed(value))
}

/// The content of a line of a list; lines of older programs have no checksum and are accepted.
fn unsealed<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    let value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if !is_whole(&value) {
        return Err("the list is damaged (its checksum differs)".to_owned());
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The hash over the keys of all runs in turn.
fn experiment_of(keys: &blake3::Hasher) -> String {
    keys.finalize().to_hex()[..32].to_owned()
}

/// One of several parts of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl std::str::FromStr for Shard {
    type Err = ListingError;

    /// Reads `2/8`: the second of eight parts.
    fn from_str(text: &str) -> Result<Self, ListingError> {
        let error = |problem| ListingError::Shard { text: text.to_owned(), problem };
        let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            None => Err(error("write I/N, two whole numbers: part I of N, the first is 1")),
            Some((index, of)) if index == 0 || index > of => Err(error("the first part is 1, the last one N/N")),
            Some((index, of)) => Ok(Self { index, of }),
        }
    }
}

/// Refuses a folder with runs planned by another version.
///
/// # Errors
/// Another version made the folder, or the list cannot be read.
pub fn check_version(store: &Store) -> Result<(), ListingError> {
    read_about(store)?.map_or(Ok(()), |about| check_identity(store, &about))
}

fn check_identity(store: &Store, about: &ListHead) -> Result<(), ListingError> {
    let own = Identity::own();
    // Runs of another build with the same version of results may be kept. Workers must have the same build.
    if (Identity { build: own.build.clone(), ..about.identity.clone() }) == own {
        return Ok(());
    }
    Err(ListingError::Version { folder: store.folder().to_owned(), found: Box::new(about.identity.clone()), own: Box::new(own) })
}

fn read_about(store: &Store) -> Result<Option<ListHead>, ListingError> {
    let Some(mut lines) = store.plan()? else { return Ok(None) };
    let damaged = |problem: String| ListingError::Damaged { path: store.plan_path(), line: 1, problem };
    let line = lines.next().transpose()?.unwrap_or_default();
    let about: ListHead = serde_json::from_str(&line).map_err(|error| damaged(error.to_string()))?;
    // Another version's list may be sound although this one cannot read it.
    if about.identity == Identity::own() { unsealed(&line).map(Some).map_err(damaged) } else { Ok(Some(about)) }
}

/// Reads the runs of a list one after the other.
fn read_lines(store: &Store, about: &ListHead, mut take: impl FnMut(RowHead) -> Result<(), ListingError>) -> Result<(), ListingError> {
    let damaged = |line: usize, problem: String| ListingError::Damaged { path: store.plan_path(), line, problem };
    let mut keys = blake3::Hasher::new();
    for (position, line) in store.plan()?.into_iter().flatten().enumerate().skip(1) {
        let line: Line = unsealed(&line?).map_err(|problem| damaged(position + 1, problem))?;
        keys.update(line.key.as_bytes());
        take(line.head().map_err(|problem| damaged(position + 1, problem))?)?;
    }
    if experiment_of(&keys) != about.experiment {
        return Err(damaged(1, "the lines that follow are of other runs, or not all of them".to_owned()));
    }
    Ok(())
}

/// The runs collected in a folder.
#[derive(Clone, Debug)]
pub struct CollectedRuns {
    /// The existing rows, as if they had been computed together.
    pub summary: Summary,
    /// The missing runs: key, then the swept keys with their values, separated by tabs.
    pub missing: Vec<String>,
}

/// The time for which [`collect`] waits for computing processes: a stopped worker ends within a second.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes the table of a folder's runs: those of the list of [`Listing::keep`], or of the table of a complete run.
///
/// # Errors
/// There is no list, it is damaged or of another version, another process writes into the folder, or the system refuses.
pub fn collect(folder: &Path) -> Result<CollectedRuns, ListingError> {
    if !folder.join(crate::store::PLAN).is_file() {
        return collect_table(folder);
    }
    let store = Store::open_within(STORE_TIMEOUT, folder, Access::Alone)?;
    let Some(about) = read_about(&store)? else { return Err(ListingError::Missing { folder: folder.to_owned() }) };
    check_identity(&store, &about)?;
    let (mut summary, mut missing) = (Summary::default(), Vec::new());
    read_lines(&store, &about, |head| {
        summary.planned += 1;
        match store.find(&head.key)? {
            StoredRun::Run(row) => summary.collect(row.with_head(&head)),
            found => {
                if let StoredRun::SetAside(message) = found {
                    summary.messages.push(message);
                }
                match store.failure(&head.key) {
                    Some(failure) => summary.collect_failure(RunRow::failed(&head, &failure.message), failure.refused),
                    None => missing.push(describe(&head)),
                }
            }
        }
        Ok(())
    })?;
    summary.report_failures();
    summary.messages.extend(store.damaged_networks(&summary.rows));
    let table = Table { runs: std::mem::take(&mut summary.rows), input: about.input, ..Table::default() };
    store.keep_table(&table)?;
    summary.rows = table.runs;
    Ok(CollectedRuns { summary, missing })
}

/// The rows of a table that the store still has.
fn collect_table(folder: &Path) -> Result<CollectedRuns, ListingError> {
    let path = folder.join("runs.json");
    if !path.is_file() {
        return Err(ListingError::Missing { folder: folder.to_owned() });
    }
    let damaged = |problem: String| ListingError::DamagedTable { path: path.clone(), problem };
    let store = Store::open_within(STORE_TIMEOUT, folder, Access::Alone)?;
    let text = std::fs::read(&path).map_err(|error| damaged(error.to_string()))?;
    let (mut summary, mut missing) = (Summary::default(), Vec::new());
    for row in read_table(&text).map_err(damaged)?.runs {
        summary.planned += 1;
        if row.status() == "failed" {
            summary.collect_failure(row, false);
            continue;
        }
        match store.find(row.key())? {
            StoredRun::Run(_) => summary.collect(row),
            found => {
                if let StoredRun::SetAside(message) = found {
                    summary.messages.push(message);
                }
                missing.push(row.key().to_owned());
            }
        }
    }
    summary.messages.extend(store.damaged_networks(&summary.rows));
    Ok(CollectedRuns { summary, missing })
}

/// A run of the last experiment of a folder of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedRun {
    /// Its key.
    pub key: String,
    /// The columns of its input, as its row has them.
    pub inputs: Map<String, Value>,
    /// The folder has its result, or the reason for its failure.
    pub is_finished: bool,
}

/// All runs of the last experiment of a folder of results, from its `effective.toml`; empty if there is no such file.
///
/// # Errors
/// The file cannot be read, or no longer describes an experiment: a copy of a file that it names is missing or damaged.
pub fn planned_runs(folder: &Path) -> Result<Vec<PlannedRun>, String> {
    let path = folder.join(EFFECTIVE);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let problem = fs::read(&path).map_or_else(|error| Some(error.to_string()), |bytes| damage(EFFECTIVE, &bytes));
    if let Some(problem) = problem {
        return Err(format!("{}: {problem}", path.display()));
    }
    let (document, _) = read_experiment(&path, &[]).map_err(|error| error.to_string())?;
    let files = FolderFiles::next_to(&path).with_copies_of(&document).map_err(|error| error.to_string())?;
    let runs = Runs::all(*KNOWN, &document, &files).map_err(|error| error.to_string())?;
    let planned = runs.planned().iter().map(|run| {
        let head = runs.head(run, &runs.point(run)?);
        let is_there = |kind: &str| folder.join(kind).join(format!("{}.json", head.key)).is_file();
        Ok(PlannedRun {
            is_finished: is_there("runs") || is_there("failed"),
            key: head.key.clone(),
            inputs: head.inputs.into_iter().collect(),
        })
    });
    planned.collect::<Result<_, RunError>>().map_err(|error| error.to_string())
}

fn describe(head: &RowHead) -> String {
    let mut text = head.key.clone();
    for (key, value) in head.inputs.iter().filter(|(_, value)| !value.is_null()) {
        let _ = write!(text, "\t{key}={value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use kasuri_network::topology::NoFiles;
    use std::fs;

    const FILE: &str = r#"
        [network]
        topology = "mesh"
        dimensions = [2, 2]
        [routing]
        algorithm = "dimension-order"
        [traffic]
        pattern = "uniform"
        [measure]
        warmup = 100
        cycles = 1000
        [sweep]
        "traffic.load" = { from = 0.1, to = 0.5, step = 0.1 }
        "measure.seed" = [1, 2]
    "#;

    fn document() -> Document {
        Document::parse("t.toml", FILE).unwrap()
    }

    fn listing(document: &Document) -> Listing<'_> {
        Listing::of(document, &NoFiles, &Costs::default()).unwrap()
    }

    fn runs(listing: &Listing<'_>) -> Vec<ListedRun> {
        listing.runs().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn shards_are_disjoint_complete_and_even() {
        let document = document();
        let listing = listing(&document);
        for of in 1..12_u32 {
            let parts: Vec<Vec<usize>> = (1..=of).map(|index| listing.shard(format!("{index}/{of}").parse().unwrap())).collect();
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (0..10).collect::<Vec<_>>());
            let lengths = parts.iter().map(Vec::len);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1, "{of}");
        }
        // From the longest on the runs are 8, 9, 6, 7, 4, 5, 2, 3, 0, 1: loads 0.5, 0.5, 0.4, 0.4, …
        assert_eq!(listing.shard("1/2".parse().unwrap()), [0, 3, 4, 7, 8]);
    }

    #[test]
    fn invalid_shards_are_refused() {
        for text in ["", "1", "0/2", "3/2", "a/2", "1/0", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_names_runs_by_key_and_by_number() {
        let document = document();
        let listing = listing(&document);
        let runs = runs(&listing);
        let (three, one) = (&runs[3], &runs[1]);
        let text = format!("{}\t3\tx\n\n{}\t1\n", three.key, one.key);
        assert_eq!(listing.numbers(&text).unwrap(), [3, 1]);
        assert_eq!(keys_and_numbers(&text).unwrap(), [(three.key.as_str(), 3), (one.key.as_str(), 1)]);
        assert_eq!(keys_and_numbers(&three.key), None);
        let error = listing.numbers("nonsense 1").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("`nonsense`"), "{error}");
    }

    #[test]
    fn the_collected_table_has_the_listed_file_and_not_its_copy() {
        let folder = tempfile::tempdir().unwrap();
        let document = document();
        listing(&document).keep(&Store::open(folder.path(), Access::Point).unwrap()).unwrap();
        fs::write(folder.path().join("input.toml"), "damaged").unwrap();
        collect(folder.path()).unwrap();
        let table: Value = serde_json::from_slice(&fs::read(folder.path().join("runs.json")).unwrap()).unwrap();
        assert!(table["input"].as_str().unwrap().contains("[sweep]"));
    }

    #[test]
    fn parts_are_collected_into_the_table_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let document = document();
        let listing = listing(&document);
        let run = |numbers: &[usize], out: &Path| {
            let options = plan::RunOptions { jobs: Some(1), out: Some(out.to_owned()), ..plan::RunOptions::default() };
            plan::Plan::prepare_some(&document, &NoFiles, numbers).unwrap().run(&options).unwrap()
        };
        listing.keep(&Store::open(&parts, Access::Point).unwrap()).unwrap();
        run(&listing.shard("1/2".parse().unwrap()), &parts);
        let half = collect(&parts).unwrap();
        assert_eq!((half.summary.rows.len(), half.missing.len(), half.summary.planned), (5, 5, 10));
        assert!(half.missing[0].starts_with(&runs(&listing)[1].key) && half.missing[0].contains("traffic.load=0.1"), "{:?}", half.missing);
        run(&listing.shard("2/2".parse().unwrap()), &parts);
        let rows = collect(&parts).unwrap().summary.rows;
        let options = plan::RunOptions { out: Some(whole.clone()), ..plan::RunOptions::default() };
        plan::run(&document, &NoFiles, &options).unwrap();
        let whole: Value = serde_json::from_slice(&fs::read(whole.join("runs.json")).unwrap()).unwrap();
        assert_eq!(rows.len(), 10);
        for (mut row, other) in rows.into_iter().zip(whole["runs"].as_array().unwrap()) {
            crate::results::COSTS.iter().for_each(|cost| row.set(cost, other[*cost].clone()));
            assert_eq!(&row.to_json(), other);
        }
    }

    #[test]
    fn a_folder_of_another_version_and_a_damaged_list_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(collect(folder.path()), Err(ListingError::Missing { .. })));
        let document = document();
        let listing = listing(&document);
        listing.keep(&Store::open(folder.path(), Access::Point).unwrap()).unwrap();
        let path = folder.path().join("plan.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen(&format!("\"results\":{RESULTS_VERSION}"), "\"results\":99", 1)).unwrap();
        for error in [collect(folder.path()).map(|_| ()), listing.keep(&Store::open(folder.path(), Access::Point).unwrap())] {
            let message = error.unwrap_err().to_string();
            assert!(message.contains("(results 99, ") && message.contains(&Identity::own().to_string()), "{message}");
        }
        let parts = text.split("\"checksum\":\"").map(|part| part.split_once("\"}").map_or(part, |(_, rest)| rest));
        let older = parts.collect::<Vec<_>>().join("\"checksum\":null}").replace(",\"checksum\":null", "");
        fs::write(&path, older.replacen("\"seed\"", "\"sed\"", 1)).unwrap();
        let message = collect(folder.path()).unwrap_err().to_string();
        assert!(message.contains("plan.jsonl, line 2") && message.contains("seed"), "{message}");
    }

    /// A list with a changed load is still a list, but rows would be filed under the wrong load.
    #[test]
    fn a_changed_list_is_damaged_and_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let (document, path) = (document(), folder.path().join("plan.jsonl"));
        let listing = listing(&document);
        let keep = || listing.keep(&Store::open(folder.path(), Access::Point).unwrap()).unwrap();
        keep();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"traffic.load\":0.1", "\"traffic.load\":0.7", 1)).unwrap();
        let message = collect(folder.path()).unwrap_err().to_string();
        assert!(message.contains("plan.jsonl") && message.contains("its checksum differs") && message.contains("--plan"), "{message}");
        keep();
        assert_eq!(collect(folder.path()).unwrap().missing.len(), 10);
    }
}
