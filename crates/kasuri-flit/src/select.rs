//! Which layout runs a scenario. The choice changes the time that it takes and nothing else.

use crate::lanes::Lanes;
use crate::lanes::general::General;
use crate::lanes::portable::Portable;
use crate::options::{FlitOptions, Simd};
use crate::state::Simulation;
use crate::vc_mask::{VcMask, Wide, Word};
use kasuri_model::engine::{Controller, EngineError, Outcome};
use kasuri_model::router::{Bidding, MAX_VIRTUAL_CHANNELS};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;
use kasuri_network::network::Network;
use kasuri_network::network::metrics::hops_from;
use kasuri_network::routing::per_output::PerOutput;
use std::sync::Arc;

/// The vector layout visits 64 virtual channels in the time in which the portable one moves about this many flits (measured on meshes,
/// tori and fat trees with packets of 1 and 8 flits: between 2.5 and 4.5). Where fewer move in a cycle, lists cost less than masks.
#[cfg(target_arch = "x86_64")]
const LEAST_FLITS_OF_WORD: f64 = 3.5;

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

/// Refuses routers with a queue for each output that have more queues than virtual channels can be numbered, and routings that cannot look
/// ahead.
pub(crate) fn check_queues(scenario: &Scenario) -> Result<(), EngineError> {
    let each = scenario.router.virtual_channels;
    let queues = PerOutput::virtual_channels(&scenario.network, each);
    let wrong = |key: &str, problem: String| Err(EngineError::Option { key: key.to_owned(), problem });
    if queues > MAX_VIRTUAL_CHANNELS {
        let problem =
            format!("is {each}, which makes {queues} queues of an input, one for each output; there are at most {MAX_VIRTUAL_CHANNELS}");
        return wrong("router.virtual_channels", problem);
    }
    if scenario.routing.observes_congestion() {
        return wrong("routing.algorithm", "looks at congestion, which routers with queues for outputs cannot see ahead".to_owned());
    }
    Ok(())
}

/// Runs a scenario on the layout that suits it.
///
/// # Errors
/// As the engine's.
pub(crate) fn run(scenario: &Scenario, options: FlitOptions, controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
    on_layout(scenario, options, Run(controller))
}

/// Can the layout that suits a scenario run it?
///
/// # Errors
/// As [`run`], before anything runs.
pub(crate) fn check(scenario: &Scenario, options: FlitOptions) -> Result<(), EngineError> {
    on_layout(scenario, options, Check)
}

/// What is done on the layout that suits a scenario.
trait OnLayout {
    type Answer;

    fn of<L: Lanes>(self, scenario: &Scenario) -> Result<Self::Answer, EngineError>;
}

struct Run<'a>(&'a mut dyn Controller);

impl OnLayout for Run<'_> {
    type Answer = Outcome;

    fn of<L: Lanes>(self, scenario: &Scenario) -> Result<Outcome, EngineError> {
        Simulation::<L>::new(scenario)?.run(self.0)
    }
}

struct Check;

impl OnLayout for Check {
    type Answer = ();

    fn of<L: Lanes>(self, scenario: &Scenario) -> Result<(), EngineError> {
        Simulation::<L>::check(scenario)
    }
}

struct Bytes;

impl OnLayout for Bytes {
    type Answer = u64;

    fn of<L: Lanes>(self, scenario: &Scenario) -> Result<u64, EngineError> {
        Simulation::<L>::bytes(scenario)
    }
}

/// Bytes that a run of a scenario takes on the layout that suits it.
///
/// # Errors
/// As [`check`].
pub(crate) fn bytes(scenario: &Scenario, options: FlitOptions) -> Result<u64, EngineError> {
    on_layout(scenario, options, Bytes)
}

fn on_layout<T: OnLayout>(scenario: &Scenario, options: FlitOptions, task: T) -> Result<T::Answer, EngineError> {
    if is_general(scenario) {
        return match scenario.router.virtual_channels {
            0..=4 => task.of::<General<Word<u8, 2>>>(scenario),
            5..=8 => task.of::<General<Word<u8, 3>>>(scenario),
            9..=16 => task.of::<General<Word<u16, 4>>>(scenario),
            _ => task.of::<General<Wide>>(scenario),
        };
    }
    // A narrow mask keeps the records small; each width is compiled for itself, so not every power of two is worth one.
    match scenario.router.virtual_channels {
        0..=2 => on_narrow::<Word<u8, 1>, T>(scenario, options, task),
        3..=4 => on_narrow::<Word<u8, 2>, T>(scenario, options, task),
        5..=8 => on_narrow::<Word<u8, 3>, T>(scenario, options, task),
        9..=16 => task.of::<Portable<Word<u16, 4>>>(scenario),
        17..=64 => task.of::<Portable<Word<u64, 6>>>(scenario),
        _ => task.of::<Portable<Wide>>(scenario),
    }
}

