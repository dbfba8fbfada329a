//! Output-queued routers: closed forms, fair turns, conservation, what full queues do, and other simulators of the same packets.

use crate::common::UntilDone;
use kasuri::engines::CyclesEngine;
use kasuri::input::KNOWN;
use kasuri::measure::{Fixed, Offer, controller};
use kasuri::plan::{self, RunOptions, Summary};
use kasuri_config::{Document, Preparation, Study};
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_network::network::Endpoint;
use kasuri_network::topology::Files;
use kasuri_packet::{Input, Options, Spray, simulate};
use kasuri_workload::ethernet::fabric::{Fabric, Tier};
use kasuri_workload::ethernet::matrix::{Begin, Connection, Matrix};
use proptest::prelude::*;
use std::process::Command;

/// Flows: source, destination, flits.
type Flows<'a> = &'a [(u32, u32, u32)];

/// A program in which all flows begin at once.
struct Program(String);

impl Files for Program {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().into_bytes())
    }
}

fn program(terminals: u32, flows: Flows<'_>) -> Program {
    let mut text = format!("num_ranks {terminals}\n");
    for rank in 0..terminals {
        text += &format!("rank {rank} {{\n");
        for (number, (source, destination, flits)) in flows.iter().enumerate() {
            if *source == rank {
                text += &format!("s{number}: send {flits}b to {destination} tag {number}\n");
            }
            if *destination == rank {
                text += &format!("r{number}: recv {flits}b from {source} tag {number}\n");
            }
        }
        text += "}\n";
    }
    Program(text)
}

fn study(text: &str, files: &dyn Files) -> Study {
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    let mut study =
        Preparation::new(&document, files, *KNOWN).study(&document.points().unwrap()[0]).unwrap_or_else(|error| panic!("{error}"));
    study.scenario.paranoid = true;
    study
}

/// A leaf of a tree: one switch and its terminals.
fn star(terminals: u32, network: &str, router: &str) -> String {
    format!(
        "[network]\ntopology = \"leaf-spine\"\nleaves = 1\nspines = 1\ndown = {terminals}\n{network}\n[routing]\nalgorithm = \"nca\"\n\
         [router]\narchitecture = \"output-queued\"\n{router}\n"
    )
}

const BYTES: &str = "flit_bytes = 1\ncycle_ns = 1";

fn flows_on(text: &str, terminals: u32, flows: Flows<'_>, packet_flits: u32) -> Outcome {
    let text = format!("{text}\n[workload]\ntrace = \"flows.goal\"\npacket_flits = {packet_flits}\n");
    CyclesEngine.run(&study(&text, &program(terminals, flows)).scenario, &mut UntilDone).unwrap()
}

/// The cycle in which each terminal has its last flit.
fn ends(outcome: &Outcome) -> &[u64] {
    assert_eq!(outcome.status, Status::Completed);
    &outcome.completion_cycles
}

/// One packet of F flits over R routers: stored, every channel takes F periods less one and its latency and a cycle, every router its own; cut
/// through, only one channel takes the flits.
#[test]
fn a_lone_packet_takes_the_cycles_of_its_formula() {
    for (flits, period, latency, router) in [(1, 1, 1, 0), (9, 1, 3, 7), (100, 4, 10, 40), (64, 3, 0, 1)] {
        for routers in [2_u64, 5] {
            let line = |switching: &str| {
                format!(
                    "[network]\ntopology = \"mesh\"\ndimensions = [{routers}]\nchannel_period = {period}\nchannel_latency = {latency}\n\
                     terminal_channel_period = {period}\nterminal_channel_latency = {latency}\n{BYTES}\n[routing]\nalgorithm = \"dimension-order\"\n\
                     [router]\narchitecture = \"output-queued\"\nlatency = {router}\nswitching = \"{switching}\"\n"
                )
            };
            let (long, hop) = ((flits - 1) * period, latency + 1);
            let stored = (routers + 1) * (long + hop) + routers * router;
            let cut = long + (routers + 1) * hop + routers * router;
            for (switching, expected) in [("store-and-forward", stored), ("virtual-cut-through", cut)] {
                let terminals = routers as u32;
                let outcome = flows_on(&line(switching), terminals, &[(0, terminals - 1, flits as u32)], flits as u32);
                assert_eq!((outcome.packet_latency.sum, outcome.hops.max), (expected as f64, routers), "{switching} {flits} {period}");
                assert_eq!(outcome.completion_time, Some((expected + 1) as f64));
            }
        }
    }
}

