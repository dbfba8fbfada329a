//! Questions about a scenario, its network or the processor at hand that no state of a run is needed to answer.

use crate::record::allocators::rule_on_masks;
use kasuri_model::router::{Architecture, Bidding, BufferPolicy, Switching};
use kasuri_model::scenario::{ClosedWorkload, Scenario, TrafficClass};
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::network::metrics::hops_from;
use kasuri_network::predictor;
use kasuri_network::routing::Routing;

/// Do feeds of this scenario look at what happens at terminals all over the network? Then one tile has all terminals.
pub(crate) fn needs_central_edge(scenario: &Scenario) -> bool {
    scenario.users.is_some() || scenario.endpoint.is_some()
}

/// Do feeds of this scenario call packets by names of their own?
pub(crate) fn tags_packets(scenario: &Scenario) -> bool {
    scenario.users.is_some() || scenario.workload.is_some() || scenario.endpoint.is_some()
}

/// Is the workload of a scenario one whose terminals go on by themselves, with nobody who watches all of them?
pub(crate) fn is_local(scenario: &Scenario) -> bool {
    let has_batch = scenario.classes.iter().any(|class| class.packets_per_terminal.is_some());
    let is_watched = scenario.timeline || scenario.users.is_some() || scenario.endpoint.is_some() || has_batch;
    let is_one = |closed: &ClosedWorkload| closed.parts.len() == 1 && closed.interfaces.is_none();
    !is_watched && scenario.workload.as_ref().is_some_and(|closed| is_one(closed) && closed.workload.is_local())
}

/// Messages of a workload that are looked at for who sends and receives them.
const MANY_MESSAGES: u64 = 1 << 20;

/// By terminal: does it send or receive something of a workload, or send packets by itself? `None` where nobody asks, as there is one tile,
/// and where it would take too long to find out.
pub(crate) fn busy_terminals(scenario: &Scenario, tiles: u32) -> Option<Vec<bool>> {
    // Which of a terminal's ports a message takes its turn decides.
    if tiles == 1 || scenario.endpoint.is_some() || scenario.network.owner_count().is_some() {
        return None;
    }
    let sends = |terminal: u32| scenario.classes.iter().any(|class| !class.pattern.is_silent(TerminalId(terminal)));
    let mut busy: Vec<bool> = (0..scenario.network.terminal_count()).map(sends).collect();
    if let Some(closed) = &scenario.workload {
        match closed.workload.placement() {
            Some(placement) => placement.iter().for_each(|terminal| busy[terminal.index()] = true),
            None if closed.workload.messages() > MANY_MESSAGES => return None,
            None => closed.workload.each_message(&mut |message| {
                busy[message.source.index()] = true;
                busy[message.destination.index()] = true;
            }),
        }
    }
    Some(busy)
}

/// The shortest packet of a scenario, flits. The last packet of a workload's message may have any length.
pub(crate) fn shortest_packet(scenario: &Scenario) -> u32 {
    let of_class = |class: &TrafficClass| class.reply.iter().map(|reply| reply.sizes.min()).fold(class.sizes.min(), u32::min);
    let of_endpoint = scenario.endpoint.iter().filter_map(|endpoint| endpoint.packet_flits()).map(|[shortest, _]| shortest);
    let of_workload = scenario.workload.as_ref().map(|_| 1);
    scenario.classes.iter().map(of_class).chain(of_workload).chain(of_endpoint).min().unwrap_or(1)
}

/// The routing of a scenario, and those on what failures leave.
pub(crate) fn routings(scenario: &Scenario) -> impl Iterator<Item = &dyn Routing> {
    let left = scenario.changed_epochs().map(|epoch| &*epoch.routing);
    std::iter::once(&*scenario.routing).chain(left)
}

/// Does lookahead decide on departure, and does it make a difference?
pub(crate) fn decides_on_departure(scenario: &Scenario) -> bool {
    scenario.router.decides_on_departure() && scenario.routing.facts().observes_congestion
}

/// Are the switches' outputs divided among users?
pub(crate) fn divides_outputs(scenario: &Scenario) -> bool {
    scenario.users.as_ref().is_some_and(|users| users.shares)
}

/// May what happens in one cycle concern any place in the next one, whatever the latencies?
pub(crate) fn needs_window_of_one(scenario: &Scenario) -> bool {
    // What a message brings about may concern any terminal; who decides ahead looks at other routers; an arrival that is not answered
    // may open its source's window. What waits for a memory does so beside other terminals.
    let opens_windows = scenario.classes.iter().any(|class| class.window.outstanding.is_some() && class.reply.is_none());
    let is_dispatched = scenario.workload.is_some() && !is_local(scenario);
    let shares_memories = scenario.hosts.is_some();
    is_dispatched || shares_memories || scenario.endpoint.is_some() || decides_on_departure(scenario) || opens_windows
}

