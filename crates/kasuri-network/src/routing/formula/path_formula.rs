//! The contract of a formula of shortest paths.

use crate::id::{Port, RouterId};

/// What a table of shortest paths between all routers would say.
pub(in crate::routing) trait PathFormula: Send + Sync + std::fmt::Debug {
    /// The ports on shortest paths, ascending; none at the target itself.
    fn ports(&self, router: RouterId, target: RouterId) -> &[Port];

    /// Hops between two routers.
    fn hops(&self, router: RouterId, target: RouterId) -> u32;

    /// The most hops between two routers.
    fn diameter(&self) -> u32;

    /// Bytes in memory.
    fn bytes(&self) -> u64;
}
