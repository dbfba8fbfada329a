//! Nodes of a distributed shared memory that translate node numbers themselves, under both engines: what look-ups cost, what tables keep
//! out, several interfaces before one memory, several logical nodes and users at one node, pages, the operating system, slices of time.

use crate::common::UntilDone;
use crate::shared_memory::{ENGINES, counts, run, study};
use kasuri_model::engine::Outcome;

fn machine(network: &str, endpoint: &str, rest: &str) -> String {
    format!(
        "[network]\ntopology = \"mesh\"\n{network}\n[routing]\nalgorithm = \"dimension-order\"\n[router]\nvirtual_channels = 4\n\
         buffer_flits = 8\n[endpoint]\nmodel = \"dsm\"\ninterface_cycles = 7\ncommand_flits = 2\ndata_flits = 4\n{endpoint}\n{rest}\n"
    )
}

const SQUARE: &str = "dimensions = [4, 4]";

/// All accesses that were let through ended once, where they were meant to go, and no word was wrong.
fn check_all_right(outcome: &Outcome) {
    for user in 0..outcome.users.len() {
        let counts = counts(outcome, user);
        assert_eq!((counts.ended, counts.ended_wrongly), (counts.accesses, 0));
        assert_eq!((counts.misdelivered, counts.wrong_words), (0, 0));
    }
}

fn end(outcome: &Outcome) -> f64 {
    outcome.completion_time.unwrap()
}

/// One node reads 40 words of another, one after the other: each look-up adds its cycles to the time, each miss a read of memory.
#[test]
fn each_look_up_takes_its_time() {
    let user = "[[user]]\nname = \"a\"\nnodes = 16\n[user.workload]\nprogram = \"remote-access\"\npairs = [[1, 0]]\naccesses = 40\n";
    for engine in ENGINES {
        let time = |translation: &str| {
            let outcome = run(engine, &machine(SQUARE, "window = 1", &format!("[translation]\n{translation}\n{user}")));
            check_all_right(&outcome);
            (end(&outcome), counts(&outcome, 0).hits, counts(&outcome, 0).misses)
        };
        let (free, ..) = time("hit_cycles = 0\nwalk_cycles = 0");
        assert_eq!(time("hit_cycles = 3\nwalk_cycles = 0"), (free + 120.0, 39, 1));
        assert_eq!(time("hit_cycles = 0\nwalk_cycles = 11"), (free + 11.0, 39, 1));
        assert_eq!(time("hit_cycles = 2\nwalk_cycles = 11\ntlb_entries = 0"), (free + 40.0 * 13.0, 0, 40));
        assert_eq!(time("hit_cycles = 2\nwalk_cycles = 11\ntlb_entries = 0\nunit_tables = 1"), (free + 80.0, 40, 0));
    }
}

/// Logical node 3 is unmapped: accesses to it are faults reported to the requester, all others complete.
#[test]
fn nothing_is_sent_to_unmapped_nodes() {
    let user = "[[user]]\nname = \"a\"\nnodes = 16\ntable = [4, 5, 6, [], 7, 8]\n[user.workload]\nprogram = \"random-access\"\n\
        accesses = 200\nwrite_fraction = 0.5\n";
    for engine in ENGINES {
        let outcome = run(engine, &machine(SQUARE, "", user));
        check_all_right(&outcome);
        let counts = counts(&outcome, 0);
        assert_eq!(counts.accesses + counts.faults, 5 * 200);
        assert!((150..250).contains(&counts.faults), "{} of 1000, of which a fifth name node 3", counts.faults);
    }
}

fn hot_spot(table: &str, memory: u32) -> String {
    let endpoint = format!("interfaces = 2\nwindow = 8\nmemory_cycles = {memory}");
    let user = format!(
        "[[user]]\nname = \"a\"\nnodes = 32\n{table}\n[user.workload]\nprogram = \"hot-spot\"\naccesses = 60\nwrite_fraction = 0.5\n\
         memory_words = 64\n"
    );
    machine("dimensions = [4, 4]\nconcentration = 2", &endpoint, &user)
}

