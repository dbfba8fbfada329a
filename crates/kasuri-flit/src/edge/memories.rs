//! Hosts whose terminals share a memory (`[hosts]`): a flit enters the network or leaves it when the memory of its host has taken it.
//!
//! A memory takes one flit after the other, each in the same time, a part of a cycle or several cycles. Where several of a host's
//! terminals want it in a cycle, they have it in turn: the injection and the ejection of each terminal have one turn. What has arrived waits in
//! the buffer of the terminal's channel, whose credit goes back when the memory takes it, so a slow memory blocks the network behind it. Time
//! is counted in whole parts of a cycle, so nothing is lost over a long run.

use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::layout::RouterLayout;
use crate::state::queues::NO_VC;
use crate::state::share::Share;
use crate::state::tile::{Tile, put_back};
use kasuri_model::scenario::Scenario;
use std::ops::Range;

/// A cycle in the parts in which the memories' time is counted: as fine as the bandwidth is known.
const CYCLE: u128 = 1 << 52;

/// The memories of a tile's hosts. Hosts and terminals are counted from the tile's first.
#[derive(Debug)]
pub(crate) struct Memories {
    terminals_per_host: u32,
    terminals: u32,
    virtual_channels: u32,
    shift: u32,
    /// How long a flit takes.
    service: u128,
    hosts: Vec<Memory>,
    /// By slot: flits that have arrived and wait.
    waiting: Vec<u16>,
    /// By terminal: the virtual channel whose flit was taken last.
    last: Vec<u8>,
}

/// The memory of a host.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// When it has taken all that it has begun with.
    free_from: u128,
    /// Whose turn is next: twice the terminal's number in the host for its injection, and one more for its ejection.
    turn: u32,
    /// Arrived flits of the host that wait.
    waiting: u32,
}

impl Memories {
    /// Those of a tile's terminals; none unless hosts share memories. A slot is `2^shift` times the terminal and the virtual channel.
    pub(crate) fn of(scenario: &Scenario, share: &Share, shift: u32) -> Option<Box<Self>> {
        let hosts = scenario.hosts?;
        let terminals = share.terminals.len() as u32;
        Some(Box::new(Self {
            terminals_per_host: hosts.terminals,
            terminals,
            virtual_channels: scenario.router.virtual_channels,
            shift,
            service: (CYCLE as f64 / hosts.memory_bandwidth).round() as u128,
            hosts: vec![Memory::default(); hosts.count(terminals) as usize],
            waiting: vec![0; (terminals as usize) << shift],
            last: vec![0; terminals as usize],
        }))
    }

    /// Does no flit wait that has arrived?
    pub(crate) fn is_idle(&self) -> bool {
        self.hosts.iter().all(|memory| memory.waiting == 0)
    }

    /// By slot: flits that have arrived and wait.
    pub(crate) fn waiting(&self) -> &[u16] {
        &self.waiting
    }

    /// A flit arrives in a slot.
    fn arrive(&mut self, slot: u32) {
        self.waiting[slot as usize] += 1;
        self.hosts[(slot >> self.shift) as usize / self.terminals_per_host as usize].waiting += 1;
    }

    /// Can the memory of a host begin with a flit in this cycle?
    fn is_free(&self, host: usize, now: u64) -> bool {
        self.hosts[host].free_from < (u128::from(now) + 1) * CYCLE
    }

    /// The memory of a host takes a flit.
    fn take(&mut self, host: usize, now: u64) {
        let memory = &mut self.hosts[host];
        memory.free_from = memory.free_from.max(u128::from(now) * CYCLE) + self.service;
    }

    /// The next slot of a terminal with a flit that has arrived, which is taken; its virtual channels take turns.
    fn next_arrived(&mut self, terminal: u32) -> Option<u32> {
        let channels = self.virtual_channels;
        let order = (1..=channels).map(|step| (u32::from(self.last[terminal as usize]) + step) % channels);
        let slot = order.map(|vc| terminal << self.shift | vc).find(|&slot| self.waiting[slot as usize] > 0)?;
        self.last[terminal as usize] = (slot - (terminal << self.shift)) as u8;
        self.waiting[slot as usize] -= 1;
        self.hosts[(terminal / self.terminals_per_host) as usize].waiting -= 1;
        Some(slot)
    }

    /// The terminals of a host.
    fn terminals_of(&self, host: usize) -> Range<u32> {
        let first = host as u32 * self.terminals_per_host;
        first..(first + self.terminals_per_host).min(self.terminals)
    }
}

impl<L: RouterLayout> Tile<'_, L> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory of two fifths of a flit a cycle takes exactly 40 flits in each 100 cycles, whenever they are counted; one of 2.5 takes 250.
    #[test]
    fn a_memory_takes_its_flits_in_time_and_saves_none_up() {
        for (bandwidth, of_hundred) in [(0.4, 40), (1.0, 100), (2.5, 250), (8.0, 800)] {
            let mut memories = Memories {
                terminals_per_host: 4,
                terminals: 4,
                virtual_channels: 1,
                shift: 0,
                service: (CYCLE as f64 / bandwidth).round() as u128,
                hosts: vec![Memory::default()],
                waiting: vec![0; 4],
                last: vec![0; 4],
            };
            // It has been idle for long: that gives it no more than the cycle at hand.
            for begin in [1_000_000u64, 10_000_000_000] {
                let mut taken = 0;
                for now in begin..begin + 100 {
                    while memories.is_free(0, now) {
                        memories.take(0, now);
                        taken += 1;
                    }
                }
                assert!((of_hundred..=of_hundred + 1).contains(&taken), "{bandwidth}: {taken} of {of_hundred}");
            }
        }
    }
}
