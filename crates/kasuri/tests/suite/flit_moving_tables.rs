//! Tables that change under workloads and under batches: ranks and batches move with their logical nodes, and nothing is lost.

use crate::flit_common::{Fixed, ToTheEnd};
use kasuri_config::Document;
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Controller, Engine, Outcome, Status, TranslationCounts};
use kasuri_network::topology::Files;
use kasuri_workload::collective::COLLECTIVES;

/// The trace that a file names, whatever it is called.
struct Trace(&'static str);

impl Files for Trace {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.as_bytes().to_vec())
    }
}

fn run_trace(text: &str, trace: &'static str, engine: &dyn Engine, controller: &mut dyn Controller) -> Outcome {
    let document = Document::parse("a.toml", text).unwrap();
    let mut study = document.study(&document.points().unwrap()[0], &Trace(trace)).unwrap_or_else(|error| panic!("{error}"));
    study.scenario.paranoid = true;
    engine.run(&study.scenario, controller).unwrap()
}

fn run(text: &str) -> Outcome {
    run_trace(text, "", &FlitEngine, &mut ToTheEnd)
}

const TORUS: &str = "[network]\ntopology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n\
    [router]\nvirtual_channels = 4\n";

const LINE: &str = "[network]\ntopology = \"mesh\"\ndimensions = [8]\ncycle_ns = 1\nflit_bytes = 1\n\
    [routing]\nalgorithm = \"dimension-order\"\n";

fn counts(outcome: &Outcome, user: usize) -> TranslationCounts {
    outcome.users[user].translation.unwrap()
}

/// All that was let in has ended, where it was meant to.
fn assert_nothing_lost(outcome: &Outcome, what: &str) {
    for user in 0..outcome.users.len() {
        let counts = counts(outcome, user);
        assert_eq!((counts.misdelivered, counts.ended_wrongly, counts.faults), (0, 0, 0), "{what}: {counts:?}");
        assert_eq!(counts.accesses, counts.ended, "{what}: {counts:?}");
    }
}

/// Every collective ends, with the same number of packets as without changes of the table, whether entries change places or move to spare
/// nodes.
#[test]
fn a_workload_is_delivered_whole_while_its_ranks_move() {
    for entry in COLLECTIVES {
        let text = |more: &str| {
            format!(
                "{TORUS}[[user]]\nname = \"a\"\nnodes = 8\n{more}\n[user.workload]\ncollective = \"{}\"\nschedule = \"{}\"\n\
                 message_flits = 60\npacket_flits = 8\n",
                entry.collective, entry.schedule
            )
        };
        let ranks = |spare: u32| format!("{}\nspare_nodes = {spare}", 8 + spare);
        let still = run(&text(""));
        for spare in [0, 4] {
            let changing = text("change_every = 25").replace("nodes = 8", &format!("nodes = {}", ranks(spare)));
            let moving = run(&changing);
            let what = format!("{} {} with {spare} spare nodes", entry.collective, entry.schedule);
            assert_eq!(moving.status, Status::Completed, "{what}");
            assert_nothing_lost(&moving, &what);
            let of = |outcome: &Outcome| (outcome.users[0].packets, outcome.users[0].accepted_flits);
            assert_eq!(of(&moving), of(&still), "{what}");
            let long = still.completion_time > Some(100.0);
            assert!(!long || counts(&moving, 0).changes > 0, "{what}");
        }
    }
}

/// A change that never comes changes nothing, of a workload or of a batch.
#[test]
fn a_table_that_does_not_change_in_time_is_one_that_does_not_change() {
    let workload = "[user.workload]\ncollective = \"alltoall\"\nmessage_flits = 30\npacket_flits = 8\n";
    let batch =
        "[user.traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 40\noutstanding_packets = 2\npacket_flits = 3\n";
    for sends in [workload, batch] {
        let text = |more: &str| format!("{TORUS}[[user]]\nname = \"a\"\nnodes = 10\nspare_nodes = 2\n{more}\n{sends}");
        let [never, late] = ["", "change_every = 1000000"].map(|more| run(&text(more)));
        assert!(never.packet_latency.count > 100);
        assert_eq!(never, late, "{sends}");
    }
}

/// Rank 0 computes for 600 ns, then sends a message to rank 1.
const LATE: &str = "num_ranks 2\nrank 0 {\nc: calc 600\ns: send 40b to 1 tag 1\ns requires c\n}\nrank 1 {\nr: recv 40b from 0 tag 1\n}\n";

