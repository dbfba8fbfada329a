//! A user that has all terminals, with free translation, has the machine to itself: two ways to one answer, on every router.

use crate::flit_common::{Fixed, ToTheEnd};
use kasuri::input::KNOWN;
use kasuri_config::{Document, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Controller, Engine, Outcome, Status};
use kasuri_network::topology::NoFiles;

fn run(text: &str, controller: &mut dyn Controller) -> Outcome {
    let document = Document::parse_for(*KNOWN, "a.toml", text).unwrap();
    let mut study = Preparation::new(&document, &NoFiles, *KNOWN).study(&document.points().unwrap()[0]).unwrap();
    study.scenario.paranoid = true;
    FlitEngine.run(&study.scenario, controller).unwrap()
}

const TORUS: &str = "[network]\ntopology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n";

fn nodes() -> Vec<u32> {
    (0..16).collect()
}

/// The same traffic in `[traffic]` or `[workload]`, without users and as a user's.
fn both_ways(router: &str, sends: &str, controller: impl Fn() -> Box<dyn Controller>) -> [Outcome; 2] {
    let machine = format!("{TORUS}[router]\n{router}\n");
    let of_user = format!("[[user]]\nname = \"a\"\nnodes = {:?}\n[user.{}", nodes(), sends.strip_prefix('[').unwrap());
    [format!("{machine}{sends}"), format!("{machine}{of_user}")].map(|text| run(&text, &mut *controller()))
}

fn assert_equal(router: &str, sends: &str, controller: impl Fn() -> Box<dyn Controller>) -> Outcome {
    let [machine, user] = both_ways(router, sends, controller);
    assert!(machine.packet_latency.count > 500, "{router}: {}", machine.packet_latency.count);
    assert_eq!(user.users.len(), 1);
    assert_eq!(user.users[0].translation.unwrap().misdelivered, 0);
    assert_eq!(Outcome { users: Vec::new(), ..user }, machine, "{router}\n{sends}");
    machine
}

const ROUTERS: [&str; 9] = [
    "virtual_channels = 4",
    "virtual_channels = 4\nbuffer_policy = \"shared\"",
    "virtual_channels = 4\nbuffer_policy = \"shifting\"",
    "virtual_channels = 4\narchitecture = \"virtual-output-queued\"",
    "virtual_channels = 4\narchitecture = \"crosspoint\"",
    "virtual_channels = 4\nbuffer_flits = 8\nswitching = \"virtual-cut-through\"",
    "virtual_channels = 4\npipeline = [\"RC\", \"VSA\", \"ST\"]\npredictor = \"latest-port\"",
    "virtual_channels = 4\nhold_switch = true",
    "virtual_channels = 4\ninternal_speedup = 2.0\noutput_buffer_flits = 4",
];

const OPEN: &str = "[traffic]\npattern = \"uniform\"\nload = 0.2\npacket_flits = 3\n";

#[test]
fn open_traffic_on_every_router() {
    for router in ROUTERS {
        assert_eq!(assert_equal(router, OPEN, || Box::new(Fixed::new(300, 1000))).status, Status::Converged, "{router}");
    }
}

#[test]
fn a_workload_on_every_router() {
    let workload = "[workload]\ncollective = \"alltoall\"\nmessage_flits = 30\npacket_flits = 8\n";
    for router in ROUTERS {
        assert_eq!(assert_equal(router, workload, || Box::new(ToTheEnd)).status, Status::Completed, "{router}");
    }
}

/// A terminal has a queue for each class, and an access at the head of each.
#[test]
fn queues_for_each_class() {
    let class = |flits: u32| format!("[[traffic.class]]\npattern = \"uniform\"\nload = 0.1\npacket_flits = {flits}\n");
    let classes = format!("[traffic]\n{}{}", class(2), class(7));
    let router = "virtual_channels = 4\nclass_queues = true";
    let run = |text: &str| run(text, &mut Fixed::new(300, 1000));
    let machine = run(&format!("{TORUS}[router]\n{router}\n{classes}"));
    let of_user = classes.replace("[traffic]\n", "").replace("traffic.class", "user.traffic.class");
    let user = run(&format!("{TORUS}[router]\n{router}\n[[user]]\nname = \"a\"\nnodes = {:?}\n{of_user}", nodes()));
    assert!(machine.packet_latency.count > 500);
    assert_eq!(Outcome { users: Vec::new(), ..user }, machine);
}

