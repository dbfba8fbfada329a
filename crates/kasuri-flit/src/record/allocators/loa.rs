//! The lonely output allocator (P. Gupta, Scheduling in input queued switches, Stanford University 1996; Dally and Towles 2004, 19.3).

use crate::record::allocators::allocator::{Request, RouterAllocator, RouterShape};
use crate::record::allocators::separable::pick;

/// Each row asks only for the column that the fewest rows want, each column grants the first that asks it. Outputs with few requests
/// would otherwise often stay unused.
pub(super) struct Loa {
    shape: RouterShape,
    row_pointer: Box<[u32]>,
    column_pointer: Box<[u32]>,
    /// Requests of each column.
    wanted: Box<[u32]>,
    asked: Vec<u32>,
}

impl Loa {
    pub(super) fn new(shape: RouterShape) -> Self {
        let zeros = |count: u32| vec![0; count as usize].into_boxed_slice();
        Self {
            shape,
            row_pointer: zeros(shape.rows),
            column_pointer: zeros(shape.columns),
            wanted: zeros(shape.columns),
            asked: Vec::new(),
        }
    }
}

/// Places from a pointer on, cyclically.
fn after(place: u32, pointer: u32, places: u32) -> u32 {
    (place + places - pointer) % places
}

impl RouterAllocator for Loa {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        requests.iter().for_each(|request| self.wanted[request.column as usize] += 1);
        let RouterShape { rows, columns } = self.shape;
        self.asked.clear();
        self.asked.extend(0..requests.len() as u32);
        let (wanted, row_pointer, column_pointer) = (&self.wanted, &self.row_pointer, &self.column_pointer);
        pick(
            &mut self.asked,
            requests,
            |request| request.row,
            |request| (wanted[request.column as usize], after(request.column, row_pointer[request.row as usize], columns)),
        );
        pick(
            &mut self.asked,
            requests,
            |request| request.column,
            |request| after(request.row, column_pointer[request.column as usize], rows),
        );
        for &position in &self.asked {
            let Request { row, column, .. } = requests[position as usize];
            let (row, column) = (&mut self.row_pointer[row as usize], &mut self.column_pointer[column as usize]);
            (*row, *column) = ((*row + 1) % columns, (*column + 1) % rows);
        }
        requests.iter().for_each(|request| self.wanted[request.column as usize] = 0);
        granted.append(&mut self.asked);
    }
}
