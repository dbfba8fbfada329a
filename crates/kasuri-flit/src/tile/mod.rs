//! The state of a simulation in flat columns, and its construction from a scenario.
//!
//! **Addresses.** Every port of every router has a *port address*; a virtual channel of a port has the *slot address*
//! `port address * stride + virtual channel`, where the stride is the number of virtual channels rounded up to a power of two.
//! A terminal has a port address too: its input side is the sink, its output side is the source. An input slot is the buffer of
//! a virtual channel; the output slot of the same address is the upstream's account of the buffer at the other end of the link. Behind
//! the terminals lie the addresses of what is in other tiles (`border`).
//!
//! **Blocks.** Addresses are cut into blocks of `2^block_shift` slots; a router never straddles two. Nothing that a block posts
//! arrives before the end of the present window of cycles, so a block runs through a window while its state is in the cache.

mod addresses;
mod blocks;
pub(crate) mod border;
mod compiled;
mod crossings;
mod delays;
pub(crate) mod list;
mod memory;
pub(crate) mod packets;
mod share;
pub(crate) mod wheel;
mod work;

pub(crate) use addresses::Addresses;
pub(crate) use blocks::{Block, Blocks};
pub(crate) use compiled::{Compiled, Parameters};
pub(crate) use share::{Partition, Share};
pub(crate) use work::Work;

use crate::edge::{self, Edge, Memories, Terminals};
use crate::fabric::allocators::{self, PlainAllocator};
use crate::fabric::features::bubbles::Bubbles;
use crate::fabric::features::claims::Claims;
use crate::fabric::features::failures::Failures;
use crate::fabric::features::lookahead::Lookahead;
use crate::fabric::features::prediction::PredictionUnit;
use crate::fabric::features::shared_buffers::Buffers;
use crate::fabric::layout::RouterLayout;
use crate::fabric::rings::{Queue, Rings};
use crate::fabric::route_memo::RouteMemo;
use crate::fabric::vc_mask::VcMask;
use crate::observe::statistics::Statistics;
use crate::prefetch::prefetch_across;
use crate::tile::border::Border;
use crate::tile::list::List;
use crate::tile::packets::{Gaps, Packets};
use crate::tile::wheel::Wheel;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::Congestion;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_network::memory::Column;
use kasuri_network::network::Endpoint;
use kasuri_network::rng::Purpose;
use kasuri_network::routing::{Candidate, Routing, VirtualChannels};
use std::sync::Arc;

/// Marks "none" in a column of addresses or packets.
pub(crate) const NONE: u32 = u32::MAX;

/// In the place of the output that a packet holds: it is thrown away.
pub(crate) const THROWN_AWAY: u32 = u32::MAX - 1;

/// The cycle that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// Where the flits and credits of a port go, and the heads that wait for it. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// First slot of the input port at the other end of the output channel; [`NONE`] if there is none.
    pub(crate) flit_link: u32,
    /// First slot of the output port at the other end of the input channel, for credits; [`NONE`] if there is none.
    pub(crate) credit_link: u32,
    /// Cycles from the switch grant until the flit can be used at the other end.
    pub(crate) flit_delay: u16,
    /// Cycles from the switch grant until the credit can be used at the other end.
    pub(crate) credit_delay: u16,
    /// Flits sent since the statistics were last collected.
    pub(crate) sent: u32,
    /// The first input slot that waits for a virtual channel of the port.
    pub(crate) request_head: u32,
    /// Is the port in its block's list for virtual-channel allocation?
    pub(crate) listed: bool,
}

impl Links {
    /// Fetches the record, which may lie in two cache lines.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_across(self);
    }

    /// Puts the port on a list for virtual-channel allocation, once, if somebody waits there.
    #[inline(always)]
    pub(crate) fn list_for_allocation(&mut self, port: u32, list: &mut List) {
        let is_new = (self.request_head != NONE) & !self.listed;
        list.push_if(port, is_new);
        self.listed |= is_new;
    }
}

