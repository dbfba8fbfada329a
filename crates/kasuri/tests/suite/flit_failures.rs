//! Links and routers that fail while flits are on them: closed forms, conservation in every kind of router, and the traffic afterwards.

use crate::common::UntilDone;
use kasuri::input::KNOWN;
use kasuri::measure::{Measurement, controller};
use kasuri_config::{Document, Preparation, Study};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Losses, Outcome, Status, Threads};
use kasuri_network::topology::Files;
use proptest::prelude::*;

/// The program that a test runs, whatever the path.
struct Program(String);

impl Files for Program {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().into_bytes())
    }
}

fn study(text: &str, files: &dyn Files) -> Study {
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    let point = &document.points().unwrap()[0];
    let mut study = Preparation::new(&document, files, *KNOWN).study(point).unwrap_or_else(|error| panic!("{error}\n{text}"));
    study.scenario.paranoid = true;
    study
}

/// A byte is a flit.
const BYTES: &str = "flit_bytes = 1\ncycle_ns = 1";

/// Two leaves with a terminal each and two spines: a message takes one of two paths, and the other after a failure.
const FLITS_BEHIND: u64 = 6;

fn message_over(flits: u64, packet: u64, faults: &str) -> Outcome {
    let text = format!(
        "[network]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\ndown = 1\nchannel_latency = {FLITS_BEHIND}\n{BYTES}\n[routing]\nalgorithm = \"ecmp\"\n\
         [router]\nvirtual_channels = 4\nbuffer_flits = 64\n{faults}\n[workload]\ntrace = \"program.goal\"\npacket_flits = {packet}\n"
    );
    let goal = format!("num_ranks 2\nrank 0 {{\ns: send {flits}b to 1\n}}\nrank 1 {{\nr: recv {flits}b from 0\n}}\n");
    let study = study(&text, &Program(goal));
    FlitEngine.run(&study.scenario, &mut UntilDone).unwrap()
}

fn dies(spine: u32, at: u64, detect: u64, resend: u64) -> String {
    format!("[faults]\nlinks = [\"0 {spine}\"]\nat = {at}\ndetect_after = {detect}\nresend_after = {resend}")
}

/// Packets of one flit follow each other cycle by cycle. Lost packets are those between their head's routing at the leaf and the end of the
/// channel when it dies, and those with heads that come before the failure is known: in steady state one a cycle. They are resent before
/// the rest, so that the end comes as many cycles later.
#[test]
fn as_many_packets_are_lost_as_cycles_pass_over_the_dead_channel() {
    let packets = 600;
    let end = |outcome: &Outcome| outcome.completion_time.unwrap();
    let alone = message_over(packets, 1, "");
    let mut hit = 0;
    for spine in [2, 3] {
        let lost_after = |detect| message_over(packets, 1, &dies(spine, 200, detect, 50));
        let at_once = lost_after(0);
        if at_once.losses == Some(Losses::default()) {
            assert_eq!(end(&at_once), end(&alone), "the message takes the other spine");
            continue;
        }
        hit += 1;
        for detect in [0, 1, 17, 100] {
            let outcome = lost_after(detect);
            let losses = outcome.losses.unwrap();
            // Route computation, both allocations and the switch, then the channel.
            assert_eq!(losses, Losses { lost: detect + FLITS_BEHIND + STAGES, resent: losses.lost });
            // Round-robin pointers may lose a cycle before they have found their turns.
            let saved = end(&alone) + losses.lost as f64 - end(&outcome);
            assert!((0.0..=1.0).contains(&saved), "known after {detect}: {saved}");
        }
        let until = message_over(packets, 1, &(dies(spine, 200, 0, 50) + "\nuntil = 300"));
        assert_eq!((until.losses, end(&until)), (at_once.losses, end(&at_once)), "both paths are as long");
    }
    assert_eq!(hit, 1);
}

/// Cycles from the routing of a head at the leaf to its start on the channel.
const STAGES: u64 = 3;

