use super::*;
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_network::routing::RoutingAlgorithm;
use kasuri_network::routing::destination_tag::DestinationTag;
use kasuri_network::routing::dimension_order::DimensionOrder;
use kasuri_network::routing::nca::Nca;
use kasuri_network::topology::cenju4::{Cable, Cabling, Cenju4Network};
use kasuri_network::topology::fat_tree::FatTree;
use kasuri_network::topology::mesh::Mesh;
use kasuri_network::topology::omega::Omega;
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

pub(super) const CYCLE: Time = 12_500;
pub(super) const LONGEST: u32 = 108;

/// A network and its routing.
pub(super) struct Routed {
    pub(super) network: Arc<Network>,
    pub(super) routing: Box<dyn Routing>,
}

fn routed(topology: &dyn Topology, routing: &dyn RoutingAlgorithm) -> Routed {
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    let network = Arc::new(topology.build(&context).unwrap());
    let routing = routing.compile(&network).unwrap();
    Routed { network, routing }
}

/// A multistage network.
pub(super) fn built(topology: &dyn Topology) -> Routed {
    routed(topology, &DestinationTag {})
}

/// The machine.
fn boards(terminals: u32, cable: Cable) -> Routed {
    built(&Cenju4Network { terminals, cabling: Cabling::default(), cable })
}

pub(super) fn mesh(dimensions: &[u32]) -> Routed {
    let order: DimensionOrder = toml::from_str("").unwrap();
    routed(&Mesh { dimensions: dimensions.to_vec(), concentration: 1 }, &order)
}

pub(super) fn fat_tree(up: u32, down: u32, levels: u32, up_port: &str) -> Routed {
    let nca: Nca = toml::from_str(&format!("up_port = \"{up_port}\"")).unwrap();
    routed(&FatTree { up, down, levels, sides: 1 }, &nca)
}

pub(super) fn sizes(packets: u32) -> Sizes {
    let flits = packets * LONGEST;
    Sizes { cycle: CYCLE, queue: flits, send: 1000 * LONGEST, receive: flits, parameters: CrosspointParameters::default() }
}

fn sizes_with(arbiter: CrosspointArbiter) -> Sizes {
    Sizes { parameters: CrosspointParameters { arbiter, ..CrosspointParameters::default() }, ..sizes(2) }
}

/// A network whose terminals take what arrives at once.
pub(super) struct Bench {
    pub(super) network: Crosspoint<u32>,
    agenda: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    now: Time,
    /// Terminal, load, time of the tail.
    pub(super) arrivals: Vec<(u32, u32, Time)>,
}

impl Bench {
    pub(super) fn new(routed: &Routed, packets: u32) -> Self {
        Self::with(routed, sizes(packets))
    }

    pub(super) fn with(routed: &Routed, sizes: Sizes) -> Self {
        let network = Crosspoint::new(&routed.network, &*routed.routing, sizes).unwrap();
        Self { network, agenda: BinaryHeap::new(), count: 0, now: 0, arrivals: Vec::new() }
    }

    pub(super) fn inject(&mut self, terminal: u32, target: Target, flits: u32, load: u32) {
        self.network.promise(terminal, target, flits);
        self.network.inject(terminal, target, flits, load, self.now);
        self.collect();
    }

    fn collect(&mut self) {
        for (time, event) in std::mem::take(&mut self.network.schedule) {
            self.count += 1;
            self.agenda.push(Reverse((time, self.count, event)));
        }
    }

