//! Impossible values of latencies and rates, on every simulating engine, for any network and load.

use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri_config::Document;
use kasuri_network::topology::Files;
use proptest::prelude::*;

/// A permutation file with one pair.
struct OnePair(u32, u32);

impl Files for OnePair {
    fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(format!("{} {}\n", self.0, self.1).into_bytes())
    }
}

fn rows(text: &str, files: &OnePair) -> Vec<RunRow> {
    let document = Document::parse("latencies.toml", text).unwrap();
    let options = RunOptions { jobs: Some(1), paranoid: true, ..RunOptions::default() };
    plan::run(&document, files, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).rows
}

const NETWORKS: [&str; 8] = [
    "topology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"",
    "topology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"",
    "topology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 4\n[routing]\nalgorithm = \"nca\"",
    "topology = \"flattened-butterfly\"\ndimensions = [4, 2]\nconcentration = 2\n[routing]\nalgorithm = \"ugal\"",
    "topology = \"full-mesh\"\nrouters = 8\nconcentration = 2\n[routing]\nalgorithm = \"valiant\"",
    "topology = \"butterfly\"\nradix = 2\nstages = 4\n[routing]\nalgorithm = \"destination-tag\"",
    "topology = \"mesh\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"minimal-adaptive\"\nallow_deadlock = true",
    "topology = \"mesh\"\ndimensions = [8, 2]\n[routing]\nalgorithm = \"up-down\"",
];

/// The traffic of 16 terminals.
const TRAFFIC: [&str; 8] = [
    "[traffic]\npattern = \"uniform\"\nload = {load}\npacket_flits = {flits}",
    "[traffic]\npattern = \"transpose\"\nload = {load}\npacket_flits = {flits}",
    "[traffic]\npattern = \"uniform\"\ninclude_self = true\nload = {load}\npacket_flits = {flits}\nreply = { packet_flits = 2 }",
    "[traffic]\npattern = \"bit-complement\"\nprocess = \"batch\"\nbatch_packets = 20\npacket_flits = {flits}",
    "[traffic]\npattern = \"permutation\"\npath = \"pair\"\nload = {load}\npacket_flits = {flits}",
    "[workload]\ncollective = \"alltoall\"\nmessage_flits = {flits}\npacket_flits = 8",
    "[workload]\ncollective = \"allreduce\"\nmessage_flits = {flits}\npacket_flits = 8\njitter_cycles = 7.5",
    "[workload]\ncollective = \"broadcast\"\nmessage_flits = {flits}\npacket_flits = 8\nstart_skew_cycles = 20",
];