/// What is done once per packet at an input slot needs this, in one place. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputSlot {
    /// Round-robin pointer over output slots.
    pub(crate) accept_pointer: u32,
    /// The next input slot that waits for a virtual channel of the same output port.
    pub(crate) request_next: u32,
    /// The packets in the buffer, and announced to it.
    pub(crate) queue: Queue,
    /// The virtual channels that it may take.
    pub(crate) request_first: u8,
    pub(crate) request_last: u8,
    /// Length of the front packet, and its flits that [`Links::sent`] holds already (where the layout does not count each flit).
    pub(crate) length: u16,
    pub(crate) settled: u16,
}

impl Default for InputSlot {
    fn default() -> Self {
        Self { accept_pointer: 0, request_next: NONE, queue: Queue::default(), request_first: 0, request_last: 0, length: 0, settled: 0 }
    }
}

/// The same for an output slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputSlot {
    /// Round-robin pointer over input slots.
    pub(crate) grant_pointer: u32,
}

/// A packet in the network or at the head of its source queue. 40 bytes; what is asked at each router stands last, together.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Packet {
    /// Cycle of creation.
    pub(crate) created: u64,
    /// Cycle in which the head entered the network.
    pub(crate) injected: u64,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The routing's own state.
    pub(crate) route_state: u32,
    /// Running number of the packet at its source, for the random draws of its route.
    pub(crate) serial: u32,
    /// Length in flits.
    pub(crate) flits: u16,
    /// Routers crossed.
    pub(crate) hops: u16,
    /// Traffic class.
    pub(crate) class: u8,
    /// Is it the answer to a packet of its class?
    pub(crate) is_reply: bool,
    /// What is known of the gaps between its flits.
    pub(crate) gaps: Gaps,
    /// Is the record in use?
    pub(crate) alive: bool,
}

/// An allocator for virtual channels and its round-robin pointers, by input and output slot.
pub(crate) struct AllocatorWithPointers {
    pub(crate) allocator: PlainAllocator,
    pub(crate) row: Column<u32>,
    pub(crate) column: Column<u32>,
}

/// Puts something back in whose place an empty one stands, which owns no memory to give back: so nothing has to look whether it does.
#[inline(always)]
pub(crate) fn put_back<T>(place: &mut T, value: T) {
    std::mem::forget(std::mem::replace(place, value));
}

/// A router of a tile. 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouterPlace {
    /// Its number in the network.
    pub(crate) router: u32,
    /// Its first port address.
    pub(crate) first_port: u32,
}

/// How the ports are wired. One entry per port address, terminals' included.
pub(crate) struct Wiring {
    pub(crate) links: Column<Links>,
    /// The cycle in which what they count was last collected.
    pub(crate) collected_in: u64,
    /// Cycles that a flit occupies the port's channel; empty unless some channel needs more than one.
    pub(crate) period: Column<u32>,
    /// By port of a router: flits that have crossed the switch and are not counted as sent on the channel. Empty where they are sent as they
    /// cross it.
    pub(crate) before_channel: Column<u32>,
    /// The router of a router's port address, by its number in the tile; [`NONE`] in gaps.
    pub(crate) router_of_port: Column<u32>,
    /// The routers of the tile, by their numbers there: so few that they lie in a near cache.
    routers: Column<RouterPlace>,
    own_number: Arc<[u32]>,
}

impl Wiring {
    /// Ports that nothing connects.
    fn new(addresses: &Addresses, parameters: &Parameters) -> Self {
        let ports = addresses.ports as usize;
        let before_channel = if parameters.sends_later() { addresses.first_terminal_port as usize } else { 0 };
        let routers = addresses.share.routers.iter().zip(&addresses.router_port);
        let unconnected =
            Links { flit_link: NONE, credit_link: NONE, flit_delay: 0, credit_delay: 0, sent: 0, request_head: NONE, listed: false };
        Self {
            links: Column::filled(ports, unconnected),
            collected_in: 0,
            period: Column::filled(if parameters.periodic { ports } else { 0 }, 1),
            before_channel: Column::filled(before_channel, 0),
            router_of_port: Column::filled(addresses.first_terminal_port as usize, NONE),
            routers: routers.map(|(&router, &first_port)| RouterPlace { router, first_port }).collect(),
            own_number: Arc::clone(&addresses.own_number),
        }
    }

