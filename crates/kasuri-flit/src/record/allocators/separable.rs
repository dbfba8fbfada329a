//! Separable allocation out of arbiters, input-first or output-first (Dally and Towles 2004, section 19.3).

use crate::record::allocators::allocator::{Request, RouterAllocator, RouterShape};
use crate::record::arbiters;
use crate::record::arbiters::arbiter::Arbiters;
use kasuri_model::router::ArbiterParameters;
use std::cmp::Reverse;

/// Which side picks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Each row picks one of its columns, then each column one of the rows that picked it.
    Input,
    /// Each column picks one of its rows, then each row one of the columns that picked it.
    Output,
}

/// An arbiter for each row and each column. Both sides heed priorities before their arbiters' order; arbiters learn of matched pairs only.
pub(super) struct Separable {
    first: First,
    rows: Box<dyn Arbiters>,
    columns: Box<dyn Arbiters>,
    /// Is it iSLIP of one iteration?
    is_single_islip: bool,
    picked: Vec<u32>,
}

impl Separable {
    pub(super) fn new(first: First, arbiter: ArbiterParameters, shape: RouterShape) -> Self {
        Self {
            first,
            rows: arbiters::build(arbiter, shape.rows, shape.columns),
            columns: arbiters::build(arbiter, shape.columns, shape.rows),
            is_single_islip: first == First::Output && arbiter == ArbiterParameters::default(),
            picked: Vec::new(),
        }
    }

    /// Of each group of `picked` with the same row, the request that the row prefers.
    fn rows_pick(&mut self, requests: &[Request]) {
        let rows = &self.rows;
        pick(
            &mut self.picked,
            requests,
            |request| request.row,
            |request| (Reverse(request.preference), rows.order(request.row, request.column, request.created)),
        );
    }

    fn columns_pick(&mut self, requests: &[Request]) {
        let columns = &self.columns;
        pick(
            &mut self.picked,
            requests,
            |request| request.column,
            |request| (Reverse(request.priority), columns.order(request.column, request.row, request.created)),
        );
    }
}

/// Keeps of the requests at these positions the least of each group, by `key` within `group`.
pub(super) fn pick<K: Ord>(positions: &mut Vec<u32>, requests: &[Request], group: impl Fn(&Request) -> u32, key: impl Fn(&Request) -> K) {
    let at = |position: &u32| &requests[*position as usize];
    positions.sort_unstable_by_key(|position| (group(at(position)), key(at(position))));
    positions.dedup_by_key(|position| group(at(position)));
}

impl RouterAllocator for Separable {
    fn allocate(&mut self, requests: &[Request], granted: &mut Vec<u32>) {
        self.picked.clear();
        self.picked.extend(0..requests.len() as u32);
        match self.first {
            First::Input => {
                self.rows_pick(requests);
                self.columns_pick(requests);
            }
            First::Output => {
                self.columns_pick(requests);
                self.rows_pick(requests);
            }
        }
        for &position in &self.picked {
            let Request { row, column, .. } = requests[position as usize];
            self.rows.served(row, column);
            self.columns.served(column, row);
        }
        granted.append(&mut self.picked);
    }

    fn distance(&self, row: u32, column: u32) -> Option<u64> {
        self.is_single_islip.then(|| self.rows.order(row, column, 0).0)
    }

    fn matched(&mut self, row: u32, column: u32) {
        if self.is_single_islip {
            self.rows.served(row, column);
            self.columns.served(column, row);
        }
    }
}