const STATISTICS: [&str; 6] = ["mean", "min", "p50", "p99", "p999", "max"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A packet is created before it enters the network, so its network latency is part of its latency: in the mean, the extremes and every
    /// percentile. None is faster than the fastest pair at zero load, and the mean of the packets not faster than the zero-load mean by
    /// more than chance. No channel is busy for longer than the counted time, and no more comes out of the network than is offered.
    #[test]
    fn network_latency_is_part_of_packet_latency_and_both_reach_zero_load(
        network in 0..NETWORKS.len(),
        traffic in 0..TRAFFIC.len(),
        engine in prop_oneof![Just("flow"), Just("flit")],
        (flits, load, seed) in (1u32..12, 1u32..10, 1u64..1000),
        (latency, period, speedup) in (1u32..3, 1u32..3, 1u32..3),
        pair in (0u32..16, 0u32..16),
    ) {
        let traffic = TRAFFIC[traffic].replace("{load}", &format!("0.{load}")).replace("{flits}", &flits.to_string());
        // Slow channels and faster routers do not go together.
        let (period, speedup) = if speedup > 1 { (1, speedup) } else { (period, speedup) };
        let shape = format!("[network]\nchannel_latency = {latency}\nchannel_period = {period}\n{}", NETWORKS[network]);
        let router = format!("[router]\nvirtual_channels = 6\nbuffer_flits = 32\ninternal_speedup = {speedup}.0");
        let files = OnePair(pair.0, pair.1);
        let text = format!(
            "engine = \"{engine}\"\n{shape}\n{router}\n{traffic}\n[measure]\nseed = {seed}\nmax_cycles = 4000\nprecision = 0.2\n"
        );
        let row = &rows(&text, &files)[0];
        let of = |name: &str| row.number(name);
        for statistic in STATISTICS {
            let (packet, network) = (of(&format!("packet_latency_{statistic}")), of(&format!("network_latency_{statistic}")));
            prop_assert_eq!(packet.is_some(), network.is_some());
            // The sums of the flow engine are rounded.
            prop_assert!(network <= packet.map(|packet| packet * (1.0 + 1e-12)), "{statistic}: {network:?} > {packet:?} on\n{text}");
        }
        prop_assert!(of("channel_utilisation_max").is_none_or(|busy| busy <= 1.0 + 1e-9), "{:?} on\n{text}", of("channel_utilisation_max"));
        if let (Some(efficiency), Some(bound)) = (of("efficiency"), of("completion_bound")) {
            prop_assert!(efficiency > 0.0 && efficiency <= 1.0 + 1e-9 && bound > 0.0, "{efficiency} on\n{text}");
        }
        if text.contains("[traffic]") && !text.contains("reply") && of("measured_packets") > Some(0.0) {
            let formula = &rows(&text.replacen(engine, "analysis", 1), &files)[0];
            let alone = formula.number("zero_load_latency").unwrap();
            // A saturated run has only a latency until it was stopped.
            let is_saturated = row.status() == "saturated";
            let mean = of(if is_saturated { "packet_latency_mean_until_stop" } else { "packet_latency_mean" }).unwrap();
            let chance = 4.0 * spread(&files, &shape, &router, flits) / of("measured_packets").unwrap().sqrt();
            // Beyond saturation those that arrive are not those that are sent: terminals that send to themselves lose nothing, others starve.
            let is_offered = matches!(row.status(), "converged" | "completed");
            prop_assert!(!is_offered || mean >= alone - chance - 1e-6 - 0.02 * alone, "{mean} cycles in the mean, {alone} at zero load, on\n{text}");
            let shortest = if is_saturated { mean } else { of("packet_latency_min").unwrap() };
            prop_assert!(shortest + 0.5 >= least(&files, &shape, &router, flits), "on\n{text}");
        }
    }
}

/// Zero-load latencies of some pairs: of a terminal to itself, which nothing can beat, and over the whole network.
fn alone(files: &OnePair, shape: &str, router: &str, flits: u32) -> [f64; 2] {
    let of = |pair: OnePair| {
        let traffic = format!("[traffic]\npattern = \"permutation\"\npath = \"pair\"\nload = 0.1\npacket_flits = {flits}");
        let row = rows(&format!("engine = \"analysis\"\n{shape}\n{router}\n{traffic}\n"), &pair).remove(0);
        row.number("zero_load_latency").unwrap()
    };
    [of(OnePair(files.0, files.0)), of(OnePair(0, 15))]
}

fn least(files: &OnePair, shape: &str, router: &str, flits: u32) -> f64 {
    let [to_self, across] = alone(files, shape, router, flits);
    to_self.min(across)
}

/// Of latencies at zero load, at most.
fn spread(files: &OnePair, shape: &str, router: &str, flits: u32) -> f64 {
    let [to_self, across] = alone(files, shape, router, flits);
    across.max(to_self)
}

/// A single pair in the network: none of its packets is faster than a lone one, at any load.
#[test]
fn packets_of_one_pair_are_never_faster_than_a_lone_one() {
    for engine in ["flow", "flit"] {
        for shape in NETWORKS {
            for load in ["0.05", "0.5", "0.9"] {
                let text = format!(
                    "engine = \"{engine}\"\n[network]\n{shape}\n[router]\nvirtual_channels = 6\nbuffer_flits = 32\n\
                     [traffic]\npattern = \"permutation\"\npath = \"pair\"\nload = {load}\npacket_flits = 5\n[measure]\nmax_cycles = 3000\n"
                );
                let files = OnePair(1, 14);
                let row = &rows(&text, &files)[0];
                let formula = &rows(&text.replacen(engine, "analysis", 1), &files)[0];
                let least_of = if row.status() == "saturated" { "packet_latency_mean_until_stop" } else { "packet_latency_min" };
                let (found, alone) = (row.number(least_of).unwrap(), formula.number("zero_load_latency").unwrap());
                // Valiant's paths differ in length: the shortest is half of the mean at least.
                let least = if shape.contains("valiant") { 0.5 * alone } else { alone };
                assert!(found + 0.5 >= least, "{engine}: {found} cycles, {alone} alone, on {shape} at {load}");
            }
        }
    }
}

