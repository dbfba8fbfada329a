//! The run store: a folder in which every finished run is a file named by its key.
//!
//! ```text
//! OUT/.kasuri               marks the folder as a store, and is locked while a process writes
//! OUT/.kasuri-client        locked by the client of a sweep on a cluster: its workers do not write all the time
//! OUT/.kasuri-claims        locked in part for each run that one of several processes is computing
//! OUT/.kasuri-table         locked while a process writes the table
//! OUT/input.toml            the experiment file as read
//! OUT/effective.toml        the experiment as run, with all settings; of several experiments in the folder, the last one
//! OUT/files/HASH-NAME       copies of the files that experiments name, by the first digits of the hashes of their contents
//! OUT/runs/KEY.json         the row of a finished run: the truth, with checksums (CRC-32) of itself and of its vectors
//! OUT/runs/KEY.NAME.npy     its vectors, written before the row
//! OUT/networks/ID.json      each distinct network of the runs, if it is not too large; rows name it in `network_id`
//! OUT/failed/KEY.json       the error of a run without a result, until it has one
//! OUT/plan.jsonl            all runs with their costs, if several processes share them
//! OUT/runs.json, runs.csv   the table, derived from the rows; in runs.json also the experiments and a checksum
//! ```
//!
//! A file appears whole or not at all: it is written under a temporary name and renamed. So finished runs survive any kill, and unfinished
//! ones are computed again. A run that took a second or longer is flushed to the disk before it is renamed, so that it also survives a
//! crash of the machine. The system writes shorter ones within about half a minute; if the machine crashes before, the checksum differs,
//! and the run is computed again.

mod whole;

use crate::checksums::{CHECKSUM, Table, checksum, checksum_of_row, network_id, read_row, read_table, write_table};
use crate::claims::{Claim, Claims};
use crate::copies::{CopyCheck, is_whole_copy};
use crate::results::{NETWORK_ID, RunRow, VECTORS, Vector, is_whole_npy, write_csv};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;
pub(crate) use whole::{Flush, write_with};
use whole::{TEMPORARY, refuse_link, write_whole};

/// The file that marks a folder as a store.
const MARKER: &str = ".kasuri";

/// The file that a client of workers locks; it exists only after a client has used the folder.
const CLIENT: &str = ".kasuri-client";

/// The files in the folder that a store writes, without its locks.
const OWN_FILES: [&str; 5] = [EFFECTIVE, INPUT, TABLE, CSV, PLAN];

/// The experiment file as it was read.
const INPUT: &str = "input.toml";

/// The table for spreadsheets.
const CSV: &str = "runs.csv";

/// The experiment as run.
pub(crate) const EFFECTIVE: &str = "effective.toml";

/// The folder of the copies of files.
pub(crate) const FILES: &str = "files";

/// The folders within a store.
const PARTS: [&str; 4] = ["runs", NETWORKS, FILES, "failed"];

/// The file that a process locks while it writes the table.
const TABLE_LOCK: &str = ".kasuri-table";

/// The folder of the networks.
const NETWORKS: &str = "networks";

/// The table.
pub(crate) const TABLE: &str = "runs.json";

/// The list of all runs.
pub(crate) const PLAN: &str = "plan.jsonl";

/// An open store.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Keep the locks while the store is open.
    _locks: Vec<File>,
    /// The claims, if other processes may write.
    claims: Option<Claims>,
    /// The table at the opening of the store.
    table: Option<TableMark>,
}

/// Identifies the version of a table: its inode, length and time of modification.
type TableMark = (u64, u64, SystemTime);

/// Another process is computing the run.
#[derive(Debug)]
pub(crate) struct ForeignClaim;

/// The use of a store by a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Exclusive access: it reads results, and no other process may write.
    Alone,
    /// It computes an experiment. Other processes may write, too: each run is claimed by the process that computes it.
    Whole,
    /// It computes single points, as one of many (a batch system's array).
    Point,
}

