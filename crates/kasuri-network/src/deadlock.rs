//! The static deadlock check: is the channel dependency graph of a network and its routing without a cycle?
//!
//! A packet that holds a virtual channel of one channel and waits for one of the next makes the first depend on the second. If
//! no chain of dependencies comes back to where it began, no set of packets can wait for each other for ever (Dally and Seitz,
//! IEEE Trans. Comput. C-36, 1987). Wormhole switching is assumed, which is safe for the other kinds. A cycle proves a deadlock
//! possible only if the routing is deterministic. Of an adaptive routing with an escape path the dependencies of that path alone
//! count, which packets can always take and never leave (Duato, IEEE Trans. Parallel Distrib. Syst. 4, 1993). They can as long as
//! routers give heads only virtual channels with room ([`EscapePath`]).
//!
//! Bubbles ([`Rules::bubbles`]): where packets of one length wait as a whole, and one that enters a ring leaves room behind it for another,
//! no ring of a virtual channel ever fills up. Some packet before the room can move, so who waits for the next channel of its own ring waits
//! for nobody in particular, and that dependency does not count (Puente et al., J. Parallel Distrib. Comput. 61, 2001).
//!
//! Injection channels depend on others but none depends on them, and ejection channels wait for nobody: neither can lie on a
//! cycle, and both are left out. Virtual channels that every route treats alike are one node, so the cost does not grow with
//! their number.

use crate::id::{ChannelId, RouterId, TerminalId};
use crate::network::rings::Rings;
use crate::network::{Endpoint, NONE, Network};
use crate::routing::extents::Extent;
use crate::routing::walk::{DELIVERED, Lost, MANY_PLACES, Routes, Walker};
use crate::routing::{Routing, VirtualChannels};

/// The places and steps of routes that [`check`] looks at before it takes a sample of the destinations.
pub const STEP_BUDGET: u64 = 5_000_000;

/// What the check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Nodes of the dependency graph: channels between routers, times the classes of virtual channels in use on each.
    pub channels: u64,
    /// Its edges.
    pub dependencies: u64,
    /// Has it a cycle?
    pub verdict: Verdict,
    /// How much of it was built.
    pub coverage: Coverage,
    /// Do bubbles keep rings from filling up?
    pub bubbles: bool,
    /// Does no packet ever wait for room, whatever the graph?
    pub never_blocks: bool,
    /// A packet that cannot arrive: source, destination, what happens to it.
    pub unroutable: Option<(TerminalId, TerminalId, String)>,
}

/// Has the dependency graph a cycle?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No: no deadlock.
    Acyclic,
    /// Yes: channels, each with the first virtual channel of its class, each depending on the next, the last on the first.
    Cycle(Vec<(ChannelId, u16)>),
}

/// Can a head that waits always take the escape path of its routing, if there is one?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapePath {
    /// Yes: a head gets a virtual channel only where it has room, and asks for all that its routing offers until then.
    Open,
    /// No: a head may get a virtual channel whose buffer is full. It then waits for that one, and so its dependency counts.
    Closed,
}

/// What routers promise to heads that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Of escape paths.
    pub escape_path: EscapePath,
    /// A packet enters a ring of a torus only where room for another is left behind it, and all packets have one length.
    pub bubbles: bool,
    /// No packet waits for room: queues have no bounds, or drop what they cannot take.
    pub never_blocks: bool,
}

impl From<EscapePath> for Rules {
    fn from(escape_path: EscapePath) -> Self {
        Self { escape_path, bubbles: false, never_blocks: false }
    }
}

/// How much of the dependency graph was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All routes.
    Exact,
    /// The routes from all sources to an evenly spaced sample of the destinations.
    Sampled {
        /// Destinations walked.
        walked: u32,
        /// Destinations in all.
        of: u32,
        /// Where packets are given a state when they are created (an intermediate router): the part of the states walked, per cent,
        /// rounded up.
        states_percent: u32,
    },
}

impl Report {
    /// Can no packet wait for ever, as far as the check went?
    pub fn is_safe(&self) -> bool {
        self.verdict == Verdict::Acyclic && self.unroutable.is_none()
    }

