//! iSLIP and separable input-first allocation of one small router on masks: the same matchings as by requests, in the same order, for
//! requests that all stand alike.

use crate::record::allocators::allocator::RouterShape;
use crate::record::allocators::allocator::from_pointer;
use num_traits::PrimInt;
use std::hint::select_unpredictable;

/// What is allocated on masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// iSLIP of so many iterations; one of them is separable output-first.
    Islip(u32),
    /// Separable input-first with round-robin arbiters.
    InputFirst,
}

/// How many members a mask has room for.
pub(crate) const fn room<W>() -> u32 {
    8 * size_of::<W>() as u32
}

/// The mask of one member.
#[inline(always)]
pub(crate) fn bit<W: PrimInt>(member: u32) -> W {
    W::one() << member as usize
}

/// A set for each row or column.
#[derive(Clone, Debug)]
struct Sets<W> {
    /// Those whose set is not empty. The others' sets are left from before.
    filled: W,
    sets: Box<[W]>,
}

impl<W: PrimInt> Sets<W> {
    fn new() -> Self {
        Self { filled: W::zero(), sets: vec![W::zero(); room::<W>() as usize].into_boxed_slice() }
    }

    /// Puts a member into a set. Is it new there?
    #[inline(always)]
    fn add(&mut self, set: u32, member: u32) -> bool {
        let before = if (self.filled & bit(set)).is_zero() { W::zero() } else { self.sets[set as usize] };
        self.fill(set, before | bit(member));
        (before & bit(member)).is_zero()
    }

    #[inline(always)]
    fn fill(&mut self, set: u32, with: W) {
        self.sets[set as usize] = with;
        self.filled = self.filled | bit(set);
    }

    /// The first of a set at or after a pointer, cyclically. The set must not be empty.
    #[inline(always)]
    fn first_from(&self, set: u32, pointers: &[u8]) -> u32 {
        first_from(self.sets[set as usize], u32::from(pointers[set as usize]))
    }
}

/// Which rows of a router ask for which of its columns.
#[derive(Clone, Debug)]
pub(crate) struct RequestMasks<W> {
    by_row: Sets<W>,
    // Within an allocation: who is asked by whom, or picked by whom.
    by_column: Sets<W>,
    grants: Sets<W>,
}

impl<W: PrimInt> RequestMasks<W> {
    pub(crate) fn new() -> Self {
        Self { by_row: Sets::new(), by_column: Sets::new(), grants: Sets::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.by_row.filled = W::zero();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_row.filled.is_zero()
    }

    /// What a row asks for, all at once.
    #[inline(always)]
    pub(crate) fn set_row(&mut self, row: u32, columns: W) {
        self.by_row.fill(row, columns);
    }

    /// A row asks for one more column. Is this request new?
    #[inline(always)]
    pub(crate) fn add(&mut self, row: u32, column: u32) -> bool {
        self.by_row.add(row, column)
    }
}

/// The first member of a mask at or after a pointer, cyclically. The mask must not be empty.
#[inline(always)]
pub(crate) fn first_from<W: PrimInt>(mask: W, pointer: u32) -> u32 {
    let above = if pointer < room::<W>() { (mask >> pointer as usize) << pointer as usize } else { W::zero() };
    select_unpredictable(above.is_zero(), mask, above).trailing_zeros()
}

/// The members of a mask, in order.
#[inline(always)]
pub(crate) fn members<W: PrimInt>(mut mask: W) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let found = !mask.is_zero();
        let first = mask.trailing_zeros();
        if found {
            mask = mask & (mask - W::one());
        }
        found.then_some(first)
    })
}

/// An allocator of one router with its round-robin pointers.
#[derive(Clone, Debug)]
pub(crate) struct MaskAllocator {
    rule: Rule,
    row_pointer: Box<[u8]>,
    column_pointer: Box<[u8]>,
}

