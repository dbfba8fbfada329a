//! What the processors of a distributed shared memory do. To add a program: a variant of [`Program`], its keys in [`Workload`], and a
//! function that writes the steps of a node.

use super::steps::{MAX_CYCLES, Step, WORD_BYTES};
use crate::endpoint::contract::EndpointError;
use kasuri_network::rng::{Purpose, Stream, Streams};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

/// What all processors do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// A matrix of `size` x `size` times a vector: rows in blocks on the nodes, the vector too; each node reads all of the vector that
    /// others have.
    MatrixVector,
    /// Points on a torus, a rectangular block of them on each node: in each iteration the points at the edges are written to the four
    /// neighbours, each by itself or an edge as a message, and the next begins when theirs have arrived.
    Stencil,
    /// Each node accesses other nodes at random.
    RandomAccess,
    /// All nodes access one, with a part of their accesses or with all; with the others any node at random.
    HotSpot,
    /// Each node of the first half writes items to one of the second half, which tells it when it has used an item.
    ProducerConsumer,
    /// Chosen nodes access chosen nodes.
    RemoteAccess,
}

/// In which order a node reads the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// From its own block on, round to it.
    Staggered,
    /// From the beginning, as all others do: the node that is read moves on.
    Same,
}

/// The keys of `[workload]` on this machine. Each key names the programs that read it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The program.
    pub program: Program,
    /// Matrix-vector: rows and columns, a multiple of the number of nodes; as many as nodes unless given.
    pub size: Option<u32>,
    /// Matrix-vector: `staggered` unless given.
    pub order: Option<Order>,
    /// Stencil: points on an edge of a node's block, 8 unless given.
    pub points: Option<u32>,
    /// Stencil: points on the left and on the right edge; as many as `points` unless given.
    pub lines: Option<u32>,
    /// Stencil: edges of so many points and more are sent as messages; all points are written one by one unless given.
    pub messages_from: Option<u32>,
    /// Stencil: iterations, 4 unless given.
    pub iterations: Option<u32>,
    /// Stencil, producer-consumer: cycles for which a processor computes in each iteration, or to make and to use an item; 0 unless given.
    pub compute_cycles: Option<u32>,
    /// Random-access, hot-spot, remote-access: accesses of each node or pair, 100 unless given.
    pub accesses: Option<u32>,
    /// Random-access, hot-spot, remote-access: the part of accesses that are writes, 0 unless given.
    pub write_fraction: Option<f64>,
    /// Random-access, hot-spot, remote-access: words of each node from which accesses choose, 4096 unless given.
    pub memory_words: Option<u32>,
    /// Hot-spot: the node that all access, 0 unless given.
    pub hot_node: Option<u32>,
    /// Hot-spot: the part of accesses that go to it, 1 unless given.
    pub hot_fraction: Option<f64>,
    /// Producer-consumer: items of each producer, 16 unless given.
    pub items: Option<u32>,
    /// Producer-consumer: words of an item, 8 unless given; one more word announces it.
    pub words: Option<u32>,
    /// Producer-consumer: items for which the consumer has room, 2 unless given.
    pub room: Option<u32>,
    /// Remote-access: pairs of a node and the node that it accesses.
    pub pairs: Option<Vec<[u32; 2]>>,
}

/// The keys of each program.
fn keys(program: Program) -> &'static [&'static str] {
    match program {
        Program::MatrixVector => &["size", "order"],
        Program::Stencil => &["points", "lines", "messages_from", "iterations", "compute_cycles"],
        Program::RandomAccess => &["accesses", "write_fraction", "memory_words"],
        Program::HotSpot => &["accesses", "write_fraction", "memory_words", "hot_node", "hot_fraction"],
        Program::ProducerConsumer => &["items", "words", "room", "compute_cycles"],
        Program::RemoteAccess => &["pairs", "accesses", "write_fraction", "memory_words"],
    }
}

/// Whose program it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Nodes that run it.
    pub(super) nodes: u32,
    /// Nodes that accesses can name: these, or all of the machine for the operating system.
    pub(super) homes: u32,
    /// What messages are, if there are any.
    pub(super) messages: Option<Messages>,
    /// Random choices.
    pub(super) streams: &'a Streams,
}

