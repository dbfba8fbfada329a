//! `[[user]]`, `[users]` and `[translation]`: right descriptions, and wrong ones with the message that answers each.

use kasuri_config::{ConfigErrors, Document, Study};
use kasuri_network::id::TerminalId;
use kasuri_network::routing::VirtualChannels;
use kasuri_network::topology::NoFiles;
use kasuri_workload::translation::{Costs, Level};

/// Two users on a torus, one by a table, one by a number of nodes.
const EXPERIMENT: &str = r#"[network]
topology = "torus"
dimensions = [8, 8]
cycle_ns = 10

[routing]
algorithm = "dimension-order"
tie = "no-wrap"

[router]
virtual_channels = 4

[translation]
level = "hardware"

[users]
isolation = "none"

[[user]]
name = "irregular"
table = [
  1, 2,
  8, 9, 10, 11,
  17, 18,
  25,
]
[user.logical]
topology = "torus"
dimensions = [3, 3]
[user.traffic]
pattern = "uniform"
load = 0.25

[[user]]
name = "other"
nodes = 20
[user.traffic]
pattern = "tornado"
load = 0.5
[user.logical]
topology = "torus"
dimensions = [5, 4]
"#;

fn study(text: &str) -> Result<Study, ConfigErrors> {
    let document = Document::parse("a.toml", text)?;
    document.study(&document.points()?[0], &NoFiles)
}

