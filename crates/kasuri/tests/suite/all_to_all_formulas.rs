//! All-to-alls by formulas: counts by routers equal counts by terminals.

use kasuri::input::KNOWN;
use kasuri::measure::Completion;
use kasuri_config::{Document, Study, Until};
use kasuri_flow::analysis::{AnalysisEngine, is_counted_by_routers};
use kasuri_model::engine::{Engine, Outcome};
use kasuri_network::id::ChannelId;
use kasuri_network::topology::NoFiles;
use kasuri_workload::schedule::Routes;
use proptest::prelude::*;

fn study(text: &str) -> Study {
    let document = Document::parse_for(*KNOWN, "exchange.toml", text).unwrap();
    document.study(&document.points().unwrap()[0], &NoFiles).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn answer(study: &Study) -> Outcome {
    AnalysisEngine.run(&study.scenario, &mut Completion::new(1_000_000, Until::Delivered)).unwrap()
}

/// Networks and routings with one path for each pair; terminals.
const FIXED: [(&str, u32); 5] = [
    (
        "topology = \"mesh\"\ndimensions = [4, 3]\nconcentration = 2\nchannel_period = [1, 3]\n[routing]\nalgorithm = \"dimension-order\"",
        24,
    ),
    ("topology = \"torus\"\ndimensions = [4, 4]\n[routing]\nalgorithm = \"dimension-order\"\ntie = \"positive\"", 16),
    ("topology = \"fat-tree\"\nup = 2\ndown = 3\nlevels = 3\n[routing]\nalgorithm = \"nca\"\nup_port = \"d-mod-k\"", 27),
    ("topology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 3\n[routing]\nalgorithm = \"nca\"\nup_port = \"s-mod-k\"", 8),
    (
        "topology = \"dragonfly\"\nterminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2\n\
         [routing]\nalgorithm = \"minimal\"\n\
         tie = \"lowest\"",
        72,
    ),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The test follows each message of each pair; the formulas count them by routers, whatever the schedule.
    #[test]
    fn channels_carry_the_sum_of_all_messages(
        (network, terminal_period) in (0..FIXED.len(), 1u32..4),
        (flits, repeat, pairwise) in (1u32..40, 1u32..3, any::<bool>()),
        (ranks, seed) in (2u32..24, 0u32..100),
    ) {
        let (shape, terminals) = FIXED[network];
        let ranks = if pairwise { 1 << ranks.min(terminals).ilog2() } else { ranks.min(terminals) };
        let schedule = if pairwise { "pairwise" } else { "shift" };
        let text = format!(
            "[network]\nterminal_channel_period = {terminal_period}\n{shape}\n[router]\nvirtual_channels = 4\n\
             [workload]\ncollective = \"alltoall\"\n\
             schedule = \"{schedule}\"\nmessage_flits = {flits}\nrepeat = {repeat}\nranks = {ranks}\n\
             placement = \"random\"\nplacement_seed = {seed}\n"
        );
        let study = study(&text);
        let (found, network) = (answer(&study), &study.scenario.network);
        let closed = study.scenario.workload.as_ref().unwrap();
        let (mut expected, mut path, mut hops) = (vec![0u64; network.channel_count() as usize], Vec::new(), 0);
        let mut routes = Routes::new(network, &*study.scenario.routing);
        closed.workload.each_message(&mut |message| {
            routes.follow(message.source, message.destination, &mut path).unwrap();
            path.iter().for_each(|channel| expected[channel.index()] += u64::from(message.flits));
            hops += path.len() - 1;
        });
        prop_assert_eq!(&found.channel_flits, &expected, "{}", text);
        let busy = |(channel, flits): (usize, &u64)| flits * u64::from(network.link(ChannelId(channel as u32)).period);
        prop_assert_eq!(found.completion_time, expected.iter().enumerate().map(busy).max().map(|cycles| cycles as f64), "{}", text);
        let formulas = found.formulas.unwrap();
        let messages = u64::from(ranks) * u64::from(ranks - 1) * u64::from(repeat);
        prop_assert!((formulas.hops - hops as f64 / messages as f64).abs() < 1e-9, "{} on {text}", formulas.hops);
        prop_assert!(!found.not_modelled.iter().any(|what| what.contains("routing")), "{:?}", found.not_modelled);
    }
}

/// A tree of two levels, two links up and down at each of two leaves: the four messages of a leaf to each of the two terminals of the other
/// share the two links up evenly, which the row calls a mean.
#[test]
fn random_choices_count_on_the_average() {
    let study = study(
        "[network]\ntopology = \"fat-tree\"\nup = 2\ndown = 2\nlevels = 2\n[routing]\nalgorithm = \"nca\"\nup_port = \"random\"\n\
         [workload]\ncollective = \"alltoall\"\nmessage_flits = 7\n",
    );
    assert!(is_counted_by_routers(&study.scenario));
    let found = answer(&study);
    let network = &study.scenario.network;
    for channel in network.router_channels() {
        assert_eq!(found.channel_flits[channel.index()], 2 * 7, "{}", network.channel_name(channel));
    }
    assert_eq!(found.completion_time, Some(21.0));
    assert!(found.not_modelled.iter().any(|what| what.contains("means")), "{:?}", found.not_modelled);
}

/// 13,824 terminals have 191 million pairs at 576 routers, with 332 thousand routes. A global link carries the messages of all pairs of
/// terminals of its two groups, 576 x 576 of them in each direction.
#[test]
fn large_all_to_alls_need_routers_not_pairs() {
    let study = study(
        "[network]\ntopology = \"dragonfly\"\np = 24\na = 24\nh = 1\ngroups = 24\n[routing]\nalgorithm = \"minimal\"\n\
         [router]\nvirtual_channels = 3\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 1\n",
    );
    assert!(is_counted_by_routers(&study.scenario));
    assert_eq!(answer(&study).completion_time, Some(f64::from(576 * 576)));
}
