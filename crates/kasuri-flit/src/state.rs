//! The state of a simulation in flat columns, and its construction from a scenario.
//!
//! **Addresses.** Every port of every router has a *port address*; a virtual channel of a port has the *slot address*
//! `port address * stride + virtual channel`, where the stride is the number of virtual channels rounded up to a power of two.
//! A terminal has a port address too: its input side is the sink, its output side is the source. An input slot is the buffer of
//! a virtual channel; the output slot of the same address is the upstream's account of the buffer at the other end of the link.
//!
//! **Tiles.** Addresses are cut into tiles of `2^tile_shift` slots; a router never straddles two. Nothing that a tile posts
//! arrives before the end of the present window of cycles, so a tile runs through a window while its state is in the cache.

use crate::allocator::{self, Allocator};
use crate::column::Column;
use crate::lanes::Lanes;
use crate::list::List;
use crate::source::Sources;
use crate::statistics::Statistics;
use crate::vc_mask::VcMask;
use crate::wheel::Wheel;
use kasuri_model::engine::EngineError;
use kasuri_model::id::{ChannelId, RouterId, TerminalId};
use kasuri_model::network::{Endpoint, Network};
use kasuri_model::router::{Bidding, Switching, VcRelease};
use kasuri_model::scenario::Scenario;

/// Marks "none" in a column of addresses or packets.
pub(crate) const NONE: u32 = u32::MAX;

/// The buffer of one virtual channel of an input port. In a sink, `output` is the packet that is arriving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputVc {
    /// The output slot that the front packet holds, or [`NONE`].
    pub(crate) output: u32,
    /// Flits in the buffer.
    pub(crate) flits: u16,
    /// Flits of the front packet that have not left yet.
    pub(crate) left: u16,
}

/// The upstream's account of one downstream buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputVc {
    /// The input slot whose packet holds this virtual channel, or [`NONE`].
    pub(crate) holder: u32,
    /// Free places in the downstream buffer.
    pub(crate) credits: u16,
    /// Where the next packet enters the downstream ring of packets.
    pub(crate) ring_tail: u16,
}

/// An output port. 16 bytes for up to 8 virtual channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputPort<M> {
    /// First slot of the input port at the other end of the channel, [`NONE`] if the port is not connected.
    pub(crate) link: u32,
    /// Flits sent since the statistics were last collected.
    pub(crate) sent: u32,
    /// Round-robin pointer over the router's input ports, relative to this port's address.
    pub(crate) grant_pointer: i16,
    /// Cycles from the switch grant until the flit can be used at the other end.
    pub(crate) flit_delay: u16,
    /// Virtual channels that are held, whose holder has a flit and which have a credit.
    pub(crate) ready: M,
    /// Virtual channels that nobody holds.
    pub(crate) free: M,
    /// Is the port in its tile's list of active ports?
    pub(crate) listed: bool,
    /// Is the port in its tile's list for virtual-channel allocation?
    pub(crate) vc_listed: bool,
}

/// An input port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputPort {
    /// First slot of the output port at the other end of the channel, for credits; [`NONE`] if the port is not connected.
    pub(crate) link: u32,
    /// The output slot that this port sends to in the present cycle, or [`NONE`].
    pub(crate) candidate: u32,
    /// Round-robin pointer over the router's output ports, relative to this port's address.
    pub(crate) accept_pointer: i16,
    /// Cycles from the switch grant until the credit can be used at the other end.
    pub(crate) credit_delay: u16,
    /// Round-robin pointer over the port's virtual channels.
    pub(crate) vc_pointer: u16,
}

/// A packet in the network or at the head of its source queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Cycle of creation.
    pub(crate) created: u64,
    /// Cycle in which the head entered the network.
    pub(crate) injected: u64,
    /// Cycle in which the flit that arrives next was injected (kept by the sink).
    pub(crate) flit_clock: u64,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// The routing's own state.
    pub(crate) route_state: u32,
    /// Running number of the packet at its source, for the random draws of its route.
    pub(crate) serial: u32,
    /// Length in flits.
    pub(crate) flits: u16,
    /// Flits delivered.
    pub(crate) delivered: u16,
    /// Routers crossed.
    pub(crate) hops: u16,
    /// Traffic class.
    pub(crate) class: u8,
    /// Is it the answer to a packet of its class?
    pub(crate) is_reply: bool,
    /// Is the record in use?
    pub(crate) alive: bool,
}

