//! Terminals with several ports: each port is a terminal of the network that engines see.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::faults::Changes;
use super::section::Section;
use kasuri_model::scenario::{ClosedWorkload, Hosts};
use kasuri_network::network::Network;
use kasuri_network::network::terminal_ports::TerminalPorts;
use kasuri_network::routing::per_plane::PerPlaneRouting;
use kasuri_network::routing::{Routing, RoutingAlgorithm, RoutingError};
use kasuri_workload::terminal_ports::{PortChoice, PortPattern, PortWorkload};
use kasuri_workload::traffic::pattern::Pattern;
use std::sync::Arc;

/// The key of `[routing]` that says how a terminal chooses among its ports.
pub(super) const TERMINAL_PORTS: &str = "terminal_ports";

/// A network as traffic sees it, and as engines do.
#[derive(Clone)]
pub(super) struct Wired {
    /// Its terminals send and receive. Where they have several ports nothing is down here.
    pub(super) terminals: Arc<Network>,
    /// The same network, but for terminals with several ports: there each port is a terminal.
    pub(super) network: Arc<Network>,
    /// That one with nothing down.
    pub(super) whole: Arc<Network>,
    pub(super) ports: Option<Arc<TerminalPorts>>,
    /// What of it fails, and comes up again, during the run.
    pub(super) changes: Changes,
}

impl Wired {
    /// A network whose terminals have a port each, of which nothing changes.
    pub(super) fn plain(network: Arc<Network>) -> Self {
        Self { terminals: Arc::clone(&network), whole: Arc::clone(&network), network, ports: None, changes: Changes::default() }
    }

    /// A network some of whose terminals have several, with these ports as terminals, whole and as it begins.
    pub(super) fn by_ports(terminals: Arc<Network>, whole: Arc<Network>, network: Arc<Network>) -> Self {
        let ports = Some(Arc::new(TerminalPorts::of(&terminals, &network)));
        Self { terminals, network, whole, ports, changes: Changes::default() }
    }
}

/// The ports of terminals with several, and how they choose.
#[derive(Clone, Debug)]
pub(super) struct ChosenPorts {
    pub(super) ports: Arc<TerminalPorts>,
    pub(super) choice: PortChoice,
}

impl ChosenPorts {
    /// A pattern of terminals as one of their ports.
    pub(super) fn pattern(&self, pattern: Arc<dyn Pattern>) -> Arc<dyn Pattern> {
        Arc::new(PortPattern::new(pattern, Arc::clone(&self.ports), self.choice))
    }

    /// A workload of terminals as one of their ports.
    pub(super) fn workload(&self, closed: ClosedWorkload) -> ClosedWorkload {
        let part = closed.parts[0];
        let workload = PortWorkload::new(closed.workload, Arc::clone(&self.ports), self.choice, part.packet_flits);
        ClosedWorkload::new(Arc::new(workload), part.packet_flits, part.virtual_channels)
    }
}

/// What of an experiment knows terminals with one port only: its key, and why.
const OF_ONE_PORT: [(&str, &str); 2] = [
    ("user", "the tables of users translate node numbers to terminals, and each has one port there"),
    ("endpoint", "its network interfaces have one port"),
];

/// How terminals choose among their ports, where they have several.
pub(super) fn read(context: Context<'_>, ports: Option<&Arc<TerminalPorts>>) -> Result<Option<ChosenPorts>, ConfigError> {
    let table = context.required_table("routing", "algorithm = \"minimal\"")?;
    let section = Section::new(context, "routing", table);
    let written = table.get(TERMINAL_PORTS);
    let Some(ports) = ports else {
        return match written {
            Some(_) => Err(section.error_at_key(TERMINAL_PORTS, "is about terminals with several ports, and these have one; leave it out")),
            None => Ok(None),
        };
    };
    let choice = match written {
        Some(value) => value.clone().try_into().map_err(|_| {
            let problem = format!("is {value}; it must be \"by-packet\", \"by-message\" or \"by-destination\"");
            section.error(TERMINAL_PORTS, problem)
        })?,
        None => PortChoice::default(),
    };
    Ok(Some(ChosenPorts { ports: Arc::clone(ports), choice }))
}

/// Refuses what knows terminals with one port only.
pub(super) fn check_one_port(context: Context<'_>, wired: &Wired) -> Result<(), ConfigError> {
    let asks = |key: &str| wired.ports.is_some() && context.point.table.contains_key(key);
    match OF_ONE_PORT.into_iter().find(|(key, _)| asks(key)) {
        None => Ok(()),
        Some((key, reason)) => Err(knows_one_port(context, wired, key, reason)),
    }
}

/// Refuses failures during the run.
pub(super) fn check_no_change_of_ports(context: Context<'_>, wired: &Wired) -> Result<(), ConfigError> {
    if wired.ports.is_none() {
        return Ok(());
    }
    let reason = "its terminals would have to leave ports that no longer lead to where they send";
    Err(knows_one_port(context, wired, "faults", reason))
}

fn knows_one_port(context: Context<'_>, wired: &Wired, key: &str, reason: &str) -> ConfigError {
    let what = if key == "faults" { "has something that changes during the run, which " } else { "" };
    let problem = format!(
        "{what}does not go with terminals with several ports ({}): {reason}; take a network with one port per terminal",
        wired.terminals.name()
    );
    context.error(key, Part::Key, problem)
}

/// Refuses failed components that cut a terminal off from another by all of their ports.
pub(super) fn check_reachable(context: Context<'_>, wired: &Wired) -> Result<(), ConfigError> {
    let Some((from, to)) = wired.ports.as_ref().and_then(|ports| ports.separated()) else { return Ok(()) };
    let [from, to] = [from, to].map(|terminal| wired.terminals.terminal_name(terminal));
    let cut = wired
        .network
        .damage()
        .map_or("the network is disconnected".to_owned(), |damage| format!("cut the network: {}", damage.describe(&wired.network)));
    let key = if context.table("faults")?.is_some() { "faults" } else { "network" };
    Err(context.error(key, Part::Key, format!("{cut}, and no port of {from} reaches one of {to}; take fewer, others or another seed")))
}

/// Hosts by the ports of their terminals.
pub(super) fn hosts_by_ports(context: Context<'_>, hosts: Hosts, ports: Option<&Arc<TerminalPorts>>) -> Result<Hosts, ConfigError> {
    let Some(ports) = ports else { return Ok(hosts) };
    let Some(each) = ports.of_each() else {
        let problem = "does not go with terminals of different numbers of ports: hosts are as many ports in a row";
        return Err(context.error("hosts", Part::Key, problem));
    };
    Ok(Hosts { terminals: hosts.terminals * each, ..hosts })
}

/// The routing of a network by ports: of each of its planes by itself, if it has planes.
pub(super) fn compile(algorithm: &dyn RoutingAlgorithm, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
    Ok(Box::new(PerPlaneRouting::new(network, |part| algorithm.compile(part).map(Arc::from))?))
}
