//! Which nodes of a trace may start: those for which nothing waits any more.

use super::super::trace::Trace;
use std::sync::Arc;

/// The dependencies of a trace, and what is left of them.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// For how many nodes each still waits.
    waits_for: Vec<u32>,
    successors: Arc<Successors>,
    /// Nodes that have not ended.
    left: usize,
    pub(super) ended: Vec<bool>,
}

/// Who waits for whom: the list of each node, one after the other.
#[derive(Debug)]
struct Successors {
    begins: Vec<u32>,
    list: Vec<u32>,
}

impl Graph {
    /// The graph of a trace all of whose dependencies exist.
    pub(super) fn new(trace: &Trace) -> Self {
        let nodes = trace.nodes.len();
        let pairs = || {
            let all = trace.nodes.iter().enumerate();
            all.flat_map(|(node, item)| item.waits_for.iter().filter_map(move |&on| Some((trace.position(on)?, node))))
        };
        let mut begins = vec![0_u32; nodes + 1];
        pairs().for_each(|(on, _)| begins[on + 1] += 1);
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut list = vec![0; begins[nodes] as usize];
        let (mut free, mut waits_for) = (begins.clone(), vec![0; nodes]);
        pairs().for_each(|(on, node)| {
            list[free[on] as usize] = node as u32;
            free[on] += 1;
            waits_for[node] += 1;
        });
        Self { waits_for, successors: Arc::new(Successors { begins, list }), left: nodes, ended: vec![false; nodes] }
    }

    /// The nodes that wait for nothing, in ascending order.
    pub(super) fn roots(&self) -> Vec<u32> {
        (0..self.waits_for.len() as u32).filter(|&node| self.waits_for[node as usize] == 0).collect()
    }

    /// A node has ended: those that may start now, in ascending order.
    pub(super) fn end(&mut self, node: u32) -> Vec<u32> {
        self.left -= 1;
        self.ended[node as usize] = true;
        let range = self.successors.begins[node as usize] as usize..self.successors.begins[node as usize + 1] as usize;
        let mut freed = Vec::new();
        for &next in &self.successors.list[range] {
            let waits_for = &mut self.waits_for[next as usize];
            *waits_for -= 1;
            if *waits_for == 0 {
                freed.push(next);
            }
        }
        freed.sort_unstable();
        freed
    }

    /// Whether all nodes have ended.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }
}
