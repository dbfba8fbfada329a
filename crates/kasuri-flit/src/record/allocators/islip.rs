//! iSLIP with any number of iterations (N. McKeown, IEEE/ACM Trans. Networking 7(2), 1999).

use crate::record::allocators::allocator::{Allocator, Pointers, from_pointer};

/// Unmatched columns grant the first requesting unmatched row at or after their pointer, rows accept the first granting column
/// at or after theirs. Pointers move one beyond the partner, only for pairs matched in the first iteration.
#[derive(Debug)]
pub(super) struct Islip {
    iterations: u32,
    open: Vec<(u32, u32)>,
    grants: Vec<(u32, u32)>,
    columns: Vec<u32>,
}

impl Islip {
    pub(super) fn new(iterations: u32) -> Self {
        Self { iterations, open: Vec::new(), grants: Vec::new(), columns: Vec::new() }
    }
}

impl Allocator for Islip {
    fn allocate(&mut self, requests: &[(u32, u32)], pointers: Pointers<'_>, matches: &mut Vec<(u32, u32)>) {
        self.open.clear();
        self.open.extend_from_slice(requests);
        for iteration in 0..self.iterations {
            let matched = matches.len();
            // Best row of each column.
            self.grants.clear();
            self.open.sort_unstable_by_key(|&(row, column)| (column, from_pointer(row, pointers.column[column])));
            self.grants.extend(self.open.chunk_by(|a, b| a.1 == b.1).map(|of_column| of_column[0]));
            // Best column of each row.
            self.grants.sort_unstable_by_key(|&(row, column)| (row, from_pointer(column, pointers.row[row])));
            matches.extend(self.grants.chunk_by(|a, b| a.0 == b.0).map(|of_row| of_row[0]));
            let new = &matches[matched..];
            if new.is_empty() {
                return;
            }
            if iteration == 0 {
                for &(row, column) in new {
                    pointers.row[row] = column + 1;
                    pointers.column[column] = row + 1;
                }
            }
            // `new` is sorted by row.
            self.columns.clear();
            self.columns.extend(new.iter().map(|&(_, column)| column));
            self.columns.sort_unstable();
            let columns = &self.columns;
            self.open.retain(|&(row, column)| {
                new.binary_search_by_key(&row, |&(row, _)| row).is_err() && columns.binary_search(&column).is_err()
            });
        }
    }
}
