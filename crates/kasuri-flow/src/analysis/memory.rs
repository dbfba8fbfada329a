//! What the formulas take of memory.

use super::flow::demand_bytes;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::extents::Extents;

/// Bytes for each place of the routes to a destination, beside those of the walk: the order of places, and what begins at and goes
/// through them.
const PLACE_BYTES: u64 = 40;

/// Bytes for each channel and each virtual channel of it: loads, and moments of the time that packets hold it.
const CHANNEL_BYTES: u64 = 120;

/// Bytes that the formulas take at most at one time.
pub(super) fn bytes(scenario: &Scenario, extents: &mut Extents) -> u64 {
    let network = &scenario.network;
    let mut most = 0;
    for class in &scenario.classes {
        let reply = class.reply.as_ref().map(|reply| (reply.virtual_channels, true));
        for (channels, reversed) in [Some((class.virtual_channels, false)), reply].into_iter().flatten() {
            let extent = extents.of(network, &scenario.routing, channels, u64::MAX);
            // All destinations are walked, not the two that tell the extent, and vectors grow by doubling.
            let demand = demand_bytes(class.pattern.as_ref(), network.terminal_count(), reversed, extent.groups, extent.destinations);
            most = most.max(demand + extent.walk_bytes * 3 / 2 + PLACE_BYTES * extent.places);
        }
    }
    most + CHANNEL_BYTES * u64::from(network.channel_count())
}
