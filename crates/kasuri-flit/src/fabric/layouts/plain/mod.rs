//! The layout for every router and every processor: records by slot and by port, events as lists of addresses.
//!
//! [`Pointers`] holds bare pointers to the columns. As local values they stay in registers, where fields of the tile would
//! be loaded again after every store: the loops need half the instructions. Packets of one flit have a shorter cycle (`one_flit.rs`).

mod crosspoint;
mod departures;
mod input_first;
pub(crate) mod notes;
mod one_flit;
mod picks;
mod predicted;
mod prefetching;

use crate::fabric::cycle::RouterCycle;
use crate::fabric::layouts::plain::departures::{Departure, Departures};
use crate::fabric::layouts::plain::notes::Notes;
use crate::fabric::layouts::plain::picks::Picks;
use crate::record::allocators::allocator::{Pointers as AllocatorPointers, from_pointer};
use crate::record::allocators::{self, PlainAllocator};
use crate::record::links::Links;
use crate::record::list::{List, put_back};
use crate::record::marks::NONE;
use crate::record::options::LayoutName;
use crate::record::prefetch::prefetch;
use crate::record::slots::{InputSlot, OutputSlot};
use crate::record::vc_mask::VcMask;
use crate::record::wheel::{ListWheel, Posts};
use crate::state::blocks::Block;
use crate::state::layout::RouterState;
use crate::state::output_shares::Shares;
use crate::state::parameters::Parameters;
use crate::state::tile::Tile;
use kasuri_model::router::{Bidding, Switching, VcRelease};
use kasuri_network::memory::Column;
use std::hint::select_unpredictable;

/// The buffer of one virtual channel of an input port. 32 bytes, within one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct InputVc {
    packet: InputSlot,
    /// The output slot that the front packet holds, or [`NONE`].
    output: u32,
    /// Flits in the buffer.
    flits: u16,
    /// Flits of the front packet that have not left yet.
    left: u16,
}

/// The upstream's account of one downstream buffer. 16 bytes, within one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(crate) struct OutputVc {
    packet: OutputSlot,
    /// The input slot whose packet holds this virtual channel, or [`NONE`].
    holder: u32,
    /// Free places in the downstream buffer.
    credits: u16,
    /// Its position in its block's list of active output slots, while it is listed there.
    place: u32,
}

/// An output port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputPort<M> {
    /// Round-robin pointer over the router's input ports, relative to this port's address.
    grant_pointer: i16,
    /// Virtual channels that are held, whose holder has a flit and which have a credit.
    ready: M,
    /// Virtual channels that nobody holds.
    free: M,
    /// Is the port in its block's list of active ports?
    listed: bool,
}

/// An input port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputPort {
    /// The output slot that this port sends to in the present cycle, or [`NONE`].
    candidate: u32,
    /// Round-robin pointer over the router's output ports, relative to this port's address.
    accept_pointer: i16,
    /// Round-robin pointer over the port's virtual channels.
    vc_pointer: u16,
}

/// The columns and lists.
pub(crate) struct Plain<M> {
    input: Column<InputVc>,
    output: Column<OutputVc>,
    output_port: Column<OutputPort<M>>,
    input_port: Column<InputPort>,
    /// Cycle from which a port's channel is free; empty unless some channel needs more than one cycle for a flit.
    busy_until: Column<u64>,
    /// Where routers take several steps in a cycle.
    departures: Option<Departures>,
    /// Output ports with a ready virtual channel, by block.
    active: Vec<List>,
    /// Within a cycle of a block: input ports that send, output slots just granted.
    winners: List,
    granted: List,
    /// Within a step of a block: output slots by which tails have left.
    tails: List,
    /// Within a cycle of a block: speculative switch bids, output port and input slot.
    speculative: Vec<(u32, u32)>,
    /// Where all packets are of one flit, and the cycle for them serves.
    notes: Option<Notes>,
    switch: SwitchAllocation<M>,
}

/// How the switches are allocated, where that is not the built-in iSLIP of one iteration.
struct SwitchAllocation<M> {
    /// Another allocator, with its pointers, requests and matches.
    allocator: Option<PlainAllocator>,
    row_pointer: Column<u32>,
    column_pointer: Column<u32>,
    requests: Vec<(u32, u32)>,
    matches: Vec<(u32, u32)>,
    picks: Picks,
    /// Who gets the switches' outputs, where they are divided among users.
    shares: Option<Shares<M>>,
}

