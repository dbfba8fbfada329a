//! Open traffic in the background of a run that ends with a closed workload, or with a machine of interfaces.

use crate::flit_common::ToTheEnd;
use kasuri_config::{Document, Study};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Background, Engine, Outcome, Status};
use kasuri_network::topology::NoFiles;
use kasuri_workload::traffic::process::{InjectionProcess, bernoulli::Bernoulli};
use std::sync::Arc;

fn study(text: &str) -> Study {
    let document = Document::parse("a.toml", text).unwrap();
    let mut study = document.study(&document.points().unwrap()[0], &NoFiles).unwrap();
    study.scenario.paranoid = true;
    study
}

fn run(text: &str) -> Outcome {
    FlitEngine.run(&study(text).scenario, &mut ToTheEnd).unwrap()
}

fn background(outcome: &Outcome) -> Background {
    outcome.background.unwrap()
}

const TORUS: &str = "[network]\ntopology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n";

/// 16 ranks that send 15 messages of 4 packets each.
const ALL_TO_ALL: &str = "[workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 40\npacket_flits = 10\n";

fn beside(router: &str, load: f64) -> String {
    format!("{TORUS}[router]\n{router}\n[traffic]\npattern = \"uniform\"\npacket_flits = 3\nload = {load:?}\n{ALL_TO_ALL}")
}

const PLAIN: &str = "virtual_channels = 4\nbuffer_flits = 8";

/// A rate of 0 takes the traffic out; sources that are there and silent change nothing of the run.
#[test]
fn without_any_load_the_run_is_that_without_background() {
    let alone = run(&format!("{TORUS}[router]\n{PLAIN}\n{ALL_TO_ALL}"));
    assert_eq!(run(&beside(PLAIN, 0.0)), alone);
    let mut silent = study(&beside(PLAIN, 0.5)).scenario;
    silent.classes[0].process = Arc::from(Bernoulli {}.compile(0.0).unwrap());
    let outcome = FlitEngine.run(&silent, &mut ToTheEnd).unwrap();
    assert_eq!(outcome.background, Some(Background::default()));
    assert_eq!(Outcome { background: None, ..outcome }, alone);
}

/// More background makes the all-to-all slower, as long as the network sustains both. The columns of latency and hops hold only its
/// packets.
#[test]
fn an_all_to_all_takes_longer_on_a_busy_machine() {
    let of_seeds =
        |load: f64| -> Vec<Outcome> { (1..=4).map(|seed| run(&format!("{}[measure]\nseed = {seed}\n", beside(PLAIN, load)))).collect() };
    let outcomes = [0.0, 0.1, 0.2].map(of_seeds);
    let time = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.completion_time.unwrap()).sum::<f64>();
    let [alone, light, busy] = [0, 1, 2].map(|load| time(&outcomes[load]));
    assert!(light > 1.05 * alone && busy > 1.05 * light, "{alone} {light} {busy}");
    for (outcome, load) in outcomes[1].iter().map(|outcome| (outcome, 0.1)).chain(outcomes[2].iter().map(|outcome| (outcome, 0.2))) {
        assert_eq!(outcome.status, Status::Completed);
        assert_eq!((outcome.packet_latency.count, outcome.hops.count), (16 * 15 * 4, 16 * 15 * 4));
        assert_eq!(outcome.hops.mean(), outcomes[0][0].hops.mean());
        assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), background(outcome).accepted_flits + 16 * 15 * 40 + partial(outcome));
        let rate = background(outcome).accepted_flits as f64 / outcome.cycles as f64 / 16.0;
        assert!((0.8 * load..1.1 * load).contains(&rate), "{load}: {rate}");
    }
}

/// Flits that have arrived of packets of the background that have not arrived in whole: at most 2 of each terminal and virtual channel.
fn partial(outcome: &Outcome) -> u64 {
    let whole = background(outcome).accepted_flits + 16 * 15 * 40;
    let partial = outcome.accepted_flits.iter().sum::<u64>() - whole;
    assert!(partial <= 16 * 4 * 2);
    partial
}

/// A terminal with a message of M flits that creates packets at a load r takes turns: while r is below 1/2 the message has the rest of the
/// background, M / (1 - r) cycles; beyond, each has half.
#[test]
fn a_terminal_shares_its_channel_between_message_and_background() {
    const FLITS: f64 = 20_000.0;
    let time = |load: f64| {
        run(&format!(
            "[network]\ntopology = \"mesh\"\ndimensions = [2]\n[routing]\nalgorithm = \"dimension-order\"\n\
             [router]\n{PLAIN}\n[traffic]\npattern = \"bit-complement\"\npacket_flits = 10\nload = {load:?}\n\
             [workload]\ncollective = \"broadcast\"\nmessage_flits = {FLITS}\npacket_flits = 10\n"
        ))
        .completion_time
        .unwrap()
    };
    let alone = time(0.0);
    for load in [0.1, 0.2, 0.3, 0.4, 0.7, 1.0] {
        let expected = alone + FLITS * (1.0 / (1.0_f64 - load).max(0.5) - 1.0);
        assert!((time(load) / expected - 1.0).abs() < 0.02, "{load}: {} in place of {expected}", time(load));
    }
}

