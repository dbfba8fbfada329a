//! What feeds the terminals' queues with packets: each file implements [`PacketFeed`](crate::state::feed::PacketFeed) or serves one that does.

pub(crate) mod accesses;
pub(crate) mod batch;
pub(crate) mod calendar;
pub(crate) mod closed;
pub(crate) mod combined;
pub(crate) mod dispatcher;
pub(crate) mod elsewhere;
pub(crate) mod local;
pub(crate) mod machine;
pub(crate) mod open;
pub(crate) mod ranks;
pub(crate) mod resending;
pub(crate) mod translated;
pub(crate) mod waiting;
