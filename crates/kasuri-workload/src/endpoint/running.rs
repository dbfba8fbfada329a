//! A machine whose packets go through the routers, while it runs: what every engine asks of its interfaces, and what they ask of it.
//!
//! The machine knows what happens and how long its interfaces take; the engine knows how packets travel. It says when a packet has come to the
//! router of its destination and when it stands before the interface, and is told ([`Effect`]) when an interface has a packet to send and
//! when it takes one.

use crate::translation::TranslationCounts;
use kasuri_network::id::TerminalId;

/// A packet of a machine, as engines carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachinePacket {
    /// Who sends it.
    pub source: TerminalId,
    /// Who receives it.
    pub destination: TerminalId,
    /// Its length in flits, at least 1.
    pub flits: u32,
    /// The part of the machine that it belongs to: its class among `Endpoint::class_channels`.
    pub part: u8,
    /// Is it a reply?
    pub is_reply: bool,
    /// The access that it asks for or answers: no other packets under way have this name.
    pub access: u32,
}

/// What an engine has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The packet joins the queue of its source's injection channel.
    Send(MachinePacket),
    /// The interface of a node has begun to work on the packet to which the engine gave this name: it stands in its way no more.
    Taken {
        /// The node.
        node: TerminalId,
        /// The engine's name for the packet.
        name: u32,
    },
}

/// What interfaces did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Requests that were answered.
    pub answered: u64,
    /// By terminal: the fraction of the time in which its interface worked.
    pub busy: Vec<f64>,
    /// By terminal: the fraction in which its router held a packet for it.
    pub awaited: Vec<f64>,
    /// By part: what it had of the translation.
    pub translations: Vec<TranslationCounts>,
    /// Time sharing: switches between users, and the cycles that they took, draining included.
    pub switches: u64,
    /// The cycles from the ends of slices to the beginnings of the next ones.
    pub switch_cycles: u64,
}

/// The interfaces of all terminals and their programs. They are told the time, in cycles, which never goes back.
pub trait RunningMachine: Send + std::fmt::Debug {
    /// All processors start their programs at time 0.
    fn start(&mut self, effects: &mut Vec<Effect>);

    /// A packet has come to the router of its destination: from now on that router holds a packet for its own node.
    fn come(&mut self, node: TerminalId, now: u64);

    /// A packet stands before the interface of its destination. `name` is the engine's.
    fn arrive(&mut self, packet: MachinePacket, name: u32, now: u64, effects: &mut Vec<Effect>);

    /// Lets everything happen that is due up to this time.
    fn proceed(&mut self, now: u64, effects: &mut Vec<Effect>);

    /// When something will happen next without a packet.
    fn next_due(&self) -> Option<u64>;

    /// Programs that have not ended, or whose requests have not all been answered.
    fn unfinished(&self) -> usize;

    /// When the last request was answered or the last computation ended.
    fn last(&self) -> u64;

    /// When the last program of a part ended; `None` before.
    fn end_of(&self, part: usize) -> Option<u64>;

    /// What the interfaces have done until now.
    fn work(&self, now: u64) -> Work;

    /// What the machine has done that it may not do: a defect of Kasuri.
    fn broken(&self) -> Option<&str>;
}
