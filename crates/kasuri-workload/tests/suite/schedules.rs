//! Schedules, counted phase by phase on the built networks with the routings in use.

use crate::common::{network, routing};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::routing::walk::{DELIVERED, Routes, Walker};
use kasuri_network::routing::{Routing, VirtualChannels};
use kasuri_network::topology::torus::Torus;
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, PerDimension, Topology};
use kasuri_workload::collective::Collective;
use kasuri_workload::schedule::{Job, Plan, SCHEDULES, Schedule, ScheduleError, Scheduled, Verification, VerifyError, default_for, verify};
use proptest::prelude::*;
use std::sync::Arc;

/// The static rule: the path by the place of the destination at its router.
const STATIC: (&str, &str) = ("minimal", "tie = \"destination\"");
const POSITIVE: (&str, &str) = ("dimension-order", "tie = \"positive\"");
const D_MOD_K: (&str, &str) = ("nca", "up_port = \"d-mod-k\"");

/// A formula, which does not ask the routing.
fn plan(schedule: &str, network: &Arc<Network>, job: &Job) -> Result<Plan, ScheduleError> {
    planned(schedule, network, routing("minimal", "tie = \"lowest\"", network).unwrap().as_ref(), job)
}

fn planned(schedule: &str, network: &Network, routing: &dyn Routing, job: &Job) -> Result<Plan, ScheduleError> {
    SCHEDULES.iter().find(|entry| entry.name == schedule).expect("a schedule of the table").plan(network, routing, job)
}

#[track_caller]
fn count(network: &Arc<Network>, (name, parameters): (&str, &str), schedule: &str, job: &Job) -> Verification {
    let routing = routing(name, parameters, network).unwrap();
    let found = verify(network, routing.as_ref(), &planned(schedule, network, routing.as_ref(), job).unwrap()).unwrap();
    assert!(found.is_complete(), "{:?}", found.shortfall);
    found
}

/// N - 1 phases, every pair once, no two messages on a channel; and nothing could be faster.
#[track_caller]
fn assert_perfect(network: &Arc<Network>, routing: (&str, &str), schedule: &str, job: &Job, ranks: u32) {
    let found = count(network, routing, schedule, job);
    assert_eq!((found.terminals, found.loads.len() as u32), (ranks, ranks - 1), "{}", network.name());
    assert_eq!(found.max_load(), 1, "{}", network.name());
    assert_eq!((found.lower_bound(), found.time()), (u64::from(ranks) - 1, u64::from(ranks) - 1));
}

fn mlfm([layers, positions, terminals]: [u32; 3]) -> Arc<Network> {
    network("mlfm", &format!("layers = {layers}\npositions = {positions}\nterminals_per_leaf = {terminals}"))
}

#[test]
fn multi_layer_full_meshes_are_free_of_contention_for_every_number_below_the_positions() {
    let degrees = (1..=12).map(|degree| [degree, degree + 1, degree]);
    let others = (1..=4).flat_map(|layers| (2..=7).flat_map(move |positions| (1..positions).map(move |p| [layers, positions, p])));
    for shape in degrees.chain(others).filter(|shape| shape.iter().product::<u32>() > 1) {
        assert_perfect(&mlfm(shape), STATIC, "mlfm", &Job::All, shape.iter().product());
    }
}

/// The second part: to leaves of other positions, in all layers at once; the third: to the same position of other layers.
#[test]
fn the_parts_of_the_schedule_are_free_of_contention_each() {
    let [layers, positions, terminals] = [4, 5, 3];
    let network = mlfm([layers, positions, terminals]);
    let schedule = plan("mlfm", &network, &Job::All).unwrap().schedule;
    let found = count(&network, STATIC, "mlfm", &Job::All);
    let others = layers * (positions - 1) * terminals;
    let leaf = |rank: u32| (rank / terminals / positions, rank / terminals % positions);
    for phase in 0..schedule.phases() {
        for rank in 0..layers * positions * terminals {
            let (from, to) = (leaf(rank), leaf(schedule.destination(rank, phase).unwrap()));
            match phase {
                phase if phase < terminals - 1 => assert_eq!(from, to),
                phase if phase < terminals - 1 + others => assert_ne!(from.1, to.1),
                _ => assert!(from.1 == to.1 && from.0 != to.0),
            }
        }
        assert_eq!(found.loads[phase as usize], 1);
    }
    assert_eq!(schedule.phases() - others, (terminals - 1) + (layers - 1) * terminals);
}

