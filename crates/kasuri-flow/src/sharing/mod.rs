//! Sharings: which part of a channel's bandwidth each of its flows gets.
//!
//! Rates are told by a *level* of each channel: a flow's rate is the least level on its path. A sharing works out the levels of
//! the channels whose flows have changed, and of those that this touches.
//!
//! The arbitrated sharing has no rates: it has a folder of its own.
//!
//! Members import the contract (`contract.rs`), never this file.
//!
//! To add one: a file here that implements [`Sharing`], a `mod` line, and its line in [`SHARINGS`].

mod contract;
mod equal_share;
mod max_min;

pub(crate) use contract::{LevelByCount, Sharing};

/// A line of the table of sharings.
#[derive(Clone, Copy)]
pub struct SharingEntry {
    /// The name in the experiment file.
    pub name: &'static str,
    /// One line for the reference.
    pub summary: &'static str,
    build: fn() -> Model,
}

/// How shares come about.
#[derive(Debug)]
pub(crate) enum Model {
    /// By levels of channels.
    Levels(Box<dyn Sharing>),
    /// By what routers do with parcels of messages (`arbitrated/`).
    Arbitrated,
}

impl std::fmt::Debug for SharingEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SharingEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All sharings; the first is the default.
pub static SHARINGS: &[SharingEntry] = &[
    SharingEntry {
        name: "equal-share",
        summary: "each channel divides its bandwidth equally; a flow gets the least of its shares, and what it leaves is lost",
        build: || Model::Levels(Box::new(equal_share::EqualShare)),
    },
    SharingEntry {
        name: "max-min",
        summary: "max-min fair: what a flow cannot use goes to the others (Bertsekas and Gallager 1992, section 6.5)",
        build: || Model::Levels(Box::<max_min::MaxMin>::default()),
    },
    SharingEntry {
        name: "arbitrated",
        summary: "what follows from round robin, virtual channels and bounded buffers of routers, for parcels of several packets",
        build: || Model::Arbitrated,
    },
];

/// The sharing of this name.
pub(crate) fn build(name: &str) -> Option<Model> {
    SHARINGS.iter().find(|entry| entry.name == name).map(|entry| (entry.build)())
}

/// The sharing of this name that is told by levels.
#[cfg(test)]
pub(crate) fn by_levels(name: &str) -> Option<Box<dyn Sharing>> {
    if let Model::Levels(sharing) = build(name)? { Some(sharing) } else { None }
}