/// What messages of this machine are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Messages {
    /// Words of a packet, at most.
    pub(super) words: u32,
    /// Cycles of the processor for each message.
    pub(super) cycles: u32,
}

impl Messages {
    /// A message of so many words: its packets one after the other.
    fn steps(self, home: u32, first: u32, words: u32, phase: u32) -> impl Iterator<Item = Step> {
        let prepare = (self.cycles > 0).then_some(Step::Compute { cycles: self.cycles });
        let packet = move |sent| Step::message(home, (first + sent) * WORD_BYTES, self.words.min(words - sent), phase);
        prepare.into_iter().chain((0..words).step_by(self.words as usize).map(packet))
    }
}

/// The steps of every node.
pub(super) fn of_nodes(workload: &Workload, written: &Table, place: Place<'_>) -> Result<Vec<Vec<Step>>, EndpointError> {
    let own = keys(workload.program);
    if let Some(key) = written.keys().find(|key| *key != "program" && !own.contains(&key.as_str())) {
        return wrong(key, format!("has no meaning in this program, which reads {}", own.join(", ")));
    }
    let nodes = place.nodes;
    if nodes != place.homes && !matches!(workload.program, Program::RandomAccess | Program::HotSpot | Program::RemoteAccess) {
        let problem = "names the program's own nodes; in the space of the operating system run random-access, hot-spot or remote-access";
        return wrong("program", problem.to_owned());
    }
    let lists = match workload.program {
        Program::MatrixVector => matrix_vector(workload, nodes)?,
        Program::Stencil => stencil(workload, place)?,
        Program::RandomAccess => random_access(workload, place)?,
        Program::HotSpot => hot_spot(workload, place)?,
        Program::ProducerConsumer => producer_consumer(workload, nodes)?,
        Program::RemoteAccess => remote_access(workload, place)?,
    };
    Ok(lists)
}

fn wrong<T>(key: &str, problem: String) -> Result<T, EndpointError> {
    Err(EndpointError::new("workload", key, problem))
}

/// The greatest value of a count.
const MAX_COUNT: u32 = 1_000_000;

/// A count from 1 on.
fn count(key: &str, given: Option<u32>, default: u32) -> Result<u32, EndpointError> {
    match given.unwrap_or(default) {
        value @ 1..=MAX_COUNT => Ok(value),
        value => wrong(key, format!("is {value}; it must be 1 to {MAX_COUNT}")),
    }
}

fn cycles(given: Option<u32>) -> Result<u32, EndpointError> {
    match given.unwrap_or(0) {
        value @ 0..=MAX_CYCLES => Ok(value),
        value => wrong("compute_cycles", format!("is {value}; it must be 0 to {}", MAX_CYCLES)),
    }
}

fn matrix_vector(workload: &Workload, nodes: u32) -> Result<Vec<Vec<Step>>, EndpointError> {
    let size = count("size", workload.size, nodes)?;
    if !size.is_multiple_of(nodes) {
        return wrong("size", format!("is {size}; it must be a multiple of the {nodes} nodes, so that all have blocks of the same size"));
    }
    let block = size / nodes;
    let of_node = |node: u32| {
        let first = if workload.order == Some(Order::Same) { 0 } else { node * block };
        let words = (0..size).map(move |turn| (first + turn) % size);
        let remote = words.filter(|word| word / block != node);
        remote.map(|word| Step::read(word / block, word % block * WORD_BYTES)).collect()
    };
    Ok((0..nodes).map(of_node).collect())
}

/// The columns and rows of nodes: as near to a square as a rectangle of all nodes can be.
fn rectangle(nodes: u32) -> [u32; 2] {
    let rows = (1..=nodes.isqrt()).rev().find(|rows| nodes.is_multiple_of(*rows)).unwrap_or(1);
    [nodes / rows, rows]
}

/// The points that a node gives a neighbour, and where they lie there.
#[derive(Clone, Copy)]
struct Edge {
    neighbour: u32,
    first: u32,
    points: u32,
}

