//! The endpoint `rdma` under both engines: its costs, by formulas; its bounds; its refusals.

use kasuri::measure::controller;
use kasuri_config::{Document, Study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_network::topology::Files;
use kasuri_workload::collective::COLLECTIVES;
use std::fmt::Write;

/// A flit of 64 bytes at 400 Gbit/s.
const CYCLE_NS: f64 = 1.28;
const FLIT_BYTES: f64 = 64.0;

/// Four terminals, each on its own router, one hop apart.
const MACHINE: &str = r#"
[network]
topology = "full-mesh"
routers = 4
flit_bytes = 64
cycle_ns = 1.28

[routing]
algorithm = "minimal"

[router]
buffer_flits = 32

[workload]
packet_flits = 16
"#;

const ENGINES: [&dyn Engine; 2] = [&FlitEngine, &FlowEngine];

/// One file under every name.
struct One(String);

impl Files for One {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().into_bytes())
    }
}

fn study(text: &str, goal: &str, changes: &[&str]) -> Result<Study, String> {
    let mut document = Document::parse("rdma.toml", text).map_err(|error| error.to_string())?;
    changes.iter().for_each(|change| document.set_text(change).expect("a key and a value"));
    let point = document.points().map_err(|error| error.to_string())?.remove(0);
    document.study(&point, &One(goal.to_owned())).map_err(|error| error.to_string())
}

fn run(engine: &dyn Engine, study: &Study) -> Outcome {
    let mut scenario = study.scenario.clone();
    scenario.paranoid = true;
    let outcome = engine.run(&scenario, &mut *controller(study)).expect("a run");
    assert_eq!(outcome.status, Status::Completed);
    outcome
}

/// The time of completion in ns of a trace on the machine, with or without interfaces.
fn time_of(engine: &dyn Engine, goal: &str, changes: &[&str]) -> f64 {
    let changes: Vec<&str> = changes.iter().copied().chain(["workload.trace=a.goal"]).collect();
    run(engine, &study(MACHINE, goal, &changes).expect("a study")).completion_time.expect("an end") * CYCLE_NS
}

/// Rank 0 sends `count` messages of `bytes` bytes at once, to ranks 1 to 3 in turn.
fn sends(count: u32, bytes: u32) -> String {
    let mut ranks = vec![String::new(); 4];
    for message in 0..count {
        let to = 1 + message % 3;
        writeln!(ranks[0], "s{message}: send {bytes}b to {to} tag {message}").unwrap();
        writeln!(ranks[to as usize], "r{message}: recv {bytes}b from 0 tag {message}").unwrap();
    }
    let blocks = ranks.iter().enumerate().map(|(rank, text)| format!("rank {rank} {{\n{text}}}\n"));
    format!("num_ranks 4\n{}", blocks.collect::<String>())
}

const RDMA: &str = "endpoint.model=rdma";

/// One engine counts whole cycles, the other is exact: the former rounds up the entry of a message and its last event.
fn assert_close(engine: &dyn Engine, found: f64, expected: f64, what: &str) {
    let tolerance = if engine.name() == "flit" { 2.0 * CYCLE_NS } else { 1e-6 };
    let late = found - expected;
    assert!((-1e-6..=tolerance + 1e-6).contains(&late), "{} {what}: {found} ns, by formula {expected}", engine.name());
}

/// The defaults in ns.
const POST: f64 = 175.0;
const DOORBELL: f64 = 140.0;
const DESCRIPTOR: f64 = 4.65;
const READ: f64 = 547.0;
const WRITE: f64 = 380.0;
const POLL: f64 = 60.0;

/// A lone message: posting, doorbell, descriptor, read, the network's own time, descriptor, write, poll.
#[test]
fn a_lone_message_takes_the_sum_of_its_stages() {
    for engine in ENGINES {
        for (bytes, bus) in [(64, 423.0), (1024, 423.0), (5000, 423.0), (100_000, 423.0), (100_000, 100.0), (1000, 10.0)] {
            let flits = (f64::from(bytes) / FLIT_BYTES).ceil();
            let plain = time_of(engine, &sends(1, bytes), &[]);
            // Packets of 16 flits: each is sent when it has been read, and written when it has arrived.
            let of_bus = |flits: f64| flits * FLIT_BYTES * 8.0 / bus;
            let [first, last] = [flits.min(16.0), (flits - 1.0) % 16.0 + 1.0];
            let read = if flits <= 2.0 { 0.0 } else { READ + of_bus(first).max(of_bus(flits) - (flits - last) * CYCLE_NS) };
            let rest = DESCRIPTOR + of_bus(last) + WRITE + POLL;
            let expected = POST + DOORBELL + DESCRIPTOR + read + plain + rest;
            let bus = format!("endpoint.bus_gbit_per_second={bus:?}");
            let without_acknowledgement = ["endpoint.acknowledgement_ns=0.0", "endpoint.signalled=false", RDMA, &bus];
            let found = time_of(engine, &sends(1, bytes), &without_acknowledgement);
            assert_close(engine, found, expected, &format!("{bytes} bytes"));
        }
    }
}