/// Formulas take no time, so nothing of them can be the statistics of a transient.
#[test]
fn formulas_have_no_transient() {
    let text =
        format!("engine = \"analysis\"\n[network]\n{}\n{}\n", NETWORKS[0], TRAFFIC[0].replace("{load}", "0.1").replace("{flits}", "5"));
    assert_eq!(rows(&text, &OnePair(0, 1))[0].text("message"), "");
}

/// A quarter of the terminals of a 4 x 4 mesh lie on its diagonal and send to themselves under transpose. All rates of all engines count
/// that, as BookSim does, and each reports its share: beyond saturation it is more than a quarter of the accepted flits.
#[test]
fn every_engine_counts_and_reports_self_traffic_alike() {
    for (load, least, most) in [("0.1", 0.23, 0.27), ("1.0", 0.3, 0.5)] {
        for engine in ["analysis", "flow", "flit"] {
            let traffic = TRAFFIC[1].replace("{load}", load).replace("{flits}", "5");
            let text = format!("engine = \"{engine}\"\n[network]\n{}\n{traffic}\n[measure]\nwarmup = 500\ncycles = 4000\n", NETWORKS[0]);
            let row = &rows(&text, &OnePair(0, 1))[0];
            let share = row.number("self_share").unwrap();
            // The formula scales all rates with the bottleneck.
            let most = if engine == "analysis" { 0.25 + 1e-5 } else { most };
            let least = if engine == "analysis" { 0.25 - 1e-5 } else { least };
            assert!((least..most).contains(&share), "{engine} at {load}: {share}");
        }
    }
    let uniform = TRAFFIC[0].replace("{load}", "0.3").replace("{flits}", "5");
    let text = format!("engine = \"flit\"\n[network]\n{}\n{uniform}\n[measure]\nwarmup = 500\ncycles = 2000\n", NETWORKS[0]);
    assert_eq!(rows(&text, &OnePair(0, 1))[0].number("self_share"), Some(0.0));
}

/// A router of twice the speed puts two flits in a cycle before a channel, which takes one: however short the measured time, and whatever
/// waited before the channel when it began, no channel is busy for more than all of it.
#[test]
fn channels_are_never_busy_for_longer_than_the_time_that_is_measured() {
    let text = format!(
        "engine = \"flit\"\n[network]\n{}\n[router]\ninternal_speedup = 2.0\nvirtual_channels = 4\nbuffer_flits = 32\n\
         [traffic]\npattern = \"uniform\"\nload = 0.9\npacket_flits = 5\n\
         [sweep]\n\"measure.warmup\" = [0, 100]\n\"measure.cycles\" = [50, 100, 300]\n\"measure.seed\" = [1, 2, 3]\n",
        NETWORKS[0]
    );
    let busiest = rows(&text, &OnePair(0, 1)).iter().map(|row| row.number("channel_utilisation_max").unwrap()).fold(0.0, f64::max);
    assert!(busiest > 0.9 && busiest <= 1.0, "{busiest}");
}

/// A terminal's load is bounded by its channel; the sum over classes at different terminals is not.
#[test]
fn classes_of_different_terminals_may_offer_more_than_one_in_all() {
    struct Pairs;
    impl Files for Pairs {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            Ok(if path == "a" { "0 3\n" } else { "4 7\n" }.into())
        }
    }
    let text = |second: &str| {
        format!(
            "engine = \"flit\"\n[network]\n{}\n[traffic]\npattern = \"permutation\"\n\
             [[traffic.class]]\npath = \"a\"\nload = 0.6\n[[traffic.class]]\npath = \"{second}\"\nload = 0.6\n\
             [measure]\nwarmup = 100\ncycles = 4000\n",
            NETWORKS[0]
        )
    };
    let run = |text: &str| plan::run(&Document::parse("classes.toml", text).unwrap(), &Pairs, &RunOptions::default());
    let row = run(&text("b")).unwrap().rows.remove(0);
    // Two of 16 terminals.
    assert!((row.number("accepted_throughput_mean").unwrap() * 16.0 - 1.2).abs() < 0.06);
    let error = run(&text("a")).unwrap_err().to_string();
    assert!(error.contains("offers a load of 1.2 in all at terminal 0; a terminal sends at most 1 flit per cycle"), "{error}");
}
