//! A search for an assignment of logical to physical nodes that keeps logical neighbours near and channels evenly used.
//!
//! Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) over exchanges of two physical nodes, of which some may be spare.
//! The graph-mapping libraries at hand partition; none places onto the routes of a given routing, which is what counts here.

use super::routes::RoutedPaths;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::rng::Stream;
use std::collections::BTreeMap;

/// Exchanges tried for each logical node.
const EXCHANGES_PER_NODE: usize = 600;

/// The temperature at the end, of that at the beginning.
const LAST_TEMPERATURE: f64 = 1e-3;

/// Looks for an assignment of logical nodes `0..nodes` to terminals of `region`, which has at least as many. The cost is the sum
/// over all channels of the square of the logical links over them: it grows with every hop and with unevenness. The region in
/// its own order is where the search begins, so the answer is never dearer.
pub fn search(
    nodes: u32,
    edges: &[(u32, u32)],
    region: &[TerminalId],
    paths: &mut RoutedPaths<'_>,
    stream: &mut Stream,
) -> Vec<TerminalId> {
    let mut state = State::new(nodes, edges, region, paths);
    let mut best = (state.cost, state.place.clone());
    let tries = EXCHANGES_PER_NODE * nodes as usize;
    let first = (2.0 * state.cost / f64::from(nodes.max(1))).max(1.0);
    for attempt in 0..tries {
        let temperature = first * LAST_TEMPERATURE.powf(attempt as f64 / tries as f64);
        let (one, other) = (stream.below(nodes), stream.below(region.len() as u32));
        let before = state.cost;
        state.exchange(one as usize, other as usize, paths);
        if state.cost > before && stream.unit() >= ((before - state.cost) / temperature).exp() {
            state.exchange(one as usize, other as usize, paths);
        }
        if state.cost < best.0 - 1e-9 {
            best = (state.cost, state.place.clone());
        }
    }
    best.1[..nodes as usize].iter().map(|&position| region[position]).collect()
}

/// An assignment and the load that it puts on each channel.
struct State<'a> {
    edges: &'a [(u32, u32)],
    region: &'a [TerminalId],
    /// By logical node, spare places behind them: the position in the region.
    place: Vec<usize>,
    /// By logical node: its links.
    links: Vec<Vec<usize>>,
    load: BTreeMap<ChannelId, f64>,
    cost: f64,
    /// Paths by positions, found when first asked for.
    known: BTreeMap<(usize, usize), Vec<(ChannelId, f64)>>,
}

impl<'a> State<'a> {
    fn new(nodes: u32, edges: &'a [(u32, u32)], region: &'a [TerminalId], paths: &mut RoutedPaths<'_>) -> Self {
        let mut links = vec![Vec::new(); nodes as usize];
        for (link, &(from, to)) in edges.iter().enumerate() {
            links[from as usize].push(link);
            links[to as usize].push(link);
        }
        let place = (0..region.len()).collect();
        let mut state = Self { edges, region, place, links, load: BTreeMap::new(), cost: 0.0, known: BTreeMap::new() };
        (0..edges.len()).for_each(|link| state.lay(link, 1.0, paths));
        state
    }

    /// Adds a link to the loads, or takes it away with `sign` -1.
    fn lay(&mut self, link: usize, sign: f64, paths: &mut RoutedPaths<'_>) {
        let (from, to) = self.edges[link];
        let ends = (self.place[from as usize], self.place[to as usize]);
        let region = self.region;
        let path = self.known.entry(ends).or_insert_with(|| paths.between(region[ends.0], region[ends.1]));
        for &(channel, share) in path.iter() {
            let load = self.load.entry(channel).or_default();
            self.cost -= *load * *load;
            *load += sign * share;
            self.cost += *load * *load;
        }
    }

    /// Exchanges the places of a logical node and of another (or a spare place).
    fn exchange(&mut self, one: usize, other: usize, paths: &mut RoutedPaths<'_>) {
        let of_other: &[usize] = self.links.get(other).map_or(&[], Vec::as_slice);
        let mut moved: Vec<usize> = self.links[one].iter().chain(of_other).copied().collect();
        moved.sort_unstable();
        moved.dedup();
        moved.iter().for_each(|&link| self.lay(link, -1.0, paths));
        self.place.swap(one, other);
        moved.iter().for_each(|&link| self.lay(link, 1.0, paths));
    }
}