/// Errors of a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process writes there. Wait for it, or choose another folder.
    #[error("{}: another kasuri process is writing there; wait for it to end, or choose another folder with --out", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has files that a store would overwrite, but is not a store. Choose another folder, or move the file.
    #[error(
        "{}: the folder holds `{name}`, but it was not made by kasuri (it has no file `.kasuri`); \
         choose another folder with --out, or move `{name}` away", folder.display()
    )]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// The file that would be overwritten.
        name: String,
    },
    /// The path is a file. Choose another one.
    #[error("{}: this is a file; --out needs a folder", folder.display())]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// The disk or the quota is full. Make room and run the same command again.
    #[error(
        "{}: the disk is full; all finished runs are kept: make room and run the same command again to compute the rest",
        path.display()
    )]
    Full {
        /// The file that did not fit.
        path: PathBuf,
    },
    /// A part of the folder is a link to somewhere else. Remove the link.
    #[error("{}: is a link to another place, and results are written only inside their folder; remove it, or choose another folder with --out", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Anything else that the operating system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl StoreError {
    fn at(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io { path, source },
        }
    }

    /// True if the user should change the command (exit status 2), rather than the machine having failed (1).
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Foreign { .. } | Self::NotAFolder { .. } | Self::Link { .. })
    }
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The reason, for people.
    pub message: String,
    /// True if the input is to blame.
    pub refused: bool,
}

/// The state of a run in the store.
#[derive(Debug, PartialEq)]
pub enum StoredRun {
    /// It is finished.
    Run(RunRow),
    /// The run has no file.
    Nothing,
    /// The file was damaged or foreign; it was set aside under another name, as the message says.
    SetAside(String),
}

impl Store {
    /// Opens a store, making its folder if need be, and locks it.
    ///
    /// # Errors
    /// The folder is not a store, another process writes there, or the operating system refuses.
    pub fn open(folder: &Path, access: Access) -> Result<Self, StoreError> {
        Self::open_within(Duration::ZERO, folder, access)
    }

