//! Every type that is a field of a tile, and how a tile is made of a scenario. Nothing here advances a cycle.

pub(crate) mod addresses;
pub(crate) mod blocks;
pub(crate) mod border;
pub(crate) mod bubbles;
pub(crate) mod claims;
pub(crate) mod compiled;
pub(crate) mod crossings;
pub(crate) mod delays;
pub(crate) mod edge;
pub(crate) mod feed;
pub(crate) mod layout;
pub(crate) mod output_shares;
pub(crate) mod packets;
pub(crate) mod prediction;
pub(crate) mod queues;
pub(crate) mod route_memo;
pub(crate) mod share;
pub(crate) mod statistics;
pub(crate) mod tile;
pub(crate) mod work;
