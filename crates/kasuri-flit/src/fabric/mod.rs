//! The fabric: what routers do in a cycle.
//!
//! The order within a cycle: flits and credits that arrive are taken; heads that have been routed bid for virtual channels; new
//! heads are routed; held virtual channels with a flit and a credit bid for the switch; winners cross it, their flits and
//! credits are posted. Each step is one flat loop over a list, so that the cost follows the events and branches stay
//! predictable; the result does not depend on the order within a list, which is sorted where it would (`state/claims.rs`).
//!
//! What happens once per packet is written once ([`routing`], [`vc_allocation`]), over
//! [`RouterState`](crate::state::layout::RouterState); what happens once per flit (arrivals, switch allocation, traversal) is written for
//! each of the [`layouts`], behind [`cycle::RouterCycle`]. What only some routers have is one of the [`features`].
//!
//! The fabric knows no terminal and no feed. What concerns them are [`Events`](crate::record::event::Events), which the tile hands on.

pub(crate) mod congestion;
pub(crate) mod cycle;
pub(crate) mod features;
pub(crate) mod layouts;
pub(crate) mod routing;
pub(crate) mod vc_allocation;
