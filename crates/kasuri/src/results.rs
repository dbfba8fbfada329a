//! The answer of a run: one row of a table, and vectors.
//!
//! The row is a flat, ordered JSON object: the input (key, title, engine, the swept keys), the status, then every column of [`COLUMNS`];
//! unknown values are `null`, never 0.

use crate::measure::{Offer, Report};
use crate::version;
use kasuri_config::CASE;
use kasuri_model::engine::{Distribution, Formulas, Interfaces, Outcome, Prediction, Queues};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::predictor::direction::DIRECTIONS;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// True for an input column: a dotted key of the experiment file, or the label of a case.
pub fn is_input(column: &str) -> bool {
    column.contains('.') || column == CASE
}

/// The version of the row's layout. It rises when a column changes its meaning or is removed.
pub const SCHEMA_VERSION: u64 = 2;

/// A column of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in JSON, CSV and Parquet.
    pub name: &'static str,
    /// Its unit, empty for a pure number or text.
    pub unit: &'static str,
    /// One line for the reference pages.
    pub summary: &'static str,
}

const fn column(name: &'static str, unit: &'static str, summary: &'static str) -> Column {
    Column { name, unit, summary }
}

/// The column that names the network of a run.
pub(crate) const NETWORK_ID: &str = "network_id";

const RATE: &str = "flits/terminal/cycle";

