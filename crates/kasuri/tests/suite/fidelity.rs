//! The same description at several levels of fidelity.

use kasuri::input::KNOWN;
use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;

fn rows(text: &str) -> Vec<RunRow> {
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    plan::run(&document, &NoFiles, &RunOptions::default()).unwrap().rows
}

fn number(row: &RunRow, name: &str) -> f64 {
    row.number(name).unwrap_or_else(|| panic!("{name} is {}", row.get(name)))
}

/// At a quarter of the load that the busiest channel can carry, the formulas' latency is up to 7 % below the simulated one, for they know
/// no blocking; hops and channel utilisation agree within the randomness of a run.
#[test]
fn formulas_agree_with_flits_at_moderate_loads() {
    for (network, routing, load) in [
        ("topology = \"mesh\"\ndimensions = [8, 8]", "dimension-order", 0.12),
        ("topology = \"torus\"\ndimensions = [8, 8]", "dimension-order", 0.2),
        ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 3", "nca", 0.25),
    ] {
        let rows = rows(&format!(
            "[network]\n{network}\n[routing]\nalgorithm = \"{routing}\"\n[router]\nvirtual_channels = 4\nbuffer_flits = 16\n\
             [traffic]\npattern = \"uniform\"\npacket_flits = 5\nload = {load}\n[measure]\nprecision = 0.01\n\
             [sweep]\nengine = [\"analysis\", \"flit\"]\n"
        ));
        let (formula, flits) = (&rows[0], &rows[1]);
        assert_eq!((formula.status(), flits.status()), ("completed", "converged"), "{network}");
        let ratio = |name: &str| number(formula, name) / number(flits, name);
        assert!((0.93..1.01).contains(&ratio("packet_latency_mean")), "{network}: latency {}", ratio("packet_latency_mean"));
        assert!((ratio("hops_mean") - 1.0).abs() < 0.01, "{network}: hops {}", ratio("hops_mean"));
        assert!((ratio("channel_utilisation_mean") - 1.0).abs() < 0.02, "{network}: {}", ratio("channel_utilisation_mean"));
        assert!((ratio("accepted_throughput_mean") - 1.0).abs() < 0.02, "{network}: {}", ratio("accepted_throughput_mean"));
    }
}

/// No simulation beats the bound of the busiest channel, and the fat tree comes within a third of it.
#[test]
fn accepted_throughput_stays_below_the_bound() {
    for (network, routing) in
        [("topology = \"mesh\"\ndimensions = [4, 4]", "dimension-order"), ("topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 2", "nca")]
    {
        let rows = rows(&format!(
            "[network]\n{network}\n[routing]\nalgorithm = \"{routing}\"\n[router]\nvirtual_channels = 4\nbuffer_flits = 16\n\
             [traffic]\npattern = \"uniform\"\npacket_flits = 5\nload = 1.0\n[measure]\nwarmup = 2000\ncycles = 10000\n\
             [sweep]\nengine = [\"analysis\", \"flit\"]\n"
        ));
        let (bound, accepted) = (number(&rows[0], "static_throughput"), number(&rows[1], "accepted_throughput_mean"));
        assert_eq!((rows[0].status(), rows[0].number("packet_latency_mean")), (if bound < 0.95 { "saturated" } else { "completed" }, None));
        assert!(accepted < 1.01 * bound && accepted > bound * 0.5, "{network}: {accepted} of {bound}");
    }
}

/// The average throughput rate of a permutation at full load in the flow engine: every terminal always has a message under way,
/// so the rates never change. `sharing` is equal-share.
fn flow_atr(topology: &str, radix: u32, pattern: &str, tie: &str) -> f64 {
    let row = rows(&format!(
        "engine = \"flow\"\n[network]\ntopology = \"{topology}\"\ndimensions = [{radix}, {radix}]\n\
         [routing]\nalgorithm = \"dimension-order\"\ntie = \"{tie}\"\n[router]\nvirtual_channels = 2\n\
         [traffic]\n{pattern}\nprocess = \"periodic\"\nload = 1.0\npacket_flits = 100\ninclude_self = true\n\
         [measure]\nwarmup = 2000\ncycles = 100000\n[flow]\nsharing = \"equal-share\"\n"
    ));
    number(&row[0], "atr")
}

/// Results of the message-flow simulator MFS: transpose on k x k meshes, and on the 4 x 4 torus where half-way packets do not wrap.
#[test]
fn flows_of_a_transpose_get_their_equal_shares() {
    for (radix, expected) in [(2, 1.0), (4, 0.625), (8, 0.344), (16, 0.180)] {
        let found = flow_atr("mesh", radix, "pattern = \"transpose\"", "positive");
        assert!((found - expected).abs() < 0.0011, "mesh {radix}: {found}, not {expected}");
    }
    let torus = |tie: &str| flow_atr("torus", 4, "pattern = \"transpose\"", tie);
    assert!((torus("no-wrap") - 0.75).abs() < 0.001, "{}", torus("no-wrap"));
    assert!((torus("positive") - 0.625).abs() < 0.001, "{}", torus("positive"));
}

