//! Properties of every schedule of every collective, for 2 to 17 ranks.

use crate::common::closed::{Seen, arrived, run};
use kasuri_network::rng::Streams;
use kasuri_workload::collective::{Block, COLLECTIVES, Collective, Entry, MessageSize, Parameters};
use kasuri_workload::units::Units;
use kasuri_workload::workload::program::Program;
use kasuri_workload::workload::rounds::{Options, Rounds, Synchronisation};
use kasuri_workload::workload::{Action, Event, Message, Token, Workload, placement};
use std::collections::{BTreeMap, BTreeSet};

/// Not divisible by most numbers of ranks.
const SIZE: u64 = 23;

fn each(mut check: impl FnMut(&Entry, Parameters, &dyn Collective)) {
    for entry in COLLECTIVES {
        let mut legal = 0;
        for ranks in 2..=17 {
            for root in if entry.rooted { vec![0, 1, ranks - 1] } else { vec![0] } {
                let parameters = Parameters { ranks, root, size: MessageSize::of_flits(SIZE) };
                if let Ok(collective) = entry.build(&parameters) {
                    check(entry, parameters, &*collective);
                    legal += 1;
                } else {
                    assert!(!ranks.is_power_of_two(), "{} {} refuses {ranks} ranks", entry.collective, entry.schedule);
                }
            }
        }
        assert!(legal >= 4);
    }
}

fn pairs(ranks: u32, rounds: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..rounds).flat_map(move |round| (0..ranks).map(move |rank| (rank, round)))
}

/// Where a formula gives the number of messages and the longest of them, it is what the sends of all rounds give.
#[test]
fn volumes_by_formula_are_those_of_all_sends() {
    let mut by_formula = 0;
    each(|entry, Parameters { ranks, .. }, collective| {
        let Some(volume) = collective.volume(ranks) else { return };
        by_formula += 1;
        let sends = pairs(ranks, collective.rounds()).filter_map(|(rank, round)| collective.send(rank, round));
        let looked_at = sends.fold((0, 0), |(messages, longest), transfer| (messages + 1, transfer.flits.max(longest)));
        assert_eq!(volume, looked_at, "{} {} of {ranks}", entry.collective, entry.schedule);
    });
    assert!(by_formula > 8);
}

#[test]
fn who_is_sent_to_receives_from_the_sender() {
    each(|entry, Parameters { ranks, .. }, collective| {
        let name = format!("{} {} of {ranks}", entry.collective, entry.schedule);
        for (rank, round) in pairs(ranks, collective.rounds()) {
            if let Some(transfer) = collective.send(rank, round) {
                assert!(transfer.peer < ranks && transfer.peer != rank, "{name}: {rank} sends to {}", transfer.peer);
                assert_eq!(collective.receive(transfer.peer, round), Some(rank), "{name}: round {round}");
            } else {
                assert!(collective.blocks(rank, round).is_empty());
            }
            if let Some(sender) = collective.receive(rank, round) {
                assert_eq!(collective.send(sender, round).map(|transfer| transfer.peer), Some(rank), "{name}: round {round}");
            }
        }
    });
}

#[test]
fn a_message_is_as_long_as_the_blocks_that_it_carries() {
    each(|entry, Parameters { ranks, size, .. }, collective| {
        for (rank, round) in pairs(ranks, collective.rounds()) {
            let Some(transfer) = collective.send(rank, round) else { continue };
            let blocks = collective.blocks(rank, round);
            let flits = match entry.collective {
                "barrier" => 1,
                "alltoall" | "allgather" | "gather" | "scatter" => size.whole(blocks.len() as u32),
                _ => size.of_parts(blocks.iter().map(|block| block.part), collective.parts()),
            };
            assert_eq!(transfer.flits, flits, "{} {} of {ranks}: rank {rank} round {round}", entry.collective, entry.schedule);
        }
    });
}

/// What a rank holds. A block of a reduction is a sum: the ranks whose contributions are in it.
type Held = BTreeMap<Block, BTreeSet<u32>>;

