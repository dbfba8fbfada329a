//! Separable input-first allocation with round-robin arbiters (Dally and Towles 2004, section 19.3).

use crate::record::allocators::allocator::{Allocator, Pointers, from_pointer};

/// Each row picks one of its columns, each column one of the rows that picked it; a pointer moves one beyond the partner only
/// where the pair is matched.
#[derive(Debug)]
pub(super) struct SeparableInputFirst;

impl Allocator for SeparableInputFirst {
    fn allocate(&mut self, requests: &[(u32, u32)], pointers: Pointers<'_>, matches: &mut Vec<(u32, u32)>) {
        let first = matches.len();
        matches.extend(requests.chunk_by(|a, b| a.0 == b.0).map(|of_row| {
            *of_row.iter().min_by_key(|&&(row, column)| from_pointer(column, pointers.row[row])).expect("a chunk is not empty")
        }));
        let mut picked = matches.split_off(first);
        picked.sort_unstable_by_key(|&(row, column)| (column, from_pointer(row, pointers.column[column])));
        matches.extend(picked.chunk_by(|a, b| a.1 == b.1).map(|of_column| of_column[0]));
        for &(row, column) in &matches[first..] {
            pointers.row[row] = column + 1;
            pointers.column[column] = row + 1;
        }
    }
}
