//! Tiles: a network that is cut into parts which exchange flits, credits and packets' records is the same network, bit for bit.

use crate::common::{Fixed, Setup, ToTheEnd};
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status, Threads};
use kasuri_model::router::{
    AllocatorParameters, Architecture, BufferPolicy, Congestion, PipelineEntry, Priority, RouterParameters, Switching, VcRelease,
};
use kasuri_model::scenario::TrafficClass;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;
use kasuri_network::topology::{ChannelParameters, PerDimension};
use kasuri_workload::traffic::pattern::Pattern;
use std::sync::Arc;

/// Ends when all packets of some terminal have arrived.
struct ToTheFirst;

impl Controller for ToTheFirst {
    fn interval_cycles(&mut self) -> u64 {
        1 << 40
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.first_finished { Command::End(Status::Completed) } else { Command::Continue }
    }
}

fn router(virtual_channels: u32, buffer_flits: u32) -> RouterParameters {
    RouterParameters { virtual_channels, buffer_flits, ..RouterParameters::default() }
}

fn run<C: Controller>(setup: &Setup, tiles: u32, mut controller: C) -> Outcome {
    Setup { tiles, paranoid: true, ..setup.clone() }.run(&mut controller)
}

/// Warm-up, measurement and drain with any number of tiles, down to one for each router.
fn tiles_agree(setup: &Setup) {
    let whole = run(setup, 1, Fixed::new(100, 300));
    assert!(whole.flit_hops > 0);
    for (tiles, threads) in [(2, 1), (3, 1), (7, 1), (1000, 1), (1, 2), (5, 3), (1000, 4), (1, 16)] {
        let cut = run(&Setup { threads, ..setup.clone() }, tiles, Fixed::new(100, 300));
        let Setup { topology, router, layout, simd, .. } = setup;
        assert_eq!(whole, cut, "{tiles} tiles, {threads} threads: {topology:?} {router:?} {layout:?} {simd}");
    }
}

/// Meshes, rings with datelines, trees, and networks whose terminals inject at one router and are ejected at another.
fn networks() -> Vec<Setup> {
    vec![Setup::mesh(&[4, 3]), Setup::torus(&[4, 4]), Setup::fat_tree(3, 2)]
}

#[test]
fn tiles_agree_in_every_layout() {
    for topology in networks() {
        for (layout, simd) in [(None, "always"), (Some("plain"), "portable"), (Some("full"), "portable")] {
            for (load, packet_flits, buffer_flits) in [(0.1, 1, 2), (0.6, 7, 3)] {
                let router = router(2, buffer_flits);
                tiles_agree(&Setup { load, packet_flits, router, layout, simd: simd.to_owned(), ..topology.clone() });
            }
        }
    }
}

/// What flits do at a border they do in the cycle in which they would do it anywhere: with every switching, with long channels of different
/// latency and rate, in routers of all kinds.
#[test]
fn tiles_agree_whatever_the_routers() {
    let stage = |name: &str, cycles| PipelineEntry::Timed { stage: name.to_owned(), cycles };
    let deep = || vec![stage("RC", 2), stage("VA", 1), stage("SA", 2), stage("ST", 2)];
    let routers = [
        RouterParameters { switching: Switching::VirtualCutThrough, ..router(2, 8) },
        RouterParameters { switching: Switching::StoreAndForward, vc_release: VcRelease::TailCredit, ..router(2, 8) },
        RouterParameters { pipeline: deep(), lookahead: true, ..router(4, 4) },
        RouterParameters { speculative: true, ..router(2, 4) },
        RouterParameters { architecture: Architecture::VirtualOutputQueued, ..router(2, 6) },
        RouterParameters { architecture: Architecture::Crosspoint, ..router(2, 6) },
        RouterParameters { buffer_policy: BufferPolicy::Shifting, ..router(4, 6) },
        RouterParameters { internal_speedup: 2.0, output_speedup: 2, ..router(2, 6) },
        RouterParameters { output_buffer_flits: Some(3), priority: Priority::Age, ..router(2, 6) },
        RouterParameters { switch_allocator: AllocatorParameters::Name("wavefront".to_owned()), hold_switch: true, ..router(2, 6) },
        RouterParameters { vc_allocator: AllocatorParameters::Name("pim".to_owned()), ..router(4, 6) },
    ];
    let channels = ChannelParameters { channel_latency: PerDimension::Each(vec![1, 5]), terminal_channel_latency: 2, ..Default::default() };
    for router in routers {
        tiles_agree(&Setup { router: router.clone(), load: 0.5, packet_flits: 4, ..Setup::fat_tree(2, 3) });
        tiles_agree(&Setup { router, load: 0.4, packet_flits: 4, channels: channels.clone(), ..Setup::mesh(&[3, 3]) });
    }
}

/// Routings that look at congestion see their own router alone; a lone draw of a packet is the same in every tile.
#[test]
fn tiles_agree_with_routings_that_look_around() {
    for congestion in [Congestion::Credits, Congestion::Claimed] {
        let router = RouterParameters { congestion, ..router(4, 4) };
        let adaptive = Setup { routing: ("minimal-adaptive", ""), pattern: ("transpose", ""), router, load: 0.4, ..Setup::mesh(&[4, 4]) };
        tiles_agree(&adaptive);
    }
    tiles_agree(&Setup { routing: ("valiant", ""), router: router(4, 4), load: 0.3, ..Setup::mesh(&[4, 4]) });
}