    /// The finding in words, the cycle by the names of its channels, a line each.
    pub fn describe(&self, network: &Network) -> String {
        let sample = match self.coverage {
            Coverage::Exact => String::new(),
            Coverage::Sampled { walked, of, states_percent: 100 } => format!("the routes to {walked} of {of} destinations"),
            Coverage::Sampled { walked, of, states_percent } => {
                format!("the routes to {walked} of {of} destinations, at most {states_percent} % of the paths from each source")
            }
        };
        let exact = if sample.is_empty() { ", exact" } else { "" };
        let size = format!("{} channels, {} dependencies{exact}", self.channels, self.dependencies);
        let mut text = match &self.verdict {
            Verdict::Acyclic if self.never_blocks => format!("no deadlock: no packet waits for room in a queue ({size})"),
            Verdict::Acyclic if !sample.is_empty() => {
                let rings = if self.bubbles { " outside rings, where packets that enter leave room for another," } else { "" };
                format!("no cycle found{rings} in a sample, {sample} ({size}); this is not a proof")
            }
            Verdict::Acyclic if self.bubbles => {
                format!(
                    "no deadlock: packets that enter a ring leave room for another, and beside rings no channels wait in a cycle ({size})"
                )
            }
            Verdict::Acyclic => format!("no deadlock: the channel dependency graph has no cycle ({size})"),
            Verdict::Cycle(cycle) => {
                let lines = cycle.iter().map(|(channel, vc)| format!("\n  {}, virtual channel {vc}", network.channel_name(*channel)));
                format!(
                    "possible deadlock: a cycle of {} channels that wait for each other ({size}){}",
                    cycle.len(),
                    lines.collect::<String>()
                )
            }
        };
        if let Some((source, destination, problem)) = &self.unroutable {
            let (from, to) = (network.terminal_name(*source), network.terminal_name(*destination));
            text += &format!("\na packet from {from} to {to} does not arrive: {problem}");
        }
        text
    }
}

/// Checks a network and its routing for traffic classes that use these virtual channels, in routers that keep an escape path open.
pub fn check(network: &Network, routing: &dyn Routing, classes: &[VirtualChannels]) -> Report {
    check_within(network, routing, classes, EscapePath::Open, STEP_BUDGET)
}

/// Bytes that [`check_within`] takes at most at one time, of routes of this extent.
pub fn check_bytes(network: &Network, extent: Extent) -> u64 {
    let most_ports = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
    let words = (u64::from(most_ports) * extent.ranges).div_ceil(64);
    let nodes = extent.ranges * u64::from(network.channel_count());
    // The graph of ranges and that of classes, and the scratch of one destination.
    nodes * (NODE_BYTES + 8 * words) + extent.walk_bytes + 8 * words * extent.places + 8 * extent.steps
}

/// Bytes of a channel and a range, in both graphs.
const NODE_BYTES: u64 = 90;

/// As [`check`], in any routers, with another budget than [`STEP_BUDGET`], beyond which a sample of the destinations is taken.
pub fn check_within(network: &Network, routing: &dyn Routing, classes: &[VirtualChannels], rules: impl Into<Rules>, budget: u64) -> Report {
    let rules = rules.into();
    let mut graph = DependencyGraph::new(network, rules);
    let mut distinct: Vec<VirtualChannels> = Vec::new();
    classes.iter().filter(|class| class.count() > 0).for_each(|class| {
        if !distinct.contains(class) {
            distinct.push(*class);
        }
    });
    let (mut lost, mut coverage) = (None, Coverage::Exact);
    for &class in &distinct {
        match add_class(&mut graph, network, routing, class, budget / distinct.len() as u64, budget) {
            Ok(Coverage::Exact) => {}
            Ok(sampled) => coverage = sampled,
            Err(packet) => lost = lost.or(Some(packet)),
        }
    }
    let (channels, dependencies, cycle) = graph.classify().find_cycle(network);
    if lost.is_none() && cycle.is_some() {
        lost = distinct.iter().find_map(|&class| find_loop(network, routing, class, budget));
    }
    let unroutable = lost.map(|lost| (lost.source, lost.destination, lost.problem));
    let bubbles = graph.rings.is_some();
    let never_blocks = rules.never_blocks;
    let verdict = cycle.filter(|_| !never_blocks).map_or(Verdict::Acyclic, Verdict::Cycle);
    Report { channels, dependencies, verdict, coverage, bubbles, never_blocks, unroutable }
}

