//! Which Kasuri this is.

/// The version and the commit of the sources, as `kasuri --version` says them.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("KASURI_COMMIT_WORDS"), ")");

/// The commit of the sources, twelve digits, with `-dirty` behind it where they differ from it. `None` where it was built without git.
pub fn commit() -> Option<&'static str> {
    Some(env!("KASURI_COMMIT")).filter(|commit| !commit.is_empty())
}
