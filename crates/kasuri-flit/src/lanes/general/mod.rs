//! The layout for routers in their general form: any allocators, several inputs and outputs of the switch for each port, several steps
//! in a cycle, output buffers, stages that work in batches, several candidate ports for a head.
//!
//! A router is taken as a whole, step by step (`cycle`), and only while it is awake: it falls asleep when a step asks for nothing, and
//! an arrival or a credit wakes it. So here, too, the cost follows the events.

mod clock;
mod cycle;

use super::Lanes;
use crate::allocator::{self, Making, Request, RouterAllocator, RouterShape};
use crate::state::{Links, NONE, Parameters, Simulation};
use crate::vc_mask::VcMask;
use crate::wheel::ListWheel;
use clock::{Batches, Clock};
use kasuri_model::engine::EngineError;
use kasuri_model::id::RouterId;
use kasuri_model::memory::Column;
use kasuri_model::network::Network;
use kasuri_model::rng::{Purpose, Streams};
use kasuri_model::router::{AllocatorParameters, Arbiter, ArbiterParameters, BufferPolicy, LongStages, Priority, RouterParameters};
use kasuri_model::routing::Candidate;
use std::collections::VecDeque;

/// What the general form needs to know beyond [`Parameters`].
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) router: RouterParameters,
    /// Steps of route computation and of switch traversal.
    pub(crate) computation_steps: u32,
    pub(crate) traversal_steps: u32,
    pub(crate) streams: Streams,
}

impl Form {
    /// Cycles that a flit may wait for its channel behind the switch, and a credit for its own, at most: until the buffer downstream or
    /// here is full.
    pub(crate) fn longest_wait(&self) -> u32 {
        let batches = if self.router.long_stages == LongStages::Batched { self.traversal_steps } else { 0 };
        let queues = self.router.output_speedup > 1 || self.router.internal_speedup > 1.0 || batches > 0;
        batches + if queues { self.most_buffered() } else { 0 }
    }
}

/// Histories of matrix arbiters take at most this many bytes.
const MAX_HISTORY: u64 = 1 << 34;

impl Form {
    /// Matrix arbiters know each pair of an input and an output of a router.
    ///
    /// # Errors
    /// They take too much memory together.
    pub(crate) fn check_size(&self, network: &Network) -> Result<(), EngineError> {
        let is_matrix = |allocator: &AllocatorParameters| match allocator.arbiter() {
            ArbiterParameters::Single(arbiter) | ArbiterParameters::Tree { of: arbiter, .. } => arbiter == Arbiter::Matrix,
        };
        let allocators = [&self.router.vc_allocator, &self.router.switch_allocator];
        let of_router = |ports: u32| {
            let pairs = shapes(ports, &self.router).map(|shape| u64::from(shape.rows) * u64::from(shape.columns));
            pairs.iter().zip(allocators).map(|(pairs, allocator)| if is_matrix(allocator) { 8 * pairs } else { 0 }).sum::<u64>()
        };
        let all: u64 = (0..network.router_count()).map(|router| of_router(network.port_count(RouterId(router)))).sum();
        if all > MAX_HISTORY {
            return Err(EngineError::TooLarge(format!("matrix arbiters of these routers take {} GiB; take round-robin ones", all >> 30)));
        }
        Ok(())
    }

    /// Flits that the buffer of a port can hold.
    fn most_buffered(&self) -> u32 {
        let channels = if self.router.buffer_policy == BufferPolicy::Private { self.router.virtual_channels } else { 1 };
        channels * self.router.channel_depth()
    }
}

/// The buffer of one virtual channel of an input port.
#[derive(Clone, Copy, Debug)]
struct InputVc {
    /// The output slot that the front packet holds, or [`NONE`].
    output: u32,
    /// Flits in the buffer.
    flits: u32,
    /// Flits of the front packet that have not left yet.
    left: u32,
    /// The step from which the front packet bids: for a virtual channel, then for the switch.
    ready: u64,
    /// Cycle of the front packet's creation, and its priority as far as it stays the same in this router.
    created: u64,
    priority: i64,
}

/// The upstream's account of one downstream buffer.
#[derive(Clone, Copy, Debug)]
struct OutputVc {
    /// The input slot whose packet holds this virtual channel, or [`NONE`].
    holder: u32,
    /// Free places in the downstream buffer.
    credits: u32,
}

