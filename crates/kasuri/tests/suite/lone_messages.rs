//! One message alone: flows by each sharing, formulas, and the engines that follow flits and packets agree to the cycle, or the row says
//! that its time is approximate. Each engine computes the time by its own rules; the tests derive it from the routers alone.

use kasuri::input::KNOWN;
use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_config::Document;
use kasuri_network::topology::{Files, NoFiles};
use proptest::prelude::*;
use std::fmt::Write;

/// A network, and the messages between its terminals 0 and 1.
#[derive(Clone, Debug)]
struct Case {
    links: String,
    /// As a program, or as a permutation.
    sends: String,
    router: String,
    /// `[workload]` or `[traffic]`.
    section: String,
}

impl Files for Case {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Ok(if path.ends_with("links") { &self.links } else { &self.sends }.clone().into_bytes())
    }
}

const SHARINGS: [&str; 3] = ["equal-share", "max-min", "arbitrated"];

/// The row of an engine, with its keys.
fn row(case: &Case, engine: &str) -> RunRow {
    let Case { router, section, .. } = case;
    let text = format!(
        "{engine}\n[network]\ntopology = \"file\"\npath = \"links\"\nflit_bytes = 1\ncycle_ns = 1\n[routing]\nalgorithm = \"minimal\"\n\
         [router]\n{router}\n{section}\n"
    );
    let document = Document::parse_for(*KNOWN, "lone.toml", &text).unwrap();
    let options = RunOptions { jobs: Some(1), paranoid: true, ..RunOptions::default() };
    let report = plan::run(&document, case, &options).unwrap_or_else(|error| panic!("{error}\n{text}\n{case:?}"));
    report.rows.into_iter().next().unwrap()
}

fn by_flits(case: &Case) -> RunRow {
    row(case, "engine = \"flit\"")
}

fn by_flows(case: &Case, sharing: &str) -> RunRow {
    row(case, &format!("engine = \"flow\"\nflow.sharing = \"{sharing}\""))
}

fn is_approximate(row: &RunRow) -> bool {
    row.get("not_modelled").as_array().unwrap().iter().any(|entry| entry.as_str().unwrap().starts_with("approximate: "))
}

/// A line of routers with these latencies and periods of its channels, from the injection of terminal 0 to the ejection of terminal 1.
fn line(channels: &[(u32, u32)]) -> String {
    let (&[(first, first_period), ref between @ ..], &[.., (last, last_period)]) = (channels, channels) else {
        panic!("two channels at least")
    };
    let end = channels.len() - 2;
    let mut links =
        format!("terminal a router 0 latency={first} period={first_period}\nterminal b router {end} latency={last} period={last_period}\n");
    for (router, (latency, period)) in between[..end].iter().enumerate() {
        writeln!(links, "router {router} router {} latency={latency} period={period}", router + 1).unwrap();
    }
    links
}

/// Adds branches of routers to a line, over channels of other speeds; no message takes them.
fn with_branches(mut links: String, on: usize, branches: &[(usize, u32, u32)]) -> String {
    for (number, &(to, latency, period)) in branches.iter().enumerate() {
        let own = on + number;
        writeln!(links, "router {} router {own} latency={latency} period={period}", to % own).unwrap();
        writeln!(links, "terminal c{number} router {own} latency={latency} period={period}").unwrap();
    }
    links
}

/// A message from terminal 0 to terminal 1 and, if `is_answered`, one back that waits for it.
fn messages(flits: u32, packet: u32, is_answered: bool) -> (String, String) {
    let answer = |rank: &str| match (is_answered, rank) {
        (false, _) => String::new(),
        (true, "0") => format!("back: recv {flits}b from 1 tag 2\n"),
        (true, _) => format!("back: send {flits}b to 0 tag 2\nback requires there\n"),
    };
    let program = format!(
        "num_ranks 2\nrank 0 {{\nthere: send {flits}b to 1 tag 1\n{}}}\nrank 1 {{\nthere: recv {flits}b from 0 tag 1\n{}}}\n",
        answer("0"),
        answer("1")
    );
    (program, format!("[workload]\ntrace = \"program\"\npacket_flits = {packet}"))
}

/// One packet from terminal 0 to terminal 1.
fn packet(flits: u32) -> (String, String) {
    let section =
        format!("[traffic]\npattern = \"permutation\"\npath = \"pairs\"\nprocess = \"batch\"\nbatch_packets = 1\npacket_flits = {flits}");
    ("0 1\n".to_owned(), section)
}

const SWITCHINGS: [&str; 3] = ["wormhole", "virtual-cut-through", "store-and-forward"];

