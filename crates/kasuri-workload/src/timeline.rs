//! What happened when, where that is asked for.

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
    /// When it began, ns.
    pub begin_ns: f64,
    /// When it ended, ns.
    pub end_ns: f64,
}
