//! Open traffic in the background of a closed workload, as flows.

use crate::common::UntilDone;
use kasuri_config::{Document, Known, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::NoFiles;

fn run(text: &str) -> Outcome {
    let document = Document::parse("a.toml", text).unwrap();
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&document.points().unwrap()[0]).unwrap();
    FlowEngine.run(&study.scenario, &mut UntilDone).unwrap()
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
fn a_background_equals_another_user_on_the_same_terminals() {
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

/// Sixteen interfaces that read a vector from each other, each with eight reads outstanding.
const MACHINE: &str = "[router]\nvirtual_channels = 4\nbuffer_flits = 8\nswitching = \"virtual-cut-through\"\n\
     [endpoint]\nmodel = \"dsm\"\ninterface_cycles = 7\nwindow = 8\ncommand_flits = 4\ndata_flits = 4\n\
     [workload]\nprogram = \"matrix-vector\"\nsize = 64\n";

fn beside_machine(engine: &dyn Engine, traffic: &str) -> Outcome {
    let text = format!("{TORUS}{MACHINE}[traffic]\npattern = \"uniform\"\npacket_flits = 4\n{traffic}\n");
    let document = Document::parse("a.toml", &text).unwrap();
    let study = Preparation::new(&document, &NoFiles, Known::default()).study(&document.points().unwrap()[0]).unwrap();
    let outcome = engine.run(&Scenario { paranoid: true, ..study.scenario }, &mut UntilDone).unwrap();
    assert_eq!((outcome.status, outcome.interfaces.as_ref().unwrap().answered), (Status::Completed, 16 * 60));
    assert_eq!(outcome.packet_latency.count, 2 * 16 * 60, "requests and answers");
    outcome
}

/// The more the background sends, the longer the programs of a machine take, as flows and flit by flit: these are at most a fifth apart.
/// Without any load the run is that of the machine alone.
#[test]
fn programs_of_a_machine_take_longer_on_a_busy_network() {
    assert_eq!(beside_machine(&FlowEngine, "load = 0.0"), run(&format!("{TORUS}{MACHINE}")));
    let mut before = 0.0;
    for load in [0.0, 0.2, 0.5] {
        let [flow, flit] = [&FlowEngine as &dyn Engine, &FlitEngine].map(|engine| beside_machine(engine, &format!("load = {load:?}")));
        let time = flow.completion_time.unwrap();
        let ratio = time / flit.completion_time.unwrap();
        assert!((0.8..1.2).contains(&ratio), "load {load}: {ratio}");
        assert!(time > before, "load {load}: {time} after {before}");
        before = time;
        let had = |outcome: &Outcome| {
            outcome.background.map_or(0.0, |background| background.accepted_flits as f64 / outcome.cycles as f64 / 16.0)
        };
        assert!(had(&flow) >= 0.9 * load && had(&flit) >= 0.75 * load, "{} {}", had(&flow), had(&flit));
    }
}

/// Batches end before the machine does: each of their packets arrives, is answered, and leaves its place in the window to the next.
#[test]
fn windows_hold_with_a_machine() {
    let answered = "virtual_channels = [0, 2]\nreply = { packet_flits = 6, virtual_channels = [2, 4] }";
    for (more, packets, flits) in [("", 4, 16), (answered, 8, 40), (&format!("{answered}\ncounts_answers = true"), 4, 20)] {
        let of_window = |window: u32| {
            let batch = format!("process = \"batch\"\nbatch_packets = 4\noutstanding_packets = {window}\n{more}");
            let outcome = beside_machine(&FlowEngine, &batch);
            let [sent, come] = [&outcome.injected_flits, &outcome.accepted_flits].map(|flits| flits.iter().sum::<u64>());
            assert_eq!(sent, come, "{more}");
            outcome.background.unwrap()
        };
        let [one, two, all, more_than_all] = [1, 2, 8, 1000].map(of_window);
        if !more.contains("counts_answers") {
            for had in [one, two, all] {
                assert_eq!((had.packets, had.accepted_flits), (16 * packets, 16 * flits), "{more}");
            }
        }
        assert_eq!(all, more_than_all, "a window that is never full is none");
    }
}

/// On an otherwise idle network, a packet with a window of one takes its flits on each channel of its path.
#[test]
fn a_packet_with_an_idle_machine_takes_its_flits_on_each_channel() {
    let outcome =
        run("engine = \"flow\"\n[network]\ntopology = \"full-mesh\"\nrouters = 4\nconcentration = 1\n[routing]\nalgorithm = \"minimal\"\n\
         [router]\nvirtual_channels = 4\nbuffer_flits = 16\nswitching = \"virtual-cut-through\"\n[flow]\nlatency = false\n\
         [endpoint]\nmodel = \"dsm\"\n[workload]\nprogram = \"stencil\"\npoints = 4\niterations = 2\ncompute_cycles = 40000\n\
         [traffic]\npattern = \"neighbor\"\npacket_flits = 10\nprocess = \"batch\"\nbatch_packets = 1000\noutstanding_packets = 1\n");
    let background = outcome.background.unwrap();
    assert_eq!(background.packets, 4 * 1000);
    let mean = background.packet_latency as f64 / background.packets as f64;
    assert!((30.0..30.3).contains(&mean), "{mean} cycles over three channels");
}
