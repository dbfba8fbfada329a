use super::event::*;
use super::simulation::*;
use super::*;
use crate::FlitEngine;
use crate::crosspoint::Target;
use kasuri_model::engine::{Command, Engine, Interval, Status};
use kasuri_model::router::RouterParameters;
use kasuri_network::registry::find;
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::routing::{ROUTINGS, Routing};
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
use kasuri_workload::endpoint::cenju4::fault::{Cause, Fault, Interrupt};
use kasuri_workload::endpoint::cenju4::memory::PAGE;
use kasuri_workload::endpoint::cenju4::node::Node;
use kasuri_workload::endpoint::cenju4::parcel::{Header, Kind, Protocol, SENT};
use kasuri_workload::endpoint::cenju4::script::{ANSWERS, COUNTER, Op, Program, Put, RINGS, SOURCE, Script, TARGET, WORDS, sequence};
use kasuri_workload::endpoint::cenju4::set_up;
use kasuri_workload::endpoint::cenju4::task::{Destination, LOG_ENTRY, OPERATING_SYSTEM, Synchronisation};
use kasuri_workload::endpoint::{ENDPOINTS, EndpointContext, EndpointError, Prepared};
use kasuri_workload::units::Units;
use std::cmp::Reverse;
use std::sync::Arc;
use toml::Table;

/// A controller that waits for completion.
struct Patient;

impl Controller for Patient {
    fn interval_cycles(&mut self) -> u64 {
        1000
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if interval.completed { Command::End(Status::Completed) } else { Command::Continue }
    }
}

/// A machine on the network of the Cenju-4 with these keys of `[workload]`.
fn scenario(terminals: u32, workload: &str) -> Scenario {
    with_endpoint(terminals, "", workload, 1)
}

/// The same with keys of `[endpoint]`, and another seed.
fn with_endpoint(terminals: u32, endpoint: &str, workload: &str, seed: u64) -> Scenario {
    on_network("cenju4", terminals, endpoint, workload, seed).unwrap()
}

fn on_network(topology: &str, terminals: u32, endpoint: &str, workload: &str, seed: u64) -> Result<Scenario, EndpointError> {
    let table = |text: &str| text.parse::<Table>().unwrap();
    let topology = (find(TOPOLOGIES, topology).unwrap().parse)(table(&format!("terminals = {terminals}"))).unwrap();
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    let network = Arc::new(topology.build(&context).unwrap());
    let algorithm = (find(ROUTINGS, "destination-tag").unwrap().parse)(Table::new()).unwrap();
    let routing: Arc<dyn Routing> = algorithm.compile(&network).unwrap().into();
    let router: RouterParameters = table("architecture = \"crosspoint\"\nbuffer_flits = 216").try_into().unwrap();
    let units = Units { flit_bytes: None, cycle_ns: Some(12.5) };
    let streams = Streams::new(seed);
    let model = (find(ENDPOINTS, "cenju4").unwrap().parse)(table(endpoint)).unwrap();
    let (routers, workload) = (router.for_endpoints(), table(workload));
    let context =
        EndpointContext { network: &network, routing: &*routing, routers, units, streams: &streams, workload: &workload, space: None };
    let Prepared::Machine(machine) = model.prepare(&context)? else { panic!("the Cenju-4 is a machine") };
    Ok(Scenario {
        network,
        routing,
        pipeline: router.check().unwrap(),
        router,
        classes: Vec::new(),
        workload: None,
        users: None,
        endpoint: Some(machine),
        hosts: None,
        units,
        streams,
        max_cycles: 100_000_000,
        resend_after: None,
        failure: None,
        engine_options: Table::new(),
        paranoid: true,
        timeline: false,
    })
}

fn outcome(terminals: u32, workload: &str) -> Outcome {
    FlitEngine.run(&scenario(terminals, workload), &mut Patient).unwrap()
}

fn nanoseconds(terminals: u32, workload: &str) -> f64 {
    let outcome = outcome(terminals, workload);
    assert_eq!(outcome.status, Status::Completed);
    outcome.completion_time.unwrap() * 12.5
}

/// Runs programs to their end and gives the machine.
fn machine<'a>(scenario: &'a Scenario, machine: &'a Machine) -> Simulation<'a> {
    let mut simulation = Simulation::new(scenario, machine).unwrap();
    while let Some(Reverse((time, _, event))) = simulation.agenda.pop() {
        simulation.now = time;
        simulation.happen(event).unwrap();
    }
    simulation.check_end().unwrap();
    simulation
}