/// Routers with room for packets of `packet` flits.
fn routers(packet: u32) -> impl Strategy<Value = String> {
    let input_queued = (0..SWITCHINGS.len(), 1u32..4, prop_oneof![Just(0), 1u32..6, Just(80)], 0u32..3, 0..PIPELINES.len()).prop_map(
        move |(switching, lanes, buffer, credit_delay, pipeline)| {
            let least = if switching == 0 { 1 } else { packet };
            format!(
                "switching = \"{}\"\nvirtual_channels = {lanes}\nbuffer_flits = {}\ncredit_delay = {credit_delay}\npipeline = {}",
                SWITCHINGS[switching],
                least + buffer,
                PIPELINES[pipeline]
            )
        },
    );
    let output_queued = (1..SWITCHINGS.len(), 0u32..9).prop_map(|(switching, latency)| {
        format!("architecture = \"output-queued\"\nlatency = {latency}\nswitching = \"{}\"", SWITCHINGS[switching])
    });
    prop_oneof![2 => input_queued, 1 => output_queued]
}

const PIPELINES: [&str; 3] = [
    "[\"RC\", \"VA\", \"SA\", \"ST\"]",
    "[\"RC\", \"VSA\", \"ST\"]",
    "[{ stage = \"RC\", cycles = 2 }, \"VA\", { stage = \"SA\", cycles = 3 }, { stage = \"ST\", cycles = 2 }]",
];

fn networks() -> impl Strategy<Value = String> {
    let period = || prop_oneof![Just(1u32), 1u32..6];
    (prop::collection::vec((0u32..7, period()), 2..6), prop::collection::vec((0usize..9, 0u32..9, 1u32..9), 0..3))
        .prop_map(|(channels, branches)| with_branches(line(&channels), channels.len() - 1, &branches))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    /// A message of one packet or several, and perhaps an answer.
    #[test]
    fn lone_messages_take_the_same_time_in_every_engine(
        links in networks(),
        (router, packet) in (1u32..12).prop_flat_map(|packet| (routers(packet), Just(packet))),
        (flits, is_answered) in (prop_oneof![1u32..12, 1u32..60], any::<bool>()),
    ) {
        let (sends, section) = messages(flits, packet, is_answered);
        let case = Case { links, sends, router, section };
        let expected = by_flits(&case).number("completion_time");
        prop_assert!(expected.is_some());
        for sharing in SHARINGS {
            let found = by_flows(&case, sharing);
            // Only messages of several packets, and answers, may be approximate.
            let may_differ = is_approximate(&found) && (flits > packet || is_answered);
            let time = found.number("completion_time");
            prop_assert!(may_differ || time == expected, "{sharing}: {time:?}, not {expected:?}: {case:?}");
        }
        let formula = row(&case, "engine = \"analysis\"");
        if !is_answered && !is_approximate(&formula) {
            // The cycle in which the last flit arrives ends one cycle later.
            prop_assert_eq!(formula.number("zero_load_latency").map(|cycles| cycles + 1.0), expected, "{:?}", case);
        }
    }

    /// A packet of open traffic.
    #[test]
    fn lone_packets_take_the_same_time_in_every_sharing(
        links in networks(),
        (router, flits) in (1u32..14).prop_flat_map(|flits| (routers(flits), Just(flits))),
    ) {
        let (sends, section) = packet(flits);
        let case = Case { links, sends, router, section };
        let expected = by_flits(&case).number("packet_latency_mean");
        prop_assert!(expected.is_some());
        for sharing in SHARINGS {
            let found = by_flows(&case, sharing);
            prop_assert_eq!((found.number("packet_latency_mean"), is_approximate(&found)), (expected, false), "{}: {:?}", sharing, case);
        }
    }
}

/// A sample of the cases; `PROPTEST_CASES` sets another number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48)
}

/// Packets are stored, not messages: five channels take a packet of 16 flits each, with 2 cycles to the next router and 3 in each of four,
/// and 63 packets follow: 5 x 15 + 5 x 2 + 4 x 3 + 63 x 16 + 1 = 1106. In output-queued routers, which store by default, 2 cycles take the
/// place of 3.
#[test]
fn routers_store_packets_and_not_messages() {
    let (sends, section) = messages(1024, 16, false);
    let links = line(&[(1, 1); 5]);
    for (router, expected) in [
        ("switching = \"store-and-forward\"\nvirtual_channels = 4\nbuffer_flits = 64", 1106.0),
        ("architecture = \"output-queued\"\nlatency = 2", 1102.0),
    ] {
        let case = Case { links: links.clone(), sends: sends.clone(), router: router.to_owned(), section: section.clone() };
        assert_eq!(by_flits(&case).number("completion_time"), Some(expected), "{router}");
        for sharing in SHARINGS {
            assert_eq!(by_flows(&case, sharing).number("completion_time"), Some(expected), "{sharing}: {router}");
        }
    }
}

