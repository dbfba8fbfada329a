use super::*;
use kasuri_model::rng::{Purpose, Stream, Streams};
use kasuri_model::topology::cenju4::Cenju4Network;
use kasuri_model::topology::omega::Omega;
use kasuri_model::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const CYCLE: Time = 12_500;
const LONGEST: u32 = 108;

fn built(topology: &dyn Topology) -> Network {
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    topology.build(&context).unwrap()
}

fn sizes(packets: u32) -> Sizes {
    let flits = packets * LONGEST;
    Sizes { cycle: CYCLE, queue: flits, send: 1000 * LONGEST, receive: flits, parameters: CrosspointParameters::default() }
}

fn sizes_with(arbiter: CrosspointArbiter) -> Sizes {
    Sizes { parameters: CrosspointParameters { arbiter, ..CrosspointParameters::default() }, ..sizes(2) }
}

/// A network whose terminals take what arrives at once.
struct Bench {
    network: Crosspoint<u32>,
    agenda: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    now: Time,
    /// Terminal, load, time of the tail.
    arrivals: Vec<(u32, u32, Time)>,
}

impl Bench {
    fn new(network: &Network, packets: u32) -> Self {
        Self::with(network, sizes(packets))
    }

    fn with(network: &Network, sizes: Sizes) -> Self {
        let network = Crosspoint::new(network, sizes).unwrap();
        Self { network, agenda: BinaryHeap::new(), count: 0, now: 0, arrivals: Vec::new() }
    }

    fn inject(&mut self, terminal: u32, target: Target, flits: u32, load: u32) {
        self.network.reserve(terminal, flits);
        self.network.inject(terminal, target, flits, load, self.now);
        self.collect();
    }

    fn collect(&mut self) {
        for (time, event) in std::mem::take(&mut self.network.schedule) {
            self.count += 1;
            self.agenda.push(Reverse((time, self.count, event)));
        }
    }

    fn step(&mut self) -> bool {
        let Some(Reverse((time, _, event))) = self.agenda.pop() else { return false };
        self.now = time;
        if let Event::Arrived { terminal, flight, .. } = event {
            let load = *self.network.load(flight).0;
            self.arrivals.push((terminal, load, time));
            self.network.take(terminal, flight, time);
            self.network.end_copy(flight);
        }
        self.network.happen(event, time);
        self.collect();
        true
    }

    fn drain(&mut self) {
        while self.step() {
            if self.count % 997 == 0 {
                self.network.check().unwrap();
            }
        }
        self.network.check().unwrap();
        assert!(self.network.is_empty());
    }
}

/// Head after one switch: 125, 187.5 and 200 ns; then the tail, a cycle for each of its flits.
#[test]
fn an_idle_switch_has_the_latencies_of_the_machine() {
    let network = built(&Omega { radix: 4, stages: Some(1), terminals: None });
    let group = Target::Multicast { group: 0, terminals: 0b0110 };
    let all = Target::Synchronisation { sid: 3, terminals: 0b0001 };
    for (target, ns) in [(Target::Unicast(2), 125.0), (group, 187.5), (all, 200.0)] {
        let mut bench = Bench::new(&network, 2);
        bench.inject(0, target, 15, 0);
        bench.drain();
        for &(_, _, time) in &bench.arrivals {
            assert_eq!(time as f64 / 1000.0, ns + 15.0 * 12.5, "{target:?}");
        }
    }
}

