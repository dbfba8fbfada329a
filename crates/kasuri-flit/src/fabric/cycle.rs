//! The loops that run once per flit, for each layout of the routers' state.
//!
//! There are two layouts of plain routers with the same results, bit for bit: `plain` takes every such router on every processor;
//! `avx512` keeps each counter as one byte and works on 64 virtual channels at a time, for canonical routers on processors that can. A
//! third one, `full`, has what plain routers lack. What happens once per packet (routing, virtual-channel allocation, release) is
//! written once, in `routing.rs` and `vc_allocation.rs`, over [`RouterState`].

use crate::state::layout::RouterState;
use crate::state::tile::Tile;

/// A layout whose routers advance.
pub(crate) trait RouterCycle: RouterState {
    /// Fetches what a block of routers will look at in a window of `length` cycles that begins now, where it is worth it.
    fn prefetch_block(_tile: &Tile<'_, Self>, _block: u32, _length: u64) {}

    /// The channel that leaves by a port dies before the cycle that begins. Asked only where `support.rs` says that channels can.
    fn kill_port(_tile: &mut Tile<'_, Self>, _port: u32) {
        unreachable!("in this layout nothing fails");
    }

    /// Advances a block of routers through cycle `now`, if it has anything to do.
    fn router_cycle(tile: &mut Tile<'_, Self>, block: u32, now: u64);
}
