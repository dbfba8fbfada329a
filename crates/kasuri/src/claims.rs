//! Claims: which runs of a shared store are being computed, so that no two processes compute the same one.
//!
//! A claim is a lock on one byte of a file, at an offset given by the head of the run's key. The operating system releases the lock when
//! the process ends, also when it is killed. Locks only save work: without them (systems other than Linux, some network file systems) a run
//! is at worst computed twice, with the same result.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file with the locked bytes. It stays empty.
const NAME: &str = ".kasuri-claims";

/// The claims of one store.
#[derive(Debug)]
pub(crate) struct Claims {
    file: File,
}

/// A run claimed by this process while the value lives.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    claims: &'a Claims,
    offset: i64,
}

impl Claims {
    /// Opens the claims of a store, shared by all processes that compute runs of it.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let file =
            File::options().create(true).truncate(false).write(true).read(true).custom_flags(libc::O_NOFOLLOW).open(folder.join(NAME))?;
        Ok(Self { file })
    }

    /// Claims a run; `None` while another process has it. Without locks, every process gets it.
    pub(crate) fn claim(&self, key: &str) -> Option<Claim<'_>> {
        let offset = offset(key);
        match lock(&self.file, offset, Change::Take) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            _ => Some(Claim { claims: self, offset }),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // A failed release is repeated at the end of the process.
        let _ = lock(&self.claims.file, self.offset, Change::Release);
    }
}

/// The byte of a run: below 2^60, an offset that every file system supports. Two runs with the same byte only wait for each other.
fn offset(key: &str) -> i64 {
    let head = key.get(..15).unwrap_or(key);
    i64::from_str_radix(head, 16).unwrap_or(0)
}

#[derive(Clone, Copy)]
enum Change {
    Take,
    Release,
}

/// Locks or unlocks a byte for this open file: the locks of two openings exclude each other, also within one process.
#[cfg(target_os = "linux")]
fn lock(file: &File, offset: i64, change: Change) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, fcntl};
    let kind = match change {
        Change::Take => libc::F_WRLCK,
        Change::Release => libc::F_UNLCK,
    };
    let byte = libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: offset, l_len: 1, l_pid: 0 };
    fcntl(file, FcntlArg::F_OFD_SETLK(&byte))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn lock(_: &File, _: i64, _: Change) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "f123456789abcdef0123456789abcdef";

    #[test]
    fn a_run_belongs_to_one_opening_until_it_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, yours) = (Claims::open(folder.path()).unwrap(), Claims::open(folder.path()).unwrap());
        let claim = mine.claim(ONE).unwrap();
        assert!(yours.claim(ONE).is_none());
        let beside = yours.claim(OTHER).unwrap();
        assert!(mine.claim(OTHER).is_none());
        drop(claim);
        assert!(yours.claim(ONE).is_some(), "it was given back");
        assert!(mine.claim(OTHER).is_none(), "giving back one run gives back no other");
        drop(beside);
    }

    #[test]
    fn claims_end_with_the_opening() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, yours) = (Claims::open(folder.path()).unwrap(), Claims::open(folder.path()).unwrap());
        std::mem::forget(mine.claim(ONE).unwrap());
        assert!(yours.claim(ONE).is_none());
        drop(mine);
        assert!(yours.claim(ONE).is_some());
    }

    #[test]
    fn keys_have_bytes_of_their_own() {
        assert_eq!(offset(ONE), 0x0123_4567_89ab_cde);
        assert_ne!(offset(ONE), offset(OTHER));
        assert_eq!(offset("ffffffffffffffffffffffffffffffff"), (1 << 60) - 1);
        assert_eq!(offset("00ff"), 0xff);
    }
}
