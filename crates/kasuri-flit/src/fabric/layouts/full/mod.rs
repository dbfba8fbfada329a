//! The full layout: any allocators, several inputs and outputs of the switch for each port, several steps
//! in a cycle, output buffers, stages that work in batches, several candidate ports for a head.
//!
//! A router is taken as a whole, step by step (`cycle`), and only while it is awake: it falls asleep when a step asks for nothing, and
//! an arrival or a credit wakes it, or the time when a channel or a place in an output's buffer will be free for a flit that waits for
//! nothing else. So here, too, the cost follows the events.

mod batches;
mod cycle;
mod failures;
mod masked;
mod predicted;

use crate::fabric::cycle::RouterCycle;
use crate::fabric::layouts::full::batches::Batches;
use crate::fabric::layouts::full::masked::{Masks, Places};
use crate::record::allocators::allocator::{AllocatorSpec, Request, RouterAllocator};
use crate::record::allocators::masks::{MaskAllocator, Rule};
use crate::record::allocators::{build_full, rule_on_masks};
use crate::record::clock::{Clock, Sent};
use crate::record::links::Links;
use crate::record::marks::{NEVER, NONE};
use crate::record::options::LayoutName;
use crate::record::prefetch::prefetch_across;
use crate::record::slots::{InputSlot, OutputSlot};
use crate::record::vc_mask::VcMask;
use crate::record::wheel::ListWheel;
use crate::state::full_parameters::{FullParameters, shapes};
use crate::state::layout::RouterState;
use crate::state::output_shares::Shares;
use crate::state::parameters::Parameters;
use crate::state::tile::Tile;
use kasuri_model::router::{LongStages, Priority};
use kasuri_network::memory::Column;
use kasuri_network::rng::Purpose;
use kasuri_network::routing::{Candidate, VirtualChannels};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::select_unpredictable;
use std::sync::Arc;

impl FullParameters {
    /// The rules by which virtual channels and the switch are allocated on masks, where that is the same: all requests stand alike, and
    /// routers of at most `ports` ports are small enough.
    fn rules_on_masks(&self, ports: u32) -> Option<[Rule; 2]> {
        let router = &self.router;
        let differs = router.priority != Priority::None || router.vc_prefer_empty || self.offers_several || self.fails;
        if differs || self.speculates || !Masks::have_room(shapes(ports, router), router.virtual_channels) {
            return None;
        }
        Some([rule_on_masks(&router.vc_allocator)?, rule_on_masks(&router.switch_allocator)?])
    }
}

/// The buffer of one virtual channel of an input port. 40 bytes.
#[derive(Clone, Copy, Debug)]
struct InputVc {
    packet: InputSlot,
    /// The step from which the front packet bids: for a virtual channel, then for the switch.
    ready: u64,
    /// The output slot that the front packet holds, [`NONE`], or [`DISCARDED`](crate::record::marks::DISCARDED).
    output: u32,
    /// Flits in the buffer.
    flits: u16,
    /// Flits of the front packet that have not left yet.
    left: u16,
    /// Where the front packet may go, while it waits, unless the routing offers several ports.
    candidate: Candidate,
}

/// How urgent the front packet of a buffer is.
#[derive(Clone, Copy, Debug)]
struct Urgency {
    /// Cycle of its creation.
    created: u64,
    /// Its priority as far as it stays the same in this router.
    priority: i64,
}

/// The upstream's account of one downstream buffer.
#[derive(Clone, Copy, Debug)]
struct OutputVc {
    packet: OutputSlot,
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
    sent: Sent,
    /// Cycle in which the last credits were sent by the input side, and the step of the flits that they stand for.
    credit_cycle: u64,
    credit_step: u64,
}

