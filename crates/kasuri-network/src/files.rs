//! How files that parameters name are read.

/// The only way to a file from here: the façade supplies it, tests supply bytes.
pub trait Files {
    /// The bytes of the file at `path`.
    ///
    /// # Errors
    /// A sentence that says why it cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Gives the bytes of the file at `path` piece by piece, until `take` says that it wants no more: some files are too large to lie
    /// in memory as text.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn read_pieces(&self, path: &str, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), String> {
        take(&self.read(path)?);
        Ok(())
    }

    /// Is there a file at `path`, whether or not it can be read?
    fn is_there(&self, path: &str) -> bool {
        self.read(path).is_ok()
    }
}

/// No files at all, for descriptions that need none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("`{path}` cannot be read here: this description has no files"))
    }
}
