//! The accesses under way.

use super::steps::Access;
use super::steps::Word;
use kasuri_network::id::TerminalId;

/// An access from its translation to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The virtual processor that wants it.
    pub(super) processor: u32,
    /// The word: of a logical node, or of a physical one in the space of the operating system.
    pub(super) word: Word,
    /// What is done to it.
    pub(super) access: Access,
    /// The interface that sends it, once one does.
    pub(super) source: TerminalId,
    /// The interface to which it goes, once that is known.
    pub(super) destination: TerminalId,
    /// Does its answer report that the page is missing?
    pub(super) is_error: bool,
    /// Has it begun and not ended?
    is_open: bool,
}

impl Request {
    /// A request that is not yet translated.
    pub(super) fn new(processor: u32, word: Word, access: Access) -> Self {
        let nowhere = TerminalId(u32::MAX);
        Self { processor, word, access, source: nowhere, destination: nowhere, is_error: false, is_open: true }
    }
}

/// All of them, by the names that packets carry.
#[derive(Debug, Default)]
pub(super) struct Requests {
    places: Vec<Request>,
    free: Vec<u32>,
}

impl Requests {
    /// A name for a request.
    pub(super) fn begin(&mut self, request: Request) -> u32 {
        let name = self.free.pop().unwrap_or(self.places.len() as u32);
        if name as usize == self.places.len() {
            self.places.push(request);
        } else {
            self.places[name as usize] = request;
        }
        name
    }

    /// Ends a request. Had it begun, and not ended before?
    pub(super) fn end(&mut self, name: u32) -> bool {
        let was_open = std::mem::replace(&mut self.places[name as usize].is_open, false);
        self.free.extend(was_open.then_some(name));
        was_open
    }
}

impl std::ops::Index<u32> for Requests {
    type Output = Request;

    fn index(&self, name: u32) -> &Request {
        &self.places[name as usize]
    }
}

impl std::ops::IndexMut<u32> for Requests {
    fn index_mut(&mut self, name: u32) -> &mut Request {
        &mut self.places[name as usize]
    }
}
