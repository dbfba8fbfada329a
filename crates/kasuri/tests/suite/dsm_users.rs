//! Several users on one distributed shared memory, under both engines: one user is no user, users apart take nothing from each other, and
//! every request of each is answered once, where it was meant to go.

use crate::shared_memory::{ENGINES, counts, run, study};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::Outcome;

const MACHINE: &str = "[network]\ntopology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n\
    [endpoint]\nmodel = \"dsm\"\ninterface_cycles = 7\nwindow = 8\ncommand_flits = 2\ndata_flits = 4\n";

fn user(name: &str, nodes: &[u32], sends: &str) -> String {
    format!("[[user]]\nname = \"{name}\"\nnodes = {nodes:?}\n{sends}\n")
}

const ROUTERS: [&str; 7] = [
    "virtual_channels = 4\nbuffer_flits = 4",
    "virtual_channels = 4\nbuffer_flits = 8\nswitching = \"virtual-cut-through\"",
    "virtual_channels = 4\nbuffer_flits = 4\narchitecture = \"virtual-output-queued\"",
    "virtual_channels = 4\nbuffer_flits = 8\nbuffer_policy = \"shared\"\nprivate_flits = 4",
    "virtual_channels = 4\nbuffer_flits = 4\ninternal_speedup = 2.0\noutput_buffer_flits = 4",
    "virtual_channels = 4\nbuffer_flits = 4\nclass_queues = true",
    "virtual_channels = 4\nbuffer_flits = 4\narchitecture = \"crosspoint\"",
];

const PROGRAMS: [&str; 3] =
    ["program = \"matrix-vector\"\nsize = 64", "program = \"stencil\"\npoints = 3", "program = \"producer-consumer\""];

/// A user that has all terminals, and whom translating costs nothing, has the machine for itself, bit for bit.
#[test]
fn one_user_is_no_user() {
    let all: Vec<u32> = (0..16).collect();
    for engine in ENGINES {
        let routers = if engine.name() == "flit" { &ROUTERS[..] } else { &ROUTERS[..1] };
        for router in routers {
            for program in PROGRAMS {
                let machine = format!("{MACHINE}[router]\n{router}\n");
                let without = run(engine, &format!("{machine}[workload]\n{program}\n"));
                let with = run(engine, &format!("{machine}{}", user("a", &all, &format!("[user.workload]\n{program}"))));
                assert!(without.interfaces.as_ref().unwrap().answered > 100);
                assert_eq!(with.users.len(), 1);
                assert_eq!(
                    (with.users[0].packets, with.users[0].completion),
                    (without.packet_latency.count, without.completion_time),
                    "{} {router} {program}",
                    engine.name()
                );
                let not_modelled = without.not_modelled.clone();
                assert_eq!(Outcome { users: Vec::new(), not_modelled, ..with }, without, "{} {router} {program}", engine.name());
            }
        }
    }
}

const UPPER: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const LOWER: [u32; 8] = [8, 9, 10, 11, 12, 13, 14, 15];

/// No path crosses the other user's half of the mesh: each user behaves as it does alone, at the same times.
#[test]
fn users_apart_take_nothing_from_each_other() {
    let [first, second] = ["matrix-vector\"\nsize = 32", "random-access\"\naccesses = 20\nwrite_fraction = 0.5"]
        .map(|program| format!("[user.workload]\nprogram = \"{program}"));
    let users = user("a", &UPPER, &first) + &user("b", &LOWER, &second);
    let text = |alone: &str| format!("{MACHINE}[router]\n{}\n[users]\nalone = \"{alone}\"\n{users}", ROUTERS[0]);
    for engine in ENGINES {
        let [both, a, b] = ["", "a", "b"].map(|alone| run(engine, &text(alone)));
        let of = |outcome: &Outcome, user: usize| (outcome.users[user].completion, outcome.users[user].packet_latency);
        assert_eq!((of(&both, 0), of(&both, 1)), (of(&a, 0), of(&b, 1)), "{}", engine.name());
        assert_eq!((a.users[1].completion, a.users[1].packets, b.users[0].completion), (None, 0, None));
        assert_eq!((both.users[0].packets, both.users[1].packets), (2 * 8 * 28, 2 * 8 * 20));
        let last = both.users.iter().filter_map(|user| user.completion).fold(0.0, f64::max);
        assert_eq!(both.completion_time, Some(last));
    }
}