/// The lists of one tile. They keep their memory from cycle to cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tile {
    /// Output ports with a ready virtual channel.
    pub(crate) active: List,
    /// Input ports that send in the present cycle.
    pub(crate) winners: List,
    /// Output ports where heads wait for a virtual channel and something has changed.
    pub(crate) allocate: List,
    /// The same for the next cycle.
    pub(crate) allocate_next: List,
    /// Input slots whose front is a new head.
    pub(crate) heads: List,
    /// The same for the next cycle: the tail before it has just left.
    pub(crate) heads_next: List,
    /// Output slots granted in this cycle.
    pub(crate) granted: List,
    /// Speculative switch bids of this cycle: output port and input slot.
    pub(crate) speculative: Vec<(u32, u32)>,
    /// Routed heads that wait for the end of a long route computation, by cycle.
    pub(crate) delayed: Vec<Vec<u32>>,
    /// Requests and matches of an allocator that is not built in.
    pub(crate) requests: Vec<(u32, u32)>,
    pub(crate) matches: Vec<(u32, u32)>,
}

impl Tile {
    fn new(parameters: &Parameters, tile: u32, vc_shift: u32) -> Self {
        let tile_ports = 1 << (parameters.tile_shift - vc_shift);
        let first_port = tile * tile_ports;
        let ports = tile_ports.min(parameters.first_terminal_port - first_port) as usize;
        let slots = ports << vc_shift;
        let list = List::with_capacity;
        Self {
            active: list(ports),
            winners: list(ports),
            allocate: list(ports),
            allocate_next: list(ports),
            heads: list(slots),
            heads_next: list(slots),
            granted: list(slots),
            delayed: vec![Vec::new(); parameters.route_cycles as usize],
            ..Self::default()
        }
    }

    /// Is there anything to do without a new event?
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
            && self.allocate.is_empty()
            && self.heads.is_empty()
            && self.granted.is_empty()
            && self.delayed.iter().all(Vec::is_empty)
    }
}

/// What the cycle needs to know of the router, worked out once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    pub(crate) virtual_channels: u32,
    pub(crate) tile_shift: u32,
    pub(crate) ring_shift: u32,
    pub(crate) buffer_flits: u16,
    pub(crate) route_cycles: u32,
    pub(crate) bidding: Bidding,
    pub(crate) switching: Switching,
    pub(crate) release: VcRelease,
    /// Does any channel need more than one cycle for a flit?
    pub(crate) periodic: bool,
    /// Does the processor have the features of `advance_window_modern`?
    pub(crate) modern: bool,
    /// Wormhole, release at the tail, every channel a flit a cycle, built-in switch allocator: the loops of `lanes.rs` serve.
    pub(crate) plain: bool,
    /// Cycles that a tile runs without looking at the others.
    pub(crate) window: u32,
    pub(crate) first_terminal_port: u32,
    pub(crate) router_tiles: u32,
    pub(crate) tiles: u32,
}