/// One router. Many fields, because each list is of packets that stand in it for another reason.
struct Unit {
    /// First port address, and ports.
    base: u32,
    ports: u32,
    is_awake: bool,
    /// The cycle in which the first of the flits that only their channels hold up may cross, as the last step has found, and the one for
    /// which the router is to be woken; [`NEVER`] if there is none.
    due: u64,
    alarm: u64,
    /// Input slots whose front is a new head.
    heads: Vec<u32>,
    /// Input slots that wait for a virtual channel.
    waiting: Vec<u32>,
    /// Input slots that hold one.
    active: Vec<u32>,
    /// Where routers are small enough for masks: those of them, as inputs of virtual-channel allocation, that may have a flit and a credit.
    may_bid: Places,
    /// Input slots that keep their path through the switch: their next flit has come.
    kept: Vec<u32>,
    /// Input slots whose front packet is thrown away.
    thrown_away: Vec<u32>,
    /// Output slots that tails have just left on predictions: those who waited for them ask from the next step on.
    late: Vec<u32>,
    computation: Batches,
    traversal: Batches,
    /// Round-robin pointer over the virtual channels of each input of the switch.
    vc_pointer: Box<[u32]>,
    allocators: Allocators,
}

impl Unit {
    /// An input of the switch that has served this virtual channel looks at the next ones first from now on.
    fn pass_pointer(&mut self, vc: u32, row: u32, full: &FullParameters) {
        let (after, channels) = (vc + full.router.input_speedup, full.router.virtual_channels);
        // Not divided where that can be avoided, and not by a branch either, since which channel comes next cannot be foreseen.
        let rest = if after < 2 * channels { after.wrapping_sub(channels) } else { after % channels };
        self.vc_pointer[row as usize] = select_unpredictable(after < channels, after, rest);
    }

    /// A flit of this slot has crossed: does its packet keep the path for the next one?
    fn keep_path(&mut self, slot: u32, keeps: bool) {
        let place = self.kept.iter().position(|&kept| kept == slot);
        match place {
            None if keeps => self.kept.push(slot),
            Some(place) if !keeps => {
                self.kept.remove(place);
            }
            _ => {}
        }
    }
}

/// The allocators of a router for virtual channels and for its switch.
enum Allocators {
    OnMasks { channels: MaskAllocator, switch: MaskAllocator },
    OnRequests { channels: Box<dyn RouterAllocator>, switch: Box<dyn RouterAllocator> },
}

/// A bid for the switch.
#[derive(Clone, Copy, Debug)]
struct Bid {
    request: Request,
    /// The virtual channel's distance from the pointer of its input of the switch.
    distance: u32,
    slot: u32,
    /// Is it wasted whatever the allocator says?
    in_vain: bool,
}

impl Bid {
    /// The same bid behind those that are not speculative, whatever their priorities.
    fn last(self) -> Self {
        // Priorities are times and counts, far smaller.
        const BEHIND: i64 = 1 << 60;
        let Request { preference, priority, .. } = self.request;
        Self { request: Request { preference: preference - BEHIND, priority: priority - BEHIND, ..self.request }, ..self }
    }
}

/// Columns, routers, and the lists of a step.
pub(crate) struct Full<M> {
    full: FullParameters,
    clock: Clock,
    block_shift: u32,
    /// The number of the first router in the network.
    /// The numbers of its routers in the network.
    routers: Arc<[u32]>,
    input: Column<InputVc>,
    output: Column<OutputVc>,
    port: Column<PortState<M>>,
    heads: WaitingHeads,
    /// Flits in output buffers: cycle in which they come out of the switch, and in which they are sent. Empty where buffers have no bounds.
    buffered: Vec<VecDeque<(u64, u64)>>,
    /// When the flits of each buffer came. Empty where nobody asks.
    came: Vec<VecDeque<u64>>,
    units: Vec<Unit>,
    unit_of_port: Column<u32>,
    sleep: Sleep,
    step: StepLists,
    /// Who gets the switches' outputs, where they are divided among users.
    shares: Option<Shares<M>>,
}

