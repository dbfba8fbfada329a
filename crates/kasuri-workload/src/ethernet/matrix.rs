//! A connection matrix: flows between hosts, when they start, and what sets them off.

/// What begins a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// This many picoseconds after the start.
    At(u64),
    /// The trigger with this index.
    Trigger(u32),
}

/// One flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The sending host.
    pub source: u32,
    /// The receiving host, another.
    pub destination: u32,
    /// Bytes of payload, at least 1.
    pub bytes: u64,
    /// The number that switches hash.
    pub id: u32,
    /// When it begins.
    pub begin: Begin,
    /// The index of the trigger that is told when the sender has all acknowledged.
    pub tells: Option<u32>,
}

/// What a trigger does when it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// Starts all its flows.
    Oneshot,
    /// Starts the next of its flows.
    Multishot,
    /// Starts all its flows when it has been told this often, at least once.
    Barrier(u32),
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its number in the file.
    pub id: u32,
    /// What it does.
    pub kind: TriggerKind,
    /// The indices of its flows, ascending.
    pub flows: Vec<u32>,
}

/// All flows of a run, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Hosts.
    pub hosts: u32,
    /// The flows.
    pub connections: Vec<Connection>,
    /// The triggers, by ascending number.
    pub triggers: Vec<Trigger>,
}
