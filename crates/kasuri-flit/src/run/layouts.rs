//! A scenario on the layout that the table (`support.rs`) has chosen for it, compiled for its number of virtual channels.

use crate::fabric::cycle::RouterCycle;
use crate::fabric::layouts::avx512::Avx512;
use crate::fabric::layouts::full::Full;
use crate::fabric::layouts::plain::Plain;
use crate::facts::widest_router;
use crate::record::options::{FlitOptions, LayoutName};
use crate::record::team::with_team;
use crate::record::vc_mask::{VcMask, Wide, Word};
use crate::run::clock::Run;
use crate::state::addresses::Addresses;
use crate::state::compiled::Compiled;
use crate::state::prediction;
use crate::state::tile::Tile;
use crate::support;
#[cfg(target_arch = "x86_64")]
use kasuri_model::engine::{Controller, EngineError, Outcome, Prepared, Threads};
use kasuri_model::refusal::Refusal;
use kasuri_model::router::Architecture;
use kasuri_model::router::MAX_VIRTUAL_CHANNELS;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::extents::Extents;
use kasuri_network::routing::per_output::PerOutput;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The scenario with a virtual channel for each queue, where routers have one for each output. A packet's own virtual channels (those of
/// its class) remain what the routing underneath knows.
pub(crate) fn with_queues_for_outputs(scenario: &Scenario) -> Scenario {
    let mut queued = scenario.clone();
    let each = scenario.router.virtual_channels;
    queued.router.virtual_channels = PerOutput::virtual_channels(&scenario.network, each);
    // At most 256, by the configuration.
    queued.routing = Arc::new(PerOutput::over(Arc::clone(&scenario.network), Arc::clone(&scenario.routing), each as u16));
    queued
}

/// What is refused of routers with a queue for each output that have more queues than virtual channels can be numbered.
pub(crate) fn refused_queues(scenario: &Scenario) -> Option<Refusal> {
    let each = scenario.router.virtual_channels;
    let queues = PerOutput::virtual_channels(&scenario.network, each);
    let outputs = queues / each.max(1);
    let reason = format!(
        "is {each}, and a router here has {outputs} outputs; an input has a queue for each of both, at most {MAX_VIRTUAL_CHANNELS}"
    );
    (queues > MAX_VIRTUAL_CHANNELS).then(|| Refusal::new("router.virtual_channels", reason))
}

/// A scenario that a layout can run.
struct Ready<'s, L> {
    scenario: Cow<'s, Scenario>,
    compiled: Compiled,
    options: FlitOptions,
    threads: Threads,
    layout: PhantomData<fn() -> L>,
}

/// Virtual channels of routers that are worth a thread: a window of fewer takes less time than threads take to wait for each other.
const SLOTS_OF_THREAD: u64 = 1 << 14;

/// The routers in their full layout take about so many times as long: 8x8 meshes and tori with the wavefront allocator against iSLIP.
const SLOWNESS_OF_FULL: f64 = 4.5;

impl<L: RouterCycle> Prepared for Ready<'_, L> {
    fn memory_bytes(&self, _extents: &mut Extents) -> u64 {
        Tile::<L>::bytes(&self.scenario, &self.compiled)
    }

    fn slowness(&self) -> f64 {
        if L::LAYOUT == LayoutName::Full { SLOWNESS_OF_FULL } else { 1.0 }
    }

    fn useful_threads(&self) -> usize {
        let slots: u64 = self.compiled.tiles.iter().map(Addresses::slots_of_routers).sum();
        self.options.threads.asked().unwrap_or((slots / SLOTS_OF_THREAD) as usize).max(1)
    }

    fn use_threads(&mut self, threads: Threads) -> Result<(), Refusal> {
        let asked = self.options.tiles.map_or(1, NonZeroU32::get);
        let tiles = asked.max(u32::try_from(threads.count).unwrap_or(u32::MAX));
        if tiles > 1 || self.compiled.tiles.len() > 1 {
            self.compiled = self.compiled.cut_anew::<L>(&self.scenario, tiles)?;
        }
        self.threads = Threads { count: threads.count.min(self.compiled.tiles.len()), ..threads };
        Ok(())
    }

    fn run(self: Box<Self>, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let Self { scenario, mut compiled, threads, .. } = *self;
        with_team(&threads, |team| {
            let mut run = Run::<L>::new(&scenario, &compiled, team)?;
            let work = run.begin(controller, team)?;
            if let Some(partition) = work.and_then(|work| compiled.evened(&scenario, &work)) {
                // The same from the beginning, in other tiles; memory holds one of both.
                drop(run);
                compiled = compiled.cut_as::<L>(&scenario, partition)?;
                run = Run::new(&scenario, &compiled, team)?;
            }
            run.run(controller, team)
        })
    }
}

type IfReady<'s> = Result<Box<dyn Prepared + 's>, Refusal>;

