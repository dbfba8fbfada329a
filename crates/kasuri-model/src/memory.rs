//! Memory for columns that are read in no order: engines and networks of a million channels wait mostly for it.

/// From this size on a column asks for large pages, bytes.
const LARGE: usize = 1 << 21;

/// An array of equal entries, in large pages if it is large.
pub fn filled<T: Clone>(length: usize, value: T) -> Box<[T]> {
    let mut entries = large_vec(length);
    entries.resize(length, value);
    entries.into_boxed_slice()
}

/// An empty vector with room for this many entries, in large pages if it is large.
pub fn large_vec<T>(capacity: usize) -> Vec<T> {
    let mut entries = Vec::with_capacity(capacity);
    prefer_large_pages(&mut entries);
    entries
}

/// Asks the operating system to back the memory of a vector with large pages before it is first touched: the accesses of a
/// large network are scattered over more small pages than a processor's address translation remembers.
pub fn prefer_large_pages<T>(entries: &mut Vec<T>) {
    let size = entries.capacity() * size_of::<T>();
    if size < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // Only whole pages of the vector's own memory.
        const PAGE: usize = 4096;
        let begin = (entries.as_mut_ptr() as usize).next_multiple_of(PAGE);
        let end = (entries.as_mut_ptr() as usize + size) & !(PAGE - 1);
        // SAFETY: the range lies within memory that the vector owns, and the advice changes no contents. If the kernel refuses,
        // the pages stay small.
        unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_HUGEPAGE) };
    }
}

/// Asks for the cache line of an entry ahead of its use: a memory access takes as long as a hundred instructions.
#[inline(always)]
pub fn fetch_ahead<T>(column: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(place) = column.get(index) {
        // SAFETY: fetching ahead has no effect on the program's state, and the place exists.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(place).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (column, index);
}

/// Blocks of this size and more go back to the operating system as soon as they are free, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const RETURNED: libc::c_int = 1 << 20;

/// Makes the allocator return large blocks when they are freed, for the rest of the process. GNU's would keep the first that is
/// freed, and others of its size after it, although what comes next seldom fits: a network of 262,144 terminals leaves 20 MB.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: setting the allocator's threshold has no conditions.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED);
    }
}