/// The sender's completion entry is written when the acknowledgement has come, and is the last thing that happens if that takes long.
#[test]
fn a_signalled_message_waits_for_its_acknowledgement() {
    for engine in ENGINES {
        let plain = time_of(engine, &sends(1, 1024), &[]);
        let sent = POST + DOORBELL + DESCRIPTOR + READ + 1024.0 * 8.0 / 423.0;
        let found = time_of(engine, &sends(1, 1024), &[RDMA, "endpoint.acknowledgement_ns=5000.0"]);
        assert_close(engine, found, sent + plain + 5000.0 + WRITE + POLL, "signalled");
    }
}

/// A message in its descriptor saves the read, a descriptor in the doorbell the fetch; neither changes anything else.
#[test]
fn inlining_and_doorbells_save_exactly_a_read_each() {
    for engine in ENGINES {
        let time = |changes: &[&str]| time_of(engine, &sends(1, 128), &[&[RDMA, "endpoint.signalled=false"], changes].concat());
        let fast = time(&[]);
        let read = READ + 128.0 * 8.0 / 423.0;
        for (changes, more) in [
            (&["endpoint.inline_bytes=127"][..], read),
            (&["endpoint.descriptor_in_doorbell=false"], 547.0),
            (&["endpoint.inline_bytes=0", "endpoint.descriptor_in_doorbell=false", "endpoint.descriptor_fetch_ns=300.0"], read + 300.0),
        ] {
            let difference = time(changes) - fast;
            let tolerance = if engine.name() == "flit" { 2.0 * CYCLE_NS } else { 1e-6 };
            assert!((difference - more).abs() <= tolerance, "{} {changes:?}: {difference} ns more, not {more}", engine.name());
        }
    }
}

/// The time between two of many small messages is that of the slowest of processor, interface and polls.
#[test]
fn the_slowest_part_bounds_the_message_rate() {
    for engine in ENGINES {
        for (bytes, changes, between) in [
            (64, &[][..], POST),
            (64, &["endpoint.post_ns=10.0", "endpoint.descriptor_ns=30.0"], 30.0),
            // Each of three receivers polls for every third message.
            (64, &["endpoint.post_ns=10.0", "endpoint.poll_ns=120.0"], 40.0),
            // The channel: 16 flits a message.
            (1024, &["endpoint.post_ns=10.0", "endpoint.poll_ns=20.0", "endpoint.inline_bytes=1024"], 16.0 * CYCLE_NS),
        ] {
            let time = |count| time_of(engine, &sends(count, bytes), &[&[RDMA], changes].concat());
            let found = (time(1200) - time(600)) / 600.0;
            assert!((found / between - 1.0).abs() < 0.01, "{} {changes:?}: {found} ns, by formula {between}", engine.name());
        }
    }
}

/// With one place in the send queue the next message is posted when the acknowledgement of the last one is there.
#[test]
fn a_send_queue_of_one_waits_for_each_acknowledgement() {
    for engine in ENGINES {
        let time = |count| time_of(engine, &sends(count, 64), &[RDMA, "endpoint.send_queue_entries=1"]);
        let network = time_of(engine, &sends(1, 64), &[]);
        let between = POST + DOORBELL + DESCRIPTOR + network + 400.0;
        let found = (time(101) - time(1)) / 100.0;
        let tolerance = if engine.name() == "flit" { CYCLE_NS } else { 1e-6 };
        assert!((-1e-6..=tolerance).contains(&(found - between)), "{}: {found} ns, by formula {between}", engine.name());
    }
}

