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

use crate::facts;
use crate::record::allocators;
use crate::record::event::Events;
use crate::record::marks::NONE;
use crate::record::rings::Rings;
use crate::record::shared_buffers::Buffers;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::blocks::Blocks;
use crate::state::border::Border;
use crate::state::bubbles::Bubbles;
use crate::state::compiled::Compiled;
use crate::state::edge::Edge;
use crate::state::feed::PacketFeed;
use crate::state::in_flight::{Buffered, InFlight};
use crate::state::layout::RouterState;
use crate::state::memories::Memories;
use crate::state::packets::Packets;
use crate::state::parameters::Parameters;
use crate::state::prediction::PredictionUnit;
use crate::state::routing::RouteState;
use crate::state::share::Share;
use crate::state::statistics::Statistics;
use crate::state::terminals::Terminals;
use crate::state::vc_allocation::{AllocatorWithPointers, VcAllocation};
use crate::state::wiring::{RouterPlace, Wiring};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_network::network::Endpoint;

/// Makes what feeds the terminals of a share of a scenario, in blocks of `2^block_shift` terminals.
pub(crate) type FeedOf<'a> = fn(&'a Scenario, &Share, u32) -> Box<dyn PacketFeed + 'a>;

/// A running simulation. `L` is the layout of the routers' virtual channels.
pub(crate) struct Tile<'a, L: RouterState> {
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

impl<'a, L: RouterState> Tile<'a, L> {
    /// Makes the columns of one tile of a scenario.
    ///
    /// # Errors
    /// They take too much memory.
    pub(crate) fn new(scenario: &'a Scenario, compiled: &Compiled, tile: usize, feed_of: FeedOf<'a>) -> Result<Self, Refusal> {
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
        let block_ports_shift = addresses.block_shift - vc_shift;
        let block_ports = 1u32 << block_ports_shift;
        let first_class = if scenario.has_background() { scenario.classes.len() as u8 } else { 0 };
        let border = Border::new::<L>(addresses, &compiled.crossings, tile as u32, compiled.tiles.len());
        let first_gaps = parameters.first_gaps(scenario);
        let routers = share.routers.iter().copied().zip(addresses.router_port.iter().copied());
        let bubbles = Bubbles::of(scenario, routers, addresses.first_terminal_port as usize);
        let in_flight =
            InFlight { arrivals: wheel(1)?, credits: wheel(compiled.credits_of_port)?, due: Vec::new(), border, events: Events::default() };
        let mut own = Self {
            scenario,
            cycle: 0,
            layout: L::new(&parameters, addresses.first_terminal_port, addresses.ports),
            wiring: Wiring::new(addresses, &parameters),
            in_flight,
            buffers: Buffered { rings, shared: Buffers::new(router, ports, vc_shift) },
            blocks: Blocks::new(&parameters, block_ports.min(addresses.first_terminal_port) as usize, vc_shift),
            terminals: Terminals::new(share.terminals.len() as u32, &parameters, Memories::of(scenario, share, vc_shift)),
            edge: Edge::new(scenario, share, block_ports_shift, feed_of(scenario, share, block_ports_shift)),
            packets: Packets::new(scenario.longest_packet(), first_class, facts::tags_packets(scenario), first_gaps),
            statistics: Statistics::new(share, addresses.first_border_port, scenario.failure.is_some()),
            routing: RouteState::new(scenario, share, addresses.first_terminal_port, vc_shift),
            vc_allocation: VcAllocation { bubbles, ..VcAllocation::default() },
            prediction,
            parameters,
        };
        own.in_flight.events.wants_heads = own.edge.wants_head_events;
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
