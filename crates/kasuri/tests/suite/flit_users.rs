//! Several users on one machine, cycle by cycle: protection, tables that change, isolation.

use crate::collectives::assert_delivered_whole_wherever_ranks_start;
use crate::flit_common::{Fixed, ToTheEnd};
use kasuri_config::Document;
use kasuri_flit::FlitEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status, UserOutcome};
use kasuri_network::topology::NoFiles;

fn run(text: &str, paranoid: bool, controller: &mut dyn Controller) -> Outcome {
    let document = Document::parse("a.toml", text).unwrap();
    let mut study = document.study(&document.points().unwrap()[0], &NoFiles).unwrap();
    study.scenario.paranoid = paranoid;
    FlitEngine.run(&study.scenario, controller).unwrap()
}

/// Runs for this many cycles, then lets everything arrive.
struct UntilEmpty(u64);

impl Controller for UntilEmpty {
    fn interval_cycles(&mut self) -> u64 {
        self.0
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        match interval.end_cycle {
            end if end <= self.0 => Command::Empty,
            _ if interval.outstanding_packets == 0 => Command::End(Status::Converged),
            _ => Command::Continue,
        }
    }
}

const MACHINE: &str = "[network]\ntopology = \"torus\"\ndimensions = [8, 8]\n\
    [routing]\nalgorithm = \"dimension-order\"\ntie = \"no-wrap\"\n";

/// The irregular region of nine nodes as a torus, and a user on all other terminals.
fn two_users(of_first: &str, of_second: &str) -> String {
    let table: Vec<u32> = vec![1, 2, 8, 9, 10, 11, 17, 18, 25];
    let others: Vec<u32> = (0..64).filter(|terminal| !table.contains(terminal)).collect();
    format!(
        "{MACHINE}[router]\nvirtual_channels = 8\n[translation]\ntlb_entries = 4\n\
         [[user]]\nname = \"a\"\ntable = {table:?}\nlogical = {{ topology = \"torus\", dimensions = [3, 3] }}\n{of_first}\n\
         [[user]]\nname = \"b\"\nnodes = {others:?}\n{of_second}\n"
    )
}

fn counts(outcome: &UserOutcome) -> kasuri_model::engine::TranslationCounts {
    outcome.translation.unwrap()
}

/// Paths of others lead through the region, and none of their packets is delivered there.
#[test]
fn foreign_packets_cross_a_region_and_are_not_delivered_there() {
    let traffic = "[user.traffic]\npattern = \"uniform\"\nload = 0.2\npacket_flits = 3";
    let outcome = run(&two_users(traffic, traffic), true, &mut UntilEmpty(4000));
    let [a, b] = [counts(&outcome.users[0]), counts(&outcome.users[1])];
    assert!(a.foreign_packets > 1000, "{a:?}");
    assert!(b.foreign_packets > 0, "{b:?}");
    for user in [a, b] {
        assert_eq!((user.misdelivered, user.ended_wrongly, user.faults), (0, 0, 0));
        assert_eq!(user.accesses, user.ended);
        assert!(user.accesses > 500);
    }
}

/// A table with holes: an access to a hole is a fault, all others arrive. Of 56 logical nodes 16 are not valid: a node draws one of
/// 55 others, so that 16 in 55 of a million accesses fault.
#[test]
fn a_million_random_accesses_never_arrive_outside_of_the_table() {
    let is_hole = |node: u32| node % 7 == 3 || node % 7 == 5;
    let lines: Vec<String> = (0..56).map(|node| if is_hole(node) { "[]".to_owned() } else { (node * 37 % 64).to_string() }).collect();
    let traffic = "[user.traffic]\npattern = \"uniform\"\nload = 0.3\nvirtual_channels = [0, 2]\nreply = { virtual_channels = [2, 4] }\n";
    let text = format!("{MACHINE}[router]\nvirtual_channels = 4\n[[user]]\nname = \"a\"\ntable = [{}]\n{traffic}", lines.join(", "));
    let outcome = run(&text, false, &mut UntilEmpty(130_000));
    let user = counts(&outcome.users[0]);
    assert_eq!((user.misdelivered, user.ended_wrongly), (0, 0));
    assert_eq!(user.accesses, user.ended);
    assert!(user.accesses + user.faults > 1_000_000, "{user:?}");
    let share = user.faults as f64 / (user.faults + user.accesses) as f64;
    assert!((share - 16.0 / 55.0).abs() < 0.005, "{share}");
    let inside: Vec<u32> = (0..56).filter(|&node| !is_hole(node)).map(|node| node * 37 % 64).collect();
    let outside = (0..64).filter(|terminal| !inside.contains(terminal));
    let arrived: Vec<u64> = outside.map(|terminal| outcome.accepted_flits[terminal as usize]).collect();
    assert_eq!(arrived, [0; 24], "counted at the receivers");
}

