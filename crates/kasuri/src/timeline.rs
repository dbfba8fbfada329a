//! A timeline as a file that trace viewers open (Chrome's trace event format: `ui.perfetto.dev`, `chrome://tracing`).
//!
//! A process for each node or terminal, a thread for each part of it; where a part does several things at a time, it has several threads. The
//! messages of a workload without interfaces are arrows from their sending to their receiving besides, and the busiest channels are counters: how
//! many messages that cross a channel have begun to leave and have not arrived. Times are in microseconds, as the format wants them.

use kasuri_model::engine::Outcome;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::routing::Routing;
use kasuri_workload::schedule::Routes;
use kasuri_workload::timeline::{COMPUTE, QUEUE, RECEIVE, SEND, Span};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The number of channels with counters.
const MAX_COUNTERS: usize = 8;

/// The state of an idle terminal, until its last message has come.
const WAIT: &str = "wait";

/// The events of a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The activities of the parts of nodes or terminals.
    pub spans: Vec<Span>,
    /// The channels that were busy longest, the busiest first.
    pub channels: Vec<BusyChannel>,
    /// The name of each node.
    names: BTreeMap<u32, String>,
}

/// A channel and the messages with paths across it.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyChannel {
    /// Its ends.
    pub name: String,
    /// The flits that it carried.
    pub flits: u64,
    /// From when on, in ns, how many of the messages have begun to leave their source and have not arrived.
    pub messages: Vec<(f64, u32)>,
}

impl Timeline {
    /// That of a run.
    pub(crate) fn of(scenario: &Scenario, outcome: Outcome) -> Self {
        let network = &*scenario.network;
        let Outcome { timeline: mut spans, channel_flits, .. } = outcome;
        let is_of_messages = spans.iter().any(|span| span.part == SEND);
        let mut channels = Vec::new();
        if is_of_messages {
            channels = busiest(network, &*scenario.routing, &spans, &channel_flits);
            let waits = waits(&spans);
            spans.extend(waits);
        }
        let placement = scenario.workload.as_ref().and_then(|closed| closed.workload.placement()).unwrap_or_default();
        let ranks: BTreeMap<TerminalId, usize> = placement.iter().enumerate().map(|(rank, &terminal)| (terminal, rank)).collect();
        let name = |node: u32| match (is_of_messages, ranks.get(&TerminalId(node))) {
            (false, _) => format!("node {node}"),
            (true, None) => network.terminal_name(TerminalId(node)),
            (true, Some(rank)) => format!("rank {rank} on {}", network.terminal_name(TerminalId(node))),
        };
        let nodes: BTreeSet<u32> = spans.iter().map(|span| span.node).collect();
        Self { names: nodes.into_iter().map(|node| (node, name(node))).collect(), spans, channels }
    }

    /// As JSON text.
    pub fn chrome_trace(&self) -> String {
        let mut threads = Threads::default();
        let mut order: Vec<&Span> = self.spans.iter().collect();
        order.sort_by(|one, other| {
            one.begin_ns.total_cmp(&other.begin_ns).then(other.end_ns.total_cmp(&one.end_ns)).then(one.node.cmp(&other.node))
        });
        let mut events = Vec::new();
        for span in order {
            let thread = threads.of(span);
            events.push(slice(span, thread));
            events.extend(arrow_end(span, thread));
        }
        events.extend(self.channels.iter().flat_map(|channel| {
            let name = format!("messages across {}", channel.name);
            channel.messages.iter().map(move |&(ns, count)| {
                json!({ "name": name, "cat": "channel", "ph": "C", "ts": us(ns), "pid": CHANNEL_PROCESS, "args": { "messages": count } })
            })
        }));
        let time = |event: &Value| event["ts"].as_f64().unwrap_or(0.0);
        events.sort_by(|one, other| time(one).total_cmp(&time(other)));
        let mut all: Vec<Value> = self.names.iter().map(|(node, name)| named("process_name", *node, None, name)).collect();
        if !self.channels.is_empty() {
            all.push(named("process_name", CHANNEL_PROCESS, None, "busiest channels"));
        }
        all.extend(threads.named);
        all.extend(events);
        format!("{:#}\n", json!({ "displayTimeUnit": "ns", "traceEvents": all }))
    }
}