/// A message that is created after a change takes the time that it takes where the table has been so from the beginning.
#[test]
fn a_message_after_a_change_goes_from_and_to_where_the_nodes_are_now() {
    let text = |table: &str, more: &str| {
        format!("{LINE}[[user]]\nname = \"a\"\n{table}\n{more}\n[user.workload]\ntrace = \"a.goal\"\npacket_flits = 8\n")
    };
    let run = |text: &str| run_trace(text, LATE, &FlitEngine, &mut ToTheEnd);
    let before = run(&text("table = [0, 1]", ""));
    let moved = run(&text("table = [0, 1]", "nodes = [0, 1, 7]\nchange_every = 500"));
    assert_eq!(counts(&moved, 0).changes, 1);
    let after = ["table = [7, 1]", "table = [0, 7]"].map(|table| run(&text(table, "")));
    assert!(after.iter().any(|after| after.accepted_flits == moved.accepted_flits && after.completion_time == moved.completion_time));
    assert!(moved.completion_time > before.completion_time);
    // Two that change places have the same path the other way round.
    let exchanged = run(&text("table = [0, 1]", "change_every = 500"));
    assert_eq!((exchanged.completion_time, counts(&exchanged, 0).changes), (before.completion_time, 1));
    assert_eq!((exchanged.accepted_flits[0], exchanged.accepted_flits[1]), (40, 0));
}

/// Rank 0 sends one long message to rank 1.
const LONG: &str = "num_ranks 2\nrank 0 {\ns: send 4000b to 1 tag 1\n}\nrank 1 {\nr: recv 4000b from 0 tag 1\n}\n";

/// Packets in flight arrive at their original destination; the rest of the message leaves from, and goes to, the ranks' new places.
#[test]
fn a_message_in_parts_reaches_its_rank_wherever_that_is() {
    let text = format!(
        "{LINE}[[user]]\nname = \"a\"\nnodes = [0, 1, 3, 5, 6, 7]\nspare_nodes = 4\nchange_every = 150\n[user.workload]\ntrace = \"a.goal\"\n\
         packet_flits = 8\n"
    );
    let outcome = run_trace(&text, LONG, &FlitEngine, &mut ToTheEnd);
    assert_nothing_lost(&outcome, "a long message");
    let places = |flits: &[u64]| flits.iter().filter(|&&flits| flits > 0).count();
    assert_eq!((outcome.accepted_flits.iter().sum::<u64>(), outcome.injected_flits.iter().sum::<u64>()), (4000, 4000));
    assert!(places(&outcome.accepted_flits) > 2 && places(&outcome.injected_flits) > 2, "{:?}", outcome.accepted_flits);
    assert!((outcome.injected_flits[2], outcome.accepted_flits[4]) == (0, 0), "terminals of nobody");
    assert!(counts(&outcome, 0).changes >= 20);
}

/// The batch of a node is sent from its present place: with windows or without, with answers that count or do not.
#[test]
fn a_batch_moves_with_its_node() {
    let answers = "virtual_channels = [0, 2]\nreply = { virtual_channels = [2, 4], packet_flits = 2 }\n";
    for (window, answered) in [("", false), ("outstanding_packets = 1\n", false), ("outstanding_packets = 3\n", true), ("", true)] {
        let more = if answered { answers } else { "" };
        for spare in [0, 3] {
            let text = format!(
                "{TORUS}[[user]]\nname = \"a\"\nnodes = 10\nspare_nodes = {spare}\nchange_every = 30\n[user.traffic]\npattern = \"uniform\"\n\
                 process = \"batch\"\nbatch_packets = 80\npacket_flits = 3\n{window}{more}"
            );
            let outcome = run(&text);
            let what = format!("{window}, answered {answered}, {spare} spare");
            let nodes = 10 - spare;
            assert_eq!(outcome.status, Status::Completed, "{what}");
            assert_nothing_lost(&outcome, &what);
            assert_eq!(counts(&outcome, 0).accesses, nodes * 80, "{what}");
            let flits = if answered { 3 + 2 } else { 3 };
            assert_eq!(outcome.accepted_flits.iter().sum::<u64>(), nodes * 80 * flits, "{what}");
            assert!(counts(&outcome, 0).changes > 5, "{what}");
            let senders = outcome.injected_flits.iter().filter(|&&flits| flits > 0).count() as u64;
            assert_eq!(senders > nodes, spare > 0, "{what}: {senders}");
        }
    }
}