/// Do routers or routing ask for the general form? A packet of one flit holds no switch, it is all the same when a routing decides that
/// does not look at congestion, and several steps in a cycle are taken by plain routers as well, unless they speculate or channels are busy for longer.
pub(crate) fn is_general(scenario: &Scenario) -> bool {
    let single = crate::edge::longest_packet(scenario) == 1;
    let asks = |key: &str| match key {
        "hold_switch" => !single,
        "lookahead_decides" => scenario.routing.observes_congestion(),
        "internal_speedup" => has_slow_channel(&scenario.network) || scenario.pipeline.bidding == Bidding::Speculative,
        _ => true,
    };
    scenario.router.general_keys().any(asks) || scenario.routing.offers_several()
}

/// Does any channel need more than one cycle for a flit?
pub(crate) fn has_slow_channel(network: &Network) -> bool {
    (0..network.channel_count()).any(|channel| network.link(ChannelId(channel)).period > 1)
}

/// Up to 8 virtual channels: the vector layout where it serves.
fn on_narrow<M: VcMask, T: OnLayout>(scenario: &Scenario, options: FlitOptions, task: T) -> Result<T::Answer, EngineError> {
    #[cfg(target_arch = "x86_64")]
    if options.simd != Simd::Portable && fits_vector_layout::<M>(scenario) && (options.simd == Simd::Always || is_loaded::<M>(scenario)) {
        use crate::lanes::avx512::Avx512;
        return match widest_router::<M>(scenario).div_ceil(64) {
            0..=1 => task.of::<Avx512<M, 1>>(scenario),
            2 => task.of::<Avx512<M, 2>>(scenario),
            // Two virtual channels of up to 48 ports: the routers of most clusters.
            3 if M::SHIFT == 1 => task.of::<Avx512<M, 3>>(scenario),
            _ => task.of::<Avx512<M, 4>>(scenario),
        };
    }
    task.of::<Portable<M>>(scenario)
}

/// Slots of the widest router.
#[cfg(target_arch = "x86_64")]
fn widest_router<M: VcMask>(scenario: &Scenario) -> u32 {
    let network = &scenario.network;
    let ports = (0..network.router_count()).map(|router| network.port_count(kasuri_network::id::RouterId(router)));
    ports.max().unwrap_or(0) << M::SHIFT
}

/// The limits of `lanes::avx512`.
#[cfg(target_arch = "x86_64")]
fn fits_vector_layout<M: VcMask>(scenario: &Scenario) -> bool {
    use kasuri_model::router::{Architecture, Switching, VcRelease};
    let router = &scenario.router;
    let network = &scenario.network;
    crate::lanes::avx512::is_available()
        && widest_router::<M>(scenario) <= 256
        && router.buffer_flits <= 255
        && crate::edge::longest_packet(scenario) <= 255
        && router.architecture != Architecture::Crosspoint
        && router.switching == Switching::Wormhole
        && router.vc_release == VcRelease::Tail
        && scenario.pipeline.bidding == Bidding::InTurn
        && crate::allocator::build(&router.switch_allocator).is_none()
        && crate::shares::Granted::of(scenario).is_none()
        && !scenario.routing.observes_congestion()
        && router.predictor == kasuri_network::predictor::NONE
        && router.internal_speedup == 1.0
        && !has_slow_channel(network)
}

/// Do flits enough move among the virtual channels that a visit of the vector layout looks at?
#[cfg(target_arch = "x86_64")]
fn is_loaded<M: VcMask>(scenario: &Scenario) -> bool {
    if scenario.workload.is_some() || scenario.classes.iter().any(|class| class.packets_per_terminal.is_some()) {
        return true;
    }
    let widest = widest_router::<M>(scenario);
    let routers_of_word = 64.0 / f64::from(widest.next_power_of_two().min(64));
    let words = f64::from(widest.div_ceil(64));
    flits_of_router(scenario) * routers_of_word / words >= LEAST_FLITS_OF_WORD
}

/// About how many flits cross a router in a cycle on shortest ways from the first terminal's router, which stands for all.
#[cfg(target_arch = "x86_64")]
fn flits_of_router(scenario: &Scenario) -> f64 {
    let load: f64 = scenario.classes.iter().map(|class| class.load).sum();
    load * routers_on_ways(&scenario.network) / f64::from(scenario.network.router_count())
}

/// Routers on shortest ways from the first terminal, to all terminals together.
pub(crate) fn routers_on_ways(network: &Network) -> f64 {
    use kasuri_network::id::TerminalId;
    let distance = hops_from(network, network.injection_port(TerminalId(0)).0);
    let router_of = |terminal| network.ejection_port(TerminalId(terminal)).0.index();
    (0..network.terminal_count()).map(|terminal| f64::from(distance[router_of(terminal)].unwrap_or(0) + 1)).sum()
}
