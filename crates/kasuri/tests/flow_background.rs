//! Open traffic beside a closed workload, as flows.

use kasuri_config::{Document, Known, Preparation};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status};
use kasuri_network::topology::NoFiles;

struct ToTheEnd;

impl Controller for ToTheEnd {
    fn interval_cycles(&mut self) -> u64 {
        1 << 40
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

fn run(text: &str) -> Outcome {
    let document = Document::parse("a.toml", text).unwrap();
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&document.points().unwrap()[0]).unwrap();
    FlowEngine.run(&study.scenario, &mut ToTheEnd).unwrap()
}

const TORUS: &str = "[network]\ntopology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n";
const ALL_TO_ALL: &str = "[workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 40\n";
const TRAFFIC: &str = "[traffic]\npattern = \"uniform\"\npacket_flits = 20\n";

fn beside(load: f64) -> Outcome {
    run(&format!("{TORUS}{TRAFFIC}load = {load:?}\n{ALL_TO_ALL}"))
}

#[test]
fn a_workload_takes_longer_on_a_busy_machine() {
    let alone = run(&format!("{TORUS}{ALL_TO_ALL}"));
    assert_eq!(beside(0.0), alone);
    let outcomes = [alone, beside(0.1), beside(0.2)];
    assert!(outcomes.windows(2).all(|pair| pair[1].completion_time > pair[0].completion_time));
    for outcome in &outcomes {
        assert_eq!(outcome.packet_latency.count, 16 * 15, "the workload's messages alone");
    }
    assert!(outcomes[2].background.unwrap().packets > outcomes[1].background.unwrap().packets);
}

/// Two ways to one answer.
#[test]
fn a_background_is_what_another_user_on_the_same_terminals_would_be() {
    let nodes: Vec<u32> = (0..16).collect();
    let users = run(&format!(
        "{TORUS}[[user]]\nname = \"a\"\nnodes = {nodes:?}\n{}[[user]]\nname = \"b\"\nnodes = {nodes:?}\noverlap = [\"a\"]\n{}load = 0.2\n",
        ALL_TO_ALL.replace("[work", "[user.work"),
        TRAFFIC.replace("[tra", "[user.tra")
    ));
    let one = beside(0.2);
    assert_eq!((one.completion_time, &one.accepted_flits), (users.completion_time, &users.accepted_flits));
    let background = one.background.unwrap();
    assert_eq!((background.packets, background.packet_latency), (users.users[1].packets, users.users[1].packet_latency));
}

/// A user who has all terminals has the machine for himself, with a window, too.
#[test]
fn a_user_of_all_terminals_with_a_window_is_the_machine_without_users() {
    let nodes: Vec<u32> = (0..16).collect();
    let batch = "[traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 40\npacket_flits = 8\noutstanding_packets = 2\n";
    let user = format!("[[user]]\nname = \"a\"\nnodes = {nodes:?}\n{}", batch.replace("[tra", "[user.tra"));
    let [machine, user] = [batch.to_owned(), user].map(|sends| run(&format!("{TORUS}{sends}")));
    assert_eq!(machine.packet_latency.count, 16 * 40);
    assert_eq!((machine.completion_time, machine.channel_flits), (user.completion_time, user.channel_flits));
}