/// Two nodes with a task each (cid 1), and programs for them.
fn pair(write: impl Fn(u32, &mut Script<'_>)) -> Machine {
    let constants = Cenju4::default();
    let mut nodes: Vec<Node> = (0..8).map(|node| Node::new(node, 4)).collect();
    let mut programs = vec![Vec::new(); 8];
    for rank in 0..2 {
        set_up(&mut nodes[rank as usize], 1, 64 * 1024, 64 * 1024, &constants);
        nodes[rank as usize].create_task(1).nodes = (0..2).map(|node| Destination { node, cid: 1 }).collect();
        let mut script = Script::new(&constants);
        write(rank, &mut script);
        programs[rank as usize].push(script.finish(1));
    }
    Machine { constants, nodes, programs, warmup: 0 }
}

fn idle() -> Scenario {
    scenario(8, "collective = \"barrier\"")
}

fn bytes(simulation: &Simulation<'_>, node: usize, address: u64, count: usize) -> Vec<u8> {
    let mut found = vec![0; count];
    simulation.stations[node].node.load(1, address, &mut found).unwrap();
    found
}

/// 4400 ns and four switches of 125 ns; 16 bytes are read from the cache, 410 + 2 x 12.5 ns, beside 135 ns of making the header, and
/// have 3 flits more.
#[test]
fn the_latency_of_short_messages_is_the_sum_of_its_parts() {
    let half = |keys: &str| nanoseconds(32, &format!("program = \"ping-pong\"\nwarmup = 1\n{keys}")) / 2.0;
    assert_eq!(half("message_bytes = 8"), 4900.0);
    assert_eq!(half("message_bytes = 16"), 4900.0 + 435.0 - 135.0 + 37.5);
    assert_eq!(half("message_bytes = 8\nlibrary = \"mpi\""), 9100.0);
    assert_eq!(half("message_bytes = 8\nsystem_call = true"), 17_900.0);
}

#[test]
fn a_barrier_in_the_routers_takes_four_switches() {
    // 4400 ns but 3 flits less than a packet with 8 bytes, and nothing to be added up.
    let alone = nanoseconds(32, "collective = \"barrier\"\nranks = 1");
    assert_eq!(alone, 4400.0 - 37.5 + 4.0 * 200.0);
    let all = nanoseconds(32, "collective = \"barrier\"");
    assert!(all >= alone && all < alone + 4.0 * 4.0 * 12.5, "{all}");
}

/// On full boards, with starts apart, sending to those after oneself (B) rises with the message, and falls beyond 1 Kbyte; a multicast (C)
/// does not, and sending to 0, 1, ... (A) has all wait for one. Mbyte/s that a node receives.
#[test]
fn of_three_orders_of_an_all_gather_the_multicast_alone_keeps_its_rate() {
    let rate = |schedule: &str, bytes: u32| {
        let keys = format!("collective = \"allgather\"\nschedule = \"{schedule}\"\nmessage_bytes = {bytes}\nstart_skew_ns = 10000");
        f64::from(32 * bytes) / (nanoseconds(32, &keys) / 1000.0)
    };
    let [small, middle, large] = [64, 1024, 16384].map(|bytes| rate("shift", bytes));
    assert!(small < middle && large < 0.95 * middle, "{small} {middle} {large}");
    let (in_order, multicast) = (rate("in-order", 16384), rate("network-multicast", 16384));
    // 256 bytes in 108 flits of 12.5 ns.
    assert!(multicast > 0.95 * 189.6, "{multicast}");
    assert!(in_order < large && large < multicast && in_order < 0.5 * multicast, "{in_order} {large} {multicast}");
}

/// Node 0 has four parcels, each into another queue of the first router. With no room in three of these the fourth is chosen, and no packet
/// is made of the others, though the FIFO memory has room; with room the oldest comes first.
#[test]
fn a_parcel_whose_queue_has_room_is_chosen_and_no_packet_exists_of_the_others() {
    const BYTES: u64 = 1000;
    let constants = Cenju4::default();
    let mut nodes: Vec<Node> = (0..16).map(|node| Node::new(node, 4)).collect();
    for node in &mut nodes {
        set_up(node, 1, 2 * PAGE, 2 * PAGE, &constants);
        node.create_task(1).nodes = (0..16).map(|node| Destination { node, cid: 1 }).collect();
    }
    let mut programs = vec![Vec::new(); 16];
    let mut script = Script::new(&constants);
    script.op(Op::Fill { address: SOURCE, bytes: BYTES, seed: 3 });
    for to in [1, 5, 9, 13] {
        script.put(Put { to, multicast: false, source: SOURCE, destination: TARGET, bytes: BYTES, reuse_line: true });
    }
    programs[0].push(script.finish(1));
    let machine_of = Machine { constants, nodes, programs, warmup: 0 };
    let scenario = Scenario { timeline: true, ..scenario(16, "collective = \"barrier\"") };
    let mut simulation = Simulation::new(&scenario, &machine_of).unwrap();
    // As though the queues to 1, 5 and 9 were full.
    let full = [1, 5, 9].map(Target::Unicast);
    let size = scenario.router.buffer_flits;
    full.into_iter().for_each(|target| simulation.network.hold(0, target, size));
    let run = |simulation: &mut Simulation<'_>| {
        while let Some(Reverse((time, _, event))) = simulation.agenda.pop() {
            simulation.now = time;
            simulation.happen(event).unwrap();
        }
    };
    let made = |simulation: &Simulation<'_>| -> Vec<u64> {
        simulation.timeline.iter().filter(|span| span.name.starts_with("(3)")).map(|span| span.parcel).collect()
    };
    run(&mut simulation);
    assert_eq!(made(&simulation), [3; 4], "four packets of the fourth parcel and of no other");
    assert!(simulation.network.is_empty());
    assert_eq!(bytes(&simulation, 13, TARGET, BYTES as usize), sequence(3, BYTES));
    assert_eq!(bytes(&simulation, 1, TARGET, BYTES as usize), vec![0; BYTES as usize]);
    full.into_iter().rev().for_each(|target| simulation.network.let_go(0, target, size));
    simulation.make_packet(0);
    simulation.collect();
    run(&mut simulation);
    assert_eq!(made(&simulation)[4], 0, "the oldest first");
    for node in [1, 5, 9] {
        assert_eq!(bytes(&simulation, node, TARGET, BYTES as usize), sequence(3, BYTES));
    }
    simulation.check_end().unwrap();
}