const EVEN: [u32; 8] = [0, 2, 4, 6, 8, 10, 12, 14];
const ODD: [u32; 7] = [15, 13, 11, 9, 7, 5, 3];

/// Users with interleaved nodes on every router, with and without private virtual channels and shares, and a third user with open traffic:
/// each request is answered once, nothing arrives at another's node, and packets take longer than for a lone user.
#[test]
fn users_on_interleaved_nodes_get_their_own_answers() {
    for router in ROUTERS {
        // Shares need routers that have them.
        let isolations: &[&str] = if ["policy", "speedup", "crosspoint"].iter().any(|key| router.contains(key)) {
            &["none", "channels"]
        } else {
            &["none", "channels", "channels-and-shares"]
        };
        for isolation in isolations {
            let router = router.replace("virtual_channels = 4", "virtual_channels = 6");
            let users = user("a", &EVEN, "[user.workload]\nprogram = \"matrix-vector\"\nsize = 64")
                + &user("b", &ODD, "[user.workload]\nprogram = \"random-access\"\naccesses = 30\nwrite_fraction = 0.5")
                + &user("c", &[1], "")
                    .replace("nodes = [1]", "table = [1, 1]")
                    .replace("\n\n", "\n[user.traffic]\npattern = \"uniform\"\nload = 0.2\npacket_flits = 3\n");
            let text =
                |alone: &str| format!("{MACHINE}[router]\n{router}\n[users]\nisolation = \"{isolation}\"\nalone = \"{alone}\"\n{users}");
            let [all, alone] = ["", "a"].map(|alone| run(&FlitEngine, &text(alone)));
            let what = format!("{router} {isolation}");
            for (user, requests) in [(0, 8 * 56), (1, 7 * 30)] {
                let counts = counts(&all, user);
                assert_eq!((counts.accesses, counts.ended), (requests, requests), "{what}");
                assert_eq!((counts.misdelivered, counts.ended_wrongly, counts.faults), (0, 0, 0), "{what}");
                assert_eq!(all.users[user].packets, 2 * requests, "{what}");
            }
            assert!(counts(&all, 2).accesses > 10, "{what} {:?}", counts(&all, 2));
            // The others' packets are in its way; with private channels not always for the worse.
            let [beside, by_itself] = [&all, &alone].map(|outcome| outcome.users[0].packet_latency);
            assert!(beside > by_itself || *isolation != "none" && beside != by_itself, "{what}: {beside} {by_itself}");
            assert_eq!(all.interfaces.as_ref().unwrap().answered, 8 * 56 + 7 * 30, "{what}");
        }
    }
}

/// The same at the level of packets, which also distinguishes each user's packets.
#[test]
fn users_of_the_flow_engine_get_their_own_answers() {
    let users = |nodes: &[u32]| {
        user("a", &EVEN, "[user.workload]\nprogram = \"matrix-vector\"\nsize = 64")
            + &user("b", nodes, "[user.workload]\nprogram = \"random-access\"\naccesses = 30\nwrite_fraction = 0.5")
            + &user("c", &[1, 5], "[user.traffic]\npattern = \"uniform\"\nload = 0.2\npacket_flits = 3")
    };
    let text = |alone: &str| format!("{MACHINE}[router]\n{}\n[users]\nalone = \"{alone}\"\n{}", ROUTERS[0], users(&[15, 13, 11, 9, 7, 3]));
    let [all, alone] = ["", "a"].map(|alone| run(&FlowEngine, &text(alone)));
    assert_eq!((all.users[0].packets, all.users[1].packets), (2 * 8 * 56, 2 * 6 * 30));
    assert_eq!(all.users[0].packets + all.users[1].packets, all.packet_latency.count);
    assert!(all.users[2].packets > 10 && all.users[2].completion.is_none());
    assert!(all.users[0].packet_latency > alone.users[0].packet_latency);
    let flits: u64 = all.users.iter().map(|user| user.accepted_flits).sum();
    assert_eq!(flits, all.accepted_flits.iter().sum::<u64>());
}

