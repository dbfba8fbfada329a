//! Scenarios for the engine's tests, built straight from the families' tables.
#![allow(dead_code)]

use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Phase, Status, Threads};
use kasuri_model::router::RouterParameters;
use kasuri_model::scenario::{Hosts, Scenario, TrafficClass};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::registry::find;
use kasuri_network::rng::{Stream, Streams};
use kasuri_network::routing::{ROUTINGS, Routing, VirtualChannels};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::pattern::{PATTERNS, Pattern, PatternContext};
use kasuri_workload::traffic::process::PROCESSES;
use std::sync::Arc;

/// A scenario in the making; every field may be changed before `build`.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) topology: (&'static str, String),
    pub(crate) channels: ChannelParameters,
    pub(crate) routing: (&'static str, &'static str),
    pub(crate) router: RouterParameters,
    pub(crate) pattern: (&'static str, &'static str),
    pub(crate) process: (&'static str, String),
    pub(crate) include_self: bool,
    pub(crate) load: f64,
    pub(crate) packet_flits: u32,
    pub(crate) seed: u64,
    pub(crate) max_cycles: u64,
    pub(crate) paranoid: bool,
    pub(crate) simd: String,
    /// `[flit] layout`, if one is asked for.
    pub(crate) layout: Option<&'static str>,
    /// `[flit] tiles`.
    pub(crate) tiles: u32,
    /// Threads that the run may use.
    pub(crate) threads: usize,
    pub(crate) hosts: Option<Hosts>,
}

impl Setup {
    pub(crate) fn mesh(dimensions: &[u32]) -> Self {
        Self {
            topology: ("mesh", format!("dimensions = {dimensions:?}")),
            channels: ChannelParameters::default(),
            routing: ("dimension-order", ""),
            router: RouterParameters { virtual_channels: 4, buffer_flits: 8, ..RouterParameters::default() },
            pattern: ("uniform", ""),
            process: ("bernoulli", String::new()),
            include_self: true,
            load: 0.1,
            packet_flits: 5,
            seed: 1,
            max_cycles: 10_000_000,
            paranoid: false,
            simd: "auto".to_owned(),
            layout: None,
            tiles: 1,
            threads: 1,
            hosts: None,
        }
    }

    pub(crate) fn torus(dimensions: &[u32]) -> Self {
        Self { topology: ("torus", format!("dimensions = {dimensions:?}")), ..Self::mesh(dimensions) }
    }

    pub(crate) fn fat_tree(arity: u32, levels: u32) -> Self {
        Self {
            topology: ("fat-tree", format!("up = {arity}\ndown = {arity}\nlevels = {levels}")),
            routing: ("nca", "up_port = \"random\""),
            ..Self::mesh(&[2])
        }
    }

    pub(crate) fn batch(mut self, packets: u64) -> Self {
        self.process = ("batch", format!("batch_packets = {packets}"));
        self
    }

    pub(crate) fn network(&self) -> Arc<Network> {
        let topology = (find(TOPOLOGIES, self.topology.0).unwrap().parse)(self.topology.1.parse().unwrap()).unwrap();
        let context = BuildContext { channels: &self.channels, files: &NoFiles, structure_seed: 1 };
        Arc::new(topology.build(&context).unwrap())
    }

    /// `[flit]`.
    fn options(&self) -> String {
        let layout = self.layout.map(|layout| format!("layout = \"{layout}\"\n")).unwrap_or_default();
        format!("{layout}simd = \"{}\"\ntiles = {}", self.simd, self.tiles)
    }

    pub(crate) fn build(&self) -> Scenario {
        let network = self.network();
        let algorithm = (find(ROUTINGS, self.routing.0).unwrap().parse)(self.routing.1.parse().unwrap()).unwrap();
        let routing: Arc<dyn Routing> = Arc::from(algorithm.compile(&network).unwrap());
        let pattern = (find(PATTERNS, self.pattern.0).unwrap().parse)(self.pattern.1.parse().unwrap()).unwrap();
        let context = PatternContext { network: &network, include_self: self.include_self, files: &NoFiles };
        let pattern = Arc::from(pattern.compile(&context).unwrap());
        let sizes = PacketSizes::fixed(self.packet_flits).unwrap();
        let process = (find(PROCESSES, self.process.0).unwrap().parse)(self.process.1.parse().unwrap()).unwrap();
        let class = TrafficClass {
            pattern,
            packets_per_terminal: process.packets_per_terminal(),
            window: process.window(),
            process: Arc::from(process.compile(self.load / sizes.mean()).unwrap()),
            load: self.load,
            sizes,
            virtual_channels: VirtualChannels { begin: 0, end: self.router.virtual_channels as u16 },
            priority: 0,
            joint: None,
            reply: None,
        };
        Scenario {
            network,
            routing,
            pipeline: self.router.check().unwrap(),
            router: self.router.clone(),
            classes: vec![class],
            workload: None,
            units: kasuri_workload::units::Units::default(),
            streams: Streams::new(self.seed),
            max_cycles: self.max_cycles,
            resend_after: None,
            failure: None,
            engine_options: self.options().parse().unwrap(),
            paranoid: self.paranoid,
            timeline: false,
            endpoint: None,
            hosts: self.hosts,
            users: None,
        }
    }

    pub(crate) fn run(&self, controller: &mut dyn Controller) -> Outcome {
        let scenario = self.build();
        let mut prepared = kasuri_flit::FlitEngine.prepare(&scenario).unwrap();
        if self.threads > 1 {
            prepared.use_threads(Threads::new(self.threads)).unwrap();
        }
        prepared.run(controller).unwrap()
    }
}

/// Warm-up, measurement and drain of fixed lengths; a batch runs to its end.
pub(crate) struct Fixed {
    pub(crate) warmup: u64,
    pub(crate) cycles: u64,
    phase: Phase,
}

impl Fixed {
    pub(crate) fn new(warmup: u64, cycles: u64) -> Self {
        Self { warmup, cycles, phase: Phase::WarmUp }
    }
}

impl Controller for Fixed {
    fn interval_cycles(&mut self) -> u64 {
        match self.phase {
            Phase::WarmUp => self.warmup.max(1),
            Phase::Measuring => self.cycles,
            _ => 100_000,
        }
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed {
            return Command::End(Status::Completed);
        }
        match self.phase {
            Phase::WarmUp => {
                self.phase = Phase::Measuring;
                Command::Measure
            }
            Phase::Measuring => {
                self.phase = Phase::Draining;
                Command::Drain
            }
            _ if interval.outstanding_packets == 0 => Command::End(Status::Converged),
            _ => Command::End(Status::Saturated),
        }
    }
}

/// One interval for everything: until a closed workload is delivered.
pub(crate) struct ToTheEnd;

impl Controller for ToTheEnd {
    fn interval_cycles(&mut self) -> u64 {
        1 << 40
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

/// One terminal sends to one other; the rest is silent.
#[derive(Debug)]
pub(crate) struct Single {
    pub(crate) source: TerminalId,
    pub(crate) destination: TerminalId,
}

impl Pattern for Single {
    fn destination(&self, source: TerminalId, _stream: &mut Stream) -> Option<TerminalId> {
        (source == self.source).then_some(self.destination)
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        if source == self.source { vec![(self.destination, 1.0)] } else { Vec::new() }
    }
}
