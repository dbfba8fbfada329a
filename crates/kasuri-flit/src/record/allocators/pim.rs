//! Parallel iterative matching (Anderson, Owicki, Saxe and Thacker, ACM Trans. Comput. Syst. 11(4), 1993).

use crate::record::allocators::allocator::{AllocatorSpec, Request, RouterAllocator, RouterShape};
use kasuri_model::router::Draw;
use kasuri_network::rng::Stream;

/// Unmatched columns grant one of the unmatched rows that ask, rows accept one of their grants, each drawn; and again.
pub(super) struct Pim {
    iterations: u32,
    shape: RouterShape,
    drawing: Drawing,
    open: Vec<u32>,
    grants: Vec<u32>,
    row: Box<[u64]>,
    column: Box<[u64]>,
    turn: u64,
}

impl Pim {
    pub(super) fn new(spec: AllocatorSpec<'_>) -> Self {
        let AllocatorSpec { parameters, shape, stream } = spec;
        let untouched = |count: u32| vec![0; count as usize].into_boxed_slice();
        Self {
            iterations: parameters.iterations(),
            shape,
            drawing: Drawing { draw: parameters.draw(), stream },
            open: Vec::new(),
            grants: Vec::new(),
            row: untouched(shape.rows),
            column: untouched(shape.columns),
            turn: 0,
        }
    }
}

/// How one of several is drawn.
struct Drawing {
    draw: Draw,
    stream: Stream,
}

impl Drawing {
    /// One of `several`, whose places, of `places` in all, ascend.
    fn one(&mut self, several: &[u32], place: impl Fn(u32) -> u32, places: u32) -> u32 {
        let at = match (several, self.draw) {
            ([_], _) => 0,
            (_, Draw::Uniform) => self.stream.below(several.len() as u32) as usize,
            (_, Draw::RandomStart) => {
                let start = self.stream.below(places);
                several.partition_point(|&position| place(position) < start) % several.len()
            }
        };
        several[at]
    }

    /// One of each group of consecutive positions; a position's place among the `places` of its group is `place`.
    fn each(&mut self, positions: &[u32], group: impl Fn(u32) -> u32, (place, places): (impl Fn(u32) -> u32, u32), drawn: &mut Vec<u32>) {
        drawn.extend(positions.chunk_by(|&a, &b| group(a) == group(b)).map(|several| self.one(several, &place, places)));
    }
}

impl RouterAllocator for Pim {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.turn += 1;
        let row_of = |position: u32| requests[position as usize].row;
        let column_of = |position: u32| requests[position as usize].column;
        self.open.clear();
        self.open.extend(0..requests.len() as u32);
        self.open.sort_unstable_by_key(|&position| (column_of(position), row_of(position)));
        for _ in 0..self.iterations {
            self.grants.clear();
            self.drawing.each(&self.open, column_of, (row_of, self.shape.rows), &mut self.grants);
            self.grants.sort_unstable_by_key(|&position| (row_of(position), column_of(position)));
            let before = granted.len();
            self.drawing.each(&self.grants, row_of, (column_of, self.shape.columns), granted);
            if granted.len() == before {
                return;
            }
            for &position in &granted[before..] {
                (self.row[row_of(position) as usize], self.column[column_of(position) as usize]) = (self.turn, self.turn);
            }
            let (row, column, turn) = (&self.row, &self.column, self.turn);
            self.open.retain(|&position| row[row_of(position) as usize] != turn && column[column_of(position) as usize] != turn);
        }
    }
}