/// A running simulation. `M` holds the virtual channels of a port.
pub(crate) struct Simulation<'a, M> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) parameters: Parameters,
    pub(crate) cycle: u64,
    // One entry per slot.
    pub(crate) input: Column<InputVc>,
    pub(crate) output: Column<OutputVc>,
    pub(crate) ring: Column<u32>,
    pub(crate) ring_head: Column<u16>,
    /// The next input slot that waits for a virtual channel of the same output port.
    pub(crate) request_next: Column<u32>,
    /// The virtual channels that it may take: first and last.
    pub(crate) request_range: Column<(u8, u8)>,
    /// Round-robin pointer of an output virtual channel over input slots.
    pub(crate) vc_grant_pointer: Column<u32>,
    /// Round-robin pointer of an input slot over output slots.
    pub(crate) vc_accept_pointer: Column<u32>,
    // One entry per port.
    pub(crate) output_port: Column<OutputPort<M>>,
    pub(crate) input_port: Column<InputPort>,
    /// The first input slot that waits for a virtual channel of the port.
    pub(crate) request_head: Column<u32>,
    /// Cycles that a flit occupies the port's channel, and the cycle from which it is free; empty unless `periodic`.
    pub(crate) period: Column<u32>,
    pub(crate) busy_until: Column<u64>,
    /// Pointers of switch allocators that are not built in; empty otherwise.
    pub(crate) switch_row_pointer: Column<u32>,
    pub(crate) switch_column_pointer: Column<u32>,
    /// The router of a port address, [`NONE`] in gaps and for terminals.
    pub(crate) router_of_port: Column<u32>,
    /// First port address of each router.
    pub(crate) router_port: Column<u32>,
    // Events.
    pub(crate) arrivals: Wheel,
    pub(crate) credits: Wheel,
    pub(crate) tiles: Vec<Tile>,
    // Terminals and packets.
    pub(crate) sources: Sources,
    pub(crate) packets: Vec<Packet>,
    pub(crate) free_packets: Vec<u32>,
    /// Gap between the injections of successive flits of each packet, less 1; 255 means: look in `long_gaps`.
    pub(crate) gaps: Vec<u8>,
    pub(crate) long_gaps: std::collections::BTreeMap<(u32, u16), u64>,
    pub(crate) longest_packet: u32,
    pub(crate) statistics: Statistics,
    /// Flits in buffers and on channels.
    pub(crate) flits_inside: u64,
    /// Allocators that are not the built-in iSLIP of one iteration.
    pub(crate) vc_allocator: Option<Box<dyn Allocator>>,
    pub(crate) switch_allocator: Option<Box<dyn Allocator>>,
    pub(crate) candidates: Vec<kasuri_model::routing::Candidate>,
    pub(crate) routing_seed: u64,
}

/// A tile holds about this many slots: its state then fits into a second-level cache beside its neighbours' lists.
const TILE_SLOTS_SHIFT: u32 = 14;

/// Longest window; longer ones gain nothing and make the wheels longer.
const MAX_WINDOW: u32 = 4;

struct Addresses {
    router_port: Vec<u32>,
    first_terminal_port: u32,
    ports: u32,
    tile_shift: u32,
}

/// Gives every router a range of port addresses within one tile, then the terminals, starting at a tile of their own.
fn assign_addresses(network: &Network, vc_shift: u32) -> Result<Addresses, EngineError> {
    let widest = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
    let tile_shift = TILE_SLOTS_SHIFT.max(u64::from(widest << vc_shift).next_power_of_two().trailing_zeros());
    let tile_ports = 1u64 << (tile_shift - vc_shift);
    let mut next = 0u64;
    let mut router_port = Vec::with_capacity(network.router_count() as usize);
    for router in 0..network.router_count() {
        let ports = u64::from(network.port_count(RouterId(router)));
        if next / tile_ports != (next + ports.max(1) - 1) / tile_ports {
            next = next.next_multiple_of(tile_ports);
        }
        router_port.push(next as u32);
        next += ports;
    }
    let first_terminal_port = next.next_multiple_of(tile_ports);
    let ports = first_terminal_port + u64::from(network.terminal_count());
    if ports << vc_shift >= u64::from(NONE) {
        return Err(EngineError::TooLarge(format!(
            "the flit engine names at most 2^32 virtual channels; this network has {} ports of {} channels",
            ports,
            1 << vc_shift
        )));
    }
    Ok(Addresses { router_port, first_terminal_port: first_terminal_port as u32, ports: ports as u32, tile_shift })
}