/// Classes with common random numbers share those of their user: a lone user has those of the machine; with another user each has a
/// separate mixture, also beyond saturation, and a separate batch.
#[test]
fn coins_are_tossed_by_terminal_and_user() {
    let classes = |section: &str, process: &str, loads: [f64; 2]| {
        let class = |load: f64, flits: u32| format!("[[{section}.class]]\npacket_flits = {flits}\nload = {load:.1}\n");
        let [one, other] = if process.contains("batch") { [1, 1] } else { [1, 2] };
        let classes = class(loads[0], one) + &class(loads[1], other);
        let classes = if process.contains("batch") { classes.replace("load = 0.1\n", "").replace("load = 0.3\n", "") } else { classes };
        format!("[{section}]\npattern = \"uniform\"\nshares_coins = true\n{process}{classes}")
    };
    for (router, process) in [("", ""), ("class_queues = true\n", ""), ("", "process = \"batch\"\nbatch_packets = 60\n")] {
        let machine = format!("{TORUS}[router]\nvirtual_channels = 4\n{router}");
        let controller =
            || -> Box<dyn Controller> { if process.is_empty() { Box::new(Fixed::new(300, 2000)) } else { Box::new(ToTheEnd) } };
        let without = run(&format!("{machine}{}", classes("traffic", process, [0.3, 0.1])), &mut *controller());
        let of_user = classes("user.traffic", process, [0.3, 0.1]);
        let with = run(&format!("{machine}[[user]]\nname = \"a\"\nnodes = {:?}\n{of_user}", nodes()), &mut *controller());
        assert!(without.packet_latency.count > 500);
        assert_eq!(Outcome { users: Vec::new(), ..with }, without, "{router}{process}");
    }
    // Of a flit at 0.3 and two at 0.1 six packets of seven are of the first class; at 0.1 and 0.3 two of five.
    let user = |name: &str, nodes: [u32; 4], loads| {
        format!("[[user]]\nname = \"{name}\"\nnodes = {nodes:?}\n{}", classes("user.traffic", "", loads))
    };
    let text =
        format!("{TORUS}[router]\nvirtual_channels = 4\n{}{}", user("a", [0, 1, 2, 3], [0.3, 0.1]), user("b", [8, 9, 10, 11], [0.1, 0.3]));
    let outcome = run(&text, &mut Fixed::new(300, 8000));
    for (user, of_first) in outcome.users.iter().zip([6.0 / 7.0, 0.4]) {
        let flits = user.accepted_flits as f64 / user.packets as f64;
        // Six standard deviations of the number of draws, and packets under way at either end.
        let width = 6.0 * (of_first * (1.0 - of_first) / user.packets as f64).sqrt() + 20.0 / user.packets as f64;
        assert!((flits - (2.0 - of_first)).abs() < width, "{flits} {of_first} {}", user.packets);
    }
    let batch = "process = \"batch\"\nbatch_packets = 60\n";
    let text = text
        .replace("shares_coins = true\n", &format!("shares_coins = true\n{batch}"))
        .replace("load = 0.1\n", "")
        .replace("load = 0.3\n", "");
    let outcome = run(&text, &mut ToTheEnd);
    assert_eq!(outcome.users.iter().map(|user| user.packets).collect::<Vec<_>>(), [4 * 60; 2]);
}

/// Answers come when they are due, though nothing else wakes the terminal.
#[test]
fn answers_and_their_delay() {
    let traffic = format!("{OPEN}virtual_channels = [0, 2]\nreply = {{ virtual_channels = [2, 4], packet_flits = 2, delay = 40 }}\n");
    assert_equal(ROUTERS[0], &traffic.replace("0.2", "0.01"), || Box::new(Fixed::new(300, 5000)));
}

