//! What a simulation takes of memory, worked out before it is made.

use crate::facts::{routers_on_paths, shortest_packet, tags_packets};
use crate::feeds;
use crate::record::links::Links;
use crate::record::packet::Packet;
use crate::record::rings::Rings;
use crate::record::tag::Tag;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::addresses::Addresses;
use crate::state::border::Border;
use crate::state::claims::Claims;
use crate::state::compiled::Compiled;
use crate::state::layout::RouterState;
use crate::state::queues::Queues;
use crate::state::route_memo::RouteMemo;
use crate::state::statistics::Statistics;
use crate::state::terminals::Terminals;
use crate::state::tile::Tile;
use crate::state::wiring::RouterPlace;
use kasuri_model::router::{BufferPolicy, Congestion};
use kasuri_model::scenario::Scenario;

/// Latencies above this multiple of those in an empty network end a run as saturated.
const LATENCY_FACTOR: f64 = 3.0;

/// Cycles that a head takes for a router at most, beside what the channel behind it takes.
const ROUTER_CYCLES: f64 = 6.0;

/// Bytes of the record of a message that is on its way.
const MESSAGE_BYTES: f64 = 44.0;

impl<L: RouterState> Tile<'_, L> {
    /// Bytes of all columns, and of as many packets as are on their way at the load of the scenario.
    pub(crate) fn bytes(scenario: &Scenario, compiled: &Compiled) -> u64 {
        let columns: usize = (0..compiled.tiles.len()).map(|tile| Self::bytes_of_tile(scenario, compiled, tile)).sum();
        let places = |tile: &Addresses| f64::from(tile.first_terminal_port);
        let parameters = &compiled.parameters;
        let of_port = f64::from(parameters.virtual_channels) * f64::from(parameters.buffer_flits);
        let places = compiled.tiles.iter().map(places).sum::<f64>() * of_port;
        columns as u64 + (packets(scenario, places) * bytes_of_packet(scenario)) as u64
    }

    /// Bytes of the columns of one tile.
    fn bytes_of_tile(scenario: &Scenario, compiled: &Compiled, tile: usize) -> usize {
        let shift = L::Mask::SHIFT;
        let (addresses, parameters) = (&compiled.tiles[tile], &compiled.parameters);
        let (routers, terminals) = (addresses.share.routers.len(), addresses.share.terminals.len());
        let (ports, router_ports) = (addresses.ports as usize, addresses.first_terminal_port as usize);
        let (slots, router_slots) = (ports << shift, router_ports << shift);
        let wheel = |events: u32| L::Wheel::bytes(compiled.horizon, slots as u32, addresses.block_shift, (1 << shift) / events);
        let of_ports = ports * (size_of::<Links>() + 8 + if parameters.periodic { 4 } else { 0 });
        let (block_ports, block_slots) =
            (router_ports.min(1 << (addresses.block_shift - shift)), router_slots.min(1 << addresses.block_shift));
        let lists = 8 * (block_ports + block_slots) + routers * size_of::<RouterPlace>();
        let rings = 4 * Rings::length(slots, compiled.packets_per_buffer).unwrap_or(0);
        let claims = scenario.routing.facts().observes_congestion && scenario.router.congestion == Congestion::Claimed;
        let pointers = if crate::record::allocators::build(&scenario.router.vc_allocator).is_some() { 8 } else { 0 };
        let shared = if scenario.router.buffer_policy == BufferPolicy::Private { 0 } else { 32 };
        L::bytes(parameters, addresses.first_terminal_port, addresses.ports)
            + rings
            + wheel(1)
            + wheel(compiled.credits_of_port)
            + of_ports
            + Border::bytes::<L>(addresses, &compiled.crossings, tile as u32)
            + lists
            + router_slots * (pointers + shared + if claims { Claims::SLOT_BYTES } else { 0 })
            + crate::state::prediction::bytes(&scenario.router, router_ports, router_slots)
            + Terminals::<L::Mask>::bytes(terminals as u32)
            + Queues::bytes(terminals)
            + feeds::bytes(scenario, terminals, addresses.block_shift - shift)
            + RouteMemo::bytes(&*scenario.routing, &scenario.network, routers, router_slots as u32)
            + Statistics::bytes(&scenario.network, &addresses.share, ports)
    }
}

/// Records of packets stand in vectors that grow by half at least.
fn bytes_of_packet(scenario: &Scenario) -> f64 {
    let replies = scenario.classes.iter().any(|class| class.reply.is_some());
    let record = size_of::<Packet>() as f64 + f64::from(scenario.longest_packet()) + 4.0 + if replies { 8.0 } else { 0.0 };
    let tag = if tags_packets(scenario) { Tag::BYTES as f64 } else { 0.0 };
    1.5 * (record + tag + if scenario.workload.is_some() { MESSAGE_BYTES } else { 0.0 })
}

/// Packets that are on their way at one time, of which buffers have room for so many flits: as many as the load brings about, of a
/// latency beyond which the network is saturated, and the first one of each queue of a source.
fn packets(scenario: &Scenario, places: f64) -> f64 {
    let network = &*scenario.network;
    let terminals = f64::from(network.terminal_count());
    let shortest = f64::from(shortest_packet(scenario));
    let routers = routers_on_paths(network) / terminals.max(1.0);
    let slowest = (0..network.links().len()).map(|link| f64::from(network.links()[link].latency)).fold(1.0, f64::max);
    let mean_flits = |class: &kasuri_model::scenario::TrafficClass| class.sizes.mean();
    let alone = |flits: f64| (routers + 1.0) * (slowest + ROUTER_CYCLES) + flits;
    let latency = |flits: f64| LATENCY_FACTOR * alone(flits);
    let of_class = |class: &kasuri_model::scenario::TrafficClass| {
        let both = if class.reply.is_some() { 2.0 } else { 1.0 };
        let load = if class.packets_per_terminal.is_some() { 1.0 } else { class.load };
        both * load / mean_flits(class) * terminals * latency(mean_flits(class))
    };
    let open: f64 = scenario.classes.iter().map(of_class).sum();
    let closed = scenario.workload.as_ref().map_or(0.0, |closed| {
        let flits = f64::from(closed.longest_packet());
        // A terminal sends one message after the other, without waiting or with.
        (terminals / flits * alone(flits))
            .min(places / flits)
            .min(closed.workload.messages() as f64 * f64::from(closed.workload.longest_message()))
    });
    let heads = terminals * scenario.classes.len() as f64;
    open.min(places / shortest) + heads + if scenario.workload.is_some() { closed.max(terminals) } else { 0.0 }
}
