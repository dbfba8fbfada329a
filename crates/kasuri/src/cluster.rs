//! Runs execution traces on the network of their cluster with an engine of Kasuri, and returns each NPU's completion time.
//!
//! The dimensions of the cluster become a network ([`kasuri_network::cluster`]), its rates and latencies whole cycles ([`Scale`]), the
//! traces a closed workload. A router takes one cycle; links have all the latency.

use crate::engines::ENGINES;
use kasuri_model::engine::{Command, Controller, EngineError, Interval, Method, Status};
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{PipelineEntry, RouterParameters};
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::cluster::{Cluster, ClusterOrder, Dimension, Wiring};
use kasuri_network::network::{Link, MAX_CHANNEL_CYCLES};
use kasuri_network::rng::Streams;
use kasuri_network::routing::VirtualChannels;
use kasuri_workload::execution::alike::is_symmetric;
use kasuri_workload::execution::cluster::{self, Topology};
use kasuri_workload::execution::trace::{Node, whole_ns};
use kasuri_workload::execution::workload::{Places, TraceWorkload, Traces, volume};
use kasuri_workload::units::Units;
use std::sync::Arc;

/// The largest number of simulated cycles.
const MAX_CYCLES: u64 = u64::MAX >> 2;

/// The largest buffer of a virtual channel.
const MAX_BUFFER_FLITS: u32 = 65_535;

/// Outstanding messages of a terminal of the flit engine, which learns of departures only at the ends of windows of cycles.
const MESSAGES_AHEAD: u32 = 8;

/// The options of an engine, besides the files.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The kind of engine: by rates of messages, or cycle by cycle.
    pub method: Method,
    /// Bytes of a flit; `None`: as few as the latencies allow, for flows.
    pub flit_bytes: Option<u32>,
    /// Bytes of a packet.
    pub packet_bytes: u32,
    /// True if one NPU may represent all equivalent ones. Flows take the same times, and processor time falls by the number of NPUs.
    pub use_symmetry: bool,
}

/// The completion time of each NPU, in nanoseconds.
///
/// # Errors
/// A sentence on the unsupported part, or on the NPU that never finishes and the reason.
pub fn run(traces: Traces, options: &Options) -> Result<Vec<f64>, String> {
    traces.job().check()?;
    let longest = volume(&traces)?.longest;
    let shape = shape(&traces.cluster, &vec![Link::default(); traces.cluster.dimensions.len()])?;
    let scale = Scale::of(&traces.cluster.dimensions, &shape, longest, options.flit_bytes)?;
    check_durations(&traces, MAX_CYCLES as f64 * scale.cycle_ns)?;
    let shape = self::shape(&traces.cluster, &scale.links)?;
    let network = Arc::new(shape.build("cluster".to_owned()).map_err(|error| error.to_string())?);
    let has_channels = options.method == Method::Cycles;
    let router = router(&scale, options.packet_bytes);
    let units = Units { flit_bytes: Some(scale.flit_bytes), cycle_ns: Some(scale.cycle_ns) };
    let (npus, are_alike) = (traces.cluster.npus(), is_symmetric(&traces.job(), true));
    let is_folded = options.use_symmetry && are_alike && options.method == Method::Rates;
    let mut workload =
        TraceWorkload::new(traces, Places::Links(shape.clone()), units)?.ahead(if has_channels { MESSAGES_AHEAD } else { 1 });
    if is_folded {
        workload = workload.fold_symmetric(shape.channels_of_first(&network));
    }
    let workload = Arc::new(workload);
    let all = VirtualChannels { begin: 0, end: router.virtual_channels as u16 };
    let packet_flits = options.packet_bytes.div_ceil(scale.flit_bytes).max(1);
    let scenario = Scenario {
        network,
        routing: Arc::new(ClusterOrder::new(shape, has_channels)),
        pipeline: router.check().map_err(|problems| format!("{problems:?}"))?,
        router,
        classes: Vec::new(),
        workload: Some(ClosedWorkload::new(workload, packet_flits, all)),
        users: None,
        endpoint: None,
        hosts: None,
        units,
        streams: Streams::new(1),
        max_cycles: MAX_CYCLES,
        resend_after: None,
        failure: None,
        engine_options: toml::Table::new(),
        paranoid: false,
        timeline: false,
    };
    let engine = ENGINES.iter().find(|engine| engine.method() == options.method).ok_or("no such engine")?;
    let prepared = engine.prepare(&scenario).map_err(|refusals| all_of(&refusals))?;
    let outcome = prepared.run(&mut SingleInterval).map_err(|error| match &error {
        EngineError::Refused(refusals) => all_of(refusals),
        other => other.to_string(),
    })?;
    if let Some(standstill) = outcome.standstill.first() {
        return Err(standstill.clone());
    }
    let mut times: Vec<f64> = outcome.finished.iter().flatten().map(|cycles| cycles * scale.cycle_ns).collect();
    if is_folded {
        times = times.repeat(npus as usize);
    }
    if outcome.status != Status::Completed || times.len() != npus as usize {
        let limit = MAX_CYCLES as f64 * scale.cycle_ns;
        return Err(format!(
            "the run ended with the status {} before all NPUs had finished (at most {limit:.3e} ns)",
            outcome.status.name()
        ));
    }
    for (npu, &ns) in times.iter().enumerate() {
        whole_ns(ns).map_err(|problem| format!("NPU {npu}: {problem}"))?;
    }
    Ok(times)
}

