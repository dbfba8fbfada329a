//! The names of the copies of files in a folder of results, `HASH-NAME`, which prove their contents.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Digits of the hash of a file's content in the name of its copy.
const HASH_DIGITS: usize = 12;

/// The longest end of a file's name that its copy keeps, bytes.
const MAX_NAME_BYTES: usize = 80;

/// The name of a file's copy: two files of one content have one copy, and no name leads out of the folder.
pub(crate) fn copy_name(name: &str, hash: &str) -> String {
    let last = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    let plain: String = last.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    format!("{}-{}", &hash[..HASH_DIGITS.min(hash.len())], &plain[plain.len().saturating_sub(MAX_NAME_BYTES)..])
}

/// The digits of the hash in the name of a copy; `None` for other names.
pub(crate) fn hash_in_name(copy: &str) -> Option<&str> {
    let (hash, _) = copy.split_once('-')?;
    (hash.len() == HASH_DIGITS && copy.chars().all(is_plain)).then_some(hash)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}

/// Writes a file, and compares its content with the hash in its name.
#[derive(Debug)]
pub(crate) struct CopyCheck<'a, W> {
    /// The digits of the hash; `None` if the file is not a copy and may have any content.
    expected: Option<&'a str>,
    hasher: blake3::Hasher,
    out: W,
}

impl<'a, W: Write> CopyCheck<'a, W> {
    /// Checks the file at `path` while its content goes to `out`.
    pub(crate) fn new(path: &'a Path, out: W) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self { expected: name.and_then(hash_in_name), hasher: blake3::Hasher::new(), out }
    }

    /// Checks the content after its last piece.
    ///
    /// # Errors
    /// The content has another hash ([`io::ErrorKind::InvalidData`]), or cannot be written.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let is_right = self.expected.is_none_or(|expected| self.hasher.finalize().to_hex().starts_with(expected));
        if is_right { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, "the file is damaged (its hash differs)")) }
    }
}

impl<W: Write> Write for CopyCheck<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        if self.expected.is_some() {
            self.hasher.update(&bytes[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// True if this file is a copy with the content of its hash.
pub(crate) fn is_whole_copy(path: &Path) -> bool {
    let mut check = CopyCheck::new(path, io::sink());
    File::open(path).and_then(|mut file| io::copy(&mut file, &mut check)).and_then(|_| check.finish()).is_ok()
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

    #[test]
    fn a_copy_has_the_content_of_its_hash() {
        let name = copy_name("m.txt", blake3::hash(b"mesh").to_hex().as_str());
        for (path, content, is_right) in [(&*name, "mesh", true), (&name, "mess", false), (&name, "", false), ("m.txt", "mess", true)] {
            let mut out = Vec::new();
            let mut check = CopyCheck::new(Path::new(path), &mut out);
            content.as_bytes().chunks(3).for_each(|piece| check.write_all(piece).unwrap());
            assert_eq!(check.finish().is_ok(), is_right, "{path} {content}");
            assert_eq!(out, content.as_bytes());
        }
    }
}
