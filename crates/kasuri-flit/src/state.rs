//! The state of a simulation in flat columns, and its construction from a scenario.
//!
//! **Addresses.** Every port of every router has a *port address*; a virtual channel of a port has the *slot address*
//! `port address * stride + virtual channel`, where the stride is the number of virtual channels rounded up to a power of two.
//! A terminal has a port address too: its input side is the sink, its output side is the source. An input slot is the buffer of
//! a virtual channel; the output slot of the same address is the upstream's account of the buffer at the other end of the link.
//!
//! **Tiles.** Addresses are cut into tiles of `2^tile_shift` slots; a router never straddles two. Nothing that a tile posts
//! arrives before the end of the present window of cycles, so a tile runs through a window while its state is in the cache.

use crate::allocator::{self, PlainAllocator};
use crate::buffer::{Buffers, flits_of_port};
use crate::claims::Claims;
use crate::clock::Clock;
use crate::edge::{self, Edge, Terminals};
use crate::lanes::Lanes;
use crate::lanes::general::Form;
use crate::list::List;
use crate::lookahead::Lookahead;
use crate::packets::Packets;
use crate::prediction::{PredictionUnit, advance, leaves_router};
use crate::rings::{Queue, Rings};
use crate::route_memo::RouteMemo;
use crate::select;
use crate::shares::Granted;
use crate::statistics::Statistics;
use crate::support::RouterLayout;
use crate::vc_mask::VcMask;
use crate::wheel::Wheel;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{AllocatorParameters, Architecture, Bidding, Congestion, Switching, Turns, VcRelease};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::memory::Column;
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::rng::Purpose;
use kasuri_network::routing::{Candidate, VirtualChannels};

/// Marks "none" in a column of addresses or packets.
pub(crate) const NONE: u32 = u32::MAX;

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
    /// Is the port in its tile's list for virtual-channel allocation?
    pub(crate) listed: bool,
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

/// A packet in the network or at the head of its source queue.
#[derive(Clone, Copy, Debug)]
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
    /// Has one of its flits followed the one before it after a long gap?
    pub(crate) has_long_gap: bool,
    /// Is the record in use?
    pub(crate) alive: bool,
}

/// An allocator for virtual channels and its round-robin pointers, by input and output slot.
pub(crate) struct GeneralAllocator {
    pub(crate) allocator: PlainAllocator,
    pub(crate) row: Column<u32>,
    pub(crate) column: Column<u32>,
}

/// The lists of one tile. They keep their memory from cycle to cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tile {
    /// Output ports where heads wait for a virtual channel and something has changed.
    pub(crate) allocate: List,
    /// The same for the next cycle.
    pub(crate) allocate_next: List,
    /// Input slots whose front is a new head.
    pub(crate) heads: List,
    /// The same for the next cycle: the tail before it has just left.
    pub(crate) heads_next: List,
    /// Routed heads that wait for the end of a long route computation, by cycle.
    delayed: Vec<Vec<u32>>,
}

impl Tile {
    fn new(parameters: &Parameters, ports: usize, shift: u32) -> Self {
        let list = List::with_capacity;
        Self {
            allocate: list(ports),
            allocate_next: list(ports),
            heads: list(ports << shift),
            heads_next: list(ports << shift),
            delayed: vec![Vec::new(); parameters.route_cycles as usize],
        }
    }

    /// Is there nothing to do without a new event?
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.allocate.is_empty() && self.heads.is_empty() && self.delayed.iter().all(Vec::is_empty)
    }

    /// The lists for the next cycle become those of the present one.
    #[inline(always)]
    pub(crate) fn turn(&mut self) {
        std::mem::swap(&mut self.allocate, &mut self.allocate_next);
        std::mem::swap(&mut self.heads, &mut self.heads_next);
        self.heads_next.clear();
        self.allocate_next.clear();
    }

    /// The routed heads that begin to bid in cycle `now`, a multiple of the route computation after they were routed.
    pub(crate) fn delayed(&mut self, now: u64) -> &mut Vec<u32> {
        let cycles = self.delayed.len() as u64;
        &mut self.delayed[(now % cycles) as usize]
    }
}