/// Two parcels into different queues: by age one follows the other, in turn their packets alternate. Those to one node stay in order.
#[test]
fn registers_go_by_age_or_in_turn() {
    let packets = |choice: &str, to: [u16; 2]| {
        let endpoint = format!("register_choice = \"{choice}\"");
        let scenario = with_endpoint(16, &endpoint, "collective = \"barrier\"", 1);
        // Room for all, so that none is passed over.
        let router = RouterParameters { buffer_flits: 4000, ..scenario.router.clone() };
        let scenario = Scenario { timeline: true, router, ..scenario };
        let constants = Cenju4 { register_choice: toml::Value::from(choice).try_into().unwrap(), ..Cenju4::default() };
        let mut nodes: Vec<Node> = (0..16).map(|node| Node::new(node, 4)).collect();
        for node in &mut nodes {
            set_up(node, 1, 2 * PAGE, 2 * PAGE, &constants);
            node.create_task(1).nodes = (0..16).map(|node| Destination { node, cid: 1 }).collect();
        }
        let mut script = Script::new(&constants);
        for to in to {
            script.put(Put { to, multicast: false, source: SOURCE, destination: TARGET, bytes: 4096, reuse_line: true });
        }
        let mut programs = vec![Vec::new(); 16];
        programs[0].push(script.finish(1));
        let machine_of = Machine { constants, nodes, programs, warmup: 0 };
        let simulation = machine(&scenario, &machine_of);
        let made = simulation.timeline.iter().filter(|span| span.name.starts_with("(3)"));
        made.map(|span| span.parcel).collect::<Vec<u64>>()
    };
    let in_order = [[0; 16], [1; 16]].concat();
    assert_eq!(packets("oldest", [1, 5]), in_order);
    assert_eq!(packets("rotating", [5, 5]), in_order);
    let turns = packets("rotating", [1, 5]);
    let first = turns.iter().position(|&parcel| parcel == 1).unwrap();
    let last = turns.iter().rposition(|&parcel| parcel == 0).unwrap();
    assert!(first < 4 && turns[first..last].windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
}

#[test]
fn the_programs_of_the_library_run_on_32_nodes() {
    for workload in [
        "collective = \"barrier\"\nschedule = \"tree\"\nrepeat = 3",
        "collective = \"barrier\"\nschedule = \"messages\"\nrepeat = 3",
        "collective = \"barrier\"\nschedule = \"atomic-add\"\nrepeat = 3",
        "collective = \"barrier\"\nschedule = \"multicast-atomic-add\"\nrepeat = 3",
        "collective = \"barrier\"\nschedule = \"network-barrier\"\nrepeat = 3",
        "collective = \"allgather\"\nmessage_bytes = 1000\nrepeat = 2",
        "collective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 1000\nstart_skew_ns = 5000",
        "collective = \"allgather\"\nschedule = \"in-order\"\nmessage_bytes = 1000",
        "program = \"ping-pong\"\nlibrary = \"mpi\"\nmessage_bytes = 5000\nrepeat = 2",
        "program = \"protection\"",
    ] {
        assert_eq!(outcome(32, workload).status, Status::Completed, "{workload}");
    }
}

#[test]
fn the_programs_of_the_library_run_on_1024_nodes() {
    for workload in [
        "collective = \"barrier\"\nschedule = \"multicast-atomic-add\"",
        "program = \"ping-pong\"\nmessage_bytes = 5000",
        "collective = \"allgather\"\nmessage_bytes = 256",
        "program = \"multicast-storm\"\nmessage_bytes = 512\nrepeat = 2",
    ] {
        assert_eq!(outcome(1024, workload).status, Status::Completed, "{workload}");
    }
}

/// Each receiver's bytes are the sender's, at its own address; what was not sent to a node changes nothing there.
#[test]
fn two_multicasts_at_once_bring_every_byte_and_keep_apart() {
    for (terminals, keys) in [(32, "message_bytes = 3000\nrepeat = 12"), (64, "message_bytes = 1237\nrepeat = 12"), (1024, "repeat = 1")] {
        assert_eq!(outcome(terminals, &format!("program = \"multicast-pair\"\n{keys}")).status, Status::Completed, "{terminals}");
    }
}

/// A synchronisation or a multicast that the program registers itself is used later by a system call and the writing of two double words, and
/// takes as long afterwards.
#[test]
fn registering_takes_a_system_call_before_the_first_use_and_nothing_after_it() {
    let cost = 13_000.0 + 87.5 + 2.0 * 12.5;
    for schedule in ["network-barrier", "multicast-atomic-add"] {
        let time = |keys: &str| nanoseconds(32, &format!("collective = \"barrier\"\nschedule = \"{schedule}\"\n{keys}"));
        assert_eq!(time("registration = \"first-use\""), time("") + cost, "{schedule}");
        assert_eq!(time("registration = \"first-use\"\nwarmup = 1"), time("warmup = 1"), "{schedule}");
    }
}

#[test]
fn an_offset_can_be_used_once_it_is_registered() {
    let multicast = |place: u64| {
        let header = Header::new(Protocol::RemoteDma, 0, 8, [SOURCE, TARGET + place, 0]);
        Header { kind: Kind::Multicast, ..header }
    };
    let synchronisation = Header { kind: Kind::Synchronisation, ..Header::new(Protocol::AtomicAdd, 0, 0, [0; 3]) };
    let pair = pair(|rank, script| {
        script.op(Op::Fill { address: SOURCE, bytes: 8, seed: 4 });
        script.parcel(&synchronisation);
        if rank == 0 {
            script.parcel(&multicast(0));
        }
        script.op(Op::AwaitFaults { count: 2 - rank as usize });
        script.op(Op::RegisterMulticast { nodes: vec![0, 1] });
        script.op(Op::RegisterSynchronisation { sid: 9, nodes: vec![0, 1] });
        if rank == 0 {
            script.parcel(&multicast(64));
        }
        script.synchronise(0);
    });
    let scenario = idle();
    let simulation = machine(&scenario, &pair);
    assert_eq!(simulation.unfinished, 0);
    let faults = |node: usize| simulation.stations[node].node.faults().collect::<Vec<_>>();
    assert_eq!(faults(0), [Fault::OutsideSynchronisationTable(0), Fault::OutsideMulticastTable(0)]);
    assert_eq!(faults(1), [Fault::OutsideSynchronisationTable(0)]);
    for node in 0..2 {
        assert_eq!(bytes(&simulation, node, TARGET, 8), [0; 8], "the refused one changed nothing");
        assert_eq!(bytes(&simulation, node, TARGET + 64, 8), sequence(4, 8));
    }
}

/// Cases A to D: source and destination at double words or odd words, over several pages, some of which do not follow each other.
#[test]
fn data_at_odd_words_arrives_as_it_was() {
    for (source, target) in [(0, 0), (8, 4), (4, 0), (4, 4), (4092, 8), (124, 2044), (12, 4092)] {
        let keys = format!("program = \"ping-pong\"\nmessage_bytes = 20000\nsource_offset = {source}\ntarget_offset = {target}");
        assert_eq!(outcome(8, &keys).status, Status::Completed, "{keys}");
    }
}

#[test]
fn remote_dma_and_its_notifications_change_memory() {
    let target = TARGET + 64;
    let pair = pair(|rank, script| {
        if rank == 0 {
            script.op(Op::Fill { address: SOURCE, bytes: 3000, seed: 5 });
            let header =
                Header { notify: true, log: true, interrupt: true, ..Header::new(Protocol::RemoteDma, 1, 3000, [SOURCE, target, WORDS]) };
            script.parcel(&header);
            script.op(Op::AwaitWord { address: WORDS, least: SENT });
        } else {
            script.receive(1);
        }
    });
    let scenario = idle();
    let simulation = machine(&scenario, &pair);
    assert_eq!(bytes(&simulation, 1, target, 3000), sequence(5, 3000));
    assert_eq!(simulation.stations[0].node.word(1, WORDS), Ok(SENT));
    let node = &simulation.stations[1].node;
    assert_eq!(node.task(1).unwrap().buffers.log.written, LOG_ENTRY);
    assert!(node.interrupts.contains(&Interrupt::Received(1)));
    assert!(simulation.stations[0].node.interrupts.contains(&Interrupt::QueueDrained(1)));
}

#[test]
fn address_registers_and_message_buffers_say_where_data_goes() {
    let pair = pair(|rank, script| {
        if rank == 0 {
            script.op(Op::Fill { address: SOURCE, bytes: 600, seed: 6 });
            for register in 0..3 {
                let log = register == 2;
                script.parcel(&Header { log, ..Header::new(Protocol::AddressRegister(register), 1, 600, [SOURCE, 0, 0]) });
            }
            for buffer in 0..2 {
                script.parcel(&Header {
                    inline: true,
                    log: true,
                    ..Header::new(Protocol::Message(buffer), 1, 8, [77 + u64::from(buffer), 0, 0])
                });
            }
        } else {
            for register in 0..3 {
                script.op(Op::SetRegister { register, address: TARGET + u64::from(register) * PAGE });
            }
            script.receive(3);
        }
    });
    let scenario = idle();
    let simulation = machine(&scenario, &pair);
    for register in 0..3 {
        assert_eq!(bytes(&simulation, 1, TARGET + register * PAGE, 600), sequence(6, 600));
    }
    let node = &simulation.stations[1].node;
    for (buffer, ring) in node.task(1).unwrap().buffers.messages.iter().enumerate() {
        assert_eq!((node.word(1, ring.base), ring.written), (Ok(77 + buffer as u64), 128));
    }
}

#[test]
fn atomic_operations_and_remote_reads_bring_values_back() {
    let pair = pair(|rank, script| {
        if rank == 0 {
            script.add(1, false, 5);
            script.add(1, false, 7);
            script.parcel(&Header::new(Protocol::Swap, 1, 8, [COUNTER, 100, WORDS]));
            script.op(Op::AwaitWord { address: WORDS, least: 1 });
            let compare =
                |expected, id| Header { remote_read_id: id, ..Header::new(Protocol::CompareSwap, 1, 8, [COUNTER, expected, 200]) };
            script.parcel(&compare(1, 3));
            script.op(Op::AwaitWord { address: ANSWERS + 16 * 3 + 8, least: 1 });
            script.parcel(&compare(100, 4));
            script.op(Op::AwaitWord { address: ANSWERS + 16 * 4 + 8, least: 1 });
            script.get(1, SOURCE + 4, TARGET, 1001, 9);
        } else {
            script.op(Op::Fill { address: SOURCE, bytes: 2000, seed: 8 });
        }
    });
    let scenario = idle();
    let simulation = machine(&scenario, &pair);
    let word = |node: usize, address| simulation.stations[node].node.word(1, address).unwrap();
    assert_eq!(word(0, WORDS), 12, "the old value of the swap");
    assert_eq!((word(0, ANSWERS + 48), word(0, ANSWERS + 56)), (100, 1), "not equal");
    assert_eq!((word(0, ANSWERS + 64), word(0, ANSWERS + 72)), (100, 3), "equal");
    assert_eq!(word(1, COUNTER), 200);
    assert_eq!(bytes(&simulation, 0, TARGET, 1001), sequence(8, 2000)[4..1005]);
}

/// What the tables do not allow is told to the operating system, nothing leaves the node, and the interface goes on.
#[test]
fn what_the_tables_do_not_allow_is_refused() {
    let foreign = 2;
    let wrong = |rank: u32, script: &mut Script<'_>| {
        if rank == 0 {
            let dma = |to, words| Header::new(Protocol::RemoteDma, to, 64, words);
            script.parcel(&dma(foreign, [SOURCE, TARGET, 0]));
            script.parcel(&Header { kind: Kind::Multicast, ..dma(0, [SOURCE, TARGET, 0]) });
            script.parcel(&Header { kind: Kind::Synchronisation, ..dma(0, [0; 3]) });
            script.parcel(&dma(1, [0x7000_0000, TARGET, 0]));
            script.parcel(&dma(1, [SOURCE, 0x7000_0000, 0]));
            script.parcel(&Header { length: 600_000, ..dma(1, [SOURCE, TARGET, 0]) });
            script.parcel(&Header::new(Protocol::RemoteRead, 1, 64, [0x7000_0000, TARGET, 0]));
            script.add(1, false, 1);
        }
    };
    let pair = pair(wrong);
    let scenario = idle();
    let simulation = machine(&scenario, &pair);
    let faults = |node: usize| -> Vec<Fault> {
        let of = |interrupt: &Interrupt| match interrupt {
            Interrupt::SendFault(_, fault) | Interrupt::ReceiveFault(_, fault) => Some(*fault),
            _ => None,
        };
        simulation.stations[node].node.interrupts.iter().filter_map(of).collect()
    };
    let unmapped = Fault::Unmapped(0x7000_0000);
    for expected in [
        Fault::OutsideNodeTable(2),
        Fault::OutsideMulticastTable(0),
        Fault::OutsideSynchronisationTable(0),
        unmapped,
        Fault::TooLong(600_000),
    ] {
        assert!(faults(0).contains(&expected), "{expected:?} in {:?}", faults(0));
    }
    assert_eq!(faults(1), [unmapped, unmapped], "a write that arrived, and a read that was asked for");
    assert_eq!(simulation.stations[1].node.word(1, COUNTER), Ok(1), "the interface goes on");
    assert_eq!(bytes(&simulation, 1, TARGET, 64), [0; 64]);
}