/// All columns of results, in their order; the input columns precede them.
pub const COLUMNS: &[Column] = &[
    column("seed", "", "measure.seed"),
    column(NETWORK_ID, "", "the network as it was built: networks/ID.json in the folder of results, where it has at most 100,000 channels"),
    column("terminals", "", "terminals of the network"),
    column("terminal_ports", "", "their ports, where terminals have several; loads, rates and batches of open traffic are those of a port"),
    column("routers", "", "routers of the network"),
    column("channels", "", "channels of the network, those of the terminals included"),
    column("offered_load", RATE, "flits that the sources offer, mean over all terminals, replies included"),
    column("injected_load", RATE, "flits that entered the network while measuring, mean over terminals"),
    column("injected_load_min", RATE, "the same, least terminal"),
    column("injected_load_max", RATE, "the same, greatest terminal"),
    column("accepted_throughput_mean", RATE, "accepted throughput: flits delivered while measuring, mean over terminals"),
    column("accepted_throughput_min", RATE, "the same, least terminal"),
    column("accepted_throughput_max", RATE, "the same, greatest terminal"),
    column("accepted_throughput_ci95", RATE, "half-width of the 95 % confidence interval of accepted_throughput_mean"),
    column(
        "self_share",
        "",
        "part of the accepted flits that terminals have sent to themselves: they cross their own router and no channel between routers; all rates count them",
    ),
    column(
        "atr",
        "",
        "average throughput rate, at offered load 1 or until the first terminal has finished: accepted throughput over the bandwidth of the terminal's channel, mean over the terminals that send",
    ),
    column("packet_latency_mean", "cycles", "creation at the source to tail ejected, mean over measured packets"),
    column("packet_latency_ci95", "cycles", "half-width of the 95 % confidence interval of the mean"),
    column("packet_latency_min", "cycles", "least"),
    column("packet_latency_p50", "cycles", "median"),
    column("packet_latency_p99", "cycles", "99 % of the packets took at most this long"),
    column("packet_latency_p999", "cycles", "99.9 % of the packets took at most this long"),
    column("packet_latency_max", "cycles", "greatest"),
    column("network_latency_mean", "cycles", "head enters the network to tail ejected, mean over measured packets"),
    column("network_latency_ci95", "cycles", "half-width of the 95 % confidence interval of the mean"),
    column("network_latency_min", "cycles", "least"),
    column("network_latency_p50", "cycles", "median"),
    column("network_latency_p99", "cycles", "99 % of the packets took at most this long"),
    column("network_latency_p999", "cycles", "99.9 % of the packets took at most this long"),
    column("network_latency_max", "cycles", "greatest"),
    column("flit_latency_mean", "cycles", "a flit enters the network to ejected, mean over flits of measured packets"),
    column("flit_latency_ci95", "cycles", "half-width of the 95 % confidence interval of the mean"),
    column("flit_latency_min", "cycles", "least"),
    column("flit_latency_p50", "cycles", "median"),
    column("flit_latency_p99", "cycles", "99 % of the flits took at most this long"),
    column("flit_latency_p999", "cycles", "99.9 % of the flits took at most this long"),
    column("flit_latency_max", "cycles", "greatest"),
    column("hops_mean", "", "routers crossed, mean over measured packets"),
    column("fairness_jain", "", "Jain's index of the accepted throughput, 1 if all terminals receive the same"),
    column("channel_utilisation_mean", "", "fraction of time that a channel between routers is busy, mean over these channels"),
    column("channel_utilisation_max", "", "the same, busiest channel"),
    column("router_occupancy_mean", "flits", "flits in a router's buffers, mean over time and routers"),
    column("router_occupancy_max", "flits", "the same, fullest router"),
    column(
        UNTIL_STOP,
        "cycles",
        "of a saturated run, which has no latencies: mean of the packets measured until it was stopped; it grows with the length of the run",
    ),
    column("zero_load_latency", "cycles", "mean packet latency at a vanishing load, where a search needed it or by formula"),
    column("saturation_load", RATE, "least load that the network does not sustain, where it was searched or by formula"),
    column("static_throughput", RATE, "by formula: the load that the most loaded channel can just carry, with this routing"),
    column("ideal_throughput", RATE, "by formula: a bound for any routing, by terminals, distances and the bandwidth of all channels"),
    column("bisection_bandwidth", "flits/cycle", "by formula: over the cut into halves, both directions together"),
    column("completion_time", "cycles", "start to last flit delivered, of a closed workload; by formula: a lower bound"),
    column(
        "completion_bound",
        "cycles",
        "cycles that a collective needs at least, whatever its routing and schedule: its data over the channels of terminals and over cuts of the network, links that are down counted as up; latencies left out",
    ),
    column(
        "routing_bound",
        "cycles",
        "cycles that a collective needs at least on the paths that it took: the busy cycles of the busiest channel; completion_bound if that is more",
    ),
    column("efficiency", "", "of a collective: completion_bound over completion_time"),
    column("hint", "", "keys that make the collective faster: the same run with them has been tried"),
    column("packet_latency_mean_ns", "ns", "packet_latency_mean, where the length of a cycle is known"),
    column("packet_latency_ci95_ns", "ns", "packet_latency_ci95, where the length of a cycle is known"),
    column("packet_latency_min_ns", "ns", "packet_latency_min, where the length of a cycle is known"),
    column("packet_latency_p50_ns", "ns", "packet_latency_p50, where the length of a cycle is known"),
    column("packet_latency_p99_ns", "ns", "packet_latency_p99, where the length of a cycle is known"),
    column("packet_latency_p999_ns", "ns", "packet_latency_p999, where the length of a cycle is known"),
    column("packet_latency_max_ns", "ns", "packet_latency_max, where the length of a cycle is known"),
    column("network_latency_mean_ns", "ns", "network_latency_mean, where the length of a cycle is known"),
    column("network_latency_ci95_ns", "ns", "network_latency_ci95, where the length of a cycle is known"),
    column("network_latency_min_ns", "ns", "network_latency_min, where the length of a cycle is known"),
    column("network_latency_p50_ns", "ns", "network_latency_p50, where the length of a cycle is known"),
    column("network_latency_p99_ns", "ns", "network_latency_p99, where the length of a cycle is known"),
    column("network_latency_p999_ns", "ns", "network_latency_p999, where the length of a cycle is known"),
    column("network_latency_max_ns", "ns", "network_latency_max, where the length of a cycle is known"),
    column("completion_time_ns", "ns", "completion_time, where the length of a cycle is known"),
    column("measured_packets", "", "packets in the latency statistics; with both [traffic] and [workload], those of the workload alone"),
    column("warmup_cycles", "cycles", "cycles before measuring began"),
    column("measured_cycles", "cycles", "cycles for which rates were counted"),
    column("cycles", "cycles", "all simulated cycles"),
    column("flit_hops", "", "flits that crossed a router, for measures of speed"),
    column("prediction_attempts", "", "heads of measured packets that found an empty buffer and a prediction of their output"),
    column("prediction_hits", "", "of the attempts, heads that crossed on the prediction"),
    column(
        "prediction_refused",
        "",
        "of the attempts, heads with a predicted output taken by a real request, or without a free virtual channel or credit",
    ),
    column("prediction_hit_rate", "", "prediction_hits over all routers that heads of measured packets crossed"),
    column(
        "prediction_chances_up",
        "",
        "of the attempts, heads that came from a lower level, or a terminal, and went on up; where routers have levels",
    ),
    column("prediction_hits_up", "", "of these, hits"),
    column("prediction_chances_turn", "", "of the attempts, heads that came from below and went down"),
    column("prediction_hits_turn", "", "of these, hits"),
    column("prediction_chances_down", "", "of the attempts, heads that came from above and went on down, or to their terminal"),
    column("prediction_hits_down", "", "of these, hits"),
    column("prediction_speculative_traversals", "", "flits of measured packets that crossed a switch on a prediction, right or wrong"),
    column("prediction_wasted_flits", "", "of these traversals, flits sent on a wrong channel and dropped at its end"),
    column("prediction_hint_bits", "", "hint bits in front of each packet"),
    column("requests_answered", "", "distributed shared memory: requests that were answered"),
    column("user_switches", "", "users that share nodes: switches from one set of users to the next"),
    column("user_switch_cycles_mean", "cycles", "from the end of a slice to the beginning of the next one, mean over switches"),
    column("interface_busy_mean", "", "fraction of the completion time in which a network interface works, mean over nodes"),
    column("interface_busy_max", "", "the same, busiest interface"),
    column(
        "interface_awaited_mean",
        "",
        "fraction of the completion time in which a router holds a packet for its own node until the interface takes it, mean over nodes",
    ),
    column("interface_awaited_max", "", "the same, router that holds one for longest"),
    column("link_wrong_bits", "", "bits changed on channels, where errors are injected"),
    column("link_lost_flits", "", "flits lost on channels, where errors are injected"),
    column("link_errors_corrected", "", "errors that receivers found and corrected"),
    column("link_packets_refused", "", "packets that receivers found to be damaged beyond correction"),
    column("link_packets_undetected", "", "packets that receivers accepted with undetected errors"),
    column("packets_sent", "", "output-queued routers: packets that terminals have sent, resent ones included"),
    column("packets_arrived", "", "output-queued routers: packets that have arrived"),
    column("packets_dropped", "", "output-queued routers: packets for which a queue had no room"),
    column("packets_lost", "", "packets lost to links and routers that failed during the run"),
    column("packets_resent", "", "lost or dropped packets that their sources have resent"),
    column("packets_late", "", "output-queued routers: packets of messages that came after a later one of the same message"),
    column("pause_frames", "", "output-queued routers: times at which a router has paused a channel"),
    column("queue_flits_max", "flits", "output-queued routers: the most flits that waited in a queue at one time"),
    column("interrupts", "", "cenju4: interrupts that took time of a processor"),
    column("interrupts_masked", "", "cenju4: interrupts that were masked, so that they took none"),
    column("page_faults", "", "cenju4: pages that an interface needed and that were not in memory"),
    column("task_switches", "", "cenju4: times at which a task got a set of control registers that another one had"),
    column("users", "", "rates, latency, translations and embedding of each [[user]]; a list in the order of the file"),
    column(
        "background",
        "",
        "open traffic in the background of a workload or a machine, not included in the columns of latency and hops: offered_load, accepted_throughput, packets, packet_latency_mean, packet_latency_max",
    ),
    column("booksim_status", "", "how BookSim 2 would have ended (ok, ok_maxsamples, unstable), under its rules"),
    column("not_modelled", "", "keys of the input that the engine ignored, and in words its other omissions and approximations"),
    column(
        "deadlock",
        "",
        "the channels and virtual channels that wait for each other, each for the next; without such a cycle, the terminals that refused packets and the blocked programs",
    ),
    column("wall_seconds", "s", "wall-clock time of the run"),
    column("cpu_seconds", "s", "processor time of the thread that computed the run"),
    column("peak_memory_mib", "MiB", "peak resident memory of the process up to the end of the run"),
];