/// What the cycle needs to know of the router, worked out once.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) virtual_channels: u32,
    pub(crate) tile_shift: u32,
    pub(crate) buffer_flits: u16,
    pub(crate) route_cycles: u32,
    pub(crate) traversal_cycles: u32,
    /// The steps of the routers.
    pub(crate) clock: Clock,
    pub(crate) bidding: Bidding,
    pub(crate) switching: Switching,
    pub(crate) release: VcRelease,
    /// Have the routers a queue for each output, so that packets enter by that of their first one?
    pub(crate) restricts_entry: bool,
    /// Does a packet that has found no virtual channel draw others in the next cycle?
    pub(crate) redraws_entry: bool,
    /// Takes each output from its queues, whatever other outputs take from the same input?
    pub(crate) crosspoint: bool,
    /// Does any channel need more than one cycle for a flit, so that it is kept how long each is busy?
    pub(crate) periodic: bool,
    /// Is the state larger than the near caches, so that loops fetch what they will need?
    pub(crate) fetches: bool,
    /// Does the processor have the features of `advance_window_modern`?
    pub(crate) modern: bool,
    pub(crate) switch_allocator: AllocatorParameters,
    /// What routers of the general form need besides.
    pub(crate) form: Option<Form>,
    /// What users are granted of the switches' outputs, if these are divided.
    pub(crate) granted: Option<Granted>,
    /// Cycles that a tile runs without looking at the others.
    pub(crate) window: u32,
    pub(crate) first_terminal_port: u32,
    pub(crate) router_tiles: u32,
    pub(crate) tiles: u32,
}

/// How the ports are wired. One entry per port address, terminals' included.
pub(crate) struct Wiring {
    pub(crate) links: Column<Links>,
    /// Cycles that a flit occupies the port's channel; empty unless some channel needs more than one.
    pub(crate) period: Column<u32>,
    /// By port of a router: flits that have crossed the switch and are not counted as sent on the channel.
    pub(crate) before_channel: Column<u32>,
    /// The router of a port address, [`NONE`] in gaps and for terminals.
    pub(crate) router_of_port: Column<u32>,
    /// First port address of each router.
    pub(crate) router_port: Column<u32>,
}

impl Wiring {
    /// Ports that nothing connects.
    fn new(addresses: &Addresses, routers: u32, periodic: bool) -> Self {
        let ports = addresses.ports as usize;
        let unconnected =
            Links { flit_link: NONE, credit_link: NONE, flit_delay: 0, credit_delay: 0, sent: 0, request_head: NONE, listed: false };
        Self {
            links: Column::filled(ports, unconnected),
            period: Column::filled(if periodic { ports } else { 0 }, 1),
            before_channel: Column::filled(addresses.first_terminal_port as usize, 0),
            router_of_port: Column::filled(ports, NONE),
            router_port: Column::filled(routers as usize, 0),
        }
    }
}

/// What is on its way between ports.
pub(crate) struct InFlight<W> {
    pub(crate) arrivals: W,
    pub(crate) credits: W,
    /// What is due at the terminals of a tile in the present cycle.
    pub(crate) due: Vec<u32>,
}

/// The flits that wait in buffers.
pub(crate) struct Buffered {
    /// Whose they are.
    pub(crate) rings: Rings,
    /// Who has how much of the buffers, where virtual channels share them.
    pub(crate) shared: Option<Box<Buffers>>,
}

/// What routes are found with.
pub(crate) struct RouteState {
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
}

