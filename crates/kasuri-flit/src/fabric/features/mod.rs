//! What only some routers have: each says in its first lines which steps of a cycle it touches.

pub(crate) mod copies;
pub(crate) mod failures;
pub(crate) mod lookahead;
pub(crate) mod passing;