/// Walks the destinations of one class, or as many as the budget allows by the cost of the first.
fn add_class(
    graph: &mut DependencyGraph<'_>,
    network: &Network,
    routing: &dyn Routing,
    class: VirtualChannels,
    budget: u64,
    most_places: u64,
) -> Result<Coverage, Lost> {
    // A small budget is for a small look: one destination can have a million places.
    let mut walker = Walker::new(network, routing, class).with_most_places(most_places as usize);
    graph.escape = routing.escape_channels(class).filter(|_| graph.path == EscapePath::Open);
    let destinations = walker.destinations();
    let mut routes = Routes::default();
    let Some(&first) = destinations.first() else {
        return Ok(Coverage::Exact);
    };
    walker.walk(first, &mut routes)?;
    graph.add(&routes);
    // What is left of a sample says nothing of what it has cost to take it.
    let is_small_look = most_places < MANY_PLACES as u64 && routes.share * routes.branch_share < 1.0;
    let cost = if is_small_look { budget } else { (routes.places.len() + routes.steps.len()) as u64 }.max(1);
    let sample = evenly_spaced(&destinations, (budget / cost).max(1) as usize);
    let mut share = routes.share * routes.branch_share;
    for &destination in &sample[1..] {
        walker.walk(destination, &mut routes)?;
        graph.add(&routes);
        share = share.min(routes.share * routes.branch_share);
    }
    let (walked, of) = (sample.len() as u32, destinations.len() as u32);
    let states_percent = (100.0 * share).ceil() as u32;
    Ok(if walked == of && share == 1.0 { Coverage::Exact } else { Coverage::Sampled { walked, of, states_percent } })
}

/// At most `count` of the items, evenly spaced, the first among them.
fn evenly_spaced(items: &[TerminalId], count: usize) -> Vec<TerminalId> {
    let count = count.min(items.len());
    (0..count).map(|index| items[index * items.len() / count]).collect()
}

/// A destination to which packets can go round in a cycle, within the budget.
fn find_loop(network: &Network, routing: &dyn Routing, class: VirtualChannels, budget: u64) -> Option<Lost> {
    let mut walker = Walker::new(network, routing, class).with_most_places(budget as usize);
    let mut routes = Routes::default();
    let mut steps = 0;
    for destination in walker.destinations() {
        if let Err(lost) = walker.walk(destination, &mut routes) {
            return Some(lost);
        }
        if let Err(cycle) = routes.order() {
            let routers: Vec<String> = cycle.iter().map(|&place| routes.places[place as usize].hop.router.to_string()).collect();
            let mut start = cycle[0];
            while routes.places[start as usize].parent != start {
                start = routes.places[start as usize].parent;
            }
            let problem = format!("it can go round for ever through routers {}", routers.join(", "));
            return Some(Lost { source: routes.places[start as usize].hop.source, destination, problem });
        }
        steps += routes.steps.len() as u64;
        if steps > budget {
            return None;
        }
    }
    None
}

/// Dependencies between (channel, range of virtual channels), as the routes name the ranges.
struct DependencyGraph<'a> {
    network: &'a Network,
    path: EscapePath,
    /// The rings that bubbles keep from filling up.
    rings: Option<Rings>,
    /// The escape path, if the routing has one and it is open: nothing else counts.
    escape: Option<VirtualChannels>,
    ranges: Vec<Range>,
    /// (channel, range) of each node.
    nodes: Vec<(ChannelId, u32)>,
    /// What each node depends on: bit `range x ports + port` over the output ports of the router where its channel ends.
    rows: Vec<Vec<u64>>,
    /// Scratch: the node of each step, and the outputs of each place as a row.
    step_nodes: Vec<u32>,
    place_rows: Vec<u64>,
}

/// A range of virtual channels that occurs, and its node on each channel.
struct Range {
    virtual_channels: VirtualChannels,
    node_of_channel: Vec<u32>,
}

impl<'a> DependencyGraph<'a> {
    fn new(network: &'a Network, rules: Rules) -> Self {
        Self {
            network,
            path: rules.escape_path,
            rings: Rings::of(network).filter(|_| rules.bubbles),
            escape: None,
            ranges: Vec::new(),
            nodes: Vec::new(),
            rows: Vec::new(),
            step_nodes: Vec::new(),
            place_rows: Vec::new(),
        }
    }

