//! Fetching memory ahead of its use.

pub(crate) use kasuri_network::memory::prefetch;

/// Events between asking for a cache line and its use, in loops over what happens to flits: a memory access takes as long as a few of them.
pub(crate) const FLITS_AHEAD: usize = 12;

/// The same where little is done for each event: posting a flit or a credit takes a tenth of a memory access or less.
pub(crate) const POSTS_AHEAD: usize = 40;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for all cache lines of an array in their order, which the processor soon foresees.
pub(crate) fn prefetch_all<T>(entries: &[T]) {
    let first: *const u8 = entries.as_ptr().cast();
    for byte in (0..size_of_val(entries)).step_by(LINE) {
        prefetch(first.wrapping_add(byte));
    }
}

/// Asks for all lines from the first to the last of some entries of an array, of which one will be used.
#[inline(always)]
pub(crate) fn prefetch_range<T>(first: *const T, last: *const T) {
    // Lines are counted from the beginning of the first.
    let before = first as usize % LINE;
    let begin = first.cast::<u8>().wrapping_sub(before);
    let bytes = before + (last as usize - first as usize) + size_of::<T>();
    for byte in (0..bytes).step_by(LINE) {
        prefetch(begin.wrapping_add(byte));
    }
}

/// Asks for both lines of what may lie across the border of two.
#[inline(always)]
pub(crate) fn prefetch_across<T>(place: *const T) {
    prefetch(place);
    prefetch(place.cast::<u8>().wrapping_add(size_of::<T>() - 1));
}
