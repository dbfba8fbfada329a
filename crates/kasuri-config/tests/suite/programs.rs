//! Programs of others: samples that LogGOPSim's schedule generator wrote, and what is left when they are damaged.

use crate::common::closed::arrived;
use kasuri_formats::{goal, goal_binary};
use kasuri_workload::collective::{COLLECTIVES, MessageSize, Parameters};
use kasuri_workload::units::Units;
use kasuri_workload::workload::program::{Dependency, Description, Operation, Program};
use kasuri_workload::workload::rounds::{Options, Rounds};
use kasuri_workload::workload::{Workload, placement};
use proptest::prelude::*;

const DISSEMINATION: &str = include_str!("../../../../tests/data/goal/dissemination_16.goal");
const ALL_TO_ALL: &str = include_str!("../../../../tests/data/goal/linear_alltoall_8_64KiB.goal");
const DISSEMINATION_BINARY: &[u8] = include_bytes!("../../../../tests/data/goal/dissemination_16.bin");
const ALL_TO_ALL_BINARY: &[u8] = include_bytes!("../../../../tests/data/goal/linear_alltoall_8_64KiB.bin");
const DEPENDENCIES: &str = include_str!("../../../../fuzz/corpus/goal/dependencies.goal");

fn program(text: &str) -> Program {
    let description = goal::parse("sample.goal", text.as_bytes()).unwrap();
    let units = Units { flit_bytes: Some(8), cycle_ns: Some(1.0) };
    Program::new(&description, &placement::linear(description.ranks), units).unwrap()
}

#[test]
fn the_samples_deliver_all_their_messages() {
    // A dissemination among 16 ranks has 4 rounds of 16 messages of 8 bytes; an all-to-all of 8 ranks has 56 messages of 64 KiB.
    for (text, messages, longest) in [(DISSEMINATION, 4 * 16, 1), (ALL_TO_ALL, 8 * 7, 8192), (DEPENDENCIES, 2, 1)] {
        let program = program(text);
        assert_eq!((program.messages(), program.longest_message()), (messages, longest));
        for seed in 0..20 {
            assert_eq!(arrived(&program, seed).len() as u64, messages);
        }
    }
}

/// The texts and what LogGOPSim's tools made of them are the same programs; what is damaged is refused or read, and never more than that.
#[test]
fn the_binary_form_is_the_text() {
    for (text, binary) in [(DISSEMINATION, DISSEMINATION_BINARY), (ALL_TO_ALL, ALL_TO_ALL_BINARY)] {
        let same = |mut description: Description| {
            description.operations.iter_mut().for_each(|operation| operation.line = 0);
            description.dependencies.sort();
            description
        };
        assert!(goal_binary::is_binary(binary) && !goal_binary::is_binary(text.as_bytes()));
        let found = goal_binary::parse("sample.bin", binary).unwrap();
        assert_eq!(same(found), same(goal::parse("sample.goal", text.as_bytes()).unwrap()));
        for place in 0..binary.len() {
            let mut damaged = binary.to_vec();
            damaged[place] ^= 0x55;
            let _ = goal_binary::parse("damaged.bin", &damaged);
            if place > 7 {
                assert!(goal_binary::parse("cut.bin", &binary[..place]).is_err(), "{place}");
            }
        }
    }
}

/// In a dissemination a rank sends its message of a round only after that of the round before has arrived.
#[test]
fn a_dissemination_keeps_its_rounds() {
    let program = program(DISSEMINATION);
    for seed in 0..20 {
        let arrivals = arrived(&program, seed);
        let position = |source: u32, destination: u32| {
            arrivals.iter().position(|message| (message.source.0, message.destination.0) == (source, destination)).unwrap()
        };
        for rank in 0..16 {
            for step in [1, 2, 4] {
                assert!(position((rank + 16 - step) % 16, rank) < position(rank, (rank + 2 * step) % 16), "rank {rank}, step {step}");
            }
        }
    }
}

fn without_lines(description: &Description) -> Vec<Operation> {
    description.operations.iter().map(|operation| Operation { line: 0, ..*operation }).collect()
}

/// The description of a collective is written so that it reads the same.
#[test]
fn a_collective_written_as_goal_reads_the_same() {
    for entry in COLLECTIVES {
        for ranks in [2, 8] {
            let Ok(collective) = entry.build(&Parameters { ranks, root: 0, size: MessageSize::of_flits(3) }) else { continue };
            let options = Options { repeat: 2, ..Options::default() };
            let written = Rounds::new(collective, placement::linear(ranks), &options).unwrap().description(8).unwrap();
            let read = goal::parse("written.goal", goal::write(&written).as_bytes()).unwrap();
            assert_eq!((read.ranks, without_lines(&read)), (written.ranks, without_lines(&written)), "{}", entry.schedule);
            assert_eq!(sorted_dependencies(&read), sorted_dependencies(&written), "{}", entry.schedule);
        }
    }
}

fn sorted_dependencies(description: &Description) -> Vec<Dependency> {
    let mut dependencies = description.dependencies.clone();
    dependencies.sort();
    dependencies
}

#[test]
fn what_was_read_is_written_so_that_it_reads_the_same() {
    for text in [DISSEMINATION, ALL_TO_ALL, DEPENDENCIES] {
        let read = goal::parse("a.goal", text.as_bytes()).unwrap();
        let again = goal::parse("b.goal", goal::write(&read).as_bytes()).unwrap();
        assert_eq!((read.ranks, without_lines(&read)), (again.ranks, without_lines(&again)));
        assert_eq!(sorted_dependencies(&read), sorted_dependencies(&again));
    }
}

/// Wherever a file is cut off, that is found: no beginning of a program is a program.
#[test]
fn a_file_that_is_cut_off_is_refused() {
    let text = DISSEMINATION.trim_end();
    for length in 0..text.len() {
        let error = goal::parse("cut.goal", &text.as_bytes()[..length]).unwrap_err().to_string();
        assert!(error.starts_with("cut.goal:"), "{error}");
    }
    assert!(goal::parse("whole.goal", text.as_bytes()).is_ok());
}

proptest! {
    /// Damaged files give errors or other programs, never a panic.
    #[test]
    fn no_damage_makes_the_reader_panic(position in 0..DEPENDENCIES.len(), byte in any::<u8>(), removed in 0..8_usize) {
        let mut bytes = DEPENDENCIES.as_bytes().to_vec();
        let end = (position + removed).min(bytes.len());
        bytes.splice(position..end, [byte]);
        if let Ok(description) = goal::parse("damaged.goal", &bytes) {
            let units = Units { flit_bytes: Some(8), cycle_ns: Some(1.0) };
            let _ = Program::new(&description, &placement::linear(description.ranks), units);
        }
    }
}