/// Tornado with a shift of floor(k/2) - 1: each channel has as many flows as the shift has steps.
#[test]
fn flows_of_a_tornado_share_by_its_shift() {
    for topology in ["mesh", "torus"] {
        for (radix, expected) in [(2, 1.0), (3, 1.0), (4, 1.0), (5, 1.0), (6, 0.5), (7, 0.5), (8, 1.0 / 3.0), (10, 0.25)] {
            let found = flow_atr(topology, radix, "pattern = \"tornado\"\nshift = \"floor\"", "no-wrap");
            assert!((found - expected).abs() < 0.001, "{topology} {radix}: {found}, not {expected}");
        }
    }
}

/// A batch on a fat tree: the same messages on the same paths take about as long as flows and flit by flit.
#[test]
fn a_batch_takes_as_long_as_flows_and_as_flits() {
    for sharing in ["equal-share", "max-min"] {
        let rows = rows(&format!(
            "[network]\ntopology = \"fat-tree\"\nup = 6\ndown = 6\nlevels = 3\n[routing]\nalgorithm = \"nca\"\nup_port = \"d-mod-k\"\n\
             [router]\nvirtual_channels = 2\nbuffer_flits = 10\n\
             [traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 10\npacket_flits = 40\n\
             [flow]\nsharing = \"{sharing}\"\n[sweep]\nengine = [\"flow\", \"flit\"]\n"
        ));
        let (flow, flit) = (&rows[0], &rows[1]);
        assert_eq!((flow.status(), flit.status()), ("completed", "completed"));
        assert_eq!(number(flow, "measured_packets"), 216.0 * 10.0);
        assert_eq!(number(flow, "hops_mean"), number(flit, "hops_mean"), "the paths are the same");
        let ratio = number(flow, "completion_time") / number(flit, "completion_time");
        assert!((0.85..1.2).contains(&ratio), "{sharing}: {ratio}");
    }
}

/// A closed loop in a nearly empty network is the sum of its latencies, of flows as of flits: twice the window, nearly half the time. A window that
/// holds the whole batch is none.
#[test]
fn a_closed_loop_takes_as_long_as_flows_and_as_flits() {
    let completion = |engine: &str, window: &str, reply: &str| {
        let row = rows(&format!(
            "engine = \"{engine}\"\n[network]\ntopology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n\
             [router]\nvirtual_channels = 4\nbuffer_flits = 16\n\
             [traffic]\npattern = \"uniform\"\nprocess = \"batch\"\nbatch_packets = 100\npacket_flits = 4\n{window}\n{reply}\n"
        ));
        assert_eq!(row[0].status(), "completed");
        number(&row[0], "completion_time")
    };
    for reply in ["", "reply = { packet_flits = 4, virtual_channels = [2, 4] }\nvirtual_channels = [0, 2]"] {
        let of_window = |engine| [1, 2, 100].map(|packets| completion(engine, &format!("outstanding_packets = {packets}"), reply));
        let (flow, flit) = (of_window("flow"), of_window("flit"));
        let apart = [0, 1].map(|window| (flow[window] / flit[window] - 1.0).abs());
        assert!(apart[0] < 0.035 && apart[1] < 0.08, "{reply}: {flow:?} beside {flit:?}");
        for (engine, [one, two, all]) in [("flow", flow), ("flit", flit)] {
            assert!(two < 0.58 * one, "{engine}, {reply}: {two} after {one}");
            assert_eq!(all, completion(engine, "", reply), "{engine}, {reply}");
        }
    }
}

/// A lone message takes its zero-load latency, to the cycle.
#[test]
fn a_lone_flow_takes_the_latency_of_a_lone_packet() {
    for (switching, buffer) in [("wormhole", 16), ("store-and-forward", 16)] {
        let rows = rows(&format!(
            "[network]\ntopology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\n\
             [router]\nvirtual_channels = 2\nbuffer_flits = {buffer}\nswitching = \"{switching}\"\n\
             [traffic]\npattern = \"uniform\"\nload = 0.0005\npacket_flits = 9\n[measure]\nwarmup = 0\ncycles = 900000\n\
             [sweep]\nengine = [\"analysis\", \"flow\"]\n"
        ));
        let (formula, flow) = (&rows[0], &rows[1]);
        let (expected, found) = (number(formula, "zero_load_latency"), number(flow, "packet_latency_mean"));
        assert!((found / expected - 1.0).abs() < 0.015, "{switching}: {found}, not {expected}");
        // The shortest path: both terminals on neighbouring routers, whatever the load.
        let shortest = if switching == "wormhole" { 2.0 * 5.0 + 2.0 + 8.0 } else { 2.0 * 5.0 + 2.0 + 3.0 * 8.0 };
        assert_eq!(number(flow, "packet_latency_min"), shortest, "{switching}");
    }
}