/// Large messages come at the rate of the bus or of the channel, whichever is less; so do those that two send to one.
#[test]
fn large_messages_go_at_the_lesser_of_bus_and_channel() {
    let two_to_one = "num_ranks 4\nrank 0 {\na: send 1000000b to 2 tag 0\n}\nrank 1 {\na: send 1000000b to 2 tag 0\n}\nrank 2 {\n\
                      a: recv 1000000b from 0 tag 0\nb: recv 1000000b from 1 tag 0\n}\nrank 3 {\n}\n";
    for engine in ENGINES {
        for (bus, rate) in [("50.0", 50.0), ("200.0", 200.0), ("1000.0", 400.0)] {
            let bus = format!("endpoint.bus_gbit_per_second={bus}");
            for goal in [&sends(2, 1_000_000), two_to_one] {
                let bytes = 2e6;
                let found = time_of(engine, goal, &[RDMA, &bus]);
                let expected = bytes * 8.0 / rate;
                assert!((1.0..1.1).contains(&(found / expected)), "{} bus {rate}: {found} ns, by formula {expected}", engine.name());
            }
        }
    }
}

fn collective(engine: &dyn Engine, machine: &str, keys: &str, changes: &[&str]) -> Outcome {
    run(engine, &study(&format!("{machine}{keys}\n"), "", changes).expect("a study"))
}

/// Flows and flits agree on the effect of an interface on an all-to-all: within 3 % for small and large messages.
#[test]
fn flows_and_flits_agree_on_an_all_to_all() {
    let machine = MACHINE.replace("topology = \"full-mesh\"\nrouters = 4", "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2");
    let machine = machine.replace("\"minimal\"", "\"nca\"\nup_port = \"d-mod-k\"");
    for bytes in [64, 4096, 65_536] {
        for signalled in ["true", "false"] {
            let keys = format!("collective = \"alltoall\"\nschedule = \"shift\"\nmessage_bytes = {bytes}");
            let signalled = format!("endpoint.signalled={signalled}");
            let [flits, flows] =
                ENGINES.map(|engine| collective(engine, &machine, &keys, &[RDMA, &signalled]).completion_time.expect("an end"));
            assert!((flows / flits - 1.0).abs() < 0.03, "{bytes} bytes, {signalled}: flows {flows}, flits {flits} cycles");
        }
    }
}

/// Without shared channels, no collective is faster through interfaces; the same flits arrive, and runs are reproducible.
#[test]
fn no_collective_is_faster_through_interfaces() {
    for engine in ENGINES {
        for entry in COLLECTIVES {
            let keys = format!("collective = \"{}\"\nschedule = \"{}\"\nmessage_flits = 10", entry.collective, entry.schedule);
            let plain = collective(engine, MACHINE, &keys, &[]);
            for change in ["endpoint.signalled=true", "endpoint.signalled=false", "endpoint.inline_bytes=4096"] {
                let with = collective(engine, MACHINE, &keys, &[RDMA, change]);
                assert_eq!(with.accepted_flits, plain.accepted_flits, "{} {}", entry.collective, entry.schedule);
                assert!(with.completion_time > plain.completion_time, "{} {}", entry.collective, entry.schedule);
                assert_eq!(collective(engine, MACHINE, &keys, &[RDMA, change]), with);
            }
        }
    }
}

/// The endpoint asks nothing of the network: rings, trees, networks with several paths, routers of each architecture, applications.
#[test]
fn every_network_and_router_takes_it() {
    let keys = "collective = \"allreduce\"\nmessage_flits = 40";
    for (topology, routing, router) in [
        ("topology = \"torus\"\ndimensions = [3, 3]", "dimension-order", ""),
        ("topology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 3", "nca", "switching = \"store-and-forward\""),
        ("topology = \"dragonfly\"\nterminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1", "up-down", ""),
        ("topology = \"mesh\"\ndimensions = [3, 2]", "dimension-order", "architecture = \"virtual-output-queued\""),
        ("topology = \"mesh\"\ndimensions = [3, 2]", "dimension-order", "architecture = \"crosspoint\""),
    ] {
        let machine = MACHINE
            .replace("topology = \"full-mesh\"\nrouters = 4", topology)
            .replace("\"minimal\"", &format!("\"{routing}\""))
            .replace("buffer_flits = 32", &format!("buffer_flits = 32\n{router}"));
        let plain = collective(&FlitEngine, &machine, keys, &[]).completion_time;
        assert!(collective(&FlitEngine, &machine, keys, &[RDMA]).completion_time > plain, "{topology} {router}");
    }
}