/// Entries change places all the time, at full load and with other users: every request is answered exactly once, at the place of its
/// logical node at that time.
#[test]
fn changes_of_tables_under_full_load_lose_nothing() {
    let first = "change_every = 50\n[user.traffic]\npattern = \"uniform\"\nload = 1.0\npacket_flits = 2\n\
                 virtual_channels = [0, 2]\nreply = { packet_flits = 3, virtual_channels = [2, 4] }";
    let second = "spare_nodes = 9\nchange_every = 20\n[user.traffic]\npattern = \"uniform\"\nload = 1.0\npacket_flits = 2\n\
                  virtual_channels = [4, 6]\nreply = { packet_flits = 3, virtual_channels = [6, 8] }";
    let outcome = run(&two_users(first, second), true, &mut UntilEmpty(10_000));
    assert_eq!(outcome.status, Status::Converged);
    for user in outcome.users.iter().map(counts) {
        assert_eq!((user.misdelivered, user.ended_wrongly, user.faults), (0, 0, 0), "{user:?}");
        assert_eq!(user.accesses, user.ended, "{user:?}");
        assert!(user.accesses > 1000 && user.changes > 20 && user.held_cycles > 0, "{user:?}");
    }
}

/// Three logical nodes on one terminal: each gets its packets, though all come by one channel.
#[test]
fn virtual_processors_of_a_terminal_get_their_own_packets() {
    let text = format!(
        "{MACHINE}[router]\nvirtual_channels = 4\n[[user]]\nname = \"a\"\ntable = [7, 7, 7, 20, 21]\n[user.traffic]\npattern = \"uniform\"\n\
         process = \"batch\"\nbatch_packets = 100\nreply = {{}}\n"
    );
    let outcome = run(&text, true, &mut ToTheEnd);
    let user = counts(&outcome.users[0]);
    // Three terminals send 100 requests each.
    assert_eq!((outcome.status, user.accesses, user.ended, user.misdelivered), (Status::Completed, 300, 300, 0));
    assert!(outcome.accepted_flits[7] > outcome.accepted_flits[20]);
}

/// Read throughput of one hot node with k interfaces: all others read from it as fast as they can.
fn hot_node_throughput(interfaces: &str) -> f64 {
    let readers: Vec<String> = (32..63).map(|terminal| terminal.to_string()).collect();
    let text = format!(
        "{MACHINE}[router]\nvirtual_channels = 4\nbuffer_flits = 8\n[[user]]\nname = \"a\"\ntable = [{interfaces}, {}]\n[user.traffic]\npattern = \"hotspot\"\n\
         terminals = [0]\nweights = [1.0]\nload = 0.5\nvirtual_channels = [0, 2]\nreply = {{ packet_flits = 4, virtual_channels = [2, 4] }}\n",
        readers.join(", ")
    );
    let outcome = run(&text, true, &mut Fixed::new(3000, 10_000));
    outcome.accepted_flits[32..63].iter().sum::<u64>() as f64 / 10_000.0
}

/// Key bits spread the requests over both interfaces, and each answers as fast as a single one.
#[test]
fn a_second_interface_doubles_the_throughput_of_a_hot_node() {
    let (one, two) = (hot_node_throughput("[0]"), hot_node_throughput("[0, 5]"));
    assert!((1.7..=2.05).contains(&(two / one)), "{one} {two}");
}

/// A lone access of a batch waits for the hit (1) or the walk too (1 + 10); the next of the same node finds its entry.
#[test]
fn a_translation_has_the_cost_in_the_table() {
    let latency = |batch: u32, translation: &str| {
        let text = format!(
            "{MACHINE}[router]\nvirtual_channels = 4\n{translation}[[user]]\nname = \"a\"\ntable = [0, 3]\n[user.traffic]\n\
             pattern = \"hotspot\"\nterminals = [1]\nweights = [1.0]\nprocess = \"batch\"\nbatch_packets = {batch}\n"
        );
        run(&text, true, &mut ToTheEnd).completion_time.unwrap()
    };
    let free = latency(1, "");
    let costs = "[translation]\nhit_cycles = 1\nwalk_cycles = 10\n";
    assert_eq!(latency(1, costs), free + 11.0);
    // Hits follow each other without a gap.
    assert_eq!(latency(9, costs), latency(9, "") + 11.0);
    let nothing_held = format!("{costs}tlb_entries = 0\n");
    assert_eq!(latency(9, &nothing_held), free + 9.0 * 11.0);
}