/// The columns that depend on the machine: only they differ between equal runs.
pub const COSTS: &[&str] = &["wall_seconds", "cpu_seconds", PEAK_MEMORY];

/// The column of the process's peak memory.
pub(crate) const PEAK_MEMORY: &str = "peak_memory_mib";

/// The input part of a row: everything before the results.
#[derive(Clone, Debug, PartialEq)]
pub struct RowHead {
    /// The key of the run.
    pub key: String,
    /// `title` of the experiment file.
    pub title: String,
    /// The name of the engine.
    pub engine: &'static str,
    /// `measure.seed`.
    pub seed: u64,
    /// Always-present keys of the input and the swept ones, by dotted name.
    pub inputs: Vec<(String, Value)>,
}

/// One run as one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow(Map<String, Value>);

/// A number of cycles, as an integer if it is one: the flit engine has no fractions of cycles.
fn whole(cycles: f64) -> Value {
    if cycles.fract() == 0.0 { json!(cycles as u64) } else { json!(cycles) }
}

/// The open traffic in the background of a closed workload, as one object.
fn background(offer: Option<&Offer>, network: &Network, outcome: &Outcome) -> Option<Value> {
    let had = outcome.background?;
    let terminal_cycles = outcome.measured_cycles as f64 * f64::from(network.terminal_count());
    Some(json!({
        "offered_load": offer.map(Offer::load),
        "accepted_throughput": (terminal_cycles > 0.0).then(|| had.accepted_flits as f64 / terminal_cycles),
        "packets": had.packets,
        "packet_latency_mean": (had.packets > 0).then(|| had.packet_latency as f64 / had.packets as f64),
        "packet_latency_max": (had.packets > 0).then_some(had.packet_latency_max),
    }))
}

impl RunRow {
    /// The row of a run that has ended.
    pub fn new(head: &RowHead, network: &Network, offer: Option<&Offer>, outcome: &Outcome, report: &Report) -> Self {
        // Formulas are not measured.
        let unmeasured = Report::default();
        let report = if outcome.formulas.is_some() { &unmeasured } else { report };
        let mut row = Self::empty(head, outcome.status.name(), &report.notes.join("; "));
        row.set("seed", head.seed);
        row.set("terminals", network.owner_count().unwrap_or(network.terminal_count()));
        row.set("terminal_ports", network.owner_count().map(|_| network.terminal_count()));
        row.set("routers", network.router_count());
        row.set("channels", network.channel_count());
        row.set("offered_load", offer.map(Offer::load));
        row.set_rates(outcome);
        row.set("atr", offer.filter(|offer| offer.is_full()).and_then(|_| average_throughput_rate(network, outcome)));
        row.set("self_share", self_share(outcome));
        row.set("accepted_throughput_ci95", report.accepted_throughput_ci95);
        row.set_latency("packet_latency", &outcome.packet_latency, report.packet_latency_ci95);
        row.set_latency("network_latency", &outcome.network_latency, report.network_latency_ci95);
        row.set_latency("flit_latency", &outcome.flit_latency, None);
        row.set("hops_mean", outcome.hops.mean());
        row.set_loads(network, outcome);
        row.set("completion_time", outcome.completion_time.map(whole));
        row.set("measured_packets", outcome.packet_latency.count);
        row.set("warmup_cycles", outcome.warmup_cycles);
        row.set("measured_cycles", outcome.measured_cycles);
        row.set("cycles", outcome.cycles);
        row.set("flit_hops", outcome.flit_hops);
        if let Some(prediction) = &outcome.prediction {
            row.set_prediction(prediction);
        }
        if let Some(errors) = &outcome.link_errors {
            row.set("link_wrong_bits", errors.wrong_bits);
            row.set("link_lost_flits", errors.lost_flits);
            row.set("link_errors_corrected", errors.corrected);
            row.set("link_packets_refused", errors.refused_packets);
            row.set("link_packets_undetected", errors.undetected_packets);
        }
        if let Some(queues) = &outcome.queues {
            row.set_queues(queues);
        }
        if let Some(losses) = &outcome.losses {
            row.set("packets_lost", losses.lost);
            row.set("packets_resent", losses.resent);
        }
        if let Some(systems) = &outcome.operating_systems {
            row.set("interrupts", systems.interrupts);
            row.set("interrupts_masked", systems.masked);
            row.set("page_faults", systems.page_faults);
            row.set("task_switches", systems.task_switches);
        }
        if let Some(formulas) = &outcome.formulas {
            row.set_formulas(formulas);
        }
        if let Some(interfaces) = &outcome.interfaces {
            row.set_interfaces(interfaces);
        }
        row.set("background", background(offer, network, outcome));
        row.set("booksim_status", report.booksim_status.map(|status| status.name()));
        row.set("not_modelled", outcome.not_modelled.clone());
        row.set("deadlock", [waiting(network, &outcome.deadlock), outcome.standstill.clone()].concat());
        row
    }