/// A packet from a slow channel into a fast one leaves behind its last flit: it takes the time of the slow channel alone.
#[test]
fn a_fast_channel_waits_for_the_flits_of_a_slow_one() {
    let network = |of_terminals: u64, between: u64| {
        format!(
            "[network]\ntopology = \"mesh\"\ndimensions = [2]\nchannel_period = {between}\nterminal_channel_period = {of_terminals}\n{BYTES}\n\
             [routing]\nalgorithm = \"dimension-order\"\n[router]\narchitecture = \"output-queued\"\nlatency = 0\n\
             switching = \"virtual-cut-through\"\n"
        )
    };
    for (of_terminals, between) in [(5, 1), (1, 5), (3, 2)] {
        let outcome = flows_on(&network(of_terminals, between), 2, &[(0, 1, 50)], 50);
        let slowest = of_terminals.max(between);
        assert_eq!(outcome.packet_latency.sum, (49 * slowest + 3 * 2) as f64, "{of_terminals} {between}");
    }
}

/// Everybody sends to one terminal: its channel works without a pause from the first packet on, so all have come after bytes over rate, whatever
/// queues do that lose nothing.
#[test]
fn an_incast_drains_at_the_rate_of_its_channel() {
    let senders = 7;
    let flows: Vec<_> = (1..=senders).map(|source| (source, 0, 1000)).collect();
    for (period, more) in [(1, ""), (3, ""), (1, "queue = \"pause\"\nqueue_flits = 250"), (2, "queue = \"pause\"\nqueue_flits = 100")] {
        let network = format!("terminal_channel_period = {period}\nterminal_channel_latency = 4\n{BYTES}");
        let outcome = flows_on(&star(8, &network, &format!("latency = 20\n{more}")), 8, &flows, 100);
        // The first packet is stored, then all flits follow each other.
        let first = 99 * period + 5 + 20;
        let last = first + (u64::from(senders) * 1000 - 1) * period + 5;
        assert_eq!(outcome.completion_time, Some((last + 1) as f64), "{more}");
        let queues = outcome.queues.unwrap();
        assert_eq!((queues.sent, queues.arrived, queues.dropped), (70, 70, 0));
        if more.is_empty() {
            assert_eq!(queues.pauses, 0);
            assert!(queues.most_flits > 5000, "{queues:?}");
        } else {
            // Of each input no more than the limit, the packet that exceeds it, and the flits of a round trip of the pause.
            assert!(queues.pauses > 0 && queues.most_flits <= 7 * (250 + 2 * 100 + 10 / period), "{queues:?}");
        }
    }
}

/// Two messages of k packets each from one terminal: in turns they end a packet apart, one after the other the first ends in half the time.
#[test]
fn messages_of_a_terminal_take_turns() {
    let flows = [(0, 1, 1000), (0, 2, 1000), (0, 3, 50)];
    let path = 5 + 20 + 5 - 1;
    let arrives = |sent: u64, packet: u64| sent + packet + path;
    for (turns, expected) in [
        // The short message is third in the first round; then the others alternate.
        ("packet", [arrives(1950, 100), arrives(2050, 100), arrives(250, 50)]),
        ("message", [arrives(1000, 100), arrives(2000, 100), arrives(2050, 50)]),
    ] {
        let network = format!("terminal_channel_latency = 4\n{BYTES}");
        let outcome = flows_on(&star(4, &network, &format!("latency = 20\nsource_turns = \"{turns}\"")), 4, &flows, 100);
        assert_eq!(ends(&outcome)[1..], expected, "{turns}");
    }
}

/// Packets dropped by a full queue are resent until they have arrived: sent packets are the arrived and the dropped ones.
#[test]
fn dropped_packets_are_resent_until_they_arrive() {
    let flows: Vec<_> = (1..8).map(|source| (source, 0, 2000)).collect();
    let run = |queue_flits: u32| {
        let router = format!("latency = 5\nqueue = \"drop\"\nqueue_flits = {queue_flits}\nresend_after = 700");
        flows_on(&star(8, BYTES, &router), 8, &flows, 100)
    };
    let unlimited = flows_on(&star(8, BYTES, "latency = 5"), 8, &flows, 100).completion_time.unwrap();
    let mut losses = Vec::new();
    for queue_flits in [100, 400, 20_000] {
        let outcome = run(queue_flits);
        assert_eq!(outcome.status, Status::Completed);
        let queues = outcome.queues.unwrap();
        assert_eq!(queues.arrived, 140);
        assert_eq!((queues.sent, queues.dropped), (140 + queues.dropped, queues.resent));
        assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), 14_000);
        assert!(queues.most_flits <= u64::from(queue_flits));
        assert!(outcome.completion_time.unwrap() >= unlimited);
        losses.push(queues.dropped);
    }
    assert!(losses[0] > losses[1] && losses[1] > 0 && losses[2] == 0, "{losses:?}");
}

