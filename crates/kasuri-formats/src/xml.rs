//! XML with the lines of its elements, for the formats that are written in it.

use crate::error::FormatError;
use crate::text::text_of;
use roxmltree::{Document, Node, ParsingOptions};

/// Reads a file's bytes as XML. A DOCTYPE is ignored; one that declares entities is refused, so that a small file stays a small document.
///
/// # Errors
/// The text is not XML, or declares entities; with line and column.
pub(super) fn document<'a>(name: &str, bytes: &'a [u8]) -> Result<Document<'a>, FormatError> {
    let text = text_of(name, bytes)?;
    if let Some(place) = entity(text) {
        let line = 1 + text[..place].matches('\n').count();
        return Err(FormatError::new(name, line, "declares an entity (<!ENTITY …>); entities are not read: write out the text of each"));
    }
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        FormatError::new(name, place.row as usize, format!("invalid XML: {error}")).in_column(place.col as usize)
    })
}

/// The position of the first declaration of an entity. Comments, literals and the document itself may contain the word.
fn entity(text: &str) -> Option<usize> {
    let mut place = 0;
    while let Some(found) = text[place..].find('<') {
        place += found;
        let rest = &text[place..];
        place += match rest.as_bytes() {
            [b'<', b'!', b'-', b'-', ..] => 4 + rest[4..].find("-->")?,
            [b'<', b'?', ..] => rest.find("?>")?,
            _ if rest.starts_with("<!ENTITY") => return Some(place),
            [b'<', b'!', ..] => declaration(rest)?,
            // The first element ends the declarations.
            _ => return None,
        };
    }
    None
}

/// Bytes up to the end of a declaration as roxmltree reads it: a DOCTYPE ends at the declarations within it, or at a `>` outside its
/// literals, any other declaration at the first `>`.
fn declaration(text: &str) -> Option<usize> {
    if !text.starts_with("<!DOCTYPE") {
        return text.find('>');
    }
    let mut quote = None;
    text.find(|character| match (quote, character) {
        (None, '"' | '\'') => {
            quote = Some(character);
            false
        }
        (Some(open), _) => {
            quote = quote.filter(|_| character != open);
            false
        }
        (None, _) => matches!(character, '>' | '['),
    })
}

/// A document and the name of its file, for messages.
#[derive(Clone, Copy)]
pub(super) struct Xml<'a> {
    pub(super) name: &'a str,
    pub(super) document: &'a Document<'a>,
}

impl<'a> Xml<'a> {
    /// The line at which an element begins.
    pub(super) fn line(self, element: Node<'_, '_>) -> usize {
        self.document.text_pos_at(element.range().start).row as usize
    }

    pub(super) fn error(self, element: Node<'_, '_>, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, self.line(element), problem)
    }

    /// An attribute that has to be there.
    pub(super) fn needed(self, element: Node<'a, 'a>, key: &str) -> Result<&'a str, FormatError> {
        element.attribute(key).ok_or_else(|| self.error(element, format!("<{}> has no attribute `{key}`", element.tag_name().name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let read = document("f", text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(read.root_element().text().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_doctype_is_ignored() {
        for doctype in [
            "<!DOCTYPE a SYSTEM \"http://example.org/a.dtd\">",
            "<!DOCTYPE a PUBLIC \"-//A//B\" \"a.dtd\">\n",
            "<?xml version=\"1.0\"?>\n<!-- <!ENTITY x \"y\"> -->\n<!DOCTYPE a [<!ELEMENT a (#PCDATA)> <!ATTLIST a b CDATA #IMPLIED>]>",
        ] {
            assert_eq!(read(&format!("{doctype}<a>x</a>")), Ok("x".to_owned()), "{doctype}");
        }
        assert_eq!(read("<a><![CDATA[<!ENTITY]]></a>"), Ok("<!ENTITY".to_owned()));
    }

    /// A file of a kilobyte cannot become a document of gigabytes, whether entities hold each other or one large one is named often.
    #[test]
    fn entities_are_refused_with_their_line() {
        let nested: String = (1..9).map(|level| format!("<!ENTITY e{level} \"{}\">", format!("&e{};", level - 1).repeat(10))).collect();
        for text in [
            format!("<!DOCTYPE a [\n<!ENTITY e0 \"x\">{nested}]>\n<a>&e8;</a>"),
            format!("<!DOCTYPE a [\n<!ENTITY e \"{}\">]><a>{}</a>", "x".repeat(1000), "&e;".repeat(1000)),
            "<!DOCTYPE a [\n<!ENTITY % e SYSTEM \"/etc/passwd\"> %e;]><a/>".to_owned(),
            "<!DOCTYPE a [<!-- <a> -->\n<!ENTITY e \"x\">]><a/>".to_owned(),
            "<!DOCTYPE a SYSTEM '<a> <!-- [' [<!ATTLIST a b CDATA \"<c>\">\n<!ENTITY e \"x\">]><a/>".to_owned(),
            "<!DOCTYPE a [<!ATTLIST a b CDATA '<c'>\n<!ENTITY e \"x\">]><a>&e;</a>".to_owned(),
            "<!DOCTYPE a [<!ELEMENT a '>\n<!ENTITY e \"x\">]><a>&e;</a>".to_owned(),
        ] {
            assert!(read(&text).unwrap_err().starts_with("f:2: declares an entity"), "{text}");
        }
        assert!(read("<!DOCTYPE a><a>&e;</a>").unwrap_err().starts_with("f:1:"));
    }
}