/// Whichever channel is slow, a stored packet of 16 flits takes 45 cycles on it, 15 on each of the others, and 12 for its head.
#[test]
fn a_slow_channel_counts_once() {
    for slow in 0..3 {
        let mut channels = [(1, 1); 3];
        channels[slow].1 = 3;
        let (sends, section) = packet(16);
        let router = "switching = \"store-and-forward\"\nvirtual_channels = 4\nbuffer_flits = 64".to_owned();
        let case = Case { links: line(&channels), sends, router, section };
        for sharing in SHARINGS {
            assert_eq!(by_flows(&case, sharing).number("packet_latency_mean"), Some(87.0), "{sharing}: {slow}");
        }
    }
}

/// An answer may begin while the message that it answers still occupies a slow injection channel. Over one output-queued router of latency 0
/// each way takes two channels of a cycle and the cycle in which the flit arrives, 6 in all, although the injection channel of rank 0 takes
/// 4 cycles for its flit.
#[test]
fn an_answer_overtakes_the_slow_channel_of_its_message() {
    let (sends, section) = messages(1, 1, true);
    let links = "terminal a router 0 latency=0 period=4\nterminal b router 0 latency=0 period=1\n".to_owned();
    let router = "architecture = \"output-queued\"\nlatency = 0\nswitching = \"virtual-cut-through\"".to_owned();
    let case = Case { links, sends, router, section };
    assert_eq!(by_flits(&case).number("completion_time"), Some(6.0));
    assert_eq!(by_flows(&case, "arbitrated").number("completion_time"), Some(6.0));
}

/// The entries of `not_modelled` of an all-to-all on a network with this beginning or end.
fn entries(network: &str, packet: u32, engine: &str, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let text =
        format!("engine = \"{engine}\"\n{network}\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 8\npacket_flits = {packet}\n");
    let document = Document::parse_for(*KNOWN, "entries.toml", &text).unwrap();
    let options = RunOptions { jobs: Some(1), ..RunOptions::default() };
    let row = plan::run(&document, &NoFiles, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).rows.remove(0);
    let entries = row.get("not_modelled").as_array().unwrap().iter().map(|entry| entry.as_str().unwrap().to_owned());
    entries.filter(|entry| is_meant(entry)).collect()
}

/// These keys spread the packets of one message over paths; a message as a flow takes one path, and the row says so. A message of one
/// packet takes one path in any engine.
#[test]
fn flows_say_by_which_key_packets_would_be_spread() {
    let tree = "[network]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 2\ndown = 2\n[routing]\n";
    let fat_tree = "[network]\ntopology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 2\n[routing]\n";
    for (network, routing, key) in [
        (tree, "algorithm = \"ecmp\"\npolicy = \"random\"", Some("routing.policy")),
        (tree, "algorithm = \"ecmp\"\npolicy = \"round-robin\"", Some("routing.policy")),
        (tree, "algorithm = \"ecmp\"\nflows = 4", Some("routing.flows")),
        (tree, "algorithm = \"ecmp\"", None),
        (fat_tree, "algorithm = \"nca\"\nup_port = \"random\"", Some("routing.up_port")),
        (fat_tree, "algorithm = \"nca\"\nup_port = \"adaptive\"", Some("routing.up_port")),
        (fat_tree, "algorithm = \"nca\"\nup_port = \"d-mod-k\"", None),
    ] {
        let network = format!("{network}{routing}");
        for sharing in SHARINGS {
            let engine = format!("flow\"\nflow.sharing = \"{sharing}");
            let of =
                |packet: u32| entries(&network, packet, &engine, |entry| entry.starts_with("routing.") && entry.contains("takes one path"));
            let found = of(4);
            assert_eq!(
                found.iter().map(|entry| entry.split(':').next().unwrap()).collect::<Vec<_>>(),
                Vec::from_iter(key),
                "{sharing}: {routing}"
            );
            assert_eq!(of(8), Vec::<String>::new(), "{sharing}: {routing}");
        }
    }
}

/// A GPU is one terminal, which sends one message at a time, over a fast link or a slow one: rows of engines that follow messages say so.
#[test]
fn links_of_different_speed_take_turns_and_rows_say_so() {
    let rails = |periods: &str| {
        format!(
            "[network]\ntopology = \"rail-optimised\"\nunits = 1\nnodes = 2\ngpus = 2\nspines = 1\nhb = true\n\
             channel_period = {periods}\n[routing]\nalgorithm = \"minimal\""
        )
    };
    for (periods, engine, expected) in
        [("[9, 9, 1]", "flow", 1), ("[9, 9, 1]", "flit", 1), ("[9, 9, 1]", "analysis", 0), ("[3, 3, 3]", "flow", 0)]
    {
        let found = entries(&rails(periods), 8, engine, |entry| entry.ends_with("take turns"));
        assert_eq!(found.len(), expected, "{engine}, {periods}: {found:?}");
    }
}