/// Two terminals always have packets for a third: the arbiters serve them in turn, by rank, or as the cycle says.
#[test]
fn an_output_takes_the_packet_that_its_arbiter_chooses() {
    const EACH: usize = 40;
    let network = built(&Omega { radix: 4, stages: Some(1), terminals: None });
    let served = |arbiter| {
        let mut bench = Bench::with(&network, sizes_with(arbiter));
        for _ in 0..EACH {
            bench.inject(0, Target::Unicast(2), 7, 0);
            bench.inject(1, Target::Unicast(2), 7, 1);
        }
        bench.drain();
        bench.arrivals.iter().map(|&(_, input, tail)| (input, tail / CYCLE - 7)).collect::<Vec<_>>()
    };
    let inputs = |arbiter| served(arbiter).into_iter().map(|(input, _)| input).collect::<Vec<_>>();
    let in_turn: Vec<u32> = (0..2 * EACH as u32).map(|place| place % 2).collect();
    assert_eq!(inputs(CrosspointArbiter::RoundRobin), in_turn);
    assert_eq!(inputs(CrosspointArbiter::FirstCome), in_turn);
    assert_eq!(inputs(CrosspointArbiter::Fixed), [[0; EACH], [1; EACH]].concat());
    // Of five sources, the router's own being the last, input 1 comes before input 0 in one cycle of five alone.
    let rotating = served(CrosspointArbiter::Rotating);
    let last = rotating.iter().rposition(|&(input, _)| input == 0).unwrap();
    let expected = |cycle: u64| u32::from(cycle % 5 == 1);
    assert!(rotating[..=last].iter().all(|&(input, cycle)| input == expected(cycle)), "{rotating:?}");
    assert!(rotating[..=last].iter().any(|&(input, _)| input == 1));
}

#[test]
fn a_switch_has_a_queue_for_each_pair_and_each_has_one_writer_and_one_reader() {
    let network = built(&Omega { radix: 4, stages: Some(2), terminals: None });
    let crosspoint = Crosspoint::<u32>::new(&network, sizes(2)).unwrap();
    assert_eq!((network.router_count(), crosspoint.queues.len()), (8, 8 * 16));
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for queue in 0..128u32 {
        pairs.push((crosspoint.inputs[(queue / 4) as usize], crosspoint.outputs[(queue / 16 * 4 + queue % 4) as usize]));
    }
    assert!(pairs.iter().all(|&(writer, reader)| writer != NONE && reader != NONE));
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 128, "each pair of channels has a queue of its own");
}

/// 8 bytes in 3 flits of 12.5 ns: 213.3 MB/s for packets without a header that follow each other.
#[test]
fn a_channel_carries_213_megabytes_a_second() {
    let network = built(&Cenju4Network { terminals: 32 });
    let mut bench = Bench::new(&network, 2);
    for packet in 0..100 {
        bench.inject(0, Target::Unicast(31), 96, packet);
    }
    bench.drain();
    let (first, last) = (bench.arrivals[0].2, bench.arrivals[99].2);
    let rate = 99.0 * 256.0 / ((last - first) as f64 / 1e6);
    assert!((rate / 213.333 - 1.0).abs() < 1e-3, "{rate}");
}

fn subset(stream: &mut Stream, of: u32) -> u64 {
    let bits = u64::from(stream.below(u32::MAX)) << 32 | u64::from(stream.below(u32::MAX));
    let nodes = bits & (u64::MAX >> (64 - of.min(64)));
    if nodes == 0 { 1 } else { nodes }
}

#[test]
fn a_multicast_reaches_each_of_its_terminals_once_and_no_others() {
    for terminals in [16, 64, 1024] {
        let network = built(&Omega { radix: 4, stages: None, terminals: Some(terminals) });
        let mut stream = Streams::new(1).get(Purpose::Destination, terminals);
        for _ in 0..20 {
            let group = stream.below(terminals.div_ceil(64)) as u8;
            let nodes = subset(&mut stream, terminals);
            let mut bench = Bench::new(&network, 2);
            bench.inject(stream.below(terminals), Target::Multicast { group, terminals: nodes }, 20, 0);
            bench.drain();
            let mut found: Vec<u32> = bench.arrivals.iter().map(|arrival| arrival.0).collect();
            found.sort_unstable();
            let expected: Vec<u32> = (0..64).filter(|bit| nodes >> bit & 1 == 1).map(|bit| u32::from(group) * 64 + bit).collect();
            assert_eq!(found, expected);
        }
    }
}