/// One task sends 10^5 headers of random bits. No memory of other tasks changes, and what another task sends afterwards arrives.
#[test]
fn random_headers_change_no_other_tasks_memory_and_stop_nothing() {
    let constants = Cenju4::default();
    let mut nodes: Vec<Node> = (0..8).map(|node| Node::new(node, 4)).collect();
    for node in &mut nodes[..2] {
        // Task 1 attacks and may reach itself and task 1 over there; task 2 is the one to be spared.
        for cid in [1, 2] {
            set_up(node, cid, 4 * PAGE, 4 * PAGE, &constants);
            node.create_task(cid).nodes = (0..2).map(|other| Destination { node: other, cid }).collect();
            node.create_task(cid).synchronisations = vec![Synchronisation { sid: cid, nodes: 0b11, cid }];
            node.store(cid, SOURCE, &sequence(u64::from(cid), 4 * PAGE)).unwrap();
            node.store(cid, TARGET, &sequence(u64::from(cid) + 8, 4 * PAGE)).unwrap();
        }
    }
    let before: Vec<Vec<u8>> = (0..2).map(|node| of_task_2(&nodes[node])).collect();
    let mut stream = Streams::new(9).get(Purpose::Destination, 0);
    let mut attack = Vec::new();
    for _ in 0..100_000 {
        let mut word = || u64::from(stream.below(u32::MAX)) << 32 | u64::from(stream.below(u32::MAX));
        let mut words = [word(), word(), word(), word()];
        // Half of them are nearer to what would be allowed: short, to near offsets, at addresses of the task.
        if word() % 2 == 0 {
            words[0] &= !(0xff << 18 | 0xffc << 26);
            for place in 1..4 {
                words[place] = [SOURCE, TARGET, COUNTER, 0][word() as usize % 4] + word() % (5 * PAGE) / 4 * 4;
            }
        }
        attack.push(Op::Post { words, inline_from: None });
    }
    let mut spared = Script::new(&constants);
    // The attack goes on for some 0.1 s.
    spared.busy(2e8);
    spared.put(Put { to: 1, multicast: false, source: SOURCE, destination: TARGET, bytes: 4 * PAGE, reuse_line: true });
    let mut programs = vec![Vec::new(); 8];
    programs[0] = vec![Program { cid: 1, ops: attack }, spared.finish(2)];
    let machine_of = Machine { constants, nodes, programs, warmup: 0 };
    let scenario = idle();
    let simulation = machine(&scenario, &machine_of);
    assert_eq!(simulation.unfinished, 0);
    assert!(of_task_2(&simulation.stations[0].node) == before[0], "nothing has changed on the node of the attack");
    let mut after = of_task_2(&simulation.stations[1].node);
    let at = 4 * PAGE as usize;
    assert!(after[at..2 * at] == sequence(2, 4 * PAGE), "the other task's message has come");
    // That message, and its entry in the log, are all that has changed on the other node.
    let log = 2 * at + (RINGS - COUNTER) as usize;
    for part in [at..2 * at, log..log + LOG_ENTRY as usize] {
        after[part.clone()].copy_from_slice(&before[1][part]);
    }
    assert!(after == before[1]);
    let faults = simulation.stations[0].node.interrupts.iter().filter(|interrupt| matches!(interrupt, Interrupt::SendFault(1, _))).count();
    assert!(faults > 50_000, "{faults}");
}