fn at_the_beginning(operation: &str, rank: u32, Parameters { ranks, root, .. }: Parameters, parts: u32) -> Held {
    let own = BTreeSet::from([rank]);
    let block = |origin, part| (Block { origin, part }, own.clone());
    match operation {
        "alltoall" => (0..ranks).map(|part| block(rank, part)).collect(),
        "allgather" | "barrier" | "gather" => Held::from([block(rank, 0)]),
        "scatter" if rank == root => (0..ranks).map(|part| block(root, part)).collect(),
        "scatter" => Held::new(),
        "allreduce" | "reducescatter" | "reduce" => (0..parts).map(|part| block(0, part)).collect(),
        "broadcast" if rank == root => (0..parts).map(|part| block(root, part)).collect(),
        "broadcast" => Held::new(),
        other => panic!("what does {other} promise?"),
    }
}

/// The blocks that a rank must hold at the end, each with the contributions that must be in it.
fn at_the_end(operation: &str, rank: u32, Parameters { ranks, root, .. }: Parameters, parts: u32) -> Held {
    let of = |origin: u32, part| (Block { origin, part }, BTreeSet::from([origin]));
    match operation {
        "alltoall" => (0..ranks).map(|origin| of(origin, rank)).collect(),
        "allgather" | "barrier" => (0..ranks).map(|origin| of(origin, 0)).collect(),
        "allreduce" => (0..parts).map(|part| (Block { origin: 0, part }, (0..ranks).collect())).collect(),
        "broadcast" => (0..parts).map(|part| of(root, part)).collect(),
        "reducescatter" => Held::from([(Block { origin: 0, part: rank }, (0..ranks).collect())]),
        "reduce" if rank == root => Held::from([(Block { origin: 0, part: 0 }, (0..ranks).collect())]),
        "gather" if rank == root => (0..ranks).map(|origin| of(origin, 0)).collect(),
        "scatter" => Held::from([of(root, rank)]),
        "reduce" | "gather" => Held::new(),
        other => panic!("what does {other} promise?"),
    }
}

/// Adds a partial sum, or replaces one by a later one of the same part. Nothing may be counted twice.
fn reduce(held: &mut BTreeSet<u32>, arrived: &BTreeSet<u32>) {
    if held.is_disjoint(arrived) {
        held.extend(arrived);
    } else {
        assert!(held.is_subset(arrived), "{held:?} and {arrived:?} have a contribution twice");
        *held = arrived.clone();
    }
}

#[test]
fn every_rank_ends_with_what_the_collective_promises() {
    each(|entry, parameters, collective| {
        let (operation, ranks) = (entry.collective, parameters.ranks);
        let name = format!("{operation} {} of {ranks}", entry.schedule);
        let is_reduction = ["allreduce", "reducescatter", "reduce"].contains(&operation);
        let key = |block: &Block| Block { origin: if is_reduction { 0 } else { block.origin }, part: block.part };
        let begin: Vec<Held> = (0..ranks).map(|rank| at_the_beginning(operation, rank, parameters, collective.parts())).collect();
        let mut held = begin.clone();
        for round in 0..collective.rounds() {
            let before = if collective.needs_receive() { held.clone() } else { begin.clone() };
            for rank in 0..ranks {
                let Some(transfer) = collective.send(rank, round) else { continue };
                for block in collective.blocks(rank, round).iter().map(key) {
                    let content = before[rank as usize].get(&block);
                    let content = content.unwrap_or_else(|| panic!("{name}: rank {rank} has no {block:?} in round {round}"));
                    let there = held[transfer.peer as usize].entry(block).or_default();
                    if is_reduction { reduce(there, content) } else { there.extend(content) }
                }
            }
        }
        for rank in 0..ranks {
            for (block, content) in at_the_end(operation, rank, parameters, collective.parts()) {
                assert_eq!(held[rank as usize].get(&block), Some(&content), "{name}: {block:?} at rank {rank}");
            }
        }
    });
}