/// What is known of the heads that wait, by input slot.
struct WaitingHeads {
    /// Where the head of a slot may go, while it waits. Empty where the routing offers one port only.
    routes: Vec<Vec<Candidate>>,
    urgency: Column<Urgency>,
}

/// Which routers are awake, and when the others wake up.
struct Sleep {
    /// Routers that are awake, by block.
    awake: Vec<Vec<u32>>,
    /// Cycles in which routers that sleep are to be woken, by block.
    alarms: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
}

/// The lists of a step of a router; memory to use.
#[derive(Default)]
struct StepLists {
    bids: Vec<Bid>,
    speculative: Vec<Bid>,
    requests: Vec<Request>,
    granted: Vec<u32>,
    /// Input slots whose flit crosses the switch in this step.
    winners: Vec<u32>,
    /// Input slots that came into this step with a path through the switch.
    holders: Vec<u32>,
    taken: Taken,
    masks: Option<Box<Masks>>,
}

/// Inputs and outputs of a router's switch that are not to be had in the present step.
#[derive(Clone, Debug, Default)]
struct Taken {
    rows: Vec<bool>,
    columns: Vec<bool>,
}

impl Taken {
    /// Nothing is taken of a switch between so many ports.
    fn clear(&mut self, ports: u32, full: &FullParameters) {
        self.rows.clear();
        self.rows.resize((ports * full.router.input_speedup) as usize, false);
        self.columns.clear();
        self.columns.resize((ports * full.router.output_speedup) as usize, false);
    }

    /// Is what this request asks for taken?
    fn has(&self, request: &Request) -> bool {
        self.rows[request.row as usize] || self.columns[request.column as usize]
    }
}

/// Bytes of the lists of a router for each of its slots, and of its own record and allocators for each port.
const LISTS_OF_SLOT: usize = 16;
const PORT_OF_UNIT: usize = 200;

impl<M: VcMask> Full<M> {
    /// Where the head of a slot may go, while it waits.
    fn candidates(&self, slot: u32) -> &[Candidate] {
        self.heads.routes.get(slot as usize).map_or_else(|| std::slice::from_ref(&self.input[slot].candidate), Vec::as_slice)
    }

    /// The packet at the front of a buffer, which holds a virtual channel, may bid for the switch: it has got one, a flit or a credit.
    #[inline(always)]
    fn note_bidder(&mut self, slot: u32) {
        let unit = &mut self.units[self.unit_of_port[slot >> M::SHIFT] as usize];
        let place = ((slot >> M::SHIFT) - unit.base) * self.full.router.virtual_channels + (slot & (M::BITS - 1));
        unit.may_bid |= Places::checked_shl(1, place).unwrap_or(0);
    }

    #[inline(always)]
    fn wake(&mut self, port: u32) {
        let number = self.unit_of_port[port];
        let unit = &mut self.units[number as usize];
        if !unit.is_awake {
            unit.is_awake = true;
            let block = unit.base << M::SHIFT >> self.block_shift;
            self.sleep.awake[block as usize].push(number);
        }
    }

    /// A router that falls asleep is woken when one of its flits may cross, unless it is woken before that in any case.
    fn set_alarm(&mut self, block: u32, number: u32) {
        let unit = &mut self.units[number as usize];
        if unit.due < unit.alarm {
            unit.alarm = unit.due;
            self.sleep.alarms[block as usize].push(Reverse((unit.due, number)));
        }
    }

    /// Wakes the routers of a block whose time has come.
    fn wake_sleepers(&mut self, block: u32, now: u64) {
        while let Some(&Reverse((time, number))) = self.sleep.alarms[block as usize].peek().filter(|alarm| alarm.0.0 <= now) {
            self.sleep.alarms[block as usize].pop();
            let unit = &mut self.units[number as usize];
            let base = unit.base;
            if unit.alarm == time {
                unit.alarm = NEVER;
            }
            self.wake(base);
        }
    }
}

