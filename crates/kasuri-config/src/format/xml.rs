//! XML with the lines of its elements, for the formats that are written in it.

use super::{FormatError, text_of};
use roxmltree::{Document, Node};

/// Reads a file's bytes as XML.
///
/// # Errors
/// They are none; with line and column.
pub(super) fn document<'a>(name: &str, bytes: &'a [u8]) -> Result<Document<'a>, FormatError> {
    Document::parse(text_of(name, bytes)?).map_err(|error| {
        let place = error.pos();
        FormatError::new(name, place.row as usize, format!("is no XML: {error}")).in_column(place.col as usize)
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