#[test]
fn orthogonal_fat_trees_are_free_of_contention() {
    for (order, sides) in [2, 3, 4, 5, 7, 8, 9, 11].into_iter().flat_map(|order| [(order, 1), (order, 2)]) {
        let network = network("oft", &format!("order = {order}\nsides = {sides}"));
        assert_perfect(&network, STATIC, "oft", &Job::All, sides * (order + 1) * (order * order + order + 1));
    }
}

#[test]
fn full_meshes_and_hypercubes_are_free_of_contention() {
    for (routers, concentration) in [(2, 1), (5, 4), (8, 3), (9, 8)] {
        let mesh = network("full-mesh", &format!("routers = {routers}\nconcentration = {concentration}"));
        assert_perfect(&mesh, ("minimal", ""), "full-mesh", &Job::All, routers * concentration);
    }
    for dimensions in 1..7usize {
        let cube = network("mesh", &format!("dimensions = {:?}", vec![2; dimensions]));
        assert_perfect(&cube, ("dimension-order", ""), "hypercube", &Job::All, 1 << dimensions);
    }
}

/// Messages on the busiest channel between routers when every pair sends one and equal paths share.
fn even_load(network: &Network, routing: &dyn Routing) -> f64 {
    let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
    let (mut walker, mut routes) = (Walker::new(network, routing, available), Routes::default());
    let mut load = vec![0.0; network.channel_count() as usize];
    for destination in (0..network.terminal_count()).map(TerminalId) {
        walker.walk(destination, &mut routes).unwrap();
        let mut here = vec![0.0; routes.places.len()];
        for start in &routes.starts {
            let sources = (0..network.terminal_count()).filter(|&source| walker.group_of()[source as usize] == start.group);
            let others = sources.filter(|&source| source != destination.0).count();
            here[start.place as usize] += others as f64 * start.probability;
        }
        for place in routes.order().unwrap() {
            for step in routes.steps_of(place) {
                let share = here[place as usize] * step.probability;
                load[step.channel.index()] += share;
                if step.to != DELIVERED {
                    here[step.to as usize] += share;
                }
            }
        }
    }
    network.router_channels().map(|channel| load[channel.index()]).fold(0.0, f64::max)
}

/// All-pairs loads. An MLFM's channel between leaf and spine carries p messages to each terminal that only it leads to, and of
/// those to the same position its share by one of m - 1 spines: p (L p + (L - 1) p / (m - 1)), for (4, 4, 2) 20, for (4, 5, 4) 76;
/// the static rule rounds that share up to whole places of a leaf. A one-sided OFT's: N - d.
#[test]
fn uniform_traffic_loads_the_channels_as_the_formulas_say() {
    for ([layers, positions, terminals], even, fixed) in [([4, 4, 2], 20.0, 16 + 6), ([4, 5, 4], 76.0, 76)] {
        let network = mlfm([layers, positions, terminals]);
        let found = count(&network, STATIC, "shift", &Job::All);
        assert_eq!((found.all_pairs_load, found.lower_bound()), (fixed, u64::from(layers * positions * terminals - 1)));
        let random = routing("minimal", "", &network).unwrap();
        assert!((even_load(&network, random.as_ref()) - even).abs() < 1e-9);
    }
    for order in [2, 3, 4, 5] {
        let network = network("oft", &format!("order = {order}"));
        let found = count(&network, STATIC, "shift", &Job::All);
        assert_eq!(found.all_pairs_load, network.terminal_count() - (order + 1));
    }
}