/// A port: its output side, and when its channels were used last.
#[derive(Clone, Copy, Debug)]
struct PortState<M> {
    /// Virtual channels of the output that nobody holds.
    free: M,
    /// Cycle after that in which the last flit is sent.
    next_departure: u64,
    /// Cycle in which the last credits were sent by the input side, and the step of the flits that they stand for.
    credit_cycle: u64,
    credit_step: u64,
}

/// One router.
struct Unit {
    /// First port address, and ports.
    base: u32,
    ports: u32,
    is_awake: bool,
    /// Input slots whose front is a new head.
    heads: Vec<u32>,
    /// Input slots that wait for a virtual channel.
    waiting: Vec<u32>,
    /// Input slots that hold one.
    active: Vec<u32>,
    /// Input slots that keep their way through the switch.
    kept: Vec<u32>,
    computation: Batches,
    traversal: Batches,
    /// Round-robin pointer over the virtual channels of each input of the switch.
    vc_pointer: Box<[u32]>,
    vc_allocator: Box<dyn RouterAllocator>,
    switch_allocator: Box<dyn RouterAllocator>,
}

/// A bid for the switch.
#[derive(Clone, Copy, Debug)]
struct Bid {
    request: Request,
    /// The virtual channel's distance from the pointer of its input of the switch.
    distance: u32,
    slot: u32,
}

/// Columns, routers, and the lists of a step.
pub(crate) struct General<M> {
    form: Form,
    clock: Clock,
    tile_shift: u32,
    virtual_channels: u32,
    input: Column<InputVc>,
    output: Column<OutputVc>,
    port: Column<PortState<M>>,
    /// Where the head of a slot may go, while it waits.
    routes: Vec<Vec<Candidate>>,
    /// Flits in output buffers: cycle in which they come out of the switch, and in which they are sent. Empty where buffers have no bounds.
    buffered: Vec<VecDeque<(u64, u64)>>,
    /// When the flits of each buffer came. Empty where nobody asks.
    came: Vec<VecDeque<u64>>,
    units: Vec<Unit>,
    unit_of_port: Column<u32>,
    /// Routers that are awake, by tile.
    awake: Vec<Vec<u32>>,
    bids: Vec<Bid>,
    speculative: Vec<Bid>,
    requests: Vec<Request>,
    granted: Vec<u32>,
    /// Input slots whose flit crosses the switch in this step.
    winners: Vec<u32>,
    taken: Taken,
}

/// Inputs and outputs of a router's switch that are not to be had in the present step.
#[derive(Clone, Debug, Default)]
struct Taken {
    rows: Vec<bool>,
    columns: Vec<bool>,
}

impl Taken {
    /// Nothing is taken of a switch between so many ports.
    fn clear(&mut self, ports: u32, form: &Form) {
        self.rows.clear();
        self.rows.resize((ports * form.router.input_speedup) as usize, false);
        self.columns.clear();
        self.columns.resize((ports * form.router.output_speedup) as usize, false);
    }
}

impl<M: VcMask> General<M> {
    fn wake(&mut self, port: u32) {
        let number = self.unit_of_port[port];
        let unit = &mut self.units[number as usize];
        if !unit.is_awake {
            unit.is_awake = true;
            let tile = unit.base << M::SHIFT >> self.tile_shift;
            self.awake[tile as usize].push(number);
        }
    }
}

/// The sides of a router's virtual-channel allocation and of its switch allocation.
fn shapes(ports: u32, router: &RouterParameters) -> [RouterShape; 2] {
    let channels = ports * router.virtual_channels;
    let switch = RouterShape { rows: ports * router.input_speedup, columns: ports * router.output_speedup };
    [RouterShape { rows: channels, columns: channels }, switch]
}

/// A router without allocators' history. Random allocators draw from the streams of their router, two of them.
fn unit(number: u32, base: u32, ports: u32, form: &Form) -> Unit {
    let router = &form.router;
    let [channels, switch] = shapes(ports, router);
    let allocator = |parameters, shape, entity| {
        allocator::build_general(Making { parameters, shape, stream: form.streams.get(Purpose::Allocation, entity) })
    };
    let batched = router.long_stages == LongStages::Batched;
    Unit {
        base,
        ports,
        is_awake: false,
        heads: Vec::new(),
        waiting: Vec::new(),
        active: Vec::new(),
        kept: Vec::new(),
        computation: Batches::new(batched, form.computation_steps),
        traversal: Batches::new(batched, form.traversal_steps),
        vc_pointer: vec![0; switch.rows as usize].into_boxed_slice(),
        vc_allocator: allocator(&router.vc_allocator, channels, 2 * number),
        switch_allocator: allocator(&router.switch_allocator, switch, 2 * number + 1),
    }
}

