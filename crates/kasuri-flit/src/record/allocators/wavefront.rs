//! The wavefront allocator (Tamir and Chi, IEEE Trans. Parallel Distrib. Syst. 4(1), 1993; Dally and Towles 2004, section 19.4).

use crate::record::allocators::allocator::{Request, RouterAllocator, RouterShape};
use std::cmp::Reverse;

/// Diagonal after diagonal, from the priority diagonal on, grants what is still open: within a diagonal no two requests share a row or
/// a column. Requests of higher priority have their wave before the others.
pub(super) struct Wavefront {
    /// Diagonals: those of the square that holds rows and columns.
    diagonals: u32,
    /// The diagonal that goes first.
    first: u32,
    /// Does the next turn begin behind the first diagonal that granted, or behind the first one of all?
    skips: bool,
    /// Turn in which a row or column was granted last.
    row: Box<[u64]>,
    column: Box<[u64]>,
    turn: u64,
    order: Vec<u32>,
}

impl Wavefront {
    pub(super) fn new(skips: bool, shape: RouterShape) -> Self {
        let untouched = |count: u32| vec![0; count as usize].into_boxed_slice();
        Self {
            diagonals: shape.rows.max(shape.columns),
            first: 0,
            skips,
            row: untouched(shape.rows),
            column: untouched(shape.columns),
            turn: 0,
            order: Vec::new(),
        }
    }

    /// How many diagonals after the first one a request stands.
    fn distance(&self, request: &Request) -> u32 {
        (request.row + request.column + self.diagonals - self.first) % self.diagonals
    }
}

impl RouterAllocator for Wavefront {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.turn += 1;
        let mut order = std::mem::take(&mut self.order);
        order.extend(0..requests.len() as u32);
        order.sort_unstable_by_key(|&position| {
            let request = &requests[position as usize];
            (Reverse((request.priority, request.preference)), self.distance(request), request.row)
        });
        let leader = order.first().map_or(0, |&position| self.distance(&requests[position as usize]));
        for position in order.drain(..) {
            let Request { row, column, .. } = requests[position as usize];
            let (row, column) = (&mut self.row[row as usize], &mut self.column[column as usize]);
            if *row != self.turn && *column != self.turn {
                (*row, *column) = (self.turn, self.turn);
                granted.push(position);
            }
        }
        self.order = order;
        self.first = (self.first + if self.skips { leader } else { 0 } + 1) % self.diagonals;
    }
}
