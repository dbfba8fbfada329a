//! The keys of `[[user]]`, `[users]` and `[translation]`.

use kasuri_network::network::TerminalRef;
use kasuri_workload::endpoint::Space;
use kasuri_workload::translation::logical::LogicalNetwork;
use kasuri_workload::translation::placement::Placement;
use kasuri_workload::translation::sharing::{Addresses, Draining, PageOrder};
use kasuri_workload::translation::{Costs, Key as AliasKey, Level};
use kasuri_workload::units::Units;
use schemars::JsonSchema;
use serde::Deserialize;

/// The keys of a `[[user]]` outside its `[user.traffic]` or `[user.workload]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserParameters {
    /// The name of the user in the results.
    pub(in crate::users) name: String,
    /// The user's terminals: a number of terminals, which `placement` chooses, or a list. Left out where `table` names them.
    pub(in crate::users) nodes: Option<Nodes>,
    /// How so many terminals are chosen; that of `[users]` unless given.
    pub(in crate::users) placement: Option<Placement>,
    /// So many of the user's terminals, the last ones, are spare: the table does not name them at the beginning.
    #[serde(default)]
    pub(in crate::users) spare_nodes: u32,
    /// The user's table, a line for each logical node in turn: a terminal, a list of terminals (aliases; an empty list is an invalid
    /// entry), or `{ logical, physical, key }`. By default logical node i is the user's i-th terminal.
    pub(in crate::users) table: Option<Vec<TableLine>>,
    /// Aliases are chosen by `(address >> key_shift) mod k`: log2 of a line's bytes.
    #[serde(default = "six")]
    pub(in crate::users) key_shift: u32,
    /// The network that the user's programs see. Patterns that need a structure take it from here.
    pub(in crate::users) logical: Option<LogicalNetwork>,
    /// Which logical node is on which of the user's terminals: as given, or as a search brings logical neighbours close together.
    #[serde(default)]
    pub(in crate::users) embedding: EmbeddingKind,
    /// The users with which this user may share terminals.
    #[serde(default)]
    pub(in crate::users) overlap: Vec<String>,
    /// The virtual channels that the user's packets may use: the first, and one past the last. All unless given.
    pub(in crate::users) virtual_channels: Option<[u32; 2]>,
    /// The user's part of a switch output where users contend, relative to the others'. Counts with `users.isolation = "channels-and-shares"`.
    #[serde(default = "whole_share")]
    pub(in crate::users) share: f64,
    /// Every so many cycles an entry of its table moves to a spare node or, without any, two entries change places: once no access to or
    /// from these nodes is under way, new ones being held. The ranks of a workload, and what terminals have left of a batch, move with
    /// their nodes.
    pub(in crate::users) change_every: Option<u64>,
    /// Changes of the table at given times: each once no access to or from the node is under way, new ones being held.
    #[serde(default)]
    pub(in crate::users) table_writes: Vec<TableWriteLine>,
    /// What chooses among the terminals of a logical node.
    #[serde(default)]
    pub(in crate::users) key: AliasKey,
    /// What the accesses of the user's program name: its logical nodes, or the terminals of the machine by the table of the operating system.
    #[serde(default)]
    pub(in crate::users) space: Space,
    /// Is it the operating system, whose accesses may name all terminals, and which shares nodes with any user?
    #[serde(default)]
    pub(in crate::users) supervisor: bool,
}

/// A line of `table_writes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::users) struct TableWriteLine {
    /// The cycle in which the change begins.
    pub(in crate::users) cycle: u64,
    /// The logical node, which the table must have.
    pub(in crate::users) logical: u32,
    /// Its terminals from then on, by number or name.
    pub(in crate::users) physical: Vec<TerminalRef>,
}

fn six() -> u32 {
    6
}

fn whole_share() -> f64 {
    1.0
}

/// `nodes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::users) enum Nodes {
    /// So many.
    Count(u32),
    /// These, in the order of the logical nodes, by number or name.
    List(Vec<TerminalRef>),
}

/// A line of `table`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::users) enum TableLine {
    /// The next logical node is this terminal, by number or name.
    One(TerminalRef),
    /// The next logical node is these terminals, chosen by key bits.
    Aliases(Vec<TerminalRef>),
    /// A logical node for one value of the key bits.
    Entry(TableEntry),
}

/// A line of `table` in full.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::users) struct TableEntry {
    /// The logical node.
    pub(in crate::users) logical: u32,
    /// The terminal, by number or name.
    pub(in crate::users) physical: TerminalRef,
    /// The value of the key bits that chooses it.
    #[serde(default)]
    pub(in crate::users) key: u32,
}

/// `embedding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::users) enum EmbeddingKind {
    /// In the order of the terminals.
    #[default]
    Given,
    /// By simulated annealing.
    Optimised,
}

/// The keys of `[users]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UsersSection {
    /// How terminals are chosen for users that do not say it.
    pub(in crate::users) placement: Placement,
    /// Only this user runs; the terminals of the other users stay idle. With "" all users run.
    pub(in crate::users) alone: Option<String>,
    /// What keeps users apart besides their tables.
    pub(in crate::users) isolation: Isolation,
    /// Which routers a user's packets may pass.
    pub(in crate::users) routing: UserRouting,
    /// Time sharing: users on the same nodes have the processors in turn, each for so many cycles. Needs a machine with programs.
    pub(in crate::users) slice_cycles: Option<u64>,
    /// Time sharing: cycles for which each node works on a switch, all at the same time, once what was begun has come to its end.
    pub(in crate::users) switch_cycles: u64,
    /// Time sharing: what happens to accesses under way when a slice ends.
    pub(in crate::users) draining: Draining,
}

