//! What routers know that multicast and synchronise: the terminals behind each of their outputs.
//!
//! A multicast is copied at a router to each output by which packets to some of its terminals leave; the copy carries only these. So each
//! terminal is reached once, on the path that a packet to it alone would take, if every packet has one path. In networks in which no path
//! leads back and any two terminals have one path the links say which (`cones`); in others, such as boards that several cables join, the
//! routing does, if it leaves nothing to chance or congestion (`routes`).
//!
//! Routers with a queue for each pair of an input and an output take a packet only when they have room for all of it. What waits in a
//! queue holds the room that it takes there and nothing else, and it waits for room in queues of the next router, a multicast in several
//! at once. If no chain of queues, each with packets for the next, comes back to where it began, then the last queue of the chains that
//! holds anything has a packet whose next queues are empty: something can always move, and all packets arrive. A queue is a pair of
//! channels that follow each other on a route, so such a chain comes back just when one of channels does, and `routes` looks for one.
//!
//! Synchronisation packets are counted in tables; `synchronisation` says which are expected where.

mod cones;
mod routes;
mod synchronisation;

use crate::id::{Port, RouterId};
use crate::network::Network;
use crate::routing::Routing;
pub use synchronisation::{Step, Synchronisation};
use thiserror::Error;

/// Terminals in a group: the bits of a word.
pub const GROUP: usize = 64;

/// Ports of a router that multicasts: the bits of a set of outputs.
pub const MAX_PORTS: u32 = 32;

/// Why routers cannot multicast on a network with its routing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{section}.{key} {problem}")]
pub struct Refusal {
    /// The section of the experiment file that would have to change.
    pub section: &'static str,
    /// The key in it.
    pub key: &'static str,
    /// What was found and what would be right.
    pub problem: String,
}

impl Refusal {
    fn network(problem: String) -> Self {
        Self { section: "network", key: "topology", problem }
    }

    fn routing(problem: String) -> Self {
        Self { section: "routing", key: "algorithm", problem }
    }
}

/// The terminals behind each output of each router, and the tables of synchronisations.
#[derive(Clone, Debug)]
pub struct Tables {
    behind: Behind,
    synchronisation: Option<Synchronisation>,
}

/// The terminals to which packets leave a router by an output.
#[derive(Clone, Debug)]
struct Behind {
    ports: usize,
    groups: usize,
    /// 1, or the ports of a router if it matters by which a packet has come.
    inputs: usize,
    /// By router, input, output and group.
    terminals: Vec<u64>,
}

impl Tables {
    /// Works them out.
    ///
    /// # Errors
    /// Packets may have several paths, or could wait for each other in a cycle; a router has more ports, or there is no tree of links in
    /// both directions for synchronisations.
    pub fn new(network: &Network, routing: &dyn Routing) -> Result<Self, Refusal> {
        let ports = (0..network.router_count()).map(|router| network.port_count(RouterId(router))).max().unwrap_or(0);
        if ports > MAX_PORTS {
            let problem = format!("gives a router {ports} ports; a crosspoint router that multicasts has at most {MAX_PORTS}");
            return Err(Refusal::network(problem));
        }
        let small = network.terminal_count() as usize <= GROUP;
        if let Some(cones) = cones::Cones::new(network, ports as usize) {
            let synchronisation = small.then(|| cones.synchronisation(network));
            return Ok(Self { behind: cones.behind, synchronisation });
        }
        let mut tables = Self { behind: routes::behind(network, routing, ports as usize)?, synchronisation: None };
        if small {
            let on_ways = cones::is_one_way(network).then(|| tables.on_fixed_ways(network));
            tables.synchronisation = Some(on_ways.map_or_else(|| Synchronisation::on_a_tree(network, ports as usize), Ok)?);
        }
        Ok(tables)
    }

    fn on_fixed_ways(&self, network: &Network) -> Synchronisation {
        Synchronisation::on_fixed_ways(network, self.behind.ports, |router, input, to| {
            let outputs = self.outputs(router.0, input.into(), to.index() / GROUP, 1 << (to.index() % GROUP));
            (outputs != 0).then(|| outputs.trailing_zeros() as Port)
        })
    }

    /// Ports of the widest router.
    pub fn ports(&self) -> u32 {
        self.behind.ports as u32
    }

    /// The outputs by which packets to some of a group's terminals leave a router that they have entered by this input, a bit each.
    #[inline]
    pub fn outputs(&self, router: u32, input: u32, group: usize, terminals: u64) -> u32 {
        let at = self.behind.place(router as usize, input as usize, 0) + group;
        let words = self.behind.terminals[at..].iter().step_by(self.behind.groups);
        words.take(self.behind.ports).enumerate().filter(|(_, word)| **word & terminals != 0).map(|(output, _)| 1 << output).sum()
    }

    /// The terminals of a group to which packets leave by this output.
    #[inline]
    pub fn behind(&self, router: u32, input: u32, output: u32, group: usize) -> u64 {
        self.behind.terminals[self.behind.place(router as usize, input as usize, output as usize) + group]
    }

    /// How the routers synchronise, if all terminals are in one group.
    pub fn synchronisation(&self) -> Option<&Synchronisation> {
        self.synchronisation.as_ref()
    }
}

impl Behind {
    fn empty(network: &Network, ports: usize, inputs: usize) -> Self {
        let groups = (network.terminal_count() as usize).div_ceil(GROUP);
        Self { ports, groups, inputs, terminals: vec![0; network.router_count() as usize * inputs * ports * groups] }
    }

    fn place(&self, router: usize, input: usize, output: usize) -> usize {
        let input = if self.inputs == 1 { 0 } else { input };
        ((router * self.inputs + input) * self.ports + output) * self.groups
    }
}
