//! Properties of every pattern and every process of the tables.

use crate::common::{ExampleFiles, example, network};
use kasuri_config::pattern::ALL_PATTERNS;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::{Purpose, Streams};
use kasuri_workload::traffic::pattern::{Pattern, PatternContext};
use kasuri_workload::traffic::process::PROCESSES;

fn compile(name: &str, parameters: &str, network: &Network, include_self: bool) -> Result<Box<dyn Pattern>, String> {
    let entry = ALL_PATTERNS.iter().find(|entry| entry.name == name).expect("a pattern of the table");
    let context = PatternContext { network, include_self, files: &ExampleFiles };
    (entry.parse)(example(parameters)).expect("parameters of the pattern").compile(&context).map_err(|error| error.to_string())
}

fn destinations(name: &str, parameters: &str, network: &Network) -> Vec<u32> {
    let pattern = compile(name, parameters, network, true).unwrap();
    let mut stream = Streams::new(1).get(Purpose::Destination, 0);
    (0..network.terminal_count()).map(|source| pattern.destination(TerminalId(source), &mut stream).unwrap().0).collect()
}

#[test]
fn weights_sum_to_one_and_ascend() {
    let network = network("mesh", "dimensions = [4, 4]");
    for (entry, include_self) in ALL_PATTERNS.iter().flat_map(|entry| [(entry, false), (entry, true)]) {
        let pattern = compile(entry.name, entry.example, &network, include_self).unwrap();
        for source in (0..16).map(TerminalId) {
            let weights = pattern.weights(source);
            assert!(weights.windows(2).all(|pair| pair[0].0 < pair[1].0), "{} of {source}", entry.name);
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
            assert!(weights.is_empty() || (sum - 1.0).abs() < 1e-12, "{} of {source}: {sum}", entry.name);
            assert_eq!(pattern.is_silent(source), weights.is_empty(), "{} of {source}", entry.name);
        }
    }
}

/// Pearson's chi-square over the destinations of each source; the bound is the mean plus six standard deviations of the
/// chi-square law (degrees of freedom f: mean f, variance 2 f), and its exact tail at few degrees is below 1e-7 there with +20.
#[test]
fn draws_follow_the_weights() {
    let network = network("mesh", "dimensions = [4, 4]");
    const DRAWS: u32 = 20_000;
    for entry in ALL_PATTERNS {
        let pattern = compile(entry.name, entry.example, &network, false).unwrap();
        for source in (0..16).map(TerminalId) {
            let mut stream = Streams::new(7).get(Purpose::Destination, source.0);
            let mut counts = [0u32; 16];
            let mut drawn = 0;
            for _ in 0..DRAWS {
                if let Some(destination) = pattern.destination(source, &mut stream) {
                    counts[destination.index()] += 1;
                    drawn += 1;
                }
            }
            let weights = pattern.weights(source);
            assert_eq!(drawn, if weights.is_empty() { 0 } else { DRAWS }, "{} of {source}", entry.name);
            let mut chi_square = 0.0;
            for &(destination, weight) in &weights {
                let expected = weight * f64::from(DRAWS);
                chi_square += (f64::from(counts[destination.index()]) - expected).powi(2) / expected;
                counts[destination.index()] = 0;
            }
            assert_eq!(counts, [0; 16], "{} of {source} draws what has no weight", entry.name);
            let freedom = weights.len().saturating_sub(1) as f64;
            assert!(
                chi_square <= freedom + 6.0 * (2.0 * freedom).sqrt() + 20.0 * f64::from(u8::from(freedom > 0.0)),
                "{}: {chi_square}",
                entry.name
            );
        }
    }
}