/// The published example: shifts on 1, 2 and 4 layers of the (4, 4, 2) network take 10, 22 and 46 transmissions in 7, 15 and 31
/// phases, 1.429, 1.467 and 1.484 times as long as without contention.
#[test]
fn shifts_meet_on_a_multi_layer_full_mesh() {
    let network = mlfm([4, 4, 2]);
    for (ranks, time) in [(8, 10), (16, 22), (32, 46)] {
        let job = Job::Count(ranks);
        let shift = count(&network, STATIC, "shift", &job);
        assert_eq!((shift.loads.len() as u32, shift.time(), shift.max_load()), (ranks - 1, time, 2));
        assert_perfect(&network, STATIC, "mlfm", &job, ranks);
    }
}

/// Ratios of shifts to contention-free phases on MLFM of degree d and OFT of order q.
#[test]
fn shifts_are_slower_the_larger_the_network() {
    let ratio = |found: Verification| found.time() as f64 / f64::from(found.terminals - 1);
    for (degree, expected) in [(3, 2.26), (4, 2.90), (5, 3.63)] {
        let network = network("mlfm", &format!("degree = {degree}"));
        let found = ratio(count(&network, STATIC, "shift", &Job::All));
        assert!((found - expected).abs() < 0.005, "{degree}: {found}");
    }
    for (order, expected) in [(2, 2.40), (3, 3.22)] {
        let network = network("oft", &format!("order = {order}"));
        let found = ratio(count(&network, STATIC, "shift", &Job::All));
        assert!((found - expected).abs() < 0.005, "{order}: {found}");
    }
}

#[test]
fn shifts_are_free_of_contention_on_two_levels_under_d_mod_k() {
    for degree in 2..9 {
        let tree = network("fat-tree", &format!("up = {degree}\ndown = {degree}\nlevels = 2"));
        assert_perfect(&tree, D_MOD_K, "shift", &Job::All, degree * degree);
    }
}

/// The same on any set of whole leaves.
#[test]
fn shifts_on_some_leaves_of_two_levels_are_free_of_contention() {
    let mut stream = Streams::new(1).get(Purpose::Structure, 0);
    for degree in [4, 8] {
        let tree = network("fat-tree", &format!("up = {degree}\ndown = {degree}\nlevels = 2"));
        for _ in 0..100 {
            let mut leaves: Vec<u32> = (0..degree).filter(|_| stream.below(2) == 0).collect();
            if leaves.is_empty() {
                leaves.push(stream.below(degree));
            }
            let terminals: Vec<_> = leaves.iter().flat_map(|leaf| (0..degree).map(move |i| TerminalId(leaf * degree + i))).collect();
            let ranks = terminals.len() as u32;
            assert_perfect(&tree, D_MOD_K, "shift", &Job::Terminals(terminals), ranks);
        }
    }
}

/// Up to radix 7 no two messages meet, in as many phases as terminals: one more than nothing could beat, or as many as the channels
/// of all pairs need.
#[test]
fn small_tori_are_free_of_contention() {
    for dimensions in [vec![4u32], vec![6], vec![4, 4], vec![5, 5], vec![6, 6], vec![7, 5], vec![2, 3, 4], vec![4, 4, 4], vec![3, 3, 3]] {
        let torus = network("torus", &format!("dimensions = {dimensions:?}"));
        let found = count(&torus, POSITIVE, "torus", &Job::All);
        assert_eq!(found.max_load(), 1, "{dimensions:?}");
        let least = found.lower_bound();
        assert!(found.time() == least || found.time() == least + 1, "{dimensions:?}: {} of {least}", found.time());
    }
    assert_perfect(&network("torus", "dimensions = [3, 3, 3]"), POSITIVE, "torus", &Job::All, 27);
}

