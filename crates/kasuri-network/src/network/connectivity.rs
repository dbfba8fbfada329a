//! Can every terminal reach every other?

use super::{Endpoint, Network};
use crate::id::{RouterId, TerminalId};
use std::collections::BTreeMap;

/// Two terminals of which the first cannot reach the second, over whatever channels; `None` in a connected network.
///
/// Where all routers with terminals can reach each other back and forth this takes one pass over the channels. Otherwise (networks of one
/// direction) the strongly connected components are followed in their order, 512 at once.
pub fn separated(network: &Network) -> Option<(TerminalId, TerminalId)> {
    let components = Components::of(network);
    let (mut sources, mut targets) = (Ends::new(), Ends::new());
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        note(&mut sources, components.number[network.injection_port(terminal).0.index()], terminal);
        note(&mut targets, components.number[network.ejection_port(terminal).0.index()], terminal);
    }
    if sources.len() == 1 && sources.keys().eq(targets.keys()) {
        return None;
    }
    let begins: Vec<u32> = sources.keys().copied().collect();
    begins.chunks(64 * WORDS).find_map(|block| {
        let reached = components.reached_from(block);
        block.iter().enumerate().find_map(|(place, source)| {
            let cut_off = targets.iter().filter(|(target, _)| reached[**target as usize][place / 64] >> (place % 64) & 1 == 0);
            cut_off.filter_map(|(_, ends)| pair(&sources[source], ends)).next()
        })
    })
}

/// By router: the number of the set of routers, over what is up, that it can reach and that can reach it.
pub(crate) fn components(network: &Network) -> Vec<u32> {
    Components::of(network).number
}

/// Words of bits that follow components together: a cache line.
const WORDS: usize = 8;

/// The first terminals of each component, two at most: enough to find two different ones.
type Ends = BTreeMap<u32, Vec<TerminalId>>;

fn note(ends: &mut Ends, component: u32, terminal: TerminalId) {
    let first = ends.entry(component).or_default();
    if first.len() < 2 {
        first.push(terminal);
    }
}

/// Two different terminals, one of each.
fn pair(sources: &[TerminalId], targets: &[TerminalId]) -> Option<(TerminalId, TerminalId)> {
    sources.iter().find_map(|&source| targets.iter().find(|&&target| target != source).map(|&target| (source, target)))
}

/// The strongly connected components: routers that can reach each other.
struct Components {
    /// Of each router. A channel never leads to a component of a higher number.
    number: Vec<u32>,
    /// The routers, by ascending number of their component.
    order: Vec<u32>,
    /// The routers that the channels of each router lead to: where they begin, and they.
    starts: Vec<usize>,
    next: Vec<u32>,
}

impl Components {
    /// By Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972), with a stack of its own.
    fn of(network: &Network) -> Self {
        let routers = network.router_count() as usize;
        let (mut starts, mut next) = (vec![0], Vec::new());
        for router in (0..network.router_count()).map(RouterId) {
            for port in 0..network.port_count(router) as u16 {
                if let Some(Endpoint::Router(to, _)) = network.output_channel(router, port).map(|channel| network.destination(channel)) {
                    next.push(to.0);
                }
            }
            starts.push(next.len());
        }
        let mut search = Search {
            visited: vec![UNSEEN; routers],
            lowest: vec![0; routers],
            open: Vec::new(),
            met: 0,
            components: Self { number: vec![UNSEEN; routers], order: Vec::with_capacity(routers), starts, next },
        };
        for router in 0..routers as u32 {
            if search.visited[router as usize] == UNSEEN {
                search.from(router);
            }
        }
        search.components
    }

    fn next_of(&self, router: u32) -> &[u32] {
        &self.next[self.starts[router as usize]..self.starts[router as usize + 1]]
    }

    /// For each component, which of these it can be reached from, a bit each.
    fn reached_from(&self, block: &[u32]) -> Vec<[u64; WORDS]> {
        let count = self.order.last().map_or(0, |&router| self.number[router as usize] as usize + 1);
        let mut reached = vec![[0; WORDS]; count];
        for (place, &component) in block.iter().enumerate() {
            reached[component as usize][place / 64] |= 1 << (place % 64);
        }
        // All that leads to a component has a higher number, and is done before it.
        for &router in self.order.iter().rev() {
            let from = reached[self.number[router as usize] as usize];
            for &to in self.next_of(router) {
                let bits = &mut reached[self.number[to as usize] as usize];
                bits.iter_mut().zip(from).for_each(|(word, from)| *word |= from);
            }
        }
        reached
    }
}

const UNSEEN: u32 = u32::MAX;

struct Search {
    /// When each router was met.
    visited: Vec<u32>,
    /// The earliest router that is known to be in its component.
    lowest: Vec<u32>,
    /// Routers whose component is not complete.
    open: Vec<u32>,
    met: u32,
    components: Components,
}

impl Search {
    fn from(&mut self, root: u32) {
        // A router and how many of its channels have been followed.
        let mut path = vec![(root, 0)];
        self.meet(root);
        while let Some((router, followed)) = path.last_mut() {
            let router = *router;
            if let Some(&to) = self.components.next_of(router).get(*followed) {
                *followed += 1;
                if self.visited[to as usize] == UNSEEN {
                    self.meet(to);
                    path.push((to, 0));
                } else if self.components.number[to as usize] == UNSEEN {
                    self.lowest[router as usize] = self.lowest[router as usize].min(self.visited[to as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(&(before, _)) = path.last() {
                self.lowest[before as usize] = self.lowest[before as usize].min(self.lowest[router as usize]);
            }
            if self.lowest[router as usize] == self.visited[router as usize] {
                self.complete(router);
            }
        }
    }

    fn meet(&mut self, router: u32) {
        self.visited[router as usize] = self.met;
        self.lowest[router as usize] = self.met;
        self.met += 1;
        self.open.push(router);
    }

    fn complete(&mut self, root: u32) {
        let number = self.components.order.last().map_or(0, |&router| self.components.number[router as usize] + 1);
        while let Some(router) = self.open.pop() {
            self.components.number[router as usize] = number;
            self.components.order.push(router);
            if router == root {
                return;
            }
        }
    }
}
