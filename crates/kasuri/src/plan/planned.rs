//! A compact list of an experiment's runs. A run is a checked point of the sweep: only its number, its key and a few facts are kept, and
//! the engine's input is rebuilt when needed.

use super::preparer::{ErrorList, Preparer};
use super::shown::{self, Facts};
use super::{PreparedPoint, RunError};
use crate::estimate::Work;
use crate::results::RowHead;
use crate::snapshot::{self, Snapshot};
use kasuri_config::{Built, Document, Known, Point, Study, Sweep};
use kasuri_network::routing::extents::Extents;
use kasuri_network::topology::Files;
use std::collections::BTreeMap;
use std::fmt;

/// The key of a run: the name of its file in the store, as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) [u8; 16]);

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

/// A checked run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedRun {
    number: u32,
    pub(crate) key: Key,
    facts: Facts,
    /// Its size.
    pub(crate) work: Work,
}

impl CheckedRun {
    /// The position of its point in the sweep, from 0.
    pub(crate) fn number(&self) -> usize {
        self.number as usize
    }
}

/// With fewer runs than these, a second thread does not pay: it has to build its own networks.
const MIN_RUNS_FOR_THREADS: usize = 4000;

/// Runs of an experiment, checked.
pub(crate) struct Runs<'a> {
    known: Known<'a>,
    document: &'a Document,
    sweep: Sweep<'a>,
    files: Snapshot<'a>,
    built: Built,
    planned: Vec<CheckedRun>,
    /// The files that the runs name, and the hashes of their contents.
    named: BTreeMap<String, String>,
    /// Columns of the table that no sweep varies.
    shown: Vec<String>,
    /// The engine's input of an only run that names no changeable file.
    only: Option<Study>,
}

/// The runs checked by one thread.
struct CheckedPart {
    planned: Vec<CheckedRun>,
    named: BTreeMap<String, String>,
    last: Option<Study>,
}

impl<'a> Runs<'a> {
    /// Checks all runs.
    ///
    /// # Errors
    /// All errors of any of them.
    pub(crate) fn all(known: Known<'a>, document: &'a Document, files: &'a (dyn Files + Sync)) -> Result<Self, RunError> {
        Self::keeping(known, document, files, snapshot::MAX_CACHED_BYTES)
    }

    /// As [`Runs::all`], with at most `bytes` of the named files in memory.
    pub(super) fn keeping(
        known: Known<'a>,
        document: &'a Document,
        files: &'a (dyn Files + Sync),
        most_bytes: usize,
    ) -> Result<Self, RunError> {
        let sweep = document.sweep()?;
        let numbers: Vec<usize> = (0..sweep.count()).collect();
        Self::new(known, document, sweep, Snapshot::of(files, most_bytes)).check(&numbers)
    }

    /// Checks the runs of these numbers.
    ///
    /// # Errors
    /// All errors of any of them.
    pub(crate) fn some(
        known: Known<'a>,
        document: &'a Document,
        files: &'a (dyn Files + Sync),
        numbers: &[usize],
    ) -> Result<Self, RunError> {
        Self::new(known, document, document.sweep()?, Snapshot::of(files, snapshot::MAX_CACHED_BYTES)).check(numbers)
    }

    fn new(known: Known<'a>, document: &'a Document, sweep: Sweep<'a>, files: Snapshot<'a>) -> Self {
        Self {
            known,
            document,
            sweep,
            files,
            built: Built::default(),
            planned: Vec::new(),
            named: BTreeMap::new(),
            shown: Vec::new(),
            only: None,
        }
    }