/// The message about a text that differs from [`EXPERIMENT`] in one place.
fn message(from: &str, to: &str) -> String {
    assert!(EXPERIMENT.contains(from), "{from}");
    study(&EXPERIMENT.replacen(from, to, 1)).err().map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

fn assert_message(from: &str, to: &str, parts: &[&str]) {
    let message = message(from, to);
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

#[test]
fn users_have_their_nodes_classes_and_embeddings() {
    let study = study(EXPERIMENT).unwrap();
    let users = study.scenario.users.as_ref().unwrap();
    assert_eq!(users.users.iter().map(|user| (user.nodes.len(), user.classes.clone())).collect::<Vec<_>>(), [(9, 0..1), (20, 1..2)]);
    // The first 20 terminals that the table has left.
    assert_eq!(users.users[1].nodes[..4], [0, 3, 4, 5].map(TerminalId));
    let embedding = users.users[0].embedding.as_ref().unwrap();
    assert_eq!((embedding.dilation_max(), embedding.congestion()), (4.0, 4.0));
    // 10 ns a cycle: a read of 100 ns, a call of 13 us, 20 reads.
    let costs = Costs {
        level: Level::Hardware,
        tlb_entries: 64,
        hit_cycles: 1,
        walk_cycles: 10,
        call_cycles: 1300,
        library_cycles: 200,
        unit_tables: 0,
    };
    assert_eq!(users.costs, costs);
    // Terminal 3 is logical node 1, (1, 0), of the second user, whose tornado goes by (2, 1): to (3, 1), node 8, his ninth terminal.
    assert_eq!(users.users[1].nodes[8], TerminalId(14));
    assert_eq!(study.scenario.classes[1].pattern.weights(TerminalId(3)), [(TerminalId(14), 1.0)]);
    assert!(study.scenario.classes[0].pattern.is_silent(TerminalId(3)));
}

#[test]
fn isolation_divides_the_virtual_channels() {
    let study = study(&EXPERIMENT.replace("isolation = \"none\"", "isolation = \"channels\"")).unwrap();
    let ranges: Vec<VirtualChannels> = study.scenario.classes.iter().map(|class| class.virtual_channels).collect();
    assert_eq!(ranges, [VirtualChannels { begin: 0, end: 2 }, VirtualChannels { begin: 2, end: 4 }]);
}

#[test]
fn alone_a_user_keeps_his_place() {
    let study = study(&EXPERIMENT.replace("isolation = \"none\"", "alone = \"other\"")).unwrap();
    let users = &study.scenario.users.as_ref().unwrap().users;
    assert_eq!((users[0].classes.clone(), users[1].classes.clone(), study.scenario.classes.len()), (0..0, 0..1, 1));
    assert_eq!(users[1].nodes[1], TerminalId(3));
}

#[test]
fn an_optimised_embedding_is_not_worse_and_uses_the_same_nodes() {
    let mean = |text: &str| {
        let study = study(text).unwrap();
        let user = &study.scenario.users.as_ref().unwrap().users[1];
        user.embedding.as_ref().unwrap().dilation_mean()
    };
    let optimised = EXPERIMENT.replace("nodes = 20", "nodes = 20\nembedding = \"optimised\"");
    assert!(mean(&optimised) < mean(EXPERIMENT), "{} {}", mean(&optimised), mean(EXPERIMENT));
}

#[test]
fn wrong_tables_are_refused_with_their_line() {
    let conflict = "  { logical = 0, physical = 1 },\n  { logical = 0, physical = 2 },";
    assert_message("  1, 2,", conflict, &["a.toml:23:", "user.0.table.1", "logical node 0 with key 0 is physical node 2 here and 1"]);
    assert_message("  25,", "  64,", &["a.toml:25:", "user.0.table.8", "64 is not a terminal", "0 to 63"]);
    let gap = "  [1, 2], { logical = 1, physical = 2, key = 3 },";
    assert_message("  1, 2,", gap, &["a.toml:22:", "key 3 of logical node 1", "0 is missing"]);
    assert_message("  1, 2,", "  1, \"two\",", &["a.toml:22:", "user.0.table.1"]);
}

#[test]
fn users_overlap_only_with_permission() {
    let shared = ["nodes = [3, 4, 5, 6, 7,\n 9, 12, 13, 14, 15, 16, 19, 20, 21, 22, 23, 24, 26, 27, 28]"];
    assert_message("nodes = 20", shared[0], &["a.toml:37:2", "user.1.nodes.5", "terminal 9", "\"irregular\"", "overlap = [\"irregular\"]"]);
    let allowed = format!("{}\noverlap = [\"irregular\"]", shared[0]);
    let users = study(&EXPERIMENT.replace("nodes = 20", &allowed)).unwrap().scenario.users.unwrap();
    assert_eq!(users.tables.hosted(TerminalId(9)).len(), 2);
    assert_message("nodes = 20", "nodes = 20\noverlap = [\"iregular\"]", &["user.1.overlap.0", "irregular"]);
}

#[test]
fn other_wrong_descriptions_are_answered() {
    assert_message("nodes = 20", "nodes = 56", &["a.toml:36:", "user.1.nodes", "is 56; 55 terminals are left"]);
    assert_message("nodes = 20", "nodes = [3, 3]", &["user.1.nodes.1", "is in the list already"]);
    assert_message("nodes = 20", "nodes = [3, 70]", &["user.1.nodes.1", "0 to 63"]);
    assert_message("nodes = 20", "", &["user.1.nodes", "is missing"]);
    assert_message("dimensions = [5, 4]", "dimensions = [5, 5]", &["user.1.logical", "has 25 nodes; the user's table has 20"]);
    assert_message("name = \"other\"", "name = \"irregular\"", &["user.1.name", "another user has already"]);
    assert_message("isolation = \"none\"", "alone = \"nobody\"", &["users.alone", "nobody"]);
    assert_message("isolation = \"none\"", "isolation = \"channel\"", &["users.isolation", "channels"]);
    assert_message("virtual_channels = 4", "virtual_channels = 1", &["no error"]);
    assert_message(
        "[users]\nisolation = \"none\"",
        "[traffic]\npattern = \"uniform\"",
        &["a.toml:16:", "traffic", "conflicts with [[user]]"],
    );
    assert_message("cycle_ns = 10", "", &["no error"]);
    let level = EXPERIMENT.replace("cycle_ns = 10", "").replace("level = \"hardware\"", "level = \"os\"");
    assert!(study(&level).unwrap_err().to_string().contains("network.cycle_ns"));
    let narrow =
        EXPERIMENT.replace("virtual_channels = 4", "virtual_channels = 1").replace("isolation = \"none\"", "isolation = \"channels\"");
    assert!(study(&narrow).unwrap_err().to_string().contains("router.virtual_channels"));
    assert_message("load = 0.5", "load = 1.5", &["a.toml:39:", "user.1.traffic.load", "is 1.5"]);
    assert_message("load = 0.5", "laod = 0.5", &["user.1.traffic.laod", "load"]);
}

/// The second user's tornado replaced by an all-to-all of his 20 nodes.
fn with_workload(keys: &str) -> String {
    EXPERIMENT.replace(
        "[user.traffic]\npattern = \"tornado\"\nload = 0.5\n",
        &format!("[user.workload]\ncollective = \"alltoall\"\nmessage_flits = 9\npacket_flits = 4\n{keys}\n"),
    )
}

#[test]
fn a_workload_runs_on_its_users_nodes_beside_open_traffic() {
    let study = study(&with_workload("")).unwrap();
    let users = study.scenario.users.as_ref().unwrap();
    let closed = study.scenario.workload.as_ref().unwrap();
    assert_eq!((closed.workload.messages(), closed.parts.len(), closed.longest_packet()), (20 * 19, 1, 4));
    // Classes of open traffic come first.
    assert_eq!(users.users.iter().map(|user| user.classes.clone()).collect::<Vec<_>>(), [0..1, 1..2]);
    assert!(study.scenario.is_closed());
    let mut sources = std::collections::BTreeSet::new();
    closed.workload.each_message(&mut |message| {
        sources.insert(message.source);
    });
    assert_eq!(sources, users.users[1].nodes.iter().copied().collect());
}

#[test]
fn wrong_workloads_of_users_are_answered() {
    let message = |text: &str| study(text).err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
    for (text, parts) in [
        (with_workload("").replace("nodes = 20", "nodes = 20\nchange_every = 0"), ["user.1.change_every", "at least 1 cycle"]),
        (with_workload("ranks = 21"), ["user.1.workload.ranks", "21 ranks; the network has 20"]),
        (with_workload("schedule = \"mlfm\""), ["user.1.workload.schedule", "name one of ranks"]),
        (with_workload("[user.traffic]\npattern = \"uniform\""), ["user.1.workload", "conflicts with [user.traffic]"]),
        (with_workload("virtual_channels = [0, 3]").replace("\"none\"", "\"channels\""), ["user.1.workload", "leaves this user 2 to 3"]),
        (
            with_workload("").replace("nodes = 20\n", "table = [60, 61, 60]\n").replace("dimensions = [5, 4]", "dimensions = [3]"),
            ["user.1.table", "logical nodes 0 and 2 on terminal 60"],
        ),
        (EXPERIMENT.replace("[user.traffic]\npattern = \"tornado\"\nload = 0.5\n", ""), ["user.1.traffic", "or [user.workload]"]),
        (format!("{}\n[measure]\nuntil = \"first-terminal\"\n", with_workload("")), ["measure.until", "a batch of each terminal"]),
    ] {
        let found = message(&text);
        assert!(parts.iter().all(|part| found.contains(part)), "{parts:?}: {found}");
    }
}

#[test]
fn routes_inside_are_refused_where_there_are_none() {
    let inside = |text: &str| study(&text.replace("isolation = \"none\"", "isolation = \"none\"\nrouting = \"inside\""));
    assert!(inside(EXPERIMENT).is_ok());
    // Terminal 36 has only the second user's around it.
    let apart =
        EXPERIMENT.replace("  25,", "  36,").replace("nodes = 20", "nodes = 55").replace("dimensions = [5, 4]", "dimensions = [11, 5]");
    let message = inside(&apart).unwrap_err().to_string();
    let parts = ["user.0.table", "terminal 1 and terminal 36", "only other users", "contiguous"];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    let shared = EXPERIMENT.replace("nodes = 20", "overlap = [\"irregular\"]\nnodes = [1, 3]").replace("[5, 4]", "[2]");
    assert!(inside(&shared).unwrap_err().to_string().contains("user.1.overlap"));
}

/// 60 users of 5 classes are more than a packet can tell apart.
#[test]
fn too_many_classes_are_refused() {
    let user = |number: u32, classes: usize| {
        let class = "[[user.traffic.class]]\nload = 0.01\n".repeat(classes);
        format!("[[user]]\nname = \"u{number}\"\nnodes = 4\n[user.traffic]\npattern = \"uniform\"\n{class}")
    };
    let machine = "[network]\ntopology = \"mesh\"\ndimensions = [16, 16]\n[routing]\nalgorithm = \"dimension-order\"\n";
    let text = |users: u32, classes: usize| machine.to_owned() + &(0..users).map(|number| user(number, classes)).collect::<String>();
    let message = study(&text(60, 5)).unwrap_err().to_string();
    assert!(["user", "are 300", "255"].iter().all(|part| message.contains(part)), "{message}");
    assert!(study(&text(51, 5)).is_ok());
}