/// Allocators without history. Random ones draw from the streams of their router, two of them.
fn allocators(number: u32, ports: u32, full: &FullParameters, rules: Option<[Rule; 2]>) -> Allocators {
    let [channels, switch] = shapes(ports, &full.router);
    let build =
        |parameters, shape, entity| build_full(AllocatorSpec { parameters, shape, stream: full.streams.get(Purpose::Allocation, entity) });
    match rules {
        Some([of_channels, of_switch]) => {
            Allocators::OnMasks { channels: MaskAllocator::new(of_channels, channels), switch: MaskAllocator::new(of_switch, switch) }
        }
        None => Allocators::OnRequests {
            channels: build(&full.router.vc_allocator, channels, 2 * number),
            switch: build(&full.router.switch_allocator, switch, 2 * number + 1),
        },
    }
}

/// A router that nothing has happened to.
fn unit(number: u32, base: u32, ports: u32, full: &FullParameters, rules: Option<[Rule; 2]>) -> Unit {
    let router = &full.router;
    let [_, switch] = shapes(ports, router);
    let batched = router.long_stages == LongStages::Batched;
    Unit {
        base,
        ports,
        is_awake: false,
        due: NEVER,
        alarm: NEVER,
        heads: Vec::new(),
        waiting: Vec::new(),
        active: Vec::new(),
        may_bid: 0,
        kept: Vec::new(),
        thrown_away: Vec::new(),
        late: Vec::new(),
        computation: Batches::new(batched, full.computation_steps),
        traversal: Batches::new(batched, full.traversal_steps),
        vc_pointer: vec![0; switch.rows as usize].into_boxed_slice(),
        allocators: allocators(number, ports, full, rules),
    }
}

impl<M: VcMask> RouterState for Full<M> {
    type Mask = M;
    type Wheel = ListWheel;
    const LAYOUT: LayoutName = LayoutName::Full;

    fn before_channel(&self, port: u32, from: u64, period: u32) -> u32 {
        self.port[port].sent.from(from, period)
    }

    fn reserved_slots(slots: u32, _widest: u32) -> u32 {
        slots
    }

    fn new(parameters: &Parameters, ports: u32, all_ports: u32) -> Self {
        let full = parameters.full.clone().expect("the choice of the layout has seen that the routers are of the general full");
        let slots = (ports as usize) << M::SHIFT;
        let bounded = full.router.output_buffer_flits.is_some();
        let nowhere = Candidate::new(0, VirtualChannels { begin: 0, end: 0 });
        let port = PortState { free: M::default(), next_departure: 0, sent: Sent::default(), credit_cycle: 0, credit_step: u64::MAX };
        Self {
            clock: Clock::new(full.router.internal_speedup),
            block_shift: parameters.block_shift,
            routers: Arc::clone(&parameters.share.routers),
            input: Column::filled(
                (all_ports as usize) << M::SHIFT,
                InputVc { packet: InputSlot::default(), ready: 0, output: NONE, flits: 0, left: 0, candidate: nowhere },
            ),
            heads: WaitingHeads {
                routes: vec![Vec::new(); if full.offers_several { slots } else { 0 }],
                urgency: Column::filled(slots, Urgency { created: 0, priority: 0 }),
            },
            output: Column::filled(slots, OutputVc { packet: OutputSlot::default(), holder: NONE, credits: 0 }),
            port: Column::filled(ports as usize, port),
            buffered: vec![VecDeque::new(); if bounded { ports as usize } else { 0 }],
            came: vec![VecDeque::new(); if full.router.priority == Priority::LocalAge { slots } else { 0 }],
            units: Vec::new(),
            unit_of_port: Column::filled(ports as usize, NONE),
            sleep: Sleep {
                awake: vec![Vec::new(); parameters.router_blocks as usize],
                alarms: vec![BinaryHeap::new(); parameters.router_blocks as usize],
            },
            step: StepLists::default(),
            shares: parameters.granted.as_ref().map(|granted| Shares::new(granted, ports)),
            full,
        }
    }