impl MaskAllocator {
    /// Do masks of this width have room for both sides?
    pub(crate) fn has_room<W>(shape: RouterShape) -> bool {
        shape.rows.max(shape.columns) <= room::<W>()
    }

    pub(crate) fn new(rule: Rule, shape: RouterShape) -> Self {
        let zeros = |count: u32| vec![0; count as usize].into_boxed_slice();
        Self { rule, row_pointer: zeros(shape.rows), column_pointer: zeros(shape.columns) }
    }

    /// Appends the granted pairs of a row and a column.
    #[inline]
    pub(crate) fn allocate<W: PrimInt>(&mut self, requests: &mut RequestMasks<W>, granted: &mut Vec<(u32, u32)>) {
        if requests.by_row.filled.count_ones() == 1 {
            // Whatever the rule: a row alone gets the first of its columns by its pointer.
            let row = requests.by_row.filled.trailing_zeros();
            let column = requests.by_row.first_from(row, &self.row_pointer);
            self.match_pair(row, column);
            granted.push((row, column));
            return;
        }
        match self.rule {
            Rule::Islip(iterations) => self.islip(requests, iterations, granted),
            Rule::InputFirst => self.input_first(requests, granted),
        }
    }

    /// Each row picks a column, each column one of the rows that picked it.
    fn input_first<W: PrimInt>(&mut self, requests: &mut RequestMasks<W>, granted: &mut Vec<(u32, u32)>) {
        let RequestMasks { by_row, by_column: picked, .. } = requests;
        picked.filled = W::zero();
        for row in members(by_row.filled) {
            picked.add(by_row.first_from(row, &self.row_pointer), row);
        }
        for column in members(picked.filled) {
            let row = picked.first_from(column, &self.column_pointer);
            self.match_pair(row, column);
            granted.push((row, column));
        }
    }

    /// Open columns grant a row, open rows accept one of them; pointers move in the first iteration only.
    fn islip<W: PrimInt>(&mut self, requests: &mut RequestMasks<W>, iterations: u32, granted: &mut Vec<(u32, u32)>) {
        let RequestMasks { by_row, by_column, grants } = requests;
        by_column.filled = W::zero();
        for row in members(by_row.filled) {
            members(by_row.sets[row as usize]).for_each(|column| {
                by_column.add(column, row);
            });
        }
        let (mut rows, mut columns) = (by_row.filled, by_column.filled);
        for iteration in 0..iterations {
            grants.filled = W::zero();
            for column in members(columns) {
                let open = by_column.sets[column as usize] & rows;
                if !open.is_zero() {
                    grants.add(first_from(open, u32::from(self.column_pointer[column as usize])), column);
                }
            }
            if grants.filled.is_zero() {
                return;
            }
            for row in members(grants.filled) {
                let column = grants.first_from(row, &self.row_pointer);
                columns = columns & !bit::<W>(column);
                if iteration == 0 {
                    self.match_pair(row, column);
                }
                granted.push((row, column));
            }
            rows = rows & !grants.filled;
        }
    }

    /// See [`RouterAllocator::distance`](super::RouterAllocator::distance).
    pub(crate) fn distance(&self, row: u32, column: u32) -> Option<u64> {
        (self.rule == Rule::Islip(1)).then(|| from_pointer(column, self.row_pointer[row as usize].into()).into())
    }

    /// See [`RouterAllocator::matched`](super::RouterAllocator::matched).
    pub(crate) fn matched(&mut self, row: u32, column: u32) {
        if self.rule == Rule::Islip(1) {
            self.match_pair(row, column);
        }
    }

    /// A pair is matched, here or because nobody else asks: pointers move one beyond the partner.
    #[inline(always)]
    pub(crate) fn match_pair(&mut self, row: u32, column: u32) {
        self.row_pointer[row as usize] = column as u8 + 1;
        self.column_pointer[column as usize] = row as u8 + 1;
    }
}
