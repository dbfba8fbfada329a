//! The longest path through the programs of all NPUs: nodes wait for those before them, receives for messages, collectives for all that
//! take part.

use kasuri_workload::execution::trace::Trace;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How long a node takes, and what it has to do with other NPUs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// By itself.
    Alone { ns: f64 },
    /// A message that is there so much later; `name` is what the receive waits for.
    Send { ns: f64, name: Name },
    /// Waits for the message of this name.
    Receive { name: Name },
    /// So many meet under this name; it ends so much later than the last has come.
    Meet { ns: f64, name: Name, members: u32 },
}

/// What two nodes have in common that belong together, numbered.
pub(super) type Name = u64;

/// When each NPU has ended its last node, in nanoseconds.
///
/// Of messages and collectives of one name the k-th of one NPU belongs to the k-th of the other, in an order in which nodes could start.
///
/// # Errors
/// A sentence about an NPU that never finishes.
pub(super) fn longest(traces: &[Trace], parts: &[Vec<Part>]) -> Result<Vec<f64>, String> {
    let graphs: Vec<Graph> = traces.iter().map(Graph::of).collect();
    let ranks: Vec<Vec<u32>> = graphs.iter().zip(parts).map(|(graph, parts)| occurrences(graph, parts)).collect();
    let mut run = Run { graphs, parts, ranks: &ranks, ready: Vec::new(), work: Vec::new(), meetings: BTreeMap::new() };
    run.ready = traces.iter().map(|trace| vec![0.0; trace.nodes.len()]).collect();
    for npu in 0..traces.len() {
        let roots: Vec<u32> = run.graphs[npu].roots().collect();
        run.work.extend(roots.into_iter().map(|node| (npu as u32, node)));
    }
    let mut finished = vec![0.0_f64; traces.len()];
    let mut left: Vec<usize> = traces.iter().map(|trace| trace.nodes.len()).collect();
    while let Some((npu, node)) = run.work.pop() {
        for (npu, node, end) in run.node(npu, node) {
            finished[npu as usize] = finished[npu as usize].max(end);
            left[npu as usize] -= 1;
            run.ends(npu, node, end);
        }
    }
    let Some(npu) = left.iter().position(|&left| left > 0) else { return Ok(finished) };
    let waits = (0..traces[npu].nodes.len()).find(|&node| run.graphs[npu].waits[node] == 0 && run.is_waiting(npu, node as u32));
    let what = waits.map_or(String::new(), |node| {
        let node = &traces[npu].nodes[node];
        format!(": node {} (`{}`) waits for other NPUs, whose messages or collectives never match", node.id, node.name)
    });
    Err(format!("NPU {npu} never finishes{what}"))
}

/// Dependencies of a trace.
#[derive(Debug)]
struct Graph {
    waits: Vec<u32>,
    begins: Vec<u32>,
    next: Vec<u32>,
}

impl Graph {
    fn of(trace: &Trace) -> Self {
        let count = trace.nodes.len();
        let (mut waits, mut begins) = (vec![0; count], vec![0_u32; count + 1]);
        let pairs = || {
            let all = (0_u32..).zip(&trace.nodes);
            all.flat_map(|(node, item)| item.waits_for.iter().filter_map(move |&on| Some((trace.position(on)?, node))))
        };
        pairs().for_each(|(on, node)| {
            begins[on + 1] += 1;
            waits[node as usize] += 1;
        });
        (0..count).for_each(|node| begins[node + 1] += begins[node]);
        let (mut free, mut next) = (begins.clone(), vec![0; begins[count] as usize]);
        pairs().for_each(|(on, node)| {
            next[free[on] as usize] = node;
            free[on] += 1;
        });
        Self { waits, begins, next }
    }

    fn roots(&self) -> impl Iterator<Item = u32> {
        (0..self.waits.len() as u32).filter(|&node| self.waits[node as usize] == 0)
    }

