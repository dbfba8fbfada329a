//! A column of the simulation state: a fixed array that the hot loops index without a bounds check.
//!
//! Every index in the engine comes from its own tables, which are built once and checked by tests; the optimised profile with
//! assertions (the one that tests and `make build` use) checks each access, the release profile trusts them.

pub(crate) use kasuri_model::memory::{filled, prefer_large_pages};
use std::ops::{Index, IndexMut};

/// A fixed array with assertion-checked access.
#[derive(Clone, Debug)]
pub(crate) struct Column<T>(Box<[T]>);

impl<T: Clone> Column<T> {
    /// A column of `length` equal entries.
    pub(crate) fn filled(length: usize, value: T) -> Self {
        Self(filled(length, value))
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<T> Column<T> {
    /// All entries in order.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// All entries in order, to change.
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// A bare pointer to the first entry, for `Lanes`.
    #[inline(always)]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> Index<u32> for Column<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.0.len(), "index {index} of {}", self.0.len());
        // SAFETY: the engine's tables hold only valid indices; checked above wherever assertions are on.
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