    /// [`Store::open`], but waits at most `patience` for the end of other processes.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn open_within(patience: Duration, folder: &Path, access: Access) -> Result<Self, StoreError> {
        if folder.exists() && !folder.is_dir() {
            return Err(StoreError::NotAFolder { folder: folder.to_owned() });
        }
        let marker = folder.join(MARKER);
        let was_ours = marker.exists();
        // A folder with one of these names and no marker is not a store.
        if !was_ours && let Some(name) = PARTS.into_iter().chain(OWN_FILES).find(|name| folder.join(name).exists()) {
            return Err(StoreError::Foreign { folder: folder.to_owned(), name: name.to_owned() });
        }
        fs::create_dir_all(folder).map_err(|error| StoreError::at(folder, error))?;
        PARTS.iter().try_for_each(|name| refuse_link(&folder.join(name)))?;
        let client = folder.join(CLIENT);
        let mut locks = vec![Self::lock_store(folder, &marker, patience, access, was_ours)?];
        // A client writes the table of its own runs in the end, with exclusive access to the folder.
        if access != Access::Point && client.exists() {
            locks.push(lock_within(patience, &client, access)?);
        }
        let runs = folder.join("runs");
        fs::create_dir_all(&runs).map_err(|error| StoreError::at(&runs, error))?;
        let claims = match access {
            Access::Alone => None,
            Access::Whole | Access::Point => Some(Claims::open(folder).map_err(|error| StoreError::at(folder, error))?),
        };
        let table = table_mark(folder);
        Ok(Self { folder: folder.to_owned(), _locks: locks, claims, table })
    }

    /// Locks the marker of a store. With exclusive access, the process first removes the files left by killed ones.
    fn lock_store(folder: &Path, marker: &Path, patience: Duration, access: Access, was_ours: bool) -> Result<File, StoreError> {
        // The marker comes first: a folder without one is new.
        if access == Access::Point || !was_ours {
            return lock_within(patience, marker, access);
        }
        match lock_within(if access == Access::Alone { patience } else { Duration::ZERO }, marker, Access::Alone) {
            Ok(lock) => {
                remove_leftovers(folder)?;
                if access == Access::Alone {
                    return Ok(lock);
                }
            }
            Err(StoreError::Locked { .. }) if access == Access::Whole => {}
            Err(error) => return Err(error),
        }
        // The lock above is released first: this opens the file again.
        lock_within(patience.max(SHARE_TIMEOUT), marker, access)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Claims a run, so that no other process computes it before the claim is dropped; `None` where no other process may write.
    ///
    /// # Errors
    /// Another process has it.
    pub(crate) fn claim(&self, key: &str) -> Result<Option<Claim<'_>>, ForeignClaim> {
        self.claims.as_ref().map(|claims| claims.claim(key).ok_or(ForeignClaim)).transpose()
    }

    fn row_path(&self, key: &str) -> PathBuf {
        self.folder.join("runs").join(format!("{key}.json"))
    }

    /// The path of a run's vector.
    pub fn vector_path(&self, key: &str, name: &str) -> PathBuf {
        Self::vector_file(&self.folder, key, name)
    }

    /// The path of a run's vector in a folder of results.
    pub(crate) fn vector_file(folder: &Path, key: &str, name: &str) -> PathBuf {
        folder.join("runs").join(format!("{key}.{name}.npy"))
    }

    /// The path of a network in a folder of results.
    pub(crate) fn network_file(folder: &Path, id: &str) -> PathBuf {
        folder.join(NETWORKS).join(format!("{id}.json"))
    }

    /// Finds a finished run. A file that is truncated, of another layout, or another run's is renamed to `….damaged`.
    ///
    /// # Errors
    /// The operating system refuses to read or to rename.
    pub fn find(&self, key: &str) -> Result<StoredRun, StoreError> {
        let path = self.row_path(key);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredRun::Nothing),
            Err(error) => return Err(StoreError::at(&path, error)),
        };
        let problem = match self.check(key, &bytes) {
            Ok(row) => return Ok(StoredRun::Run(row)),
            Err(problem) => problem,
        };
        let aside = path.with_extension("json.damaged");
        match fs::rename(&path, &aside) {
            // Another process has set it aside.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredRun::Nothing),
            renamed => renamed.map_err(|error| StoreError::at(&path, error))?,
        }
        let name = aside.file_name().unwrap_or_default().to_string_lossy();
        Ok(StoredRun::SetAside(format!("{}: {problem}; it was set aside as `{name}`, and the run is computed again", path.display())))
    }

    /// Reads a row; the error describes the damage in a phrase.
    fn check(&self, key: &str, bytes: &[u8]) -> Result<RunRow, String> {
        let row = read_row(key, bytes)?;
        for name in row.get("vectors").as_array().into_iter().flatten().filter_map(Value::as_str) {
            let path = self.vector_path(key, name);
            let sound = |bytes: &Vec<u8>| row.get(VECTOR_CHECKSUMS).get(name) == Some(&checksum(bytes)) && is_whole_npy(bytes);
            if !VECTORS.contains(&name) || !fs::read(&path).is_ok_and(|bytes| sound(&bytes)) {
                return Err(format!("its vector `{}` is missing or damaged", path.file_name().unwrap_or_default().to_string_lossy()));
            }
        }
        Ok(row)
    }

    /// Keeps a finished run: its vectors first, its row last.
    ///
    /// # Errors
    /// The disk is full or the operating system refuses; then no part of the run's row is visible.
    pub fn keep(&self, row: &RunRow, vectors: &[Vector]) -> Result<(), StoreError> {
        let contents: Vec<(&str, Vec<u8>)> = vectors.iter().map(|vector| (vector.name, vector.to_npy())).collect();
        let mut row = row.clone();
        row.set("vectors", vectors.iter().map(|vector| vector.name).collect::<Vec<_>>());
        row.set(VECTOR_CHECKSUMS, contents.iter().map(|(name, bytes)| ((*name).to_owned(), checksum(bytes))).collect::<Map<_, _>>());
        row.set(CHECKSUM, checksum_of_row(&row));
        let mut files: Vec<(PathBuf, Vec<u8>)> =
            contents.into_iter().map(|(name, bytes)| (self.vector_path(row.key(), name), bytes)).collect();
        files.push((self.row_path(row.key()), pretty(&row)));
        write_whole(&files, Flush::after(seconds(&row)))?;
        // A remaining failure file does no harm: readers check for a result first.
        let _ = fs::remove_file(self.failure_path(row.key()));
        Ok(())
    }

    fn failure_path(&self, key: &str) -> PathBuf {
        self.folder.join("failed").join(format!("{key}.json"))
    }

    /// Notes the failure of a run.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub fn keep_failure(&self, key: &str, failure: &Failure) -> Result<(), StoreError> {
        let path = self.failure_path(key);
        let folder = self.folder.join("failed");
        fs::create_dir_all(&folder).map_err(|error| StoreError::at(&folder, error))?;
        let bytes = serde_json::to_vec(failure).map_err(|error| StoreError::at(&path, error.into()))?;
        write_whole(&[(path, bytes)], Flush::Later)
    }

    /// The failure of a run, if it was noted.
    pub fn failure(&self, key: &str) -> Option<Failure> {
        fs::read(self.failure_path(key)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
    }

    /// Keeps a network under the hash of its text.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub(crate) fn keep_network(&self, id: &str, text: &str) -> Result<(), StoreError> {
        let folder = self.folder.join(NETWORKS);
        fs::create_dir_all(&folder).map_err(|error| StoreError::at(&folder, error))?;
        // If it is missing, the next `kasuri run` writes it again, also for existing runs.
        keep_text(Self::network_file(&self.folder, id), text)
    }

    /// True if the store has the network of this name, undamaged.
    pub(crate) fn has_network(&self, id: &str) -> bool {
        fs::read(Self::network_file(&self.folder, id)).is_ok_and(|bytes| network_id(&bytes) == id)
    }

    /// The messages on damaged networks of rows. Only a run can write them again.
    pub(crate) fn damaged_networks(&self, rows: &[RunRow]) -> Vec<String> {
        let names: BTreeSet<&str> = rows.iter().map(|row| row.text(NETWORK_ID)).filter(|id| !id.is_empty()).collect();
        let paths = names.into_iter().map(|id| (id, Self::network_file(&self.folder, id)));
        let is_damaged = |(id, path): &(&str, PathBuf)| fs::read(path).is_ok_and(|bytes| network_id(&bytes) != *id);
        let damaged = paths.filter(is_damaged);
        damaged.map(|(_, path)| format!("{}: the file is damaged; `kasuri run` writes it again", path.display())).collect()
    }

    /// The path of the list of all runs.
    pub(crate) fn plan_path(&self) -> PathBuf {
        self.folder.join(PLAN)
    }

    /// Keeps the list of all runs, written line by line.
    ///
    /// # Errors
    /// As [`Store::keep`], and those of the lines.
    pub(crate) fn keep_plan<E: From<StoreError>>(&self, mut lines: impl Iterator<Item = Result<String, E>>) -> Result<(), E> {
        let mut failed = None;
        // Processes on other machines rely on it.
        let written = write_with(&[(self.plan_path(), ())], Flush::Now, |file, ()| {
            let mut file = BufWriter::new(file);
            for line in lines.by_ref() {
                match line {
                    Ok(line) => file.write_all(line.as_bytes())?,
                    Err(error) => {
                        failed = Some(error);
                        return Err(io::Error::other("the list has no such line"));
                    }
                }
            }
            file.flush()
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(written?),
        }
    }

    /// The lines of the list of all runs, if there is one.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn plan(&self) -> Result<Option<impl Iterator<Item = Result<String, StoreError>>>, StoreError> {
        let path = self.plan_path();
        match File::open(&path) {
            Ok(file) => Ok(Some(BufReader::new(file).lines().map(move |line| line.map_err(|error| StoreError::at(&path, error))))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::at(&path, error)),
        }
    }

    /// Keeps the experiment file as it was read.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub fn keep_input(&self, text: &str) -> Result<(), StoreError> {
        keep_text(self.folder.join(INPUT), text)
    }

    /// Keeps the experiment as it is run.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub(crate) fn keep_effective(&self, text: &str) -> Result<(), StoreError> {
        keep_text(self.folder.join(EFFECTIVE), text)
    }

    /// Keeps a copy of a file that an experiment names; the name of the copy begins with the hash of its content, which `write` writes. A
    /// damaged copy is replaced.
    ///
    /// # Errors
    /// As [`Store::keep`], an error of `write`, or content with another hash ([`io::ErrorKind::InvalidData`]).
    pub(crate) fn keep_file(&self, name: &str, mut write: impl FnMut(&mut dyn Write) -> io::Result<()>) -> Result<(), StoreError> {
        let folder = self.folder.join(FILES);
        let path = folder.join(name);
        if is_whole_copy(&path) {
            return Ok(());
        }
        fs::create_dir_all(&folder).map_err(|error| StoreError::at(&folder, error))?;
        write_with(&[(path.clone(), ())], Flush::Later, |file, ()| {
            let mut out = CopyCheck::new(&path, BufWriter::new(file));
            write(&mut out)?;
            out.finish()
        })
    }

    /// Writes the table: `runs.json`, with the experiments, and `runs.csv`. The rows join those of the folder's table if they belong to it
    /// ([`Table::joined`]), or if another process has written a table since the store was opened.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub(crate) fn keep_table(&self, table: &Table) -> Result<(), StoreError> {
        let lock = self.folder.join(TABLE_LOCK);
        let _lock = lock_within(TABLE_TIMEOUT, &lock, Access::Alone)?;
        let is_newer = table_mark(&self.folder) != self.table;
        let known = fs::read(self.folder.join(TABLE)).ok().and_then(|bytes| read_table(&bytes).ok());
        let joined = known.filter(|known| is_newer || table.belongs_to(known)).map(|known| table.joined(known));
        let table = joined.as_ref().unwrap_or(table);
        let tables: [(PathBuf, WriteTable); 2] = [
            (self.folder.join(TABLE), |table, file| write_table(table, file)),
            (self.folder.join(CSV), |table, file| write_csv(&table.runs, file)),
        ];
        write_with(&tables, Flush::after(table.runs.iter().map(seconds).sum()), |file, write| {
            let mut file = BufWriter::new(file);
            write(table, &mut file)?;
            file.flush()
        })
    }
}