/// Open traffic into a queue of one packet loses the excess over the channel's rate for good; all packets are accounted for.
#[test]
fn open_traffic_may_lose_packets_for_good() {
    let text = star(4, "", "queue = \"drop\"\nqueue_flits = 2")
        + "[traffic]\npattern = \"hotspot\"\nterminals = [0]\nload = 0.5\npacket_flits = 2\n[measure]\nwarmup = 1000\ncycles = 20000\n";
    let study = study(&text, &Program(String::new()));
    let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
    let queues = outcome.queues.unwrap();
    assert!(queues.dropped > 1000 && queues.resent == 0, "{queues:?}");
    // 4 x 0.5 flits a cycle want to a terminal that takes one.
    let accepted = outcome.accepted_flits[0] as f64 / outcome.measured_cycles as f64;
    assert!(accepted > 0.75 && accepted <= 1.0, "{accepted}");
}

/// A ring with terminals that all send half-way round fills up when queues are short: each channel is paused for the next. Without bounds
/// it runs.
#[test]
fn a_circle_of_paused_channels_is_found() {
    let ring = |queue: &str| {
        format!(
            "[network]\ntopology = \"torus\"\ndimensions = [6]\n{BYTES}\n[routing]\nalgorithm = \"dimension-order\"\nallow_deadlock = true\n\
             [router]\narchitecture = \"output-queued\"\n{queue}\n"
        )
    };
    let flows: Vec<_> = (0..6).map(|source| (source, (source + 3) % 6, 4000)).collect();
    assert_eq!(flows_on(&ring(""), 6, &flows, 50).status, Status::Completed);
    let paused = ring("queue = \"pause\"\nqueue_flits = 50");
    let text = format!("{paused}\n[workload]\ntrace = \"flows.goal\"\npacket_flits = 50\n");
    let study = study(&text, &program(6, &flows));
    let outcome = CyclesEngine.run(&study.scenario, &mut UntilDone).unwrap();
    assert_eq!(outcome.status, Status::Deadlock);
    let network = &study.scenario.network;
    assert!(outcome.deadlock.len() >= 6, "{:?}", outcome.deadlock);
    for (place, &(channel, _)) in outcome.deadlock.iter().enumerate() {
        // Each channel ends where the next begins.
        let next = outcome.deadlock[(place + 1) % outcome.deadlock.len()].0;
        let (router, _) = network.input_port(channel);
        assert!(network.endpoint_name(network.source(next)).starts_with(&network.router_name(router)), "{channel:?} {next:?}");
    }
}

/// Slots of one flit, N inputs, uniform destinations: the mean wait in the queue of an output is (N - 1)/N x p/(2 (1 - p)) (Karol, Hluchyj and
/// Morgan, IEEE Trans. Commun. 35, 1987), and the switch takes any load below 1.
#[test]
fn a_switch_with_queues_at_its_outputs_waits_as_the_formula_says() {
    for load in [0.5, 0.8, 0.9] {
        let terminals = 16;
        let text = star(terminals, "", "latency = 0")
            + &format!(
                "[traffic]\npattern = \"uniform\"\ninclude_self = true\nload = {load}\npacket_flits = 1\n[measure]\nwarmup = 20000\ncycles = 200000\n"
            );
        let study = study(&text, &Program(String::new()));
        let mut controller = Fixed::new(Offer::of(&study.scenario), Some(20_000), 200_000, 1_000_000);
        let outcome = CyclesEngine.run(&study.scenario, &mut controller).unwrap();
        let inputs = f64::from(terminals);
        let expected = (inputs - 1.0) / inputs * load / (2.0 * (1.0 - load));
        // Two channels of latency 1, a flit a cycle: no packet waits at the source.
        let wait = outcome.packet_latency.mean().unwrap() - 4.0;
        assert!((wait / expected - 1.0).abs() < 0.03, "load {load}: {wait}, not {expected}");
    }
}

/// Where each channel has one source's packets and virtual channels are many, buffers never matter: the flit engine has every packet's latency.
/// (Stored packets of several lengths would share a channel flit by flit there.)
#[test]
fn undisturbed_packets_take_their_flit_level_time() {
    let mixed = "[{ flits = 2, weight = 0.5 }, { flits = 7, weight = 0.5 }]";
    for (switching, packet_flits) in [("virtual-cut-through", mixed), ("store-and-forward", "4")] {
        let text = |router: &str| {
            format!(
                "[network]\ntopology = \"full-mesh\"\nrouters = 7\nconcentration = 1\nchannel_latency = 3\n[routing]\nalgorithm = \"minimal\"\n\
                 [router]\nswitching = \"{switching}\"\n{router}\n[traffic]\npattern = \"random-permutation\"\nload = 0.6\n\
                 packet_flits = {packet_flits}\n[measure]\nwarmup = 500\ncycles = 5000\n"
            )
        };
        let outcome = |router: &str| {
            let study = study(&text(router), &Program(String::new()));
            CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap()
        };
        let queued = outcome("architecture = \"output-queued\"");
        let flits = outcome("virtual_channels = 16\nbuffer_flits = 64");
        assert!(queued.packet_latency.count > 3000);
        assert_eq!(queued.hops, flits.hops);
        assert_eq!(queued.packet_latency.buckets, flits.packet_latency.buckets, "{switching}");
        // A packet counts as a whole where it begins to leave: at the edges of the measurement at most one is counted differently.
        let apart = |(one, other): (&u64, &u64)| one.abs_diff(*other);
        assert!(queued.channel_flits.iter().zip(&flits.channel_flits).map(apart).all(|flits| flits < 14));
    }
}