    /// The row of a run that could not be completed; all results are unknown.
    pub fn failed(head: &RowHead, message: &str) -> Self {
        let mut row = Self::empty(head, "failed", message);
        row.set("seed", head.seed);
        row.set("not_modelled", Vec::<String>::new());
        row.set("deadlock", Vec::<String>::new());
        row
    }

    /// The results of another row (from the store) with this head: titles and swept keys may differ between experiments that share a run.
    pub fn with_head(self, head: &RowHead) -> Self {
        let mut row = Self::empty(head, self.status(), self.text("message"));
        // The program that computed the run, possibly not this one.
        let made_by = ["kasuri_version", "kasuri_commit"].into_iter();
        for name in made_by.chain(COLUMNS.iter().map(|column| column.name)) {
            row.set(name, self.get(name).clone());
        }
        row
    }

    /// A row read back. `None` unless it is an object.
    pub fn from_json(value: Value) -> Option<Self> {
        if let Value::Object(columns) = value { Some(Self(columns)) } else { None }
    }

    fn empty(head: &RowHead, status: &str, message: &str) -> Self {
        let mut columns = Map::new();
        columns.insert("key".to_owned(), json!(head.key));
        columns.insert("title".to_owned(), json!(head.title));
        columns.insert("engine".to_owned(), json!(head.engine));
        columns.insert("status".to_owned(), json!(status));
        columns.insert("message".to_owned(), json!(message));
        columns.insert("kasuri_version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        columns.insert("kasuri_commit".to_owned(), json!(version::commit()));
        columns.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
        for (key, value) in &head.inputs {
            columns.insert(key.clone(), value.clone());
        }
        for column in COLUMNS {
            columns.insert(column.name.to_owned(), Value::Null);
        }
        Self(columns)
    }

    /// Sets a column; a number that is not finite becomes `null`.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The value of a column, `null` if there is no such column.
    pub fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// The number in a column.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).as_f64()
    }

    /// The key of the run.
    pub fn key(&self) -> &str {
        self.text("key")
    }

    /// How the run ended: `converged`, `saturated`, `completed`, `max_cycles`, `deadlock` or `failed`.
    pub fn status(&self) -> &str {
        self.text("status")
    }