impl<M: VcMask> SwitchAllocation<M> {
    /// The allocation of the switches of routers with so many ports.
    fn new(parameters: &Parameters, ports: u32) -> Self {
        let shares = parameters.granted.as_ref().map(|granted| Shares::new(granted, ports));
        let mut allocator = allocators::build(&parameters.switch_allocator);
        if shares.is_some() {
            // Shares choose among the requests before an allocator sees them, which those that are built in do not let them.
            allocator = Some(PlainAllocator::Other(allocator.map_or_else(allocators::single, PlainAllocator::by_requests)));
        }
        let picks = if matches!(allocator, Some(PlainAllocator::InputFirst)) { ports as usize } else { 0 };
        let pointers = if allocator.is_some() { ports as usize } else { 0 };
        Self {
            allocator,
            row_pointer: Column::filled(pointers, 0),
            column_pointer: Column::filled(pointers, 0),
            requests: Vec::new(),
            matches: Vec::new(),
            picks: Picks::new(picks),
            shares,
        }
    }
}

impl<M: VcMask> Plain<M> {
    /// Gives an output slot to a head that crosses at once: unlike after [`RouterState::hold`] it need not bid for the switch.
    fn take(&mut self, head: u32, output: u32) {
        let port = &mut self.output_port[output >> M::SHIFT];
        port.free = port.free.without(M::bit(output & (M::BITS - 1)));
        self.output[output].holder = head;
        self.input[head].output = output;
    }
}

impl<M: VcMask> RouterState for Plain<M> {
    type Mask = M;
    type Wheel = ListWheel;
    const LAYOUT: LayoutName = LayoutName::Plain;

    fn before_channel(&self, port: u32, from: u64, _period: u32) -> u32 {
        self.departures.as_ref().map_or(0, |departures| departures.waiting(port, from))
    }

    fn reserved_slots(slots: u32, _widest: u32) -> u32 {
        slots
    }

    fn new(parameters: &Parameters, ports: u32, all_ports: u32) -> Self {
        let slots = (ports as usize) << M::SHIFT;
        let block_ports = 1 << (parameters.block_shift - M::SHIFT);
        let ports_of_block = |block| block_ports.min(ports - block * block_ports) as usize;
        let most_ports = block_ports.min(ports) as usize;
        // Output slots are listed by themselves where input ports choose among them.
        let most_active = |ports: usize| if parameters.one_flit { ports << M::SHIFT } else { ports };
        let output_port = OutputPort { grant_pointer: 0, ready: M::default(), free: M::default(), listed: false };
        Self {
            input: Column::filled(
                (all_ports as usize) << M::SHIFT,
                InputVc { packet: InputSlot::default(), output: NONE, flits: 0, left: 0 },
            ),
            output: Column::filled(slots, OutputVc { packet: OutputSlot::default(), holder: NONE, credits: 0, place: 0 }),
            output_port: Column::filled(ports as usize, output_port),
            input_port: Column::filled(ports as usize, InputPort { candidate: NONE, accept_pointer: 0, vc_pointer: 0 }),
            busy_until: Column::filled(if parameters.periodic { ports as usize } else { 0 }, 0),
            departures: (!parameters.clock.is_plain()).then(|| Departures::new(ports as usize)),
            active: (0..parameters.router_blocks).map(|block| List::with_capacity(most_active(ports_of_block(block)))).collect(),
            winners: List::with_capacity(most_ports),
            granted: List::with_capacity(most_ports << M::SHIFT),
            tails: List::with_capacity(most_ports),
            speculative: Vec::new(),
            notes: parameters.one_flit.then(|| Notes::new(&parameters.vc_allocator, &parameters.switch_allocator, M::BITS, ports)),
            switch: SwitchAllocation::new(parameters, ports),
        }
    }

    fn bytes(parameters: &Parameters, ports: u32, all_ports: u32) -> usize {
        let (slots, all_slots) = ((ports as usize) << M::SHIFT, (all_ports as usize) << M::SHIFT);
        let block = (1usize << (parameters.block_shift - M::SHIFT)).min(ports as usize);
        let of_slots = all_slots * size_of::<InputVc>() + slots * size_of::<OutputVc>();
        let of_ports = ports as usize * (size_of::<OutputPort<M>>() + size_of::<InputPort>() + 4 + if parameters.periodic { 8 } else { 0 });
        let lists = 4 * (block + (block << M::SHIFT));
        // Pointers, departures or shares.
        let plain =
            allocators::build(&parameters.switch_allocator).is_none() && parameters.clock.is_plain() && parameters.granted.is_none();
        of_slots + of_ports + lists + if plain { 0 } else { 32 * ports as usize }
    }