    fn after(&self, node: u32) -> &[u32] {
        &self.next[self.begins[node as usize] as usize..self.begins[node as usize + 1] as usize]
    }
}

/// The how manieth of its name each node is on its NPU: in the order in which nodes could start, those of the lowest place first.
fn occurrences(graph: &Graph, parts: &[Part]) -> Vec<u32> {
    let (mut waits, mut ranks) = (graph.waits.clone(), vec![0; parts.len()]);
    let mut counts: BTreeMap<(bool, Name), u32> = BTreeMap::new();
    let mut free: BinaryHeap<Reverse<u32>> = graph.roots().map(Reverse).collect();
    while let Some(Reverse(node)) = free.pop() {
        let name = match parts[node as usize] {
            Part::Alone { .. } => None,
            Part::Send { name, .. } => Some((true, name)),
            Part::Receive { name } | Part::Meet { name, .. } => Some((false, name)),
        };
        if let Some(name) = name {
            let count = counts.entry(name).or_default();
            ranks[node as usize] = *count;
            *count += 1;
        }
        for &next in graph.after(node) {
            waits[next as usize] -= 1;
            if waits[next as usize] == 0 {
                free.push(Reverse(next));
            }
        }
    }
    ranks
}

/// Nodes that have come to where they meet.
#[derive(Debug, Default)]
struct Meeting {
    latest: f64,
    nodes: Vec<(u32, u32)>,
    has_message: bool,
}

struct Run<'a> {
    graphs: Vec<Graph>,
    parts: &'a [Vec<Part>],
    ranks: &'a [Vec<u32>],
    /// By NPU and node: when all before it has ended.
    ready: Vec<Vec<f64>>,
    work: Vec<(u32, u32)>,
    meetings: BTreeMap<(Name, u32), Meeting>,
}

impl Run<'_> {
    /// A node waits for none of its NPU any more: the nodes that end, and when.
    fn node(&mut self, npu: u32, node: u32) -> Vec<(u32, u32, f64)> {
        let ready = self.ready[npu as usize][node as usize];
        let rank = self.ranks[npu as usize][node as usize];
        let (name, ns, members) = match self.parts[npu as usize][node as usize] {
            Part::Alone { ns } => return vec![(npu, node, ready + ns)],
            Part::Send { ns, name } => (name, ns, 2),
            Part::Receive { name } => (name, 0.0, 2),
            Part::Meet { ns, name, members } => (name, ns, members),
        };
        let is_send = matches!(self.parts[npu as usize][node as usize], Part::Send { .. });
        let is_receive = matches!(self.parts[npu as usize][node as usize], Part::Receive { .. });
        let meeting = self.meetings.entry((name, rank)).or_default();
        let came = ready + if is_send { ns } else { 0.0 };
        meeting.latest = meeting.latest.max(came);
        meeting.has_message |= is_send;
        if !is_send {
            meeting.nodes.push((npu, node));
        }
        let mut ended = Vec::new();
        let is_there = if is_send || is_receive { meeting.has_message } else { meeting.nodes.len() as u32 == members };
        if is_there {
            let end = meeting.latest + if is_send || is_receive { 0.0 } else { ns };
            ended.extend(meeting.nodes.drain(..).map(|(npu, node)| (npu, node, end)));
        }
        if is_send {
            ended.push((npu, node, came));
        }
        ended
    }

    fn ends(&mut self, npu: u32, node: u32, end: f64) {
        let graph = &mut self.graphs[npu as usize];
        let range = graph.begins[node as usize] as usize..graph.begins[node as usize + 1] as usize;
        for place in range {
            let next = graph.next[place];
            let ready = &mut self.ready[npu as usize][next as usize];
            *ready = ready.max(end);
            graph.waits[next as usize] -= 1;
            if graph.waits[next as usize] == 0 {
                self.work.push((npu, next));
            }
        }
    }

    fn is_waiting(&self, npu: usize, node: u32) -> bool {
        self.meetings.values().any(|meeting| meeting.nodes.contains(&(npu as u32, node)))
    }
}
