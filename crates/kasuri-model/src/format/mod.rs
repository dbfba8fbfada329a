//! Formats: parsers and writers over text and bytes. Files are opened elsewhere.

pub mod booksim;