    pub(super) fn step(&mut self) -> bool {
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

    pub(super) fn drain(&mut self) {
        while self.step() {
            if self.count.is_multiple_of(997) {
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

/// A queue of the first router has room for two packets: so many are promised, whether they have left or not, and no more. Others have room of
/// their own, but the terminal's queue is one.
#[test]
fn room_in_the_first_router_is_promised_once() {
    let network = built(&Omega { radix: 4, stages: Some(1), terminals: None });
    let send = 5 * LONGEST;
    let mut bench = Bench::with(&network, Sizes { send, ..sizes(2) });
    let one = Target::Unicast(2);
    for _ in 0..2 {
        assert!(bench.network.can_promise(0, one, LONGEST));
        bench.network.promise(0, one, LONGEST);
    }
    let both = Target::Multicast { group: 0, terminals: 0b0110 };
    for target in [one, both] {
        assert!(!bench.network.can_promise(0, target, 1), "{target:?}");
    }
    assert!(bench.network.can_promise(0, Target::Unicast(1), LONGEST) && bench.network.can_promise(1, one, LONGEST));
    for output in [0, 1, 3] {
        bench.network.promise(0, Target::Unicast(output), LONGEST);
    }
    assert!(!bench.network.can_promise(0, Target::Unicast(1), 1), "the terminal's own queue is full");
    for target in [one, one].into_iter().chain([0, 1, 3].map(Target::Unicast)) {
        bench.network.inject(0, target, LONGEST, 0, 0);
        bench.collect();
    }
    bench.drain();
    let order: Vec<u32> = bench.arrivals.iter().map(|arrival| arrival.0).collect();
    assert_eq!(order, [2, 2, 0, 1, 3], "in order");
    assert!(bench.network.can_promise(0, both, 2 * LONGEST));
}

#[test]
fn a_switch_has_a_queue_for_each_pair_and_each_has_one_writer_and_one_reader() {
    let network = built(&Omega { radix: 4, stages: Some(2), terminals: None });
    let crosspoint = Crosspoint::<u32>::new(&network.network, &*network.routing, sizes(2)).unwrap();
    assert_eq!((network.network.router_count(), crosspoint.queues.len()), (8, 8 * 16));
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
    let network = boards(32, Cable::Destination);
    let mut bench = Bench::new(&network, 2);
    for packet in 0..100 {
        bench.inject(0, Target::Unicast(31), 96, packet);
    }
    bench.drain();
    let (first, last) = (bench.arrivals[0].2, bench.arrivals[99].2);
    let rate = 99.0 * 256.0 / ((last - first) as f64 / 1e6);
    assert!((rate / 213.333 - 1.0).abs() < 1e-3, "{rate}");
}

pub(super) fn subset(stream: &mut Stream, of: u32) -> u64 {
    let bits = u64::from(stream.below(u32::MAX)) << 32 | u64::from(stream.below(u32::MAX));
    let nodes = bits & (u64::MAX >> (64 - of.min(64)));
    if nodes == 0 { 1 } else { nodes }
}

/// Routers on the way between two terminals of a mesh of 8 x 8.
fn on_a_mesh(from: u32, to: u32) -> u32 {
    (from % 8).abs_diff(to % 8) + (from / 8).abs_diff(to / 8) + 1
}

/// Routers on the way between two terminals of a fat tree of three levels with 4 links down.
fn on_a_fat_tree(from: u32, to: u32) -> u32 {
    [4, 16, 64].iter().position(|below| from / below == to / below).map_or(0, |level| 2 * level as u32 + 1)
}

/// Routers between two terminals.
type Distance = fn(u32, u32) -> u32;

/// A switch for each router on the way, of 125 ns for a packet to one terminal and of 187.5 ns for one to several, and then the tail.
/// Where the routes from a terminal form a tree, copies do not meet.
#[test]
fn in_an_idle_network_the_latency_is_that_of_the_switches_on_the_path() {
    let networks: [(Routed, Distance); 2] = [(mesh(&[8, 8]), on_a_mesh), (fat_tree(4, 4, 3, "s-mod-k"), on_a_fat_tree)];
    for (network, routers) in networks {
        for source in 0..64 {
            for (target, ns) in [
                (Target::Unicast((source * 29 + 7) % 64), 125.0),
                (Target::Multicast { group: 0, terminals: 1 << (source * 37 % 64) }, 187.5),
                (Target::Multicast { group: 0, terminals: u64::MAX }, 187.5),
            ] {
                let mut bench = Bench::new(&network, 2);
                bench.inject(source, target, 15, 0);
                bench.drain();
                for &(terminal, _, time) in &bench.arrivals {
                    assert_eq!(time as f64 / 1000.0, f64::from(routers(source, terminal)) * ns + 15.0 * 12.5, "{source} {terminal}");
                }
            }
        }
    }
}

#[test]
fn a_multicast_reaches_each_of_its_terminals_once_and_no_others() {
    let omega = |terminals| built(&Omega { radix: 4, stages: None, terminals: Some(terminals) });
    for network in [
        omega(16),
        omega(64),
        omega(1024),
        boards(32, Cable::Destination),
        boards(64, Cable::Source),
        boards(1024, Cable::Destination),
        mesh(&[8, 8]),
        mesh(&[4, 4, 8]),
        fat_tree(4, 4, 3, "d-mod-k"),
        fat_tree(4, 4, 3, "s-mod-k"),
        fat_tree(2, 4, 4, "d-mod-k"),
        fat_tree(3, 4, 4, "straight"),
    ] {
        let terminals = network.network.terminal_count();
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
            assert_eq!(found, expected, "{}", network.network.name());
        }
    }
}

/// Up ports by the source keep a multicast together until the routed to its terminals part; by the destination they part at once.
#[test]
fn up_ports_by_the_source_carry_a_multicast_once() {
    let crossings = |up_port| {
        let network = fat_tree(4, 4, 3, up_port);
        let mut bench = Bench::new(&network, 2);
        bench.inject(5, Target::Multicast { group: 0, terminals: u64::MAX }, 10, 0);
        bench.drain();
        bench.network.flit_hops / 10
    };
    // Two routers up, from the top to 3 others of the second level, from these and their own to 15 leaves, then to 64 terminals.
    assert_eq!(crossings("s-mod-k"), 2 + 3 + 15 + 64);
    // Up by 4 and then 16 links, down from 16 tops for each of the 48 terminals there apart, and so to the leaves; 12 of the own part.
    assert_eq!(crossings("d-mod-k"), 4 + 16 + 48 + (48 + 12) + 64);
}

/// Random multicasts of the longest packets, or of them and packets to one terminal, from all terminals at once, with the least queues: all
/// arrive, each once.
fn storm(network: &Routed, rounds: u32, unicasts: bool) {
    let terminals = network.network.terminal_count();
    let mut bench = Bench::new(network, 1);
    let mut stream = Streams::new(3).get(Purpose::Destination, terminals);
    let mut expected = BTreeMap::new();
    for packet in 0..terminals * rounds {
        let group = stream.below(terminals.div_ceil(64));
        let nodes = subset(&mut stream, terminals);
        let (target, nodes) = if unicasts && stream.below(2) == 0 {
            let bit = nodes.trailing_zeros();
            (Target::Unicast(group * 64 + bit), 1 << bit)
        } else {
            (Target::Multicast { group: group as u8, terminals: nodes }, nodes)
        };
        for bit in (0..64).filter(|bit| nodes >> bit & 1 == 1) {
            *expected.entry((group * 64 + bit, packet)).or_insert(0u32) += 1;
        }
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
    storm(&built(&Omega { radix: 4, stages: None, terminals: Some(64) }), 50, false);
}

#[test]
fn a_storm_of_multicasts_on_1024_terminals_drains() {
    storm(&built(&Omega { radix: 4, stages: None, terminals: Some(1024) }), 5, false);
}

#[test]
fn storms_on_the_machine_drain() {
    for cable in [Cable::Destination, Cable::Sum] {
        for unicasts in [false, true] {
            storm(&boards(32, cable), 50, unicasts);
            storm(&boards(64, cable), 50, unicasts);
            storm(&boards(512, cable), 5, unicasts);
        }
    }
}

#[test]
fn storms_on_meshes_drain() {
    for unicasts in [false, true] {
        storm(&mesh(&[8, 8]), 50, unicasts);
        storm(&mesh(&[4, 4, 4]), 20, unicasts);
        storm(&mesh(&[16, 16]), 5, unicasts);
    }
}

#[test]
fn storms_on_fat_trees_drain() {
    for up_port in ["d-mod-k", "s-mod-k"] {
        for unicasts in [false, true] {
            storm(&fat_tree(4, 4, 3, up_port), 50, unicasts);
            storm(&fat_tree(2, 4, 3, up_port), 20, unicasts);
            storm(&fat_tree(4, 4, 4, up_port), 10, unicasts);
            storm(&fat_tree(8, 8, 3, up_port), 3, unicasts);
        }
    }
}

#[test]
fn networks_in_which_packets_could_wait_for_each_other_are_refused() {
    use kasuri_network::topology::torus::Torus;
    let order: DimensionOrder = toml::from_str("").unwrap();
    let torus = routed(&Torus { dimensions: vec![4, 4], concentration: 1 }, &order);
    let refused = Crosspoint::<u32>::new(&torus.network, &*torus.routing, sizes(2)).err().unwrap().to_string();
    assert!(refused.contains("in a cycle of 4 channels (router 0 port 0 -> router 1 port 1"), "{refused}");
    let random = fat_tree(4, 4, 3, "random");
    let refused = Crosspoint::<u32>::new(&random.network, &*random.routing, sizes(2)).err().unwrap().to_string();
    assert!(refused.contains("as chance, congestion or their source has it"), "{refused}");
}