/// Do all packets of a scenario enter and leave at once? Failures tear packets, and interfaces keep them in the buffers of sinks.
pub(crate) fn packets_enter_at_once(scenario: &Scenario) -> bool {
    scenario.longest_packet() == 1
        && scenario.failure.is_none()
        && scenario.endpoint.is_none()
        && scenario.hosts.is_none()
        && !scenario.router.class_queues
        && scenario.router.buffer_policy == BufferPolicy::Private
}

/// Virtual channels of routers up to which this cycle is the faster one: on trees and meshes of 8,000 and 12,000 it takes 0.75 to 1.04 of the
/// general one's time, from low loads to saturation, on those of 49,000 0.93 to 1.12 (measured before this cycle fetched anything ahead).
const MOST_SLOTS: u64 = 1 << 14;

/// Does this cycle serve a scenario whose routers have so many virtual channels? They must be canonical ones with allocators that are built
/// in here, and their state near: of what lies far the general cycle fetches more ahead.
pub(crate) fn has_fast_one_flit_cycle(scenario: &Scenario, slots: u64) -> bool {
    let router = &scenario.router;
    let is_canonical = router.switching == Switching::Wormhole
        && router.architecture != Architecture::Crosspoint
        && router.predictor == predictor::NONE
        && scenario.pipeline.bidding != Bidding::Speculative
        && !router.extends("bubble")
        && !scenario.routing.facts().observes_congestion;
    let is_plain = !divides_outputs(scenario) && scenario.endpoint.is_none() && scenario.failure.is_none();
    slots <= MOST_SLOTS
        && scenario.longest_packet() == 1
        && is_canonical
        && is_plain
        && [&router.vc_allocator, &router.switch_allocator].into_iter().all(|allocator| rule_on_masks(allocator).is_some())
}

/// Has the plain layout a cycle of its own for the packets of a scenario, which are of one flit? It takes two thirds of the vector layout's time
/// on meshes, tori and fat trees at any load.
pub(crate) fn has_cycle_of_one_flit(scenario: &Scenario) -> bool {
    let network = &scenario.network;
    let stride = scenario.router.virtual_channels.next_power_of_two().max(2);
    let ports: u64 = (0..network.router_count()).map(|router| u64::from(network.port_count(RouterId(router)))).sum();
    !has_slow_channel(network) && has_fast_one_flit_cycle(scenario, ports * u64::from(stride))
}

/// Does any channel need more than one cycle for a flit?
pub(crate) fn has_slow_channel(network: &Network) -> bool {
    (0..network.channel_count()).any(|channel| network.link(ChannelId(channel)).period > 1)
}

/// Virtual channels of the widest router, those of a port rounded up to a power of two.
pub(crate) fn widest_router(scenario: &Scenario) -> u32 {
    let network = &scenario.network;
    let ports = (0..network.router_count()).map(|router| network.port_count(RouterId(router)));
    ports.max().unwrap_or(0) * scenario.router.virtual_channels.next_power_of_two().max(2)
}

/// The vector layout visits 64 virtual channels in the time in which the portable one moves about this many flits (measured on meshes,
/// tori and fat trees with packets of 1 and 8 flits: between 2.5 and 4.5). Where fewer move in a cycle, lists cost less than masks.
const LEAST_FLITS_OF_WORD: f64 = 3.5;

/// Do flits enough move among the virtual channels that a visit of the vector layout looks at?
pub(crate) fn is_loaded(scenario: &Scenario) -> bool {
    if scenario.workload.is_some() || scenario.classes.iter().any(|class| class.packets_per_terminal.is_some()) {
        return true;
    }
    let widest = widest_router(scenario);
    let routers_of_word = 64.0 / f64::from(widest.next_power_of_two().min(64));
    let words = f64::from(widest.div_ceil(64));
    flits_of_router(scenario) * routers_of_word / words >= LEAST_FLITS_OF_WORD
}

/// About how many flits cross a router in a cycle on shortest paths from the first terminal's router, which stands for all.
fn flits_of_router(scenario: &Scenario) -> f64 {
    let load: f64 = scenario.classes.iter().map(|class| class.load).sum();
    load * routers_on_paths(&scenario.network) / f64::from(scenario.network.router_count())
}

/// Routers on shortest paths from the first terminal, to all terminals together.
pub(crate) fn routers_on_paths(network: &Network) -> f64 {
    let distance = hops_from(network, network.injection_port(TerminalId(0)).0);
    let router_of = |terminal| network.ejection_port(TerminalId(terminal)).0.index();
    (0..network.terminal_count()).map(|terminal| f64::from(distance[router_of(terminal)].unwrap_or(0) + 1)).sum()
}

/// Has this processor the instructions of the vector layout?
pub(crate) fn can_use_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_vector_instructions();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Does the processor have BMI2 and its companions? (x86-64-v3; every x86 server since 2015.)
pub(crate) fn is_modern() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("popcnt")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Does this processor have the instructions of the layout `avx512`?
#[cfg(target_arch = "x86_64")]
fn has_vector_instructions() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vbmi")
        && std::is_x86_feature_detected!("avx512vbmi2")
        && std::is_x86_feature_detected!("avx512bitalg")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("popcnt")
        && std::is_x86_feature_detected!("lzcnt")
}
