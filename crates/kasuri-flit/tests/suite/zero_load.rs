//! One packet alone in the network takes exactly the cycles of the formula, for every number of hops.

use crate::common::{Setup, Single, ToTheEnd};
use kasuri_model::engine::{Engine, Status};
use kasuri_model::router::{PipelineEntry, RouterParameters};
use kasuri_network::id::TerminalId;
use std::sync::Arc;

/// Network latency and hops of one packet from terminal 0.
fn single(setup: &Setup, destination: u32) -> (u64, u64) {
    let mut scenario = setup.build();
    scenario.classes[0].pattern = Arc::new(Single { source: TerminalId(0), destination: TerminalId(destination) });
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut ToTheEnd).unwrap();
    assert_eq!((outcome.status, outcome.network_latency.count), (Status::Completed, 1));
    assert_eq!(outcome.packet_latency, outcome.network_latency, "nobody waits at the source");
    (outcome.network_latency.max, outcome.hops.max)
}

/// Cycles by which the last of M flits falls behind the head at one flit a cycle, when B flits may be on the way until the first
/// credit is back after RTT cycles: bursts of B flits, one burst each RTT.
fn credit_stall(packet_flits: u32, buffer_flits: u32, round_trip: u32) -> u32 {
    let last = packet_flits - 1;
    if buffer_flits >= round_trip { 0 } else { last / buffer_flits * round_trip + last % buffer_flits - last }
}

struct Case {
    pipeline: [(&'static str, u32); 4],
    speculative: bool,
    lookahead: bool,
    buffer_flits: u32,
    credit_delay: u32,
    packet_flits: u32,
    channel_latency: u32,
}

const PLAIN: Case = Case {
    pipeline: [("RC", 1), ("VA", 1), ("SA", 1), ("ST", 1)],
    speculative: false,
    lookahead: false,
    buffer_flits: 8,
    credit_delay: 0,
    packet_flits: 5,
    channel_latency: 1,
};

impl Case {
    fn setup(&self, topology: Setup) -> Setup {
        let stage = |&(stage, cycles): &(&str, u32)| PipelineEntry::Timed { stage: stage.to_owned(), cycles };
        let router = RouterParameters {
            virtual_channels: 4,
            buffer_flits: self.buffer_flits,
            pipeline: self.pipeline.iter().map(stage).collect(),
            speculative: self.speculative,
            lookahead: self.lookahead,
            credit_delay: self.credit_delay,
            ..RouterParameters::default()
        };
        let mut setup = Setup { router, packet_flits: self.packet_flits, ..topology };
        setup.channels.channel_latency = kasuri_network::topology::PerDimension::All(self.channel_latency);
        setup.batch(1)
    }

    /// 1 + L_injection + R P + (R - 1) L + L_ejection + (M - 1) + stall, with P = RC + VA + SA + ST (VA and SA at once if
    /// speculative, RC in no time with lookahead) and a credit loop of ST + 2 L + 2 + credit delay cycles on the channel.
    fn expected(&self, routers: u32) -> u64 {
        let cycles = self.pipeline.map(|(_, cycles)| cycles);
        let per_router = if self.lookahead { 0 } else { cycles[0] }
            + if self.speculative { cycles[1].max(cycles[2]) } else { cycles[1] + cycles[2] }
            + cycles[3];
        let round_trip = |latency: u32| cycles[3] + 2 * latency + 2 + self.credit_delay;
        // With one router there is no channel but that to the terminal.
        let slowest = if routers > 1 { round_trip(self.channel_latency).max(round_trip(1)) } else { round_trip(1) };
        let stall = credit_stall(self.packet_flits, self.buffer_flits, slowest);
        u64::from(1 + 1 + routers * per_router + (routers - 1) * self.channel_latency + 1 + self.packet_flits - 1 + stall)
    }

    fn check(&self, topology: fn() -> Setup, destinations: &[(u32, u32)]) {
        let setup = self.setup(topology());
        for &(destination, routers) in destinations {
            let what = format!("{:?}, buffers {}, to {destination}", self.pipeline, self.buffer_flits);
            assert_eq!(single(&setup, destination), (self.expected(routers), u64::from(routers)), "{what}");
        }
    }
}

/// Destinations in the 8x8 mesh at every distance from terminal 0, with the routers on the way.
fn every_distance_in_the_mesh() -> Vec<(u32, u32)> {
    (0..8).map(|x| (x, x + 1)).chain((1..8).map(|y| (8 * y + 7, 8 + y))).collect()
}

fn cases() -> Vec<Case> {
    vec![
        PLAIN,
        Case { packet_flits: 1, ..PLAIN },
        Case { lookahead: true, ..PLAIN },
        Case { speculative: true, ..PLAIN },
        Case { speculative: true, lookahead: true, ..PLAIN },
        Case { pipeline: [("RC", 2), ("VA", 1), ("SA", 1), ("ST", 1)], ..PLAIN },
        Case { pipeline: [("RC", 1), ("VA", 1), ("SA", 1), ("ST", 3)], ..PLAIN },
        Case { pipeline: [("RC", 1), ("VA", 2), ("SA", 1), ("ST", 2)], ..PLAIN },
        Case { buffer_flits: 2, ..PLAIN },
        Case { buffer_flits: 4, credit_delay: 2, ..PLAIN },
        Case { buffer_flits: 1, packet_flits: 3, ..PLAIN },
        Case { buffer_flits: 3, packet_flits: 17, ..PLAIN },
    ]
}

#[test]
fn a_packet_alone_in_a_mesh_takes_the_cycles_of_the_formula() {
    for case in cases() {
        case.check(|| Setup::mesh(&[8, 8]), &every_distance_in_the_mesh());
    }
}

/// Channels of latency 2, and the shorter direction around the ring.
#[test]
fn a_packet_alone_in_a_torus_takes_the_cycles_of_the_formula() {
    for case in cases() {
        Case { channel_latency: 2, ..case }.check(|| Setup::torus(&[7, 7]), &[(0, 1), (1, 2), (3, 4), (6, 2), (4, 4), (24, 7), (48, 3)]);
    }
}

/// Up and down again: 1, 3 or 5 routers.
#[test]
fn a_packet_alone_in_a_fat_tree_takes_the_cycles_of_the_formula() {
    for case in cases() {
        case.check(|| Setup::fat_tree(4, 3), &[(1, 1), (4, 3), (15, 3), (16, 5), (63, 5)]);
    }
}
