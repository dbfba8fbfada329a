//! What decides whether packets can wait for each other in a cycle, so that equal ones are looked at once.

use kasuri_model::scenario::Scenario;
use kasuri_network::deadlock::Rules;
use kasuri_network::network::Network;
use kasuri_network::routing::{Routing, VirtualChannels};
use std::sync::{Arc, Weak};

/// All that the graph of a scenario's waiting packets depends on.
pub(crate) struct WaitGraph {
    whole: Routed,
    /// The same of what is left after each failure during the run.
    left: Vec<Routed>,
    /// Those of its traffic.
    channels: Vec<VirtualChannels>,
    /// Are the paths that predictions may take included?
    widened: bool,
    /// Is there an escape path that does not count?
    closed: bool,
    /// What the routers promise to heads that wait.
    rules: Rules,
}

/// A network and the routing on it. As long as a weak pointer is there, nothing else is put in its place.
struct Routed {
    network: Weak<Network>,
    routing: Weak<dyn Routing>,
}

impl WaitGraph {
    /// Of a scenario, without building it.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self {
            whole: Routed::of(&scenario.network, &scenario.routing),
            left: scenario.changed_epochs().map(|epoch| Routed::of(&epoch.network, &epoch.routing)).collect(),
            channels: scenario.virtual_channel_ranges(),
            widened: scenario.takes_accepted_ports(),
            closed: scenario.closes_escape_path(),
            rules: scenario.router.waiting_rules(),
        }
    }

    /// Is nothing sent, so that nothing waits?
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Can it be asked for again? Not once its network is gone.
    pub(crate) fn is_alive(&self) -> bool {
        self.whole.is_alive() && self.left.iter().all(Routed::is_alive)
    }

    /// Have both the same graph?
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same_left = self.left.len() == other.left.len() && self.left.iter().zip(&other.left).all(|(one, other)| one.is_same(other));
        let routers = |graph: &Self| (graph.widened, graph.closed, graph.rules);
        same_left && self.whole.is_same(&other.whole) && self.channels == other.channels && routers(self) == routers(other)
    }
}

impl Routed {
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