/// Two interfaces before one memory: twice the rate while the interfaces are the limit, and that of the memory where it is. What one writes
/// the other reads.
#[test]
fn aliases_share_a_memory() {
    let pairs: Vec<String> = (0..16).map(|node| format!("[{}, {}]", 2 * node, 2 * node + 1)).collect();
    let single: Vec<String> = (0..16).map(|node| if node == 0 { "0".to_owned() } else { pairs[node].clone() }).collect();
    let [pairs, single] = [pairs, single].map(|lines| format!("table = [{}]", lines.join(", ")));
    for engine in ENGINES {
        let [one, two, whole] = [&single, &pairs, &String::new()].map(|table| run(engine, &hot_spot(table, 0)));
        check_all_right(&one);
        check_all_right(&two);
        assert_eq!(end(&two), end(&whole), "by default all terminals of a node are its interfaces");
        let gain = end(&one) / end(&two);
        assert!((1.7..2.05).contains(&gain), "{} {gain}", engine.name());
        assert_eq!(counts(&one, 0).words_through_others, 0);
        assert_eq!(counts(&two, 0).words_through_others, 0, "an address has one interface");
        let mixed = run(engine, &hot_spot(&format!("{pairs}\nkey = \"requester\""), 0));
        check_all_right(&mixed);
        assert!(counts(&mixed, 0).words_through_others > 50);
        let slow = run(engine, &hot_spot(&pairs, 40));
        assert!((end(&slow) / (15.0 * 60.0 * 40.0) - 1.0).abs() < 0.05, "{} {}", engine.name(), end(&slow));
    }
}

/// The second interface of the hot node is named by a table that is written during the run: nothing is lost, and the rest goes faster.
#[test]
fn an_interface_is_added_by_writing_the_table() {
    let lines: Vec<String> =
        (0..16).map(|node| if node == 0 { "0".to_owned() } else { format!("[{}, {}]", 2 * node, 2 * node + 1) }).collect();
    let table = format!("table = [{}]", lines.join(", "));
    for engine in ENGINES {
        let never = run(engine, &hot_spot(&table, 0));
        let written = hot_spot(&format!("{table}\ntable_writes = [{{ cycle = 500, logical = 0, physical = [0, 1] }}]"), 0);
        let outcome = run(engine, &written);
        check_all_right(&outcome);
        assert_eq!(counts(&outcome, 0).changes, 1);
        assert!(counts(&outcome, 0).held_cycles > 0);
        assert!(end(&outcome) < 0.7 * end(&never), "{} {} {}", engine.name(), end(&outcome), end(&never));
    }
}

/// Eight logical nodes on four: the receivers distinguish them, and each has separate words.
#[test]
fn virtual_processors_have_words_of_their_own() {
    let user = "[[user]]\nname = \"a\"\nnodes = [2, 5, 9, 14]\ntable = [2, 2, 5, 5, 9, 9, 14, 2]\n[user.workload]\n\
        program = \"random-access\"\naccesses = 200\nwrite_fraction = 0.5\nmemory_words = 16\n";
    for engine in ENGINES {
        let outcome = run(engine, &machine(SQUARE, "", user));
        check_all_right(&outcome);
        assert_eq!(counts(&outcome, 0).accesses, 1600);
    }
}

/// A stencil with nodes that share processors delivers all its points, and takes longer than one with a processor each.
#[test]
fn virtual_processors_share_the_processor() {
    let text = |table: &str| {
        let user = format!("[[user]]\nname = \"a\"\nnodes = 16\n{table}\n[user.workload]\nprogram = \"stencil\"\ncompute_cycles = 500\n");
        machine(SQUARE, "", &user)
    };
    for engine in ENGINES {
        let apart = run(engine, &text(""));
        let together = run(engine, &text("table = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]"));
        assert!(end(&together) > end(&apart) + 4.0 * 450.0, "{} {} {}", engine.name(), end(&together), end(&apart));
    }
}

