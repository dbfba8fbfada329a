//! Does a routing go round what is down?

use super::contract::Routing;
use super::hop::VirtualChannels;
use super::walk::{Lost, Routes, Walker};
use crate::network::Network;

/// Looks at all routes of a network of which something is down. A routing that [searches](super::contract::RoutingFacts::searches_paths) its paths on the channels
/// that are left is believed; the paths of others follow from numbers, coordinates or digits, which have not changed.
///
/// # Errors
/// A packet that comes to a port from which no channel leads on, and what happens to it.
pub fn check_survival(network: &Network, routing: &dyn Routing) -> Result<(), Lost> {
    if network.damage().is_none() || routing.facts().searches_paths {
        return Ok(());
    }
    let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required.clamp(1, u16::MAX.into()) as u16 };
    let mut walker = Walker::new(network, routing, available);
    let mut routes = Routes::default();
    for destination in walker.destinations() {
        walker.walk(destination, &mut routes)?;
        if routes.share * routes.branch_share < 1.0 {
            let problem = "it may take more paths than can be looked at".to_owned();
            return Err(Lost { source: destination, destination, problem });
        }
    }
    Ok(())
}
