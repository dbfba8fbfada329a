//! Users with disjoint channels, simulated one by one on several threads. The results are the same, bit for bit, on any number of threads,
//! and differ from those of all users together only by rounding.

use kasuri_config::{Document, Known, Preparation};
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Command, Controller, Distribution, Engine, Interval, Outcome, Status, Threads};
use kasuri_network::topology::NoFiles;
use proptest::prelude::*;
use std::cell::Cell;

/// Waits for the end of a workload until a cycle, and counts the reported intervals.
struct Waiting {
    until: u64,
    /// True if it reports that it waits for nothing else. Otherwise all users are simulated together.
    says_so: bool,
    reports: u64,
    /// From this question on it wants the run to end.
    patience: Cell<u64>,
}

impl Waiting {
    fn new(says_so: bool) -> Self {
        Self { until: u64::MAX, says_so, reports: 0, patience: Cell::new(u64::MAX) }
    }
}

impl Controller for Waiting {
    fn interval_cycles(&mut self) -> u64 {
        self.until.min(25)
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.reports += 1;
        if interval.completed {
            Command::End(Status::Completed)
        } else if interval.end_cycle >= self.until || self.should_stop() {
            Command::End(Status::MaxCycles)
        } else {
            Command::Continue
        }
    }

    fn waits_until(&self) -> Option<u64> {
        self.says_so.then_some(self.until)
    }

    fn should_stop(&self) -> bool {
        self.patience.set(self.patience.get().saturating_sub(1));
        self.patience.get() == 0
    }
}

fn run(text: &str, threads: usize, controller: &mut Waiting) -> Outcome {
    let document = Document::parse("users.toml", text).expect("TOML");
    let points = document.points().expect("one point");
    let mut study = Preparation::new(&document, &NoFiles, Known::default()).study(&points[0]).expect("users");
    study.scenario.max_cycles = controller.until;
    let mut prepared = FlowEngine.prepare(&study.scenario).expect("nothing is refused");
    prepared.use_threads(Threads::new(threads)).expect("threads are no question of size");
    prepared.run(controller).expect("a run")
}

/// Networks of 64 terminals or more, with routings that draw and that do not.
const NETWORKS: [(&str, &str); 5] = [
    ("topology = 'fat-tree'\nup = 4\ndown = 4\nlevels = 3", "algorithm = 'nca'\nup_port = 'd-mod-k'"),
    ("topology = 'fat-tree'\nup = 2\ndown = 4\nlevels = 3", "algorithm = 'nca'\nup_port = 'random'"),
    ("topology = 'mesh'\ndimensions = [8, 8]", "algorithm = 'dimension-order'"),
    ("topology = 'torus'\ndimensions = [4, 4]\nconcentration = 4", "algorithm = 'dimension-order'"),
    ("topology = 'full-mesh'\nrouters = 8\nconcentration = 8", "algorithm = 'valiant'"),
];

const COLLECTIVES: [&str; 5] = [
    "collective = 'alltoall'\nschedule = 'shift'",
    "collective = 'alltoall'\nschedule = 'pairwise'",
    "collective = 'allreduce'\nschedule = 'ring'",
    "collective = 'allreduce'\nschedule = 'recursive-doubling'",
    "collective = 'broadcast'\nschedule = 'binomial'",
];

/// One user: its nodes, its collective, the flits of a message, and the start and the loop of its ranks.
#[derive(Clone, Debug)]
struct User {
    nodes: Vec<u32>,
    collective: usize,
    flits: u32,
    skew: f64,
    jitter: f64,
    repeat: u32,
}

fn text(network: usize, sharing: &str, latency: bool, users: &[User]) -> String {
    let (topology, routing) = NETWORKS[network];
    let channels = if network < 2 { 1 } else { 4 };
    let mut text = format!(
        "engine = 'flow'\n[network]\n{topology}\n[routing]\n{routing}\n[router]\nvirtual_channels = {channels}\n[flow]\nsharing = '{sharing}'\n\
         latency = {latency}\n"
    );
    for (number, user) in users.iter().enumerate() {
        let User { nodes, collective, flits, skew, jitter, repeat } = user;
        text += &format!(
            "[[user]]\nname = 'user-{number}'\nnodes = {nodes:?}\n[user.workload]\n{}\nmessage_flits = {flits}\npacket_flits = 8\n\
             start_skew_cycles = {skew:?}\njitter_cycles = {jitter:?}\nrepeat = {repeat}\n",
            COLLECTIVES[*collective]
        );
    }
    text
}

