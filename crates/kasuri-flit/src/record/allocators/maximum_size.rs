//! Maximum-size matching by shortest augmenting paths (Dally and Towles 2004, section 19.2; Ford and Fulkerson 1962).

use crate::record::allocators::allocator::{Request, RouterAllocator, RouterShape};

/// No matching grants more pairs. Which of them is found turns with the row at which the search begins.
pub(super) struct MaximumSize {
    rows: u32,
    /// The row that is looked at first.
    first: u32,
    /// Position of the request by which a row is matched, and that of a column, where the stamp is that of the present turn.
    row_match: Box<[Mark]>,
    column_match: Box<[Mark]>,
    /// The request by which a search has come to a column.
    reached: Box<[Mark]>,
    turn: u64,
    search: u64,
    starts: Vec<u32>,
    queue: Vec<u32>,
}

/// A position that is valid for one turn or search.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    stamp: u64,
    position: u32,
}

impl MaximumSize {
    pub(super) fn new(shape: RouterShape) -> Self {
        let marks = |count: u32| vec![Mark::default(); count as usize].into_boxed_slice();
        Self {
            rows: shape.rows,
            first: 0,
            row_match: marks(shape.rows),
            column_match: marks(shape.columns),
            reached: marks(shape.columns),
            turn: 0,
            search: 0,
            starts: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Looks for a shortest augmenting path from an unmatched row, whose requests begin at `start`, and turns it over.
    fn augment(&mut self, requests: &[Request], start: u32) {
        self.search += 1;
        self.queue.clear();
        self.queue.push(start);
        let mut next = 0;
        while next < self.queue.len() {
            let begin = self.queue[next];
            next += 1;
            let row = requests[begin as usize].row;
            for position in begin.. {
                let Some(request) = requests.get(position as usize).filter(|request| request.row == row) else { break };
                let column = request.column as usize;
                if self.reached[column].stamp == self.search {
                    continue;
                }
                self.reached[column] = Mark { stamp: self.search, position };
                let matched = self.column_match[column];
                if matched.stamp != self.turn {
                    self.turn_over(requests, position);
                    return;
                }
                let other = requests[matched.position as usize].row;
                self.queue.push(first_of_row(requests, other));
            }
        }
    }

    /// The path ends with this request: along it matched and unmatched requests change places, back to the row that began.
    fn turn_over(&mut self, requests: &[Request], end: u32) {
        let mut position = end;
        loop {
            let Request { row, column, .. } = requests[position as usize];
            let before = self.row_match[row as usize];
            self.row_match[row as usize] = Mark { stamp: self.turn, position };
            self.column_match[column as usize] = Mark { stamp: self.turn, position };
            if before.stamp != self.turn {
                return;
            }
            let left = requests[before.position as usize].column;
            position = self.reached[left as usize].position;
        }
    }
}

/// The position of a row's first request.
fn first_of_row(requests: &[Request], row: u32) -> u32 {
    requests.partition_point(|request| request.row < row) as u32
}

impl RouterAllocator for MaximumSize {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.turn += 1;
        let mut starts = std::mem::take(&mut self.starts);
        starts.extend((0..requests.len()).filter(|&at| at == 0 || requests[at - 1].row != requests[at].row).map(|at| at as u32));
        let turned = starts.partition_point(|&start| requests[start as usize].row < self.first);
        starts.rotate_left(turned);
        for start in starts.drain(..) {
            self.augment(requests, start);
        }
        self.starts = starts;
        let matched = self.row_match.iter().filter(|mark| mark.stamp == self.turn);
        granted.extend(matched.map(|mark| mark.position));
        self.first = (self.first + 1) % self.rows;
    }
}