/// Users on the machine, each with its nodes and its workload.
fn of_users(engine: &dyn Engine, users: &[(&str, &str, &str)], changes: &[&str]) -> Outcome {
    let machine = MACHINE.replace("[workload]\npacket_flits = 16\n", "");
    let user = |&(name, nodes, sends): &(&str, &str, &str)| {
        format!("[[user]]\nname = \"{name}\"\nnodes = {nodes}\noverlap = [{}]\n{sends}\n", if name == "a" { "" } else { "\"a\"" })
    };
    let text = format!("{machine}{}", users.iter().map(user).collect::<String>());
    run(engine, &study(&text, "", changes).expect("a study"))
}

const EXCHANGE: &str = "[user.workload]\ncollective = \"alltoall\"\nmessage_bytes = 4096\npacket_flits = 16";

/// A user of the whole machine has its host adapters to itself.
#[test]
fn one_user_with_host_adapters_is_none_bit_for_bit() {
    for engine in ENGINES {
        for (keys, changes) in
            [("", &[RDMA][..]), ("", &[RDMA, "endpoint.send_queue_entries=1", "endpoint.signalled=false"]), ("repeat = 3", &[RDMA])]
        {
            let plain = collective(engine, MACHINE, &format!("collective = \"alltoall\"\nmessage_bytes = 4096\n{keys}"), changes);
            let user = of_users(engine, &[("a", "[0, 1, 2, 3]", &format!("{EXCHANGE}\n{keys}"))], changes);
            assert_eq!(user.users[0].completion, plain.completion_time);
            let timed = |outcome: &Outcome| (outcome.completion_time, outcome.packet_latency.clone(), outcome.channel_flits.clone());
            assert_eq!(timed(&user), timed(&plain), "{}", engine.name());
        }
    }
}

/// Users with disjoint nodes and channels do not affect each other, for any packet length; a window elsewhere does not interact with an
/// adapter.
#[test]
fn adapters_of_users_apart_do_not_meet() {
    let long = EXCHANGE.replace("packet_flits = 16", "packet_flits = 30");
    let batch =
        "[user.traffic]\npattern = \"neighbor\"\nprocess = \"batch\"\nbatch_packets = 40\noutstanding_packets = 2\npacket_flits = 5";
    for engine in ENGINES {
        for other in [EXCHANGE, &long, batch] {
            let users = [("a", "[0, 1]", EXCHANGE), ("b", "[2, 3]", other)];
            let both = of_users(engine, &users, &[RDMA]);
            for (number, name) in ["a", "b"].into_iter().enumerate() {
                let alone = of_users(engine, &users, &[RDMA, &format!("users.alone={name}")]);
                let of_user = |outcome: &Outcome| (outcome.users[number].completion, outcome.users[number].packet_latency);
                assert_eq!(of_user(&both), of_user(&alone), "{}: {name} beside {other}", engine.name());
            }
        }
    }
}

/// Two users have messages from terminal 0 to two others: its processor posts one after the other, and so the second is later by that.
#[test]
fn users_of_one_host_share_its_adapter() {
    let one = "[user.workload]\ncollective = \"broadcast\"\nmessage_bytes = 64";
    for engine in ENGINES {
        let changes = [RDMA, "endpoint.signalled=false"];
        let end = |users: &[(&str, &str, &str)]| of_users(engine, users, &changes).completion_time.expect("an end") * CYCLE_NS;
        let (first, second) = (("a", "[0, 1]", one), ("b", "[0, 2]", one));
        assert_close(engine, end(&[first, second]), end(&[first]) + POST, "after the other's post");
    }
}

/// The parts of a host each do one thing at a time, and nothing happens before its cause.
#[test]
fn the_timeline_shows_a_message_stage_by_stage() {
    for engine in ENGINES {
        let mut study = study(MACHINE, &sends(6, 4096), &["workload.trace=a.goal", RDMA]).expect("a study");
        study.scenario.timeline = true;
        let spans = run(engine, &study).timeline;
        for parcel in 0..6 {
            let of_message: Vec<_> = spans.iter().filter(|span| span.parcel == parcel).collect();
            let at = |name: &str| of_message.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name}"));
            for (before, after) in
                [("post", "doorbell"), ("doorbell", "read"), ("read", "network"), ("network", "write"), ("write", "poll")]
            {
                assert!(at(before).begin_ns < at(after).begin_ns, "{before} before {after}");
            }
            assert!((at("post").end_ns - at("post").begin_ns - POST).abs() < 1e-6);
        }
        for part in ["processor", "interface"] {
            for node in 0..4 {
                let mut busy: Vec<_> = spans.iter().filter(|span| span.part == part && span.node == node).collect();
                busy.sort_by(|one, other| one.begin_ns.total_cmp(&other.begin_ns));
                let overlaps = busy.windows(2).any(|pair| pair[1].begin_ns < pair[0].end_ns - 1e-6);
                // The interface has a sending and a receiving side.
                assert!(!overlaps || part == "interface", "{part} of {node}");
            }
        }
    }
}

