//! The version of this program.

/// The version and the commit of the sources, as `kasuri --version` prints them.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("KASURI_COMMIT_WORDS"), ")");

/// The commit of the sources, twelve digits, followed by `-dirty` if they were changed; `None` if the build did not know it.
pub fn commit() -> Option<&'static str> {
    Some(env!("KASURI_COMMIT")).filter(|commit| !commit.is_empty())
}