impl<'a, M: VcMask> Simulation<'a, M> {
    /// Compiles a scenario into columns.
    ///
    /// # Errors
    /// The network is too large for 32-bit addresses, or a latency for 16 bits.
    pub(crate) fn new(scenario: &'a Scenario) -> Result<Self, EngineError> {
        let network = &*scenario.network;
        let router = &scenario.router;
        let vc_shift = M::SHIFT;
        let addresses = assign_addresses(network, vc_shift)?;
        let (ports, slots) = (addresses.ports as usize, (addresses.ports as usize) << vc_shift);
        let delays = Delays::new(scenario)?;
        let shortest = scenario.classes.iter().map(crate::source::shortest_packet).min().unwrap_or(1);
        let longest_packet = scenario.classes.iter().map(crate::source::longest_packet).max().unwrap_or(1);
        // A buffer of B flits holds parts of at most (B - 1) / shortest + 1 packets; one more may have been announced.
        let packets_per_buffer = (router.buffer_flits - 1) / shortest + 2;
        let ring_shift = packets_per_buffer.next_power_of_two().trailing_zeros();
        let router_tiles = addresses.first_terminal_port >> (addresses.tile_shift - vc_shift);
        let tiles = (((addresses.ports as u64) << vc_shift).div_ceil(1 << addresses.tile_shift)) as u32;
        let window = delays.least.clamp(1, MAX_WINDOW);
        let periodic = (0..network.channel_count()).any(|channel| network.link(ChannelId(channel)).period > 1);
        let switch_allocator = allocator::build(&router.switch_allocator);
        let parameters = Parameters {
            virtual_channels: router.virtual_channels,
            tile_shift: addresses.tile_shift,
            ring_shift,
            buffer_flits: router.buffer_flits as u16,
            route_cycles: scenario.pipeline.route_cycles,
            bidding: scenario.pipeline.bidding,
            switching: router.switching,
            release: router.vc_release,
            periodic,
            modern: is_modern(),
            plain: !periodic
                && router.switching == Switching::Wormhole
                && router.vc_release == VcRelease::Tail
                && switch_allocator.is_none(),
            window,
            first_terminal_port: addresses.first_terminal_port,
            router_tiles,
            tiles,
        };
        let tile_ports = 1u32 << (addresses.tile_shift - vc_shift);
        let wheel = || {
            Wheel::new(delays.greatest + window + 1, tiles, addresses.tile_shift, tile_ports.min(addresses.ports)).ok_or_else(|| {
                EngineError::TooLarge(format!(
                    "{} ports and channels of up to {} cycles need more event lists than the flit engine can name",
                    addresses.ports, delays.greatest
                ))
            })
        };
        let per_port = |needed: bool| if needed { ports } else { 0 };
        let mut simulation = Self {
            scenario,
            parameters,
            cycle: 0,
            input: Column::filled(slots, InputVc { output: NONE, flits: 0, left: 0 }),
            output: Column::filled(slots, OutputVc { holder: NONE, credits: 0, ring_tail: 0 }),
            ring: Column::filled(slots << ring_shift, 0),
            ring_head: Column::filled(slots, 0),
            request_next: Column::filled(slots, NONE),
            request_range: Column::filled(slots, (0, 0)),
            vc_grant_pointer: Column::filled(slots, 0),
            vc_accept_pointer: Column::filled(slots, 0),
            output_port: Column::filled(ports, unconnected_output()),
            input_port: Column::filled(ports, InputPort { link: NONE, candidate: NONE, accept_pointer: 0, credit_delay: 0, vc_pointer: 0 }),
            request_head: Column::filled(ports, NONE),
            period: Column::filled(per_port(parameters.periodic), 1),
            busy_until: Column::filled(per_port(parameters.periodic), 0),
            switch_row_pointer: Column::filled(per_port(switch_allocator.is_some()), 0),
            switch_column_pointer: Column::filled(per_port(switch_allocator.is_some()), 0),
            router_of_port: Column::filled(ports, NONE),
            router_port: Column::filled(network.router_count() as usize, 0),
            arrivals: wheel()?,
            credits: wheel()?,
            tiles: (0..router_tiles).map(|tile| Tile::new(&parameters, tile, vc_shift)).collect(),
            sources: Sources::new(scenario),
            packets: Vec::new(),
            free_packets: Vec::new(),
            gaps: Vec::new(),
            long_gaps: std::collections::BTreeMap::new(),
            longest_packet,
            statistics: Statistics::new(network),
            flits_inside: 0,
            vc_allocator: allocator::build(&router.vc_allocator),
            switch_allocator,
            candidates: Vec::new(),
            routing_seed: scenario.streams.key(kasuri_model::rng::Purpose::Routing),
        };
        simulation.connect(&addresses.router_port, &delays);
        simulation.start_sources();
        Ok(simulation)
    }

