//! Rounds of grants and acceptances as in iSLIP, by priority first.

use crate::record::allocators::allocator::{Request, RouterAllocator, RouterShape};
use crate::record::allocators::separable::pick;
use std::cmp::Reverse;

/// Unmatched columns grant the unmatched row of the highest priority, rows accept the column that they prefer; among equals the first at
/// or after the pointer. Pointers move one beyond the partner, only for pairs matched in the first iteration.
pub(super) struct Select {
    iterations: u32,
    shape: RouterShape,
    row_pointer: Box<[u32]>,
    column_pointer: Box<[u32]>,
    row: Box<[u64]>,
    column: Box<[u64]>,
    turn: u64,
    open: Vec<u32>,
    grants: Vec<u32>,
}

impl Select {
    pub(super) fn new(iterations: u32, shape: RouterShape) -> Self {
        let zeros = |count: u32| vec![0; count as usize].into_boxed_slice();
        let untouched = |count: u32| vec![0; count as usize].into_boxed_slice();
        Self {
            iterations,
            shape,
            row_pointer: zeros(shape.rows),
            column_pointer: zeros(shape.columns),
            row: untouched(shape.rows),
            column: untouched(shape.columns),
            turn: 0,
            open: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// The pairs of one iteration, left in `grants`.
    fn iterate(&mut self, requests: &[Request]) {
        let RouterShape { rows, columns } = self.shape;
        self.grants.clear();
        self.grants.extend_from_slice(&self.open);
        let (row_pointer, column_pointer) = (&self.row_pointer, &self.column_pointer);
        pick(
            &mut self.grants,
            requests,
            |request| request.column,
            |request| (Reverse(request.priority), (request.row + rows - column_pointer[request.column as usize]) % rows),
        );
        pick(
            &mut self.grants,
            requests,
            |request| request.row,
            |request| (Reverse(request.preference), (request.column + columns - row_pointer[request.row as usize]) % columns),
        );
    }
}

impl RouterAllocator for Select {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.turn += 1;
        let at = |position: u32| &requests[position as usize];
        self.open.clear();
        self.open.extend(0..requests.len() as u32);
        for iteration in 0..self.iterations {
            self.iterate(requests);
            if self.grants.is_empty() {
                return;
            }
            for &position in &self.grants {
                let Request { row, column, .. } = *at(position);
                (self.row[row as usize], self.column[column as usize]) = (self.turn, self.turn);
                if iteration == 0 {
                    self.row_pointer[row as usize] = (column + 1) % self.shape.columns;
                    self.column_pointer[column as usize] = (row + 1) % self.shape.rows;
                }
            }
            granted.append(&mut self.grants);
            let (row, column, turn) = (&self.row, &self.column, self.turn);
            self.open.retain(|&position| row[at(position).row as usize] != turn && column[at(position).column as usize] != turn);
        }
    }
}