/// The edges of a node, right, left, down and up, that another node needs; its left and right ones have `lines` points.
fn edges(node: u32, [columns, rows]: [u32; 2], points: u32, lines: u32) -> Vec<Edge> {
    let (x, y) = (node % columns, node / columns);
    let left_right = [(x + 1) % columns, (x + columns - 1) % columns].map(|x| (y * columns + x, lines));
    let up_down = [(y + 1) % rows, (y + rows - 1) % rows].map(|y| (y * columns + x, points));
    let mut first = 0;
    let others = left_right.into_iter().chain(up_down).filter(|&(neighbour, _)| neighbour != node);
    let edge = |(neighbour, points)| {
        first += points;
        Edge { neighbour, first: first - points, points }
    };
    others.map(edge).collect()
}

fn stencil(workload: &Workload, place: Place<'_>) -> Result<Vec<Vec<Step>>, EndpointError> {
    let (points, iterations) = (count("points", workload.points, 8)?, count("iterations", workload.iterations, 4)?);
    let lines = count("lines", workload.lines, points)?;
    let cycles = cycles(workload.compute_cycles)?;
    let messages_from = workload.messages_from.map(|points| count("messages_from", Some(points), 1)).transpose()?;
    let messages = match (messages_from, place.messages) {
        (Some(from), Some(messages)) => Some((from, messages)),
        (Some(_), None) => {
            let problem = "lets edges be sent as messages; say how many words a packet of a message carries: endpoint.message_words";
            return wrong("messages_from", problem.to_owned());
        }
        (None, _) => None,
    };
    let of_node = |node: u32| {
        let edges = edges(node, rectangle(place.nodes), points, lines);
        let words: u32 = edges.iter().map(|edge| edge.points).sum();
        let (long, short): (Vec<Edge>, Vec<Edge>) =
            edges.into_iter().partition(|edge| messages.is_some_and(|(from, _)| edge.points >= from));
        let mut steps = Vec::new();
        for phase in 0..iterations {
            // The edges of two iterations: a neighbour may be one ahead.
            let halo = (phase % 2) * words;
            for (edge, messages) in long.iter().filter_map(|edge| Some((edge, messages?.1))) {
                steps.extend(messages.steps(edge.neighbour, halo + edge.first, edge.points, phase));
            }
            for point in 0..points.max(lines) {
                let there = short.iter().filter(|edge| point < edge.points);
                steps.extend(there.map(|edge| Step::write(edge.neighbour, (halo + edge.first + point) * WORD_BYTES, phase)));
            }
            // The torus is the same from all nodes: as many words come as go.
            steps.extend([Step::Settle, Step::Await { phase, writes: words }]);
            steps.extend((cycles > 0).then_some(Step::Compute { cycles }));
        }
        steps
    };
    Ok((0..place.nodes).map(of_node).collect())
}

/// What nodes draw: whether to read or to write, and which word.
struct Draws {
    writes: f64,
    words: u32,
    accesses: u32,
}

impl Draws {
    fn of(workload: &Workload) -> Result<Self, EndpointError> {
        let writes = fraction("write_fraction", workload.write_fraction.unwrap_or(0.0))?;
        let words = count("memory_words", workload.memory_words, 4096)?;
        Ok(Self { writes, words, accesses: count("accesses", workload.accesses, 100)? })
    }

    /// The accesses of a node, to homes that are drawn from its stream.
    fn steps(&self, node: u32, streams: &Streams, mut home: impl FnMut(&mut Stream) -> u32) -> Vec<Step> {
        let (mut stream, mut addresses) = (streams.get(Purpose::Destination, node), streams.get(Purpose::Translation, node));
        let mut access = |_| {
            let (home, is_write) = (home(&mut stream), stream.unit() < self.writes);
            let address = addresses.below(self.words) * WORD_BYTES;
            if is_write { Step::write(home, address, 0) } else { Step::read(home, address) }
        };
        (0..self.accesses).map(&mut access).collect()
    }
}

fn fraction(key: &str, value: f64) -> Result<f64, EndpointError> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { wrong(key, format!("is {value}; it must be 0 to 1")) }
}

/// Any node but this one.
fn another(node: u32, homes: u32, stream: &mut Stream) -> u32 {
    let other = stream.below(homes - 1);
    if other < node { other } else { other + 1 }
}

