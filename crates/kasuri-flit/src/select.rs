//! Which layout runs a scenario. The choice changes the time that it takes and nothing else.

use crate::lanes::portable::Portable;
use crate::state::Simulation;
use crate::vc_mask::{Wide, Word};
use kasuri_model::engine::{Controller, EngineError, Outcome};
use kasuri_model::scenario::Scenario;

/// Runs a scenario on the layout that suits it.
///
/// # Errors
/// As the engine's.
pub(crate) fn run(scenario: &Scenario, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
    // The narrowest mask that holds a port's virtual channels keeps the records small.
    match scenario.router.virtual_channels {
        0..=1 => Simulation::<Portable<Word<u8, 0>>>::new(scenario)?.run(controller),
        2 => Simulation::<Portable<Word<u8, 1>>>::new(scenario)?.run(controller),
        3..=4 => Simulation::<Portable<Word<u8, 2>>>::new(scenario)?.run(controller),
        5..=8 => Simulation::<Portable<Word<u8, 3>>>::new(scenario)?.run(controller),
        9..=16 => Simulation::<Portable<Word<u16, 4>>>::new(scenario)?.run(controller),
        17..=32 => Simulation::<Portable<Word<u32, 5>>>::new(scenario)?.run(controller),
        33..=64 => Simulation::<Portable<Word<u64, 6>>>::new(scenario)?.run(controller),
        _ => Simulation::<Portable<Wide>>::new(scenario)?.run(controller),
    }
}