/// On larger ones the loads of all phases sum to little more than the load of all pairs, k^(n-1) h (h + 1) / 2 with k = 2 h. With
/// k = 8 c two turns of a ring load its channels with 2 c messages, the others with c, so that c (2 k^n - (k - 2)^n) message times
/// are needed in n dimensions. With k = 8 c + 6 all turns load the channels alike, and nothing could be faster.
#[test]
fn larger_tori_are_close_to_what_their_channels_allow() {
    for (radix, dimensions) in [(8u32, 1), (8, 2), (8, 3), (16, 1), (16, 2), (24, 2), (14, 1), (14, 2), (22, 2)] {
        let torus = network("torus", &format!("dimensions = {:?}", vec![radix; dimensions as usize]));
        let found = count(&torus, POSITIVE, "torus", &Job::All);
        let (k, h) = (u64::from(radix), u64::from(radix / 2));
        let least = k.pow(dimensions - 1) * h * (h + 1) / 2;
        let expected = if k % 8 == 0 { k / 8 * (2 * k.pow(dimensions) - (k - 2).pow(dimensions)) } else { least };
        assert_eq!((found.time(), found.lower_bound()), (expected, least), "{radix}, {dimensions} dimensions");
        assert!(expected < count(&torus, POSITIVE, "shift", &Job::All).time());
    }
}

#[test]
fn each_network_has_the_schedule_of_its_kind() {
    for (name, parameters, schedule) in [
        ("mlfm", "degree = 2", "mlfm"),
        ("oft", "order = 2", "oft"),
        ("full-mesh", "routers = 4", "full-mesh"),
        ("mesh", "dimensions = [2, 2]", "hypercube"),
        ("torus", "dimensions = [2, 3]", "torus"),
        ("mesh", "dimensions = [3, 3]", "shift"),
        ("fat-tree", "up = 2\ndown = 2\nlevels = 2", "shift"),
    ] {
        let network = network(name, parameters);
        assert_eq!(default_for(&network).name, schedule);
        assert!(
            SCHEDULES
                .iter()
                .filter(|entry| !(entry.fits)(&network))
                .all(|entry| { matches!(plan(entry.name, &network, &Job::All), Err(ScheduleError::Network { .. })) })
        );
    }
}

#[test]
fn jobs_that_cannot_be_served_say_what_can() {
    let text = |schedule: &str, network: &Arc<Network>, job: Job| plan(schedule, network, &job).unwrap_err().to_string();
    let network_4 = network("mlfm", "degree = 4");
    assert!(text("mlfm", &network_4, Job::Count(81)).contains("81 terminals; the network has 80"));
    assert!(text("mlfm", &network_4, Job::Count(1)).contains("at least 2"));
    let terminals = |list: &[u32]| Job::Terminals(list.iter().copied().map(TerminalId).collect());
    assert!(text("shift", &network_4, terminals(&[3, 4, 3])).contains("terminal 3 twice"));
    assert!(text("shift", &network_4, terminals(&[3, 80])).contains("0 to 79"));
    let full = network("full-mesh", "routers = 3\nconcentration = 3");
    assert!(text("full-mesh", &full, Job::All).contains("at most 2 a router"));
    assert!(text("full-mesh", &full, Job::Count(7)).contains("the nearest possible: 6"));
    assert!(text("mlfm", &mlfm([2, 3, 3]), Job::All).contains("at most 2 terminals a leaf"));
    assert!(text("mlfm", &mlfm([2, 3, 3]), Job::Count(13)).contains("the nearest possible: 12"));
}

/// Jobs that are no product are served by a part of a product's schedule: without contention, in more phases than partners.
#[test]
fn any_job_is_served_without_contention() {
    let terminals = |list: &[u32]| Job::Terminals(list.iter().copied().map(TerminalId).collect());
    let degree_4 = network("mlfm", "degree = 4");
    let plane = network("oft", "order = 3");
    let cube = network("mesh", "dimensions = [2, 2, 2]");
    let torus = network("torus", "dimensions = [5, 5]");
    for (schedule, network, routing, job, all) in [
        // Two positions with two terminals each share one spine, so that four messages need four phases.
        ("mlfm", &degree_4, STATIC, terminals(&[0, 1, 4, 5]), 80),
        ("mlfm", &degree_4, STATIC, terminals(&[0, 17, 33, 79]), 80),
        ("mlfm", &degree_4, STATIC, Job::Count(64), 80),
        ("oft", &plane, STATIC, Job::Count(32), 52),
        ("oft", &plane, STATIC, terminals(&[0, 1, 2, 3, 8, 9, 10, 11]), 52),
        ("hypercube", &cube, POSITIVE, Job::Count(6), 8),
        ("torus", &torus, POSITIVE, Job::Count(12), 26),
        ("torus", &torus, POSITIVE, terminals(&[0, 7, 13]), 26),
    ] {
        let found = count(network, routing, schedule, &job);
        assert_eq!(found.max_load(), 1, "{schedule} for {job:?}");
        assert!(found.time() >= found.lower_bound() && found.time() < all, "{schedule} for {job:?}: {}", found.time());
    }
}

