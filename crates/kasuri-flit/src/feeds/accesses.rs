//! The accesses of users that are under way.

use crate::record::tag::AccessId;

/// Who asks whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) user: u16,
    pub(crate) from: u32,
    pub(crate) to: u32,
    generation: u32,
}

/// All accesses.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    places: Vec<Access>,
    free: Vec<u32>,
}

impl Accesses {
    /// An access begins.
    pub(crate) fn begin(&mut self, user: u16, from: u32, to: u32) -> AccessId {
        let place = self.free.pop().unwrap_or(self.places.len() as u32);
        if place as usize == self.places.len() {
            self.places.push(Access { generation: 0, user, from, to });
        }
        let access = &mut self.places[place as usize];
        *access = Access { generation: access.generation, user, from, to };
        AccessId { place, generation: access.generation }
    }

    /// The access under this name; `None` if it has ended.
    pub(crate) fn find(&self, id: AccessId) -> Option<Access> {
        Some(self.places[id.place as usize]).filter(|access| access.generation == id.generation)
    }

    /// An access ends.
    pub(crate) fn end(&mut self, id: AccessId) {
        self.places[id.place as usize].generation += 1;
        self.free.push(id.place);
    }
}
