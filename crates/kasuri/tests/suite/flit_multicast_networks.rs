//! The endpoint cenju4 on networks of many kinds: its programs, which check their data themselves, and its refusals.

use crate::common::UntilDone;
use kasuri_config::Document;
use kasuri_model::engine::{Engine, Outcome, Status};
use kasuri_network::topology::NoFiles;

/// A network with its routing, as in an experiment file.
#[derive(Clone, Copy, Debug)]
struct Place {
    network: &'static str,
    routing: &'static str,
}

const D_MOD_K: &str = "algorithm = \"nca\"\nup_port = \"d-mod-k\"";
const S_MOD_K: &str = "algorithm = \"nca\"\nup_port = \"s-mod-k\"";
const TAG: &str = "algorithm = \"destination-tag\"";
const DIMENSION_ORDER: &str = "algorithm = \"dimension-order\"";

/// Of 64 terminals.
const SMALL: [Place; 6] = [
    Place { network: "topology = \"mesh\"\ndimensions = [8, 8]", routing: DIMENSION_ORDER },
    Place { network: "topology = \"mesh\"\ndimensions = [4, 4, 2]\nconcentration = 2", routing: DIMENSION_ORDER },
    Place { network: "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 3", routing: D_MOD_K },
    Place { network: "topology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 6", routing: S_MOD_K },
    Place { network: "topology = \"cenju4\"\nterminals = 64", routing: TAG },
    Place { network: "topology = \"cenju4\"\nterminals = 64\ncabling = \"round-robin-interleaved\"\ncable = \"sum\"", routing: TAG },
];

/// Of 256 terminals.
const LARGE: [Place; 3] = [
    Place { network: "topology = \"mesh\"\ndimensions = [16, 16]", routing: DIMENSION_ORDER },
    Place { network: "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 4", routing: D_MOD_K },
    Place { network: "topology = \"cenju4\"\nterminals = 128\ncable = \"source\"", routing: TAG },
];

fn experiment(place: Place, workload: &str) -> Document {
    let Place { network, routing } = place;
    let text = format!(
        "[network]\n{network}\ncycle_ns = 12.5\n[routing]\n{routing}\n[router]\narchitecture = \"crosspoint\"\nbuffer_flits = 108\n\
         [endpoint]\nmodel = \"cenju4\"\n[workload]\n{workload}\n[measure]\nmax_cycles = 100000000\n"
    );
    Document::parse("test.toml", &text).unwrap()
}

/// Runs a program with queues of one packet, the least that there may be.
fn outcome(place: Place, workload: &str) -> Outcome {
    let document = experiment(place, workload);
    let mut scenario = document.study(&document.points().unwrap()[0], &NoFiles).unwrap().scenario;
    scenario.paranoid = true;
    kasuri_flit::FlitEngine.run(&scenario, &mut UntilDone).unwrap()
}

fn nanoseconds(place: Place, workload: &str) -> f64 {
    let outcome = outcome(place, workload);
    assert_eq!(outcome.status, Status::Completed);
    outcome.completion_time.unwrap() * 12.5
}

fn refusal(place: Place, workload: &str) -> String {
    let document = experiment(place, workload);
    document.study(&document.points().unwrap()[0], &NoFiles).unwrap_err().to_string()
}

#[test]
fn all_programs_run_on_64_nodes() {
    for place in SMALL {
        for workload in [
            "collective = \"barrier\"\nschedule = \"network-barrier\"\nrepeat = 5",
            "collective = \"barrier\"\nschedule = \"network-barrier\"\nranks = 23\nrepeat = 5\nstart_skew_ns = 3000",
            "collective = \"barrier\"\nschedule = \"multicast-atomic-add\"\nrepeat = 3",
            "collective = \"barrier\"\nschedule = \"atomic-add\"",
            "collective = \"barrier\"\nschedule = \"tree\"\nrepeat = 3",
            "collective = \"barrier\"\nschedule = \"messages\"",
            "collective = \"allgather\"\nmessage_bytes = 1000\nrepeat = 2",
            "collective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 1000\nstart_skew_ns = 5000",
            "collective = \"allgather\"\nschedule = \"in-order\"\nmessage_bytes = 1000",
            "program = \"multicast-storm\"\nmessage_bytes = 512\nrepeat = 5",
            "program = \"ping-pong\"\nlibrary = \"mpi\"\nmessage_bytes = 5000\nrepeat = 2",
            "program = \"protocols\"",
            "program = \"protection\"",
        ] {
            assert_eq!(outcome(place, workload).status, Status::Completed, "{place:?} {workload}");
        }
    }
}

