//! No bytes make the readers of GOAL or the checks of a program panic, and what was read is written so that it reads the same.
#![no_main]

use kasuri_formats::{goal, goal_binary};
use kasuri_workload::units::Units;
use kasuri_workload::workload::placement;
use kasuri_workload::workload::program::Program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let binary = goal_binary::parse("fuzz.bin", bytes).ok();
    let Some(description) = binary.or_else(|| goal::parse("fuzz.goal", bytes).ok()) else { return };
    let again = goal::parse("again.goal", goal::write(&description).as_bytes()).expect("what is written is read");
    assert_eq!(description.operations.len(), again.operations.len());
    assert_eq!(description.dependencies.len(), again.dependencies.len());
    let units = Units { flit_bytes: Some(8), cycle_ns: Some(1.0) };
    let _ = Program::new(&description, &placement::linear(description.ranks), units);
});