/// A source sends a packet of one, then one of the other; with a queue for each, a flit of one, then one of the other.
#[test]
fn queues_for_each_class_take_turns_by_flits() {
    const FLITS: f64 = 10_000.0;
    let time = |router: &str, load: f64| {
        run(&format!(
            "[network]\ntopology = \"mesh\"\ndimensions = [2]\n[routing]\nalgorithm = \"dimension-order\"\n\
             [router]\n{PLAIN}\n{router}\n[traffic]\npattern = \"bit-complement\"\npacket_flits = 2\nload = {load:?}\n\
             [workload]\ncollective = \"broadcast\"\nmessage_flits = {FLITS}\npacket_flits = 10\n"
        ))
        .completion_time
        .unwrap()
    };
    for (router, part) in [("", 10.0 / 12.0), ("class_queues = true", 0.5)] {
        let (expected, found) = (time(router, 0.0) + FLITS * (1.0 / part - 1.0), time(router, 1.0));
        assert!((found / expected - 1.0).abs() < 0.03, "{router}: {found} in place of {expected}");
    }
}

/// Two ways to one answer: a workload with open traffic in the background, and two users with these on the same terminals, with free
/// translation.
#[test]
fn a_background_equals_another_user_on_the_same_terminals() {
    let nodes: Vec<u32> = (0..16).collect();
    let users = format!(
        "{TORUS}[router]\n{PLAIN}\n\
         [[user]]\nname = \"a\"\nnodes = {nodes:?}\n{}\n\
         [[user]]\nname = \"b\"\nnodes = {nodes:?}\noverlap = [\"a\"]\n[user.traffic]\npattern = \"uniform\"\npacket_flits = 3\nload = 0.4\n",
        ALL_TO_ALL.replace("[workload]", "[user.workload]")
    );
    let (one, other) = (run(&beside(PLAIN, 0.4)), run(&users));
    assert_eq!(one.completion_time, other.completion_time);
    assert_eq!((one.cycles, &one.channel_flits, &one.accepted_flits), (other.cycles, &other.channel_flits, &other.accepted_flits));
    assert_eq!((background(&one).packets, background(&one).packet_latency), (other.users[1].packets, other.users[1].packet_latency));
}

/// Under the books, whatever the routers are.
#[test]
fn nothing_is_lost_on_any_router() {
    for router in [
        PLAIN,
        "virtual_channels = 4\nbuffer_flits = 8\nbuffer_policy = \"shared\"",
        "virtual_channels = 4\nbuffer_flits = 8\nclass_queues = true",
        "virtual_channels = 2\narchitecture = \"virtual-output-queued\"",
        "virtual_channels = 2\narchitecture = \"crosspoint\"",
        "virtual_channels = 4\nbuffer_flits = 10\nswitching = \"virtual-cut-through\"",
        "virtual_channels = 4\noutput_buffer_flits = 4",
        "virtual_channels = 4\npipeline = [\"RC\", \"VSA\", \"ST\"]\npredictor = \"latest-port\"",
    ] {
        let (alone, busy) = (run(&beside(router, 0.0)), run(&beside(router, 0.4)));
        assert_eq!(busy.packet_latency.count, 16 * 15 * 4, "{router}");
        assert!(busy.completion_time > alone.completion_time, "{router}");
        assert!(background(&busy).packets > 500, "{router}");
    }
}

/// Answers of the background are counted with it, and the run does not wait for them.
#[test]
fn a_background_may_be_answered() {
    let text = beside(PLAIN, 0.2)
        .replace("load = 0.2", "load = 0.2\nvirtual_channels = [0, 2]\nreply = { virtual_channels = [2, 4], packet_flits = 7 }");
    let outcome = run(&text);
    assert_eq!((outcome.status, outcome.packet_latency.count), (Status::Completed, 16 * 15 * 4));
    let had = background(&outcome);
    assert!(had.accepted_flits > 4 * had.packets, "{had:?}: packets of 3 flits and answers of 7");
}

/// Interfaces answer the same number of requests, and take longer for it; packets of the background leave the buffers in front of them at
/// once.
#[test]
fn programs_of_a_machine_take_longer_on_a_busy_network() {
    let time = |load: f64| {
        let outcome = run(&format!(
            "{TORUS}[router]\nvirtual_channels = 4\nbuffer_flits = 4\nswitching = \"virtual-cut-through\"\n\
             [endpoint]\nmodel = \"dsm\"\ninterface_cycles = 7\nwindow = 8\ncommand_flits = 4\ndata_flits = 4\n\
             [workload]\nprogram = \"matrix-vector\"\nsize = 64\n\
             [traffic]\npattern = \"uniform\"\npacket_flits = 4\nload = {load:?}\n"
        ));
        assert_eq!(outcome.interfaces.as_ref().unwrap().answered, 16 * 60);
        assert_eq!(outcome.packet_latency.count, 2 * 16 * 60, "requests and answers");
        (outcome.completion_time.unwrap(), outcome.background.map_or(0, |background| background.packets))
    };
    let (alone, light, heavy) = (time(0.0), time(0.2), time(0.5));
    assert!(alone.0 < light.0 && light.0 < heavy.0, "{alone:?} {light:?} {heavy:?}");
    assert!(alone.1 == 0 && light.1 > 300 && heavy.1 > light.1, "{light:?} {heavy:?}");
}
