//! Every type that is a field of a tile, the tile itself ([`tile::Tile`]), and how it is made of a scenario.
//!
//! Invariant: addresses, sizes and delays are worked out once ([`compiled::Compiled`]) and nothing here advances a cycle. Two traits are
//! what the rooms above plug in: [`layout::RouterState`], how the state of virtual channels lies in memory, and [`feed::PacketFeed`], what
//! feeds terminals with packets. It knows neither which layouts nor which feeds there are.

pub(crate) mod addresses;
pub(crate) mod blocks;
pub(crate) mod border;
pub(crate) mod bubbles;
pub(crate) mod claims;
pub(crate) mod class_queues;
pub(crate) mod compiled;
pub(crate) mod copies;
pub(crate) mod crossings;
pub(crate) mod delays;
pub(crate) mod edge;
pub(crate) mod failures;
pub(crate) mod feed;
pub(crate) mod full_parameters;
pub(crate) mod in_flight;
pub(crate) mod interval_parts;
pub(crate) mod layout;
pub(crate) mod lookahead;
pub(crate) mod memories;
pub(crate) mod output_shares;
pub(crate) mod packets;
pub(crate) mod parameters;
pub(crate) mod prediction;
pub(crate) mod queues;
pub(crate) mod route_memo;
pub(crate) mod routing;
pub(crate) mod share;
pub(crate) mod statistics;
pub(crate) mod terminals;
pub(crate) mod tile;
pub(crate) mod vc_allocation;
pub(crate) mod wiring;
pub(crate) mod work;