    /// Adds the dependencies along the routes to one destination: each step that enters a place depends on each that leaves it.
    fn add(&mut self, routes: &Routes) {
        self.step_nodes.clear();
        for step in &routes.steps {
            let within = |escape: VirtualChannels| (escape.begin..escape.end).contains(&step.virtual_channels.begin);
            let counts = step.to != DELIVERED && self.escape.is_none_or(within);
            let node = if counts { self.node(step.channel, step.virtual_channels) } else { NONE };
            self.step_nodes.push(node);
        }
        let ports = |place: u32| self.network.port_count(routes.places[place as usize].hop.router) as usize;
        let most_ports = (0..routes.places.len() as u32).map(ports).max().unwrap_or(0);
        let words = (most_ports * self.ranges.len()).div_ceil(64);
        self.place_rows.clear();
        self.place_rows.resize(words * routes.places.len(), 0);
        for (step, &node) in routes.steps.iter().zip(&self.step_nodes) {
            if let (true, Endpoint::Router(_, port)) = (node != NONE, self.network.source(step.channel)) {
                let bit = self.nodes[node as usize].1 as usize * ports(step.from) + usize::from(port);
                self.place_rows[step.from as usize * words + bit / 64] |= 1 << (bit % 64);
            }
        }
        for (step, &node) in routes.steps.iter().zip(&self.step_nodes) {
            if node != NONE {
                let onward = self.onward(step.channel, self.nodes[node as usize].1 as usize * ports(step.to));
                let row = &mut self.rows[node as usize];
                if row.len() < words {
                    row.resize(words, 0);
                }
                let outputs = &self.place_rows[step.to as usize * words..][..words];
                row.iter_mut().zip(outputs).for_each(|(word, outputs)| *word |= outputs);
                if let Some(bit) = onward {
                    row[bit / 64] &= !(1 << (bit % 64));
                }
            }
        }
    }

    /// The bit of the output by which a ring goes on behind a channel of it, if bubbles keep it from filling up; `first` is the bit of the
    /// router's first output in the same range.
    fn onward(&self, channel: ChannelId, first: usize) -> Option<usize> {
        let Endpoint::Router(_, input) = self.network.destination(channel) else { return None };
        Some(first + usize::from(self.rings?.onward(input)?))
    }

    fn node(&mut self, channel: ChannelId, virtual_channels: VirtualChannels) -> u32 {
        let known = self.ranges.iter().position(|range| range.virtual_channels == virtual_channels);
        let range = known.unwrap_or_else(|| {
            let node_of_channel = vec![NONE; self.network.channel_count() as usize];
            self.ranges.push(Range { virtual_channels, node_of_channel });
            self.ranges.len() - 1
        });
        let node = &mut self.ranges[range].node_of_channel[channel.index()];
        if *node == NONE {
            *node = self.nodes.len() as u32;
            self.nodes.push((channel, range as u32));
            self.rows.push(Vec::new());
        }
        *node
    }

