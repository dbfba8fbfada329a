//! What a machine whose nodes translate themselves has to know of its users.

use super::tables::Tables;
use super::translator::Costs;
use kasuri_network::id::TerminalId;
use schemars::JsonSchema;
use serde::Deserialize;

/// The users of a machine, as its nodes see them.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The tables at the beginning.
    pub tables: Tables,
    /// What a translation costs.
    pub costs: Costs,
    /// What becomes of addresses at their node.
    pub addresses: Addresses,
    /// How users whose nodes are the same take turns; `None`: there are no such users.
    pub slices: Option<Slices>,
    /// Changes of tables at given times, in their order.
    pub writes: Vec<TableWrite>,
}

impl Sharing {
    /// Nobody shares anything, and translating costs nothing.
    pub fn of_one(tables: Tables) -> Self {
        Self { tables, costs: Costs::FREE, addresses: Addresses::default(), slices: None, writes: Vec::new() }
    }
}

/// What becomes of an address when an access has come to its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Addresses {
    /// Does the node's unit translate them, page by page? Otherwise each logical node has a piece of the memory.
    pub are_global: bool,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Where pages lie.
    pub order: PageOrder,
    /// The part of the pages that no memory holds.
    pub missing: f64,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { are_global: false, page_bytes: 4096, order: PageOrder::Random, missing: 0.0 }
    }
}

/// In which frames of a node's memory the pages of its logical nodes lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageOrder {
    /// In any, drawn once.
    #[default]
    Random,
    /// One after the other.
    Given,
}

/// Time sharing: one set of users after the other has the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Cycles of a slice.
    pub cycles: u64,
    /// Cycles for which each node works on a switch; all nodes do so at the same time.
    pub switch_cycles: u64,
    /// What happens to accesses under way.
    pub draining: Draining,
}

/// What happens to the accesses of a user whose slice ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Draining {
    /// All are answered before the switch.
    #[default]
    Answered,
    /// They stay in the network; what comes for the user meanwhile is taken in by the user's number.
    Left,
}

/// A change of an entry at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWrite {
    /// The cycle in which it begins.
    pub cycle: u64,
    /// The user whose table it is.
    pub user: u16,
    /// The logical node.
    pub node: u32,
    /// What it shall be.
    pub physical: Vec<TerminalId>,
}