    /// The text in a column, empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_default()
    }

    /// Appends a sentence to the row's message.
    pub(crate) fn add_message(&mut self, sentence: &str) {
        let message = self.text("message");
        let joined = if message.is_empty() { sentence.to_owned() } else { format!("{message}; {sentence}") };
        self.set("message", joined);
    }

    /// The names and values in their order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The row as a JSON value.
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn set_rates(&mut self, outcome: &Outcome) {
        let (injected, accepted) = (&outcome.injected_flits, &outcome.accepted_flits);
        for (name, mean_name, flits) in
            [("injected_load", "injected_load", injected), ("accepted_throughput", "accepted_throughput_mean", accepted)]
        {
            let rates = rates(flits, outcome.measured_cycles);
            self.set(mean_name, mean(&rates));
            self.set(&format!("{name}_min"), rates.iter().copied().reduce(f64::min));
            self.set(&format!("{name}_max"), rates.iter().copied().reduce(f64::max));
        }
        self.set("fairness_jain", jain(&rates(&outcome.accepted_flits, outcome.measured_cycles)));
    }

    fn set_latency(&mut self, name: &str, latency: &Distribution, ci95: Option<f64>) {
        let some = |value: u64| (latency.count > 0).then_some(value);
        self.set(&format!("{name}_mean"), latency.mean());
        self.set(&format!("{name}_ci95"), ci95);
        self.set(&format!("{name}_min"), some(latency.min));
        self.set(&format!("{name}_p50"), latency.quantile(0.5));
        self.set(&format!("{name}_p99"), latency.quantile(0.99));
        self.set(&format!("{name}_p999"), latency.quantile(0.999));
        self.set(&format!("{name}_max"), some(latency.max));
    }

    fn set_formulas(&mut self, formulas: &Formulas) {
        self.set("packet_latency_mean", formulas.packet_latency);
        self.set("hops_mean", formulas.hops);
        self.set("zero_load_latency", formulas.zero_load_latency);
        self.set("saturation_load", formulas.saturation_load);
        self.set("static_throughput", formulas.static_throughput);
        self.set("ideal_throughput", formulas.ideal_throughput);
        self.set("bisection_bandwidth", formulas.bisection_bandwidth);
        for unknown in ["measured_packets", "warmup_cycles", "measured_cycles", "cycles", "flit_hops"] {
            self.set(unknown, Value::Null);
        }
    }

    fn set_queues(&mut self, queues: &Queues) {
        self.set("packets_sent", queues.sent);
        self.set("packets_arrived", queues.arrived);
        self.set("packets_dropped", queues.dropped);
        self.set("packets_lost", queues.lost);
        self.set("packets_resent", queues.resent);
        self.set("packets_late", queues.late);
        self.set("pause_frames", queues.pauses);
        self.set("queue_flits_max", queues.most_flits);
    }

    fn set_interfaces(&mut self, interfaces: &Interfaces) {
        self.set("requests_answered", interfaces.answered);
        if interfaces.switches > 0 {
            self.set("user_switches", interfaces.switches);
            self.set("user_switch_cycles_mean", interfaces.switch_cycles as f64 / interfaces.switches as f64);
        }
        for (name, parts) in [("interface_busy", &interfaces.busy), ("interface_awaited", &interfaces.awaited)] {
            self.set(&format!("{name}_mean"), mean(parts));
            self.set(&format!("{name}_max"), parts.iter().copied().reduce(f64::max));
        }
    }

    /// Clears the latencies of a saturated run: they grow with the length of the run instead of describing the network. The mean until
    /// the stop goes into a separate column.
    pub(crate) fn set_saturated(&mut self) {
        self.set(UNTIL_STOP, self.get("packet_latency_mean").clone());
        let names = ["packet_latency", "network_latency", "flit_latency"];
        names
            .iter()
            .flat_map(|name| LATENCY_STATISTICS.map(|statistic| format!("{name}_{statistic}")))
            .for_each(|name| self.set(&name, Value::Null));
        let users = self.0.get_mut("users").and_then(Value::as_array_mut).into_iter().flatten();
        let inner: Vec<&mut Value> = users.collect();
        inner.into_iter().for_each(forget_latencies);
        self.0.get_mut("background").into_iter().for_each(forget_latencies);
    }

    /// Fills the columns in nanoseconds from those in cycles.
    pub(crate) fn set_nanoseconds(&mut self, cycle_ns: f64) {
        for column in COLUMNS {
            if let Some(in_cycles) = column.name.strip_suffix("_ns") {
                let time = self.number(in_cycles).map(|cycles| cycles * cycle_ns);
                self.set(column.name, time);
            }
        }
    }

    /// The average throughput rate of a closed run that ended with its first terminal: until then `senders` terminals were sending, as at
    /// offered load 1. Silent terminals do not count in the mean.
    pub fn set_throughput_rate(&mut self, network: &Network, senders: u32, outcome: &Outcome) {
        let of_senders = f64::from(network.terminal_count()) / f64::from(senders.max(1));
        self.set("atr", average_throughput_rate(network, outcome).map(|rate| rate * of_senders));
    }

    /// The bounds of a collective, and its efficiency.
    pub(crate) fn set_efficiency(&mut self, bound: f64, routing_bound: f64, completion: f64) {
        self.set("completion_bound", whole(bound));
        self.set("routing_bound", whole(routing_bound));
        self.set("efficiency", (completion > 0.0).then(|| bound / completion));
    }

    /// Formulas have only hits and attempts, as expectations for a thousand million packets; so do flows, as counts.
    fn set_prediction(&mut self, prediction: &Prediction) {
        self.set("prediction_attempts", prediction.attempts);
        self.set("prediction_hits", prediction.hits);
        self.set("prediction_hit_rate", (prediction.switches > 0).then(|| prediction.hits as f64 / prediction.switches as f64));
        for (way, name) in DIRECTIONS.iter().enumerate() {
            let [chances, hits] = prediction.of_direction(way).map_or([None; 2], |counts| counts.map(Some));
            self.set(&format!("prediction_chances_{name}"), chances);
            self.set(&format!("prediction_hits_{name}"), hits);
        }
        if !prediction.heads_only {
            self.set("prediction_refused", prediction.refused);
            self.set("prediction_speculative_traversals", prediction.speculative_traversals);
            self.set("prediction_wasted_flits", prediction.wasted_flits);
            self.set("prediction_hint_bits", prediction.hint_bits);
        }
    }

    fn set_loads(&mut self, network: &Network, outcome: &Outcome) {
        let busy = utilisation(network, outcome);
        let between_routers: Vec<f64> = network.router_channels().filter_map(|channel| busy.get(channel.index()).copied()).collect();
        self.set("channel_utilisation_mean", mean(&between_routers));
        self.set("channel_utilisation_max", between_routers.iter().copied().reduce(f64::max));
        self.set("router_occupancy_mean", mean(&outcome.router_occupancy));
        self.set("router_occupancy_max", outcome.router_occupancy.iter().copied().reduce(f64::max));
    }
}

/// The statistics of a latency: the suffixes of its columns.
const LATENCY_STATISTICS: [&str; 7] = ["mean", "ci95", "min", "p50", "p99", "p999", "max"];

/// The column of the mean packet latency of a saturated run.
const UNTIL_STOP: &str = "packet_latency_mean_until_stop";

/// Clears the latencies of a user or of the background of a saturated run.
fn forget_latencies(part: &mut Value) {
    if let Some(columns) = part.as_object_mut() {
        columns.iter_mut().filter(|(name, _)| name.starts_with("packet_latency")).for_each(|(_, value)| *value = Value::Null);
    }
}