/// Rounds and flits of all messages together, where the parts of a message come out even: m flits, N ranks.
fn formula(collective: &str, schedule: &str, ranks: u32, m: u64) -> (u32, u64) {
    let n = u64::from(ranks);
    let log = u64::from((1..32_u32).find(|&log| 1 << log >= ranks).unwrap());
    let (power, surplus) = (1 << ranks.ilog2(), n - (1 << ranks.ilog2()));
    let halvings = u64::from(ranks.ilog2());
    let (folding, folded) = if surplus > 0 { (2, 2 * surplus * m) } else { (0, 0) };
    let (rounds, flits) = match (collective, schedule) {
        ("alltoall", "shift" | "pairwise" | "weighted") => (n - 1, n * (n - 1) * m),
        ("alltoall", "ring") => (n - 1, n * n * (n - 1) / 2 * m),
        // Each block travels once for every bit of its distance.
        ("alltoall", "bruck") => (log, n * m * (0..n).map(|distance| u64::from(distance.count_ones())).sum::<u64>()),
        ("allreduce", "recursive-doubling") => (halvings + folding, power * halvings * m + folded),
        ("allreduce", "ring") => (2 * (n - 1), 2 * (n - 1) * m),
        ("allreduce", "rabenseifner") => (2 * halvings + folding, 2 * (power - 1) * m + folded),
        ("allgather", "ring") => (n - 1, n * (n - 1) * m),
        ("allgather", "recursive-doubling" | "bruck") => (log, n * (n - 1) * m),
        ("broadcast", "binomial") => (log, (n - 1) * m),
        ("broadcast", "linear") => (n - 1, (n - 1) * m),
        ("broadcast", "scatter-allgather") => {
            // On its path down the tree a part passes one link for every bit of its position.
            let scattered = (0..n).map(|position| u64::from(position.count_ones())).sum::<u64>();
            (log + n - 1, scattered * m / n + (n - 1) * m)
        }
        ("reducescatter", "ring") => (n - 1, (n - 1) * m),
        ("reducescatter", "recursive-halving") => (log, (n - 1) * m),
        ("reduce", "binomial") => (log, (n - 1) * m),
        // A block passes one link for every bit of its distance from the root.
        ("gather" | "scatter", "binomial") => (log, (0..n).map(|position| u64::from(position.count_ones())).sum::<u64>() * m),
        ("barrier", "dissemination") => (log, n * log),
        ("barrier", "tree") => (2 * log, 2 * (n - 1)),
        other => panic!("{other:?} has no formula here"),
    };
    (rounds as u32, flits)
}

#[test]
fn rounds_and_volumes_are_those_of_the_formulas() {
    for entry in COLLECTIVES {
        for ranks in 2..=17 {
            // Divisible by all numbers of parts.
            let size = u64::from(ranks) * 16;
            let Ok(collective) = entry.build(&Parameters { ranks, root: 0, size: MessageSize::of_flits(size) }) else { continue };
            let sends = pairs(ranks, collective.rounds()).filter_map(|(rank, round)| collective.send(rank, round));
            let volume: u64 = sends.map(|transfer| u64::from(transfer.flits)).sum();
            let expected = formula(entry.collective, entry.schedule, ranks, size);
            assert_eq!((collective.rounds(), volume), expected, "{} {} of {ranks}", entry.collective, entry.schedule);
        }
    }
}

fn synchronisations(collective: &dyn Collective) -> Vec<Synchronisation> {
    let all = [Synchronisation::None, Synchronisation::Receive, Synchronisation::Barrier];
    all.into_iter().filter(|&one| one != Synchronisation::None || !collective.needs_receive()).collect()
}

#[test]
fn all_messages_are_delivered_whatever_the_order_of_events() {
    each(|entry, parameters, collective| {
        for synchronisation in synchronisations(collective) {
            for (start_skew_cycles, jitter_cycles, repeat) in [(0.0, 0.0, 1), (10.0, 0.0, 3), (10.0, 5.0, 2)] {
                let options = Options { synchronisation: Some(synchronisation), start_skew_cycles, jitter_cycles, repeat };
                let placement = placement::random(parameters.ranks, 20, 7);
                let rounds = Rounds::new(entry.build(&parameters).unwrap(), placement, &options).unwrap();
                let mut expected = Vec::new();
                rounds.each_message(&mut |message| expected.push(*message));
                assert_eq!(expected.len() as u64, rounds.messages());
                assert_eq!(expected.iter().map(|message| message.flits).max(), Some(rounds.longest_message()));
                let mut arrived = arrived(&rounds, u64::from(parameters.ranks));
                let by_token = |message: &Message| message.token;
                arrived.sort_by_key(by_token);
                expected.sort_by_key(by_token);
                assert_eq!(arrived, expected, "{} {} of {}", entry.collective, entry.schedule, parameters.ranks);
            }
        }
    });
}

