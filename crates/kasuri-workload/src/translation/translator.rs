//! The part of an interface that translates, and what a translation costs at each level.

use super::tables::{SYSTEM, VirtualNode};
use crate::endpoint::tlb::Tlb;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where node numbers are translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A translation look-aside buffer in the interface; what it does not hold is read from the table in memory.
    #[default]
    Hardware,
    /// A system call for each message.
    Os,
    /// The program reads the table itself; nothing keeps it from sending elsewhere.
    Library,
}

impl Level {
    /// The name in the experiment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Os => "os",
            Self::Library => "library",
        }
    }

    /// Is a program kept from naming nodes outside of its table?
    pub fn protects(self) -> bool {
        self != Self::Library
    }
}

/// What a translation costs, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// The level.
    pub level: Level,
    /// Hardware: entries of the buffer, fully associative, the least recently used one is replaced.
    pub tlb_entries: u32,
    /// Hardware: cycles of a translation that finds its entry.
    pub hit_cycles: u32,
    /// Hardware: cycles more for one that does not: a read of local memory.
    pub walk_cycles: u32,
    /// Operating system: cycles of a call.
    pub call_cycles: u32,
    /// Library: cycles of the reads that find the entry.
    pub library_cycles: u32,
    /// Hardware: users whose whole tables a unit holds beside its buffer: of those active at its node the first so many, and the operating
    /// system. With 0 there is the buffer alone. Source: Sato and Tanaka, section 3.5.
    pub unit_tables: u32,
}

impl Costs {
    /// Hardware that takes no time.
    pub const FREE: Self =
        Self { level: Level::Hardware, tlb_entries: 64, hit_cycles: 0, walk_cycles: 0, call_cycles: 0, library_cycles: 0, unit_tables: 0 };
}

/// What finding an entry takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// Cycles in the unit, the processor or the operating system.
    pub cycles: u32,
    /// Cycles of the read of local memory that follows, if there is one.
    pub walk_cycles: u32,
}

/// What one interface has of the translation: its buffer, and what it has counted. The tables stay in [`super::Tables`].
#[derive(Clone, Debug)]
pub struct Translator {
    costs: Costs,
    tlb: Tlb<VirtualNode>,
    /// Look-ups in tables that the unit holds whole.
    held: u64,
}

impl Translator {
    /// An interface with an empty buffer.
    pub fn new(costs: Costs) -> Self {
        Self { costs, tlb: Tlb::new(costs.tlb_entries as usize), held: 0 }
    }

    /// What finding an entry takes now. The buffer remembers it; users do not push each other out by name, for the user is a part of the key,
    /// so a switch of users flushes nothing. `rank`: the place of the user among those active at this node.
    pub fn look_up(&mut self, target: VirtualNode, rank: u32) -> LookUp {
        let only = |cycles| LookUp { cycles, walk_cycles: 0 };
        let is_held = self.costs.unit_tables > 0 && (target.user == SYSTEM || rank < self.costs.unit_tables);
        match self.costs.level {
            Level::Os => only(self.costs.call_cycles),
            Level::Library => only(self.costs.library_cycles),
            Level::Hardware if is_held => {
                self.held += 1;
                only(self.costs.hit_cycles)
            }
            Level::Hardware if self.tlb.access(target) => only(self.costs.hit_cycles),
            Level::Hardware => LookUp { cycles: self.costs.hit_cycles, walk_cycles: self.costs.walk_cycles },
        }
    }

    /// Cycles that finding an entry takes now, a read of memory included ([`Self::look_up`]).
    pub fn cycles(&mut self, target: VirtualNode, rank: u32) -> u32 {
        let LookUp { cycles, walk_cycles } = self.look_up(target, rank);
        cycles + walk_cycles
    }

    /// Forgets an entry, because the table changes. Was it held?
    pub fn invalidate(&mut self, target: VirtualNode) -> bool {
        self.tlb.invalidate(&target)
    }

    /// Translations that found their entry in the buffer, or in a table that the unit holds.
    pub fn hits(&self) -> u64 {
        self.tlb.hits + self.held
    }

    /// Translations that did not.
    pub fn misses(&self) -> u64 {
        self.tlb.misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        level: Level::Hardware,
        tlb_entries: 2,
        hit_cycles: 1,
        walk_cycles: 10,
        call_cycles: 1300,
        library_cycles: 200,
        unit_tables: 0,
    };

    fn entry(user: u16, node: u32) -> VirtualNode {
        VirtualNode { user, node }
    }

    #[test]
    fn a_miss_costs_a_walk_and_users_keep_their_entries_apart() {
        let mut translator = Translator::new(COSTS);
        let accesses = [(0, 4), (0, 4), (1, 4), (0, 4), (1, 5), (1, 4)];
        let cycles: Vec<u32> = accesses.iter().map(|&(user, node)| translator.cycles(entry(user, node), 0)).collect();
        assert_eq!(cycles, [11, 1, 11, 1, 11, 11]);
        assert_eq!((translator.hits(), translator.misses()), (2, 4));
    }

    #[test]
    fn a_forgotten_entry_is_read_again() {
        let mut translator = Translator::new(COSTS);
        translator.cycles(entry(0, 1), 0);
        assert!(translator.invalidate(entry(0, 1)));
        assert!(!translator.invalidate(entry(0, 1)));
        assert_eq!(translator.cycles(entry(0, 1), 0), 11);
    }

    #[test]
    fn other_levels_cost_the_same_each_time() {
        for (level, cycles) in [(Level::Os, 1300), (Level::Library, 200)] {
            let mut translator = Translator::new(Costs { level, ..COSTS });
            assert_eq!([0, 0, 1].map(|node| translator.cycles(entry(0, node), 0)), [cycles; 3]);
            assert_eq!(translator.hits() + translator.misses(), 0);
        }
    }

    /// The unit holds the tables of the first user at its node and of the operating system: these need no entry of the buffer.
    #[test]
    fn tables_in_the_unit_never_miss() {
        let mut translator = Translator::new(Costs { unit_tables: 1, tlb_entries: 0, ..COSTS });
        let cycles = [(3, 0), (SYSTEM, 0), (4, 1)].map(|(user, rank)| translator.cycles(entry(user, 1), rank));
        assert_eq!(cycles, [1, 1, 11]);
        assert_eq!((translator.hits(), translator.misses()), (2, 1));
    }
}