/// All that task 2 has, its source and target first.
fn of_task_2(node: &Node) -> Vec<u8> {
    let mut found = Vec::new();
    for (address, pages) in [(SOURCE, 4), (TARGET, 4), (COUNTER, 100)] {
        let mut part = vec![0; (pages * PAGE) as usize];
        node.load(2, address, &mut part).unwrap();
        found.extend(part);
    }
    found
}

/// Three tasks on one set of control registers: the operating system gives it on whenever a queue is empty; all parcels arrive.
#[test]
fn tasks_that_share_the_sender_lose_nothing() {
    let constants = Cenju4 { user_registers: 1, ..Cenju4::default() };
    let mut nodes: Vec<Node> = (0..8).map(|node| Node::new(node, 4)).collect();
    let mut programs = vec![Vec::new(); 8];
    for cid in 1..4 {
        for node in &mut nodes[..2] {
            set_up(node, cid, PAGE, 64 * PAGE, &constants);
            node.create_task(cid).nodes = vec![Destination { node: 1, cid }];
        }
        let mut script = Script::new(&constants);
        for turn in 0..20 {
            script.op(Op::Fill { address: SOURCE, bytes: 100, seed: turn });
            script.put(Put { to: 0, multicast: false, source: SOURCE, destination: TARGET + turn * PAGE, bytes: 8, reuse_line: true });
            script.busy(3000.0 * f64::from(cid));
        }
        programs[0].push(script.finish(cid));
        let mut receiver = Script::new(&constants);
        receiver.receive(20);
        (0..20).for_each(|turn| receiver.op(Op::Check { address: TARGET + turn * PAGE, bytes: 8, seed: turn }));
        programs[1].push(receiver.finish(cid));
    }
    let machine_of = Machine { constants, nodes, programs, warmup: 0 };
    let scenario = idle();
    let simulation = machine(&scenario, &machine_of);
    assert_eq!(simulation.unfinished, 0);
    let drained = |cid| simulation.stations[0].node.interrupts.contains(&Interrupt::QueueDrained(cid));
    assert!((1..4).all(drained));
}

