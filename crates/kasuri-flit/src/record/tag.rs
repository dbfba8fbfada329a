//! What feeds call a packet.

use crate::record::marks::NONE;
use kasuri_workload::workload::Token;

/// What translation calls the access that a packet belongs to: its place, and how often that place has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessId {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

/// What feeds call a packet. It travels with the packet, from tile to tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The access that it belongs to, where node numbers are translated.
    pub(crate) access: AccessId,
    /// The record that its feed keeps of it or of its message, or [`NONE`].
    pub(crate) record: u32,
    /// The packets of its message.
    pub(crate) packets: u32,
}

impl Default for Tag {
    fn default() -> Self {
        Self::of_record(NONE)
    }
}

impl Tag {
    /// Bytes beside the packet's own record.
    pub(crate) const BYTES: usize = size_of::<Self>();

    /// The tag of a packet of which its feed keeps this record.
    pub(crate) fn of_record(record: u32) -> Self {
        Self { access: AccessId::default(), record, packets: 1 }
    }

    /// The tag of a packet of a message of so many packets, of which only the message's name is known where it arrives. Its bits are where
    /// an access would be: nobody translates then.
    pub(crate) fn of_message(token: Token, packets: u32) -> Self {
        Self { access: AccessId { place: token as u32, generation: (token >> 32) as u32 }, record: NONE, packets }
    }

    /// The name of the message.
    pub(crate) fn token(self) -> Token {
        Token::from(self.access.generation) << 32 | Token::from(self.access.place)
    }
}
