//! Writes files so that each appears whole or not at all, and never through a symbolic link within a store.

use super::{MARKER, PARTS, StoreError};
use std::fs::{self, File};
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The suffix of files under construction.
pub(super) const TEMPORARY: &str = ".kasuri-tmp";

/// Whether a file is flushed to the disk before it appears under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// It survives a crash of the machine.
    Now,
    /// The system writes it later, within about half a minute.
    Later,
}

/// Runs of at least this many seconds are flushed: flushes take some milliseconds a file, together several times as long as a small run.
const MIN_FLUSHED_SECONDS: f64 = 1.0;

impl Flush {
    /// The choice for a run of this many seconds.
    pub(super) fn after(seconds: f64) -> Self {
        if seconds >= MIN_FLUSHED_SECONDS { Self::Now } else { Self::Later }
    }
}

/// True for a folder within a store.
fn is_part(folder: &Path) -> bool {
    let is_named_so = folder.file_name().is_some_and(|name| PARTS.iter().any(|part| name == *part));
    is_named_so && folder.parent().is_some_and(|store| store.join(MARKER).exists())
}

/// Refuses to write into or through a symbolic link.
pub(super) fn refuse_link(path: &Path) -> Result<(), StoreError> {
    match path.symlink_metadata() {
        Ok(about) if about.is_symlink() => Err(StoreError::Link { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Writes files of one folder so that each appears whole or not at all: all are written under temporary names, flushed to the disk if
/// requested, and then renamed in their order.
pub(super) fn write_whole(files: &[(PathBuf, Vec<u8>)], flush: Flush) -> Result<(), StoreError> {
    write_with(files, flush, |file, bytes| file.write_all(bytes))
}

/// Writes the content of a file.
type WriteContent<'a, C> = &'a mut dyn FnMut(&mut File, &C) -> io::Result<()>;

/// As [`write_whole`], for contents with their own writer.
pub(crate) fn write_with<C>(
    files: &[(PathBuf, C)],
    flush: Flush,
    mut write: impl FnMut(&mut File, &C) -> io::Result<()>,
) -> Result<(), StoreError> {
    let temporaries: Vec<PathBuf> = files.iter().map(|(path, _)| temporary(path)).collect();
    let result = write_temporaries(files, &temporaries, flush, &mut write).and_then(|()| {
        for ((path, _), temporary) in files.iter().zip(&temporaries) {
            fs::rename(temporary, path).map_err(|error| StoreError::at(path, error))?;
        }
        Ok(())
    });
    if result.is_err() {
        // The first error is reported; a temporary file that cannot be removed is removed at the next start.
        for temporary in &temporaries {
            let _ = fs::remove_file(temporary);
        }
    }
    if flush == Flush::Now {
        files.iter().take(1).for_each(|(path, _)| sync_folder(path));
    }
    result
}

fn write_temporaries<C>(
    files: &[(PathBuf, C)],
    temporaries: &[PathBuf],
    flush: Flush,
    write: WriteContent<'_, C>,
) -> Result<(), StoreError> {
    let mut written = Vec::new();
    for ((path, content), temporary) in files.iter().zip(temporaries) {
        // The folder may have become a link since it was checked. The user may give the store itself as one.
        path.parent().filter(|folder| is_part(folder)).map_or(Ok(()), refuse_link)?;
        // A killed process may have left a file of this name, or an attacker a link.
        let _ = fs::remove_file(temporary);
        let mut file = File::create_new(temporary).map_err(|error| StoreError::at(path, error))?;
        write(&mut file, content).map_err(|error| StoreError::at(path, error))?;
        written.push((path, file));
    }
    if flush == Flush::Now {
        // A flush waits some milliseconds for the disk. So all are begun before the first is awaited, and the others are then mostly done.
        written.iter().for_each(|(_, file)| begin_flush(file));
        written.iter().try_for_each(|(path, file)| file.sync_all().map_err(|error| StoreError::at(path, error)))?;
    }
    // Without a flush a network file system reports a full disk only now.
    written.into_iter().try_for_each(|(path, file)| nix::unistd::close(file).map_err(|error| StoreError::at(path, error.into())))
}

/// Asks the system to begin writing a file to the disk, where it can; errors show when the file is flushed.
fn begin_flush(file: &File) {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes numbers only, and the file is open.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// A temporary name for a file, unique among the threads of this process and among processes that compute points of the same folder.
fn temporary(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}{TEMPORARY}", std::process::id()))
}

/// Makes the renaming permanent. Not every file system can; the file is whole in any case.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}