#[test]
fn a_timeline_has_the_steps_of_a_parcel_in_their_order() {
    let mut scenario = scenario(32, "program = \"ping-pong\"\nmessage_bytes = 512\nsource_offset = 64");
    scenario.timeline = true;
    let outcome = FlitEngine.run(&scenario, &mut Patient).unwrap();
    let begin = |name: &str| {
        outcome.timeline.iter().filter(|span| span.parcel == 0 && span.name.starts_with(name)).map(|span| span.begin_ns).next()
    };
    let steps = ["(1)", "(2)", "(3)", "(4b)", "network", "Receiver looks", "Receiver writes", "Receiver announces"]
        .map(|name| begin(name).unwrap_or_else(|| panic!("{name}")));
    assert!(steps.is_sorted(), "{steps:?}");
    // The line in which the first packet ended comes from main memory.
    assert!(begin("(4a)").is_some());
    assert!(outcome.timeline.iter().all(|span| span.begin_ns <= span.end_ns));
}

#[test]
fn more_than_64_nodes_cannot_synchronise_in_the_routers() {
    let error = on_network("cenju4", 128, "", "collective = \"barrier\"", 1).unwrap_err().to_string();
    assert!(error.contains("at most 64 nodes; use multicast-atomic-add"), "{error}");
    for terminals in [128, 256] {
        assert_eq!(outcome(terminals, "collective = \"barrier\"\nschedule = \"multicast-atomic-add\"").status, Status::Completed);
    }
}

/// Bits change and flits get lost at random: all that has become of a packet is found, what can be corrected is, and no program ever sees
/// data that was not sent. A program whose packet was refused waits for ever, and the interface's operating system knows why.
#[test]
fn errors_of_channels_are_found_and_counted() {
    let program = "collective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 1000";
    let mut ends = [0, 0];
    for seed in 1..=20 {
        for (bits, flits) in [(1e-6, 0.0), (1e-5, 0.0), (0.0, 1e-5), (1e-5, 1e-5)] {
            let keys = format!("bit_error_rate = {bits}\nflit_loss_rate = {flits}");
            let scenario = with_endpoint(32, &keys, program, seed);
            let outcome = FlitEngine.run(&scenario, &mut Patient).unwrap();
            let found = outcome.link_errors.unwrap();
            assert_eq!(found.undetected_packets, 0, "{found:?}");
            assert!(found.refused_packets <= found.wrong_bits + found.lost_flits, "{found:?}");
            assert!(found.corrected <= found.wrong_bits, "{found:?}");
            assert!(flits == 0.0 || found.lost_flits == 0 || found.refused_packets > 0, "{found:?}");
            assert!(found.wrong_bits + found.lost_flits == 0 || found.corrected + found.refused_packets > 0, "{found:?}");
            let expected = if found.refused_packets == 0 { Status::Completed } else { Status::Deadlock };
            assert_eq!(outcome.status, expected, "{found:?}");
            // Who waits is named, and so is who refused what.
            let says = |what: &str| outcome.standstill.iter().any(|line| line.contains(what));
            assert_eq!(says(" refused ") && says("waits for"), found.refused_packets > 0, "{:?}", outcome.standstill);
            ends[usize::from(found.refused_packets > 0)] += u64::from(found.wrong_bits + found.lost_flits > 0);
        }
    }
    assert!(ends.iter().all(|&count| count > 10), "both kinds of ends come up: {ends:?}");
}

/// As many errors as the rates say: 32 nodes send 1000 bytes to 31 others over 5 channels, 4 packets of 132 to 108 flits each.
#[test]
fn errors_come_as_often_as_their_rates_say() {
    let keys = "bit_error_rate = 1e-4\nflit_loss_rate = 0.0";
    let scenario = with_endpoint(32, keys, "collective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 1000", 1);
    let outcome = FlitEngine.run(&scenario, &mut Patient).unwrap();
    let bits: u64 = outcome.channel_flits.iter().sum::<u64>() * 28;
    let (found, expected) = (outcome.link_errors.unwrap().wrong_bits as f64, bits as f64 * 1e-4);
    // Five standard deviations of a Poisson number.
    assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{found} of {expected}");
}

#[test]
fn machines_without_errors_count_none() {
    assert_eq!(outcome(8, "collective = \"barrier\"").link_errors, None);
}

fn of_script(script: &str) -> Result<Outcome, String> {
    let scenario = on_network("cenju4", 32, "", &format!("program = \"script\"\n{script}"), 1).map_err(|error| error.to_string())?;
    FlitEngine.run(&scenario, &mut Patient).map_err(|error| error.to_string())
}

