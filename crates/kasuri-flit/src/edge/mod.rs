//! The edge of the network: a cycle of its terminals.

pub(crate) mod class_queues;
pub(crate) mod ejection;
pub(crate) mod events;
pub(crate) mod injection;
pub(crate) mod memories;
pub(crate) mod one_flit;
pub(crate) mod terminals;