/// The average throughput rate (ATR): accepted throughput over the bandwidth of the terminal's channel, mean over terminals.
fn average_throughput_rate(network: &Network, outcome: &Outcome) -> Option<f64> {
    let accepted = rates(&outcome.accepted_flits, outcome.measured_cycles);
    let period = |terminal: usize| f64::from(network.link(network.ejection_channel(TerminalId(terminal as u32))).period);
    mean(&accepted.iter().enumerate().map(|(terminal, rate)| rate * period(terminal)).collect::<Vec<_>>())
}

/// The share of accepted flits that crossed no channel between routers because source and destination are the same terminal.
fn self_share(outcome: &Outcome) -> Option<f64> {
    let accepted: u64 = outcome.accepted_flits.iter().sum();
    outcome.self_flits.filter(|_| accepted > 0).map(|flits| flits as f64 / accepted as f64)
}

/// The channels of a deadlock by name.
fn waiting(network: &Network, deadlock: &[(ChannelId, u16)]) -> Vec<String> {
    deadlock.iter().map(|&(channel, number)| format!("{}, virtual channel {number}", network.channel_name(channel))).collect()
}

/// Flits per cycle; nothing if no cycle was counted.
fn rates(flits: &[u64], cycles: u64) -> Vec<f64> {
    if cycles == 0 { Vec::new() } else { flits.iter().map(|&flits| flits as f64 / cycles as f64).collect() }
}

/// Busy fraction of the counted cycles of each channel: a flit occupies it for its period. NaN for a failed one.
fn utilisation(network: &Network, outcome: &Outcome) -> Vec<f64> {
    let rates = rates(&outcome.channel_flits, outcome.measured_cycles);
    let busy = |(channel, rate): (usize, &f64)| {
        let channel = ChannelId(channel as u32);
        if network.is_down(channel) { f64::NAN } else { rate * f64::from(network.link(channel).period) }
    };
    rates.iter().enumerate().map(busy).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything (Jain, Chiu and Hawe 1984). `None` if the
/// sum is zero.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// An array of numbers that belongs to a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// Its name: the row's key, this name and `.npy` make the file's name.
    pub name: &'static str,
    /// Its lengths, outermost first.
    pub shape: Vec<usize>,
    /// Its numbers, the last index fastest.
    pub values: Numbers,
}

/// The numbers of a [`Vector`].
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Real numbers.
    Real(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<u64>),
}

/// The names of all vectors; a run has the non-empty ones.
pub const VECTORS: &[&str] = &[
    "channel_utilisation",
    "router_occupancy",
    "accepted_throughput",
    "injected_load",
    "completion_cycles",
    "packet_latency_histogram",
    "predictions",
    "predictions_by_level",
    "interface_busy",
    "interface_awaited",
    "logical_links",
];

/// The vectors of a run, without empty ones.
pub fn vectors(network: &Network, outcome: &Outcome) -> Vec<Vector> {
    let flat = |name, values: Vec<f64>| Vector { name, shape: vec![values.len()], values: Numbers::Real(values) };
    let cycles = outcome.measured_cycles;
    let completion = outcome.completion_cycles.clone();
    let buckets = &outcome.packet_latency.buckets;
    let interfaces = outcome.interfaces.as_ref();
    let predictions = outcome.prediction.as_ref().map_or(&[][..], |prediction| &prediction.by_channel);
    let levels = outcome.prediction.as_ref().map_or(&[][..], |prediction| &prediction.by_level);
    let all = [
        flat("channel_utilisation", utilisation(network, outcome)),
        flat("router_occupancy", outcome.router_occupancy.clone()),
        flat("accepted_throughput", rates(&outcome.accepted_flits, cycles)),
        flat("injected_load", rates(&outcome.injected_flits, cycles)),
        Vector { name: "completion_cycles", shape: vec![completion.len()], values: Numbers::Whole(completion) },
        Vector {
            name: "packet_latency_histogram",
            shape: vec![buckets.len(), 2],
            values: Numbers::Whole(buckets.iter().flat_map(|&(value, count)| [value, count]).collect()),
        },
        Vector { name: "predictions", shape: vec![predictions.len(), 3], values: Numbers::Whole(predictions.concat()) },
        Vector { name: "predictions_by_level", shape: vec![levels.len(), 3, 2], values: Numbers::Whole(levels.as_flattened().concat()) },
        flat("interface_busy", interfaces.map_or(Vec::new(), |interfaces| interfaces.busy.clone())),
        flat("interface_awaited", interfaces.map_or(Vec::new(), |interfaces| interfaces.awaited.clone())),
    ];
    all.into_iter().filter(|vector| vector.shape[0] > 0).collect()
}