    #[inline(always)]
    fn input_slot(&self, slot: u32) -> &InputSlot {
        &self.input[slot].packet
    }

    #[inline(always)]
    fn input_slot_mut(&mut self, slot: u32) -> &mut InputSlot {
        &mut self.input[slot].packet
    }

    #[inline(always)]
    fn output_slot(&self, slot: u32) -> &OutputSlot {
        &self.output[slot].packet
    }

    #[inline(always)]
    fn output_slot_mut(&mut self, slot: u32) -> &mut OutputSlot {
        &mut self.output[slot].packet
    }

    fn connect_output(&mut self, port: u32, first: u32, parameters: &Parameters) {
        let output = &mut self.output_port[port];
        output.grant_pointer = first.wrapping_sub(port) as i16;
        output.free = M::range(0, parameters.virtual_channels);
        for vc in 0..parameters.virtual_channels {
            self.output[port << M::SHIFT | vc].credits = parameters.buffer_flits;
        }
        if self.switch.allocator.is_some() {
            self.switch.column_pointer[port] = first;
        }
    }

    fn connect_input(&mut self, port: u32, first: u32) {
        self.input_port[port].accept_pointer = first.wrapping_sub(port) as i16;
        if self.switch.allocator.is_some() {
            self.switch.row_pointer[port] = first;
        }
    }

    #[inline(always)]
    fn flits(&self, slot: u32) -> u32 {
        u32::from(self.input[slot].flits)
    }

    #[inline(always)]
    fn held_output(&self, slot: u32) -> u32 {
        self.input[slot].output
    }

    #[inline(always)]
    fn left(&self, slot: u32) -> u32 {
        u32::from(self.input[slot].left)
    }

    #[inline(always)]
    fn set_left(&mut self, slot: u32, flits: u16) {
        self.input[slot].left = flits;
    }

    #[inline(always)]
    fn credits(&self, slot: u32) -> u32 {
        u32::from(self.output[slot].credits)
    }

    #[inline(always)]
    fn holder(&self, slot: u32) -> u32 {
        self.output[slot].holder
    }

    #[inline(always)]
    fn free(&self, port: u32) -> M {
        self.output_port[port].free
    }

    #[inline(always)]
    fn hold(&mut self, head: u32, output: u32) {
        let port = &mut self.output_port[output >> M::SHIFT];
        port.free = port.free.without(M::bit(output & (M::BITS - 1)));
        self.output[output].holder = head;
        self.input[head].output = output;
        // Bids for the switch from the next cycle on, see `activate_granted`.
        self.granted.push(output);
    }

    #[inline(always)]
    fn prefetch_free(&self, port: u32) {
        prefetch(&self.output_port[port]);
    }

    #[inline(always)]
    fn set_free(&mut self, output: u32) {
        let port = &mut self.output_port[output >> M::SHIFT];
        port.free = port.free.or(M::bit(output & (M::BITS - 1)));
    }

    fn is_ready(&self, output: u32) -> Option<bool> {
        if self.notes.as_ref().is_some_and(Notes::lists_slots) {
            return Some(self.active.iter().any(|active| active.as_slice().contains(&output)));
        }
        Some(!self.output_port[output >> M::SHIFT].ready.and(M::bit(output & (M::BITS - 1))).is_empty())
    }

    #[inline(always)]
    fn is_idle(&self, block: u32) -> bool {
        self.active[block as usize].is_empty()
    }
}

impl<M: VcMask> RouterCycle for Plain<M> {
    fn prefetch_block(tile: &Tile<'_, Self>, block: u32, length: u64) {
        tile.prefetch_plain_block(block, length);
    }

    #[inline(always)]
    fn router_cycle(tile: &mut Tile<'_, Self>, block: u32, now: u64) {
        if tile.parameters.one_flit {
            tile.one_flit_cycle(block, now);
        } else {
            tile.plain_cycle(block, now);
        }
    }
}