/// The ping-pong of the library, step by step; and every action once.
#[test]
fn a_script_runs_step_by_step() {
    let there_and_back = "script = [\n\
        { ranks = [0], steps = [{ action = \"put\", to = 31, bytes = 5000 }, { action = \"receive\" }] },\n\
        { ranks = [31], steps = [{ action = \"receive\" }, { action = \"check\", from = 0, bytes = 5000 },\n\
            { action = \"put\", to = 0, bytes = 5000 }] },\n\
        ]";
    let found = of_script(there_and_back).unwrap();
    assert_eq!(found.status, Status::Completed);
    assert_eq!(found.completion_time.unwrap() * 12.5, nanoseconds(32, "program = \"ping-pong\"\nmessage_bytes = 5000"));
    let all = "script = [\n\
        { ranks = [0], steps = [{ action = \"compute\", ns = 100.0 }, { action = \"multicast\", group = [1, 2], bytes = 3000 },\n\
            { action = \"multicast\", group = [3], bytes = 100, target_offset = 4096 }, { action = \"receive-messages\", count = 2 },\n\
            { action = \"await-counter\", count = 5 }] },\n\
        { ranks = [1, 2], steps = [{ action = \"receive\" }, { action = \"check\", from = 0, bytes = 3000 },\n\
            { action = \"message\", to = 0 }] },\n\
        { ranks = [3], steps = [{ action = \"receive\" }, { action = \"check\", from = 0, bytes = 100, target_offset = 4096 },\n\
            { action = \"get\", from = 0, bytes = 2000 }, { action = \"check\", from = 0, bytes = 2000 },\n\
            { action = \"add\", to = 0, count = 5 }] },\n\
        ]";
    assert_eq!(of_script(all).unwrap().status, Status::Completed);
    let barrier = "ranks = 4\nscript = [{ ranks = [0, 1, 2, 3], steps = [{ action = \"barrier\" }] }]";
    assert_eq!(of_script(barrier).unwrap().status, Status::Completed);
    let never = "script = [{ ranks = [5], steps = [{ action = \"receive\" }] }]";
    assert_eq!(of_script(never).unwrap().status, Status::Deadlock);
    let other = "script = [{ ranks = [5], steps = [{ action = \"check\", from = 5, bytes = 8 }] }]";
    assert!(of_script(other).unwrap_err().contains("is not what was sent"));
}

#[test]
fn scripts_that_make_no_sense_are_refused() {
    for (step, problem) in [
        ("action = \"put\", to = 1", "lacks `bytes`, which put needs"),
        ("action = \"put\", to = 32, bytes = 8", "names rank 32; there are ranks 0 to 31"),
        ("action = \"compute\", ns = 1.0, to = 3", "has `to`, which means nothing for compute"),
        ("action = \"put\", to = 1, bytes = 0", "has bytes from 1"),
        ("action = \"put\", to = 1, bytes = 8, source_offset = 2", "no multiple of 4"),
        ("action = \"multicast\", group = [], bytes = 8", "name ranks of one"),
        ("action = \"get\", from = 1, bytes = 600000", "use several"),
        ("action = \"compute\", ns = -1.0", "must be 0 to 10^12"),
    ] {
        let refused = of_script(&format!("script = [{{ ranks = [0], steps = [{{ {step} }}] }}]")).unwrap_err();
        assert!(refused.contains("workload.script step 1 of part 1") && refused.contains(problem), "{refused}");
    }
    assert!(of_script("").unwrap_err().contains("workload.script is missing"));
    assert!(of_script("script = [{ ranks = [40], steps = [] }]").unwrap_err().contains("has rank 40 in part 1"));
}

/// The page of the source, or of the destination, of each of the two messages is not in memory: the parcel stops, and arrives whole, later by
/// the time that the operating system takes.
#[test]
fn a_page_that_is_not_in_memory_delays_its_parcel_by_the_service_and_loses_nothing() {
    let time = |endpoint: &str, keys: &str| {
        let workload = format!("program = \"ping-pong\"\n{keys}");
        let outcome = FlitEngine.run(&with_endpoint(32, endpoint, &workload, 1), &mut Patient).unwrap();
        assert_eq!(outcome.status, Status::Completed, "{keys}");
        (outcome.completion_time.unwrap() * 12.5, outcome.operating_systems.unwrap())
    };
    for (bytes, side) in [("message_bytes = 16", "source"), ("message_bytes = 8", "target"), ("message_bytes = 200", "target")] {
        for (endpoint, service) in [("", 50_000.0), ("page_fault_ns = 80000.0", 80_000.0), ("page_fault_ns = 0.0\ninterrupt_ns = 0.0", 0.0)]
        {
            let (base, systems) = time(endpoint, bytes);
            assert_eq!((systems.page_faults, systems.interrupts), (0, 0));
            let (missing, systems) = time(endpoint, &format!("{bytes}\nmissing_{side}_pages = 1"));
            assert_eq!((missing - base, systems.page_faults), (2.0 * service, 2), "{bytes} {side}");
        }
    }
    // Several pages, on both sides; the bytes are compared.
    let (_, systems) = time("", "message_bytes = 50000\nsource_offset = 4\nmissing_source_pages = 5\nmissing_target_pages = 7");
    assert_eq!(systems.page_faults, 2 * (5 + 7));
    // Others go on meanwhile: of 7 parcels of rank 0 one waits for a page.
    let spread = outcome(8, "collective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 5000\nmissing_target_pages = 3");
    assert_eq!((spread.status, spread.operating_systems.unwrap().page_faults), (Status::Completed, 8 * 3));
}

