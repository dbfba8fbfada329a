//! The inputs that decide whether packets can deadlock, so that equal graphs are checked once.

use kasuri_model::scenario::Scenario;
use kasuri_network::deadlock::Rules;
use kasuri_network::network::Network;
use kasuri_network::routing::{Routing, VirtualChannels};
use std::sync::{Arc, Weak};

/// All inputs of the graph of a scenario's waiting packets.
pub(crate) struct WaitGraph {
    whole: RoutedNetwork,
    /// The same for the networks after each failure during the run.
    left: Vec<RoutedNetwork>,
    /// The virtual channels of its traffic.
    channels: Vec<VirtualChannels>,
    /// True if the paths that predictions may take are included.
    widened: bool,
    /// True if there is an escape path that does not count.
    closed: bool,
    /// The guarantees of the routers to waiting heads.
    rules: Rules,
}

/// A network and its routing. While a weak pointer exists, nothing else is allocated at its address.
struct RoutedNetwork {
    network: Weak<Network>,
    routing: Weak<dyn Routing>,
}

impl WaitGraph {
    /// The graph of a scenario, not built.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self {
            whole: RoutedNetwork::of(&scenario.network, &scenario.routing),
            left: scenario.changed_epochs().map(|epoch| RoutedNetwork::of(&epoch.network, &epoch.routing)).collect(),
            channels: scenario.virtual_channel_ranges(),
            widened: scenario.takes_accepted_ports(),
            closed: scenario.closes_escape_path(),
            rules: scenario.router.waiting_rules(),
        }
    }

    /// True if nothing is sent, so that nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// True while its network exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.whole.is_alive() && self.left.iter().all(RoutedNetwork::is_alive)
    }

    /// True if both have the same graph.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same_left = self.left.len() == other.left.len() && self.left.iter().zip(&other.left).all(|(one, other)| one.is_same(other));
        let routers = |graph: &Self| (graph.widened, graph.closed, graph.rules);
        same_left && self.whole.is_same(&other.whole) && self.channels == other.channels && routers(self) == routers(other)
    }
}

impl RoutedNetwork {
    fn of(network: &Arc<Network>, routing: &Arc<dyn Routing>) -> Self {
        Self { network: Arc::downgrade(network), routing: Arc::downgrade(routing) }
    }

    fn is_alive(&self) -> bool {
        self.network.strong_count() > 0 && self.routing.strong_count() > 0
    }

    fn is_same(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.network, &other.network) && std::ptr::addr_eq(self.routing.as_ptr(), other.routing.as_ptr())
    }
}