    /// Cuts overlapping ranges into classes, the parts that no range divides, and lists the dependencies between these.
    fn classify(&self) -> ClassGraph {
        let mut cuts: Vec<u16> = self.ranges.iter().flat_map(|range| [range.virtual_channels.begin, range.virtual_channels.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let classes_of = |range: u32| {
            let range = self.ranges[range as usize].virtual_channels;
            cuts.iter().enumerate().filter(move |(_, cut)| range.begin <= **cut && **cut < range.end).map(|(class, _)| class)
        };
        let node_of = vec![NONE; cuts.len() * self.network.channel_count() as usize];
        let mut graph = ClassGraph { node_of, lists: vec![Vec::new()], ..ClassGraph::default() };
        for &(channel, range) in &self.nodes {
            for class in classes_of(range) {
                graph.add_node(channel, class, &cuts);
            }
        }
        let mut rows: Vec<Vec<u64>> = vec![Vec::new(); graph.nodes.len()];
        for (row, &(channel, range)) in self.rows.iter().zip(&self.nodes) {
            for class in classes_of(range) {
                add_row(&mut rows[graph.node(channel, class, cuts.len()) as usize], row);
            }
        }
        // What a packet may take next hangs on the router as a rule, and not on where it came from: most rows are that of the node before.
        let mut last_of_router: Vec<Option<u32>> = vec![None; self.network.router_count() as usize];
        for node in 0..graph.nodes.len() {
            let Endpoint::Router(router, _) = self.network.destination(graph.nodes[node].0) else { continue };
            let last = &mut last_of_router[router.index()];
            if let Some(like) = last.filter(|&like| rows[like as usize] == rows[node]) {
                graph.list_of[node] = graph.list_of[like as usize];
                continue;
            }
            *last = Some(node as u32);
            let ports = self.network.port_count(router) as usize;
            let mut successors: Vec<u32> = bits(&rows[node])
                .filter_map(|bit| Some((self.network.output_channel(router, (bit % ports) as u16)?, (bit / ports) as u32)))
                .flat_map(|(next, range)| classes_of(range).map(move |class| (next, class)))
                .map(|(next, class)| graph.node(next, class, cuts.len()))
                .collect();
            successors.sort_unstable();
            successors.dedup();
            graph.list_of[node] = graph.lists.len() as u32;
            graph.lists.push(successors);
        }
        graph
    }
}

/// Sets the bits of a row in another.
fn add_row(row: &mut Vec<u64>, other: &[u64]) {
    if row.len() < other.len() {
        row.resize(other.len(), 0);
    }
    row.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
}

/// The numbers of the bits that are set.
fn bits(row: &[u64]) -> impl Iterator<Item = usize> {
    row.iter().enumerate().flat_map(|(word, &bits)| {
        std::iter::successors(Some(bits), |bits| Some(bits & (bits - 1)))
            .take_while(|&bits| bits != 0)
            .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
    })
}

/// Dependencies between (channel, class of virtual channels).
#[derive(Default)]
struct ClassGraph {
    /// Shape `[channels, classes]`.
    node_of: Vec<u32>,
    /// Channel and first virtual channel of each node.
    nodes: Vec<(ChannelId, u16)>,
    /// The list of what each node depends on. Nodes share lists; the first is empty.
    list_of: Vec<u32>,
    lists: Vec<Vec<u32>>,
}

impl ClassGraph {
    fn add_node(&mut self, channel: ChannelId, class: usize, cuts: &[u16]) {
        let node = &mut self.node_of[channel.index() * cuts.len() + class];
        if *node == NONE {
            *node = self.nodes.len() as u32;
            self.nodes.push((channel, cuts[class]));
            self.list_of.push(0);
        }
    }

    fn node(&self, channel: ChannelId, class: usize, classes: usize) -> u32 {
        self.node_of[channel.index() * classes + class]
    }

    fn successors(&self, node: u32) -> &[u32] {
        &self.lists[self.list_of[node as usize] as usize]
    }

    /// Counts of nodes and edges, and a cycle if there is one.
    fn find_cycle(&self, network: &Network) -> (u64, u64, Option<Vec<(ChannelId, u16)>>) {
        let nodes = self.nodes.len() as u32;
        let dependencies = (0..nodes).map(|node| self.successors(node).len() as u64).sum();
        let cycle = cycle_among(nodes, |node| self.successors(node));
        let cycle = cycle.map(|cycle| cycle.into_iter().map(|node| self.nodes[node as usize]).collect());
        debug_assert!(self.nodes.iter().all(|(channel, _)| channel.0 >= 2 * network.terminal_count()));
        (u64::from(nodes), dependencies, cycle)
    }
}

/// A cycle of a directed graph given by its successor lists, each node followed by the next and the last by the first; of those
/// through the first node found on any, a shortest. Depth-first search with its own stack; linear time.
pub fn find_cycle(successors: &[Vec<u32>]) -> Option<Vec<u32>> {
    cycle_among(successors.len() as u32, |node| &successors[node as usize])
}

/// [`find_cycle`] among the nodes 0 to `nodes` - 1.
fn cycle_among<'s>(nodes: u32, successors: impl Fn(u32) -> &'s [u32]) -> Option<Vec<u32>> {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut mark = vec![NEW; nodes as usize];
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for root in 0..nodes {
        if mark[root as usize] != NEW {
            continue;
        }
        mark[root as usize] = OPEN;
        stack.push((root, 0));
        while let Some((node, next)) = stack.last_mut() {
            let Some(&successor) = successors(*node).get(*next) else {
                mark[*node as usize] = DONE;
                stack.pop();
                continue;
            };
            *next += 1;
            match mark[successor as usize] {
                NEW => {
                    mark[successor as usize] = OPEN;
                    stack.push((successor, 0));
                }
                OPEN => return shortest_cycle_through(nodes, successors, successor),
                _ => {}
            }
        }
    }
    None
}

/// Breadth-first search from a node back to itself.
fn shortest_cycle_through<'s>(nodes: u32, successors: impl Fn(u32) -> &'s [u32], start: u32) -> Option<Vec<u32>> {
    let mut parent = vec![NONE; nodes as usize];
    let mut queue = vec![start];
    let mut head = 0;
    while head < queue.len() {
        let node = queue[head];
        head += 1;
        for &successor in successors(node) {
            if successor == start {
                let mut cycle = vec![node];
                while cycle.last() != Some(&start) {
                    cycle.push(parent[cycle[cycle.len() - 1] as usize]);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if parent[successor as usize] == NONE {
                parent[successor as usize] = node;
                queue.push(successor);
            }
        }
    }
    None
}