impl<M: VcMask> Tile<'_, Plain<M>> {
    /// The hot loops' hold on the columns.
    #[inline(always)]
    fn pointers(&mut self) -> Pointers<M> {
        Pointers {
            input: self.layout.input.as_mut_ptr(),
            output: self.layout.output.as_mut_ptr(),
            output_port: self.layout.output_port.as_mut_ptr(),
            input_port: self.layout.input_port.as_mut_ptr(),
            links: self.wiring.links.as_mut_ptr(),
            arrivals: self.in_flight.arrivals.posts(),
            credits: self.in_flight.credits.posts(),
            #[cfg(debug_assertions)]
            slots: self.layout.input.len() as u32,
        }
    }

    #[inline(always)]
    fn plain_cycle(&mut self, block: u32, now: u64) {
        if self.layout.is_idle(block)
            && self.blocks.is_idle(block)
            && self.in_flight.arrivals.is_empty_at(now, block)
            && self.in_flight.credits.is_empty_at(now, block)
            && self.no_copies_due(block, now)
            && self.expects_nothing(block, now)
        {
            return;
        }
        let mut lists = self.blocks.take(block);
        let mut active = std::mem::take(&mut self.layout.active[block as usize]);
        let mut winners = std::mem::take(&mut self.layout.winners);
        if self.prediction.is_some() {
            // A prediction counts on what is known of credits and requests when the flit arrives.
            self.take_credits(block, now, &mut active, &mut lists);
            self.post_delayed_requests(now, &mut lists);
            self.take_predicted_arrivals(block, now, &mut active, &mut lists);
        } else {
            self.take_arrivals(block, now, &mut active, &mut lists);
            self.take_credits(block, now, &mut active, &mut lists);
        }
        for step in self.parameters.clock.steps(now) {
            self.plain_step(&mut active, &mut winners, &mut lists, step, now);
        }
        self.blocks.put_back(lists);
        put_back(&mut self.layout.active[block as usize], active);
        put_back(&mut self.layout.winners, winners);
    }

    /// One step of a block's routers; plain ones take one in each cycle.
    #[inline(always)]
    fn plain_step(&mut self, active: &mut List, winners: &mut List, lists: &mut Block, step: u64, now: u64) {
        if self.parameters.route_cycles == 0 {
            self.route_heads(step, lists);
        } else {
            self.post_delayed_requests(step, lists);
        }
        if self.parameters.bidding == Bidding::Speculative {
            self.bid_speculatively(lists);
        }
        self.allocate_virtual_channels(lists);
        if self.parameters.route_cycles > 0 {
            self.route_heads(step, lists);
        }
        if self.parameters.bidding == Bidding::SameCycle {
            self.activate_granted(active);
        }
        if self.parameters.crosspoint {
            self.serve_outputs(active, winners, lists, now);
        } else {
            self.allocate_switch(active, winners, now);
            if self.parameters.bidding == Bidding::Speculative {
                self.allocate_switch_speculatively(winners, now);
            }
            self.traverse(winners, lists, step, now);
            self.end_express_packets(lists);
        }
        self.pointers().keep_active(active);
        self.activate_granted(active);
        lists.turn();
    }

    /// Flits enter their buffers.
    #[inline(always)]
    fn take_arrivals(&mut self, block: u32, now: u64, active: &mut List, lists: &mut Block) {
        let pointers = self.pointers();
        let events = self.in_flight.arrivals.events(now, block);
        if self.parameters.switching == Switching::StoreAndForward {
            for position in 0..events.len() {
                let slot = self.in_flight.arrivals.events(now, block)[position];
                self.layout.input[slot].flits += 1;
                self.arrive_store_and_forward(slot, lists);
            }
        } else {
            pointers.take_arrivals(events, self.parameters.is_far, active, &mut lists.heads);
        }
        self.in_flight.arrivals.clear(now, block);
    }

    /// Store-and-forward: the front packet is routed when its tail has arrived; then all its flits are there.
    fn arrive_store_and_forward(&mut self, slot: u32, lists: &mut Block) {
        let input = self.layout.input[slot];
        if input.output == NONE && input.flits == self.packets[self.front_packet(slot)].flits {
            lists.heads.push(slot);
        }
    }

    /// Credits come back.
    #[inline(always)]
    fn take_credits(&mut self, block: u32, now: u64, active: &mut List, lists: &mut Block) {
        let pointers = self.pointers();
        let events = self.in_flight.credits.events(now, block);
        pointers.take_credits(events, self.parameters.is_far, active);
        if self.credits_free_channels() {
            for position in 0..events.len() {
                let slot = self.in_flight.credits.events(now, block)[position];
                if self.layout.output[slot].holder == NONE {
                    self.credit_of_idle_channel(slot, lists);
                }
            }
        }
        self.in_flight.credits.clear(now, block);
    }

    /// Can a credit alone make an unheld virtual channel available?
    #[inline(always)]
    fn credits_free_channels(&self) -> bool {
        self.parameters.switching != Switching::Wormhole || self.parameters.release == VcRelease::TailCredit
    }

    fn credit_of_idle_channel(&mut self, slot: u32, lists: &mut Block) {
        if self.lends(slot) {
            // It is held by a copy, and comes back with that.
            return;
        }
        if self.parameters.release == VcRelease::TailCredit {
            if self.layout.output[slot].credits < self.parameters.buffer_flits {
                return;
            }
            self.layout.set_free(slot);
        }
        self.list_for_allocation(slot >> M::SHIFT, &mut lists.allocate);
    }

    /// Virtual channels granted in this cycle begin to bid for the switch, unless their packet is already gone.
    #[inline(always)]
    fn activate_granted(&mut self, active: &mut List) {
        let pointers = self.pointers();
        for position in 0..self.layout.granted.len() {
            let output = self.layout.granted.at(position);
            let OutputVc { holder, credits, .. } = self.layout.output[output];
            if credits > 0 && holder != NONE && self.layout.input[holder].flits > 0 {
                pointers.set_ready(output, active);
            }
        }
        self.layout.granted.clear();
    }

    #[inline(always)]
    fn is_busy(&self, port: u32, now: u64) -> bool {
        self.parameters.periodic && self.layout.busy_until[port] > now
    }

    /// Switch allocation: iSLIP of one iteration over input and output ports, separable input-first, or another allocator.
    #[inline(always)]
    fn allocate_switch(&mut self, active: &List, winners: &mut List, now: u64) {
        let pointers = self.pointers();
        match &self.layout.switch.allocator {
            Some(PlainAllocator::InputFirst) => self.allocate_switch_input_first(active, winners, now),
            Some(PlainAllocator::Other(_)) => self.allocate_switch_by_requests(active, winners, now),
            None if self.prediction.as_ref().is_some_and(|unit| unit.rules.is_express) => {
                for &port in active.as_slice() {
                    let ready = self.ready_beside_express(port, now);
                    if !ready.is_empty() && !self.is_busy(port, now) {
                        pointers.grant_among(port, ready, winners);
                    }
                }
            }
            None if self.parameters.periodic => {
                for &port in active.as_slice() {
                    if !self.is_busy(port, now) {
                        pointers.grant(port, winners);
                    }
                }
            }
            None if self.parameters.is_far => {
                for (position, &port) in active.as_slice().iter().enumerate() {
                    pointers.prefetch_for_grants(active, position);
                    pointers.grant(port, winners);
                }
            }
            None => {
                for &port in active.as_slice() {
                    pointers.grant(port, winners);
                }
            }
        }
    }

    /// Any other switch allocator, on the requests of all routers of the block at once.
    fn allocate_switch_by_requests(&mut self, active: &List, winners: &mut List, now: u64) {
        let mut requests = std::mem::take(&mut self.layout.switch.requests);
        requests.clear();
        for &port in active.as_slice() {
            let mut ready = if self.is_busy(port, now) { M::default() } else { self.ready_by_shares(port) };
            while !ready.is_empty() {
                let input_port = self.layout.output[port << M::SHIFT | ready.first()].holder >> M::SHIFT;
                if !self.is_promised(input_port, port, now) {
                    requests.push((input_port, port));
                }
                ready = ready.rest();
            }
        }
        requests.sort_unstable();
        requests.dedup();
        let mut matches = std::mem::take(&mut self.layout.switch.matches);
        matches.clear();
        let layout = &mut self.layout;
        if let Some(PlainAllocator::Other(allocator)) = &mut layout.switch.allocator {
            let pointers = AllocatorPointers { row: &mut layout.switch.row_pointer, column: &mut layout.switch.column_pointer };
            allocator.allocate(&requests, pointers, &mut matches);
        }
        for &(input_port, port) in &matches {
            let output = self.pick_of_input(port, input_port);
            self.pointers().offer(input_port, output, winners);
            if let Some(shares) = &mut self.layout.switch.shares {
                shares.charge(port, output & (M::BITS - 1));
            }
        }
        (self.layout.switch.requests, self.layout.switch.matches) = (requests, matches);
    }

    /// The ready virtual channels of a port; where users have shares, those of the user whose turn it is.
    #[inline(always)]
    fn ready_by_shares(&mut self, port: u32) -> M {
        let ready = self.layout.output_port[port].ready;
        self.layout.switch.shares.as_mut().map_or(ready, |shares| shares.choose(port, ready))
    }

    /// Of the ready virtual channels of `port` that `input_port` holds, the first by the input port's pointer.
    fn pick_of_input(&mut self, port: u32, input_port: u32) -> u32 {
        let pointer = u32::from(self.layout.input_port[input_port].vc_pointer);
        let mut ready = self.ready_by_shares(port);
        let (mut best, mut best_distance) = (NONE, u32::MAX);
        while !ready.is_empty() {
            let output = port << M::SHIFT | ready.first();
            ready = ready.rest();
            let holder = self.layout.output[output].holder;
            let distance = from_pointer(holder & (M::BITS - 1), pointer);
            if holder >> M::SHIFT == input_port && (best == NONE || distance < best_distance) {
                (best, best_distance) = (output, distance);
            }
        }
        best
    }

    /// Notes for each port the head that would cross if nobody else does: the first by the switch pointers among those with a
    /// virtual channel to win and a credit there.
    fn bid_speculatively(&mut self, lists: &Block) {
        for &port in lists.allocate.as_slice() {
            let grant_pointer = self.layout.output_port[port].grant_pointer;
            let (mut best, mut best_key) = (NONE, u64::MAX);
            let mut head = self.wiring.links[port].request_head;
            while head != NONE {
                let input_port = head >> M::SHIFT;
                let port_distance = input_port.wrapping_sub(port).wrapping_sub(grant_pointer as u32);
                let vc_pointer = self.layout.input_port[input_port].vc_pointer;
                let vc_distance = (head & (M::BITS - 1)).wrapping_sub(u32::from(vc_pointer));
                let key = u64::from(port_distance) << 32 | u64::from(vc_distance);
                if (best == NONE || key < best_key) && self.has_credit(port, self.eligible(port, head)) {
                    (best, best_key) = (head, key);
                }
                head = self.layout.input_slot(head).request_next;
            }
            if best != NONE {
                self.layout.speculative.push((port, best));
            }
        }
    }

    fn has_credit(&self, port: u32, mut channels: M) -> bool {
        while !channels.is_empty() {
            if self.layout.output[port << M::SHIFT | channels.first()].credits > 0 {
                return true;
            }
            channels = channels.rest();
        }
        false
    }

    /// Speculative bids take what real requests left: neither an output port that anyone asked for, nor an input port that won.
    /// A bid whose head won no virtual channel in this cycle, or one without a credit, wastes the slot.
    fn allocate_switch_speculatively(&mut self, winners: &mut List, now: u64) {
        let bids = std::mem::take(&mut self.layout.speculative);
        let real = winners.len();
        for &(port, head) in &bids {
            let input_port = head >> M::SHIFT;
            let taken = !self.layout.output_port[port].ready.is_empty() || winners.as_slice()[..real].contains(&input_port);
            if !taken && !self.is_promised(input_port, port, now) && !self.is_busy(port, now) {
                // The bid stands for its port until the outcome of virtual-channel allocation is looked up below.
                self.pointers().offer(input_port, port << M::SHIFT, winners);
            }
        }
        let mut kept = real;
        for position in real..winners.len() {
            let input_port = winners.at(position);
            let port = self.layout.input_port[input_port].candidate >> M::SHIFT;
            let &(_, head) = bids.iter().find(|&&(bid, _)| bid == port).expect("the candidate came from a bid");
            let output = self.layout.input[head].output;
            let crosses = output != NONE && self.layout.output[output].credits > 0;
            self.layout.input_port[input_port].candidate = if crosses { output } else { NONE };
            winners.set(kept, input_port);
            kept += usize::from(crosses);
        }
        winners.truncate(kept);
        self.layout.speculative = bids;
        self.layout.speculative.clear();
    }

    /// Keeps a flit's channel busy, where flits take several cycles, and tells predictions, which look for gaps.
    fn occupy_channel_of(&mut self, input_port: u32, output: u32, is_tail: bool, now: u64) {
        let port = output >> M::SHIFT;
        if self.parameters.periodic {
            self.layout.busy_until[port] = now + u64::from(self.wiring.period[port]) + self.parameters.cycles_after(is_tail);
        }
        if let Some(unit) = &mut self.prediction {
            unit.note_grant(input_port, port, output, now);
        }
    }

    /// Winners cross the switch.
    #[inline(always)]
    fn traverse(&mut self, winners: &mut List, lists: &mut Block, step: u64, now: u64) {
        self.statistics.flit_hops += winners.len() as u64;
        let pointers = self.pointers();
        let mut tails = std::mem::take(&mut self.layout.tails);
        let Parameters { clock, traversal_cycles, .. } = self.parameters;
        let across = clock.cycle_of(step + u64::from(traversal_cycles), now);
        let notes_grants = self.parameters.periodic || self.prediction.is_some();
        let is_far = self.parameters.is_far;
        for (position, &input_port) in winners.as_slice().iter().enumerate() {
            if is_far {
                pointers.prefetch_for_sending(winners, position, now);
                self.prefetch_for_release(pointers, winners, position);
            }
            let departure = match &mut self.layout.departures {
                None => Departure::at(now),
                Some(departures) => departures.send(input_port, pointers.candidate_port(input_port), across, traversal_cycles, now),
            };
            let (output, is_tail) = pointers.send(input_port, departure);
            if notes_grants {
                self.occupy_channel_of(input_port, output, is_tail, now);
            }
            tails.push_if(output, is_tail);
        }
        winners.clear();
        self.release_behind(&tails, lists);
        tails.clear();
        put_back(&mut self.layout.tails, tails);
    }

    /// Gives back the output slots by which tails have left. After all have been sent, since the columns are used otherwise here.
    #[inline(always)]
    fn release_behind(&mut self, tails: &List, lists: &mut Block) {
        for &output in tails.as_slice() {
            let slot = std::mem::replace(&mut self.layout.output[output].holder, NONE);
            self.layout.input[slot].output = NONE;
            self.release(slot, output, lists);
        }
    }
}

