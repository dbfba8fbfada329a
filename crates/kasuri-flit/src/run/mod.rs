//! A run: its clock, its windows, its intervals, and the exchange between its tiles.

pub(crate) mod balance;
pub(crate) mod clock;
pub(crate) mod intervals;
pub(crate) mod layouts;
pub(crate) mod mail;
pub(crate) mod memory;
pub(crate) mod window;