#[test]
fn impossible_values_are_refused_with_a_remedy() {
    let machine = format!("{MACHINE}collective = \"alltoall\"\nmessage_bytes = 64\n[endpoint]\nmodel = \"rdma\"\n");
    let range = "it must be 0 to 10^9 ns";
    for (change, expected) in [
        ("endpoint.read_ns=-1.0", format!("endpoint.read_ns: is -1; {range}")),
        ("endpoint.poll_ns=2e9", format!("endpoint.poll_ns: is 2000000000; {range}")),
        ("endpoint.bus_gbit_per_second=0.0", "endpoint.bus_gbit_per_second: is 0; it must be above 0 and at most 10^9".to_owned()),
        ("endpoint.inline_bytes=5000", "endpoint.inline_bytes: is 5000; it must be 0 to 4096".to_owned()),
        ("endpoint.send_queue_entries=0", "endpoint.send_queue_entries: is 0; it must be 1 to 1048576".to_owned()),
        ("endpoint.post_n=1.0", "unknown key `post_n`; did you mean `post_ns`?".to_owned()),
        ("endpoint.signalled=1", "endpoint.signalled: is 1; it must be true or false".to_owned()),
        ("endpoint.model=rmda", "endpoint.model: unknown model `rmda`; did you mean `rdma`?".to_owned()),
    ] {
        let error = study(&machine, "", &[change]).expect_err(change);
        assert!(error.contains(&expected), "{change}: {error}\nnot: {expected}");
    }
    for (key, expected) in [
        ("cycle_ns = 1.28\n", "network.cycle_ns: is missing; the interface's times are in ns, so say how long a cycle is"),
        ("flit_bytes = 64\n", "network.flit_bytes: is missing; the interface's bus counts bytes, so say how many a flit holds"),
    ] {
        let error = study(&machine.replace(key, "").replace("message_bytes = 64", "message_flits = 1"), "", &[]).expect_err(key);
        assert!(error.contains(expected), "{error}");
    }
    let background = study(&machine, "", &["traffic.pattern=uniform", "traffic.load=0.1"]).expect("others may send meanwhile");
    assert!(background.scenario.has_background() && background.scenario.workload.is_some_and(|closed| closed.interfaces.is_some()));
}

/// Adapters serve workloads, and users may have none.
#[test]
fn adapters_without_any_workload_are_refused() {
    let machine = MACHINE.replace("[workload]\npacket_flits = 16\n", "");
    let users = format!("{machine}[[user]]\nname = \"a\"\nnodes = 2\n[user.traffic]\npattern = \"uniform\"\nload = 0.1\n");
    let error = study(&users, "", &[RDMA]).expect_err("no workload");
    assert!(error.contains("endpoint.model: \"rdma\" connects workloads with the network, and no user has a workload"), "{error}");
    let error = study(&users, "", &["endpoint.model=dsm"]).expect_err("no program");
    assert!(error.contains("endpoint.model: \"dsm\" is a machine that runs programs, and no user has one"), "{error}");
    let workload = "[user.workload]\ncollective = \"alltoall\"\nmessage_flits = 9\n";
    let moving = format!("{machine}[[user]]\nname = \"a\"\nnodes = 2\nchange_every = 10\n{workload}");
    let error = study(&moving, "", &[RDMA]).expect_err("queue pairs do not move");
    assert!(error.contains("user.0.change_every") && error.contains("its queue pairs belong to its adapter"), "{error}");
}

/// Formulas know no order of events, so they say that they cannot answer.
#[test]
fn formulas_refuse_it() {
    let machine = format!("{MACHINE}collective = \"alltoall\"\nmessage_bytes = 64\n");
    let study = study(&machine, "", &[RDMA]).expect("a study");
    let error = kasuri_flow::analysis::AnalysisEngine.run(&study.scenario, &mut *controller(&study)).expect_err("refused").to_string();
    assert!(error.starts_with("endpoint.model: is \"rdma\", which conflicts with engine = \"analysis\": "), "{error}");
}
