//! The edge of the network: a cycle of its terminals, injection and ejection, over any feed and any layout.
//!
//! A terminal has a queue (or one for each class: `class_queues`) and virtual channels into and out of the network. Where hosts share
//! memories, `memories` decides which flits pass. What routers have noted for the edge arrives by `events`. Invariant: a packet is counted
//! in flight from the head of its queue to the tail at its sink.

pub(crate) mod class_queues;
pub(crate) mod ejection;
pub(crate) mod events;
pub(crate) mod injection;
pub(crate) mod memories;
pub(crate) mod one_flit;
pub(crate) mod terminals;