/// A fabric of two tiers at 400 Gbit/s, and the same flows by the Ethernet fabrics' own engine: bytes are flits, and a cycle is a byte's 20 ps.
#[test]
fn flows_end_when_they_end_in_the_simulator_of_ethernet_fabrics() {
    let (mtu, header) = (4150_u32, 64);
    let tier = |down, up| Tier { down, up, bundle: 1, rate_gbps: 400, link_latency_ns: 100, switch_latency_ns: 200 };
    let fabric = Fabric { hosts: 16, pod_hosts: 16, tiers: vec![tier(4, 4), tier(4, 0)] };
    let text = "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 4\ndown = 4\nflit_bytes = 1\nrate = \"400 Gbit/s\"\nlatency = \"100 ns\"\n\
         terminal_latency = \"100 ns\"\n[routing]\nalgorithm = \"ecmp\"\n[router]\narchitecture = \"output-queued\"\nlatency = \"200 ns\"\n";
    let lone = [(0, 15, 1)];
    let within = [(0, 3, 1)];
    let incast: Vec<_> = (1..4).map(|source| (source, 0, 12)).chain([(4, 0, 12)]).collect();
    for (flows, packets_each) in [(&lone[..], 1), (&lone[..], 40), (&within[..], 7), (&incast[..], 12)] {
        let connections = flows.iter().zip(1..).map(|(&(source, destination, _), id)| Connection {
            id,
            source,
            destination,
            bytes: u64::from(packets_each * (mtu - header)),
            begin: Begin::At(0),
            tells: None,
        });
        let matrix = Matrix { hosts: 16, connections: connections.collect(), triggers: Vec::new() };
        let options = Options { spray: Spray::Hash, paths: 1, ..Options::default() };
        let theirs = simulate(&Input { fabric: &fabric, matrix: &matrix, options }).unwrap();
        let last = theirs.flows.iter().map(|flow| flow.received.unwrap()).max().unwrap();
        let flows: Vec<_> = flows.iter().map(|&(source, destination, _)| (source, destination, packets_each * mtu)).collect();
        let ours = flows_on(text, 16, &flows, mtu);
        // A program that waits for the last byte continues in the cycle after it.
        assert_eq!((ours.completion_time.unwrap() - 1.0) * 20.0, last as f64, "{flows:?}");
    }
}

/// The keys of the store and the columns; the same bits on any number of jobs and threads.
fn run(text: &str, options: &RunOptions) -> Result<Summary, String> {
    let document = Document::parse_for(*KNOWN, "test.toml", text).map_err(|error| error.to_string())?;
    plan::run(&document, &kasuri_network::topology::NoFiles, options).map_err(|error| error.to_string())
}

#[test]
fn rows_report_queues_and_do_not_depend_on_threads() {
    let text = "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 2\ndown = 4\n[routing]\nalgorithm = \"ecmp\"\npolicy = \"random\"\n\
        [router]\narchitecture = \"output-queued\"\nqueue = \"drop\"\nqueue_flits = 12\nresend_after = 100\n\
        [workload]\ncollective = \"alltoall\"\nmessage_flits = 30\npacket_flits = 4\n[sweep]\n\"measure.seed\" = [1, 2, 3]\n";
    let row = |options: RunOptions| -> Vec<_> {
        let summary = run(text, &options).unwrap();
        let names =
            ["key", "completion_time", "packets_sent", "packets_dropped", "packets_late", "packet_latency_p99", "channel_utilisation_max"];
        summary.rows.iter().map(|row| names.map(|name| row.get(name).clone())).collect()
    };
    let one = row(RunOptions { jobs: Some(1), ..RunOptions::default() });
    assert_eq!(one, row(RunOptions { jobs: Some(3), paranoid: true, ..RunOptions::default() }));
    assert!(one.iter().all(|row| row[3].as_u64().unwrap() > 0 && row[4].as_u64().unwrap() > 0), "{one:?}");
}