impl UsersSection {
    pub(in crate::users) fn alone(&self) -> Option<&str> {
        self.alone.as_deref().filter(|alone| !alone.is_empty())
    }
}

/// `users.routing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::users) enum UserRouting {
    /// Those to which `[routing]` leads.
    #[default]
    Anywhere,
    /// Only routers at which the user has nodes, or at which no other user has any: up a spanning order of these, then down, in place of
    /// `[routing]`.
    Inside,
}

/// `users.isolation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::users) enum Isolation {
    /// Nothing: all users' packets share buffers and channels as they come.
    #[default]
    None,
    /// Each user has virtual channels of its own, as many as the others.
    Channels,
    /// In addition, switch outputs are divided among the users that request them, by their shares.
    ChannelsAndShares,
}

/// The keys of `[translation]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TranslationSection {
    /// Where node numbers are translated.
    pub(in crate::users) level: Level,
    /// Hardware: entries of the translation look-aside buffer.
    pub(in crate::users) tlb_entries: u32,
    /// Hardware: cycles of a translation that finds its entry in the buffer.
    pub(in crate::users) hit_cycles: u32,
    /// Hardware: cycles more for one that does not: a read of memory. `read_ns` unless given, or 10 where cycles have no length.
    pub(in crate::users) walk_cycles: Option<u32>,
    /// Operating system: nanoseconds of the call that each message needs. Needs the length of a cycle.
    pub(in crate::users) os_call_ns: f64,
    /// Library: reads of memory that find an entry.
    pub(in crate::users) library_reads: u32,
    /// Nanoseconds of a read of memory. Needs the length of a cycle.
    pub(in crate::users) read_ns: f64,
    /// Hardware: users whose whole tables a unit holds, of those active at its node, with that of the operating system. With 0 there is the
    /// buffer alone.
    pub(in crate::users) unit_tables: u32,
    /// What becomes of addresses at their node. `global` needs a machine with programs.
    pub(in crate::users) memory: AddressKind,
    /// Global memory: bytes of a page.
    pub(in crate::users) page_bytes: u32,
    /// Global memory: where the pages of a node lie.
    pub(in crate::users) page_order: PageOrder,
    /// Global memory: the part of the pages, drawn at random, that no memory holds. An access to one is answered with an error.
    pub(in crate::users) missing_pages: f64,
}

/// `translation.memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::users) enum AddressKind {
    /// Nothing: an address is one of the memory that the logical node has at its node.
    #[default]
    None,
    /// The receiving node translates them, too.
    Global,
}

impl Default for TranslationSection {
    fn default() -> Self {
        let (tlb_entries, hit_cycles, walk_cycles) = (64, 1, None);
        Self {
            level: Level::Hardware,
            tlb_entries,
            hit_cycles,
            walk_cycles,
            os_call_ns: 13_000.0,
            library_reads: 20,
            read_ns: 100.0,
            unit_tables: 0,
            memory: AddressKind::None,
            page_bytes: 4096,
            page_order: PageOrder::Random,
            missing_pages: 0.0,
        }
    }
}

impl TranslationSection {
    pub(in crate::users) fn costs(&self, units: Units) -> Result<Costs, (&'static str, String)> {
        for (key, value) in [("os_call_ns", self.os_call_ns), ("read_ns", self.read_ns)] {
            if !(0.0..1e12).contains(&value) {
                return Err((key, format!("is {value}; it must be 0 to 10^12")));
            }
        }
        let cycles = |ns: f64| units.cycles(ns).map(|cycles| cycles.ceil() as u32);
        let lacking = "needs the length of a cycle to tell its cost; give network.cycle_ns";
        if self.level != Level::Hardware && units.cycle_ns.is_none() {
            return Err(("level", format!("is \"{}\", which {lacking}", self.level.name())));
        }
        Ok(Costs {
            level: self.level,
            tlb_entries: self.tlb_entries,
            hit_cycles: self.hit_cycles,
            walk_cycles: self.walk_cycles.or(cycles(self.read_ns)).unwrap_or(10),
            call_cycles: cycles(self.os_call_ns).unwrap_or(0),
            library_cycles: cycles(self.read_ns * f64::from(self.library_reads)).unwrap_or(0),
            unit_tables: self.unit_tables,
        })
    }

    pub(in crate::users) fn addresses(&self) -> Result<Addresses, (&'static str, String)> {
        let are_global = self.memory == AddressKind::Global;
        if are_global && self.level != Level::Hardware {
            let problem = format!("is \"global\", which units in hardware translate; level is \"{}\"", self.level.name());
            return Err(("memory", problem));
        }
        if !(8..=1 << 20).contains(&self.page_bytes) || !self.page_bytes.is_multiple_of(8) {
            return Err(("page_bytes", format!("is {}; it must be a multiple of 8 from 8 to 2^20", self.page_bytes)));
        }
        if !(0.0..=1.0).contains(&self.missing_pages) {
            return Err(("missing_pages", format!("is {}; it must be 0 to 1", self.missing_pages)));
        }
        Ok(Addresses { are_global, page_bytes: self.page_bytes, order: self.page_order, missing: self.missing_pages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::tests::structure;

    #[test]
    fn what_serde_reads_of_plain_values_the_schema_allows() {
        structure::<UserParameters>("name = \"A\"\nnodes = 4");
        structure::<UsersSection>("");
        structure::<TranslationSection>("");
    }
}
