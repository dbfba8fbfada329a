//! The steps of a processor: accesses to words, waits and computations.

/// The greatest value of a key in cycles.
pub(super) const MAX_CYCLES: u32 = 1_000_000_000;

/// One step of a processor. Accesses do not wait for their replies; as many are on their way as the window allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads or writes a word of a logical node's memory.
    Access(Word, Access),
    /// Waits until all its accesses have been answered.
    Settle,
    /// Waits until so many words of this phase have been written to its own memory.
    Await {
        /// What the writes belong to.
        phase: u32,
        /// How many.
        writes: u32,
    },
    /// Computes.
    Compute {
        /// For so long.
        cycles: u32,
    },
}

impl Step {
    pub(super) fn read(home: u32, address: u32) -> Self {
        Self::Access(Word { home, address }, Access::Read)
    }

    pub(super) fn write(home: u32, address: u32, phase: u32) -> Self {
        Self::message(home, address, 1, phase)
    }

    /// Writes so many words in one packet.
    pub(super) fn message(home: u32, address: u32, words: u32, phase: u32) -> Self {
        Self::Access(Word { home, address }, Access::Write { phase, words })
    }
}

/// A word of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The logical node in whose memory it is.
    pub home: u32,
    /// The address of its first byte there.
    pub address: u32,
}

impl Word {
    /// So many words of this logical node, from this one on.
    pub(super) fn and_following(self, words: u32) -> impl Iterator<Item = Self> {
        (0..words).map(move |word| Self { address: self.address + word * WORD_BYTES, ..self })
    }
}

/// Bytes of a word.
pub const WORD_BYTES: u32 = 8;

/// What a processor does to a word of another node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads it.
    Read,
    /// It writes it.
    Write {
        /// What the write belongs to; programs wait for the writes of a phase.
        phase: u32,
        /// Words from this one on, at least 1: several are a packet of a message.
        words: u32,
    },
}

impl Access {
    /// Words that it reads or writes.
    pub(super) fn words(self) -> u32 {
        match self {
            Self::Read => 1,
            Self::Write { words, .. } => words,
        }
    }
}