/// Wrong keys are refused with what would be right.
#[test]
fn impossible_output_queued_routers_are_refused() {
    let base = |router: &str, more: &str| {
        star(4, BYTES, router)
            + &if more.is_empty() { "[traffic]\npattern = \"uniform\"\nload = 0.1\npacket_flits = 8\n".to_owned() } else { more.to_owned() }
    };
    let closed = "[workload]\ncollective = \"alltoall\"\nmessage_flits = 4\n";
    for (router, more, wanted) in [
        ("switching = \"wormhole\"", "", "queues at outputs take whole packets"),
        ("virtual_channels = 2", "", "router.virtual_channels"),
        ("buffer_flits = 9", "", "no virtual channels, input buffers or credits"),
        ("buffer_policy = \"shared\"", "", "router.buffer_policy: has no meaning for output-queued routers"),
        ("queue = \"drop\"", "", "router.queue_flits: is missing"),
        ("queue = \"pause\"\nqueue_flits = 0", "", "is 0"),
        ("queue = \"pause\"\nqueue_flits = 7", "", "set queue_flits = 8 or more"),
        ("queue_flits = 70", "", "bounds queues that are unlimited"),
        ("queue = \"pause\"\nqueue_flits = 70\nresend_after = 5", "", "packets that are lost, and none is"),
        ("queue = \"drop\"\nqueue_flits = 70\nresend_after = \"later\"", "", "router.resend_after: is \"later\"; a time is a number"),
        ("queue = \"drop\"\nqueue_flits = 70\nresend_after = -3", "", "it must be a whole number, 0 or more, or a string"),
        ("queue = \"lossy\"", "", "router.queue"),
        ("latency = \"5 parsec\"", "", "a time is a number and ps, ns, us or ms"),
        ("latency = 5\npipeline = [\"RC\", \"VA\", \"SA\", \"ST\"]", "", "conflicts with pipeline"),
        ("latency = -1", "", "router.latency"),
        ("queue = \"drop\"\nqueue_flits = 70", closed, "would never be complete"),
        ("", "[flit]\nlayout = \"full\"\n[traffic]\npattern = \"uniform\"\nload = 0.1\n", "output-queued routers do not go with layouts"),
        (
            "",
            "[[user]]\nname = \"a\"\nnodes = 2\ntraffic = { pattern = \"uniform\", load = 0.1 }\n",
            "output-queued routers do not go with several users",
        ),
    ] {
        let error = run(&base(router, more), &RunOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.contains(wanted) && !error.contains("port_buffer_flits"), "{router} {more}: {error}");
    }
    let other = base("", "").replace("architecture = \"output-queued\"", "queue = \"drop\"\nqueue_flits = 90");
    let error = run(&other, &RunOptions::default()).map(|_| ()).unwrap_err();
    assert!(error.contains("belongs to architecture = \"output-queued\""), "{error}");
}

/// Answered requests, batches with windows and open traffic in the background of a workload end as on other engines, and no packet is left
/// inside.
#[test]
fn answers_windows_and_background_traffic_complete() {
    for (more, packets) in [
        ("[traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 20\noutstanding_packets = 2\npacket_flits = 3\n", 8 * 20),
        (
            "[traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 20\npacket_flits = 3\nreply = { packet_flits = 2 }\n",
            2 * 8 * 20,
        ),
        (
            "[traffic]\npattern = \"uniform\"\nload = 0.2\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 12\npacket_flits = 5\n",
            8 * 7 * 3,
        ),
    ] {
        let study = study(&(star(8, BYTES, "") + more), &Program(String::new()));
        let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
        assert_eq!((outcome.status, outcome.packet_latency.count), (Status::Completed, packets), "{more}");
        assert_eq!(outcome.background.is_some(), more.contains("workload"));
    }
}

/// Two leaves with a terminal each, two spines, and a failure.
fn failing(faults: &str, router: &str) -> String {
    format!(
        "[network]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\ndown = 1\nchannel_latency = 6\nterminal_channel_latency = 6\n{BYTES}\n\
         [routing]\nalgorithm = \"ecmp\"\n[router]\narchitecture = \"output-queued\"\nlatency = 15\n{router}\n[faults]\n{faults}\n"
    )
}