/// Table 3.1 of Dally and Towles on 16 terminals.
#[test]
fn bit_permutations_follow_their_definitions() {
    let network = network("mesh", "dimensions = [4, 4]");
    let bits = |map: fn([u32; 4]) -> [u32; 4]| -> Vec<u32> {
        (0..16u32)
            .map(|source| map([source & 1, source >> 1 & 1, source >> 2 & 1, source >> 3]))
            .map(|[a, b, c, d]| a + 2 * b + 4 * c + 8 * d)
            .collect()
    };
    assert_eq!(destinations("bit-complement", "", &network), bits(|[a, b, c, d]| [1 - a, 1 - b, 1 - c, 1 - d]));
    assert_eq!(destinations("bit-reverse", "", &network), bits(|[a, b, c, d]| [d, c, b, a]));
    assert_eq!(destinations("shuffle", "", &network), bits(|[a, b, c, d]| [d, a, b, c]));
    assert_eq!(destinations("transpose", "", &network), bits(|[a, b, c, d]| [c, d, a, b]));
}

#[test]
fn digit_permutations_move_each_coordinate() {
    let network = network("torus", "dimensions = [5, 4]");
    let moved = |x_shift: u32, y_shift: u32| -> Vec<u32> { (0..20).map(|s| (s % 5 + x_shift) % 5 + (s / 5 + y_shift) % 4 * 5).collect() };
    assert_eq!(destinations("neighbor", "", &network), moved(1, 1));
    assert_eq!(destinations("tornado", "shift = \"ceil\"", &network), moved(2, 1));
    assert_eq!(destinations("tornado", "shift = \"floor\"", &network), moved(1, 1));
}

/// A k-ary n-tree has n digits of base k, and terminals on one router keep their order.
#[test]
fn digits_are_known_beyond_grids() {
    let tree = network("fat-tree", "up = 3\ndown = 3\nlevels = 2");
    assert_eq!(destinations("neighbor", "", &tree), (0..9).map(|s| (s % 3 + 1) % 3 + (s / 3 + 1) % 3 * 3).collect::<Vec<u32>>());
    assert_eq!(destinations("transpose", "", &tree), (0..9).map(|s| s / 3 + s % 3 * 3).collect::<Vec<u32>>());
    let mesh = network("full-mesh", "routers = 5\nconcentration = 2");
    assert_eq!(destinations("neighbor", "", &mesh), (0..10).map(|s| (s / 2 + 1) % 5 * 2 + s % 2).collect::<Vec<u32>>());
}

#[test]
fn a_random_permutation_is_one_and_depends_on_its_seed() {
    let network = network("mesh", "dimensions = [10, 10]");
    let mut first = destinations("random-permutation", "permutation_seed = 1", &network);
    let second = destinations("random-permutation", "permutation_seed = 2", &network);
    assert_ne!(first, second);
    first.sort_unstable();
    assert_eq!(first, (0..100).collect::<Vec<u32>>());
}

#[test]
fn a_lone_hot_terminal_sends_nothing_unless_it_may_draw_itself() {
    let network = network("mesh", "dimensions = [4, 4]");
    for (include_self, expected) in [(false, None), (true, Some(TerminalId(5)))] {
        let pattern = compile("hotspot", "terminals = [5]", &network, include_self).unwrap();
        let mut stream = Streams::new(1).get(Purpose::Destination, 5);
        assert_eq!(pattern.destination(TerminalId(5), &mut stream), expected);
        assert_eq!(pattern.destination(TerminalId(4), &mut stream), Some(TerminalId(5)));
    }
}

#[test]
fn patterns_say_what_does_not_fit() {
    let odd = network("mesh", "dimensions = [3, 5]");
    for (name, parameters, part) in [
        ("bit-complement", "", "power of two"),
        ("bit-reverse", "", "power of two"),
        ("shuffle", "", "power of two"),
        ("transpose", "", "4^m terminals (not 15)"),
        ("asymmetric", "", "even number of terminals, not 15"),
        ("hotspot", "terminals = []", "is empty"),
        ("hotspot", "terminals = [15]", "numbered 0 to 14"),
        ("hotspot", "terminals = [1]\nweights = [1, 2]", "2 numbers for 1"),
        ("permutation", "path = \"none.txt\"", "none.txt"),
        ("permutation", "path = \"permutation.txt\"", "permutation.txt:"),
        ("matrix", "path = \"matrix.txt\"", "matrix.txt:1"),
    ] {
        let problem = compile(name, parameters, &odd, false).unwrap_err();
        assert!(problem.contains(part), "{name}: {problem}");
    }
}