/// Pointers to the columns of a tile, valid while it is not moved and the columns are not used otherwise.
#[derive(Clone, Copy)]
struct Pointers<M> {
    input: *mut InputVc,
    output: *mut OutputVc,
    output_port: *mut OutputPort<M>,
    input_port: *mut InputPort,
    links: *mut Links,
    arrivals: Posts,
    credits: Posts,
    #[cfg(debug_assertions)]
    slots: u32,
}

// SAFETY of all accessors: addresses come from the engine's own tables and lie within the columns; where assertions are on each
// access is checked. No two references to the same entry live at the same time.
impl<M: VcMask> Pointers<M> {
    #[inline(always)]
    fn check(self, _slot: u32) {
        #[cfg(debug_assertions)]
        assert!(_slot < self.slots, "slot {_slot} of {}", self.slots);
    }

    #[inline(always)]
    fn input<'l>(self, slot: u32) -> &'l mut InputVc {
        self.check(slot);
        unsafe { &mut *self.input.add(slot as usize) }
    }

    #[inline(always)]
    fn output<'l>(self, slot: u32) -> &'l mut OutputVc {
        self.check(slot);
        unsafe { &mut *self.output.add(slot as usize) }
    }

    #[inline(always)]
    fn output_port<'l>(self, port: u32) -> &'l mut OutputPort<M> {
        self.check(port << M::SHIFT);
        unsafe { &mut *self.output_port.add(port as usize) }
    }

