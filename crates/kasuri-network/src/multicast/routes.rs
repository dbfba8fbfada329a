//! Networks whose packets have the paths that their routing says.

use super::{Behind, GROUP, Refusal};
use crate::deadlock::{STEP_BUDGET, find_cycle};
use crate::id::{ChannelId, Port, TerminalId};
use crate::network::{Endpoint, Network};
use crate::routing::walk::{DELIVERED, Place, Routes, Walker};
use crate::routing::{Routing, VirtualChannels};

/// Channels of a cycle that a message names.
const NAMED: usize = 12;

/// What would be right instead.
const RIGHT: &str = "use mesh with dimension-order, fat-tree with nca and up_port = \"s-mod-k\" or \"d-mod-k\", or one of cenju4, omega \
                     and butterfly with destination-tag";

/// The terminals to which packets leave each router by each output, on all routes between all terminals.
///
/// # Errors
/// A packet does not arrive or has several paths, or packets can wait for each other in a cycle.
pub(super) fn behind(network: &Network, routing: &dyn Routing, ports: usize) -> Result<Behind, Refusal> {
    let inputs = if routing.facts().reads.input { ports } else { 1 };
    let mut found = Found {
        network,
        behind: Behind::empty(network, ports, inputs),
        output_at: vec![None; network.router_count() as usize * inputs],
        waits: vec![0; network.channel_count() as usize],
        two_paths: None,
    };
    // The queues that a router has for each input and output are as one virtual channel.
    let mut walker = Walker::new(network, routing, VirtualChannels { begin: 0, end: 1 });
    let (mut routes, mut steps) = (Routes::default(), 0);
    for destination in (0..network.terminal_count()).map(TerminalId) {
        let lost = |lost: crate::routing::walk::Lost| {
            Refusal::routing(format!("brings no packet from terminal {} to terminal {destination}: {}; {RIGHT}", lost.source, lost.problem))
        };
        walker.walk(destination, &mut routes).map_err(lost)?;
        found.add(&routes, destination);
        steps += routes.steps.len() as u64;
        // It will be refused: what is left may only give a better reason.
        if found.two_paths.is_some() && steps > STEP_BUDGET {
            break;
        }
    }
    if let Some(cycle) = find_cycle(&found.successors()) {
        return Err(found.waits_in(&cycle));
    }
    match found.two_paths {
        Some(problem) => Err(Refusal::routing(problem)),
        None => Ok(found.behind),
    }
}

/// What the walks have found.
struct Found<'a> {
    network: &'a Network,
    behind: Behind,
    /// The output to the present destination, by router and input.
    output_at: Vec<Option<Port>>,
    /// By channel: the outputs of the router where it ends by which packets on it may leave, a bit each.
    waits: Vec<u32>,
    /// Where a packet has more than one path, if anywhere.
    two_paths: Option<String>,
}

impl Found<'_> {
    fn add(&mut self, routes: &Routes, destination: TerminalId) {
        self.output_at.fill(None);
        let mut outputs = vec![0u32; routes.places.len()];
        for step in &routes.steps {
            let Endpoint::Router(_, port) = self.network.source(step.channel) else { continue };
            outputs[step.from as usize] |= 1 << port;
            self.take(&routes.places[step.from as usize], port, destination);
        }
        for step in routes.steps.iter().filter(|step| step.to != DELIVERED) {
            self.waits[step.channel.index()] |= outputs[step.to as usize];
        }
    }

    /// Notes the output that packets to a destination take at a place.
    fn take(&mut self, place: &Place, port: Port, destination: TerminalId) {
        let (router, input) = (place.hop.router.index(), usize::from(place.hop.input));
        let inputs = self.behind.inputs;
        let output = &mut self.output_at[router * inputs + if inputs == 1 { 0 } else { input }];
        match *output {
            None => *output = Some(port),
            Some(known) if known != port => {
                self.two_paths.get_or_insert_with(|| {
                    format!(
                        "takes packets to terminal {destination} from router {router} by port {known} or by port {port}, as chance, \
                         congestion or their source has it; the copies of a multicast need one path to each terminal: {RIGHT}"
                    )
                });
            }
            Some(_) => return,
        }
        let at = self.behind.place(router, input, usize::from(port)) + destination.index() / GROUP;
        self.behind.terminals[at] |= 1 << (destination.index() % GROUP);
    }

    /// The channels for whose queues packets on each channel may wait.
    fn successors(&self) -> Vec<Vec<u32>> {
        let after = |(channel, &outputs): (usize, &u32)| match self.network.destination(ChannelId(channel as u32)) {
            Endpoint::Terminal(_) => Vec::new(),
            Endpoint::Router(router, _) => {
                let ports = (0..self.network.port_count(router) as Port).filter(|port| outputs & 1 << port != 0);
                ports.filter_map(|port| self.network.output_channel(router, port)).map(|channel| channel.0).collect()
            }
        };
        self.waits.iter().enumerate().map(after).collect()
    }

    fn waits_in(&self, cycle: &[u32]) -> Refusal {
        let mut names: Vec<String> = cycle.iter().take(NAMED).map(|&channel| self.network.channel_name(ChannelId(channel))).collect();
        if cycle.len() > NAMED {
            names.push(format!("and {} more", cycle.len() - NAMED));
        }
        Refusal::network(format!(
            "is {}, on which packets in queues of crosspoint routers can wait for each other for ever, in a cycle of {} \
             channels ({}); {RIGHT}",
            self.network.name(),
            cycle.len(),
            names.join(", ")
        ))
    }
}