/// A terminal waits for its packets, and for the answers where there are some; a batch counts them or not.
#[test]
fn windows_and_batches() {
    let reply = "virtual_channels = [0, 2]\nreply = { virtual_channels = [2, 4], packet_flits = 2 }\n";
    for (window, more) in [("", ""), ("outstanding_packets = 1\n", ""), ("outstanding_packets = 3\n", reply)] {
        let batch = format!("[traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 60\npacket_flits = 3\n{window}{more}");
        assert_equal(ROUTERS[0], &batch, || Box::new(ToTheEnd));
        if !more.is_empty() {
            assert_equal(ROUTERS[0], &format!("{batch}counts_answers = true\n"), || Box::new(ToTheEnd));
        }
    }
}

/// A user with one outstanding packet that changes its table meanwhile is not blocked: it does not wait for unsent packets.
#[test]
fn a_window_does_not_close_over_accesses_that_are_never_sent() {
    let text = |table: &str| {
        format!(
            "{TORUS}[router]\n{}\n[[user]]\nname = \"a\"\ntable = [{table}]\n[user.traffic]\npattern = \"uniform\"\nprocess = \"batch\"\n\
             batch_packets = 50\noutstanding_packets = 1\npacket_flits = 3\n",
            ROUTERS[0]
        )
    };
    // Of 16 logical nodes four have no terminal: their own batches are not sent, and those to them fail.
    let lines: Vec<String> = (0..16).map(|node| if node % 4 == 3 { "[]".to_owned() } else { node.to_string() }).collect();
    let outcome = run(&text(&lines.join(", ")), &mut ToTheEnd);
    let counts = outcome.users[0].translation.unwrap();
    assert_eq!(outcome.status, Status::Completed);
    assert_eq!((counts.accesses, counts.accesses + counts.faults), (counts.ended, 12 * 50));
    assert!(counts.faults > 100, "{counts:?}");
}

/// Two users, one with a workload and one with open traffic, on every router: the workload takes longer than alone, and no packet goes
/// astray.
#[test]
fn a_workload_with_open_traffic_on_every_router() {
    for router in ROUTERS {
        let text = |alone: &str| {
            format!(
                "{TORUS}[router]\n{router}\n[users]\nalone = \"{alone}\"\n\
                 [[user]]\nname = \"a\"\nnodes = {:?}\n[user.workload]\ncollective = \"alltoall\"\nmessage_flits = 60\npacket_flits = 8\n\
                 [[user]]\nname = \"b\"\nnodes = {:?}\n[user.traffic]\npattern = \"uniform\"\nload = 0.6\npacket_flits = 5\n",
                [0, 2, 5, 7, 8, 10, 13, 15],
                [1, 3, 4, 6, 9, 11, 12, 14]
            )
        };
        let [alone, beside] = ["a", ""].map(|alone| run(&text(alone), &mut ToTheEnd));
        assert!(beside.completion_time > alone.completion_time, "{router}");
        for user in &beside.users {
            let counts = user.translation.unwrap();
            assert_eq!((counts.misdelivered, counts.ended_wrongly, counts.faults), (0, 0, 0), "{router}");
        }
        assert_eq!(beside.users[0].packets, 8 * 7 * 8, "{router}");
    }
}

/// Two users on a mesh of two routers that both want the channel between these; one is granted three times the share of the other.
fn contending(router: &str, packet_flits: u32) -> String {
    let user = |name: &str, nodes: [u32; 4], share: f64| {
        format!(
            "[[user]]\nname = \"{name}\"\nnodes = {nodes:?}\nshare = {share:?}\n\
             [user.traffic]\npattern = \"bit-complement\"\nload = 1.0\npacket_flits = {packet_flits}\n"
        )
    };
    format!(
        "[network]\ntopology = \"mesh\"\ndimensions = [2]\nconcentration = 4\n[routing]\nalgorithm = \"dimension-order\"\n\
         [router]\nvirtual_channels = 4\nbuffer_flits = {packet_flits}\n{router}\n\
         [users]\nisolation = \"channels-and-shares\"\n{}{}",
        user("a", [0, 1, 4, 5], 3.0),
        user("b", [2, 3, 6, 7], 1.0)
    )
}