/// Answers that count among the packets of a batch, and rules that end with the first terminal: all ends.
#[test]
fn batches_that_count_answers_end_while_their_nodes_move() {
    let text = format!(
        "{TORUS}[[user]]\nname = \"a\"\nnodes = 10\nspare_nodes = 2\nchange_every = 30\n[user.traffic]\npattern = \"uniform\"\n\
         process = \"batch\"\nbatch_packets = 80\ncounts_answers = true\noutstanding_packets = 2\nvirtual_channels = [0, 2]\n\
         reply = {{ virtual_channels = [2, 4] }}\n"
    );
    let outcome = run(&text);
    assert_eq!(outcome.status, Status::Completed);
    let counts = counts(&outcome, 0);
    assert_eq!((counts.misdelivered, counts.ended_wrongly, counts.faults), (0, 0, 0));
    assert!(counts.changes > 5);
}

/// Two users on the same terminals, each with a workload and a changing table, on sources with one queue or with one for each class, in the
/// presence of a third with open traffic.
#[test]
fn users_that_share_terminals_move_apart() {
    for router in ["", "class_queues = true\n"] {
        let user = |name: &str, every: u32, collective: &str| {
            format!(
                "[[user]]\nname = \"{name}\"\nnodes = [0, 1, 2, 5, 6, 7, 10, 11]\nspare_nodes = 2\noverlap = [\"a\"]\nchange_every = {every}\n\
                 [user.workload]\ncollective = \"{collective}\"\nmessage_flits = 60\npacket_flits = 8\n"
            )
        };
        let open = "[[user]]\nname = \"c\"\nnodes = [3, 4, 8, 9]\nchange_every = 45\n[user.traffic]\npattern = \"uniform\"\nload = 0.3\n";
        let text = format!("{TORUS}{router}[translation]\n{}{}{open}", user("a", 30, "alltoall"), user("b", 40, "allreduce"));
        let outcome = run(&text);
        assert_eq!(outcome.status, Status::Completed);
        for user in 0..2 {
            let counts = counts(&outcome, user);
            assert_eq!((counts.misdelivered, counts.ended_wrongly, counts.faults), (0, 0, 0), "{counts:?}");
            assert_eq!(counts.accesses, counts.ended);
            assert!(counts.changes > 3 && counts.hits > 0, "{counts:?}");
        }
        assert_eq!((outcome.users[0].packets, outcome.users[0].accepted_flits), (6 * 5 * 8, 6 * 5 * 60));
    }
}

/// A window on open traffic in the presence of a batch with a moving node: neither waits forever for returns at another place.
#[test]
fn a_batch_moves_in_open_traffic() {
    let text = format!(
        "{TORUS}[[user]]\nname = \"a\"\nnodes = [0, 1, 2, 3, 4, 5]\nspare_nodes = 1\nchange_every = 20\n[user.traffic]\npattern = \"uniform\"\n\
         process = \"batch\"\nbatch_packets = 50\noutstanding_packets = 1\n\
         [[user]]\nname = \"b\"\nnodes = [6, 7, 8, 9]\nspare_nodes = 1\nchange_every = 25\n[user.traffic]\npattern = \"uniform\"\nload = 0.2\n"
    );
    let outcome = run_trace(&text, "", &FlitEngine, &mut Fixed::new(0, 20_000));
    // The packets created last are still on their way.
    let [a, b] = [0, 1].map(|user| counts(&outcome, user));
    assert_eq!((a.accesses, a.ended), (250, 250));
    assert!(b.accesses > 1000 && b.accesses - b.ended < 20, "{b:?}");
}

/// The flow engine leaves changes of tables out, and says so.
#[test]
fn the_flow_engine_names_the_changes_that_it_leaves_out() {
    let text = |more: &str| {
        format!("{TORUS}[[user]]\nname = \"a\"\nnodes = 8\n{more}\n[user.workload]\ncollective = \"alltoall\"\nmessage_flits = 60\n")
    };
    let [still, moving] = ["", "change_every = 25"].map(|more| run_trace(&text(more), "", &FlowEngine, &mut ToTheEnd));
    assert!(moving.not_modelled.iter().any(|key| key == "user.change_every"), "{:?}", moving.not_modelled);
    assert_eq!(still.completion_time, moving.completion_time);
}