/// For each queued message: what a rank must have sent and received before, and that it has.
#[test]
fn a_rank_enters_a_round_only_when_the_one_before_is_over_for_it() {
    each(|entry, parameters, collective| {
        for synchronisation in synchronisations(collective) {
            let options = Options { synchronisation: Some(synchronisation), start_skew_cycles: 5.0, jitter_cycles: 5.0, repeat: 2 };
            let rounds = Rounds::new(entry.build(&parameters).unwrap(), placement::linear(parameters.ranks), &options).unwrap();
            let mut over = BTreeSet::new();
            for (message, seen) in run(&rounds, 11) {
                let (rank, round) = (message.source.0, (message.token >> 32) as u32);
                if seen != Seen::Queued {
                    over.insert((message.token, seen == Seen::Arrived));
                    continue;
                }
                let sent = |rank: u32, round: u32| u64::from(round) << 32 | u64::from(rank);
                for before in 0..round {
                    if rounds.send(rank, before).is_some() {
                        assert!(over.contains(&(sent(rank, before), false)));
                    }
                    if let (Some(sender), true) = (rounds.receive(rank, before), synchronisation != Synchronisation::None) {
                        assert!(over.contains(&(sent(sender, before), true)));
                    }
                    if synchronisation == Synchronisation::Barrier {
                        let all = (0..parameters.ranks).filter(|&other| rounds.send(other, before).is_some());
                        all.for_each(|other| assert!(over.contains(&(sent(other, before), true))));
                    }
                }
            }
        }
    });
}

/// Where ranks wait for nothing, whoever asks for the message that follows gets the one that telling of its end brings about.
#[test]
fn the_message_that_follows_is_the_one_that_the_end_of_its_sender_s_last_brings_about() {
    let mut followed = 0;
    each(|entry, parameters, _| {
        for jitter_cycles in [0.0, 5.0] {
            let options = Options { jitter_cycles, repeat: 2, ..Options::default() };
            let rounds = Rounds::new(entry.build(&parameters).unwrap(), placement::linear(parameters.ranks), &options).unwrap();
            let streams = Streams::new(11);
            let (mut told, mut asked) = (rounds.begin(&streams), rounds.begin(&streams));
            assert_eq!(told.follows(), rounds.synchronisation() == Synchronisation::None && jitter_cycles == 0.0);
            if !told.follows() {
                continue;
            }
            let (mut actions, mut first) = (Vec::new(), Vec::new());
            told.start(&mut actions);
            asked.start(&mut first);
            assert_eq!(actions, first);
            let mut waiting: Vec<Token> = actions.drain(..).map(|action| sent(action).token).collect();
            while let Some(token) = waiting.pop() {
                told.happened(Event::Sent(token), &mut actions);
                let next = actions.pop().map(sent);
                assert_eq!(asked.follow(token), next);
                assert!(actions.is_empty());
                waiting.extend(next.map(|message| message.token));
                followed += u32::from(next.is_some());
            }
        }
    });
    assert!(followed > 1000, "{followed}");
}

fn sent(action: Action) -> Message {
    if let Action::Send(message) = action { message } else { panic!("no message: {action:?}") }
}

#[test]
fn a_schedule_that_passes_data_on_cannot_run_without_synchronisation() {
    for entry in COLLECTIVES {
        let collective = || entry.build(&Parameters { ranks: 8, root: 0, size: MessageSize::of_flits(SIZE) }).unwrap();
        let needs = collective().needs_receive();
        let with = |synchronisation| {
            let options = Options { synchronisation, ..Options::default() };
            Rounds::new(collective(), placement::linear(8), &options)
        };
        assert_eq!(with(Some(Synchronisation::None)).is_err(), needs);
        let default = if needs { Synchronisation::Receive } else { Synchronisation::None };
        assert_eq!(with(None).unwrap().synchronisation(), default);
    }
}

#[test]
fn each_rank_starts_at_its_own_random_time() {
    let collective = COLLECTIVES[0].build(&Parameters { ranks: 64, root: 0, size: MessageSize::of_flits(1) }).unwrap();
    let options = Options { start_skew_cycles: 100.0, ..Options::default() };
    let rounds = Rounds::new(collective, placement::linear(64), &options).unwrap();
    let times = |seed| {
        let mut actions = Vec::new();
        rounds.begin(&Streams::new(seed)).start(&mut actions);
        actions.iter().map(|action| if let Action::Compute { cycles, .. } = action { *cycles } else { panic!("a message") }).collect()
    };
    let once: Vec<f64> = times(1);
    assert_eq!(once.len(), 64);
    assert!(once.iter().all(|time| (0.0..100.0).contains(time)));
    let mean = once.iter().sum::<f64>() / 64.0;
    // Four standard errors of a uniform distribution.
    assert!((mean - 50.0).abs() < 4.0 * 100.0 / 12.0_f64.sqrt() / 8.0, "{mean}");
    assert_eq!(once, times(1));
    assert_ne!(once, times(2));
}