/// A packet of 40 flits is across the channel when it dies: some of it has arrived. The receiver finds it damaged when its tail comes, and it
/// goes once more. If nothing has arrived, it is thrown away at the leaf, and if it has passed it is not touched.
#[test]
fn a_packet_that_is_torn_is_found_damaged_by_its_receiver() {
    let flits = 40;
    let alone = message_over(flits, flits, "").completion_time.unwrap();
    let resend = 500;
    let mut seen = Vec::new();
    for spine in [2, 3] {
        for at in 1..100 {
            let outcome = message_over(flits, flits, &dies(spine, at, 0, resend));
            let (lost, end) = (outcome.losses.unwrap().lost, outcome.completion_time.unwrap());
            // A packet known to be lost in cycle c is created again in c + resend.
            let known_after = end - alone - resend as f64;
            seen.push(if lost == 0 {
                'o'
            } else if known_after == alone - 1.0 {
                'x'
            } else {
                't'
            });
            assert!(lost == 0 && end == alone || lost == 1 && known_after < alone, "{at}: {lost} lost, ends at {end}");
        }
    }
    let text: String = seen.iter().collect();
    let (one, other) = text.split_at(99);
    let (hit, spared) = if one.contains('x') { (one, other) } else { (other, one) };
    assert!(spared.chars().all(|mark| mark == 'o'), "{spared}");
    // Before its head is routed, while it is at the leaf or its head is on the channel, while it is torn, and when it has passed.
    let thrown = hit.matches('t').count() as u64;
    assert_eq!(thrown, FLITS_BEHIND + STAGES, "{hit}");
    assert_eq!(hit.matches('x').count() as u64, flits - 1, "{hit}");
    let order = format!("{}{}{}", 't', "x".repeat(flits as usize - 1), 'o');
    assert!(hit.contains(&order), "{hit}");
}

/// For any failure and any router, flits and credits are conserved at every check (`paranoid`), lost packets are resent, and all arrive.
#[test]
fn everything_arrives_in_the_end() {
    let networks = [
        ("topology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 4", "algorithm = \"ecmp\"\npolicy = \"random\"", "routers = [5]"),
        ("topology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 4", "algorithm = \"ecmp\"", "links = [\"0 4\", \"1 6\"]"),
        (
            "topology = \"fat-tree\"\nup = 3\ndown = 3\nlevels = 2",
            "algorithm = \"minimal\"\nports_up = \"all\"",
            "link_count = 2\nseed = 3",
        ),
        ("topology = \"mesh\"\ndimensions = [4, 4]", "algorithm = \"up-down\"", "links = [\"5 6\", \"9 10\"]"),
        ("topology = \"full-mesh\"\nrouters = 6\nconcentration = 2", "algorithm = \"up-down\"", "links = [\"0 3\", \"2 4\", \"1 5\"]"),
    ];
    let routers = [
        "buffer_flits = 6",
        "buffer_flits = 3\nvc_release = \"tail-credit\"",
        "switching = \"virtual-cut-through\"\nbuffer_flits = 12",
        "switching = \"store-and-forward\"\nbuffer_flits = 12",
        "internal_speedup = 1.5\noutput_buffer_flits = 2",
        "hold_switch = true",
        "input_speedup = 2\noutput_speedup = 2",
        "speculative = true",
        "priority = \"local-age\"",
        "switch_allocator = \"wavefront\"",
    ];
    let (mut lost, mut completed) = (0, 0);
    for (network, routing, faults) in networks {
        for router in routers {
            for packet in [1, 5, 12] {
                for times in ["at = 60\ndetect_after = 37", "at = 60\nuntil = 140\ndetect_after = 9", "until = 80"] {
                    let text = format!(
                        "[network]\n{network}\nchannel_latency = 5\n[routing]\n{routing}\n[router]\nvirtual_channels = 4\n{router}\n[faults]\n{faults}\n{times}\n\
                         resend_after = 50\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 24\npacket_flits = {packet}\n\
                         [measure]\nmax_cycles = 200000\n"
                    );
                    let study = study(&text, &Program(String::new()));
                    let outcome =
                        FlitEngine.run(&study.scenario, &mut *controller(&study)).unwrap_or_else(|error| panic!("{error}\n{text}"));
                    let losses = outcome.losses.unwrap();
                    if outcome.status == Status::Deadlock {
                        // Packets on old and on new routes, each free of deadlocks, can wait for each other.
                        assert!(network.contains("mesh") && !outcome.deadlock.is_empty(), "{text}");
                        continue;
                    }
                    completed += 1;
                    assert_eq!((outcome.status, losses.resent), (Status::Completed, losses.lost), "{text}");
                    let terminals = u64::from(study.scenario.network.terminal_count());
                    assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), terminals * (terminals - 1) * 24, "{text}");
                    lost += losses.lost;
                }
            }
        }
    }
    assert!(lost > 1000 && completed > 400, "{lost} lost, {completed} of 450 completed");
}

