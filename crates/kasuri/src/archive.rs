//! Archives of folders of results: `kasuri pack` writes them, and `kasuri run` repeats their experiments on another machine.
//!
//! ```text
//! NAME/pack.json        the Kasuri that packed the folder
//! NAME/effective.toml   the experiment; files/ holds copies of the files that it names
//! NAME/runs.json …      the results, as they lie in the folder
//! ```
//! An archive is a gzipped tar file (POSIX ustar). Equal folders make equal archives: owners and times of files are left out.

use crate::checksums::{Table, read_table};
use crate::copies::hash_in_name;
use crate::input::{GZIP, MAX_FILE_BYTES, MAX_TEXT_BYTES, max_unpacked_bytes};
use crate::listing::Identity;
use crate::results::{COSTS, RunRow};
use crate::store::{EFFECTIVE, FILES, Flush, Store, StoreError, TABLE, is_store, kept_files, write_with};
use crate::version;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use tar::{Builder, EntryType, Header};
use thiserror::Error;

/// The file with the Kasuri that packed the archive.
const ABOUT: &str = "pack.json";

/// The largest size to unpack: gzip can expand a small file to a very large one.
const MAX_UNPACKED_BYTES: u64 = 4 * MAX_FILE_BYTES;

/// The Kasuri that packed an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PackedBy {
    #[serde(flatten)]
    identity: Identity,
    commit: Option<String>,
}

impl PackedBy {
    fn own() -> Self {
        Self { identity: Identity::own(), commit: version::commit().map(str::to_owned) }
    }
}

impl std::fmt::Display for PackedBy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, commit {}", self.identity, self.commit.as_deref().unwrap_or("unknown"))
    }
}

/// Errors of packing a folder or of running an archive.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The folder cannot be packed.
    #[error("{}: {problem}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The missing part, and the remedy.
        problem: &'static str,
    },
    /// This is not an archive of `kasuri pack`, or it is damaged.
    #[error("{}: {problem}", path.display())]
    Wrong {
        /// The archive.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The folder for the results.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Packs a folder of results; returns how many files are in the archive.
///
/// # Errors
/// The folder has no experiment, the archive would replace one of its files, or a file cannot be read or written.
pub fn pack(folder: &Path, archive: &Path) -> Result<usize, ArchiveError> {
    let wrong = |problem| ArchiveError::Folder { folder: folder.to_owned(), problem };
    if !is_store(folder) {
        return Err(wrong("is not a folder of results; give one that `kasuri run` has written"));
    }
    if !folder.join(EFFECTIVE).is_file() {
        return Err(wrong("has no effective.toml, as folders of older versions; run the experiment into it again, then pack it"));
    }
    let files = kept_files(folder)?;
    if let (Ok(folder), Ok(target)) = (folder.canonicalize(), archive.canonicalize())
        && files.iter().any(|place| folder.join(place) == target)
    {
        let problem = "is a file of the folder that is packed; choose another name with -o".to_owned();
        return Err(ArchiveError::Wrong { path: archive.to_owned(), problem });
    }
    write_with(&[(archive.to_owned(), ())], Flush::Later, |file, ()| write_archive(file, folder, &files))?;
    Ok(files.len())
}

fn write_archive(file: &mut File, folder: &Path, files: &[String]) -> io::Result<()> {
    let mut builder = Builder::new(GzEncoder::new(file, Compression::default()));
    let name = folder.canonicalize()?;
    let name = Path::new(name.file_name().unwrap_or("results".as_ref()));
    let about = serde_json::to_vec_pretty(&PackedBy::own())?;
    add(&mut builder, &name.join(ABOUT), about.len() as u64, &mut &about[..])?;
    for place in files {
        let path = folder.join(place);
        let mut pack = || {
            let file = File::open(&path)?;
            let length = file.metadata()?.len();
            add(&mut builder, &name.join(place), length, &mut file.take(length))
        };
        pack().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    builder.into_inner()?.finish()?;
    Ok(())
}

fn add(builder: &mut Builder<impl Write>, place: &Path, length: u64, content: &mut dyn Read) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(length);
    builder.append_data(&mut header, place, content)
}

/// The experiments and the table of an archive.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    about: Option<PackedBy>,
    table: Option<Table>,
    /// The texts of the experiments, with the last one at the end.
    pub experiments: Vec<String>,
}

/// True if the file is gzipped. Where an experiment is expected, such a file can only be an archive.
pub fn is_archive(path: &Path) -> bool {
    let mut head = [0; GZIP.len()];
    path.is_file() && File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head == GZIP)
}