/// A read waits for the look-up of its request, a hit (1) and a walk (10), and for nothing else; its answer is not looked up.
#[test]
fn a_read_waits_for_its_translation() {
    let time = |more: &str, accesses: u32| {
        let program = format!("[user.workload]\nprogram = \"remote-access\"\npairs = [[0, 1]]\naccesses = {accesses}");
        let outcome = run(&FlitEngine, &format!("{MACHINE}[router]\n{}\n{more}{}", ROUTERS[0], user("a", &[5, 10], &program)));
        (outcome.completion_time.unwrap(), counts(&outcome, 0))
    };
    let costs = "[translation]\nhit_cycles = 1\nwalk_cycles = 10\n";
    let ((free, _), (paid, counts)) = (time("", 1), time(costs, 1));
    assert_eq!(paid, free + 11.0);
    assert_eq!((counts.misses, counts.hits), (1, 0));
    let (_, counts) = time(costs, 9);
    assert_eq!((counts.misses, counts.hits, counts.ended), (1, 8, 9));
}

/// Routers of one user in the middle of a line, those of the other at its ends: each packet between the ends is foreign at both routers in
/// the middle, and packets between these two do not reach an end.
#[test]
fn packets_through_others_routers_are_counted_in_every_engine() {
    let machine = MACHINE.replace("[4, 4]", "[4]");
    for program in ["program = \"matrix-vector\"\nsize = 16", "program = \"random-access\"\naccesses = 20\nwrite_fraction = 0.5"] {
        let workload = format!("[user.workload]\n{program}");
        let users = user("ends", &[0, 3], &workload) + &user("middle", &[1, 2], &workload);
        for engine in ENGINES {
            let outcome = run(engine, &format!("{machine}[router]\n{}\n{users}", ROUTERS[0]));
            let foreign = |user: usize| outcome.users[user].translation.expect("a program translates").foreign_packets;
            let [ends, middle] = [0, 1].map(|user| outcome.users[user].packets);
            assert!(ends > 0 && middle > 0, "{}: {program}", engine.name());
            assert_eq!((foreign(0), foreign(1)), (0, 2 * ends), "{}: {program}", engine.name());
        }
    }
}

/// A read of another user's memory cannot be expressed: a program names only the nodes of its own user.
#[test]
fn unshareable_features_are_refused() {
    let program = "[user.workload]\nprogram = \"stencil\"";
    let open = "[user.traffic]\npattern = \"uniform\"\nload = 0.1";
    let two = |first: &str, second: &str| format!("{MACHINE}[router]\nvirtual_channels = 4\nbuffer_flits = 4\n{first}{second}");
    let wide = "overlap = [\"a\"]\n".to_owned() + program;
    let pairs = "[user.workload]\nprogram = \"remote-access\"\npairs = [[0, 9]]";
    for (text, parts) in [
        (two(&user("a", &UPPER, program), &user("b", &EVEN, &wide)), ["endpoint.model", "two users share a node"]),
        (two(&user("a", &UPPER, &format!("change_every = 9\n{program}")), ""), ["user.0.change_every", "in its memory"]),
        (two(&user("a", &UPPER, open), &user("b", &LOWER, open)), ["endpoint", "[user.workload]"]),
        (two(&user("a", &UPPER, pairs), &user("b", &LOWER, open)), ["user.0.workload.pairs", "nodes 0 to 7"]),
        (
            two(&user("a", &UPPER, program), &user("b", &LOWER, program)).replace("channels = 4", "channels = 3"),
            ["router.virtual_channels", "even"],
        ),
        (
            two(
                &user("a", &UPPER, &format!("virtual_channels = [0, 2]\n{program}")),
                &user("b", &LOWER, &format!("virtual_channels = [0, 4]\n{program}")),
            ),
            ["endpoint.model", "could wait for each other"],
        ),
        (
            "[network]\ntopology = \"cenju4\"\nterminals = 8\ncycle_ns = 12.5\n[routing]\nalgorithm = \"destination-tag\"\n\
             [router]\narchitecture = \"crosspoint\"\nbuffer_flits = 216\n[endpoint]\nmodel = \"cenju4\"\n"
                .to_owned()
                + &user("a", &[0, 1], open),
            ["endpoint", "tasks of its nodes"],
        ),
    ] {
        let message = study(&text).err().unwrap_or_else(|| panic!("accepted:\n{text}"));
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?}: {message}");
    }
}