/// Open traffic loses the packets of the failure, and continues on the remaining network at the same rate; nothing is sent to the dead
/// spine once the failure is known. Adaptive heads take another port at once.
#[test]
fn open_traffic_continues_on_the_remaining_network() {
    let lost = |routing: &str, resend: &str| {
        let text = format!(
            "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 4\ndown = 4\n[routing]\n{routing}\n\
             [router]\nvirtual_channels = 4\nbuffer_flits = 16\n[faults]\nrouters = [7]\nat = 3000\ndetect_after = 200\n{resend}\n\
             [traffic]\npattern = \"uniform\"\nload = 0.4\npacket_flits = 4\n[measure]\nwarmup = 4000\ncycles = 10000\n"
        );
        let study = study(&text, &Program(String::new()));
        let outcome = FlitEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
        assert_eq!(outcome.status, Status::Converged);
        let accepted = outcome.accepted_flits.iter().sum::<u64>() as f64 / outcome.measured_cycles as f64 / 16.0;
        assert!((accepted / 0.4 - 1.0).abs() < 0.02, "{accepted}");
        let dead = &study.scenario.failure.as_ref().unwrap().epochs[0].channels;
        assert_eq!(dead.len(), 8);
        assert!(dead.iter().all(|channel| outcome.channel_flits[channel.index()] == 0));
        outcome.losses.unwrap()
    };
    let random = lost("algorithm = \"ecmp\"\npolicy = \"random\"", "");
    // A quarter of the upward packets, 12/15 of 16 x 0.4/4 packets a cycle, for 200 cycles, and those on the way.
    let expected = 0.25 * 0.8 * 16.0 * 0.1 * 200.0;
    assert!(
        random.resent == 0 && random.lost as f64 > 0.8 * expected && (random.lost as f64) < 1.4 * expected,
        "{random:?}, not {expected}"
    );
    let adaptive = lost("algorithm = \"up-down\"", "resend_after = 100");
    assert_eq!(adaptive.resent, adaptive.lost);
}

/// Results are equal, bit for bit, for any tiles.
#[test]
fn tiles_change_nothing() {
    let run = |engine: &str| {
        let text = format!(
            "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 4\n[routing]\nalgorithm = \"ecmp\"\npolicy = \"random\"\n\
             [faults]\nrouters = [5]\nat = 100\nresend_after = 60\n[flit]\n{engine}\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 24\n"
        );
        let study = study(&text, &Program(String::new()));
        let outcome = FlitEngine.run(&study.scenario, &mut *controller(&study)).unwrap();
        (outcome.completion_time, outcome.losses, outcome.channel_flits)
    };
    assert_eq!(run(""), run("tiles = 4"));
}