impl RouteState {
    fn new(scenario: &Scenario, router_slots: u32) -> Self {
        let looks_at_claims = scenario.routing.observes_congestion() && scenario.router.congestion == Congestion::Claimed;
        Self {
            seed: scenario.streams.key(Purpose::Routing),
            channels_of_class: edge::packet_channels(scenario),
            candidates: Vec::new(),
            memo: RouteMemo::new(&*scenario.routing, &scenario.network, router_slots),
            claims: looks_at_claims.then(|| Box::new(Claims::new(router_slots as usize))),
            lookahead: Lookahead::of(scenario),
        }
    }
}

/// How virtual channels are allocated in plain routers.
#[derive(Default)]
pub(crate) struct VcAllocation {
    /// An allocator that is not the built-in iSLIP of one iteration, with its pointers.
    pub(crate) allocator: Option<GeneralAllocator>,
    /// The requests and the matches of a port; memory to use.
    pub(crate) requests: Vec<(u32, u32)>,
    pub(crate) matches: Vec<(u32, u32)>,
}

/// A running simulation. `L` is the layout of the routers' virtual channels.
pub(crate) struct Simulation<'a, L: Lanes> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) parameters: Parameters,
    pub(crate) cycle: u64,
    pub(crate) lanes: L,
    pub(crate) wiring: Wiring,
    pub(crate) in_flight: InFlight<L::Wheel>,
    pub(crate) buffers: Buffered,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) terminals: Terminals<L::Mask>,
    pub(crate) edge: Edge<'a>,
    pub(crate) packets: Packets,
    pub(crate) statistics: Statistics,
    pub(crate) routing: RouteState,
    pub(crate) vc_allocation: VcAllocation,
    /// What the routers need to predict, if they do.
    pub(crate) prediction: Option<Box<PredictionUnit<'a>>>,
}

/// A tile holds about this many slots: its state then fits into a second-level cache beside its neighbours' lists.
const TILE_SLOTS_SHIFT: u32 = 14;

/// The state of so many slots lies in the near caches, about 100 bytes each.
const NEAR_SLOTS: u64 = 1 << 13;

/// A tile holds at least this many slots, however small the network: those of the widest routers of the vector layout.
const LEAST_TILE_SHIFT: u32 = 8;

/// Longest window; longer ones gain nothing and make the wheels longer.
const MAX_WINDOW: u32 = 4;

pub(crate) struct Addresses {
    router_port: Vec<u32>,
    slots_of_routers: u64,
    pub(crate) first_terminal_port: u32,
    pub(crate) ports: u32,
    pub(crate) tile_shift: u32,
}

/// Gives every router a range of port addresses within one tile, then the terminals, starting at a tile of their own.
fn assign_addresses<L: Lanes>(network: &Network) -> Result<Addresses, Refusal> {
    let shift = L::Mask::SHIFT;
    let widest = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
    let reserved = |router| u64::from(L::reserved_slots(network.port_count(RouterId(router)) << shift, widest << shift) >> shift).max(1);
    let slots_of_routers = (0..network.router_count()).map(reserved).sum::<u64>() << shift;
    // A small network is one tile, and takes no more memory than that.
    let fitting = TILE_SLOTS_SHIFT.min(slots_of_routers.next_power_of_two().trailing_zeros()).max(LEAST_TILE_SHIFT);
    let tile_shift = fitting.max(u64::from(widest << shift).next_power_of_two().trailing_zeros());
    let tile_ports = 1u64 << (tile_shift - shift);
    let mut next = 0u64;
    let mut router_port = Vec::with_capacity(network.router_count() as usize);
    for router in 0..network.router_count() {
        let ports = reserved(router);
        if next / tile_ports != (next + ports - 1) / tile_ports {
            next = next.next_multiple_of(tile_ports);
        }
        router_port.push(next as u32);
        next += ports;
    }
    let first_terminal_port = next.next_multiple_of(tile_ports);
    let ports = first_terminal_port + u64::from(network.terminal_count());
    if ports << shift >= u64::from(NONE) {
        let reason = format!("the flit engine names at most 2^32 virtual channels; this network has {ports} ports of {}", 1 << shift);
        return Err(Refusal::new("network", reason));
    }
    Ok(Addresses { router_port, slots_of_routers, first_terminal_port: first_terminal_port as u32, ports: ports as u32, tile_shift })
}