impl Vector {
    /// The vector as a NumPy `.npy` file, format version 1.0.
    ///
    /// Implemented here because the crates for it depend on a parser generator, and this program only writes such files.
    pub fn to_npy(&self) -> Vec<u8> {
        let kind = match self.values {
            Numbers::Real(_) => "<f8",
            Numbers::Whole(_) => "<u8",
        };
        let shape: String = self.shape.iter().map(|length| format!("{length}, ")).collect();
        let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
        // Magic (6), version (2), header length (2) and header together are padded with spaces to 64; a line break ends them.
        let padded = (NPY_PREFIX + header.len() + 1).next_multiple_of(64);
        header.extend(std::iter::repeat_n(' ', padded - NPY_PREFIX - header.len() - 1));
        header.push('\n');
        let mut bytes = NPY_MAGIC.to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        match &self.values {
            Numbers::Real(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            Numbers::Whole(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        }
        bytes
    }
}

const NPY_MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
const NPY_PREFIX: usize = 10;

/// True if these bytes are a whole file as [`Vector::to_npy`] writes it (and not the beginning of one).
pub(crate) fn is_whole_npy(bytes: &[u8]) -> bool {
    let (Some(magic), Some(length)) = (bytes.get(..8), bytes.get(8..NPY_PREFIX)) else { return false };
    let data = NPY_PREFIX + usize::from(u16::from_le_bytes([length[0], length[1]]));
    let Some(header) = bytes.get(NPY_PREFIX..data).and_then(|header| std::str::from_utf8(header).ok()) else { return false };
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')'));
    let Some((shape, _)) = shape else { return false };
    let lengths: Result<Vec<usize>, _> = shape.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect();
    let bytes_of = |lengths: Vec<usize>| lengths.into_iter().try_fold(8_usize, usize::checked_mul);
    magic == NPY_MAGIC && lengths.ok().and_then(bytes_of) == Some(bytes.len() - data)
}

/// Writes rows as JSON, `{"runs": [...]}`, one after the other; `pretty` with a line for each column.
///
/// # Errors
/// `out` cannot be written.
pub fn write_json(rows: &[RunRow], pretty: bool, out: impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Table<'a> {
        runs: &'a [RunRow],
    }
    let table = Table { runs: rows };
    Ok(if pretty { serde_json::to_writer_pretty(out, &table) } else { serde_json::to_writer(out, &table) }?)
}

/// Writes rows as CSV with a header line: `null` is an empty field, a list its elements joined by `; `, anything nested its JSON text.
///
/// # Errors
/// `out` cannot be written.
pub fn write_csv(rows: &[RunRow], out: impl Write) -> io::Result<()> {
    let names = names(rows);
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&names)?;
    for row in rows {
        writer.write_record(names.iter().map(|name| field(row.get(name))))?;
    }
    writer.flush()
}

/// The columns of several rows, each once. Rows of open traffic and of closed workloads have different ones.
pub fn names(rows: &[RunRow]) -> Vec<&str> {
    let mut known = BTreeSet::new();
    rows.iter().flat_map(RunRow::columns).map(|(name, _)| name).filter(|name| known.insert(*name)).collect()
}