/// An all-to-all of the nine nodes, in parallel to the second user's traffic.
fn all_to_all(of_machine: &str, of_second: &str) -> String {
    let workload = "[user.workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 40\npacket_flits = 8";
    format!("{of_machine}\n{}", two_users(workload, of_second))
}

/// The run ends with the workload. The user's completed work and arrived packets are the same whether he is alone, with another workload or
/// with open traffic, which slows him down; no packet goes astray.
#[test]
fn other_users_slow_a_workload() {
    let alone = run(&all_to_all("[users]\nalone = \"a\"", "[user.traffic]\npattern = \"uniform\"\nload = 0.5"), true, &mut ToTheEnd);
    let beside = run(&all_to_all("", "[user.traffic]\npattern = \"uniform\"\nload = 0.5\npacket_flits = 4"), true, &mut ToTheEnd);
    let two = "[user.workload]\ncollective = \"allreduce\"\nmessage_flits = 400";
    let both = run(&all_to_all("", two), true, &mut ToTheEnd);
    for outcome in [&alone, &beside, &both] {
        let user = &outcome.users[0];
        assert_eq!(outcome.status, Status::Completed);
        // 9 x 8 messages of 40 flits in packets of 8.
        assert_eq!((user.packets, user.accepted_flits), (9 * 8 * 5, 9 * 8 * 40));
        assert_eq!((counts(user).accesses, counts(user).ended, counts(user).misdelivered), (360, 360, 0));
        assert_eq!((counts(user).faults, counts(user).ended_wrongly), (0, 0));
    }
    let end = |outcome: &Outcome, user: usize| outcome.users[user].completion.unwrap();
    assert_eq!(Some(end(&alone, 0)), alone.completion_time);
    assert_eq!(Some(end(&beside, 0)), beside.completion_time);
    assert!(end(&beside, 0) > end(&alone, 0), "{} {}", end(&beside, 0), end(&alone, 0));
    assert_eq!((alone.users[1].completion, beside.users[1].completion), (None, None));
    assert!(beside.users[1].packets > 1000);
    assert_eq!(both.completion_time, Some(end(&both, 0).max(end(&both, 1))));
}

/// A packet of a message is looked up as any other: the first of each pair of nodes misses, and then each waits one cycle.
#[test]
fn packets_of_messages_are_translated() {
    let free = run(&all_to_all("[users]\nalone = \"a\"", "[user.traffic]\npattern = \"uniform\"\nload = 0.5"), true, &mut ToTheEnd);
    let text = all_to_all("[users]\nalone = \"a\"", "[user.traffic]\npattern = \"uniform\"\nload = 0.5")
        .replace("tlb_entries = 4", "tlb_entries = 16\nwalk_cycles = 25");
    let outcome = run(&text, true, &mut ToTheEnd);
    let user = counts(&outcome.users[0]);
    assert_eq!((user.misses, user.hits), (72, 360 - 72));
    assert!(outcome.completion_time > free.completion_time);
}

/// Both regions hang together, and each user's packets stay in his own.
#[test]
fn routes_inside_a_region_meet_no_foreign_packet() {
    let traffic = "[user.traffic]\npattern = \"uniform\"\nload = 0.1\npacket_flits = 3";
    let outcome = run(&format!("[users]\nrouting = \"inside\"\n{}", two_users(traffic, traffic)), true, &mut UntilEmpty(4000));
    assert_eq!(outcome.status, Status::Converged);
    for user in outcome.users.iter().map(counts) {
        assert_eq!((user.foreign_packets, user.misdelivered), (0, 0));
        assert_eq!(user.accesses, user.ended);
        assert!(user.accesses > 500, "{user:?}");
    }
}

/// Two users, each with eight nodes of his own that lie in a row.
fn collective_of_users(workload: &str) -> Outcome {
    let user =
        |name: &str, first: u32| format!("[[user]]\nname = \"{name}\"\nnodes = {:?}\n{workload}\n", (first..first + 8).collect::<Vec<_>>());
    run(&format!("{MACHINE}[router]\nvirtual_channels = 4\n{}{}", user("a", 0), user("b", 16)), true, &mut ToTheEnd)
}

/// Each of a few messages in a row may begin a cycle later than it could.
#[test]
fn a_users_collective_is_delivered_whole_wherever_its_ranks_start() {
    assert_delivered_whole_wherever_ranks_start(6.0, collective_of_users);
}