/// The rule of the machine: the digits of the group up to the last three stages; then output d of the prefix P taken so far if the map
/// has a bit in the w = 16, 4, 1 bits from w (4 P + d) on.
#[test]
fn the_outputs_of_a_multicast_are_those_of_the_maps_rule() {
    let network = built(&Omega { radix: 4, stages: Some(5), terminals: Some(1024) });
    let cones = Cones::new(&network, 4).unwrap();
    let (stages, positions) = (network.labels().router("stage").unwrap(), network.labels().router("position").unwrap());
    let mut stream = Streams::new(2).get(Purpose::Destination, 0);
    for router in 0..network.router_count() {
        let (stage, position) = (stages[router as usize], positions[router as usize]);
        // The digits of the destination taken so far are the low digits of the position.
        let taken = position % 4u32.pow(stage);
        let (group, nodes) = (stream.below(16), subset(&mut stream, 64));
        let expected: u32 = if stage < 2 {
            let digit = group / 4u32.pow(1 - stage) % 4;
            if stage == 0 || taken == group / 4 { 1 << digit } else { 0 }
        } else {
            let width = [16, 4, 1][stage as usize - 2];
            let prefix = taken % 4u32.pow(stage - 2);
            let inside = taken / 4u32.pow(stage - 2) == group;
            let has = |digit: u32| nodes >> (width * (4 * prefix + digit)) & (u64::MAX >> (64 - width)) != 0;
            (0..4).filter(|&digit| inside && has(digit)).map(|digit| 1 << digit).sum()
        };
        assert_eq!(cones.outputs(router, group as usize, nodes), expected, "stage {stage}, position {position}");
    }
}

/// Random multicasts of the longest packets from all terminals at once, with the least queues: all arrive.
fn storm(terminals: u32, rounds: u32) {
    let network = built(&Omega { radix: 4, stages: None, terminals: Some(terminals) });
    let mut bench = Bench::new(&network, 1);
    let mut stream = Streams::new(3).get(Purpose::Destination, terminals);
    let mut expected = BTreeMap::new();
    for packet in 0..terminals * rounds {
        let group = stream.below(terminals.div_ceil(64));
        let nodes = subset(&mut stream, terminals);
        for bit in (0..64).filter(|bit| nodes >> bit & 1 == 1) {
            *expected.entry((group * 64 + bit, packet)).or_insert(0u32) += 1;
        }
        let target = Target::Multicast { group: group as u8, terminals: nodes };
        bench.inject(packet % terminals, target, LONGEST, packet);
    }
    bench.drain();
    let mut found = BTreeMap::new();
    for &(terminal, packet, _) in &bench.arrivals {
        *found.entry((terminal, packet)).or_insert(0u32) += 1;
    }
    assert_eq!(found, expected);
}

#[test]
fn a_storm_of_multicasts_on_64_terminals_drains() {
    storm(64, 50);
}

#[test]
fn a_storm_of_multicasts_on_1024_terminals_drains() {
    storm(1024, 5);
}

/// Random overlapping sets of participants on 64 terminals, among data that blocks the channels: nobody leaves a round before all have
/// entered it, and each gets one packet.
#[test]
fn nobody_leaves_a_synchronisation_before_all_have_entered() {
    const SETS: usize = 100;
    const ROUNDS: usize = 10_000;
    let network = built(&Omega { radix: 4, stages: None, terminals: Some(64) });
    let mut bench = Bench::new(&network, 1);
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
fn networks_with_several_paths_or_with_circles_are_refused() {
    use kasuri_model::topology::full_mesh::FullMesh;
    let refused = |network: &Network| Crosspoint::<u32>::new(network, sizes(2)).err().unwrap().to_string();
    assert!(refused(&built(&FullMesh { routers: 4, concentration: 1 })).contains("lead back to a router"));
}