/// Predictions of a tile's routers are those of the whole network's.
#[test]
fn tiles_agree_with_predictors() {
    for predictor in ["latest-port", "static-xy"] {
        let router = RouterParameters { predictor: predictor.to_owned(), ..router(2, 6) };
        tiles_agree(&Setup { router, load: 0.2, ..Setup::mesh(&[4, 4]) });
    }
}

/// A deadlock whose cycle crosses borders is found, and it is the same one.
#[test]
fn a_deadlock_across_tiles_is_the_deadlock_of_the_whole() {
    // One virtual channel, which no dateline can divide.
    let setup = Setup { router: router(1, 2), load: 0.9, ..Setup::torus(&[4, 4]) };
    let whole = run(&setup, 1, Fixed::new(50_000, 300));
    assert_eq!(whole.status, Status::Deadlock);
    for tiles in [2, 6] {
        assert_eq!(run(&setup, tiles, Fixed::new(50_000, 300)), whole);
    }
}

/// A run that ends by itself ends in the same cycle, and the first terminal of a batch is told of in the same one.
#[test]
fn batches_end_alike_in_any_number_of_tiles() {
    let setup = Setup { load: 1.0, ..Setup::mesh(&[3, 3]) }.batch(20);
    let whole = run(&setup, 1, ToTheEnd);
    let first = run(&setup, 1, ToTheFirst);
    assert!(first.cycles < whole.cycles);
    for tiles in [2, 4, 9] {
        assert_eq!(run(&setup, tiles, ToTheEnd), whole);
        assert_eq!(run(&setup, tiles, ToTheFirst), first);
    }
}

/// A packet that arrives opens the window of its source, in whatever tile that is.
#[test]
fn tiles_agree_where_arrivals_open_windows() {
    let process = ("batch", "batch_packets = 1000\noutstanding_packets = 2".to_owned());
    tiles_agree(&Setup { process, load: 1.0, ..Setup::mesh(&[3, 3]) });
}

/// Terminals before `end` send to each other; the others are silent.
#[derive(Debug)]
struct Among {
    end: u32,
}

impl Pattern for Among {
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        (source.0 < self.end).then(|| TerminalId(stream.below(self.end)))
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let all = if source.0 < self.end { self.end } else { 0 };
        (0..all).map(|terminal| (TerminalId(terminal), 1.0 / f64::from(all))).collect()
    }
}

/// Counts the intervals that begin and those that end.
struct Counted {
    inner: Fixed,
    begun: u32,
    ended: u32,
}

impl Controller for Counted {
    fn interval_cycles(&mut self) -> u64 {
        self.begun += 1;
        self.inner.interval_cycles()
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.ended += 1;
        self.inner.interval_ended(interval)
    }
}

/// Where one half of the terminals sends ten times as much as the other, a run on several threads finds out, is cut anew and begins once more:
/// before its controller has heard of anything, and with the same result.
#[test]
fn a_run_that_is_cut_anew_by_its_work_has_the_same_result() {
    for setup in [Setup::mesh(&[8, 8]), Setup::fat_tree(4, 3), Setup { packet_flits: 1, ..Setup::torus(&[8, 8]) }] {
        let terminals = setup.network().terminal_count();
        for (busy, is_uneven) in [(terminals / 2, true), (terminals, false)] {
            let mut scenario = Setup { load: 0.03, paranoid: true, router: router(4, 8), ..setup.clone() }.build();
            let loaded = Setup { load: 0.4, ..setup.clone() }.build().classes.remove(0);
            scenario.classes.push(TrafficClass { pattern: Arc::new(Among { end: busy }), ..loaded });
            let run = |threads: usize| {
                let mut prepared = kasuri_flit::FlitEngine.prepare(&scenario).unwrap();
                prepared.use_threads(Threads::new(threads)).unwrap();
                let mut controller = Counted { inner: Fixed::new(400, 500), begun: 0, ended: 0 };
                let outcome = prepared.run(&mut controller).unwrap();
                (outcome, controller.begun - controller.ended)
            };
            let (whole, begun_twice) = run(1);
            assert!(whole.packet_latency.count > 100 && begun_twice == 0);
            for threads in [2, 3] {
                let (cut, begun_twice) = run(threads);
                assert_eq!(whole, cut, "{threads} threads, {:?}", setup.topology);
                assert_eq!(begun_twice, u32::from(is_uneven), "{threads} threads, {busy} busy of {:?}", setup.topology);
            }
        }
    }
}

/// The least run with mail both ways between two threads: so small that an interpreter gets through it.
#[test]
fn two_threads_agree_on_a_network_of_four_routers() {
    let setup = Setup { load: 0.5, packet_flits: 2, simd: "portable".to_owned(), router: router(2, 2), ..Setup::mesh(&[2, 2]) };
    let whole = run(&setup, 1, Fixed::new(10, 20));
    assert!(whole.packet_latency.count > 10);
    assert_eq!(run(&Setup { threads: 2, ..setup }, 2, Fixed::new(10, 20)), whole);
}