    /// The first port address of a router, which is named by its number in the network.
    #[inline(always)]
    pub(crate) fn first_port(&self, router: u32) -> u32 {
        self.routers[self.own_number(router)].first_port
    }

    /// The router that a port address belongs to, which must be a router's.
    #[inline(always)]
    pub(crate) fn router_at(&self, port: u32) -> RouterPlace {
        self.routers[self.router_of_port[port]]
    }

    /// The number that a router of the network has in the tile.
    #[inline(always)]
    pub(crate) fn own_number(&self, router: u32) -> u32 {
        self.own_number[router as usize]
    }
}

/// What is on its way between ports.
pub(crate) struct InFlight<W> {
    pub(crate) arrivals: W,
    pub(crate) credits: W,
    /// What is due at the terminals of a block in the present cycle.
    pub(crate) due: Vec<u32>,
    /// What leaves the tile, and what comes from others.
    pub(crate) border: Border,
}

/// The flits that wait in buffers.
pub(crate) struct Buffered {
    /// Whose they are.
    pub(crate) rings: Rings,
    /// Who has how much of the buffers, where virtual channels share them.
    pub(crate) shared: Option<Box<Buffers>>,
}

/// What routes are found with.
pub(crate) struct RouteState<'a> {
    /// Who finds them.
    pub(crate) function: &'a dyn Routing,
    /// Of the draws.
    pub(crate) seed: u64,
    /// By class: the virtual channels of its packets and of their replies.
    pub(crate) channels_of_class: Vec<[VirtualChannels; 2]>,
    /// What the routing has answered.
    pub(crate) candidates: Vec<Candidate>,
    /// Routes that are known already, where the network is small.
    pub(crate) memo: Option<RouteMemo>,
    /// What heads have claimed of the outputs, where a routing looks at that.
    pub(crate) claims: Option<Box<Claims>>,
    /// What is decided ahead of a head, where lookahead decides on departure.
    pub(crate) lookahead: Option<Lookahead>,
    /// What is dead, if anything fails during the run.
    pub(crate) failures: Option<Box<Failures>>,
}

impl<'a> RouteState<'a> {
    fn new(scenario: &'a Scenario, share: &Share, router_ports: u32, vc_shift: u32) -> Self {
        let router_slots = router_ports << vc_shift;
        let channels_of_class = scenario.channels_of_classes();
        let looks_at_claims = scenario.routing.facts().observes_congestion && scenario.router.congestion == Congestion::Claimed;
        Self {
            function: &*scenario.routing,
            seed: scenario.streams.key(Purpose::Routing),
            candidates: Vec::new(),
            memo: RouteMemo::new(&*scenario.routing, &scenario.network, share.routers.len(), router_slots, &channels_of_class),
            channels_of_class,
            claims: looks_at_claims.then(|| Box::new(Claims::new(router_slots as usize))),
            lookahead: Lookahead::of(scenario),
            failures: Failures::of(scenario, router_ports, share.routers.len()),
        }
    }
}

/// How virtual channels are allocated in plain routers.
#[derive(Default)]
pub(crate) struct VcAllocation {
    /// An allocator that is not the built-in iSLIP of one iteration, with its pointers.
    pub(crate) allocator: Option<AllocatorWithPointers>,
    /// Where packets enter rings that must not fill up.
    pub(crate) bubbles: Option<Box<Bubbles>>,
    /// The requests and the matches of a port; memory to use.
    pub(crate) requests: Vec<(u32, u32)>,
    pub(crate) matches: Vec<(u32, u32)>,
}