/// Processes without an end create `rate` packets per cycle in the mean: within five standard errors of a Bernoulli process, or of
/// bursts with alpha = 0.1 and beta = 0.05. Their counts vary by 2 p q s^2 r / (1 - r) more in a cycle, where p = 2/3 and q = 1/3
/// are the probabilities of being on and off, s = 3/2 `rate` the rate while on and r = 1 - alpha - beta.
#[test]
fn processes_keep_their_rate() {
    for entry in PROCESSES {
        let parameters = (entry.parse)(example(entry.example)).expect("parameters of the process");
        if parameters.packets_per_terminal().is_some() {
            continue;
        }
        let bursts = entry.name == "on-off";
        for rate in [if bursts { 0.6 } else { 1.0 }, 0.3, 0.07, 0.001] {
            let process = parameters.compile(rate).unwrap();
            const PACKETS: u64 = 20_000;
            let mut stream = Streams::new(3).get(Purpose::Creation, 0);
            let (mut previous, mut first) = (None, 0);
            for index in 0..PACKETS {
                let cycle = process.next(index, previous, &mut stream).expect("no end");
                assert!(previous.is_none_or(|before| cycle > before), "{} goes back in time", entry.name);
                first = if index == 0 { cycle } else { first };
                previous = Some(cycle);
            }
            let gaps = (PACKETS - 1) as f64;
            let mean_gap = (previous.expect("packets") - first) as f64 / gaps;
            let more = if bursts { 2.0 * (2.0 / 9.0) * (1.5 * rate).powi(2) * 0.85 / 0.15 } else { 0.0 };
            let standard_error = (1.0 - rate + more / rate).sqrt() / rate / gaps.sqrt();
            assert!((mean_gap - 1.0 / rate).abs() <= 5.0 * standard_error + 1.0 / gaps, "{} at {rate}: {mean_gap}", entry.name);
        }
        let idle = parameters.compile(0.0).unwrap();
        assert_eq!(idle.next(0, None, &mut Streams::new(3).get(Purpose::Creation, 0)), None);
    }
}

#[test]
fn a_batch_ends() {
    let entry = PROCESSES.iter().find(|entry| entry.name == "batch").expect("batch");
    let parameters = (entry.parse)(example("batch_packets = 3")).unwrap();
    assert_eq!(parameters.packets_per_terminal(), Some(3));
    let process = parameters.compile(0.0).unwrap();
    let mut stream = Streams::new(3).get(Purpose::Creation, 0);
    assert!(process.next(2, Some(1), &mut stream).is_some());
    assert_eq!(process.next(3, Some(2), &mut stream), None);
}

/// The phases of `periodic` are spread over the whole spacing, and its gaps differ by at most one cycle.
#[test]
fn periodic_packets_are_evenly_spaced() {
    let entry = PROCESSES.iter().find(|entry| entry.name == "periodic").expect("periodic");
    let process = (entry.parse)(toml::Table::new()).unwrap().compile(0.15).unwrap();
    let mut phases = std::collections::BTreeSet::new();
    for terminal in 0..200 {
        let mut stream = Streams::new(3).get(Purpose::Creation, terminal);
        let mut previous = process.next(0, None, &mut stream).unwrap();
        phases.insert(previous);
        for index in 1..100 {
            let cycle = process.next(index, Some(previous), &mut stream).unwrap();
            assert!((6..=7).contains(&(cycle - previous)));
            previous = cycle;
        }
    }
    assert_eq!(phases, (0..=6).collect());
}