    fn bytes(parameters: &Parameters, ports: u32, all_ports: u32) -> usize {
        let full = parameters.full.as_ref().expect("the choice of the layout has seen that the routers are of the general full");
        let (slots, all_slots) = ((ports as usize) << M::SHIFT, (all_ports as usize) << M::SHIFT);
        let mut of_slot = size_of::<Urgency>() + size_of::<OutputVc>() + LISTS_OF_SLOT;
        if full.offers_several {
            of_slot += size_of::<Vec<Candidate>>() + 4 * size_of::<Candidate>();
        }
        if full.router.priority == Priority::LocalAge {
            of_slot += size_of::<VecDeque<u64>>() + 8 * usize::from(parameters.buffer_flits).next_power_of_two();
        }
        let buffered =
            full.router.output_buffer_flits.map_or(0, |flits| size_of::<VecDeque<u64>>() + 16 * (flits as usize + 1).next_power_of_two());
        let shared = parameters.granted.as_ref().map_or(0, |granted| Shares::<M>::bytes_of_port(granted));
        let of_port = size_of::<PortState<M>>() + 4 + buffered + shared + PORT_OF_UNIT;
        all_slots * size_of::<InputVc>() + slots * of_slot + ports as usize * of_port
    }

    #[inline(always)]
    fn input_slot(&self, slot: u32) -> &InputSlot {
        &self.input[slot].packet
    }

    #[inline(always)]
    fn input_slot_mut(&mut self, slot: u32) -> &mut InputSlot {
        &mut self.input[slot].packet
    }

    /// A record of 48 bytes may lie in two lines.
    #[inline(always)]
    fn prefetch_input(&self, slot: u32) {
        prefetch_across(self.input_slot(slot));
    }

    #[inline(always)]
    fn output_slot(&self, slot: u32) -> &OutputSlot {
        &self.output[slot].packet
    }

    #[inline(always)]
    fn output_slot_mut(&mut self, slot: u32) -> &mut OutputSlot {
        &mut self.output[slot].packet
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
            let number = self.routers[self.units.len()];
            self.units.push(unit(number, first, 0, &self.full, None));
        }
        self.unit_of_port[port] = self.units.len() as u32 - 1;
        self.units.last_mut().expect("one has just been made").ports += 1;
    }

    fn connect_links(&mut self, _links: &Column<Links>) {
        let widest = self.units.iter().map(|unit| unit.ports).max().unwrap_or(0);
        // Shares choose among the bids.
        let rules = self.full.rules_on_masks(widest).filter(|_| self.shares.is_none());
        self.step.masks = rules.is_some().then(|| Box::new(Masks::new::<M>(widest, &self.full)));
        for (number, present) in self.units.iter_mut().enumerate() {
            *present = unit(self.routers[number], present.base, present.ports, &self.full, rules);
        }
    }

    fn flits(&self, slot: u32) -> u32 {
        u32::from(self.input[slot].flits)
    }

    fn held_output(&self, slot: u32) -> u32 {
        self.input[slot].output
    }

    fn left(&self, slot: u32) -> u32 {
        u32::from(self.input[slot].left)
    }

    fn set_left(&mut self, slot: u32, flits: u16) {
        self.input[slot].left = flits;
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
                waiting.extend(self.candidates(slot).iter().map(|&candidate| (slot, candidate)));
            }
        }
    }

    fn is_idle(&self, block: u32) -> bool {
        self.sleep.awake[block as usize].is_empty() && self.sleep.alarms[block as usize].is_empty()
    }
}

impl<M: VcMask> RouterCycle for Full<M> {
    fn kill_port(tile: &mut Tile<'_, Self>, port: u32) {
        tile.cut_port(port);
    }

    fn router_cycle(tile: &mut Tile<'_, Self>, block: u32, now: u64) {
        tile.full_cycle(block, now);
    }
}
