//! What the routers of a tile have for its edge: kept while they run, and handed on by the tile at the end of the window.

use crate::record::drawn::Drawn;
use kasuri_network::id::{RouterId, TerminalId};

/// The head of a packet that has come to a router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadAtRouter {
    pub(crate) router: RouterId,
    pub(crate) class: u8,
    pub(crate) destination: TerminalId,
    pub(crate) now: u64,
}

/// A packet that a failure has lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// The packet as its feed would draw it once more, and its number at its source.
    pub(crate) drawn: Drawn,
    pub(crate) source: u32,
    pub(crate) serial: u32,
    pub(crate) now: u64,
    /// Does draining wait for it, if it was created early enough?
    pub(crate) is_measured: bool,
}

/// An event in the routers that concerns the edge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Head(HeadAtRouter),
    Loss(Loss),
}

/// The events of a tile since they were last handed on.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Does a feed want the heads?
    pub(crate) wants_heads: bool,
    pub(crate) list: Vec<Event>,
}