/// The link on a message's path dies while it crosses: packets on the link, and those sent until the leaf notices, are lost and resent
/// after the time-out, by the other spine. Packet i begins to leave the leaf in cycle b = i F + F + L + D.
#[test]
fn a_message_over_a_dying_link_takes_its_computed_time() {
    let (flits, latency, router, packets) = (20_u64, 6, 15, 30_u64);
    let flow = [(0, 1, (flits * packets) as u32)];
    let path = 4 * (flits + latency) + 3 * router;
    let alone = (packets - 1) * flits + path + 1;
    let whole = flows_on(&failing("", ""), 2, &flow, flits as u32);
    assert_eq!(whole.completion_time, Some(alone as f64));
    for (fails, knows, resend) in [(200_u64, 0_u64, 2000_u64), (200, 75, 2000), (351, 1, 900), (400, 100, 30), (5000, 10, 10)] {
        let mut hit = 0;
        for spine in [2, 3] {
            let faults = format!("links = [\"0 {spine}\"]\nat = {fails}\ndetect_after = {knows}\nresend_after = {resend}");
            let outcome = flows_on(&failing(&faults, ""), 2, &flow, flits as u32);
            let queues = outcome.queues.unwrap();
            assert_eq!(queues.sent, packets + queues.resent);
            assert_eq!((queues.lost, queues.arrived), (Some(queues.resent), packets));
            if queues.resent == 0 {
                assert_eq!(outcome.completion_time, Some(alone as f64));
                continue;
            }
            hit += 1;
            // When each lost packet is lost, in their order.
            let begins = |packet: u64| packet * flits + flits + latency + router;
            let is_lost = |packet: &u64| begins(*packet) < fails + knows && begins(*packet) + flits + latency > fails;
            let lost: Vec<u64> = (0..packets).filter(is_lost).map(|packet| begins(packet).max(fails)).collect();
            assert_eq!(queues.resent, lost.len() as u64, "fails at {fails}, known after {knows}");
            // The source sends new packets one after the other, and those that were lost before them, each once it may.
            let (mut now, mut new, mut again, mut end) = (0, 0, std::collections::VecDeque::from(lost), 0);
            while new < packets || !again.is_empty() {
                if again.front().is_some_and(|lost| lost + resend <= now) {
                    again.pop_front();
                } else if new < packets {
                    new += 1;
                } else {
                    now = now.max(again.pop_front().unwrap() + resend);
                }
                end = now + path;
                now += flits;
            }
            assert_eq!(outcome.completion_time, Some((end + 1) as f64), "fails at {fails}, known after {knows}, again after {resend}");
        }
        assert_eq!(hit, usize::from(fails < 1000), "the message takes one of the two spines");
    }
}

/// A link is down for a while: packets that begin to leave the leaf in between go by the other spine, all others by it, the one that was on it
/// once more. Packet i begins in cycle b = i F + F + L + D.
#[test]
fn a_recovered_link_is_used_again() {
    let (flits, latency, router, packets) = (20_u64, 6, 15, 30_u64);
    let flow = [(0, 1, (flits * packets) as u32)];
    let mut hit = 0;
    for spine in [2, 3] {
        let faults = format!("links = [\"0 {spine}\"]\nat = 200\nuntil = 400\nresend_after = 2000");
        let text = failing(&faults, "");
        let network =
            study(&format!("{text}[workload]\ncollective = \"alltoall\"\nmessage_flits = 4\n"), &Program(String::new())).scenario.network;
        let outcome = flows_on(&text, 2, &flow, flits as u32);
        let lost = outcome.queues.unwrap().lost;
        if lost == Some(0) {
            continue;
        }
        hit += 1;
        let begins = |packet: u64| packet * flits + flits + latency + router;
        let by_link = (0..packets).filter(|&packet| !(200..400).contains(&begins(packet))).count() as u64;
        let sent_to = |spine: u32| -> u64 {
            let leads_there = |channel: &ChannelId| {
                matches!(network.source(*channel), Endpoint::Router(RouterId(0), _))
                    && matches!(network.destination(*channel), Endpoint::Router(RouterId(to), _) if to == spine)
            };
            network.router_channels().filter(leads_there).map(|channel| outcome.channel_flits[channel.index()]).sum()
        };
        assert_eq!(lost, Some(1));
        assert_eq!((sent_to(spine), sent_to(5 - spine)), ((by_link + 1) * flits, (packets - by_link) * flits));
    }
    assert_eq!(hit, 1, "the message takes one of the two spines");
}