/// A schedule with one message changed.
#[derive(Debug)]
struct Changed {
    of: Arc<dyn Schedule>,
    at: (u32, u32),
    to: Option<u32>,
}

impl Schedule for Changed {
    fn phases(&self) -> u32 {
        self.of.phases()
    }

    fn destination(&self, rank: u32, phase: u32) -> Option<u32> {
        if (rank, phase) == self.at { self.to } else { self.of.destination(rank, phase) }
    }

    fn source(&self, rank: u32, phase: u32) -> Option<u32> {
        let mut sender = (0..8).filter(|&sender| self.destination(sender, phase) == Some(rank));
        sender.next_back()
    }
}

#[test]
fn what_is_wrong_with_a_schedule_is_found() {
    let network = mlfm([1, 4, 2]);
    let fixed = routing(STATIC.0, STATIC.1, &network).unwrap();
    let changed = |to| {
        let Plan { terminals, schedule } = plan("mlfm", &network, &Job::All).unwrap();
        let schedule = Arc::new(Changed { of: schedule, at: (3, 2), to });
        verify(&network, fixed.as_ref(), &Plan { terminals, schedule })
    };
    let target = plan("mlfm", &network, &Job::All).unwrap().schedule.destination(3, 2).unwrap();
    let missing = changed(None).unwrap().shortfall.unwrap();
    assert_eq!((missing.source, missing.destination, missing.is_repeated), (3, target, false));
    assert!(matches!(changed(Some(8)), Err(VerifyError::Unexpected { phase: 2, source_rank: 3, destination: 8 })));
    // Now two ranks send to one, and that one expects only the last of them.
    assert!(matches!(changed(Some((target + 1) % 8)), Err(VerifyError::Unexpected { phase: 2, .. })));
    let drawing = routing("minimal", "", &mlfm([2, 4, 2])).unwrap();
    let choice = verify(&mlfm([2, 4, 2]), drawing.as_ref(), &plan("mlfm", &mlfm([2, 4, 2]), &Job::All).unwrap());
    assert!(matches!(choice, Err(VerifyError::Choice { .. })));
}

