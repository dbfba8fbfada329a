//! What happened when, where that is asked for.

/// The part of a terminal, and what it does there, where messages of a workload have no interfaces: a message waits behind others that its
/// source sends before.
pub const QUEUE: &str = "queue";
/// The flits of a message leave its source.
pub const SEND: &str = "send";
/// The last flit of a message has left its source and has not arrived; at the destination.
pub const RECEIVE: &str = "receive";
/// A rank computes.
pub const COMPUTE: &str = "compute";

/// Something that a part of a machine did from one time to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What.
    pub name: &'static str,
    /// The node.
    pub node: u32,
    /// The part of the node.
    pub part: &'static str,
    /// The parcel that it was done for, numbered in the order in which parcels were begun.
    pub parcel: u64,
    /// Flits of the message that the parcel is; 0 where nothing says.
    pub flits: u32,
    /// When it began, ns.
    pub begin_ns: f64,
    /// When it ended, ns.
    pub end_ns: f64,
}