impl<M: VcMask> Lanes for General<M> {
    type Mask = M;
    type Wheel = ListWheel;

    fn reserved_slots(slots: u32, _widest: u32) -> u32 {
        slots
    }

    fn new(parameters: &Parameters, ports: u32) -> Self {
        let form = parameters.form.clone().expect("the choice of the layout has seen that the routers are of the general form");
        let slots = (ports as usize) << M::SHIFT;
        let bounded = form.router.output_buffer_flits.is_some();
        let port = PortState { free: M::default(), next_departure: 0, credit_cycle: 0, credit_step: u64::MAX };
        Self {
            clock: Clock::new(form.router.internal_speedup),
            tile_shift: parameters.tile_shift,
            virtual_channels: parameters.virtual_channels,
            input: Column::filled(slots, InputVc { output: NONE, flits: 0, left: 0, ready: 0, created: 0, priority: 0 }),
            output: Column::filled(slots, OutputVc { holder: NONE, credits: 0 }),
            port: Column::filled(ports as usize, port),
            routes: vec![Vec::new(); slots],
            buffered: vec![VecDeque::new(); if bounded { ports as usize } else { 0 }],
            came: vec![VecDeque::new(); if form.router.priority == Priority::LocalAge { slots } else { 0 }],
            units: Vec::new(),
            unit_of_port: Column::filled(ports as usize, NONE),
            awake: vec![Vec::new(); parameters.router_tiles as usize],
            bids: Vec::new(),
            speculative: Vec::new(),
            requests: Vec::new(),
            granted: Vec::new(),
            winners: Vec::new(),
            taken: Taken::default(),
            form,
        }
    }

    fn connect_output(&mut self, port: u32, _first: u32, parameters: &Parameters) {
        self.port[port].free = M::range(0, parameters.virtual_channels);
        for vc in 0..parameters.virtual_channels {
            self.output[port << M::SHIFT | vc].credits = u32::from(parameters.buffer_flits);
        }
    }

    /// Ports come router by router, in order.
    fn connect_input(&mut self, port: u32, first: u32) {
        if self.units.last().is_none_or(|unit| unit.base != first) {
            let number = self.units.len() as u32;
            self.units.push(unit(number, first, 0, &self.form));
        }
        self.unit_of_port[port] = self.units.len() as u32 - 1;
        self.units.last_mut().expect("one has just been made").ports += 1;
    }

    fn connect_links(&mut self, _links: &Column<Links>) {
        for (number, present) in self.units.iter_mut().enumerate() {
            *present = unit(number as u32, present.base, present.ports, &self.form);
        }
    }

    fn flits(&self, slot: u32) -> u32 {
        self.input[slot].flits
    }

    fn held_output(&self, slot: u32) -> u32 {
        self.input[slot].output
    }

    fn left(&self, slot: u32) -> u32 {
        self.input[slot].left
    }

    fn set_left(&mut self, slot: u32, flits: u16) {
        self.input[slot].left = u32::from(flits);
    }

    fn credits(&self, slot: u32) -> u32 {
        self.output[slot].credits
    }

    fn holder(&self, slot: u32) -> u32 {
        self.output[slot].holder
    }

    fn free(&self, port: u32) -> M {
        self.port[port].free
    }

    fn hold(&mut self, head: u32, output: u32) {
        let port = &mut self.port[output >> M::SHIFT];
        port.free = port.free.without(M::bit(output & (M::BITS - 1)));
        self.output[output].holder = head;
        self.input[head].output = output;
    }

    fn set_free(&mut self, output: u32) {
        let port = &mut self.port[output >> M::SHIFT];
        port.free = port.free.or(M::bit(output & (M::BITS - 1)));
    }

    fn is_ready(&self, _output: u32) -> Option<bool> {
        None
    }

    fn append_waiting(&self, waiting: &mut Vec<(u32, Candidate)>) {
        for unit in &self.units {
            for &slot in &unit.waiting {
                waiting.extend(self.routes[slot as usize].iter().map(|&candidate| (slot, candidate)));
            }
        }
    }

    fn is_idle(&self, tile: u32) -> bool {
        self.awake[tile as usize].is_empty()
    }

    fn router_cycle(simulation: &mut Simulation<'_, Self>, tile: u32, now: u64) {
        simulation.general_cycle(tile, now);
    }
}