    #[inline(always)]
    fn input_port<'l>(self, port: u32) -> &'l mut InputPort {
        self.check(port << M::SHIFT);
        unsafe { &mut *self.input_port.add(port as usize) }
    }

    #[inline(always)]
    fn links<'l>(self, port: u32) -> &'l mut Links {
        self.check(port << M::SHIFT);
        unsafe { &mut *self.links.add(port as usize) }
    }

    /// Marks an output virtual channel as ready and its port as active.
    #[inline(always)]
    fn set_ready(self, slot: u32, active: &mut List) {
        let address = slot >> M::SHIFT;
        let port = self.output_port(address);
        port.ready = port.ready.or(M::bit(slot & (M::BITS - 1)));
        active.push_if(address, !port.listed);
        port.listed = true;
    }

    /// Flits enter their buffers. One that finds an empty buffer makes its virtual channel ready, or is a new head.
    #[inline(always)]
    fn take_arrivals(self, events: &[u32], is_far: bool, active: &mut List, heads: &mut List) {
        for (position, &slot) in events.iter().enumerate() {
            if is_far {
                self.prefetch_for_arrivals(events, position);
            }
            let input = self.input(slot);
            let before = input.flits;
            input.flits = before + 1;
            if before == 0 {
                let output = input.output;
                if output == NONE {
                    heads.push(slot);
                } else if self.output(output).credits > 0 {
                    self.set_ready(output, active);
                }
            }
        }
    }