/// A message is held up by its own random time in every order of events, and then sets out.
#[test]
fn each_message_is_held_up_by_its_own_random_time() {
    let collective = || COLLECTIVES[0].build(&Parameters { ranks: 64, root: 0, size: MessageSize::of_flits(1) }).unwrap();
    for synchronisation in [None, Some(Synchronisation::Barrier)] {
        let options = Options { synchronisation, jitter_cycles: 100.0, ..Options::default() };
        let rounds = Rounds::new(collective(), placement::linear(64), &options).unwrap();
        let times = |seed| -> Vec<f64> {
            let mut actions = Vec::new();
            let streams = Streams::new(seed);
            let mut execution = rounds.begin(&streams);
            execution.start(&mut actions);
            let held: Vec<_> = actions
                .drain(..)
                .map(|action| if let Action::Compute { token, cycles } = action { (token, cycles) } else { panic!("a message") })
                .collect();
            for &(token, _) in &held {
                execution.happened(Event::Computed(token), &mut actions);
                assert!(matches!(actions[..], [Action::Send(message)] if message.token == token));
                actions.clear();
            }
            held.into_iter().map(|(_, cycles)| cycles).collect()
        };
        let once = times(1);
        assert!(once.len() == 64 && once.iter().all(|time| (0.0..100.0).contains(time)));
        let mean = once.iter().sum::<f64>() / 64.0;
        // Four standard errors of a uniform distribution.
        assert!((mean - 50.0).abs() < 4.0 * 100.0 / 12.0_f64.sqrt() / 8.0, "{mean}");
        assert_eq!(once, times(1));
        assert_ne!(once, times(2));
    }
}

/// The dependencies of the program are those of the rounds: in any order of events a rank sends the same messages in the same order.
#[test]
fn a_collective_written_as_a_program_sends_the_same_messages() {
    each(|entry, parameters, _| {
        for synchronisation in [None, Some(Synchronisation::Receive)] {
            let options = Options { synchronisation, repeat: 2, ..Options::default() };
            let placement = placement::random(parameters.ranks, 20, 7);
            let rounds = Rounds::new(entry.build(&parameters).unwrap(), placement.clone(), &options).unwrap();
            let description = rounds.description(8).unwrap();
            let units = Units { flit_bytes: Some(8), cycle_ns: None };
            let program = Program::new(&description, &placement, units).unwrap();
            assert_eq!((program.messages(), program.longest_message()), (rounds.messages(), rounds.longest_message()));
            let sent = |workload: &dyn Workload, seed| {
                let mut of_rank: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
                for (message, _) in run(workload, seed).iter().filter(|(_, seen)| *seen == Seen::Queued) {
                    of_rank.entry(message.source.0).or_default().push((message.destination.0, message.flits));
                }
                of_rank
            };
            assert_eq!(sent(&program, 1), sent(&rounds, 2), "{} {} of {}", entry.collective, entry.schedule, parameters.ranks);
        }
    });
}

#[test]
fn what_a_program_cannot_say_is_refused() {
    let rounds = |options: &Options| {
        let collective = COLLECTIVES[0].build(&Parameters { ranks: 4, root: 0, size: MessageSize::of_flits(1) }).unwrap();
        Rounds::new(collective, placement::linear(4), options).unwrap().description(8)
    };
    assert!(rounds(&Options::default()).is_ok());
    let barrier = Options { synchronisation: Some(Synchronisation::Barrier), ..Options::default() };
    assert_eq!(rounds(&barrier).unwrap_err().key, "synchronisation");
    assert_eq!(rounds(&Options { jitter_cycles: 1.0, ..Options::default() }).unwrap_err().key, "jitter_cycles");
    assert_eq!(rounds(&Options { start_skew_cycles: 1.0, ..Options::default() }).unwrap_err().key, "start_skew_cycles");
}