/// Neighbouring nodes from `first` on, a power of two of them; or every `stride`-th node.
fn users(stride: u32, count: u32, sizes: Vec<(u32, usize, u32, f64, f64, u32)>) -> Vec<User> {
    let of = |(number, (size, collective, flits, skew, jitter, repeat)): (u32, (u32, usize, u32, f64, f64, u32))| {
        let first = if stride == 1 { number * (64 / count) } else { number };
        let nodes = (0..size.min(64 / count)).map(|rank| first + rank * stride).collect();
        User { nodes, collective, flits, skew, jitter, repeat }
    };
    (0..count).zip(sizes).map(of).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

/// True if these are the same times but for rounding.
fn are_near(one: &Distribution, other: &Distribution) -> bool {
    one.count == other.count && is_near(one.sum, other.sum) && one.min.abs_diff(other.min) <= 1 && one.max.abs_diff(other.max) <= 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn threads_change_no_bit_of_users(
        network in 0..NETWORKS.len(),
        count in prop::sample::select(vec![1u32, 2, 4, 8]),
        is_apart in any::<bool>(),
        sizes in prop::collection::vec(
            (prop::sample::select(vec![2u32, 4, 8, 16]), 0..COLLECTIVES.len(), 1..60u32, prop::sample::select(vec![0.0, 0.0, 17.5]),
             prop::sample::select(vec![0.0, 0.0, 3.3]), 1..3u32),
            8,
        ),
        sharing in prop::sample::select(vec!["equal-share", "max-min"]),
        latency in any::<bool>(),
    ) {
        let users = users(if is_apart { 1 } else { count }, count, sizes);
        let text = text(network, sharing, latency, &users);
        let mut controller = Waiting::new(true);
        let alone = run(&text, 1, &mut controller);
        prop_assert_eq!(alone.status, Status::Completed);
        for threads in [2, 3, 4, 7, 16] {
            let mut other = Waiting::new(true);
            prop_assert!(run(&text, threads, &mut other) == alone, "{} threads of {}", threads, text);
            prop_assert_eq!(other.reports, controller.reports);
        }
        let together = run(&text, 1, &mut Waiting::new(false));
        prop_assert_eq!(&alone.channel_flits, &together.channel_flits);
        prop_assert_eq!(&alone.injected_flits, &together.injected_flits);
        prop_assert_eq!(&alone.accepted_flits, &together.accepted_flits);
        prop_assert_eq!((alone.flit_hops, alone.self_flits), (together.flit_hops, together.self_flits));
        prop_assert_eq!(&alone.hops, &together.hops);
        prop_assert!(alone.cycles.abs_diff(together.cycles) <= 1);
        prop_assert!(are_near(&alone.packet_latency, &together.packet_latency), "{:?} {:?}", alone.packet_latency, together.packet_latency);
        prop_assert!(are_near(&alone.network_latency, &together.network_latency));
        prop_assert!(is_near(alone.completion_time.unwrap(), together.completion_time.unwrap()));
        for (own, other) in alone.users.iter().zip(&together.users) {
            prop_assert!(is_near(own.completion.unwrap(), other.completion.unwrap()), "{:?} {:?}", own, other);
            prop_assert_eq!((own.packets, own.accepted_flits), (other.packets, other.accepted_flits));
            // Each latency is rounded separately.
            prop_assert!(own.packet_latency.abs_diff(other.packet_latency) <= own.packets);
        }
    }
}

/// Four users, each on two private rows of a mesh or each on two columns, which lie far apart.
fn four_users(is_apart: bool) -> String {
    let sizes = vec![(16, 0, 40, 0.0, 0.0, 1), (16, 0, 10, 0.0, 0.0, 2), (16, 2, 33, 0.0, 0.0, 1), (16, 3, 7, 5.0, 0.0, 1)];
    text(2, "max-min", true, &users(if is_apart { 1 } else { 4 }, 4, sizes))
}

/// The intervals in between are not reported where users are simulated one by one.
#[test]
fn users_that_share_a_channel_are_simulated_together() {
    for threads in [1, 3] {
        let (mut apart, mut mixed) = (Waiting::new(true), Waiting::new(true));
        run(&four_users(true), threads, &mut apart);
        let outcome = run(&four_users(false), threads, &mut mixed);
        assert_eq!(apart.reports, 1);
        assert!(mixed.reports > 1);
        assert_eq!(outcome, run(&four_users(false), 1, &mut Waiting::new(false)));
    }
}

/// The first messages of two users share nothing, later ones do: whether that shows before anything is simulated, as there are few, or not.
#[test]
fn users_that_meet_late_are_simulated_together_from_the_beginning() {
    let row = |first: u32| (first..first + 4).collect::<Vec<_>>();
    // The second user's nodes lie on both sides of the first one's, and its first messages go to the neighbour on the same side.
    let around = vec![0, 1, 6, 7];
    for repeat in [1, 80] {
        let user = |nodes: &[u32]| User { nodes: nodes.to_vec(), collective: 3, flits: 20, skew: 0.0, jitter: 0.0, repeat };
        let text = text(2, "equal-share", false, &[user(&row(2)), user(&around)]);
        for threads in [1, 2, 4] {
            let mut controller = Waiting::new(true);
            let outcome = run(&text, threads, &mut controller);
            assert!(controller.reports > 1);
            assert_eq!(outcome, run(&text, 1, &mut Waiting::new(false)));
        }
    }
}

#[test]
fn a_run_that_ends_early_ends_as_that_of_all_users_together() {
    for threads in [1, 2, 5] {
        let waiting = |says_so| Waiting { until: 60, ..Waiting::new(says_so) };
        let (mut one_by_one, mut together) = (waiting(true), waiting(false));
        let outcome = run(&four_users(true), threads, &mut one_by_one);
        assert_eq!((outcome.status, outcome.cycles), (Status::MaxCycles, 60));
        assert_eq!(outcome, run(&four_users(true), 1, &mut together));
        assert_eq!(one_by_one.reports, together.reports);
    }
}

#[test]
fn a_request_to_end_is_heard_among_the_parts() {
    for threads in [1, 2, 5] {
        let mut controller = Waiting { patience: Cell::new(1), ..Waiting::new(true) };
        let outcome = run(&four_users(true), threads, &mut controller);
        assert_eq!((outcome.status, controller.reports), (Status::MaxCycles, 1));
        assert!(outcome.users.iter().any(|user| user.completion.is_none()));
    }
}