/// A processor that computes is delayed by each interrupt; one that polls, or whose interrupts are masked, is not.
#[test]
fn interrupts_take_time_of_the_processor_unless_they_are_masked() {
    let ends = |masked: Vec<Cause>, parcels: u32, busy: f64| {
        let mut pair = pair(|rank, script| {
            if rank == 0 {
                (0..parcels).for_each(|_| {
                    let words = [7, TARGET, 0];
                    script.parcel(&Header { interrupt: true, inline: true, ..Header::new(Protocol::RemoteDma, 1, 8, words) });
                });
            } else {
                script.busy(busy);
                script.op(Op::AwaitWord { address: TARGET, least: 7 });
            }
        });
        pair.constants.masked_interrupts = masked;
        let scenario = idle();
        let simulation = machine(&scenario, &pair);
        let counted = simulation.systems.done;
        assert_eq!(counted.interrupts + counted.masked - 1, u64::from(parcels), "{counted:?}: one more where the Sender is empty");
        simulation.stations[1].processors[0].ended().unwrap()
    };
    let ns = |time: f64| picoseconds(time);
    assert_eq!(ends(vec![Cause::ReceiveEnd], 3, 100_000.0), ns(100_350.0));
    assert_eq!(ends(Vec::new(), 3, 100_000.0), ns(100_350.0 + 3.0 * 5000.0));
    assert_eq!(ends(vec![Cause::Error], 1, 100_000.0), ns(100_350.0 + 5000.0));
    // It polls from the beginning, and finds the word when it has served the interrupt.
    assert_eq!(ends(Vec::new(), 1, 0.0) - ends(vec![Cause::ReceiveEnd], 1, 0.0), ns(5000.0));
}

/// Two tasks have a set of control registers each. A third gets one only when a queue is empty and its last packet has left, and each switch
/// costs an interrupt. All bytes are right for each task.
#[test]
fn a_third_task_shares_control_registers_by_switches_that_cost_interrupts() {
    let run = |tasks: u32, endpoint: &str| {
        let workload = format!("collective = \"allgather\"\nschedule = \"shift\"\nmessage_bytes = 1000\ntasks = {tasks}");
        let outcome = FlitEngine.run(&with_endpoint(16, endpoint, &workload, 1), &mut Patient).unwrap();
        assert_eq!(outcome.status, Status::Completed, "{tasks}");
        (outcome.completion_time.unwrap() * 12.5, outcome.operating_systems.unwrap().task_switches)
    };
    let found = [1, 2, 3].map(|tasks| run(tasks, ""));
    assert!(found[0].0 < found[1].0 && found[1].0 < found[2].0, "{found:?}");
    assert_eq!((found[0].1, found[1].1), (0, 0));
    assert!(found[2].1 >= 16, "a switch on each node: {found:?}");
    assert_eq!(run(3, "user_registers = 3").1, 0);
    let slow = run(3, "interrupt_ns = 20000.0");
    let per_node = found[2].1 as f64 / 16.0;
    assert!(slow.0 > found[2].0 && slow.0 < found[2].0 + (1.0 + 3.0 * per_node) * 15_000.0, "{slow:?} {found:?}");
}

/// A synchronisation of each task, under identifiers of their own, and every program with several tasks and with the operating system.
#[test]
fn programs_run_as_several_tasks_beside_the_operating_system() {
    for workload in [
        "collective = \"barrier\"\nrepeat = 5",
        "collective = \"barrier\"\nschedule = \"multicast-atomic-add\"\nregistration = \"first-use\"",
        "collective = \"allgather\"\nmessage_bytes = 1000",
        "program = \"multicast-storm\"\nmessage_bytes = 500\nrepeat = 3",
        "program = \"multicast-pair\"\nmessage_bytes = 500\nrepeat = 3",
        "program = \"protocols\"",
    ] {
        let keys = "tasks = 3\nsystem_parcels = 4\nstart_skew_ns = 2000";
        assert_eq!(outcome(16, &format!("{workload}\n{keys}")).status, Status::Completed, "{workload}");
    }
}

/// Supervisor mode is the operating system's: its physical addresses pass without tables, a task's parcel in that mode is refused.
#[test]
fn a_task_has_no_supervisor_mode() {
    let mut pair = pair(|rank, script| {
        if rank == 0 {
            script.parcel(&Header { supervisor: true, ..Header::new(Protocol::RemoteDma, 1, 64, [0, 0, 0]) });
        }
    });
    for node in &mut pair.nodes[..2] {
        let place = node.reserve(PAGE);
        assert!(place > 0);
        let task = node.create_task(OPERATING_SYSTEM);
        (task.supervisor, task.nodes) = (true, (0..2).map(|node| Destination { node, cid: OPERATING_SYSTEM }).collect());
    }
    let place = pair.nodes[0].clone().reserve(PAGE) - 2 * PAGE;
    let mut system = Script::of_operating_system(&pair.constants);
    system.op(Op::Fill { address: place, bytes: 64, seed: 2 });
    system.parcel(&Header::new(Protocol::RemoteDma, 1, 64, [place, place, 0]));
    let mut ordinary = Script::new(&pair.constants);
    ordinary.parcel(&Header::new(Protocol::RemoteDma, 1, 64, [place, place + 128, 0]));
    let mut program = system.finish(OPERATING_SYSTEM);
    program.ops.extend(ordinary.finish(OPERATING_SYSTEM).ops);
    pair.programs[0].push(program);
    let scenario = idle();
    let simulation = machine(&scenario, &pair);
    assert_eq!(simulation.stations[0].node.faults().collect::<Vec<_>>(), [Fault::WrongMode, Fault::WrongMode]);
    let mut found = [0; 64];
    simulation.stations[1].node.memory.read(place, &mut found);
    assert_eq!(found[..], sequence(2, 64)[..]);
    simulation.stations[1].node.memory.read(place + 128, &mut found);
    assert_eq!(found, [0; 64]);
}
