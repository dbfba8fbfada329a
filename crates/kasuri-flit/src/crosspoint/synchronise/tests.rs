use crate::crosspoint::tests::{Bench, CYCLE, LONGEST, Routed, built, fat_tree, mesh, sizes, subset};
use crate::crosspoint::{Sizes, Target};
use kasuri_model::router::CrosspointParameters;
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::topology::cenju4::{Cable, Cabling, Cenju4Network};
use kasuri_network::topology::omega::Omega;

/// Random overlapping sets of participants on 64 terminals, among data that blocks the channels: nobody leaves a round before all have
/// entered it, and each gets one packet.
fn rounds_of_overlapping_sets(network: &Routed) {
    const SETS: usize = 100;
    const ROUNDS: usize = 10_000;
    let mut bench = Bench::new(network, 1);
    let mut stream = Streams::new(4).get(Purpose::Destination, 0);
    let sets: Vec<u64> = (0..SETS).map(|_| subset(&mut stream, 64)).collect();
    // Each terminal enters the rounds of the sets that it is in, in the same order as all others, one after the other.
    let rounds: Vec<usize> = (0..ROUNDS).map(|_| stream.below(SETS as u32) as usize).collect();
    let mut agenda: Vec<Vec<usize>> = vec![Vec::new(); 64];
    for (round, &set) in rounds.iter().enumerate() {
        (0..64).filter(|bit| sets[set] >> bit & 1 == 1).for_each(|bit| agenda[bit].push(round));
    }
    let mut next = [0; 64];
    let mut entered = vec![0u64; ROUNDS];
    let mut left = vec![0u64; ROUNDS];
    const DATA: u32 = u32::MAX;
    let mut enter = |bench: &mut Bench, terminal: usize, entered: &mut Vec<u64>| {
        if let Some(&round) = agenda[terminal].get(next[terminal]) {
            next[terminal] += 1;
            entered[round] |= 1 << terminal;
            if round % 7 == 0 {
                bench.inject(terminal as u32, Target::Unicast((terminal as u32 * 5 + 3) % 64), LONGEST, DATA);
            }
            let set = rounds[round];
            bench.inject(terminal as u32, Target::Synchronisation { sid: set as u8, terminals: sets[set] }, 12, round as u32);
        }
    };
    (0..64).for_each(|terminal| enter(&mut bench, terminal, &mut entered));
    let mut seen = 0;
    while bench.step() {
        while let Some(&(terminal, load, _)) = bench.arrivals.get(seen) {
            seen += 1;
            if load == DATA {
                continue;
            }
            // The packet that arrives carries the round of the last one that came to the router before.
            let round = load as usize;
            assert_eq!(entered[round], sets[rounds[round]], "all have entered round {round}");
            assert_eq!(left[round] >> terminal & 1, 0, "one packet each");
            left[round] |= 1 << terminal;
            enter(&mut bench, terminal as usize, &mut entered);
        }
    }
    assert!(bench.network.is_empty());
    bench.network.check().unwrap();
    assert!((0..ROUNDS).all(|round| left[round] == sets[rounds[round]]));
}

#[test]
fn nobody_leaves_a_synchronisation_before_all_have_entered() {
    rounds_of_overlapping_sets(&built(&Omega { radix: 4, stages: None, terminals: Some(64) }));
    for (cabling, cable) in [(Cabling::HalvesStraight, Cable::Destination), (Cabling::RoundRobinInterleaved, Cable::Sum)] {
        rounds_of_overlapping_sets(&built(&Cenju4Network { terminals: 64, cabling, cable }));
    }
}

#[test]
fn nobody_leaves_a_synchronisation_on_a_mesh_before_all_have_entered() {
    rounds_of_overlapping_sets(&mesh(&[8, 8]));
    rounds_of_overlapping_sets(&mesh(&[4, 4, 4]));
}

#[test]
fn nobody_leaves_a_synchronisation_on_a_fat_tree_before_all_have_entered() {
    rounds_of_overlapping_sets(&fat_tree(4, 4, 3, "d-mod-k"));
    rounds_of_overlapping_sets(&fat_tree(2, 2, 6, "s-mod-k"));
}

/// When the packets of a synchronisation arrive, in nanoseconds, if all participants enter at once and accesses to a table take no time.
fn ends(network: &Routed, terminals: u64) -> Vec<(u32, f64)> {
    let parameters = CrosspointParameters { table_access: 0, ..CrosspointParameters::default() };
    let mut bench = Bench::with(network, Sizes { parameters, ..sizes(2) });
    for terminal in (0..64).filter(|bit| terminals >> bit & 1 == 1) {
        bench.inject(terminal, Target::Synchronisation { sid: 5, terminals }, 12, 0);
    }
    bench.drain();
    bench.arrivals.iter().map(|&(terminal, _, time)| (terminal, time as f64 / 1000.0)).collect()
}

/// 200 ns for each router from the deepest participant up to the top and down to the one who waits; then the tail.
fn expect(network: &Routed, terminals: u64, deepest: u32, depth: impl Fn(u32) -> u32) {
    let found = ends(network, terminals);
    assert_eq!(found.len() as u32, terminals.count_ones());
    for (terminal, ns) in found {
        let routers = deepest + 1 + depth(terminal);
        assert_eq!(ns, f64::from(routers) * 200.0 + 12.0 * CYCLE as f64 / 1000.0, "terminal {terminal}");
    }
}

/// On a mesh of 8 x 8 the root is router (3, 3), 8 links from the farthest corner; on a fat tree it is a top router. Terminals below one
/// router of a lower level need not go to the top.
#[test]
fn a_synchronisation_goes_up_to_the_first_router_above_all_and_down_again() {
    let from_root = |terminal: u32| (terminal % 8).abs_diff(3) + (terminal / 8).abs_diff(3);
    expect(&mesh(&[8, 8]), u64::MAX, 8, from_root);
    expect(&mesh(&[8, 8]), 1 << 63, 0, |_| 0);
    let tree = fat_tree(4, 4, 3, "d-mod-k");
    expect(&tree, u64::MAX, 2, |_| 2);
    expect(&tree, 0xffff << 16, 1, |_| 1);
    expect(&tree, 0b1010 << 40, 0, |_| 0);
}

/// Packets that come to a table at the same time are counted one after the other: on the way up at most four at each of 9 routers.
#[test]
fn accesses_to_a_table_cost_little() {
    let network = mesh(&[8, 8]);
    let all = Target::Synchronisation { sid: 0, terminals: u64::MAX };
    let mut bench = Bench::new(&network, 2);
    (0..64).for_each(|terminal| bench.inject(terminal, all, 12, 0));
    bench.drain();
    let last = bench.arrivals.iter().map(|arrival| arrival.2).max().unwrap();
    let least = 17 * 16 * CYCLE + 12 * CYCLE;
    assert!(last >= least && last <= least + 9 * 4 * CYCLE, "{last} {least}");
}

#[test]
fn the_packet_of_one_who_takes_no_part_ends_nothing() {
    for network in [built(&Omega { radix: 4, stages: None, terminals: Some(64) }), mesh(&[8, 8]), fat_tree(4, 4, 3, "d-mod-k")] {
        for outsider in [1, 17, 63] {
            let mut bench = Bench::new(&network, 2);
            bench.inject(outsider, Target::Synchronisation { sid: 0, terminals: 1 }, 12, 0);
            bench.drain();
            assert!(bench.arrivals.is_empty());
        }
    }
}