/// Pages anywhere in the memory: each word is found again. Pages that are missing are answered with errors.
#[test]
fn receivers_translate_global_addresses() {
    let user = "[[user]]\nname = \"a\"\nnodes = 8\n[user.workload]\nprogram = \"random-access\"\naccesses = 300\nwrite_fraction = 0.5\n\
        memory_words = 512\n";
    let text = |keys: &str| {
        machine(
            SQUARE,
            "",
            &format!("[translation]\nmemory = \"global\"\npage_bytes = 256\ntlb_entries = 4\nhit_cycles = 1\n{keys}\n{user}"),
        )
    };
    for engine in ENGINES {
        let outcome = run(engine, &text("walk_cycles = 10"));
        check_all_right(&outcome);
        let own = counts(&outcome, 0);
        assert_eq!((own.page_hits + own.page_misses, own.page_faults), (2400, 0));
        assert!(own.page_misses > own.page_hits, "4 of 8 x 16 pages");
        let missing = counts(&run(engine, &text("walk_cycles = 10\nmissing_pages = 0.25")), 0);
        assert_eq!((missing.ended, missing.wrong_words), (2400, 0));
        assert!((400..800).contains(&missing.page_faults), "{}", missing.page_faults);
        assert!(end(&run(engine, &text("walk_cycles = 50"))) > end(&outcome));
    }
}

/// The operating system names every terminal by its own table; a user that does so is kept out.
#[test]
fn only_the_operating_system_may_name_all_nodes() {
    let text = |supervisor: bool| {
        machine(
            SQUARE,
            "",
            &format!(
                "[[user]]\nname = \"a\"\nnodes = [0, 1, 2, 3]\n[user.workload]\nprogram = \"random-access\"\naccesses = 50\nwrite_fraction = 0.5\n\
                 [[user]]\nname = \"b\"\nnodes = [0, 12]\nspace = \"system\"\nsupervisor = {supervisor}\noverlap = [\"a\"]\n[user.workload]\n\
                 program = \"random-access\"\naccesses = 50\nwrite_fraction = 0.5\n[users]\nslice_cycles = 1000\n"
            ),
        )
    };
    for engine in ENGINES {
        let system = run(engine, &text(true));
        check_all_right(&system);
        assert_eq!((counts(&system, 1).accesses, counts(&system, 1).faults), (100, 0));
        let intruder = run(engine, &text(false));
        check_all_right(&intruder);
        assert_eq!((counts(&intruder, 1).accesses, counts(&intruder, 1).faults), (0, 100));
        assert_eq!(counts(&intruder, 0).accesses, 200);
    }
}

fn in_turn(side: u32, keys: &str) -> String {
    let nodes: Vec<u32> = (0..side * side).collect();
    let user = |name: &str, other: &str| {
        format!(
            "[[user]]\nname = \"{name}\"\nnodes = {nodes:?}\noverlap = [\"{other}\"]\n[user.workload]\nprogram = \"random-access\"\n\
             accesses = 200\nwrite_fraction = 0.5\n"
        )
    };
    machine(&format!("dimensions = [{side}, {side}]"), "window = 4", &format!("[users]\n{keys}\n{}{}", user("a", "b"), user("b", "a")))
}