fn check_others(place: Place<'_>, program: &str) -> Result<(), EndpointError> {
    if place.homes < 2 {
        return wrong("program", format!("is \"{program}\", which needs another node to access; the network has one"));
    }
    Ok(())
}

fn random_access(workload: &Workload, place: Place<'_>) -> Result<Vec<Vec<Step>>, EndpointError> {
    let draws = Draws::of(workload)?;
    check_others(place, "random-access")?;
    let of_node = |node: u32| draws.steps(node, place.streams, |stream| another(node, place.homes, stream));
    Ok((0..place.nodes).map(of_node).collect())
}

fn hot_spot(workload: &Workload, place: Place<'_>) -> Result<Vec<Vec<Step>>, EndpointError> {
    let draws = Draws::of(workload)?;
    check_others(place, "hot-spot")?;
    let (hot, part) = (workload.hot_node.unwrap_or(0), fraction("hot_fraction", workload.hot_fraction.unwrap_or(1.0))?);
    if hot >= place.homes {
        return wrong("hot_node", format!("is {hot}; there are nodes 0 to {}", place.homes - 1));
    }
    let of_node = |node: u32| {
        if node == hot && part == 1.0 {
            return Vec::new();
        }
        draws.steps(node, place.streams, |stream| {
            let is_hot = node != hot && stream.unit() < part;
            if is_hot { hot } else { another(node, place.homes, stream) }
        })
    };
    Ok((0..place.nodes).map(of_node).collect())
}

fn producer_consumer(workload: &Workload, nodes: u32) -> Result<Vec<Vec<Step>>, EndpointError> {
    let (items, words) = (count("items", workload.items, 16)?, count("words", workload.words, 8)?);
    let room = count("room", workload.room, 2)?;
    let cycles = cycles(workload.compute_cycles)?;
    let half = nodes / 2;
    if half == 0 {
        return wrong("program", "is \"producer-consumer\", which needs two nodes; the network has one".to_owned());
    }
    let compute = (cycles > 0).then_some(Step::Compute { cycles });
    let produce = |home: u32| {
        let mut steps = Vec::new();
        for phase in 0..items {
            steps.extend((phase >= room).then(|| Step::Await { phase: phase - room, writes: 1 }));
            steps.extend(compute);
            let first = phase % room * (words + 1);
            steps.extend((0..words).map(|word| Step::write(home, (first + word) * WORD_BYTES, phase)));
            // The announcement must not overtake the item.
            steps.extend([Step::Settle, Step::write(home, (first + words) * WORD_BYTES, phase)]);
        }
        steps
    };
    let consume = |home: u32| {
        let item =
            |phase| [Some(Step::Await { phase, writes: words + 1 }), compute, Some(Step::write(home, phase % room * WORD_BYTES, phase))];
        (0..items).flat_map(item).flatten().collect()
    };
    let of_node = |node: u32| match node {
        producer if producer < half => produce(producer + half),
        consumer if consumer < 2 * half => consume(consumer - half),
        _ => Vec::new(),
    };
    Ok((0..nodes).map(of_node).collect())
}

fn remote_access(workload: &Workload, place: Place<'_>) -> Result<Vec<Vec<Step>>, EndpointError> {
    let draws = Draws::of(workload)?;
    let Some(pairs) = workload.pairs.as_ref().filter(|pairs| !pairs.is_empty()) else {
        return wrong("pairs", "is missing; say who accesses whom, for example [[1, 0], [2, 0]]".to_owned());
    };
    let mut steps = vec![Vec::new(); place.nodes as usize];
    for &[node, home] in pairs {
        if let Some((unknown, nodes)) = [(node, place.nodes), (home, place.homes)].into_iter().find(|(number, nodes)| number >= nodes) {
            return wrong("pairs", format!("names node {unknown}; the network has nodes 0 to {}", nodes - 1));
        }
        if node == home && place.nodes == place.homes {
            return wrong("pairs", format!("lets node {node} access itself; its own memory is not behind the network"));
        }
        steps[node as usize].extend(draws.steps(node, place.streams, |_| home));
    }
    Ok(steps)
}