/// Writes a text unless the file has it already.
fn keep_text(path: PathBuf, text: &str) -> Result<(), StoreError> {
    if fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes()) {
        return Ok(());
    }
    write_whole(&[(path, text.as_bytes().to_vec())], Flush::Later)
}

/// Writes the table in one of its formats.
type WriteTable = fn(&Table, &mut BufWriter<&mut File>) -> io::Result<()>;

/// The longest time to wait for shared access: an exclusive user only cleans up or writes a table.
const SHARE_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time to wait for the table while another process writes it.
const TABLE_TIMEOUT: Duration = Duration::from_secs(60);

fn table_mark(folder: &Path) -> Option<TableMark> {
    let about = fs::metadata(folder.join(TABLE)).ok()?;
    Some((about.ino(), about.len(), about.modified().ok()?))
}

/// Removes files that killed processes left half written. The caller has exclusive access: another process may be writing one.
fn remove_leftovers(folder: &Path) -> Result<(), StoreError> {
    for folder in PARTS.iter().map(|part| folder.join(part)).chain([folder.to_owned()]) {
        if !folder.exists() {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(|error| StoreError::at(&folder, error))? {
            let entry = entry.map_err(|error| StoreError::at(&folder, error))?;
            let name = entry.file_name();
            if name.to_str().is_some_and(is_temporary) {
                fs::remove_file(entry.path()).map_err(|error| StoreError::at(&entry.path(), error))?;
            }
        }
    }
    Ok(())
}

/// The checksums of a row's vectors by name.
const VECTOR_CHECKSUMS: &str = "vector_checksums";

/// The time between two attempts to lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Locks a file of a store; while other processes hold it, tries again for at most `patience`.
fn lock_within(patience: Duration, path: &Path, access: Access) -> Result<File, StoreError> {
    refuse_link(path)?;
    let file = File::options().create(true).truncate(false).write(true).read(true).custom_flags(libc::O_NOFOLLOW).open(path);
    let file = file.map_err(|error| StoreError::at(path, error))?;
    let begin = Instant::now();
    loop {
        let locked = match access {
            Access::Alone => file.try_lock(),
            Access::Whole | Access::Point => file.try_lock_shared(),
        };
        match locked {
            Err(TryLockError::WouldBlock) if begin.elapsed() < patience => std::thread::sleep(LOCK_POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { folder: path.parent().unwrap_or(path).to_owned() }),
            // Some network file systems have no locks. Files still appear whole; only the message to a second process is lost.
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(StoreError::at(path, error)),
            _ => return Ok(file),
        }
    }
}

/// True for a folder of results.
pub(crate) fn is_store(folder: &Path) -> bool {
    folder.join(MARKER).is_file()
}

/// The experiment and the results of a store: the paths of their files in its folder, with its marker, without links and half-written or
/// damaged files.
///
/// # Errors
/// The operating system refuses.
pub(crate) fn kept_files(folder: &Path) -> Result<Vec<String>, StoreError> {
    let is_kept = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_file());
    let own = std::iter::once(MARKER).chain(OWN_FILES).filter(|name| is_kept(&folder.join(name)));
    let mut files: Vec<String> = own.map(str::to_owned).collect();
    for part in PARTS {
        let within = folder.join(part);
        if !within.is_dir() || refuse_link(&within).is_err() {
            continue;
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&within).map_err(|error| StoreError::at(&within, error))? {
            let entry = entry.map_err(|error| StoreError::at(&within, error))?;
            // All names given by Kasuri are text.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_kept(&entry.path()) && !name.starts_with('.') && !name.ends_with(".damaged") {
                names.push(format!("{part}/{name}"));
            }
        }
        names.sort();
        files.extend(names);
    }
    Ok(files)
}

