//! What is counted of the translations of one user.

/// Accesses, translations and their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationCounts {
    /// Accesses that were let into the network, or to their own node's memory.
    pub accesses: u64,
    /// Accesses that came to their end: the packet, or the answer to it, has arrived.
    pub ended: u64,
    /// Accesses that ended more than once, or that nobody had begun.
    pub ended_wrongly: u64,
    /// Accesses to nodes outside of the table, or to a space that is not the user's, of which the requester was told.
    pub faults: u64,
    /// Translations that found their entry in the unit.
    pub hits: u64,
    /// Translations that did not.
    pub misses: u64,
    /// Packets that came to a node that was not the one meant: counted at the receivers.
    pub misdelivered: u64,
    /// Changes of the table that were written.
    pub changes: u64,
    /// Cycles that accesses were held by changes of the table.
    pub held_cycles: u64,
    /// Others' packets at routers at which only this user has nodes, each counted at each such router.
    pub foreign_packets: u64,
    /// Global memory: look-ups of pages at receivers that found their entry.
    pub page_hits: u64,
    /// Global memory: those that did not.
    pub page_misses: u64,
    /// Global memory: accesses to pages that the receiver does not have, answered with an error.
    pub page_faults: u64,
    /// Words that were read and were not what was last written to this address of this logical node.
    pub wrong_words: u64,
    /// Words that were read and that another interface of the same node had written.
    pub words_through_others: u64,
}
