//! Routing tables: for each router and destination router, the output ports that lie on a best route.

use crate::id::{ChannelId, Port, RouterId, TerminalId};
use crate::network::{Endpoint, NONE, Network};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Columns of a block, as a power of two, in a table that is large. Longer blocks need fewer numbers of blocks, shorter ones recur more often.
const BLOCK_SHIFT: u32 = 8;

/// A table of at most so many entries is not cut: one block for each row.
const SMALL: u64 = 1 << 16;

/// Bytes by which a distinct block is known while a table is made.
const KNOWN_BYTES: u64 = 64;

/// Small numbers by (row, column). Rows are cut into blocks of columns, and equal blocks are stored once: in regular networks most rows
/// look alike over long stretches, so that their tables need not grow with the square of the network. Where no two blocks are equal it
/// takes two bytes an entry and little more.
#[derive(Debug)]
pub(super) struct BlockTable {
    shift: u32,
    /// Blocks of a row.
    blocks: usize,
    /// Which block, shape `[rows, blocks]`.
    block: Vec<u32>,
    entries: Entries,
    /// What it took while it was made.
    making: u64,
}

/// The entries of all distinct blocks, one block after the other.
#[derive(Debug)]
enum Entries {
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl BlockTable {
    /// The number at a place.
    #[inline]
    pub(super) fn get(&self, row: usize, column: u32) -> u32 {
        let block = self.block[row * self.blocks + (column >> self.shift) as usize] as usize;
        let place = (block << self.shift) + (column & ((1 << self.shift) - 1)) as usize;
        match &self.entries {
            Entries::Short(entries) => entries[place].into(),
            Entries::Long(entries) => entries[place],
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        let entries = match &self.entries {
            Entries::Short(entries) => 2 * entries.len(),
            Entries::Long(entries) => 4 * entries.len(),
        };
        (4 * self.block.len() + entries) as u64
    }

    /// Bytes that it took at most while it was made.
    pub(super) fn build_peak_bytes(&self) -> u64 {
        self.making
    }

    /// No table of this shape takes more bytes while it is made, as long as its numbers are below 2^16: entries in a vector that grows by
    /// half at least, the window of columns that is being filled, and what is kept of each block.
    pub(super) fn most_bytes(rows: u64, columns: u64) -> u64 {
        let block = 1 << block_shift(rows, columns);
        let entries = rows * columns.next_multiple_of(block);
        4 * entries + 4 * rows * block + (4 + KNOWN_BYTES) * (entries / block)
    }
}

/// Columns of a block of a table of this shape, as a power of two.
fn block_shift(rows: u64, columns: u64) -> u32 {
    let whole = columns.max(1).next_power_of_two();
    if rows * whole <= SMALL { whole.ilog2() } else { BLOCK_SHIFT.min(whole.ilog2()) }
}

/// Collects a [`BlockTable`]: all rows of a column, then all rows of the next.
#[derive(Debug)]
pub(super) struct BlockTableBuilder {
    table: BlockTable,
    /// The distinct blocks by the hash of their entries.
    known: BTreeMap<u64, Vec<u32>>,
    /// How many there are.
    distinct: u32,
    /// The block of columns that is being filled, shape `[rows, block]`, and its number.
    window: Vec<u32>,
    open: usize,
}

impl BlockTableBuilder {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let shift = block_shift(rows as u64, columns as u64);
        let blocks = columns.div_ceil(1 << shift);
        let table = BlockTable { shift, blocks, block: vec![0; rows * blocks], entries: Entries::Short(Vec::new()), making: 0 };
        Self { table, known: BTreeMap::new(), distinct: 0, window: vec![0; rows << shift], open: 0 }
    }

    /// Columns must not fall from one call to the next.
    pub(super) fn set(&mut self, row: usize, column: usize, number: u32) {
        let shift = self.table.shift;
        if column >> shift != self.open {
            self.close();
            self.open = column >> shift;
        }
        self.window[(row << shift) + (column & ((1 << shift) - 1))] = number;
    }

    /// Puts the blocks of the window where they belong.
    fn close(&mut self) {
        let table = &mut self.table;
        if table.blocks == 0 {
            return;
        }
        for (row, block) in self.window.chunks_exact(1 << table.shift).enumerate() {
            let alike = self.known.entry(hash(block)).or_default();
            let known = alike.iter().find(|&&number| table.entries.are(number as usize * block.len(), block));
            let number = known.copied().unwrap_or_else(|| {
                table.entries.extend(block);
                alike.push(self.distinct);
                self.distinct += 1;
                self.distinct - 1
            });
            table.block[row * table.blocks + self.open] = number;
        }
        self.window.fill(0);
    }

    pub(super) fn finish(mut self) -> BlockTable {
        self.close();
        let grown = match &self.table.entries {
            Entries::Short(entries) => 2 * entries.capacity(),
            Entries::Long(entries) => 4 * entries.capacity(),
        };
        self.table.making = (grown + 4 * (self.table.block.len() + self.window.len())) as u64 + KNOWN_BYTES * u64::from(self.distinct);
        match &mut self.table.entries {
            Entries::Short(entries) => entries.shrink_to_fit(),
            Entries::Long(entries) => entries.shrink_to_fit(),
        }
        self.table
    }
}

/// Multiplies and rotates: blocks that collide are compared, so nothing depends on its quality but time.
fn hash(block: &[u32]) -> u64 {
    block.iter().fold(0, |hash: u64, &number| (hash.rotate_left(26) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Entries {
    /// Are the entries from `begin` on those of this block?
    fn are(&self, begin: usize, block: &[u32]) -> bool {
        match self {
            Self::Short(entries) => entries[begin..].iter().zip(block).all(|(&entry, &number)| u32::from(entry) == number),
            Self::Long(entries) => entries[begin..].iter().zip(block).all(|(entry, number)| entry == number),
        }
    }

    fn extend(&mut self, block: &[u32]) {
        if let Self::Short(entries) = self
            && block.iter().any(|&number| number > u16::MAX.into())
        {
            *self = Self::Long(entries.iter().map(|&number| number.into()).collect());
        }
        match self {
            Self::Short(entries) => entries.extend(block.iter().map(|&number| number as u16)),
            Self::Long(entries) => entries.extend_from_slice(block),
        }
    }
}

/// Port sets by (vertex, destination router). A vertex is a router, or a router and a phase of the route.
#[derive(Debug)]
pub(super) struct PortTable {
    /// The number of the set.
    set: BlockTable,
    /// Where each set begins; one more entry than sets.
    starts: Vec<u32>,
    ports: Vec<Port>,
}

impl PortTable {
    /// The ports of a vertex towards a destination's column, ascending.
    #[inline]
    pub(super) fn ports(&self, vertex: usize, column: u32) -> &[Port] {
        let set = self.set.get(vertex, column) as usize;
        &self.ports[self.starts[set] as usize..self.starts[set + 1] as usize]
    }

    /// Bytes that it took at most while it was made.
    pub(super) fn build_peak_bytes(&self) -> u64 {
        self.set.build_peak_bytes() + self.bytes() - self.set.bytes()
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.set.bytes() + (4 * self.starts.len() + 2 * self.ports.len()) as u64
    }
}

/// Collects a [`PortTable`] column by column.
#[derive(Debug)]
pub(super) struct PortTableBuilder {
    set: BlockTableBuilder,
    starts: Vec<u32>,
    ports: Vec<Port>,
    known: BTreeMap<Vec<Port>, u32>,
}

impl PortTableBuilder {
    pub(super) fn new(vertices: usize, columns: usize) -> Self {
        // Set 0 is the empty one: what is never set has no ports.
        let known = BTreeMap::from([(Vec::new(), 0)]);
        Self { set: BlockTableBuilder::new(vertices, columns), starts: vec![0, 0], ports: Vec::new(), known }
    }

    /// Columns must not fall from one call to the next.
    pub(super) fn set(&mut self, vertex: usize, column: usize, ports: &[Port]) {
        let number = match self.known.get(ports) {
            Some(&number) => number,
            None => {
                let number = self.starts.len() as u32 - 1;
                self.ports.extend_from_slice(ports);
                self.starts.push(self.ports.len() as u32);
                self.known.insert(ports.to_vec(), number);
                number
            }
        };
        self.set.set(vertex, column, number);
    }

    pub(super) fn finish(self) -> PortTable {
        PortTable { set: self.set.finish(), starts: self.starts, ports: self.ports }
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

    /// How many routers serve terminals.
    pub(super) fn count(network: &Network) -> u64 {
        Self::of(network).routers.len() as u64
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A table gives back what was put in, whatever blocks it is cut into.
        #[test]
        fn a_table_holds_what_was_set(rows in 1usize..40, columns in 1usize..3000, distinct in prop_oneof![Just(1u32), Just(3), Just(70_000)]) {
            let number = |row: usize, column: usize| ((row * 7919 + column * 104_729) as u32 >> 3) % distinct;
            let mut builder = BlockTableBuilder::new(rows, columns);
            for (column, row) in (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row))) {
                builder.set(row, column, number(row, column));
            }
            let table = builder.finish();
            for (column, row) in (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row))) {
                prop_assert_eq!(table.get(row, column as u32), number(row, column));
            }
            prop_assert!(distinct > 1 << 16 || table.bytes() <= BlockTable::most_bytes(rows as u64, columns as u64));
        }
    }

    /// The rows of a line of routers: lower columns by one port, higher ones by the other. A thousand rows of a thousand columns would
    /// be 2 MB; nearly all their blocks are equal.
    #[test]
    fn rows_that_look_alike_take_little_memory() {
        let mut builder = BlockTableBuilder::new(1000, 1000);
        for (column, row) in (0..1000).flat_map(|column| (0..1000).map(move |row| (column, row))) {
            builder.set(row, column, u32::from(column > row) + u32::from(column == row) * 2);
        }
        let bytes = builder.finish().bytes();
        assert!(bytes < 600_000, "{bytes} bytes");
    }
}
