//! Hosts whose terminals share a memory (`[hosts]`): a flit enters the network or leaves it when the memory of its host has taken it.
//!
//! A memory takes one flit after the other, each in the same time, a part of a cycle or several cycles. Where several of a host's
//! terminals want it in a cycle, they have it in turn: the injection and the ejection of each terminal have one turn. What has arrived waits in
//! the buffer of the terminal's channel, whose credit goes back when the memory takes it, so a slow memory blocks the network behind it. Time
//! is counted in whole parts of a cycle, so nothing is lost over a long run.

use crate::record::list::put_back;
use crate::record::marks::NO_VC;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::layout::RouterState;
use crate::state::memories::Memories;
use crate::state::tile::Tile;

impl<L: RouterState> Tile<'_, L> {
    /// Advances all terminals through cycle `now`. What waits for a memory does so beside what other terminals of the host want, so all
    /// blocks go through the cycle together.
    #[inline(never)]
    pub(crate) fn shared_memory_cycle(&mut self, now: u64) {
        let blocks = self.parameters.blocks - self.parameters.router_blocks;
        let Some(mut memories) = self.terminals.memories.take() else { return };
        for block in 0..blocks {
            self.take_into_memories(&mut memories, block, now);
            let mut events = std::mem::take(&mut self.in_flight.due);
            self.credit_sources(block, now, &mut events);
            put_back(&mut self.in_flight.due, events);
            self.edge.begin_cycle(block, now);
            self.serve_queues(block, now);
        }
        for host in 0..memories.hosts.len() {
            self.serve_host(&mut memories, host, now);
        }
        self.terminals.memories = Some(memories);
        for block in 0..blocks {
            self.terminals.note_ready(block);
            self.edge.end_cycle(block, now + 1);
        }
    }

    fn take_into_memories(&mut self, memories: &mut Memories, block: u32, now: u64) {
        let mut events = std::mem::take(&mut self.in_flight.due);
        self.in_flight.arrivals.take(now, self.parameters.router_blocks + block, &mut events);
        let first_slot = self.first_terminal_slot();
        events.drain(..).for_each(|address| memories.arrive(address - first_slot));
        put_back(&mut self.in_flight.due, events);
    }

    /// The memory of a host takes what it can in this cycle: at most one flit that each terminal sends and one that it gets, in turn.
    fn serve_host(&mut self, memories: &mut Memories, host: usize, now: u64) {
        let terminals = memories.terminals_of(host);
        let slots = terminals.start << L::Mask::SHIFT..terminals.end << L::Mask::SHIFT;
        if memories.hosts[host].waiting == 0 && !self.terminals.may_send(slots) {
            return;
        }
        let turns = 2 * terminals.len() as u32;
        let first = memories.hosts[host].turn;
        for turn in (0..turns).map(|step| (first + step) % turns) {
            if !memories.is_free(host, now) {
                return;
            }
            let terminal = terminals.start + turn / 2;
            let is_served =
                if turn % 2 == 0 { self.send_from_memory(terminal, now) } else { self.sink_into_memory(memories, terminal, now) };
            if is_served {
                memories.take(host, now);
                memories.hosts[host].turn = (turn + 1) % turns;
            }
        }
    }

    /// A terminal sends a flit, if it has one, a credit and its channel.
    fn send_from_memory(&mut self, terminal: u32, now: u64) -> bool {
        let vc = self.edge.queues.heads[terminal].vc;
        let slot = terminal << L::Mask::SHIFT | u32::from(vc);
        if vc == NO_VC || !self.terminals.has_credit(slot) || self.terminals.is_busy(terminal, now) {
            return false;
        }
        self.statistics.interval.injected_flits += 1;
        self.statistics.balance.flits_inside += 1;
        self.send_flit(slot, now);
        true
    }

    /// A terminal gets a flit that has arrived, if there is one.
    fn sink_into_memory(&mut self, memories: &mut Memories, terminal: u32, now: u64) -> bool {
        let Some(slot) = memories.next_arrived(terminal) else { return false };
        self.statistics.interval.accepted_flits += u64::from(!self.statistics.counts_whole_packets);
        self.statistics.balance.flits_inside -= 1;
        self.statistics.balance.flits_in_flight -= 1;
        self.sink(slot, now);
        true
    }
}