    /// Fills in ports and pointers from the network.
    fn connect(&mut self, router_port: &[u32], delays: &Delays) {
        let network = &self.scenario.network;
        for router in 0..network.router_count() {
            let base = router_port[router as usize];
            self.router_port[router] = base;
            for port in base..base + network.port_count(RouterId(router)) {
                self.router_of_port[port] = router;
                // Pointers start at the router's first port.
                self.output_port[port].grant_pointer = (i64::from(base) - i64::from(port)) as i16;
                self.input_port[port].accept_pointer = (i64::from(base) - i64::from(port)) as i16;
                if self.switch_row_pointer.len() > 0 {
                    self.switch_row_pointer[port] = base;
                    self.switch_column_pointer[port] = base;
                }
            }
            let (first, last) = (base << M::SHIFT, (base + network.port_count(RouterId(router))) << M::SHIFT);
            for slot in first..last {
                self.vc_grant_pointer[slot] = first;
                self.vc_accept_pointer[slot] = first;
            }
        }
        for channel in (0..network.channel_count()).map(ChannelId) {
            self.connect_channel(channel, router_port, delays);
        }
    }

    fn connect_channel(&mut self, channel: ChannelId, router_port: &[u32], delays: &Delays) {
        let network = &self.scenario.network;
        let address = |endpoint| match endpoint {
            Endpoint::Router(router, port) => router_port[router.index()] + u32::from(port),
            Endpoint::Terminal(terminal) => self.parameters.first_terminal_port + terminal.0,
        };
        let (from, to) = (address(network.source(channel)), address(network.destination(channel)));
        let shift = M::SHIFT;
        let output = &mut self.output_port[from];
        output.link = to << shift;
        output.flit_delay = delays.flit(network, channel) as u16;
        output.free = M::range(0, self.parameters.virtual_channels);
        let input = &mut self.input_port[to];
        input.link = from << shift;
        input.credit_delay = delays.credit(network, channel) as u16;
        for vc in 0..self.parameters.virtual_channels {
            self.output[from << shift | vc].credits = self.parameters.buffer_flits;
        }
        if self.parameters.periodic {
            self.period[from] = network.link(channel).period;
        }
    }

    /// The hot loops' hold on the columns.
    #[inline(always)]
    pub(crate) fn lanes(&mut self) -> Lanes<M> {
        Lanes {
            input: self.input.as_mut_ptr(),
            output: self.output.as_mut_ptr(),
            output_port: self.output_port.as_mut_ptr(),
            input_port: self.input_port.as_mut_ptr(),
            arrivals: self.arrivals.posts(),
            credits: self.credits.posts(),
            #[cfg(debug_assertions)]
            slots: self.input.len() as u32,
        }
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
        let router = self.router_of_port[port];
        if router == NONE {
            return None;
        }
        network.output_channel(RouterId(router), (port - self.router_port[router]) as u16)
    }

    /// The channel that arrives at this port address.
    pub(crate) fn channel_into_port(&self, port: u32) -> Option<ChannelId> {
        let network = &self.scenario.network;
        if port >= self.parameters.first_terminal_port {
            return Some(network.ejection_channel(self.terminal_of_port(port)));
        }
        let router = self.router_of_port[port];
        if router == NONE {
            return None;
        }
        network.input_channel(RouterId(router), (port - self.router_port[router]) as u16)
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

fn unconnected_output<M: VcMask>() -> OutputPort<M> {
    OutputPort {
        link: NONE,
        sent: 0,
        grant_pointer: 0,
        flit_delay: 0,
        ready: M::default(),
        free: M::default(),
        listed: false,
        vc_listed: false,
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
    fn new(scenario: &Scenario) -> Result<Self, EngineError> {
        let mut delays = Self {
            traversal: scenario.pipeline.traversal_cycles,
            switch_extra: scenario.pipeline.switch_extra_cycles,
            credit_delay: scenario.router.credit_delay,
            least: u32::MAX,
            greatest: 0,
        };
        let network = &scenario.network;
        for channel in (0..network.channel_count()).map(ChannelId) {
            let (flit, credit) = (delays.flit(network, channel), delays.credit(network, channel));
            delays.least = delays.least.min(flit).min(credit);
            delays.greatest = delays.greatest.max(flit).max(credit);
        }
        if delays.greatest > u32::from(u16::MAX) {
            return Err(EngineError::TooLarge(format!(
                "a flit or credit is {} cycles on its way; the flit engine takes at most {}",
                delays.greatest,
                u16::MAX
            )));
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