#[test]
fn a_sharing_that_is_not_there_is_refused_with_those_that_are() {
    let text = "engine = \"flow\"\n[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\n[routing]\nalgorithm = \"dimension-order\"\n\
         [traffic]\npattern = \"uniform\"\nload = 0.1\n[flow]\nsharing = \"fair\"\n";
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    let problem = plan::run(&document, &NoFiles, &RunOptions::default()).unwrap_err().to_string();
    assert!(problem.contains("flow.sharing: unknown value `fair`; known values: equal-share, max-min, arbitrated"), "{problem}");
}

/// The timeline of a workload shows each message from joining its queue to its arrival, in both engines; the last arrival is the completion. A
/// terminal sends one message after the other, and the counters of channels rise by one for each message and end at none.
#[test]
fn a_timeline_shows_the_messages_of_a_workload() {
    for engine in ["engine = \"flit\"", "engine = \"flow\"", "engine = \"flow\"\n[flow]\nsharing = \"arbitrated\""] {
        let text = "[network]\ntopology = \"mesh\"\ndimensions = [2, 2]\n[routing]\nalgorithm = \"dimension-order\"\n\
             [workload]\ncollective = \"alltoall\"\nschedule = \"shift\"\nmessage_flits = 20\n";
        let document = Document::parse_for(*KNOWN, "test.toml", &format!("{engine}\n{text}")).unwrap();
        let prepared = plan::Plan::prepare(&document, &NoFiles).unwrap();
        let timeline = prepared.timeline(None).unwrap();
        let spans = &timeline.spans;
        let of = |part: &str| -> Vec<_> { spans.iter().filter(|span| span.part == part).collect() };
        let (mut sends, receives) = (of("send"), of("receive"));
        assert_eq!((sends.len(), receives.len()), (4 * 3, 4 * 3), "{engine}");
        let completion = number(&rows(&format!("{engine}\n{text}"))[0], "completion_time");
        let last = spans.iter().map(|span| span.end_ns).fold(0.0, f64::max);
        assert!(spans.iter().all(|span| span.begin_ns < span.end_ns) && (last - completion).abs() < 1e-9, "{engine}: {last}, {completion}");
        for receive in &receives {
            let send = sends.iter().find(|send| send.parcel == receive.parcel).unwrap();
            assert!(send.end_ns == receive.begin_ns && send.node != receive.node && send.flits == 20, "{engine}");
        }
        sends.sort_by(|one, other| (one.node, one.begin_ns).partial_cmp(&(other.node, other.begin_ns)).unwrap());
        let apart = |pair: &[&kasuri_workload::timeline::Span]| pair[0].node != pair[1].node || pair[0].end_ns <= pair[1].begin_ns;
        assert!(sends.windows(2).all(apart), "{engine}");
        // Each of the 8 channels carries the messages of 2 pairs: dimension by dimension.
        assert_eq!(timeline.channels.len(), 8, "{engine}");
        for channel in &timeline.channels {
            assert_eq!((channel.flits, channel.messages.last().unwrap().1), (40, 0), "{engine}: {}", channel.name);
            assert!(channel.messages.iter().all(|&(_, count)| count <= 2), "{engine}");
        }
    }
}

/// Replies of one flit that take 1,000 cycles to make: over two routers of 4 cycles and three channels of latency 1 a packet takes
/// 1 + 1 + 2 x 4 + 1 + 1 = 12 cycles, a reply 1,012, the mean of both 512.
#[test]
fn replies_take_the_time_to_make_them() {
    let rows = rows(
        "[network]\ntopology = \"full-mesh\"\nrouters = 6\n[routing]\nalgorithm = \"minimal\"\n[router]\nvirtual_channels = 4\n\
         [traffic]\npattern = \"uniform\"\nload = 0.0005\nreply = { packet_flits = 1, delay = 1000 }\n\
         [measure]\nwarmup = 5000\ncycles = 100000\n[sweep]\nengine = [\"flit\", \"analysis\"]\n",
    );
    assert_eq!(number(&rows[1], "zero_load_latency"), 512.0);
    assert!((number(&rows[0], "packet_latency_mean") - 512.0).abs() < 15.0, "{}", number(&rows[0], "packet_latency_mean"));
    assert!((number(&rows[1], "packet_latency_mean") - 512.0).abs() < 1.0, "{}", number(&rows[1], "packet_latency_mean"));
}
