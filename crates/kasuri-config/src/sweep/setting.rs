//! One setting of a sweep: a key with its value and its place.

use std::sync::Arc;
use toml::Value;

/// A leaf key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    /// The dotted key.
    pub(super) key: Arc<str>,
    /// The part of the key, in bytes, that was written as a key; the rest are keys of tables that are merged.
    pub(super) written: usize,
    pub(super) value: Value,
    /// Its place, as a path of the document.
    pub(super) place: Arc<str>,
}