/// What is worked out of a scenario before anything is made: addresses, times, sizes. All limits of the engine are checked on the way.
pub(crate) struct Compiled {
    pub(crate) addresses: Addresses,
    delays: Delays,
    pub(crate) parameters: Parameters,
    pub(crate) packets_per_buffer: u32,
    /// Cycles that the wheels of flits and credits take, and the credits that a port may send in a cycle.
    pub(crate) horizon: u32,
    pub(crate) credits_of_port: u32,
}

impl Compiled {
    /// Works them out for a layout.
    ///
    /// # Errors
    /// The network is too large for 32-bit addresses, or a latency for 16 bits.
    pub(crate) fn of<L: Lanes>(scenario: &Scenario) -> Result<Self, Refusal> {
        let network = &*scenario.network;
        let router = &scenario.router;
        let vc_shift = L::Mask::SHIFT;
        let addresses = assign_addresses::<L>(network)?;
        let (ports, slots) = (addresses.ports as usize, (addresses.ports as usize) << vc_shift);
        let delays = Delays::new(scenario)?;
        let predicts = router.predictor != kasuri_network::predictor::NONE;
        // A buffer of B flits holds parts of at most (B - 1) / shortest + 1 packets; one more may have been announced.
        let depth = router.channel_depth();
        let packets_per_buffer = (depth - 1) / edge::shortest_packet(scenario) + 2;
        if Rings::length(slots, packets_per_buffer).is_none() {
            let channels = router.virtual_channels;
            let reason = format!("the buffers of {ports} ports, {channels} virtual channels and {depth} flits each take too much memory");
            return Err(Refusal::new("router.buffer_flits", reason));
        }
        let router_tiles = addresses.first_terminal_port >> (addresses.tile_shift - vc_shift);
        let tiles = (((addresses.ports as u64) << vc_shift).div_ceil(1 << addresses.tile_shift)) as u32;
        // Whatever a message brings about may concern any terminal in the next cycle.
        let lookahead = Lookahead::of(scenario);
        // Who decides ahead looks at routers of other tiles; an arrival that is not answered may open its source's window.
        let opens_windows = scenario.classes.iter().any(|class| class.window.outstanding.is_some() && class.reply.is_none());
        let window = if scenario.workload.is_some() || scenario.endpoint.is_some() || lookahead.is_some() || opens_windows {
            1
        } else {
            delays.least.clamp(1, MAX_WINDOW)
        };
        let periodic = select::has_slow_channel(network);
        let parameters = Parameters {
            virtual_channels: router.virtual_channels,
            tile_shift: addresses.tile_shift,
            buffer_flits: depth as u16,
            route_cycles: scenario.pipeline.route_cycles,
            traversal_cycles: scenario.pipeline.traversal_cycles,
            clock: Clock::new(router.internal_speedup),
            bidding: scenario.pipeline.bidding,
            switching: router.switching,
            release: router.vc_release,
            restricts_entry: router.architecture != Architecture::InputQueued || scenario.routing.restricts_entry(),
            redraws_entry: scenario.routing.redraws_entry(),
            crosspoint: router.architecture == Architecture::Crosspoint,
            periodic,
            fetches: addresses.slots_of_routers > NEAR_SLOTS,
            modern: is_modern(),
            switch_allocator: router.switch_allocator.clone(),
            form: (L::LAYOUT == RouterLayout::Full).then(|| Form {
                router: router.clone(),
                computation_steps: scenario.pipeline.computation_cycles,
                traversal_steps: scenario.pipeline.traversal_cycles,
                streams: scenario.streams,
                offers_several: scenario.routing.offers_several(),
                speculates: scenario.pipeline.bidding == Bidding::Speculative,
                vc_turns: router.vc_allocator.turns() == Turns::Waiting,
                switch_turns: router.switch_allocator.turns() == Turns::Waiting,
            }),
            granted: Granted::of(scenario),
            window,
            first_terminal_port: addresses.first_terminal_port,
            router_tiles,
            tiles,
        };
        // In a cycle a port may send a credit for a flit that passes on, and one for a flit that wins the switch; one for each queue of a
        // crosspoint router.
        if let Some(form) = &parameters.form {
            form.check_size(network)?;
        }
        // In the general form, one for each input of the switch; a flit or a credit may have to wait for its channel.
        let general_credits = parameters.form.as_ref().map(|form| form.router.input_speedup.min(1 << vc_shift));
        let usual_credits = if parameters.crosspoint { 1 << vc_shift } else { 1 + u32::from(predicts && vc_shift > 0) };
        let credits_of_port = general_credits.unwrap_or(usual_credits);
        let longest_wait = match &parameters.form {
            Some(form) => form.longest_wait(),
            None if parameters.clock.is_plain() => 0,
            None => flits_of_port(router),
        };
        let horizon = delays.greatest + longest_wait + window + 1;
        let compiled = Self { addresses, delays, parameters, packets_per_buffer, horizon, credits_of_port };
        let fits =
            |events_of_port: u32| L::Wheel::fits(horizon, slots as u32, compiled.addresses.tile_shift, (1 << vc_shift) / events_of_port);
        if !fits(1) || !fits(credits_of_port) {
            let (ports, greatest) = (compiled.addresses.ports, compiled.delays.greatest);
            let reason =
                format!("{ports} ports and channels of up to {greatest} cycles need more event lists than the flit engine can name");
            return Err(Refusal::new("network", reason));
        }
        Ok(compiled)
    }
}