/// The prefix of the files that identify a client's folder to its workers; a killed client leaves its file.
const TOKEN: &str = ".shared-";

fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY) || name.starts_with(TOKEN)
}

/// A row in readable form.
fn pretty(row: &RunRow) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(row).expect("a row is JSON");
    text.push(b'\n');
    text
}

/// The time of a run.
fn seconds(row: &RunRow) -> f64 {
    row.number("wall_seconds").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Report;
    use crate::results::{tests as example, vectors};
    use proptest::prelude::*;

    const KEY: &str = "00ff";

    fn row() -> RunRow {
        RunRow::new(&example::head(), &example::network(), None, &example::outcome(), &Report::default())
    }

    fn store(folder: &Path) -> Store {
        Store::open(folder, Access::Whole).unwrap()
    }

    fn keep(store: &Store) {
        store.keep(&row(), &vectors(&example::network(), &example::outcome())).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_kept_run_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder.path().join("new/deep"));
        assert_eq!(store.find(KEY).unwrap(), StoredRun::Nothing);
        keep(&store);
        let StoredRun::Run(found) = store.find(KEY).unwrap() else { panic!("found") };
        assert_eq!(found.with_head(&example::head()), row().with_head(&example::head()));
        assert_eq!(names(&store.folder().join("runs")).len(), 1 + 5);
    }

    proptest! {
        // Every case flushes files to the disk.
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// A row cut off anywhere is never taken for a run, and never breaks anything else.
        #[test]
        fn a_truncated_row_is_set_aside(cut in 0.0..1.0_f64) {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path());
            keep(&store);
            let path = store.row_path(KEY);
            let bytes = fs::read(&path).unwrap();
            // The last byte is a line break: without it the row is still whole.
            fs::write(&path, &bytes[..((bytes.len() - 1) as f64 * cut) as usize]).unwrap();
            let found = store.find(KEY).unwrap();
            let StoredRun::SetAside(message) = found else { panic!("{found:?}") };
            prop_assert!(message.contains("00ff.json: the file is damaged"));
            prop_assert!(store.folder().join("runs/00ff.json.damaged").exists());
            prop_assert_eq!(store.find(KEY).unwrap(), StoredRun::Nothing);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// One bit of a stored file is changed, by a disk or on the way: the run is computed again, or the data read equals the data kept
        /// (a bit of the white space).
        #[test]
        fn a_flipped_bit_never_changes_an_answer(place in 0.0..1.0_f64, bit in 0u32..8, file in 0usize..6) {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path());
            keep(&store);
            let StoredRun::Run(kept) = store.find(KEY).unwrap() else { panic!("found") };
            let runs = store.folder().join("runs");
            let path = runs.join(&names(&runs)[file]);
            let mut bytes = fs::read(&path).unwrap();
            let place = (bytes.len() as f64 * place) as usize;
            bytes[place] ^= 1 << bit;
            fs::write(&path, &bytes).unwrap();
            match store.find(KEY).unwrap() {
                StoredRun::Run(found) => prop_assert!(path == store.row_path(KEY) && found == kept, "bit {bit} of byte {place} of {path:?}"),
                found => prop_assert!(matches!(found, StoredRun::SetAside(_)), "{found:?}"),
            }
        }
    }

    #[test]
    fn a_foreign_row_or_a_damaged_vector_is_set_aside() {
        let cases: [(&str, &[u8], &str); 5] = [
            ("00ff.json", b"[1, 2]", "holds no run"),
            ("00ff.json", b"{\"name\": \"somebody's\"}", "holds no run of kasuri"),
            ("00ff.json", b"{\"schema_version\": 99, \"key\": \"00ff\"}", "layout version 99, this kasuri reads 2"),
            ("00ff.json", b"{\"schema_version\": 2, \"key\": \"abcd\"}", "another run, `abcd`"),
            ("00ff.accepted_throughput.npy", b"\x93NUMPY", "vector `00ff.accepted_throughput.npy` is missing or damaged"),
        ];
        for (name, content, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path());
            keep(&store);
            fs::write(store.folder().join("runs").join(name), content).unwrap();
            let found = store.find(KEY).unwrap();
            assert!(matches!(&found, StoredRun::SetAside(message) if message.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn several_processes_compute_at_once_and_a_reader_has_the_store_alone() {
        let folder = tempfile::tempdir().unwrap();
        let computing = [Access::Whole, Access::Whole, Access::Point].map(|access| Store::open(folder.path(), access).unwrap());
        let claim = computing[0].claim(KEY).unwrap();
        assert!(computing[1].claim(KEY).is_err() && computing[2].claim(KEY).is_err(), "two processes would compute one run");
        let message = Store::open(folder.path(), Access::Alone).unwrap_err().to_string();
        assert!(message.contains("another kasuri process") && message.contains(folder.path().to_str().unwrap()), "{message}");
        drop(claim);
        drop(computing);
        let _alone = Store::open(folder.path(), Access::Alone).unwrap();
    }

    /// Two processes write their tables one after the other, in either order, and with other settings of one file: all rows stay.
    #[test]
    fn a_table_keeps_the_rows_of_other_processes_and_settings() {
        let of = |key: &str, text: &str, is_changed| {
            let mut row = row();
            row.set("key", key);
            Table { runs: vec![row], input: Some(text.to_owned()), origin: Some("file".to_owned()), is_changed, ..Table::default() }
        };
        let keys = |folder: &Path| {
            let table = read_table(&fs::read(folder.join(TABLE)).unwrap()).unwrap();
            let lines = fs::read_to_string(folder.join("runs.csv")).unwrap().lines().count();
            assert_eq!(lines, 1 + table.runs.len());
            (table.runs.iter().map(|row| row.key().to_owned()).collect::<Vec<_>>(), table.all_experiments().join(" "))
        };
        let folder = tempfile::tempdir().unwrap();
        let stores = [(); 2].map(|()| store(folder.path()));
        stores[1].keep_table(&of("b", "2", false)).unwrap();
        stores[0].keep_table(&of("a", "1", false)).unwrap();
        assert_eq!(keys(folder.path()), (vec!["b".to_owned(), "a".to_owned()], "2 1".to_owned()));
        drop(stores);
        store(folder.path()).keep_table(&of("c", "3", true)).unwrap();
        store(folder.path()).keep_table(&of("a", "4", true)).unwrap();
        assert_eq!(keys(folder.path()), (["b", "a", "c"].map(str::to_owned).to_vec(), "2 1 3 4".to_owned()));
        // A run of the unchanged file, or of another file, begins a new table.
        store(folder.path()).keep_table(&of("d", "5", false)).unwrap();
        assert_eq!(keys(folder.path()), (vec!["d".to_owned()], "5".to_owned()));
        store(folder.path()).keep_table(&Table { origin: Some("other".to_owned()), ..of("e", "6", true) }).unwrap();
        assert_eq!(keys(folder.path()), (vec!["e".to_owned()], "6".to_owned()));
    }

    #[test]
    fn a_client_keeps_the_store_for_its_workers_while_none_of_them_writes() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path(), Access::Point).unwrap());
        let client = File::create(folder.path().join(CLIENT)).unwrap();
        client.lock().unwrap();
        assert!(matches!(Store::open(folder.path(), Access::Whole), Err(StoreError::Locked { .. })));
        drop(Store::open(folder.path(), Access::Point).unwrap());
        drop(client);
        store(folder.path());
    }

    #[test]
    fn a_store_may_be_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let point = Store::open(folder.path(), Access::Point).unwrap();
        let waiting = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Store::open_within(Duration::from_secs(60), folder.path(), Access::Alone));
            std::thread::sleep(Duration::from_millis(100));
            drop(point);
            waiting.join().unwrap()
        });
        assert!(waiting.is_ok(), "{waiting:?}");
    }

    /// Nothing is written through a link within the folder; the folder itself may be a link.
    #[test]
    fn nothing_is_written_through_a_link() {
        use std::os::unix::fs::symlink;
        for name in
            [MARKER, "runs", "failed", NETWORKS, FILES, ".kasuri-claims", TABLE_LOCK, "runs/00ff.json", TABLE, EFFECTIVE, "input.toml"]
        {
            let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let out = folder.path().join("link");
            fs::create_dir(folder.path().join("out")).unwrap();
            symlink(folder.path().join("out"), &out).unwrap();
            drop(store(&out));
            let (path, target) = (out.join(name), elsewhere.path().join("target"));
            let is_folder = path.is_dir() || PARTS.contains(&name);
            let _ = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if is_folder {
                fs::create_dir(&target).unwrap()
            } else {
                fs::write(&target, "mine").unwrap()
            }
            symlink(&target, &path).unwrap();
            let written = Store::open(&out, Access::Whole).and_then(|store| {
                store.keep(&row(), &[])?;
                store.keep_failure("00fe", &Failure { message: "x".to_owned(), refused: false })?;
                store.keep_network("n", "{}")?;
                store.keep_file("f", |out| out.write_all(b"x"))?;
                store.keep_effective("x")?;
                store.keep_input("x")?;
                store.keep_table(&Table::default())
            });
            let untouched = if is_folder { fs::read_dir(&target).unwrap().count() == 0 } else { fs::read(&target).unwrap() == b"mine" };
            assert!(untouched, "{name}: {written:?}");
            // A file is replaced by a new one; irreplaceable files are refused.
            let is_replaced = path.symlink_metadata().unwrap().is_file();
            assert!(is_replaced || matches!(written, Err(StoreError::Link { .. } | StoreError::Io { .. })), "{name}: {written:?}");
        }
    }

    #[test]
    fn a_foreign_folder_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        drop(store(folder.path()));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("runs.csv"), "theirs").unwrap();
        let error = Store::open(folder.path(), Access::Whole).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("`runs.csv`"), "{error}");
        assert_eq!(names(folder.path()), ["runs.csv"]);
        let file = folder.path().join("runs.csv");
        assert!(matches!(Store::open(&file, Access::Whole), Err(StoreError::NotAFolder { .. })));
    }

    #[test]
    fn a_full_disk_keeps_old_files_and_leaves_no_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        keep(&store);
        let before = names(&store.folder().join("runs"));
        let path = store.row_path(KEY);
        let content = fs::read(&path).unwrap();
        let other = store.vector_path(KEY, "other");
        let error = write_with(&[(other, b"fits".to_vec()), (path.clone(), b"does not fit".to_vec())], Flush::Later, |file, bytes| {
            file.write_all(&bytes[..4])?;
            if bytes.len() > 4 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
        });
        let error = error.unwrap_err();
        assert!(error.to_string().contains("the disk is full; all finished runs are kept"), "{error}");
        assert!(!error.is_usage());
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(names(&store.folder().join("runs")), before);
    }

    /// The file of a run of less than a second may be empty after a crash of the machine; that of a long run is on the disk.
    #[test]
    fn unflushed_files_are_detected_and_long_runs_are_flushed() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        for path in [store.row_path(KEY), store.vector_path(KEY, "accepted_throughput")] {
            keep(&store);
            fs::write(path, b"").unwrap();
            assert!(matches!(store.find(KEY).unwrap(), StoredRun::SetAside(_)));
        }
        let mut row = row();
        for (seconds, flush) in [(0.02, Flush::Later), (0.999, Flush::Later), (1.0, Flush::Now), (7200.0, Flush::Now)] {
            row.set("wall_seconds", seconds);
            assert_eq!(Flush::after(super::seconds(&row)), flush);
        }
    }

    #[test]
    fn left_overs_of_a_killed_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        keep(&store(folder.path()));
        let left_over = folder.path().join("runs").join(format!(".00ff.json.123.0{TEMPORARY}"));
        let token = folder.path().join(format!("{TOKEN}0123"));
        fs::write(&left_over, "{").unwrap();
        fs::write(&token, "").unwrap();
        drop(Store::open(folder.path(), Access::Point).unwrap());
        assert!(left_over.exists() && token.exists());
        drop(store(folder.path()));
        assert!(!left_over.exists() && !token.exists());
    }

    #[test]
    fn the_table_is_written_as_json_and_csv() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let table = Table { runs: vec![row(), row()], input: Some("title = \"x\"\n".to_owned()), ..Table::default() };
        store.keep_table(&table).unwrap();
        store.keep_input("title = \"x\"\n").unwrap();
        let json: Value = serde_json::from_slice(&fs::read(folder.path().join("runs.json")).unwrap()).unwrap();
        assert_eq!(json["runs"].as_array().unwrap().len(), 2);
        assert_eq!(json["input"], "title = \"x\"\n");
        assert_eq!(fs::read_to_string(folder.path().join("runs.csv")).unwrap().lines().count(), 3);
        assert_eq!(names(folder.path()), [".kasuri", ".kasuri-claims", ".kasuri-table", "input.toml", "runs", "runs.csv", "runs.json"]);
    }
}
