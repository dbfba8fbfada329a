//! The files that an experiment names, as they were when they were first read.
//!
//! A run is prepared twice, when the experiment is checked and again when its turn comes, which may be hours later. Small files are read
//! once, so that edits meanwhile change no run; changes of large files are detected by the key of the run.

use kasuri_network::topology::Files;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes kept.
pub(crate) const MAX_CACHED_BYTES: usize = 64 << 20;

/// Files that are read once, up to a limit on all bytes.
pub(crate) struct Snapshot<'a> {
    files: &'a (dyn Files + Sync),
    kept: Mutex<CachedFile>,
    most_bytes: usize,
}

#[derive(Default)]
struct CachedFile {
    files: BTreeMap<String, Arc<[u8]>>,
    bytes: usize,
}

impl<'a> Snapshot<'a> {
    /// An empty cache.
    pub(crate) fn of(files: &'a (dyn Files + Sync), most_bytes: usize) -> Self {
        Self { files, kept: Mutex::default(), most_bytes }
    }

    fn kept(&self, path: &str) -> Option<Arc<[u8]>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).files.get(path).cloned()
    }

    /// Bytes left.
    fn room(&self) -> usize {
        self.most_bytes - self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Keeps a whole file if there is room; the first of several threads decides.
    fn keep(&self, path: &str, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() <= self.most_bytes - kept.bytes && !kept.files.contains_key(path) {
            kept.bytes += bytes.len();
            kept.files.insert(path.to_owned(), Arc::from(bytes));
        }
    }
}

impl Files for Snapshot<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if let Some(bytes) = self.kept(path) {
            return Ok(bytes.to_vec());
        }
        let bytes = self.files.read(path)?;
        self.keep(path, &bytes);
        Ok(self.kept(path).map_or(bytes, |first| first.to_vec()))
    }

    fn read_pieces(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        if let Some(bytes) = self.kept(path) {
            take(&bytes);
            return Ok(());
        }
        let room = self.room();
        let mut whole = Some(Vec::new());
        self.files.read_pieces(path, &mut |piece| {
            if whole.as_ref().is_some_and(|whole| whole.len() + piece.len() > room) {
                whole = None;
            }
            whole.iter_mut().for_each(|whole| whole.extend_from_slice(piece));
            let wants_more = take(piece);
            if !wants_more {
                whole = None;
            }
            wants_more
        })?;
        whole.iter().for_each(|whole| self.keep(path, whole));
        Ok(())
    }

    fn is_there(&self, path: &str) -> bool {
        self.kept(path).is_some() || self.files.is_there(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// A file that is different at each reading, in two pieces.
    #[derive(Default)]
    struct Changing(AtomicU8);

    impl Files for Changing {
        fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
            Ok(vec![self.0.fetch_add(1, Ordering::Relaxed); 10])
        }

        fn read_pieces(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
            let bytes = self.read(path)?;
            let _ = take(&bytes[..5]) && take(&bytes[5..]);
            Ok(())
        }
    }

    fn pieces(files: &dyn Files, path: &str) -> Vec<u8> {
        let mut all = Vec::new();
        files
            .read_pieces(path, &mut |piece| {
                all.extend_from_slice(piece);
                true
            })
            .unwrap();
        all
    }

    #[test]
    fn a_cached_file_does_not_change() {
        let changing = Changing::default();
        let snapshot = Snapshot::of(&changing, 100);
        assert_eq!((pieces(&snapshot, "a"), snapshot.read("a").unwrap()), (vec![0; 10], vec![0; 10]));
        assert_eq!((snapshot.read("b").unwrap(), pieces(&snapshot, "b")), (vec![1; 10], vec![1; 10]));
        // A reader that stops early has not read the whole file.
        snapshot.read_pieces("c", &mut |_| false).unwrap();
        assert_eq!((snapshot.read("c").unwrap(), snapshot.read("c").unwrap()), (vec![3; 10], vec![3; 10]));
    }

    #[test]
    fn large_networks_are_not_kept() {
        let changing = Changing::default();
        let snapshot = Snapshot::of(&changing, 25);
        (0..2).for_each(|number| assert_eq!(pieces(&snapshot, &number.to_string()), vec![number; 10]));
        assert_eq!((pieces(&snapshot, "x"), snapshot.read("x").unwrap()), (vec![2; 10], vec![3; 10]));
        assert_eq!(snapshot.read("0").unwrap(), vec![0; 10]);
    }
}
