//! Text in the bytes of a file: UTF-8, with or without the byte-order mark that some editors write.

use crate::error::FormatError;
use thiserror::Error;

/// U+FEFF in UTF-8: at the beginning of a file it marks the encoding and does not belong to the text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why bytes are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotText {
    /// They begin with a byte-order mark of UTF-16 or UTF-32, or with letters of two bytes, one of them zero.
    #[error("is text in {encoding}, not in UTF-8; convert it, for example with `iconv -f {encoding} -t UTF-8`")]
    Encoding {
        /// The encoding as iconv calls it.
        encoding: &'static str,
    },
    /// They begin as gzipped files do.
    #[error("is gzipped; unpack it first, for example with gunzip")]
    Gzipped,
    /// They are not UTF-8.
    #[error("is not text in UTF-8")]
    Invalid {
        /// The first byte that is wrong, from 0.
        byte: usize,
    },
}

impl NotText {
    /// The line with the first wrong byte, from 1.
    fn line(self, bytes: &[u8]) -> usize {
        let Self::Invalid { byte } = self else { return 1 };
        1 + bytes[..byte].iter().filter(|&&byte| byte == b'\n').count()
    }
}

/// The bytes without a byte-order mark of UTF-8.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// The text of a file, without a byte-order mark.
///
/// # Errors
/// The bytes are not UTF-8. The error names other encodings and gzipped files as such.
pub fn decode(bytes: &[u8]) -> Result<&str, NotText> {
    if let Some(encoding) = other_encoding(bytes) {
        return Err(NotText::Encoding { encoding });
    }
    std::str::from_utf8(without_mark(bytes)).map_err(|error| match bytes {
        [0x1f, 0x8b, ..] => NotText::Gzipped,
        _ => NotText::Invalid { byte: bytes.len() - without_mark(bytes).len() + error.valid_up_to() },
    })
}

/// The encoding of a text in UTF-16 or UTF-32, by its byte-order mark or by the zero bytes of its first letters.
fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [1..=0x7f, 0, 1..=0x7f, 0, ..] => Some("UTF-16LE"),
        [0, 1..=0x7f, 0, 1..=0x7f, ..] => Some("UTF-16BE"),
        _ => None,
    }
}

/// As [`decode`], with the name of the file and the line in the error.
///
/// # Errors
/// Those of [`decode`].
pub fn text_of<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, FormatError> {
    decode(bytes).map_err(|problem| FormatError::new(name, problem.line(bytes), problem.to_string()))
}

/// The lines of a text file that say something: number (from 1) and text without its `#` comment and surrounding blanks.
///
/// # Errors
/// The bytes are not UTF-8; the line that holds the first wrong byte is named.
pub fn meaningful_lines<'a>(name: &str, bytes: &'a [u8]) -> Result<Vec<(usize, &'a str)>, FormatError> {
    let text = text_of(name, bytes)?;
    let without_comment = |line: &'a str| line.split('#').next().unwrap_or_default().trim();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, without_comment(line)));
    Ok(lines.filter(|(_, line)| !line.is_empty()).collect())
}

/// The beginning of a text, for messages.
pub fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_does_not_belong_to_the_text() {
        assert_eq!(decode(b"\xef\xbb\xbfa\n"), Ok("a\n"));
        assert_eq!(decode(b"a\xef\xbb\xbf"), Ok("a\u{feff}"));
        assert_eq!(decode(b"\xef\xbb\xbf"), Ok(""));
        assert_eq!(decode(b"\xef\xbb\xbfa\xff"), Err(NotText::Invalid { byte: 4 }));
        assert_eq!(text_of("n", b"\xef\xbb\xbfa\nb\xff").unwrap_err().to_string(), "n:2: is not text in UTF-8");
    }

    #[test]
    fn other_encodings_are_named_with_the_way_out() {
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        for (bytes, encoding) in [
            (utf16("\u{feff}router a", u16::to_le_bytes), "UTF-16"),
            (utf16("\u{feff}router a", u16::to_be_bytes), "UTF-16"),
            (utf16("router a", u16::to_le_bytes), "UTF-16LE"),
            (utf16("router a", u16::to_be_bytes), "UTF-16BE"),
            ("\u{feff}router a".chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect(), "UTF-32"),
        ] {
            assert_eq!(decode(&bytes), Err(NotText::Encoding { encoding }));
        }
        let error = text_of("n", b"\xff\xfer\0").unwrap_err().to_string();
        assert_eq!(error, "n:1: is text in UTF-16, not in UTF-8; convert it, for example with `iconv -f UTF-16 -t UTF-8`");
        assert_eq!(decode(&[0x1f, 0x8b, 8, 0]), Err(NotText::Gzipped));
    }
}
