//! What only some routers have: each says in its first lines which steps of a cycle it touches.

pub(crate) mod bubbles;
pub(crate) mod claims;
pub(crate) mod copies;
pub(crate) mod failures;
pub(crate) mod lookahead;
pub(crate) mod output_shares;
pub(crate) mod passing;
pub(crate) mod prediction;
pub(crate) mod shared_buffers;