/// Refuses an NPU with computations longer than the simulated time.
fn check_durations(traces: &Traces, most_ns: f64) -> Result<(), String> {
    for (npu, trace) in traces.traces.iter().enumerate() {
        let mut all = 0.0;
        for node in &trace.nodes {
            all += node.duration_ns as f64;
            if all > most_ns {
                let Node { id, name, .. } = node;
                return Err(format!(
                    "NPU {npu}: node {id} (`{name}`): it and the nodes before it last {all:.3e} ns; at most {most_ns:.3e} ns are simulated"
                ));
            }
        }
    }
    Ok(())
}

fn all_of(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| refusal.reason.clone()).collect::<Vec<_>>().join("; ")
}

/// One interval for everything.
struct SingleInterval;

impl Controller for SingleInterval {
    fn interval_cycles(&mut self) -> u64 {
        1 << 60
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

/// The dimensions as the network knows them.
fn shape(of: &cluster::Cluster, links: &[Link]) -> Result<Cluster, String> {
    let dimension = |(dimension, &link): (&cluster::Dimension, &Link)| {
        let wiring = match dimension.topology {
            Topology::Ring => Wiring::Ring,
            Topology::FullyConnected => Wiring::Full,
            Topology::Switch => Wiring::Switch,
        };
        Dimension { wiring, size: dimension.npus, link }
    };
    Cluster::new(of.dimensions.iter().zip(links).map(dimension).collect()).map_err(|error| error.to_string())
}

/// A router of one cycle; buffers hold the flits of a link's round trip and a packet.
fn router(scale: &Scale, packet_bytes: u32) -> RouterParameters {
    let stages = ["RC", "VA", "SA", "ST"].map(str::to_owned).to_vec();
    let round_trip = scale.links.iter().map(|link| 2 * link.latency / link.period).max().unwrap_or(0);
    RouterParameters {
        pipeline: vec![PipelineEntry::Together { stages, cycles: 1 }],
        lookahead: true,
        // Half of them are for packets that have still to cross the end of a ring: packets of several messages share a link.
        virtual_channels: 8,
        buffer_flits: (round_trip + 8 + packet_bytes.div_ceil(scale.flit_bytes)).min(MAX_BUFFER_FLITS),
        ..RouterParameters::default()
    }
}

/// Flits and cycles such that the links of all dimensions take whole cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Bytes of a flit.
    pub flit_bytes: u32,
    /// Nanoseconds of a cycle.
    pub cycle_ns: f64,
    /// The link of each dimension.
    pub links: Vec<Link>,
}

/// Periods of the fastest link to try, in cycles, if rates differ.
const MAX_FLIT_CYCLES: u32 = 1000;
/// The same for an engine that simulates cycle by cycle.
const MAX_SIMULATED_FLIT_CYCLES: u32 = 8;

impl Scale {
    /// For the longest message, which must have fewer than 2^31 flits. Rates are met to a part in 2,000 at least where flits may have any
    /// size, in most clusters exactly, latencies to half a cycle.
    ///
    /// # Errors
    /// A latency of more cycles than are simulated.
    fn of(dimensions: &[cluster::Dimension], shape: &Cluster, longest: u64, flit_bytes: Option<u32>) -> Result<Self, String> {
        let rates: Vec<f64> = dimensions.iter().map(cluster::Dimension::bytes_per_ns).collect();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let slowness: Vec<f64> = rates.iter().map(|rate| fastest / rate).collect();
        let slowest = slowness.iter().copied().fold(1.0, f64::max);
        let longest_latency = dimensions.iter().map(|dimension| dimension.latency_ns).fold(0.0, f64::max);
        let least = shape.least_period();
        let wanted = if slowness.iter().all(|&slowness| slowness == 1.0) { least } else { least.max(MAX_FLIT_CYCLES) };
        let wanted = if flit_bytes.is_some() { least } else { wanted };
        let sizes = match flit_bytes {
            Some(size) => vec![size],
            None => (0..=16).map(|power| 1 << power).filter(|&size: &u32| longest / u64::from(size) < 1 << 31).collect(),
        };
        for size in sizes {
            let flit_ns = f64::from(size) / fastest;
            let limit = f64::from(MAX_CHANNEL_CYCLES - 1);
            let most = (limit * flit_ns / longest_latency.max(f64::MIN_POSITIVE)).min(limit / slowest);
            if most < f64::from(wanted) {
                continue;
            }
            let last = if flit_bytes.is_some() { wanted.max(MAX_SIMULATED_FLIT_CYCLES) } else { 2 * wanted }.min(most as u32);
            let error = |period: u32| {
                let of_one = |slowness: &f64| {
                    let exact = slowness * f64::from(period);
                    (exact.round() / exact - 1.0).abs()
                };
                slowness.iter().map(of_one).fold(0.0, f64::max)
            };
            let period = (wanted..=last).min_by(|&one, &other| error(one).total_cmp(&error(other))).unwrap_or(wanted);
            let cycle_ns = flit_ns / f64::from(period);
            let link = |(dimension, slowness): (&cluster::Dimension, &f64)| Link {
                // A flit is seen a cycle after its arrival, and a router takes one.
                latency: ((dimension.latency_ns / cycle_ns).round() as u32).saturating_sub(2).max(1),
                period: (slowness * f64::from(period)).round() as u32,
            };
            let links = dimensions.iter().zip(&slowness).map(link).collect();
            return Ok(Self { flit_bytes: size, cycle_ns, links });
        }
        let problem = "is too long for the rate of the fastest link: a link of Kasuri has at most";
        Err(format!("a latency of {longest_latency} ns {problem} {MAX_CHANNEL_CYCLES} cycles, and the longest message 2^31 flits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(dimensions: &[(u32, f64, f64)], flit_bytes: Option<u32>) -> Scale {
        let dimension = |&(npus, bandwidth, latency_ns): &(u32, f64, f64)| cluster::Dimension {
            topology: Topology::Switch,
            npus,
            bandwidth,
            latency_ns,
        };
        let of = cluster::Cluster { dimensions: dimensions.iter().map(dimension).collect() };
        let shape = shape(&of, &vec![Link::default(); of.dimensions.len()]).unwrap();
        Scale::of(&of.dimensions, &shape, 1 << 20, flit_bytes).unwrap()
    }

    /// The rates and latencies of a scale meet the requested ones.
    #[test]
    fn whole_cycles_meet_rates_and_latencies() {
        let cases: [&[(u32, f64, f64)]; 5] = [
            &[(8, 50.0, 500.0)],
            &[(1024, 50.0, 500.0)],
            &[(4, 741.34, 25.0), (4, 50.0, 936.25)],
            &[(4, 360.0, 700.0), (4, 50.0, 500.0)],
            &[(4, 37.5, 0.0), (4, 12.5, 0.0)],
        ];
        for case in cases {
            let scale = scale(case, None);
            for (&(npus, bandwidth, latency), link) in case.iter().zip(&scale.links) {
                let rate = f64::from(scale.flit_bytes) / (f64::from(link.period) * scale.cycle_ns);
                let wanted = bandwidth * f64::from(1 << 30) / 1e9;
                assert!((rate / wanted - 1.0).abs() < 5e-4, "{case:?}: {rate} for {wanted}");
                let found = f64::from(link.latency + 2) * scale.cycle_ns;
                assert!((found - latency).abs() <= 3.0 * scale.cycle_ns, "{case:?}: {found} ns for {latency}");
                assert!(npus < 512 || link.period >= 512);
            }
        }
        assert_eq!(scale(cases[0], Some(64)).links, [Link { latency: 417, period: 1 }]);
        // 741.34 to 50 is 14.8268: the best of up to eight cycles.
        assert_eq!(scale(cases[2], Some(64)).links[1].period % 89, 0);
    }
}
