//! What the operating system sets up for a task: its pages, its tables of destinations, its buffers. All of it lies in main memory.

use super::fault::Fault;
use super::memory::PAGE;

/// Segments of a task.
pub const SEGMENTS: usize = 4;
/// Nodes that one multicast can reach, and that a synchronisation can have: a group.
pub const GROUP: u32 = 64;
/// Synchronisations that can be under way: identifiers of 7 bits.
pub const SYNCHRONISATIONS: u8 = 128;
/// The communication identifier of the operating system.
pub const OPERATING_SYSTEM: u8 = 0;
/// Bytes of an entry of the log buffer.
pub const LOG_ENTRY: u64 = 16;

/// A task of a node, known to the network by its communication identifier.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The operating system: its parcels are in supervisor mode, and its addresses and nodes are physical, without tables.
    pub supervisor: bool,
    /// At most [`SEGMENTS`], each with its least page and the frames of its pages.
    pub segments: Vec<Segment>,
    /// Logical to physical destinations.
    pub nodes: Vec<Destination>,
    /// Registered multicasts.
    pub multicasts: Vec<Multicast>,
    /// Registered synchronisations.
    pub synchronisations: Vec<Synchronisation>,
    /// The task's entry of the Receiver's buffer table.
    pub buffers: BufferEntry,
}

/// Consecutive pages of a task's addresses.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// The least page number.
    pub first_page: u64,
    /// The page table: the frame of each page, if it has one.
    pub pages: Vec<Option<PageEntry>>,
}

/// Where a page is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// The page frame.
    pub frame: u64,
    /// May it be written?
    pub writable: bool,
    /// Is it in memory? The interface cannot reach it before the operating system has brought it.
    pub present: bool,
}

/// An entry of the node table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The physical node, 10 bits.
    pub node: u16,
    /// The task there.
    pub cid: u8,
}

/// An entry of the multicast table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicast {
    /// The group: physical nodes 64 g to 64 g + 63.
    pub group: u8,
    /// Its nodes, bit b for node 64 g + b.
    pub nodes: u64,
    /// The task on each of them.
    pub cid: u8,
}

impl Multicast {
    /// Does it reach this physical node?
    pub fn has(&self, node: u32) -> bool {
        node / GROUP == u32::from(self.group) && self.nodes >> (node % GROUP) & 1 == 1
    }
}

/// An entry of the synchronisation table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronisation {
    /// The synchronisation identifier, 7 bits.
    pub sid: u8,
    /// The participants, bit b for physical node b.
    pub nodes: u64,
    /// The task on each of them.
    pub cid: u8,
}

/// A task's entry of the Receiver's buffer table.
#[derive(Clone, Copy, Debug, Default)]
pub struct BufferEntry {
    /// The two message buffers.
    pub messages: [Ring; 2],
    /// Where the three address registers point.
    pub registers: [Option<u64>; 3],
    /// The log buffer.
    pub log: Ring,
    /// Where answers to remote reads and compare-and-swaps are announced, 16 bytes for each of 64 identifiers.
    pub remote_reads: Option<u64>,
}

/// A buffer that is written round and round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    /// Its first address.
    pub base: u64,
    /// Its bytes; 0 if the task has none.
    pub size: u64,
    /// Bytes written since it was set up: what a task polls.
    pub written: u64,
}

impl Ring {
    /// Reserves bytes and gives their address, and the quarter that is now full if one has been filled. What would go over the end begins
    /// again at the front.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(u64, Option<u8>), Fault> {
        if bytes > self.size {
            return Err(Fault::NoBuffer);
        }
        let left = self.size - self.written % self.size;
        let skipped = if left < bytes { left } else { 0 };
        let before = self.written;
        let at = (self.written + skipped) % self.size;
        self.written += skipped + bytes;
        let quarters = |written: u64| written * 4 / self.size;
        let filled = (quarters(self.written) > quarters(before)).then(|| ((quarters(self.written) + 3) % 4 + 1) as u8);
        Ok((self.base + at, filled))
    }
}