/// As a collective each rank sends its block for the peer, and knows from whom one comes.
#[test]
fn a_schedule_is_an_all_to_all() {
    let network = network("oft", "order = 2");
    let collective = Scheduled::new(plan("oft", &network, &Job::All).unwrap().schedule, 7);
    assert_eq!(collective.rounds(), 20);
    for (rank, round) in (0..21).flat_map(|rank| (0..20).map(move |round| (rank, round))) {
        let transfer = collective.send(rank, round).unwrap();
        assert_eq!(transfer.flits, 7);
        assert_eq!(collective.receive(transfer.peer, round), Some(rank));
        let blocks = collective.blocks(rank, round);
        assert_eq!(blocks.iter().map(|block| (block.origin, block.part)).collect::<Vec<_>>(), [(rank, transfer.peer)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any layers, positions and places of any MLFM, as long as fewer places than positions take part.
    #[test]
    fn parts_of_a_multi_layer_full_mesh_are_free_of_contention(
        layers in 1u32..6, positions in 2u32..8, spare in 0u32..6, chosen in any::<[u32; 3]>(),
    ) {
        let terminals = (positions - 1).saturating_sub(spare).max(1);
        let network = mlfm([layers, positions, terminals]);
        let pick = |mask: u32, of: u32| {
            let some: Vec<u32> = (0..of).filter(|digit| mask >> digit & 1 == 1).collect();
            if some.is_empty() { vec![mask % of] } else { some }
        };
        let (k, m, mut p) = (pick(chosen[0], layers), pick(chosen[1], positions), pick(chosen[2], terminals));
        p.truncate(if m.len() == 1 { usize::MAX } else { m.len() - 1 });
        let job: Vec<_> = k.iter().flat_map(|&l| m.iter().map(move |&a| l * positions + a))
            .flat_map(|leaf| p.iter().map(move |&i| TerminalId(leaf * terminals + i))).collect();
        if job.len() > 1 {
            let ranks = job.len() as u32;
            assert_perfect(&network, STATIC, "mlfm", &Job::Terminals(job), ranks);
        }
    }

    /// Any places on all leaves of one side or of both.
    #[test]
    fn parts_of_an_orthogonal_fat_tree_are_free_of_contention(
        order in prop::sample::select(vec![2u32, 3, 4]), sides in 1u32..3, side in 0u32..3, mask in 1u32..32,
    ) {
        let network = network("oft", &format!("order = {order}\nsides = {sides}"));
        let (degree, leaves) = (order + 1, order * order + order + 1);
        let mut places: Vec<u32> = (0..degree).filter(|place| mask >> place & 1 == 1).collect();
        if places.is_empty() {
            places.push(0);
        }
        let chosen = if side < sides { side..side + 1 } else { 0..sides };
        let job: Vec<_> = chosen.flat_map(|side| (0..leaves).map(move |leaf| side * leaves + leaf))
            .flat_map(|leaf| places.iter().map(move |place| TerminalId(leaf * degree + place))).collect();
        let ranks = job.len() as u32;
        assert_perfect(&network, STATIC, "oft", &Job::Terminals(job), ranks);
    }
}

/// A job by its number of terminals: powers of two fit where the shape allows.
#[test]
fn powers_of_two_are_chosen_from_whole_leaves_and_layers() {
    let degree_4 = network("mlfm", "degree = 4");
    for ranks in [2, 4, 8, 16, 20, 32, 40, 60, 80] {
        assert_perfect(&degree_4, STATIC, "mlfm", &Job::Count(ranks), ranks);
    }
    let mesh = network("full-mesh", "routers = 9\nconcentration = 8");
    for ranks in [2, 4, 8, 16, 32, 72] {
        assert_perfect(&mesh, ("minimal", ""), "full-mesh", &Job::Count(ranks), ranks);
    }
    let cube = network("torus", "dimensions = [2, 2, 2, 2]");
    for ranks in [2, 4, 8, 16] {
        assert_perfect(&cube, ("dimension-order", "tie = \"positive\""), "hypercube", &Job::Count(ranks), ranks);
    }
}

/// A message takes a channel of period p for p message times. With links of period 4 the busiest link sets the bound, and each phase
/// crosses a link, so it takes 4 times as long; with terminals of period 3 the terminals set the bound.
#[test]
fn slow_channels_count_by_their_period() {
    let build = |period, terminal_period| {
        let channels = ChannelParameters {
            channel_period: PerDimension::All(period),
            terminal_channel_period: terminal_period,
            ..ChannelParameters::default()
        };
        let context = BuildContext { channels: &channels, files: &NoFiles, structure_seed: 0 };
        Arc::new(Torus { dimensions: vec![4, 4], concentration: 1 }.build(&context).unwrap())
    };
    let counted = |network: &Arc<Network>| count(network, POSITIVE, "torus", &Job::All);
    let usual = counted(&build(1, 1));
    // Distances 1, 2 and 3 round a ring of 4, the third by one hop back: 1 + 2 + 1, and 1 + 2 in the positive direction. Each of 16
    // terminals crosses 3 x 4 channels of a dimension and direction; there are 16 of them.
    assert_eq!((usual.all_pairs_load, usual.lower_bound(), usual.time()), (12, 15, 16));
    let slow = counted(&build(4, 1));
    assert_eq!((slow.all_pairs_load, slow.lower_bound(), slow.time(), slow.max_load()), (12, 48, 64, usual.max_load()));
    let slow_ends = counted(&build(1, 3));
    assert_eq!((slow_ends.lower_bound(), slow_ends.time()), (45, 48));
}