/// The process of the channels' counters: no terminal has this number.
const CHANNEL_PROCESS: u32 = i32::MAX as u32;

fn us(ns: f64) -> f64 {
    ns / 1000.0
}

/// The name of a process or thread.
fn named(what: &str, process: u32, thread: Option<usize>, name: &str) -> Value {
    match thread {
        None => json!({ "name": what, "ph": "M", "pid": process, "args": { "name": name } }),
        Some(thread) => json!({ "name": what, "ph": "M", "pid": process, "tid": thread, "args": { "name": name } }),
    }
}

fn slice(span: &Span, thread: usize) -> Value {
    let args = match span.flits {
        0 if span.part == WAIT => json!({}),
        0 => json!({ "parcel": span.parcel }),
        flits => json!({ "message": span.parcel, "flits": flits }),
    };
    json!({
        "name": span.name,
        "cat": span.part,
        "ph": "X",
        "ts": us(span.begin_ns),
        "dur": us(span.end_ns - span.begin_ns),
        "pid": span.node,
        "tid": thread,
        "args": args,
    })
}

/// Where the arrow of a message begins (its sending) or ends (its receiving).
fn arrow_end(span: &Span, thread: usize) -> Option<Value> {
    let (phase, extra) = match span.part {
        SEND => ("s", None),
        RECEIVE => ("f", Some("e")),
        _ => return None,
    };
    let mut event = json!({
        "name": "message", "cat": "message", "ph": phase, "id": span.parcel, "ts": us(span.begin_ns), "pid": span.node, "tid": thread,
    });
    // An arrow ends at the slice that is open there, not at the next one.
    if let Some(binding) = extra {
        event["bp"] = json!(binding);
    }
    Some(event)
}