impl Task {
    /// The physical address of a task's address, as its processor finds it: the operating system keeps what is in no page frame.
    ///
    /// # Errors
    /// No segment has its page, the page has no frame, or it is to be written and must not be.
    pub fn translate(&self, address: u64, write: bool) -> Result<u64, Fault> {
        if self.supervisor {
            return Ok(address);
        }
        let entry = self.entry(address)?;
        if write && !entry.writable {
            return Err(Fault::ReadOnly(address));
        }
        Ok(entry.frame * PAGE + address % PAGE)
    }

    /// The physical address of a task's address, as the interface finds it.
    ///
    /// # Errors
    /// As [`Task::translate`]; and the page is not in memory at present.
    pub fn reach(&self, address: u64, write: bool) -> Result<u64, Fault> {
        let physical = self.translate(address, write)?;
        if self.supervisor || self.entry(address)?.present { Ok(physical) } else { Err(Fault::Missing(address)) }
    }

    fn entry(&self, address: u64) -> Result<PageEntry, Fault> {
        let page = address / PAGE;
        let within = |segment: &&Segment| (segment.first_page..segment.first_page + segment.pages.len() as u64).contains(&page);
        let segment = self.segments.iter().find(within).ok_or(Fault::Unmapped(address))?;
        segment.pages[(page - segment.first_page) as usize].ok_or(Fault::Unmapped(address))
    }

    /// The operating system brings the page of an address into memory, or takes it out.
    pub fn set_present(&mut self, address: u64, present: bool) {
        let page = address / PAGE;
        for segment in &mut self.segments {
            let place = page.checked_sub(segment.first_page).and_then(|place| segment.pages.get_mut(place as usize));
            if let Some(Some(entry)) = place {
                entry.present = present;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_reaches_its_pages_and_no_others() {
        let pages = vec![
            Some(PageEntry { frame: 7, writable: true, present: true }),
            None,
            Some(PageEntry { frame: 3, writable: false, present: true }),
        ];
        let task = Task { segments: vec![Segment { first_page: 16, pages }], ..Task::default() };
        let at = |page: u64| page * PAGE + 5;
        assert_eq!(task.translate(at(16), true), Ok(7 * PAGE + 5));
        assert_eq!(task.translate(at(17), false), Err(Fault::Unmapped(at(17))));
        assert_eq!(task.translate(at(18), false), Ok(3 * PAGE + 5));
        assert_eq!(task.translate(at(18), true), Err(Fault::ReadOnly(at(18))));
        let mut task = task;
        task.set_present(at(16), false);
        assert_eq!((task.translate(at(16), true), task.reach(at(16), true)), (Ok(7 * PAGE + 5), Err(Fault::Missing(at(16)))));
        task.set_present(at(16), true);
        assert_eq!(task.reach(at(16), true), Ok(7 * PAGE + 5));
        for outside in [at(15), at(19), u64::MAX] {
            assert_eq!(task.translate(outside, false), Err(Fault::Unmapped(outside)));
        }
    }

    #[test]
    fn a_ring_tells_when_a_quarter_is_full_and_goes_round() {
        let mut ring = Ring { base: 1000, size: 64, written: 0 };
        let taken: Vec<_> = (0..5).map(|_| ring.take(16).unwrap()).collect();
        assert_eq!(taken, [(1000, Some(1)), (1016, Some(2)), (1032, Some(3)), (1048, Some(4)), (1000, Some(1))]);
        assert_eq!(ring.take(65), Err(Fault::NoBuffer));
        // 48 bytes at the end are left out; 60 of 64 are three quarters and more.
        assert_eq!(ring.take(60), Ok((1000, Some(3))));
        assert_eq!(Ring::default().take(1), Err(Fault::NoBuffer));
    }
}