/// A running simulation. `L` is the layout of the routers' virtual channels.
pub(crate) struct Tile<'a, L: RouterLayout> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) parameters: Parameters,
    pub(crate) cycle: u64,
    pub(crate) layout: L,
    pub(crate) wiring: Wiring,
    pub(crate) in_flight: InFlight<L::Wheel>,
    pub(crate) buffers: Buffered,
    pub(crate) blocks: Blocks,
    pub(crate) terminals: Terminals<L::Mask>,
    pub(crate) edge: Edge<'a>,
    pub(crate) packets: Packets,
    pub(crate) statistics: Statistics,
    pub(crate) routing: RouteState<'a>,
    pub(crate) vc_allocation: VcAllocation,
    /// What the routers need to predict, if they do.
    pub(crate) prediction: Option<Box<PredictionUnit<'a>>>,
}

impl<'a, L: RouterLayout> Tile<'a, L> {
    /// Makes the columns of one tile of a scenario.
    ///
    /// # Errors
    /// They take too much memory.
    pub(crate) fn new(scenario: &'a Scenario, compiled: &Compiled, tile: usize) -> Result<Self, Refusal> {
        let router = &scenario.router;
        let vc_shift = L::Mask::SHIFT;
        let addresses = &compiled.tiles[tile];
        let parameters = compiled.parameters_of::<L>(tile);
        let share = &addresses.share;
        let (ports, slots) = (addresses.ports as usize, (addresses.ports as usize) << vc_shift);
        let prediction = PredictionUnit::new(scenario, share, &addresses.router_port, addresses.first_terminal_port, L::Mask::BITS)?;
        let too_large = || Refusal::new("network", "the buffers of all ports take too much memory");
        let rings = Rings::new(slots, compiled.packets_per_buffer).ok_or_else(too_large)?;
        let wheel = |events_of_port: u32| {
            L::Wheel::new(compiled.horizon, slots as u32, addresses.block_shift, (1 << vc_shift) / events_of_port).ok_or_else(too_large)
        };
        let block_ports = 1u32 << (addresses.block_shift - vc_shift);
        let first_class = if scenario.has_background() { scenario.classes.len() as u8 } else { 0 };
        let border = Border::new::<L>(addresses, &compiled.crossings, tile as u32, compiled.tiles.len());
        let first_gaps = Gaps::at_first(scenario, &parameters);
        let routers = share.routers.iter().copied().zip(addresses.router_port.iter().copied());
        let bubbles = Bubbles::of(scenario, routers, addresses.first_terminal_port as usize);
        let in_flight = InFlight { arrivals: wheel(1)?, credits: wheel(compiled.credits_of_port)?, due: Vec::new(), border };
        let mut own = Self {
            scenario,
            cycle: 0,
            layout: L::new(&parameters, addresses.first_terminal_port, addresses.ports),
            wiring: Wiring::new(addresses, &parameters),
            in_flight,
            buffers: Buffered { rings, shared: Buffers::new(router, ports, vc_shift) },
            blocks: Blocks::new(&parameters, block_ports.min(addresses.first_terminal_port) as usize, vc_shift),
            terminals: Terminals::new(share.terminals.len() as u32, &parameters, Memories::of(scenario, share, vc_shift)),
            edge: Edge::new(scenario, share, addresses.block_shift - vc_shift),
            packets: Packets::new(edge::longest_packet(scenario), first_class, edge::tags_packets(scenario), first_gaps),
            statistics: Statistics::new(share, addresses.first_border_port, scenario.failure.is_some()),
            routing: RouteState::new(scenario, share, addresses.first_terminal_port, vc_shift),
            vc_allocation: VcAllocation { bubbles, ..VcAllocation::default() },
            prediction,
            parameters,
        };
        own.connect(compiled, tile);
        Ok(own)
    }

