//! Parallel iterative matching (Anderson, Owicki, Saxe and Thacker, ACM Trans. Comput. Syst. 11(4), 1993).

use super::{Request, RouterAllocator, RouterShape};
use kasuri_model::rng::Stream;

/// Unmatched columns grant one of the unmatched rows that ask, rows accept one of their grants, each drawn uniformly; and again.
pub(super) struct Pim {
    iterations: u32,
    stream: Stream,
    open: Vec<u32>,
    grants: Vec<u32>,
    row: Box<[u64]>,
    column: Box<[u64]>,
    turn: u64,
}

impl Pim {
    pub(super) fn new(iterations: u32, stream: Stream, shape: RouterShape) -> Self {
        let untouched = |count: u32| vec![0; count as usize].into_boxed_slice();
        Self {
            iterations,
            stream,
            open: Vec::new(),
            grants: Vec::new(),
            row: untouched(shape.rows),
            column: untouched(shape.columns),
            turn: 0,
        }
    }
}

/// Draws one of each group of consecutive positions, uniformly.
fn draw(positions: &[u32], group: impl Fn(u32) -> u32, stream: &mut Stream, drawn: &mut Vec<u32>) {
    drawn.extend(positions.chunk_by(|&a, &b| group(a) == group(b)).map(|of_group| match of_group {
        [only] => *only,
        several => several[stream.below(several.len() as u32) as usize],
    }));
}

impl RouterAllocator for Pim {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.turn += 1;
        let at = |position: u32| &requests[position as usize];
        self.open.clear();
        self.open.extend(0..requests.len() as u32);
        self.open.sort_unstable_by_key(|&position| (at(position).column, at(position).row));
        for _ in 0..self.iterations {
            self.grants.clear();
            draw(&self.open, |position| at(position).column, &mut self.stream, &mut self.grants);
            self.grants.sort_unstable_by_key(|&position| (at(position).row, at(position).column));
            let before = granted.len();
            draw(&self.grants, |position| at(position).row, &mut self.stream, granted);
            if granted.len() == before {
                return;
            }
            for &position in &granted[before..] {
                let Request { row, column, .. } = *at(position);
                (self.row[row as usize], self.column[column as usize]) = (self.turn, self.turn);
            }
            let (row, column, turn) = (&self.row, &self.column, self.turn);
            self.open.retain(|&position| row[at(position).row as usize] != turn && column[at(position).column as usize] != turn);
        }
    }
}
