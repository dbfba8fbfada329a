//! A timeline as a file that trace viewers open (Chrome's trace event format: `chrome://tracing`, Perfetto).

use kasuri_workload::timeline::Span;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The spans as JSON text: a process for each node, a thread for each part of it. Where a part does several things at a time, it has
/// several threads. Times are in microseconds, as the format wants them.
pub fn chrome_trace(spans: &[Span]) -> String {
    let mut lanes: BTreeMap<(u32, &str), Vec<(usize, f64)>> = BTreeMap::new();
    let mut threads: Vec<Value> = Vec::new();
    let mut order: Vec<&Span> = spans.iter().collect();
    order.sort_by(|one, other| one.begin_ns.total_cmp(&other.begin_ns).then(one.node.cmp(&other.node)));
    let mut events = Vec::new();
    for span in order {
        let of_part = lanes.entry((span.node, span.part)).or_default();
        let thread = match of_part.iter_mut().find(|(_, end)| *end <= span.begin_ns) {
            Some((thread, end)) => {
                *end = span.end_ns;
                *thread
            }
            None => {
                let number = of_part.len() + 1;
                let thread = threads.len();
                let name = if number == 1 { span.part.to_owned() } else { format!("{} {number}", span.part) };
                threads.push(json!({ "name": "thread_name", "ph": "M", "pid": span.node, "tid": thread, "args": { "name": name } }));
                of_part.push((thread, span.end_ns));
                thread
            }
        };
        events.push(json!({
            "name": span.name,
            "cat": span.part,
            "ph": "X",
            "ts": span.begin_ns / 1000.0,
            "dur": (span.end_ns - span.begin_ns) / 1000.0,
            "pid": span.node,
            "tid": thread,
            "args": { "parcel": span.parcel },
        }));
    }
    let nodes: std::collections::BTreeSet<u32> = spans.iter().map(|span| span.node).collect();
    let processes =
        nodes.iter().map(|node| json!({ "name": "process_name", "ph": "M", "pid": node, "args": { "name": format!("node {node}") } }));
    let all: Vec<Value> = processes.chain(threads).chain(events).collect();
    format!("{:#}\n", json!({ "displayTimeUnit": "ns", "traceEvents": all }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(part: &'static str, begin_ns: f64, end_ns: f64) -> Span {
        Span { name: "work", node: 3, part, parcel: 7, begin_ns, end_ns }
    }

    #[test]
    fn events_of_a_thread_do_not_overlap() {
        let trace = chrome_trace(&[span("a", 0.0, 20.0), span("a", 10.0, 30.0), span("a", 20.0, 40.0), span("b", 5.0, 6.0)]);
        let trace: Value = serde_json::from_str(&trace).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
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
}