/// Which thread shows what.
#[derive(Default)]
struct Threads {
    /// By part of a node: the number of each thread, and until when it is taken, ns.
    of_parts: BTreeMap<(u32, &'static str), Vec<(usize, f64)>>,
    named: Vec<Value>,
}

impl Threads {
    /// The first thread of a part that is free, or a new one. Spans come in the order in which they begin.
    fn of(&mut self, span: &Span) -> usize {
        let of_part = self.of_parts.entry((span.node, span.part)).or_default();
        if let Some((thread, end)) = of_part.iter_mut().find(|(_, end)| *end <= span.begin_ns) {
            *end = span.end_ns;
            return *thread;
        }
        let thread = self.named.len();
        let name = if of_part.is_empty() { span.part.to_owned() } else { format!("{} {}", span.part, of_part.len() + 1) };
        of_part.push((thread, span.end_ns));
        self.named.push(named("thread_name", span.node, Some(thread), &name));
        thread
    }
}

/// The idle times of terminals: neither computing nor sending, until their last activity or message ends. The interfaces of a machine have
/// their own activities.
fn waits(spans: &[Span]) -> Vec<Span> {
    let mut busy: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    let mut ends: BTreeMap<u32, f64> = BTreeMap::new();
    for span in spans.iter().filter(|span| [SEND, COMPUTE, QUEUE, RECEIVE].contains(&span.part)) {
        let end = ends.entry(span.node).or_default();
        *end = end.max(span.end_ns);
        if span.part != RECEIVE {
            busy.entry(span.node).or_default().push((span.begin_ns, span.end_ns));
        }
    }
    let mut waits = Vec::new();
    for (node, end) in ends {
        let mut times = busy.remove(&node).unwrap_or_default();
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free_since = 0.0_f64;
        for (begin, until) in times.into_iter().chain([(end, end)]) {
            if begin > free_since {
                waits.push(Span { name: WAIT, node, part: WAIT, parcel: 0, flits: 0, begin_ns: free_since, end_ns: begin });
            }
            free_since = free_since.max(until);
        }
    }
    waits
}

/// The channels between routers that were busy longest, equal ones by number. None where paths are chosen on the way: the messages on a
/// channel are then unknown.
fn busiest(network: &Network, routing: &dyn Routing, spans: &[Span], channel_flits: &[u64]) -> Vec<BusyChannel> {
    let busy = |channel: ChannelId| channel_flits.get(channel.index()).map_or(0, |flits| flits * u64::from(network.link(channel).period));
    let mut channels: Vec<ChannelId> = network.router_channels().filter(|&channel| busy(channel) > 0).collect();
    channels.sort_by_key(|&channel| (std::cmp::Reverse(busy(channel)), channel));
    channels.truncate(MAX_COUNTERS);
    // When messages begin to leave, and when they have arrived: one more, one fewer.
    let mut changes: BTreeMap<ChannelId, Vec<(f64, i64)>> = channels.iter().map(|&channel| (channel, Vec::new())).collect();
    let sends: BTreeMap<u64, &Span> = spans.iter().filter(|span| span.part == SEND).map(|span| (span.parcel, span)).collect();
    let (mut routes, mut path) = (Routes::new(network, routing), Vec::new());
    for receive in spans.iter().filter(|span| span.part == RECEIVE) {
        let Some(send) = sends.get(&receive.parcel) else { continue };
        if routes.follow(TerminalId(send.node), TerminalId(receive.node), &mut path).is_err() {
            return Vec::new();
        }
        for channel in &path {
            if let Some(changes) = changes.get_mut(channel) {
                changes.extend([(send.begin_ns, 1), (receive.end_ns, -1)]);
            }
        }
    }
    let of_channel = |channel: ChannelId| {
        let messages = changes.get(&channel).map(|changes| counts(changes.clone())).unwrap_or_default();
        BusyChannel { name: network.channel_name(channel), flits: channel_flits[channel.index()], messages }
    };
    channels.into_iter().map(of_channel).collect()
}

/// From when on there are how many: those that go and come at the same time at once.
fn counts(mut changes: Vec<(f64, i64)>) -> Vec<(f64, u32)> {
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut count, mut counts) = (0, Vec::new());
    for group in changes.chunk_by(|one, other| one.0 == other.0) {
        count += group.iter().map(|(_, change)| change).sum::<i64>();
        counts.push((group[0].0, count.max(0) as u32));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(part: &'static str, begin_ns: f64, end_ns: f64) -> Span {
        Span { name: "work", node: 3, part, parcel: 7, flits: 0, begin_ns, end_ns }
    }

    fn events(spans: Vec<Span>) -> Vec<Value> {
        let names = [(3, "node 3".to_owned())].into();
        let trace: Value = serde_json::from_str(&Timeline { spans, channels: Vec::new(), names }.chrome_trace()).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn events_of_a_thread_do_not_overlap() {
        let events = events(vec![span("a", 0.0, 20.0), span("a", 10.0, 30.0), span("a", 20.0, 40.0), span("b", 5.0, 6.0)]);
        let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let (begin, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            let end = ends.insert(event["tid"].as_u64().unwrap(), begin + length).unwrap_or(0.0);
            assert!(end <= begin && length > 0.0 && event["pid"] == 3 && event["args"]["parcel"] == 7);
        }
        assert_eq!(ends.len(), 3, "two threads of a, one of b");
        let named = |kind: &str| events.iter().filter(|event| event["ph"] == "M" && event["name"] == kind).count();
        assert_eq!((named("process_name"), named("thread_name")), (1, 3));
        assert!((events.last().unwrap()["ts"].as_f64().unwrap() - 0.02).abs() < 1e-12, "microseconds");
    }

    #[test]
    fn a_terminal_waits_while_it_neither_computes_nor_sends() {
        let spans = [span(COMPUTE, 10.0, 20.0), span(SEND, 15.0, 30.0), span(RECEIVE, 40.0, 50.0)];
        let waits: Vec<(f64, f64)> = waits(&spans).iter().map(|span| (span.begin_ns, span.end_ns)).collect();
        assert_eq!(waits, [(0.0, 10.0), (30.0, 50.0)]);
    }

    #[test]
    fn messages_that_come_and_go_at_once_are_counted_once() {
        assert_eq!(counts(vec![(5.0, -1), (0.0, 1), (0.0, 1), (5.0, 1), (9.0, -1), (7.0, -1)]), [(0.0, 2), (5.0, 2), (7.0, 1), (9.0, 0)]);
    }
}
