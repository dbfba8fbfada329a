//! A list of addresses of fixed capacity, for lists that hold each port or slot of a block at most once.
//!
//! It has room for one item more, which an item is written to that does not join the list.

/// A list that never grows beyond the capacity it was made with.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    items: Box<[u32]>,
    length: usize,
}

impl List {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { items: vec![0; capacity + 1].into_boxed_slice(), length: 0 }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: u32) {
        debug_assert!(self.length + 1 < self.items.len(), "a list holds each address once");
        // SAFETY: the capacity is the number of addresses that may stand in the list, and each stands there once.
        unsafe { *self.items.get_unchecked_mut(self.length) = item };
        self.length += 1;
    }

    /// Adds an item if `is_one` says so, without a branch.
    #[inline(always)]
    pub(crate) fn push_if(&mut self, item: u32, is_one: bool) {
        debug_assert!(self.length + usize::from(is_one) < self.items.len(), "a list holds each address once");
        // SAFETY: as in `push`; an item that does not join goes behind the last one.
        unsafe { *self.items.get_unchecked_mut(self.length) = item };
        self.length += usize::from(is_one);
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline(always)]
    pub(crate) fn at(&self, position: usize) -> u32 {
        debug_assert!(position < self.length);
        // SAFETY: callers stay below `len()`.
        unsafe { *self.items.get_unchecked(position) }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, position: usize, item: u32) {
        debug_assert!(position < self.length);
        // SAFETY: callers stay below `len()`.
        unsafe { *self.items.get_unchecked_mut(position) = item };
    }

    #[inline(always)]
    pub(crate) fn truncate(&mut self, length: usize) {
        debug_assert!(length <= self.length);
        self.length = length;
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Keeps the items of which `is_kept` says so, in their order, without a branch.
    #[inline(always)]
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(u32) -> bool) {
        let mut kept = 0;
        for position in 0..self.length {
            let item = self.at(position);
            self.set(kept, item);
            kept += usize::from(is_kept(item));
        }
        self.truncate(kept);
    }

    /// Takes the item at a position out. Returns the last one, which takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, position: usize) -> u32 {
        let last = self.at(self.length - 1);
        self.set(position, last);
        self.length -= 1;
        last
    }

    pub(crate) fn sort(&mut self) {
        self.items[..self.length].sort_unstable();
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.items[..self.length]
    }
}

/// Puts something back in whose place an empty one stands, which owns no memory to give back: so nothing has to look whether it does.
#[inline(always)]
pub(crate) fn put_back<T>(place: &mut T, value: T) {
    std::mem::forget(std::mem::replace(place, value));
}
