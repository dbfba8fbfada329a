//! The memories of hosts whose terminals share one, and how long each is busy.
//!
//! Time is counted in whole parts of a cycle, so nothing is lost over a long run.

use crate::state::share::Share;
use kasuri_model::scenario::Scenario;
use std::ops::Range;

/// A cycle in the parts in which the memories' time is counted: as fine as the bandwidth is known.
const CYCLE: u128 = 1 << 52;

/// The memories of a tile's hosts. Hosts and terminals are counted from the tile's first.
#[derive(Debug)]
pub(crate) struct Memories {
    pub(crate) terminals_per_host: u32,
    pub(crate) terminals: u32,
    pub(crate) virtual_channels: u32,
    pub(crate) shift: u32,
    /// How long a flit takes.
    pub(crate) service: u128,
    pub(crate) hosts: Vec<Memory>,
    /// By slot: flits that have arrived and wait.
    pub(crate) waiting: Vec<u16>,
    /// By terminal: the virtual channel whose flit was taken last.
    pub(crate) last: Vec<u8>,
}

/// The memory of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// When it has taken all that it has begun with.
    pub(crate) free_from: u128,
    /// Whose turn is next: twice the terminal's number in the host for its injection, and one more for its ejection.
    pub(crate) turn: u32,
    /// Arrived flits of the host that wait.
    pub(crate) waiting: u32,
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
    pub(crate) fn arrive(&mut self, slot: u32) {
        self.waiting[slot as usize] += 1;
        self.hosts[(slot >> self.shift) as usize / self.terminals_per_host as usize].waiting += 1;
    }

    /// Can the memory of a host begin with a flit in this cycle?
    pub(crate) fn is_free(&self, host: usize, now: u64) -> bool {
        self.hosts[host].free_from < (u128::from(now) + 1) * CYCLE
    }

    /// The memory of a host takes a flit.
    pub(crate) fn take(&mut self, host: usize, now: u64) {
        let memory = &mut self.hosts[host];
        memory.free_from = memory.free_from.max(u128::from(now) * CYCLE) + self.service;
    }

    /// The next slot of a terminal with a flit that has arrived, which is taken; its virtual channels take turns.
    pub(crate) fn next_arrived(&mut self, terminal: u32) -> Option<u32> {
        let channels = self.virtual_channels;
        let order = (1..=channels).map(|step| (u32::from(self.last[terminal as usize]) + step) % channels);
        let slot = order.map(|vc| terminal << self.shift | vc).find(|&slot| self.waiting[slot as usize] > 0)?;
        self.last[terminal as usize] = (slot - (terminal << self.shift)) as u8;
        self.waiting[slot as usize] -= 1;
        self.hosts[(terminal / self.terminals_per_host) as usize].waiting -= 1;
        Some(slot)
    }

    /// The terminals of a host.
    pub(crate) fn terminals_of(&self, host: usize) -> Range<u32> {
        let first = host as u32 * self.terminals_per_host;
        first..(first + self.terminals_per_host).min(self.terminals)
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