/// A value as a field of CSV.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.iter().all(Value::is_string) => values.iter().map(field).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kasuri_model::engine::Status;
    use kasuri_network::network::{Link, NetworkBuilder};

    /// Two routers, a terminal on each, one link of period 2.
    pub(crate) fn network() -> Network {
        let mut builder = NetworkBuilder::new("pair");
        let routers = [0, 1].map(|_| builder.add_router(2).unwrap());
        for router in routers {
            builder.add_terminal(router, 0, Link::default());
        }
        builder.add_link((routers[0], 1), (routers[1], 1), Link { latency: 1, period: 2 });
        builder.finish().unwrap()
    }

    pub(crate) fn head() -> RowHead {
        RowHead {
            key: "00ff".to_owned(),
            title: "a pair, \"quoted\"".to_owned(),
            engine: crate::engines::DEFAULT,
            seed: 1,
            inputs: vec![("traffic.load".to_owned(), json!(0.25)), ("network.dimensions".to_owned(), json!([1, 2]))],
        }
    }

    pub(crate) fn outcome() -> Outcome {
        Outcome {
            injected_flits: vec![20, 30],
            self_flits: Some(4),
            router_occupancy: vec![0.5, 1.5],
            flit_hops: 80,
            ..Outcome::new(Status::Converged)
                .measured_for(150, 40, 100)
                .with_packets([
                    Distribution { count: 4, sum: 50.0, min: 10, max: 16, buckets: vec![(10, 1), (12, 2), (16, 1)] },
                    Distribution::default(),
                    Distribution { count: 4, sum: 8.0, min: 2, max: 2, buckets: vec![(2, 4)] },
                ])
                .with_flits(vec![20, 30, 10, 30, 15, 5], vec![10, 30])
                .with_ignored_keys(&["router.predictor", "router.buffer_flits"], [])
        }
    }

    fn row() -> RunRow {
        let offer = Offer { terminals: 2, sources: 2, packets_per_cycle: 0.1, flits_per_cycle: 0.5, ..Offer::default() };
        RunRow::new(&head(), &network(), Some(&offer), &outcome(), &Report::default())
    }

    #[test]
    fn rates_and_latencies_follow_from_the_counts() {
        let row = row();
        let expected = [
            ("offered_load", 0.25),
            ("injected_load", 0.25),
            ("accepted_throughput_min", 0.1),
            ("accepted_throughput_max", 0.3),
            ("packet_latency_mean", 12.5),
            ("packet_latency_p50", 12.0),
            ("packet_latency_p99", 16.0),
            ("hops_mean", 2.0),
            // 4 of 40 flits.
            ("self_share", 0.1),
            // (0.1 + 0.3)^2 / (2 (0.1^2 + 0.3^2)).
            ("fairness_jain", 0.8),
            // 15 and 5 flits of 2 cycles each in 100 cycles.
            ("channel_utilisation_max", 0.3),
            ("channel_utilisation_mean", 0.2),
            ("router_occupancy_mean", 1.0),
        ];
        for (name, value) in expected {
            assert!((row.number(name).unwrap() - value).abs() < 1e-12, "{name}: {}", row.get(name));
        }
        for unknown in ["packet_latency_ci95", "network_latency_mean", "network_latency_min", "completion_time"] {
            assert_eq!(row.get(unknown), &Value::Null, "{unknown}");
        }
    }

    #[test]
    fn every_row_has_all_columns_in_the_same_order() {
        let names = |row: &RunRow| row.columns().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        let row = row();
        assert_eq!(names(&row), names(&RunRow::failed(&head(), "no")));
        assert_eq!(names(&row).len(), 8 + 2 + COLUMNS.len());
    }

    #[test]
    fn columns_in_nanoseconds_are_those_in_cycles_times_the_length_of_a_cycle() {
        let mut row = row();
        assert_eq!(row.get("packet_latency_mean_ns"), &Value::Null);
        row.set("completion_time", 150);
        row.set_nanoseconds(0.5);
        assert_eq!((row.number("packet_latency_mean_ns"), row.number("completion_time_ns")), (Some(6.25), Some(75.0)));
        assert_eq!(row.get("network_latency_mean_ns"), &Value::Null, "no packet, no latency");
        let in_ns = COLUMNS.iter().filter(|column| column.unit == "ns");
        assert!(in_ns.clone().count() > 10);
        in_ns.for_each(|column| assert!(COLUMNS.iter().any(|other| Some(other.name) == column.name.strip_suffix("_ns"))));
    }

    /// Terminals receive 0.1 and 0.3 flits/cycle on channels that carry one flit in 1 cycle.
    #[test]
    fn the_average_throughput_rate_is_given_only_at_offered_load_1() {
        for (flits_per_cycle, expected) in [(2.0, Some(0.2)), (0.5, None)] {
            let offer = Offer { terminals: 2, sources: 2, packets_per_cycle: 0.1, flits_per_cycle, ..Offer::default() };
            let row = RunRow::new(&head(), &network(), Some(&offer), &outcome(), &Report::default());
            assert_eq!(row.number("atr"), expected);
        }
    }

    /// The columns that files, tests and users rely on.
    #[test]
    fn the_promised_columns_are_there() {
        let row = row();
        let promised = "key title engine status message kasuri_version kasuri_commit seed terminals routers channels packet_latency_mean \
            packet_latency_ci95 packet_latency_p50 packet_latency_p99 packet_latency_max network_latency_mean flit_latency_mean \
            zero_load_latency hops_mean offered_load injected_load accepted_throughput_mean accepted_throughput_min \
            accepted_throughput_max saturation_load atr completion_time not_modelled cycles flit_hops wall_seconds cpu_seconds \
            peak_memory_mib";
        let names: Vec<&str> = row.columns().map(|(name, _)| name).collect();
        assert_eq!(promised.split_whitespace().filter(|name| !names.contains(name)).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn stored_results_go_under_another_head() {
        let mut other = head();
        other.title = "new".to_owned();
        other.inputs.truncate(1);
        let moved = row().with_head(&other);
        assert_eq!((moved.text("title"), moved.number("packet_latency_mean")), ("new", Some(12.5)));
        assert_eq!(moved.get("network.dimensions"), &Value::Null);
    }

    #[test]
    fn csv_keeps_lists_and_quotes_and_leaves_unknown_fields_empty() {
        let mut text = Vec::new();
        write_csv(&[row()], &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers().unwrap().clone();
        let record = reader.records().next().unwrap().unwrap();
        let at = |name: &str| &record[names.iter().position(|other| other == name).unwrap()];
        assert_eq!(at("title"), "a pair, \"quoted\"");
        assert_eq!(at("network.dimensions"), "[1,2]");
        assert_eq!(at("not_modelled"), "router.predictor; router.buffer_flits");
        assert_eq!((at("packet_latency_mean"), at("packet_latency_ci95")), ("12.5", ""));
    }

    /// The example of the format's specification (NEP 1): magic, version, header length, header padded to 64, data.
    #[test]
    fn npy_files_have_the_layout_of_nep_1() {
        let vector = Vector { name: "x", shape: vec![2, 2], values: Numbers::Whole(vec![1, 2, 3, 0x0102]) };
        let bytes = vector.to_npy();
        assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(bytes.len(), 128 + 32);
        let header = std::str::from_utf8(&bytes[10..128]).unwrap();
        assert!(header.starts_with("{'descr': '<u8', 'fortran_order': False, 'shape': (2, 2,), }") && header.ends_with(" \n"));
        assert_eq!(&bytes[128 + 24..], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert!(is_whole_npy(&bytes));
        for length in [0, 7, 9, 60, 128, 150, 159] {
            assert!(!is_whole_npy(&bytes[..length]), "{length}");
        }
    }

    #[test]
    fn all_vectors_have_listed_names_and_whole_shapes() {
        let vectors = vectors(&network(), &outcome());
        assert_eq!(vectors.iter().map(|vector| vector.name).collect::<Vec<_>>().len(), 5);
        for vector in &vectors {
            assert!(VECTORS.contains(&vector.name));
            let count = match &vector.values {
                Numbers::Real(values) => values.len(),
                Numbers::Whole(values) => values.len(),
            };
            assert_eq!(count, vector.shape.iter().product::<usize>());
            assert!(is_whole_npy(&vector.to_npy()));
        }
    }

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_one() {
        assert_eq!(jain(&[0.25; 4]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0; 4]), None);
    }
}