impl<'a, L: Lanes> Simulation<'a, L> {
    /// Makes the columns of a scenario.
    ///
    /// # Errors
    /// They take too much memory.
    pub(crate) fn new(scenario: &'a Scenario, compiled: Compiled) -> Result<Self, Refusal> {
        let network = &*scenario.network;
        let router = &scenario.router;
        let vc_shift = L::Mask::SHIFT;
        let Compiled { addresses, delays, parameters, packets_per_buffer, horizon, credits_of_port } = compiled;
        let (ports, slots) = (addresses.ports as usize, (addresses.ports as usize) << vc_shift);
        let prediction = PredictionUnit::new(scenario, &addresses.router_port, addresses.first_terminal_port, L::Mask::BITS)?;
        let (router_tiles, periodic) = (parameters.router_tiles, parameters.periodic);
        let too_large = || Refusal::new("network", "the buffers of all ports take too much memory");
        let rings = Rings::new(slots, packets_per_buffer).ok_or_else(too_large)?;
        let wheel = |events_of_port: u32| {
            L::Wheel::new(horizon, slots as u32, addresses.tile_shift, (1 << vc_shift) / events_of_port).ok_or_else(too_large)
        };
        let tile_ports = 1u32 << (addresses.tile_shift - vc_shift);
        let ports_of_tile = |tile: u32| tile_ports.min(addresses.first_terminal_port - tile * tile_ports) as usize;
        let first_class = if scenario.has_background() { scenario.classes.len() as u8 } else { 0 };
        let mut simulation = Self {
            scenario,
            cycle: 0,
            lanes: L::new(&parameters, addresses.first_terminal_port, addresses.ports),
            wiring: Wiring::new(&addresses, network.router_count(), periodic),
            in_flight: InFlight { arrivals: wheel(1)?, credits: wheel(credits_of_port)?, due: Vec::new() },
            buffers: Buffered { rings, shared: Buffers::new(router, ports, vc_shift) },
            tiles: (0..router_tiles).map(|tile| Tile::new(&parameters, ports_of_tile(tile), vc_shift)).collect(),
            terminals: Terminals::new(network.terminal_count(), &parameters),
            edge: Edge::new(scenario, addresses.tile_shift - vc_shift),
            packets: Packets::new(edge::longest_packet(scenario), first_class),
            statistics: Statistics::new(network),
            routing: RouteState::new(scenario, addresses.first_terminal_port << vc_shift),
            vc_allocation: VcAllocation::default(),
            prediction,
            parameters,
        };
        simulation.connect(&addresses.router_port, &delays);
        Ok(simulation)
    }

