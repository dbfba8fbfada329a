//! Memory for columns that are read in no order: engines and networks of a million channels wait mostly for it.

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// From this size on a column asks for large pages, bytes.
const LARGE: usize = 1 << 21;

/// Entries for which a column that grows has room at first.
const LEAST_GROWN: usize = 64;

/// A column of an engine's state: a fixed array that hot loops index without a bounds check.
///
/// Every index in an engine comes from its own tables, which are built once and checked by tests; the optimised profile with
/// assertions (the one that tests and `make build` use) checks each access, the release profile trusts them. Not for indices that
/// come from outside.
#[derive(Clone, Debug)]
pub struct Column<T>(Box<[T]>);

impl<T: Clone> Column<T> {
    /// A column of `length` equal entries.
    pub fn filled(length: usize, value: T) -> Self {
        Self(filled(length, value))
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(entries.into_boxed_slice())
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<T> Column<T> {
    /// All entries in order.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// All entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// All entries in order, to change.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// Exchanges two entries.
    pub fn swap(&mut self, one: u32, other: u32) {
        self.0.swap(one as usize, other as usize);
    }

    /// A bare pointer to the first entry, for code that works on several entries at once.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Has it no entries?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Index<u32> for Column<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.0.len(), "index {index} of {}", self.0.len());
        // SAFETY: an engine's tables hold only valid indices; checked above wherever assertions are on.
        unsafe { self.0.get_unchecked(index as usize) }
    }
}

impl<T> IndexMut<u32> for Column<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        debug_assert!((index as usize) < self.0.len(), "index {index} of {}", self.0.len());
        // SAFETY: as in `index`.
        unsafe { self.0.get_unchecked_mut(index as usize) }
    }
}

/// A column that grows: of what comes and goes during a run. Entries are looked up like those of a [`Column`], and in everything else it is a
/// vector.
#[derive(Clone, Debug)]
pub struct GrowingColumn<T>(Vec<T>);

impl<T> GrowingColumn<T> {
    /// Adds an entry.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        if self.0.len() == self.0.capacity() {
            self.widen(self.0.len() + 1);
        }
        self.0.push(entry);
    }

    /// Adds entries in their order.
    #[inline(always)]
    pub fn extend(&mut self, entries: impl IntoIterator<Item = T>) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }

    /// Makes room for at least so many entries, twice as many as now, in large pages if they are large. What is there is copied into them:
    /// memory that is only moved keeps the small pages that it has, and a vector that grows by itself touches its new memory before anybody
    /// can ask for large ones.
    #[cold]
    fn widen(&mut self, capacity: usize) {
        let mut wider = large_vec(capacity.max(2 * self.0.len()).max(LEAST_GROWN));
        wider.append(&mut self.0);
        self.0 = wider;
    }
}

impl<T: Clone> GrowingColumn<T> {
    /// Cuts off what lies behind so many entries, or adds equal ones.
    #[inline(always)]
    pub fn resize(&mut self, length: usize, entry: T) {
        if length > self.0.capacity() {
            self.widen(length);
        }
        self.0.resize(length, entry);
    }
}

impl<T> From<Vec<T>> for GrowingColumn<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(entries)
    }
}

impl<T> Deref for GrowingColumn<T> {
    type Target = Vec<T>;

    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for GrowingColumn<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> Index<u32> for GrowingColumn<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.0.len(), "index {index} of {}", self.0.len());
        // SAFETY: as of a fixed column.
        unsafe { self.0.get_unchecked(index as usize) }
    }
}

impl<T> IndexMut<u32> for GrowingColumn<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        debug_assert!((index as usize) < self.0.len(), "index {index} of {}", self.0.len());
        // SAFETY: as in `index`.
        unsafe { self.0.get_unchecked_mut(index as usize) }
    }
}

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
    if let Some(place) = column.get(index) {
        prefetch(place);
    }
}

/// Asks for a cache line ahead of its use. The place need not exist.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on the program's state.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Blocks of this size and more go back to the operating system as soon as they are free, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const RETURNED: libc::c_int = 1 << 20;

/// The least by which the memory for smaller blocks grows, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const STEP: libc::c_int = 1 << 19;

/// Makes the allocator return large blocks when they are freed, for the rest of the process. GNU's would keep the first that is
/// freed, and others of its size after it, although what comes next seldom fits: a network of 262,144 terminals leaves 20 MB.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: setting the allocator's thresholds has no conditions.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED);
        // Small blocks come in few steps, and stay: each step is a call of the system.
        libc::mallopt(libc::M_TOP_PAD, STEP);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 * STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column that grows past the size of large pages keeps what it has, whichever way it grows.
    #[test]
    fn growing_keeps_entries() {
        let mut pushed = GrowingColumn::from(Vec::new());
        let mut extended = GrowingColumn::from(Vec::new());
        let count = (3 * LARGE / size_of::<u64>()) as u32;
        (0..count).for_each(|number| pushed.push(u64::from(number)));
        extended.extend((0..count).map(u64::from));
        assert!((0..count).all(|number| pushed[number] == u64::from(number)));
        assert_eq!(pushed.as_slice(), extended.as_slice());
        pushed.resize(2 * count as usize, 7);
        assert_eq!(pushed.as_slice()[..count as usize], *extended.as_slice());
        assert!(pushed.as_slice()[count as usize..].iter().all(|&entry| entry == 7));
        pushed.resize(1, 0);
        assert_eq!(pushed.as_slice(), [0]);
    }
}