/// They get the granted shares of it on all routers.
#[test]
fn shares_divide_the_outputs_of_all_routers() {
    for router in [
        "",
        "architecture = \"virtual-output-queued\"",
        "architecture = \"crosspoint\"",
        "switch_allocator = \"wavefront\"",
        "switch_allocator = \"pim\"\nvc_allocator = \"select\"",
        "priority = \"age\"\nswitch_allocator = \"select\"",
        "priority = \"local-age\"\narchitecture = \"virtual-output-queued\"\nswitch_allocator = \"maximum-size\"",
        "input_speedup = 2",
        "input_speedup = 2\noutput_speedup = 2\noutput_buffer_flits = 4",
        "internal_speedup = 2.0\noutput_buffer_flits = 4",
        "internal_speedup = 1.5\noutput_buffer_flits = 2",
        "hold_switch = true",
        "buffer_policy = \"shared\"",
        "switching = \"virtual-cut-through\"\nbuffer_policy = \"shared\"\nprivate_flits = 16\nport_buffer_flits = 160",
        "speculative = true\nhold_switch = true",
        "predictor = \"latest-port\"\nlong_stages = \"batched\"\npipeline = [\"RC\", \"VA\", \"SA\", { stage = \"ST\", cycles = 2 }]",
    ] {
        let outcome = run(&contending(router, 16), &mut Fixed::new(1000, 4000));
        let [a, b] = [0, 1].map(|user| outcome.users[user].accepted_flits as f64);
        assert!((a / b / 3.0 - 1.0).abs() < 0.05, "{router}: {a} {b}");
        // Each direction of the channel is busy.
        assert!(a + b > 0.9 * 2.0 * 4000.0, "{router}: {a} {b}");
    }
}

/// Routers in the full layout divide their outputs as plain ones do, bit for bit.
#[test]
fn shares_are_the_same_in_both_layouts() {
    for router in [
        "",
        "architecture = \"virtual-output-queued\"",
        "switch_allocator = \"separable-input-first\"",
        "internal_speedup = 1.5",
        "predictor = \"latest-port\"",
        "vc_release = \"tail-credit\"\npredictor = \"oracle\"",
    ] {
        for packet_flits in [1, 6] {
            let of = |layout: &str| {
                run(&format!("{}[flit]\nlayout = \"{layout}\"\n", contending(router, packet_flits)), &mut Fixed::new(300, 2000))
            };
            assert_eq!(of("plain"), of("full"), "{router}");
        }
    }
}

/// A user without competition has all of every output, whatever its share: the run is that of the machine without users, bit for bit.
#[test]
fn the_share_of_one_user_is_all() {
    let traffic = "[traffic]\npattern = \"uniform\"\nload = 0.5\npacket_flits = 4\n";
    for router in [
        "virtual_channels = 4\narchitecture = \"crosspoint\"",
        "virtual_channels = 4\npriority = \"age\"\nswitch_allocator = \"select\"",
        "virtual_channels = 4\ninternal_speedup = 2.0\noutput_speedup = 2\nbuffer_policy = \"shared\"",
        "virtual_channels = 4\nhold_switch = true\ninput_speedup = 2\npredictor = \"latest-port\"",
    ] {
        let machine = format!("{TORUS}[router]\n{router}\n");
        let user = format!("[users]\nisolation = \"channels-and-shares\"\n[[user]]\nname = \"a\"\nnodes = {:?}\nshare = 0.3\n", nodes());
        let user = format!("{user}{}", traffic.replace("[traffic]", "[user.traffic]"));
        let [alone, granted] =
            [format!("{machine}{traffic}"), format!("{machine}{user}")].map(|text| run(&text, &mut Fixed::new(300, 1500)));
        assert!(alone.packet_latency.count > 500, "{router}");
        assert_eq!(Outcome { users: Vec::new(), ..granted }, alone, "{router}");
    }
}