/// For any failure and any switching, each packet is sent, arrived or lost (`paranoid` counts at every interval), and all arrive in the
/// end.
#[test]
fn packets_are_conserved_whatever_dies() {
    for router in [
        "",
        "switching = \"virtual-cut-through\"",
        "switching = \"virtual-cut-through\"\nqueue = \"pause\"\nqueue_flits = 30",
        "queue = \"drop\"\nqueue_flits = 40\nresend_after = 300",
    ] {
        for (faults, policy) in [
            ("routers = [5]", "random"),
            ("links = [\"0 4\", \"1 6\"]", "flow-hash"),
            ("link_count = 3\nseed = 5", "random"),
            ("routers = [5]\nuntil = 700", "random"),
            ("links = [\"0 4\", \"1 6\"]\nuntil = 500", "flow-hash"),
        ] {
            let text = format!(
                "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 4\n{BYTES}\n[routing]\nalgorithm = \"ecmp\"\npolicy = \"{policy}\"\n\
                 [router]\narchitecture = \"output-queued\"\nlatency = 4\n{router}\n[faults]\n{faults}\nat = 400\ndetect_after = 150\n\
                 resend_after = 500\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 100\npacket_flits = 10\n"
            );
            let study = study(&text, &Program(String::new()));
            let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
            let queues = outcome.queues.unwrap();
            let lost = queues.lost.unwrap();
            assert_eq!((outcome.status, queues.arrived), (Status::Completed, 16 * 15 * 10), "{router} {faults}");
            assert_eq!(queues.sent, queues.arrived + queues.dropped + lost, "{router} {faults}");
            assert_eq!(queues.resent, queues.dropped + lost);
            assert!(lost > 0, "{router} {faults}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Links fail for less time than a packet needs to cross them, so packets follow lost ones that would still be on their path. Between
    /// terminals of different leaves a packet takes four channels and three routers: no packet is faster than a lone one, all are delivered
    /// in the end, and channels that pause others recover.
    #[test]
    fn short_failures_hasten_and_stop_nothing(
        (leaves, spines, latency, router) in (2_u64..6, 2_u32..4, 0_u64..30, 0_u64..6),
        (flits, packets) in (1_u64..12, 1_u64..12),
        (links, seed, at, length) in (1_u32..3, 0_u32..1000, 1_u64..300, 1_u64..20),
        (detect, resend) in (0_u32..3, 1_u32..60),
        stores in any::<bool>(),
        queue in 0_usize..3,
    ) {
        let hop = latency + 1;
        let lone = if stores { 4 * (flits - 1 + hop) } else { flits - 1 + 4 * hop } + 3 * router;
        let switching = ["virtual-cut-through", "store-and-forward"][usize::from(stores)];
        let queue_flits = 3 * flits;
        let queue = [
            String::new(),
            format!("queue = \"pause\"\nqueue_flits = {queue_flits}"),
            format!("queue = \"drop\"\nqueue_flits = {queue_flits}\nresend_after = 40"),
        ][queue].clone();
        let text = format!(
            "[network]\ntopology = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\ndown = 1\nchannel_latency = {latency}\n\
             terminal_channel_latency = {latency}\n{BYTES}\n[routing]\nalgorithm = \"ecmp\"\npolicy = \"random\"\n[router]\n\
             architecture = \"output-queued\"\nlatency = {router}\nswitching = \"{switching}\"\n{queue}\n[faults]\n\
             link_count = {}\nseed = {seed}\nat = {at}\nuntil = {}\ndetect_after = {detect}\nresend_after = {resend}\n\
             [workload]\ncollective = \"alltoall\"\nmessage_flits = {}\npacket_flits = {flits}\n",
            links.min(spines - 1), at + length, packets * flits,
        );
        let study = study(&text, &Program(String::new()));
        let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let queues = outcome.queues.unwrap();
        prop_assert_eq!((outcome.status, queues.arrived), (Status::Completed, leaves * (leaves - 1) * packets), "{}", text);
        prop_assert_eq!(queues.resent, queues.dropped + queues.lost.unwrap());
        prop_assert!(outcome.packet_latency.min >= lone, "a packet takes {} cycles for {lone}\n{text}", outcome.packet_latency.min);
    }
}

/// A spine that is down at the beginning and comes up later loses nothing, and is used from then on.
#[test]
fn components_failed_at_first_are_used_after_recovery() {
    let text = |faults: &str| {
        format!(
            "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 2\ndown = 4\n{BYTES}\n[routing]\nalgorithm = \"ecmp\"\npolicy = \"random\"\n\
             [router]\narchitecture = \"output-queued\"\nlatency = 4\n{faults}\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 100\n\
             packet_flits = 10\n"
        )
    };
    let run = |faults: &str| {
        let study = study(&text(faults), &Program(String::new()));
        let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
        let of_spine = study
            .scenario
            .network
            .router_channels()
            .filter(|&channel| matches!(study.scenario.network.source(channel), Endpoint::Router(RouterId(5), _)));
        (
            outcome.completion_time.unwrap(),
            of_spine.map(|channel| outcome.channel_flits[channel.index()]).sum::<u64>(),
            outcome.queues.unwrap().lost,
        )
    };
    let (whole, down, mended) = (run(""), run("[faults]\nrouters = [5]"), run("[faults]\nrouters = [5]\nuntil = 1000\nresend_after = 9"));
    assert!(down.1 == 0 && mended.1 > whole.1 / 4 && mended.1 < whole.1, "{whole:?} {mended:?}");
    assert!(mended.0 > whole.0 && mended.0 < down.0, "{whole:?} {down:?} {mended:?}");
    assert_eq!(mended.2, Some(0));
}

/// Open traffic loses the packets of the failure, and continues on the remaining network at the same rate.
#[test]
fn open_traffic_continues_on_the_remaining_network() {
    let text = "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 4\ndown = 4\n[routing]\nalgorithm = \"ecmp\"\npolicy = \"random\"\n\
        [router]\narchitecture = \"output-queued\"\n[faults]\nrouters = [7]\nat = 3000\ndetect_after = 200\n\
        [traffic]\npattern = \"uniform\"\nload = 0.5\npacket_flits = 4\n[measure]\nwarmup = 4000\ncycles = 10000\n";
    let study = study(text, &Program(String::new()));
    let outcome = CyclesEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
    let lost = outcome.queues.unwrap().lost.unwrap() as f64;
    // A quarter of the upward packets, 12/15 of 16 x 0.5/4 packets a cycle, for 200 cycles, and those on the way.
    let expected = 0.25 * 0.8 * 16.0 * 0.125 * 200.0;
    assert!(lost > 0.8 * expected && lost < 1.4 * expected, "{lost}, not about {expected}");
    let accepted = outcome.accepted_flits.iter().sum::<u64>() as f64 / outcome.measured_cycles as f64 / 16.0;
    assert!((accepted / 0.5 - 1.0).abs() < 0.02, "{accepted}");
    // Nothing is sent to the dead spine once that is known.
    let network = &study.scenario.network;
    let dead = &study.scenario.failure.as_ref().unwrap().epochs[0].channels;
    assert_eq!(dead.len(), 8);
    assert!(dead.iter().all(|channel| outcome.channel_flits[channel.index()] == 0), "{}", network.name());
}

#[test]
fn failures_that_cannot_be_are_refused() {
    let closed = "[workload]\ncollective = \"alltoall\"\nmessage_flits = 4\n";
    let open = "[traffic]\npattern = \"uniform\"\nload = 0.1\n";
    for (faults, more, wanted) in [
        ("links = [\"0 2\"]\nat = 0", open, "is 0; leave it out"),
        ("links = [\"0 2\"]\nat = 50\nuntil = 50", open, "faults.until: is cycle 50; it must be after at, cycle 50"),
        ("links = [\"0 2\"]\nat = \"soon\"", open, "faults.at"),
        ("links = [\"0 2\"]\ndetect_after = 5", open, "say when with at"),
        ("links = [\"0 2\"]\nresend_after = 5", open, "say when with at"),
        ("links = [\"0 2\", \"0 3\"]\nat = 50", open, "cut the network"),
        ("links = [\"0 2\"]\nat = 50", closed, "would never be complete"),
    ] {
        let error = run(&(failing(faults, "") + more), &RunOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.contains(wanted), "{faults}: {error}");
    }
    let lost_for_good =
        (failing("links = [\"0 2\"]\nat = 50", "") + closed).replace("architecture = \"output-queued\"\nlatency = 15\n", "");
    let error = run(&lost_for_good, &RunOptions::default()).map(|_| ()).unwrap_err();
    assert!(error.contains("faults.resend_after") && error.contains("would never be complete"), "{error}");
    for engine in ["flow", "analysis"] {
        let text = (failing("links = [\"0 2\"]\nat = 50", "") + open).replace("architecture = \"output-queued\"\nlatency = 15\n", "");
        let error = run(&format!("engine = \"{engine}\"\n{text}"), &RunOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.contains("faults.at") && error.contains("fail during the run"), "{engine}: {error}");
    }
}

/// A full mesh of four with two failed links is a ring, with paths of two hops that can deadlock where queues pause their channels. In a
/// sweep each remaining network is checked, not only the first.
#[test]
fn the_network_after_a_failure_must_not_deadlock() {
    let text = "[network]\ntopology = \"full-mesh\"\nrouters = 4\n[routing]\nalgorithm = \"minimal\"\n\
        [router]\narchitecture = \"output-queued\"\nswitching = \"virtual-cut-through\"\nqueue = \"pause\"\nqueue_flits = 8\n\
        [traffic]\npattern = \"uniform\"\nload = 0.1\npacket_flits = 4\n[measure]\ncycles = 500\n\
        [[sweep.case]]\nfaults = { links = [\"0 2\"], at = 100, resend_after = 50 }\n";
    let ring = "[[sweep.case]]\nfaults = { links = [\"0 2\", \"1 3\"], at = 100, resend_after = 50 }\n";
    run(text, &RunOptions::default()).unwrap();
    let error = run(&format!("{text}{ring}"), &RunOptions::default()).map(|_| ()).unwrap_err();
    assert!(error.contains("from cycle 100 on: possible deadlock"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.toml"), format!("{text}{ring}")).unwrap();
    let checked = Command::new(env!("CARGO_BIN_EXE_kasuri")).args(["check", "ring.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.code() == Some(2) && said.contains("  from cycle 100 on: possible deadlock"), "{said}");
    assert!(said.contains("  from cycle 100 on: no deadlock"), "{said}");
}