    fn check(mut self, numbers: &[usize]) -> Result<Self, RunError> {
        self.shown = self.document.shown_columns()?;
        let threads = if numbers.len() < MIN_RUNS_FOR_THREADS { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
        let parts: Vec<_> = match threads {
            1 => vec![self.check_part(numbers)],
            _ => std::thread::scope(|scope| {
                let parts = numbers.chunks(numbers.len().div_ceil(threads)).map(|part| scope.spawn(|| self.check_part(part)));
                let parts: Vec<_> = parts.collect();
                parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
            }),
        };
        self.planned.reserve_exact(numbers.len());
        let mut wrong = ErrorList::default();
        for part in parts {
            match part {
                Ok(CheckedPart { planned, named, last }) => {
                    self.planned.extend(planned);
                    self.named.extend(named);
                    self.only = last;
                }
                Err(error) => wrong.note(error)?,
            }
        }
        wrong.end()?;
        self.only = self.only.filter(|_| self.planned.len() == 1 && self.named.is_empty());
        Ok(self)
    }

    /// Checks the part of one thread. A point is dropped when the next is checked.
    fn check_part(&self, numbers: &[usize]) -> Result<CheckedPart, RunError> {
        let (mut preparer, mut extents) = (self.preparer(), Extents::default());
        let (mut planned, mut last, mut wrong) = (Vec::with_capacity(numbers.len()), None, ErrorList::default());
        for &number in numbers {
            let point = self.sweep.point(number)?;
            let study = match preparer.prepare(&point) {
                Ok(study) => study,
                Err(error) => {
                    wrong.note(error)?;
                    continue;
                }
            };
            let (key, facts) = (preparer.key(&point, &study), Facts::of(self.known, &study));
            let work = Work::of(&study, preparer.engine(&study), &mut extents);
            planned.push(CheckedRun { number: number as u32, key, facts, work });
            last = Some(study);
        }
        wrong.end()?;
        Ok(CheckedPart { planned, named: preparer.named_files(), last })
    }

    /// The preparer of one more thread: networks and routings are shared among all.
    pub(crate) fn preparer(&self) -> Preparer<'_> {
        Preparer::sharing(self.known, &self.built, self.document, &self.files)
    }

    /// The experiment.
    pub(crate) fn document(&self) -> &'a Document {
        self.document
    }

    /// The runs in the order in which their numbers were given.
    pub(crate) fn planned(&self) -> &[CheckedRun] {
        &self.planned
    }

    /// The files that they name, and the hashes of their contents.
    pub(crate) fn named_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().map(|(name, hash)| (name.as_str(), hash.as_str()))
    }

    /// Reads a file that they name.
    ///
    /// # Errors
    /// As [`Files::read_pieces`].
    pub(crate) fn read_file(&self, name: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        self.files.read_pieces(name, take)
    }

    /// The values of a run.
    ///
    /// # Errors
    /// None for a run of this list.
    pub(crate) fn point(&self, planned: &CheckedRun) -> Result<Point, RunError> {
        Ok(self.sweep.point(planned.number())?)
    }

    /// The input part of a run's row.
    pub(crate) fn head(&self, planned: &CheckedRun, point: &Point) -> RowHead {
        let title = point.table.get("title").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        let Facts { engine, seed, .. } = planned.facts;
        let engine = self.known.engines[usize::from(engine)].name();
        RowHead { key: planned.key.to_string(), title, engine, seed, inputs: shown::inputs(point, &planned.facts, &self.shown) }
    }

    /// Rebuilds the input of a run's engine.
    ///
    /// # Errors
    /// A file that it names has changed since it was checked.
    pub(crate) fn prepare(&self, planned: &CheckedRun, preparer: &mut Preparer<'_>) -> Result<PreparedPoint, RunError> {
        let point = self.point(planned)?;
        let study = self.only.as_ref().map_or_else(|| self.study_again(planned, &point, preparer), |study| Ok(study.clone()))?;
        let facts = Facts::of(self.known, &study);
        Ok(PreparedPoint { head: self.head(planned, &point), point, study, facts })
    }

    /// Rebuilds a dropped study.
    fn study_again(&self, planned: &CheckedRun, point: &Point, preparer: &mut Preparer<'_>) -> Result<Study, RunError> {
        let study = preparer.study(point)?;
        // After the study, from the present content of the files: so this is the study's input.
        preparer.forget_files();
        if preparer.key(point, &study) != planned.key {
            return Err(RunError::Changed {
                document: self.document.name().to_owned(),
                files: preparer.named_files().into_keys().collect::<Vec<_>>().join(", "),
            });
        }
        Ok(study)
    }
}

/// The keys and values that the sweep sets for a point, separated by tabs.
pub(crate) fn assignments(point: &Point) -> String {
    let assignments: Vec<String> = point.assignments.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assignments.join("\t")
}
