//! The main memory of a node, and which of its lines the processor's cache has.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a line of the second-level cache.
pub const LINE: u64 = 128;

/// Page frames of 4096 bytes; those that nothing was written to hold zeros and cost nothing.
///
/// What the processor writes is in memory at once; that its cache has a line only makes reading it slower.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    frames: Vec<Option<Box<Frame>>>,
}

#[derive(Clone, Debug)]
struct Frame {
    bytes: [u8; PAGE as usize],
    /// A bit for each line: the cache has it.
    cached: u32,
}

impl Memory {
    fn frame(&mut self, number: u64) -> &mut Frame {
        let number = number as usize;
        if number >= self.frames.len() {
            self.frames.resize_with(number + 1, || None);
        }
        self.frames[number].get_or_insert_with(|| Box::new(Frame { bytes: [0; PAGE as usize], cached: 0 }))
    }

    /// Copies bytes from a physical address on; the address may run into the next frame.
    pub fn read(&self, address: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let length = ((PAGE - at % PAGE) as usize).min(bytes.len() - done);
            let target = &mut bytes[done..done + length];
            match self.frames.get((at / PAGE) as usize) {
                Some(Some(frame)) => target.copy_from_slice(&frame.bytes[(at % PAGE) as usize..][..length]),
                _ => target.fill(0),
            }
            done += length;
        }
    }

    /// The 8 bytes at a physical address, least significant first.
    pub fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Writes bytes that lie in one frame, as the interface does: the lines are then not in the cache.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        self.put(address, bytes).cached &= !lines(address, bytes.len() as u64);
    }

    /// Writes bytes that lie in one frame, as the processor does: the lines are then in its cache.
    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        self.put(address, bytes).cached |= lines(address, bytes.len() as u64);
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> &mut Frame {
        let frame = self.frame(address / PAGE);
        frame.bytes[(address % PAGE) as usize..][..bytes.len()].copy_from_slice(bytes);
        frame
    }

    /// Has the cache the line with this address?
    pub fn is_cached(&self, address: u64) -> bool {
        let frame = self.frames.get((address / PAGE) as usize).and_then(Option::as_ref);
        frame.is_some_and(|frame| frame.cached & 1 << (address % PAGE / LINE) != 0)
    }

    /// Writes the line with this address back and takes it out of the cache.
    pub fn flush(&mut self, address: u64) {
        if let Some(Some(frame)) = self.frames.get_mut((address / PAGE) as usize) {
            frame.cached &= !(1 << (address % PAGE / LINE));
        }
    }
}

/// The lines that some bytes of one frame touch.
fn lines(address: u64, length: u64) -> u32 {
    if length == 0 {
        return 0;
    }
    let (first, last) = (address % PAGE / LINE, (address % PAGE + length - 1) / LINE);
    (u32::MAX >> (31 - (last - first))) << first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cached_from_a_store_to_a_flush_or_an_overwriting() {
        let mut memory = Memory::default();
        memory.store(PAGE + 120, &[1; 16]);
        assert!(memory.is_cached(PAGE) && memory.is_cached(PAGE + 128) && !memory.is_cached(PAGE + 256));
        memory.write(PAGE + 128, &[2; 8]);
        assert!(!memory.is_cached(PAGE + 128));
        memory.flush(PAGE);
        assert!(!memory.is_cached(PAGE));
        memory.store(0, &[3; PAGE as usize]);
        assert!((0..32).all(|line| memory.is_cached(line * LINE)));
        assert_eq!((memory.word(PAGE + 120), memory.word(PAGE + 128)), (u64::from_le_bytes([1; 8]), u64::from_le_bytes([2; 8])));
    }

    #[test]
    fn what_was_never_written_is_zero_and_reading_runs_into_the_next_frame() {
        let mut memory = Memory::default();
        memory.write(PAGE, &[7; 4]);
        let mut bytes = [9; 8];
        memory.read(PAGE - 4, &mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0, 7, 7, 7, 7]);
    }
}
