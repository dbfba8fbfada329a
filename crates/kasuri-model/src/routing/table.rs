//! Routing tables: for each router and destination router, the output ports that lie on a best route.

use crate::id::{ChannelId, Port, RouterId, TerminalId};
use crate::network::{Endpoint, NONE, Network};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Port sets by (vertex, destination router). A vertex is a router, or a router and a phase of the route.
///
/// Equal port sets of one vertex are stored once, so that a table of R vertices and D destinations takes 4 R D bytes and little
/// more.
#[derive(Debug)]
pub(super) struct PortTable {
    columns: usize,
    /// Index into `spans`, shape `[vertices, columns]`.
    set: Vec<u32>,
    /// Where each set begins; one more entry than sets.
    starts: Vec<u32>,
    ports: Vec<Port>,
}

impl PortTable {
    /// The ports of a vertex towards a destination's column, ascending.
    #[inline]
    pub(super) fn ports(&self, vertex: usize, column: u32) -> &[Port] {
        let set = self.set[vertex * self.columns + column as usize] as usize;
        &self.ports[self.starts[set] as usize..self.starts[set + 1] as usize]
    }
}

/// Collects a [`PortTable`] column by column.
#[derive(Debug)]
pub(super) struct PortTableBuilder {
    table: PortTable,
    known: BTreeMap<Vec<Port>, u32>,
}

impl PortTableBuilder {
    pub(super) fn new(vertices: usize, columns: usize) -> Self {
        let table = PortTable { columns, set: vec![0; vertices * columns], starts: vec![0], ports: Vec::new() };
        Self { table, known: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, vertex: usize, column: usize, ports: &[Port]) {
        let number = match self.known.get(ports) {
            Some(&number) => number,
            None => {
                let number = self.table.starts.len() as u32 - 1;
                self.table.ports.extend_from_slice(ports);
                self.table.starts.push(self.table.ports.len() as u32);
                self.known.insert(ports.to_vec(), number);
                number
            }
        };
        self.table.set[vertex * self.table.columns + column] = number;
    }

    pub(super) fn finish(self) -> PortTable {
        self.table
    }
}

/// The routers that serve some terminals, each with a column of the table; and each terminal's column, router and port.
#[derive(Debug)]
pub(super) struct Destinations {
    /// The serving routers in ascending order.
    pub(super) routers: Vec<RouterId>,
    /// By terminal.
    pub(super) terminals: Vec<Destination>,
}

/// Where a terminal is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    /// The column of its router, [`NONE`] if that has none.
    pub(super) column: u32,
    /// Its router.
    pub(super) router: RouterId,
    /// The output port there.
    pub(super) port: Port,
}

impl Destinations {
    pub(super) fn of(network: &Network) -> Self {
        Self::among(network, (0..network.terminal_count()).map(TerminalId))
    }

    /// Columns only for the routers of these terminals.
    pub(super) fn among(network: &Network, terminals: impl Iterator<Item = TerminalId>) -> Self {
        let mut column_of = vec![NONE; network.router_count() as usize];
        let served = || (0..network.terminal_count()).map(|terminal| network.ejection_port(TerminalId(terminal)));
        for terminal in terminals {
            column_of[network.ejection_port(terminal).0.index()] = 0;
        }
        let mut routers = Vec::new();
        for (router, column) in column_of.iter_mut().enumerate().filter(|(_, column)| **column != NONE) {
            *column = routers.len() as u32;
            routers.push(RouterId(router as u32));
        }
        let terminals = served().map(|(router, port)| Destination { column: column_of[router.index()], router, port }).collect();
        Self { routers, terminals }
    }
}

/// One directed edge between routers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: RouterId,
    pub(super) port: Port,
    pub(super) to: RouterId,
    pub(super) channel: ChannelId,
}

/// All channels between routers as edges, in the order of their channels.
pub(super) fn edges(network: &Network) -> Vec<Edge> {
    let edge = |channel| match (network.source(channel), network.destination(channel)) {
        (Endpoint::Router(from, port), Endpoint::Router(to, _)) => Some(Edge { from, port, to, channel }),
        _ => None,
    };
    network.router_channels().filter_map(edge).collect()
}

/// Arcs between vertices with a positive cost, grouped by their head for searches from a destination backwards.
#[derive(Debug)]
pub(super) struct Arcs {
    /// Do all arcs cost the same? Then a breadth-first search does.
    equal: bool,
    start: Vec<u32>,
    /// `(tail, cost)` of the arcs into each vertex.
    into: Vec<(u32, u64)>,
}

impl Arcs {
    /// `arcs` lists (tail, head, cost).
    pub(super) fn new(vertices: usize, arcs: &[(u32, u32, u64)]) -> Self {
        let mut start = vec![0; vertices + 1];
        for &(_, head, _) in arcs {
            start[head as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            start[vertex + 1] += start[vertex];
        }
        let (mut next, mut into) = (start.clone(), vec![(0, 0); arcs.len()]);
        for &(tail, head, cost) in arcs {
            into[next[head as usize] as usize] = (tail, cost);
            next[head as usize] += 1;
        }
        let equal = arcs.windows(2).all(|pair| pair[0].2 == pair[1].2);
        Self { equal, start, into }
    }

    /// The least cost from every vertex to one of `targets` (`u64::MAX`: none), by Dijkstra's algorithm.
    pub(super) fn distances_to(&self, targets: &[u32]) -> Vec<u64> {
        if self.equal {
            return self.breadth_first(targets);
        }
        let mut distance = vec![u64::MAX; self.start.len() - 1];
        let mut queue = BinaryHeap::new();
        for &target in targets {
            distance[target as usize] = 0;
            queue.push(Reverse((0, target)));
        }
        while let Some(Reverse((cost, vertex))) = queue.pop() {
            if cost > distance[vertex as usize] {
                continue;
            }
            for &(tail, step) in self.into(vertex) {
                if cost + step < distance[tail as usize] {
                    distance[tail as usize] = cost + step;
                    queue.push(Reverse((cost + step, tail)));
                }
            }
        }
        distance
    }
    fn into(&self, vertex: u32) -> &[(u32, u64)] {
        &self.into[self.start[vertex as usize] as usize..self.start[vertex as usize + 1] as usize]
    }

    fn breadth_first(&self, targets: &[u32]) -> Vec<u64> {
        let mut distance = vec![u64::MAX; self.start.len() - 1];
        let mut queue = targets.to_vec();
        targets.iter().for_each(|&target| distance[target as usize] = 0);
        let mut head = 0;
        while head < queue.len() {
            let vertex = queue[head];
            head += 1;
            for &(tail, step) in self.into(vertex) {
                if distance[tail as usize] == u64::MAX {
                    distance[tail as usize] = distance[vertex as usize] + step;
                    queue.push(tail);
                }
            }
        }
        distance
    }
}