/// Two users on the same nodes, one after the other: both get all their answers, and a switch takes the time of draining and switching.
/// Packets left in the network find their user.
#[test]
fn users_take_turns_on_their_nodes() {
    for engine in ENGINES {
        let cost = |keys: &str| {
            let outcome = run(engine, &in_turn(4, keys));
            check_all_right(&outcome);
            assert_eq!([0, 1].map(|user| counts(&outcome, user).accesses), [3200, 3200]);
            let interfaces = outcome.interfaces.as_ref().unwrap();
            assert!(interfaces.switches > 3, "{} {}", engine.name(), interfaces.switches);
            interfaces.switch_cycles as f64 / interfaces.switches as f64
        };
        assert_eq!(cost("slice_cycles = 800\nswitch_cycles = 100\ndraining = \"left\""), 100.0);
        let drained = cost("slice_cycles = 800\nswitch_cycles = 100");
        assert!(drained > 110.0, "{} {drained}", engine.name());
        let error = study(&in_turn(4, "")).unwrap_err();
        assert!(error.contains("users.slice_cycles"), "{error}");
    }
}

/// A computation is interrupted by the end of its slice and continues in the next one: two users need twice the time of one, and switches.
#[test]
fn computations_go_on_in_the_next_slice() {
    let user = |name: &str, other: &str| {
        format!(
            "[[user]]\nname = \"{name}\"\nnodes = [0, 1]\noverlap = [{other}]\n[user.workload]\nprogram = \"stencil\"\npoints = 1\n\
             iterations = 2\ncompute_cycles = 5000\n"
        )
    };
    let text = |users: &str| machine(SQUARE, "", &format!("[users]\nslice_cycles = 1000\nswitch_cycles = 50\n{users}"));
    for engine in ENGINES {
        let one = run(engine, &text(&user("a", "")));
        let two = run(engine, &text(&(user("a", "\"b\"") + &user("b", "\"a\""))));
        let switches = two.interfaces.as_ref().unwrap().switches;
        assert!((15..25).contains(&switches), "{} {switches}", engine.name());
        let switching = two.interfaces.as_ref().unwrap().switch_cycles as f64;
        assert!((end(&two) - 2.0 * end(&one) - switching).abs() < 300.0, "{} {} {} {switching}", engine.name(), end(&two), end(&one));
    }
}

#[test]
fn aliases_at_two_nodes_are_refused() {
    let user = "[[user]]\nname = \"a\"\nnodes = 16\ntable = [[0, 1], 2]\n[user.workload]\nprogram = \"random-access\"\n";
    let error = study(&machine(SQUARE, "", user)).unwrap_err();
    assert!(error.contains("endpoint.interfaces"), "{error}");
    let error = study(&machine(SQUARE, "interfaces = 2", user)).unwrap_err();
    assert!(error.contains("network.concentration"), "{error}");
}

/// A program that waits for a message that never comes stops the run, though users took turns before.
#[test]
fn slices_do_not_keep_a_finished_machine_running() {
    let users = "[users]\nslice_cycles = 300\n".to_owned()
        + "[[user]]\nname = \"a\"\nnodes = [0, 1]\noverlap = [\"b\"]\n[user.workload]\nprogram = \"random-access\"\naccesses = 200\n"
        + "[[user]]\nname = \"b\"\nnodes = [0, 1]\ntable = [0, [], 1]\noverlap = [\"a\"]\n[user.workload]\nprogram = \"stencil\"\n";
    let study = study(&machine(SQUARE, "", &users)).unwrap();
    for engine in ENGINES {
        // Logical node 1 of user b, which is nowhere, sends nothing to its neighbours.
        match engine.run(&study.scenario, &mut UntilDone) {
            Ok(outcome) => assert_eq!(outcome.status, kasuri_model::engine::Status::Deadlock, "{}", engine.name()),
            Err(error) => assert!(error.to_string().contains("never end"), "{error}"),
        }
    }
}

#[test]
fn a_switch_without_slices_is_refused() {
    let user = "[users]\nswitch_cycles = 5\n[[user]]\nname = \"a\"\nnodes = 16\n[user.workload]\nprogram = \"random-access\"\n";
    let error = study(&machine(SQUARE, "", user)).unwrap_err();
    assert!(error.contains("users.switch_cycles"), "{error}");
}
