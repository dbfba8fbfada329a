//! Experiment files and the files that they name.

use crate::copies::CopyCheck;
use crate::cost::available_memory_bytes;
use crate::engines;
use flate2::read::MultiGzDecoder;
use kasuri_config::{ConfigError, Document, Known};
use kasuri_formats::FormatError;
use kasuri_formats::text::text_of;
use kasuri_network::topology::Files;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use thiserror::Error;

/// This program's engines and allocators, for reading experiment files.
pub static KNOWN: LazyLock<Known<'static>> = LazyLock::new(|| {
    static ALLOCATORS: LazyLock<Vec<&str>> = LazyLock::new(|| kasuri_flit::ALLOCATORS.iter().map(|entry| entry.name).collect());
    Known {
        engines: engines::ENGINES,
        default_engine: engines::DEFAULT,
        allocators: &ALLOCATORS,
        memory_bytes: available_memory_bytes().unwrap_or(u64::MAX),
    }
});

/// Errors of reading an experiment file.
#[derive(Debug, Error)]
pub enum InputError {
    /// The file cannot be read. Check the path and its permissions.
    #[error("{}: cannot be read: {reason}", path.display())]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The file is not text.
    #[error("{problem}; {expected}")]
    NotText {
        /// The expected form, as a sentence.
        expected: &'static str,
        /// The form found instead.
        problem: FormatError,
    },
    /// The file has an error.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Reads an experiment file; `assignments` are the texts of `--set`. Returns it with its text.
///
/// # Errors
/// The file cannot be read, is not valid TOML, or an assignment is wrong.
pub fn read_experiment(path: &Path, assignments: &[String]) -> Result<(Document, String), InputError> {
    let text = read_text(path, "an experiment file is TOML")?;
    let mut document = Document::parse_for(*KNOWN, &path.display().to_string(), &text)?;
    for assignment in assignments {
        document.set_text(assignment)?;
    }
    Ok((document, text))
}

/// The size of the largest file that an experiment may name, bytes: traces are large.
pub const MAX_FILE_BYTES: u64 = 4 << 30;

/// Bytes of the largest experiment file, and of data read from pipes and devices, which may never end.
pub const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Reads a whole file of at most `most` bytes.
pub(crate) fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    let most = if file.metadata()?.is_file() { most } else { most.min(MAX_TEXT_BYTES) };
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let reason = format!("has more than {most} bytes ({} MiB), the most that is read of such a file", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// The first bytes of a gzipped file.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Passes the bytes of a file to `take` piece by piece, unpacked if it is gzipped, until that returns false.
pub(crate) fn read_gzipped_pieces(path: &Path, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
    let file = fs::File::open(path)?;
    let about = file.metadata()?;
    let most = if about.is_file() { u64::MAX } else { MAX_TEXT_BYTES };
    // A trace has a file for each of thousands of NPUs, and many files are small.
    let piece = if about.is_file() { (about.len() as usize).clamp(1 << 10, PIECE) } else { PIECE };
    let mut file = BufReader::with_capacity(piece, file.take(most));
    let zipped = file.fill_buf()?.starts_with(&GZIP);
    let mut pieces: Box<dyn BufRead> =
        if zipped { Box::new(BufReader::with_capacity(PIECE, MultiGzDecoder::new(file))) } else { Box::new(file) };
    loop {
        let piece = pieces.fill_buf()?;
        if piece.is_empty() || !take(piece) {
            return Ok(());
        }
        let length = piece.len();
        pieces.consume(length);
    }
}

/// Reads a whole file of at most `most` bytes, gzipped or not.
pub(crate) fn read_gzipped_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_gzipped_pieces(path, &mut |piece| {
        bytes.extend_from_slice(piece);
        bytes.len() as u64 <= most
    })?;
    if bytes.len() as u64 > most {
        let reason = format!("has more than {most} bytes ({} MiB), the most that is read of such a file", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// A gzipped file may unpack to this many times its size: dumps of fabrics and traces shrink to between a seventh and a thirtieth, while a
/// malicious file of a few MB can unpack to a thousand times as much.
const MAX_EXPANSION: u64 = 100;

/// The most bytes to which a gzipped file may unpack in memory: [`MAX_EXPANSION`] times its size, at least [`MAX_TEXT_BYTES`].
pub(crate) fn max_unpacked_bytes(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.len().saturating_mul(MAX_EXPANSION).clamp(MAX_TEXT_BYTES, MAX_FILE_BYTES))
}

/// Reads a whole file, gzipped or not, of at most [`max_unpacked_bytes`].
pub(crate) fn read_dump(path: &Path) -> io::Result<Vec<u8>> {
    let size = fs::metadata(path)?.len();
    let most = max_unpacked_bytes(path)?;
    read_gzipped_at_most(path, most).map_err(|reason| match reason.kind() {
        io::ErrorKind::FileTooLarge if size < most => {
            let reason =
                format!("unpacks to more than {most} bytes ({} MiB) from {size}: no dump shrinks so much; unpack it yourself", most >> 20);
            io::Error::new(io::ErrorKind::FileTooLarge, reason)
        }
        _ => reason,
    })
}

/// Reads a text file, without a byte-order mark. `expected` describes the expected content.
///
/// # Errors
/// The file cannot be read, has more than [`MAX_TEXT_BYTES`], or is not a text.
pub fn read_text(path: &Path, expected: &'static str) -> Result<String, InputError> {
    let bytes = read_at_most(path, MAX_TEXT_BYTES).map_err(|reason| InputError::Unreadable { path: path.to_owned(), reason })?;
    match text_of(&path.display().to_string(), &bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(problem) => Err(InputError::NotText { expected, problem }),
    }
}

/// The files that an experiment names, relative to a folder: that of the experiment file.
#[derive(Clone, Debug)]
pub struct FolderFiles {
    folder: PathBuf,
    /// The paths of copies, by the names of the files.
    copies: BTreeMap<String, String>,
}

impl FolderFiles {
    /// Files relative to `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), copies: BTreeMap::new() }
    }

    /// Reads files from their copies in the experiment's section `[record]`, and checks their content.
    ///
    /// # Errors
    /// The section is wrong.
    pub fn with_copies_of(self, document: &Document) -> Result<Self, ConfigError> {
        Ok(Self { copies: document.record()?.files, ..self })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(self.copies.get(name).map_or(name, String::as_str))
    }

    /// Files relative to the folder of this file.
    pub fn next_to(file: &Path) -> Self {
        Self::new(file.parent().unwrap_or(Path::new("")))
    }
}

/// The size of a piece of a large file, bytes.
const PIECE: usize = 1 << 18;

impl Files for FolderFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let full = self.path(path);
        let read = || {
            let bytes = read_at_most(&full, MAX_FILE_BYTES)?;
            if self.copies.contains_key(path) {
                let mut check = CopyCheck::new(&full, io::sink());
                check.write_all(&bytes)?;
                check.finish()?;
            }
            Ok(bytes)
        };
        read().map_err(|reason: io::Error| format!("`{}` cannot be read: {reason}", full.display()))
    }