impl Archive {
    /// Reads the experiments and the results in an archive.
    ///
    /// # Errors
    /// It cannot be read, or was not made by `kasuri pack`.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let (mut about, mut effective, mut table) = (None, None, None);
        let max_table = max_unpacked_bytes(path).map_err(|source| ArchiveError::Io { path: path.to_owned(), source })?;
        each_file(path, |name, content| {
            let wanted = match name {
                ABOUT => &mut about,
                EFFECTIVE => &mut effective,
                TABLE => &mut table,
                _ => return Ok(()),
            };
            let most = if name == TABLE { max_table } else { MAX_TEXT_BYTES };
            *wanted = Some(read_at_most(content, most)?);
            Ok(())
        })?;
        let wrong = |problem: String| ArchiveError::Wrong { path: path.to_owned(), problem };
        let missing = || wrong(format!("has no {EFFECTIVE}; make an archive with `kasuri pack FOLDER`"));
        let effective = String::from_utf8(effective.ok_or_else(missing)?).map_err(|_| wrong(format!("{EFFECTIVE} is not UTF-8 text")))?;
        let table = table.map(|bytes| read_table(&bytes).map_err(|problem| wrong(format!("{TABLE}: {problem}")))).transpose()?;
        let mut experiments: Vec<String> = table.iter().flat_map(Table::all_experiments).map(str::to_owned).collect();
        if !experiments.contains(&effective) {
            experiments.push(effective);
        }
        let about = about.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self { path: path.to_owned(), about, table, experiments })
    }

    /// Puts the copies of files into a folder of results.
    ///
    /// # Errors
    /// The archive is damaged, or the folder cannot be written.
    pub fn unpack_files(&self, store: &Store) -> Result<(), ArchiveError> {
        each_file(&self.path, |name, content| {
            let Some(name) = name.strip_prefix(FILES).and_then(|rest| rest.strip_prefix('/')) else { return Ok(()) };
            if hash_in_name(name).is_none() {
                return Err(io::Error::other(format!("`{FILES}/{name}` is not a name that `kasuri pack` gives")));
            }
            let kept = store.keep_file(name, |out| io::copy(&mut content.take(MAX_FILE_BYTES), out).map(drop));
            kept.map_err(|error| io::Error::other(error.to_string()))
        })
    }

    /// A message if another version or commit of Kasuri packed the archive.
    pub fn other_version(&self) -> Option<String> {
        let (own, path) = (PackedBy::own(), self.path.display());
        match &self.about {
            Some(about) if *about == own => None,
            Some(about) => Some(format!("{path} was packed by kasuri {about}; this is kasuri {own}")),
            None => Some(format!("{path} does not name the kasuri that packed it; this is kasuri {own}")),
        }
    }

    /// Compares rows with those in the archive; returns messages, and whether all rows are the same.
    pub fn compare(&self, rows: &[RunRow]) -> (Vec<String>, bool) {
        let path = self.path.display();
        let Some(table) = &self.table else { return (vec![format!("{path} has no table of results to compare with")], true) };
        if table.runs.len() != rows.len() {
            return (vec![format!("{} runs were made, {path} has {} rows", rows.len(), table.runs.len())], false);
        }
        let is_aligned = table.runs.iter().zip(rows).all(|(old, new)| old.key() == new.key());
        let by_key = |row: &RunRow| table.runs.iter().find(|old| old.key() == row.key());
        let pairs =
            rows.iter().enumerate().map(|(place, row)| (if is_aligned { None } else { by_key(row) }.unwrap_or(&table.runs[place]), row));
        let different: Vec<String> = pairs.filter_map(|(old, new)| difference(old, new)).collect();
        if different.is_empty() {
            return (vec![format!("all {} rows are the same as in {path}", rows.len())], true);
        }
        let head = format!("{} of {} rows differ from those in {path}:", different.len(), rows.len());
        (std::iter::once(head).chain(different.into_iter().take(MAX_LISTED)).collect(), false)
    }
}

/// Further rows that differ are only counted.
const MAX_LISTED: usize = 10;

/// Columns that depend on the program that computed a row.
const PROGRAM_COLUMNS: [&str; 5] = ["key", "kasuri_version", "kasuri_commit", "schema_version", "checksum"];

/// The first column in which two rows of one run differ, apart from costs and version.
fn difference(old: &RunRow, new: &RunRow) -> Option<String> {
    let is_compared = |name: &str| !COSTS.contains(&name) && !PROGRAM_COLUMNS.contains(&name);
    let names = new.columns().chain(old.columns()).map(|(name, _)| name).filter(|name| is_compared(name));
    let name = names.into_iter().find(|name| old.get(name) != new.get(name))?;
    let key: String = new.key().chars().take(8).collect();
    Some(format!("  {key}: {name} was {}, is {}", old.get(name), new.get(name)))
}

fn read_at_most(content: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    content.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(io::Error::other(format!("has more than {} MiB", most >> 20))) } else { Ok(bytes) }
}

/// Visits each regular file of an archive, with its place in the folder that was packed.
fn each_file(path: &Path, mut take: impl FnMut(&str, &mut dyn Read) -> io::Result<()>) -> Result<(), ArchiveError> {
    let file = File::open(path).map_err(|source| ArchiveError::Io { path: path.to_owned(), source })?;
    let mut archive = tar::Archive::new(MultiGzDecoder::new(file).take(MAX_UNPACKED_BYTES));
    let mut read = || -> io::Result<()> {
        for entry in archive.entries()? {
            let mut entry = entry?;
            if entry.header().entry_type() != EntryType::Regular {
                continue;
            }
            let place = entry.path()?.into_owned();
            // The first component is the name of the folder, which need not be text.
            let parts: Option<Vec<&str>> = place
                .components()
                .skip(1)
                .map(|part| match part {
                    Component::Normal(part) => part.to_str(),
                    _ => None,
                })
                .collect();
            if let Some(parts) = parts.filter(|parts| !parts.is_empty()) {
                let name = parts.join("/");
                take(&name, &mut entry).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
            }
        }
        Ok(())
    };
    read().map_err(|error| ArchiveError::Wrong { path: path.to_owned(), problem: format!("is not an archive that can be run: {error}") })
}