/// Batches with answered packets, with windows and without: every packet and every answer arrives once.
#[test]
fn answers_and_windows_complete() {
    for window in ["", "outstanding_packets = 2\n", "outstanding_packets = 3\ncounts_answers = true\n"] {
        let text = format!(
            "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 4\nchannel_latency = 5\n[routing]\nalgorithm = \"ecmp\"\n\
             policy = \"random\"\n[router]\nvirtual_channels = 4\nbuffer_flits = 6\n[faults]\nrouters = [5]\nat = 60\nuntil = 200\ndetect_after = 37\n\
             resend_after = 50\n[traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 30\npacket_flits = 3\n{window}\
             reply = {{ packet_flits = 2 }}\n"
        );
        let study = study(&text, &Program(String::new()));
        let outcome = FlitEngine.run(&study.scenario, &mut *controller(&study)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let losses = outcome.losses.unwrap();
        assert_eq!((outcome.status, losses.resent), (Status::Completed, losses.lost), "{window}");
        assert!(losses.lost > 0, "{window}");
        let accepted: u64 = outcome.accepted_flits.iter().sum();
        if window.contains("counts_answers") {
            // Each terminal ends with 30 of both kinds together.
            assert!((16 * 30 * 2..=16 * 30 * 3).contains(&accepted), "{window}: {accepted}");
        } else {
            assert_eq!(accepted, 16 * 30 * (3 + 2), "{window}");
        }
    }
}

/// The rules of a file, and a record of the intervals.
struct Noting {
    rules: Box<dyn Measurement>,
    intervals: Vec<Interval>,
}

impl Controller for Noting {
    fn interval_cycles(&mut self) -> u64 {
        self.rules.interval_cycles()
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.intervals.push(interval.clone());
        self.rules.interval_ended(interval)
    }

    fn assured_intervals(&self) -> u64 {
        self.rules.assured_intervals()
    }

    fn waits_until(&self) -> Option<u64> {
        self.rules.waits_until()
    }

    fn weighs_ages(&self) -> bool {
        self.rules.weighs_ages()
    }
}

/// Open traffic with packets that failing links cut. All intervals, with or without the checks of every cycle, on `threads` threads.
fn intervals(text: &str, paranoid: bool, threads: usize) -> (Vec<Interval>, Outcome) {
    let mut study = study(text, &Program(String::new()));
    study.scenario.paranoid = paranoid;
    let mut noting = Noting { rules: controller(&study), intervals: Vec::new() };
    let mut prepared = FlitEngine.prepare(&study.scenario).unwrap();
    prepared.use_threads(Threads::new(threads)).unwrap();
    let outcome = prepared.run(&mut noting).unwrap();
    (noting.intervals, outcome)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// The flits delivered in an interval depend on the run alone: not on checks, which end a window with each interval, nor on threads.
    /// The sum over the intervals is that over the terminals, which is that of the packets that arrived whole.
    #[test]
    fn torn_packets_are_in_no_interval(
        network in prop::sample::select(vec![
            "topology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 3",
            "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2",
            "topology = \"full-mesh\"\nrouters = 6\nconcentration = 2",
        ]),
        (flits, load, links) in (2_u32..48, 0.05_f64..0.9, 1_u32..4),
        (seed, at, length, detect) in (0_u32..1000, 50_u32..600, 1_u32..400, 0_u32..120),
        resend in prop::option::of(1_u32..60),
        (warm_up, cycles) in (100_u32..400, 300_u32..1200),
        booksim in any::<bool>(),
    ) {
        let resend = resend.map_or(String::new(), |cycles| format!("resend_after = {cycles}"));
        let measure = if booksim {
            "rules = \"booksim\"\nsample_period = 250\nmax_samples = 6".to_owned()
        } else {
            format!("warmup = {warm_up}\ncycles = {cycles}")
        };
        let text = format!(
            "[network]\n{network}\n[routing]\nalgorithm = \"up-down\"\n[router]\nvirtual_channels = 4\nbuffer_flits = 8\n\
             [faults]\nlink_count = {links}\nseed = {seed}\nat = {at}\nuntil = {}\ndetect_after = {detect}\n{resend}\n\
             [traffic]\npattern = \"uniform\"\npacket_flits = {flits}\nload = {load:.3}\n[measure]\nseed = {seed}\n{measure}\n",
            at + length
        );
        let Ok(document) = Document::parse_for(*KNOWN, "test.toml", &text) else { panic!("{text}") };
        let point = &document.points().unwrap()[0];
        // Links that cut the network are refused.
        prop_assume!(Preparation::new(&document, &Program(String::new()), *KNOWN).study(point).is_ok());
        let (plain, outcome) = intervals(&text, false, 1);
        for (paranoid, threads) in [(true, 1), (false, 2), (false, 3)] {
            let (others, other) = intervals(&text, paranoid, threads);
            let delivered = |all: &[Interval]| all.iter().map(|one| (one.end_cycle, one.accepted_flits, one.counted_accepted_flits)).collect::<Vec<_>>();
            prop_assert_eq!(delivered(&plain), delivered(&others), "paranoid: {}, threads: {}\n{}", paranoid, threads, text);
            prop_assert_eq!(&outcome.accepted_flits, &other.accepted_flits, "{}", text);
        }
        let whole = plain.iter().map(|one| one.arrived.packets * u64::from(flits)).sum::<u64>();
        prop_assert_eq!(plain.iter().map(|one| one.accepted_flits).sum::<u64>(), whole, "{}", text);
        // Counts begin again when measuring begins: those of a long warm-up may be higher.
        let counted = plain.last().unwrap().counted_accepted_flits;
        prop_assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), counted, "{}", text);
    }
}