    /// Fills in links and pointers from the network.
    fn connect(&mut self, router_port: &[u32], delays: &Delays) {
        let network = &self.scenario.network;
        for router in 0..network.router_count() {
            let (base, ports) = (router_port[router as usize], network.port_count(RouterId(router)));
            self.wiring.router_port[router] = base;
            for port in base..base + ports {
                self.wiring.router_of_port[port] = router;
                self.lanes.connect_input(port, base);
            }
            // Pointers start at the router's first slot.
            let first = base << L::Mask::SHIFT;
            for slot in first..(base + ports) << L::Mask::SHIFT {
                self.lanes.output_slot_mut(slot).grant_pointer = first;
                self.lanes.input_slot_mut(slot).accept_pointer = first;
            }
        }
        for channel in (0..network.channel_count()).map(ChannelId) {
            self.connect_channel(channel, router_port, delays);
        }
        let slots = || 0..self.parameters.first_terminal_port << L::Mask::SHIFT;
        self.vc_allocation.allocator = allocator::build(&self.scenario.router.vc_allocator).map(|allocator| GeneralAllocator {
            allocator,
            row: slots().map(|slot| self.lanes.input_slot(slot).accept_pointer).collect(),
            column: slots().map(|slot| self.lanes.output_slot(slot).grant_pointer).collect(),
        });
        self.lanes.connect_links(&self.wiring.links);
        for terminal in 0..network.terminal_count() {
            self.terminals.connect(terminal, &self.wiring.links[self.parameters.first_terminal_port + terminal]);
        }
    }

    fn connect_channel(&mut self, channel: ChannelId, router_port: &[u32], delays: &Delays) {
        let network = &self.scenario.network;
        let first_terminal_port = self.parameters.first_terminal_port;
        let address = |endpoint| match endpoint {
            Endpoint::Router(router, port) => router_port[router.index()] + u32::from(port),
            Endpoint::Terminal(terminal) => first_terminal_port + terminal.0,
        };
        let (from, to) = (address(network.source(channel)), address(network.destination(channel)));
        self.wiring.links[from].flit_link = to << L::Mask::SHIFT;
        self.wiring.links[from].flit_delay = delays.flit(network, channel) as u16;
        self.wiring.links[to].credit_link = from << L::Mask::SHIFT;
        self.wiring.links[to].credit_delay = delays.credit(network, channel) as u16;
        if let Endpoint::Router(router, _) = network.source(channel) {
            self.lanes.connect_output(from, router_port[router.index()], &self.parameters);
        }
        if self.parameters.periodic {
            self.wiring.period[from] = network.link(channel).period;
        }
    }

    /// Flits that the virtual channel of a router's output slot may send now.
    #[inline(always)]
    pub(crate) fn room(&self, slot: u32) -> u32 {
        self.buffers.shared.as_ref().map_or_else(|| self.lanes.credits(slot), |buffers| buffers.room(slot))
    }

    /// The first slot address of the terminals.
    #[inline(always)]
    pub(crate) fn first_terminal_slot(&self) -> u32 {
        self.parameters.first_terminal_port << L::Mask::SHIFT
    }

