//! The record of an experiment in its folder of results: one file that can be run again, with all settings, and copies of the files that it
//! names, so that the folder is complete.

use crate::plan::{RunError, Runs};
use crate::store::{FILES, Store};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The first lines of the file.
const HEAD: &str = "# The experiment as it was run, with all settings of the command line and of Python. `kasuri run` of this file repeats it,\n\
    # wherever its folder is: [record] gives the copies of the files that it names.\n\n";

/// The most bytes of the end of a file's name that its copy keeps.
const MAX_NAME_BYTES: usize = 80;

/// Digits of the hash of a file's content in the name of its copy.
const HASH_DIGITS: usize = 12;

/// Keeps the experiment of all of these runs and the files that they name; returns its text.
///
/// # Errors
/// A file has changed since the runs were checked, or the store cannot be written.
pub(crate) fn keep(runs: &Runs<'_>, store: &Store) -> Result<String, RunError> {
    let mut copies = BTreeMap::new();
    for (name, hash) in runs.named_files() {
        let copy = copy_name(name, hash);
        keep_file(runs, store, name, hash, &copy)?;
        copies.insert(name.to_owned(), format!("{FILES}/{copy}"));
    }
    let text = format!("{HEAD}{}", runs.document().effective(copies)?);
    store.keep_effective(&text)?;
    Ok(text)
}

fn keep_file(runs: &Runs<'_>, store: &Store, name: &str, hash: &str, copy: &str) -> Result<(), RunError> {
    let changed = || RunError::Changed { document: runs.document().name().to_owned(), files: name.to_owned() };
    let mut is_changed = false;
    let kept = store.keep_file(copy, |out| {
        let (mut hasher, mut written) = (blake3::Hasher::new(), Ok(()));
        let read = runs.read_file(name, &mut |piece| {
            hasher.update(piece);
            written = out.write_all(piece);
            written.is_ok()
        });
        written?;
        is_changed = read.is_err() || hasher.finalize().to_hex().as_str() != hash;
        if is_changed { Err(io::Error::other("the file has changed")) } else { Ok(()) }
    });
    if is_changed { Err(changed()) } else { Ok(kept?) }
}

/// The name of a file's copy: two files of one content have one copy, and no name leads out of the folder.
fn copy_name(name: &str, hash: &str) -> String {
    let last = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    let plain: String = last.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    format!("{}-{}", &hash[..HASH_DIGITS.min(hash.len())], &plain[plain.len().saturating_sub(MAX_NAME_BYTES)..])
}

/// The digits of the hash in the name of a copy; nothing for a name that no copy has.
pub(crate) fn hash_in_name(copy: &str) -> Option<&str> {
    let (hash, _) = copy.split_once('-')?;
    (hash.len() == HASH_DIGITS && copy.chars().all(is_plain)).then_some(hash)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_are_plain_and_begin_with_the_hash() {
        let hash = "0123456789abcdef";
        for (name, expected) in [
            ("a/m.txt", "0123456789ab-m.txt"),
            ("../../etc/pass wd", "0123456789ab-pass_wd"),
            ("x/..", "0123456789ab-"),
            ("a\nb\u{e9}.json", "0123456789ab-a_b_.json"),
        ] {
            assert_eq!(copy_name(name, hash), expected);
            assert_eq!(hash_in_name(expected), Some(&hash[..HASH_DIGITS]));
        }
        for other in ["m.txt", ".x", "0123-m.txt", "0123456789ab-a/b", "../56789ab-a", ""] {
            assert_eq!(hash_in_name(other), None);
        }
        assert_eq!(copy_name(&"x".repeat(300), hash).len(), 13 + MAX_NAME_BYTES);
    }
}