    /// Credits come back.
    #[inline(always)]
    fn take_credits(self, events: &[u32], is_far: bool, active: &mut List) {
        for (position, &slot) in events.iter().enumerate() {
            if is_far {
                self.prefetch_for_credits(events, position);
            }
            let output = self.output(slot);
            let before = output.credits;
            output.credits = before + 1;
            if before == 0 && output.holder != NONE && self.input(output.holder).flits > 0 {
                self.set_ready(slot, active);
            }
        }
    }

    /// iSLIP of one iteration: an active output port grants, the input port accepts the best of its grants.
    #[inline(always)]
    fn grant(self, port: u32, winners: &mut List) {
        let ready = self.output_port(port).ready;
        self.grant_among(port, ready, winners);
    }

    /// The same where only these virtual channels, one at least, are asked.
    #[inline(always)]
    fn grant_among(self, port: u32, ready: M, winners: &mut List) {
        let output = self.pick_of(port, ready);
        let input_port = self.output(output).holder >> M::SHIFT;
        self.offer(input_port, output, winners);
    }

    /// The output port grants: the first requesting input port at or after its pointer, and of its virtual channels the first
    /// at or after that port's pointer.
    #[inline(always)]
    fn pick_of(self, port: u32, ready: M) -> u32 {
        let base = port << M::SHIFT;
        let grant_pointer = self.output_port(port).grant_pointer;
        let mut best = base | ready.first();
        let mut rest = ready.rest();
        if rest.is_empty() {
            return best;
        }
        let mut best_key = self.grant_key(port, grant_pointer, best);
        while !rest.is_empty() {
            let output = base | rest.first();
            rest = rest.rest();
            let key = self.grant_key(port, grant_pointer, output);
            best = select_unpredictable(key < best_key, output, best);
            best_key = best_key.min(key);
        }
        best
    }