fn ready<'s, L: RouterCycle + 'static>(scenario: Cow<'s, Scenario>, options: FlitOptions) -> IfReady<'s> {
    let compiled = Compiled::of::<L>(&scenario, options.tiles.map_or(1, NonZeroU32::get))?;
    Ok(Box::new(Ready { scenario, compiled, options, threads: Threads::new(1), layout: PhantomData::<fn() -> L> }))
}

/// Gets a scenario ready for a layout.
///
/// # Errors
/// It is too large.
pub(crate) fn on_layout(scenario: Cow<'_, Scenario>, layout: LayoutName, options: FlitOptions) -> IfReady<'_> {
    // A narrow mask keeps the records small; each width is compiled for itself, so not every power of two is worth one. Unit tests are compiled
    // together with the engine: there the widest serve for all, and the crate's other tests run the others.
    match (layout, scenario.router.virtual_channels) {
        #[cfg(not(test))]
        (LayoutName::Full, 0..=4) => ready::<Full<Word<u8, 2>>>(scenario, options),
        #[cfg(not(test))]
        (LayoutName::Full, 5..=8) => ready::<Full<Word<u8, 3>>>(scenario, options),
        #[cfg(not(test))]
        (LayoutName::Full, 9..=16) => ready::<Full<Word<u16, 4>>>(scenario, options),
        (LayoutName::Full, _) => ready::<Full<Wide>>(scenario, options),
        #[cfg(target_arch = "x86_64")]
        (LayoutName::Avx512, 0..=2) => on_vectors_of_two(scenario, options),
        #[cfg(target_arch = "x86_64")]
        (LayoutName::Avx512, 3..=4) => on_vectors::<Word<u8, 2>>(scenario, options),
        #[cfg(target_arch = "x86_64")]
        (LayoutName::Avx512, 5..=8) => on_vectors::<Word<u8, 3>>(scenario, options),
        #[cfg(not(test))]
        (_, 0..=2) => ready::<Plain<Word<u8, 1>>>(scenario, options),
        #[cfg(not(test))]
        (_, 3..=4) => ready::<Plain<Word<u8, 2>>>(scenario, options),
        #[cfg(not(test))]
        (_, 5..=8) => ready::<Plain<Word<u8, 3>>>(scenario, options),
        #[cfg(not(test))]
        (_, 9..=16) => ready::<Plain<Word<u16, 4>>>(scenario, options),
        #[cfg(not(test))]
        (_, 17..=64) => ready::<Plain<Word<u64, 6>>>(scenario, options),
        _ => ready::<Plain<Wide>>(scenario, options),
    }
}

/// Gets a scenario ready whose packets go through routers with virtual channels, unless there are refusals.
pub(crate) fn on_routers(
    scenario: &Scenario,
    options: FlitOptions,
    mut refusals: Vec<Refusal>,
) -> Result<Box<dyn Prepared + '_>, Vec<Refusal>> {
    let mut scenario = Cow::Borrowed(scenario);
    if scenario.router.architecture != Architecture::InputQueued {
        refusals.extend(refused_queues(&scenario));
        if refusals.is_empty() {
            scenario = Cow::Owned(with_queues_for_outputs(&scenario));
        }
    }
    let layout = support::choose(&scenario, &options).map_err(|more| refusals.extend(more));
    refusals.extend(prediction::refusals(&scenario));
    match layout {
        Ok(layout) if refusals.is_empty() => on_layout(scenario, layout, options).map_err(|refusal| vec![refusal]),
        _ => Err(refusals),
    }
}

/// The vector layout of two virtual channels, by the registers that the widest router takes.
#[cfg(target_arch = "x86_64")]
fn on_vectors_of_two(scenario: Cow<'_, Scenario>, options: FlitOptions) -> IfReady<'_> {
    match widest_router(&scenario).div_ceil(64) {
        // Up to 48 ports: the routers of most clusters.
        #[cfg(not(test))]
        3 => ready::<Avx512<Word<u8, 1>, 3>>(scenario, options),
        _ => on_vectors::<Word<u8, 1>>(scenario, options),
    }
}

/// The vector layout, by the registers that the widest router takes.
#[cfg(target_arch = "x86_64")]
fn on_vectors<M: VcMask + 'static>(scenario: Cow<'_, Scenario>, options: FlitOptions) -> IfReady<'_> {
    match widest_router(&scenario).div_ceil(64) {
        #[cfg(not(test))]
        0..=1 => ready::<Avx512<M, 1>>(scenario, options),
        #[cfg(not(test))]
        2 => ready::<Avx512<M, 2>>(scenario, options),
        #[cfg(not(test))]
        3..=4 => ready::<Avx512<M, 4>>(scenario, options),
        #[cfg(not(test))]
        5..=6 => ready::<Avx512<M, 6>>(scenario, options),
        _ => ready::<Avx512<M, 8>>(scenario, options),
    }
}
