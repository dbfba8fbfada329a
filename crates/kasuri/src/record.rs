//! The record of an experiment in its folder of results: one runnable file with all settings, and copies of the files that it names, so
//! that the folder is complete.

use crate::checksums::sealed_text;
use crate::copies::copy_name;
use crate::plan::{RunError, Runs};
use crate::store::{FILES, Store, StoreError};
use std::collections::BTreeMap;
use std::io;

/// The first lines of the file.
const HEAD: &str = "# The experiment as it was run, with all settings of the command line and of Python. `kasuri run` of this file repeats it,\n\
    # wherever its folder is: [record] gives the copies of the files that it names.\n\n";

/// Keeps the experiment of all of these runs and the files that they name; returns its text.
///
/// # Errors
/// A file has changed since the runs were checked, or the store cannot be written.
pub(crate) fn keep(runs: &Runs<'_>, store: &Store) -> Result<String, RunError> {
    let mut copies = BTreeMap::new();
    for (name, hash) in runs.named_files() {
        let copy = copy_name(name, hash);
        keep_file(runs, store, name, &copy)?;
        copies.insert(name.to_owned(), format!("{FILES}/{copy}"));
    }
    let text = sealed_text(&format!("{HEAD}{}", runs.document().effective(copies)?));
    store.keep_effective(&text)?;
    Ok(text)
}

fn keep_file(runs: &Runs<'_>, store: &Store, name: &str, copy: &str) -> Result<(), RunError> {
    let kept = store.keep_file(copy, |out| {
        let mut written = Ok(());
        let read = runs.read_file(name, &mut |piece| {
            written = out.write_all(piece);
            written.is_ok()
        });
        written?;
        read.map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))
    });
    match kept {
        // It was read before, for its hash.
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidData => {
            Err(RunError::Changed { document: runs.document().name().to_owned(), files: name.to_owned() })
        }
        kept => Ok(kept?),
    }
}
