//! Which files a description was made of.

use kasuri_network::topology::Files;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Files that remember which of them were read.
pub(super) struct Recorded<'a> {
    files: &'a dyn Files,
    names: RefCell<BTreeSet<String>>,
}

impl<'a> Recorded<'a> {
    /// None was read yet.
    pub(super) fn new(files: &'a dyn Files) -> Self {
        Self { files, names: RefCell::default() }
    }

    /// The names of those that were read, sorted.
    pub(super) fn names(self) -> Vec<String> {
        self.names.into_inner().into_iter().collect()
    }

    /// Notes a file if it could be read.
    fn noting<T>(&self, path: &str, read: Result<T, String>) -> Result<T, String> {
        if read.is_ok() {
            self.names.borrow_mut().insert(path.to_owned());
        }
        read
    }
}

impl Files for Recorded<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.noting(path, self.files.read(path))
    }

    fn read_pieces(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        self.noting(path, self.files.read_pieces(path, take))
    }

    fn is_there(&self, path: &str) -> bool {
        self.files.is_there(path)
    }
}
