//! What the cycle of one-flit packets notes within a step.

use crate::record::allocators::masks::Rule;
use crate::record::allocators::rule_on_masks;
use crate::record::list::List;
use crate::record::marks::NONE;
use kasuri_model::router::AllocatorParameters;
use kasuri_network::memory::Column;

/// The distance of no candidate. One may be as far, and is taken nevertheless.
pub(super) const NOTHING_CHOSEN: u64 = u64::MAX;

/// What is noted within a step.
pub(super) struct Notes {
    /// How virtual channels are allocated, and how switches are.
    pub(super) channels: Rule,
    pub(super) switch: Rule,
    /// By virtual channel of a port: the head with the best claim to it.
    pub(super) claims: Column<u32>,
    /// Heads to which virtual channels of a port are offered.
    pub(super) offers: Vec<(u32, u32)>,
    /// By input port: how far its candidate is from its pointers, or [`NOTHING_CHOSEN`].
    pub(super) distance: Column<u64>,
    /// By output port: the input port that has the best claim to it, or that it is matched to, or [`NONE`].
    pub(super) chosen: Column<u32>,
    /// Output ports that no input port has accepted yet.
    pub(super) open: List,
}

impl Notes {
    /// What the cycle notes of so many ports, and of so many virtual channels of a port.
    pub(super) fn new(vc: &AllocatorParameters, switch: &AllocatorParameters, channels: u32, ports: u32) -> Self {
        let rule = |parameters| rule_on_masks(parameters).expect("the cycle serves routers with such allocators only");
        let switch = rule(switch);
        let if_noted = |is_noted: bool| if is_noted { ports as usize } else { 0 };
        let matched_again = if_noted(matches!(switch, Rule::Islip(2..)));
        Self {
            channels: rule(vc),
            switch,
            claims: Column::filled(channels as usize, NONE),
            offers: Vec::new(),
            distance: Column::filled(if_noted(switch == Rule::InputFirst), NOTHING_CHOSEN),
            chosen: Column::filled(if_noted(switch != Rule::Islip(1)), NONE),
            open: List::with_capacity(matched_again),
        }
    }

    /// Are output slots listed as active, and not their ports?
    pub(super) fn lists_slots(&self) -> bool {
        self.switch == Rule::InputFirst
    }
}
