//! Several users on one machine, as flows.

use crate::collectives::assert_delivered_whole_wherever_ranks_start;
use crate::common::UntilDone;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Engine, Interval, Outcome, Status};
use kasuri_network::topology::NoFiles;

/// Two users on the left and the right half of a line of eight routers, one terminal each.
fn run(users: &str, first: &str, second: &str, controller: &mut dyn Controller) -> Outcome {
    let text = format!(
        "engine = \"flow\"\nnetwork = {{ topology = \"mesh\", dimensions = [8] }}\nrouting = {{ algorithm = \"dimension-order\" }}\n\
         flow = {{ latency = false }}\nusers = {{ {users} }}\n\
         [[user]]\nname = \"a\"\nnodes = [0, 1, 2, 3]\n{first}\n[[user]]\nname = \"b\"\nnodes = [4, 5, 6, 7]\n{second}\n"
    );
    study_run(&text, controller)
}

fn study_run(text: &str, controller: &mut dyn Controller) -> Outcome {
    let document = Document::parse("users.toml", text).expect("TOML");
    let points = document.points().expect("one point");
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("users");
    FlowEngine.run(&study.scenario, controller).expect("a run")
}

/// A number of cycles, all of them counted.
struct Cycles(u64);

impl Controller for Cycles {
    fn interval_cycles(&mut self) -> u64 {
        self.0
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.end_cycle >= self.0 { Command::End(Status::Converged) } else { Command::Continue }
    }
}

const ALL_TO_ALL: &str = "[user.workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 100";

const OPEN: &str = "[user.traffic]\npattern = \"bit-complement\"\nload = 0.25\npacket_flits = 5";

/// No path crosses the other user's half, so each ends when it ends alone.
#[test]
fn users_apart_take_nothing_from_each_other() {
    let together = run("", ALL_TO_ALL, ALL_TO_ALL, &mut UntilDone);
    let alone = run("alone = \"b\"", ALL_TO_ALL, ALL_TO_ALL, &mut UntilDone);
    let beside = run("", ALL_TO_ALL, OPEN, &mut UntilDone);
    assert_eq!((together.status, together.packet_latency.count), (Status::Completed, 2 * 4 * 3));
    let end = |outcome: &Outcome, user: usize| outcome.users[user].completion;
    assert_eq!(end(&together, 0), end(&together, 1));
    assert_eq!((end(&alone, 0), end(&alone, 1)), (None, end(&together, 1)));
    assert_eq!(end(&beside, 0), end(&together, 0));
    // The channel in the middle of each half carries four messages of 100 flits each way.
    assert!(end(&together, 0) >= Some(400.0));
    assert_eq!(together.users[0].accepted_flits, 4 * 3 * 100);
    assert!(beside.users[1].packets > 0);
}

/// Rates are counted for each user by himself.
#[test]
fn each_users_rate_is_his_load() {
    let half = OPEN.replace("0.25", "0.125");
    let outcome = run("", OPEN, &half, &mut Cycles(200_000));
    let rate = |user: usize| outcome.users[user].accepted_flits as f64 / 200_000.0 / 4.0;
    assert!((rate(0) - 0.25).abs() < 0.005 && (rate(1) - 0.125).abs() < 0.005, "{} {}", rate(0), rate(1));
}

/// Two users, each with eight nodes of his own that lie in a row.
fn collective_of_users(workload: &str) -> Outcome {
    let user =
        |name: &str, first: u32| format!("[[user]]\nname = \"{name}\"\nnodes = {:?}\n{workload}\n", (first..first + 8).collect::<Vec<_>>());
    study_run(
        &format!(
            "[network]\ntopology = \"mesh\"\ndimensions = [8, 3]\n[routing]\nalgorithm = \"dimension-order\"\n{}{}",
            user("a", 0),
            user("b", 16)
        ),
        &mut UntilDone,
    )
}

/// Times are no whole cycles, and are not rounded.
#[test]
fn a_users_collective_is_delivered_whole_wherever_its_ranks_start() {
    assert_delivered_whole_wherever_ranks_start(1e-6, collective_of_users);
}