    fn read_pieces(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        let full = self.path(path);
        let mut check = self.copies.contains_key(path).then(|| CopyCheck::new(&full, io::sink()));
        let mut is_whole = true;
        let read = read_gzipped_pieces(&full, &mut |piece| {
            if let Some(check) = &mut check {
                // Writing to a sink cannot fail.
                let _ = check.write_all(piece);
            }
            is_whole = take(piece);
            is_whole
        });
        let read = read.and_then(|()| check.filter(|_| is_whole).map_or(Ok(()), CopyCheck::finish));
        read.map_err(|reason| format!("`{}` cannot be read: {reason}", full.display()))
    }

    fn is_there(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An endless device is refused, a file of the largest size is read.
    #[test]
    fn endless_workloads_are_refused() {
        assert_eq!(read_at_most(Path::new("/dev/zero"), MAX_FILE_BYTES).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("five");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_at_most(&path, 5).unwrap(), b"12345");
        assert!(read_at_most(&path, 4).unwrap_err().to_string().contains("more than 4 bytes"));
    }

    /// 65 MiB of blanks shrink to a thousandth, and are not unpacked to the end; a file that shrinks as dumps do is read.
    #[test]
    fn a_file_that_unpacks_too_far_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump.gz");
        let write = |count: usize| {
            let mut packed = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
            (0..count).for_each(|_| packed.write_all(&[b' '; 1 << 20]).unwrap());
            packed.finish().unwrap();
        };
        write(65);
        let error = read_dump(&path).unwrap_err().to_string();
        assert!(error.starts_with("unpacks to more than 67108864 bytes (64 MiB) from "), "{error}");
        write(2);
        assert_eq!(read_dump(&path).unwrap().len(), 2 << 20);
    }
}
