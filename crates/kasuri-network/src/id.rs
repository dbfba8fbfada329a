//! Numbers that name things: a router is not a terminal, and neither is a channel.

use std::fmt;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in a column that has one entry per such thing.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($word, " {}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}", self.0)
            }
        }
    };
}

id_type!(
    /// A router (switch), numbered from 0 by its topology.
    RouterId,
    "router"
);
id_type!(
    /// A terminal, an endpoint that sources and sinks packets, numbered from 0 by its topology.
    TerminalId,
    "terminal"
);
id_type!(
    /// One direction of a link. Injection channels come first (one per terminal), then ejection channels, then the rest.
    ChannelId,
    "channel"
);

/// A port of one router, 0 to 511. Input port `p` and output port `p` usually are the two directions of one link.
pub type Port = u16;
