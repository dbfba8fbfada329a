//! Flits and credits between ports, and flits in buffers.

use crate::record::event::Events;
use crate::record::rings::Rings;
use crate::record::shared_buffers::Buffers;
use crate::state::border::Border;

/// What is on its way between ports.
pub(crate) struct InFlight<W> {
    pub(crate) arrivals: W,
    pub(crate) credits: W,
    /// What is due at the terminals of a block in the present cycle.
    pub(crate) due: Vec<u32>,
    /// What leaves the tile, and what comes from others.
    pub(crate) border: Border,
    /// What the routers have for the edge.
    pub(crate) events: Events,
}

/// The flits that wait in buffers.
pub(crate) struct Buffered {
    /// Whose they are.
    pub(crate) rings: Rings,
    /// Who has how much of the buffers, where virtual channels share them.
    pub(crate) shared: Option<Box<Buffers>>,
}