    /// Fills in links and pointers from the network.
    fn connect(&mut self, compiled: &Compiled, tile: usize) {
        let network = &self.scenario.network;
        let Share { routers, terminals } = self.parameters.share.clone();
        self.in_flight.border.connect::<L>(&mut self.wiring.links);
        for &router in routers.iter() {
            let (base, ports) = (self.wiring.first_port(router), network.port_count(RouterId(router)));
            for port in base..base + ports {
                self.wiring.router_of_port[port] = self.wiring.own_number(router);
                self.layout.connect_input(port, base);
            }
            // Pointers start at the router's first slot.
            let first = base << L::Mask::SHIFT;
            for slot in first..(base + ports) << L::Mask::SHIFT {
                self.layout.output_slot_mut(slot).grant_pointer = first;
                self.layout.input_slot_mut(slot).accept_pointer = first;
            }
            for port in 0..ports {
                self.connect_port(base + port, compiled, tile);
                if network.output_channel(RouterId(router), port as u16).is_some() {
                    self.layout.connect_output(base + port, base, &self.parameters);
                }
            }
        }
        let slots = || 0..self.parameters.first_terminal_port << L::Mask::SHIFT;
        self.vc_allocation.allocator = allocators::build(&self.scenario.router.vc_allocator).map(|allocator| AllocatorWithPointers {
            allocator,
            row: slots().map(|slot| self.layout.input_slot(slot).accept_pointer).collect(),
            column: slots().map(|slot| self.layout.output_slot(slot).grant_pointer).collect(),
        });
        for terminal in 0..terminals.len() as u32 {
            let port = self.parameters.first_terminal_port + terminal;
            self.connect_port(port, compiled, tile);
            self.terminals.connect(terminal, &self.wiring.links[port]);
        }
        self.layout.connect_links(&self.wiring.links);
    }

    /// Notes where the flits and the credits of a port go, if that is in the tile, and how long they take.
    fn connect_port(&mut self, port: u32, compiled: &Compiled, tile: usize) {
        let network = &*self.scenario.network;
        let (leaving, coming) = (self.channel_of_port(port), self.channel_into_port(port));
        let own = |end: Endpoint| (compiled.partition.tile_of(end) == tile).then(|| compiled.tiles[tile].port_of(end));
        let links = &mut self.wiring.links[port];
        if let Some(channel) = leaving {
            links.flit_link = own(network.destination(channel)).map_or(links.flit_link, |to| to << L::Mask::SHIFT);
            links.flit_delay = compiled.delays.flit(network, channel) as u16;
            if self.parameters.periodic {
                self.wiring.period[port] = network.link(channel).period;
            }
        }
        if let Some(channel) = coming {
            links.credit_link = own(network.source(channel)).map_or(links.credit_link, |from| from << L::Mask::SHIFT);
            links.credit_delay = compiled.delays.credit(network, channel) as u16;
        }
    }

    /// Flits that the virtual channel of a router's output slot may send now.
    #[inline(always)]
    pub(crate) fn room(&self, slot: u32) -> u32 {
        self.buffers.shared.as_ref().map_or_else(|| self.layout.credits(slot), |buffers| buffers.room(slot))
    }

    /// The first slot address of the terminals.
    #[inline(always)]
    pub(crate) fn first_terminal_slot(&self) -> u32 {
        self.parameters.first_terminal_port << L::Mask::SHIFT
    }

    /// The channel that leaves by this port address.
    pub(crate) fn channel_of_port(&self, port: u32) -> Option<ChannelId> {
        self.place_of_port(port).and_then(|place| match place {
            Endpoint::Terminal(terminal) => Some(self.scenario.network.injection_channel(terminal)),
            Endpoint::Router(router, port) => self.scenario.network.output_channel(router, port),
        })
    }

    /// The channel that arrives at this port address.
    pub(crate) fn channel_into_port(&self, port: u32) -> Option<ChannelId> {
        self.place_of_port(port).and_then(|place| match place {
            Endpoint::Terminal(terminal) => Some(self.scenario.network.ejection_channel(terminal)),
            Endpoint::Router(router, port) => self.scenario.network.input_channel(router, port),
        })
    }

    /// What has this port address in the network; nothing in gaps.
    fn place_of_port(&self, port: u32) -> Option<Endpoint> {
        let first_terminal = self.parameters.first_terminal_port;
        if port >= first_terminal {
            return Some(Endpoint::Terminal(self.parameters.share.terminal(port - first_terminal)));
        }
        (self.wiring.router_of_port[port] != NONE).then(|| {
            let RouterPlace { router, first_port } = self.wiring.router_at(port);
            Endpoint::Router(RouterId(router), (port - first_port) as u16)
        })
    }
}