    #[inline(always)]
    fn grant_key(self, port: u32, grant_pointer: i16, output: u32) -> u64 {
        let holder = self.output(output).holder;
        let input_port = holder >> M::SHIFT;
        let port_distance = input_port.wrapping_sub(port).wrapping_sub(grant_pointer as u32);
        let vc_distance = (holder & (M::BITS - 1)).wrapping_sub(u32::from(self.input_port(input_port).vc_pointer));
        u64::from(port_distance) << 32 | u64::from(vc_distance)
    }

    /// The input port accepts the first granting output port at or after its pointer.
    #[inline(always)]
    fn offer(self, input_port: u32, output: u32, winners: &mut List) {
        let input = self.input_port(input_port);
        let held = input.candidate;
        let is_first = held == NONE;
        winners.push_if(input_port, is_first);
        let pointer = input_port.wrapping_add(input.accept_pointer as u32);
        let distance = |output: u32| (output >> M::SHIFT).wrapping_sub(pointer);
        input.candidate = select_unpredictable(is_first | (distance(output) < distance(held)), output, held);
    }

    /// Sends one flit from the front of the buffer that holds the candidate of an input port. Returns the output slot, and whether the
    /// flit was a tail.
    #[inline(always)]
    fn send(self, input_port: u32, departure: Departure) -> (u32, bool) {
        let input = self.input_port(input_port);
        let output = input.candidate;
        input.candidate = NONE;
        let slot = self.output(output).holder;
        input.accept_pointer = (output >> M::SHIFT).wrapping_sub(input_port).wrapping_add(1) as i16;
        input.vc_pointer = (slot & (M::BITS - 1)) as u16 + 1;
        let is_tail = self.send_to(output, departure);
        (output, is_tail)
    }

    /// The output port to which an input port sends in this step.
    #[inline(always)]
    fn candidate_port(self, input_port: u32) -> u32 {
        self.input_port(input_port).candidate >> M::SHIFT
    }

    /// Sends one flit to an output slot that somebody holds. Returns whether it was a tail.
    #[inline(always)]
    fn send_to(self, output: u32, departure: Departure) -> bool {
        let (port, vc) = (output >> M::SHIFT, output & (M::BITS - 1));
        let account = self.output(output);
        let slot = account.holder;
        let input_port = slot >> M::SHIFT;
        let credits = account.credits - 1;
        account.credits = credits;
        let buffer = self.input(slot);
        let (flits, left) = (buffer.flits - 1, buffer.left - 1);
        (buffer.flits, buffer.left) = (flits, left);

        let input_vc = slot & (M::BITS - 1);
        let towards = port.wrapping_sub(input_port);
        let upstream = self.links(input_port);
        self.credits.post(departure.credit.wrapping_add(u32::from(upstream.credit_delay)), upstream.credit_link + input_vc);

        let out = self.output_port(port);
        out.grant_pointer = 1u32.wrapping_sub(towards) as i16;
        let downstream = self.links(port);
        downstream.sent += 1;
        self.arrivals.post(departure.flit.wrapping_add(u32::from(downstream.flit_delay)), downstream.flit_link + vc);
        let stops = (flits == 0) | (credits == 0) | (left == 0);
        out.ready = out.ready.without(select_unpredictable(stops, M::bit(vc), M::default()));
        left == 0
    }

    /// Ports that still have something ready stay active.
    #[inline(always)]
    fn keep_active(self, active: &mut List) {
        active.retain(|address| {
            let port = self.output_port(address);
            port.listed = !port.ready.is_empty();
            port.listed
        });
    }
}