#[test]
fn multicasts_run_on_more_than_64_nodes_and_synchronisations_are_refused() {
    for place in LARGE {
        for workload in [
            "collective = \"barrier\"\nschedule = \"multicast-atomic-add\"",
            "collective = \"allgather\"\nmessage_bytes = 256",
            "program = \"multicast-storm\"\nmessage_bytes = 512\nrepeat = 2",
        ] {
            assert_eq!(outcome(place, workload).status, Status::Completed, "{place:?} {workload}");
        }
        let refusal = refusal(place, "collective = \"barrier\"");
        assert!(refusal.contains("at most 64 nodes; use multicast-atomic-add"), "{refusal}");
    }
}

/// The example's program checks its bytes itself. Rank 1 and rank 2 compute one after the other.
#[test]
fn the_example_of_a_users_own_program_runs() {
    let text = include_str!("../../../../examples/09-cenju4-script.toml");
    let document = Document::parse("example.toml", text).unwrap();
    let mut scenario = document.study(&document.points().unwrap()[0], &NoFiles).unwrap().scenario;
    scenario.paranoid = true;
    let outcome = kasuri_flit::FlitEngine.run(&scenario, &mut UntilDone).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    assert!(outcome.completion_time.unwrap() * 12.5 > 100_000.0);
    let wrong = text.replacen("to = 1, bytes = 20_000", "to = 1, bites = 20_000", 1);
    let document = Document::parse("example.toml", &wrong).unwrap();
    let refused = document.study(&document.points().unwrap()[0], &NoFiles).unwrap_err().to_string();
    assert!(refused.contains("bites") && refused.contains("bytes"), "{refused}");
}

/// 4400 ns and 125 ns for each of the routers: 15 from corner to corner of a mesh of 8 x 8, 5 over the top of three levels.
#[test]
fn the_latency_of_a_message_is_that_of_the_routers_on_its_path() {
    let half = |place| nanoseconds(place, "program = \"ping-pong\"\nmessage_bytes = 8\nwarmup = 1") / 2.0;
    assert_eq!(half(SMALL[0]), 4400.0 + 15.0 * 125.0);
    assert_eq!(half(SMALL[2]), 4400.0 + 5.0 * 125.0);
}

/// 4400 ns less the 3 flits of 8 bytes, and 200 ns for each router: 8 up from the farthest corner, the root, and 8 down; 2, 1 and 2 on a
/// fat tree. Packets that come at the same time are counted one after the other.
#[test]
fn a_barrier_takes_the_routers_up_and_down_the_tree() {
    for (place, routers, most_counted) in [(SMALL[0], 17.0, 9.0 * 4.0), (SMALL[2], 5.0, 3.0 * 4.0)] {
        let alone = nanoseconds(place, "collective = \"barrier\"\nranks = 1");
        assert_eq!(alone, 4400.0 - 37.5 + 200.0);
        let (all, least) = (nanoseconds(place, "collective = \"barrier\""), 4400.0 - 37.5 + routers * 200.0);
        assert!(all >= least && all < least + most_counted * 12.5, "{all} {least}");
    }
}

#[test]
fn networks_and_routings_without_an_argument_against_deadlock_are_refused() {
    let torus = Place { network: "topology = \"torus\"\ndimensions = [4, 4]", routing: DIMENSION_ORDER };
    let text = refusal(torus, "collective = \"barrier\"");
    assert!(text.contains("test.toml:2") && text.contains("in a cycle of 4 channels (router 0 port 0 -> router 1 port 1"), "{text}");
    assert!(text.contains("use mesh with dimension-order"), "{text}");
    for (place, routing) in [(SMALL[2], "algorithm = \"nca\""), (SMALL[2], "algorithm = \"nca\"\nup_port = \"adaptive\"")] {
        let text = refusal(Place { routing, ..place }, "collective = \"barrier\"");
        assert!(text.contains("by port 4 or by port 5, as chance, congestion or their source has it"), "{text}");
        assert!(text.contains("up_port = \"s-mod-k\" or \"d-mod-k\""), "{text}");
    }
    for routing in ["algorithm = \"o1turn\"", "algorithm = \"valiant\""] {
        let text = refusal(Place { routing, ..SMALL[0] }, "collective = \"allgather\"");
        assert!(text.contains("network.topology: is mesh [8, 8]") && text.contains("in a cycle of"), "{text}");
    }
}