    /// The terminal of a terminal's port address.
    #[inline(always)]
    pub(crate) fn terminal_of_port(&self, port: u32) -> TerminalId {
        TerminalId(port - self.parameters.first_terminal_port)
    }

    /// The channel that leaves by this port address.
    pub(crate) fn channel_of_port(&self, port: u32) -> Option<ChannelId> {
        let network = &self.scenario.network;
        if port >= self.parameters.first_terminal_port {
            return Some(network.injection_channel(self.terminal_of_port(port)));
        }
        let router = self.wiring.router_of_port[port];
        if router == NONE {
            return None;
        }
        network.output_channel(RouterId(router), (port - self.wiring.router_port[router]) as u16)
    }

    /// The channel that arrives at this port address.
    pub(crate) fn channel_into_port(&self, port: u32) -> Option<ChannelId> {
        let network = &self.scenario.network;
        if port >= self.parameters.first_terminal_port {
            return Some(network.ejection_channel(self.terminal_of_port(port)));
        }
        let router = self.wiring.router_of_port[port];
        if router == NONE {
            return None;
        }
        network.input_channel(RouterId(router), (port - self.wiring.router_port[router]) as u16)
    }
}

/// Does the processor have BMI2 and its companions? (x86-64-v3; every x86 server since 2015.)
fn is_modern() -> bool {
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

/// Cycles that flits and credits are on their way.
///
/// A flit granted in cycle `S` is sent in `S + traversal` and seen in `S + traversal + latency + 1`. A switch allocation of more
/// than one cycle delays each flit once per router: it is added to the way into the router. A credit is sent in `S`, seen in
/// `S + latency + 1`, and usable by a router after its credit delay; a source uses it at once (booksim-model 2.2).
#[derive(Clone, Copy, Debug)]
struct Delays {
    traversal: u32,
    switch_extra: u32,
    credit_delay: u32,
    least: u32,
    greatest: u32,
}

impl Delays {
    fn new(scenario: &Scenario) -> Result<Self, Refusal> {
        let mut delays = Self {
            traversal: scenario.pipeline.traversal_cycles,
            switch_extra: scenario.pipeline.switch_extra_cycles,
            credit_delay: scenario.router.credit_delay,
            least: u32::MAX,
            greatest: 0,
        };
        let network = &scenario.network;
        // A router that takes several steps in a cycle may send a flit in the cycle in which it is granted.
        let crossing_at_once = if scenario.router.internal_speedup > 1.0 { delays.traversal } else { 0 };
        let passing_on_early = if scenario.router.predictor == kasuri_network::predictor::NONE { 0 } else { advance(scenario) };
        for channel in (0..network.channel_count()).map(ChannelId) {
            let (flit, credit) = (delays.flit(network, channel), delays.credit(network, channel));
            let passing_on = if leaves_router(network, channel) { flit - passing_on_early - crossing_at_once } else { flit };
            delays.least = delays.least.min(passing_on).min(credit);
            delays.greatest = delays.greatest.max(flit).max(credit);
        }
        if delays.greatest > u32::from(u16::MAX) {
            let reason = format!("a flit or credit is {} cycles on its way; the flit engine takes at most {}", delays.greatest, u16::MAX);
            return Err(Refusal::new("network.channel_latency", reason));
        }
        Ok(delays)
    }

    fn flit(&self, network: &Network, channel: ChannelId) -> u32 {
        let from_router = matches!(network.source(channel), Endpoint::Router(..));
        let to_router = matches!(network.destination(channel), Endpoint::Router(..));
        let traversal = if from_router { self.traversal } else { 0 };
        let extra = if to_router { self.switch_extra } else { 0 };
        traversal + network.link(channel).latency + 1 + extra
    }

    fn credit(&self, network: &Network, channel: ChannelId) -> u32 {
        let to_router = matches!(network.source(channel), Endpoint::Router(..));
        network.link(channel).latency + 1 + if to_router { self.credit_delay } else { 0 }
    }
}
