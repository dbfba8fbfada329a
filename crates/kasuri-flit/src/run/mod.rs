//! A run: its clock, its windows, its intervals, and the exchange between its tiles.
//!
//! [`clock::Run`] is the only place that moves time. Each tile runs a window by itself ([`window`]); what crosses borders is mail
//! ([`mail`]) that is handed over between windows. Intervals that end within windows are cut there (`intervals`), and tiles with uneven
//! work are cut once more (`balance`). [`layouts`] compiles a scenario for its layout and number of virtual channels.

pub(crate) mod balance;
pub(crate) mod clock;
pub(crate) mod intervals;
pub(crate) mod layouts;
pub(crate) mod mail;
pub(crate) mod memory;
pub(crate) mod window;
