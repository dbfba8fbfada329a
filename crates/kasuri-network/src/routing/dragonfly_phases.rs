//! Dragonflies with a virtual channel for each phase of the path.

use super::choice::{Choice, CongestionView};
use super::contract::{Routing, RoutingAlgorithm, RoutingError, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// The only shortest path between two routers of a dragonfly, in virtual channel 0 until the hop between groups and in 1 from it
/// on. Packets enter the network by any virtual channel, drawn, if `redraw_entry` says so anew in each cycle in which that one is taken.
///
/// With `adaptive` a packet for another group decides at its first router: if q <= 2 q' + `threshold` it goes the short path, where
/// q and q' are the flits on the first channel of that path and of the path to the router of a terminal drawn at random;
/// otherwise it goes there first. Then the virtual channel is 0 on the path out, 1 before the last hop between groups and 2 from
/// it on, and for packets that stay in their group. That can deadlock: a path out holds a channel of two groups in the same virtual
/// channel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DragonflyPhases {
    /// Go by way of another router where the short path is congested.
    #[serde(default)]
    pub adaptive: bool,
    /// A packet takes the other path if more flits wait for the short one than twice those for the other plus this number.
    #[serde(default = "thirty")]
    pub threshold: u32,
    /// A packet whose drawn virtual channel is taken draws again in the next cycle (as in BookSim 2); otherwise it waits for the one that
    /// it has drawn.
    #[serde(default)]
    pub redraw_entry: bool,
}

fn thirty() -> u32 {
    30
}

impl Member for DragonflyPhases {
    const NAME: &'static str = "dragonfly-phases";
    const SUMMARY: &'static str = "dragonfly: the short path, or UGAL's choice, with a virtual channel for each phase";
    const SOURCE: &'static str =
        "Kim, Dally, Scott and Abts, ISCA 2008; phases and threshold as in BookSim 2 (min and ugal of dragonflynew)";
    const EXAMPLE: &'static str = "adaptive = true";
}

impl RoutingAlgorithm for DragonflyPhases {
    fn compile(&self, network: &Arc<Network>) -> Result<Box<dyn Routing>, RoutingError> {
        let mismatch =
            |problem: &str| RoutingError::Mismatch { routing: Self::NAME, network: network.name().to_owned(), problem: problem.to_owned() };
        let labels = network.labels();
        let Some(&[terminals, routers, global_channels]) = labels.attribute("dragonfly") else {
            return Err(mismatch("it needs a dragonfly"));
        };
        let groups = routers * global_channels + 1;
        let first_global = terminals + routers - 1;
        let mut gateways = vec![0; (groups * groups) as usize];
        for link in 0..groups * (groups - 1) {
            let (group, place) = (link / (groups - 1), link % (groups - 1));
            let router = RouterId(group * routers + place / global_channels);
            let channel = network.output_channel(router, (first_global + place % global_channels) as Port);
            let ends_at = channel.map(|channel| network.input_port(channel).0).ok_or_else(|| mismatch("a global channel is missing"))?;
            gateways[(group * groups + ends_at.0 / routers) as usize] = place;
        }
        let threshold = self.threshold.into();
        let network = Arc::clone(network);
        let Self { adaptive, redraw_entry, .. } = *self;
        Ok(Box::new(Compiled { network, terminals, routers, global_channels, groups, gateways, adaptive, threshold, redraw_entry }))
    }
}

#[derive(Debug)]
struct Compiled {
    network: Arc<Network>,
    terminals: u32,
    routers: u32,
    global_channels: u32,
    groups: u32,
    /// The global link of a group that leads to another, shape `[groups, groups]`.
    gateways: Vec<u32>,
    adaptive: bool,
    threshold: i64,
    redraw_entry: bool,
}

/// The packet's state: 0 before its first router, else its phase plus 1 in the low two bits, and above them the router that it
/// goes to in phase 0.
#[derive(Clone, Copy)]
struct RouteState {
    phase: u16,
    by: RouterId,
}

impl RouteState {
    fn pack(self) -> u32 {
        self.by.0 << 2 | (u32::from(self.phase) + 1)
    }

    fn unpack(state: u32) -> Option<Self> {
        (state != 0).then(|| Self { phase: (state & 3) as u16 - 1, by: RouterId(state >> 2) })
    }
}

impl Routing for Compiled {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            virtual_channels_required: if self.adaptive { 3 } else { 2 },
            reads: Reads::DESTINATION_ROUTER,
            // The path out crosses local, global and local channels in the same virtual channel, which closes cycles over two groups.
            is_deadlock_free: !self.adaptive,
            observes_congestion: self.adaptive,
            restricts_entry: true,
            redraws_entry: self.redraw_entry,
            ..RoutingFacts::default()
        }
    }

    fn entering(&self, hop: &Hop, _state: u32, choice: &mut dyn Choice) -> VirtualChannels {
        let begin = hop.available.begin + choice.uniform(hop.available.count().into()) as u16;
        VirtualChannels { begin, end: begin + 1 }
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let (router, ejection) = self.network.ejection_port(hop.destination);
        let mut at = RouteState::unpack(*state).unwrap_or_else(|| self.begin(hop, router, choice));
        if self.adaptive && at.phase == 0 && at.by == hop.router {
            at.phase = 1;
        }
        let aim = if self.adaptive && at.phase == 0 { at.by } else { router };
        let port = if aim == hop.router { ejection } else { self.towards(hop.router, aim) };
        let is_global = u32::from(port) >= self.terminals + self.routers - 1;
        if is_global && at.phase == self.last_phase() - 1 {
            at.phase += 1;
        }
        // With too few virtual channels the last one serves the phases that are left.
        let begin = hop.available.begin + at.phase.min(hop.available.count() - 1);
        candidates.push(Candidate::new(port, VirtualChannels { begin, end: begin + 1 }));
        *state = at.pack();
    }
}

impl Compiled {
    fn last_phase(&self) -> u16 {
        if self.adaptive { 2 } else { 1 }
    }

    fn group(&self, router: RouterId) -> u32 {
        router.0 / self.routers
    }

    /// The port of the short path to another router.
    fn towards(&self, here: RouterId, there: RouterId) -> Port {
        let (from, to) = (self.group(here), self.group(there));
        let link = if from == to { None } else { Some(self.gateways[(from * self.groups + to) as usize]) };
        let position = here.0 % self.routers;
        let aim = link.map_or(there.0 % self.routers, |link| link / self.global_channels);
        let port = match link {
            Some(link) if aim == position => self.terminals + self.routers - 1 + link % self.global_channels,
            _ => self.terminals + aim - u32::from(aim > position),
        };
        port as Port
    }

    /// What a packet decides at its first router.
    fn begin(&self, hop: &Hop, destination: RouterId, choice: &mut dyn Choice) -> RouteState {
        let direct = RouteState { phase: self.last_phase() - 1, by: hop.router };
        if !self.adaptive {
            return direct;
        }
        if self.group(hop.router) == self.group(destination) {
            return RouteState { phase: 2, ..direct };
        }
        let by = self.network.ejection_port(TerminalId(choice.uniform(self.network.terminal_count()))).0;
        if self.group(by) == self.group(hop.router) {
            return direct;
        }
        let ports = [self.towards(hop.router, destination), self.towards(hop.router, by)];
        // Twice the flits, and 1 more for the detour: equals are no tie, but speak for the short path.
        let cost = |view: &dyn CongestionView, path: u32| {
            let flits = i64::from(view.occupied(ports[path as usize], hop.available));
            2 * (if path == 0 { flits } else { 2 * flits + self.threshold }) + i64::from(path)
        };
        if choice.least(2, &cost) == 0 { direct } else { RouteState { phase: 0, by } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::dragonfly::{Arrangement, Dragonfly};
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    /// The channels' virtual channels from one terminal to another, for the first branch of every decision.
    fn phases(adaptive: bool, from: u32, to: u32) -> Vec<(bool, u16)> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let shape = Dragonfly::whole(2, 4, 2, Arrangement::Consecutive);
        let network = Arc::new(shape.build(&context).unwrap());
        let routing = DragonflyPhases { adaptive, threshold: 30, redraw_entry: false }.compile(&network).unwrap();
        let available = VirtualChannels { begin: 0, end: 3 };
        let (router, input) = network.injection_port(TerminalId(from));
        let mut hop = Hop { router, input, virtual_channel: 0, source: TerminalId(from), destination: TerminalId(to), available };
        let (mut state, mut path) = (0, Vec::new());
        loop {
            let mut candidates = Vec::new();
            routing.route(&hop, &mut state, &mut First, &mut candidates);
            let channel = network.output_channel(hop.router, candidates[0].port).unwrap();
            path.push((candidates[0].port >= 5, candidates[0].virtual_channels.begin));
            if network.ejected_terminal(channel).is_some() {
                return path;
            }
            (hop.router, hop.input) = network.input_port(channel);
        }
    }

    /// Takes the first alternative: the short path.
    struct First;

    impl Choice for First {
        fn uniform(&mut self, alternatives: u32) -> u32 {
            alternatives - 1
        }

        fn least(&mut self, _alternatives: u32, _cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
            0
        }
    }

    /// Local, global, local, ejection: channel 0 before the global hop and 1 from it on; adaptive 1 and 2.
    #[test]
    fn the_virtual_channel_rises_with_the_hop_between_groups() {
        // Router 0 of group 0 reaches group 3 by link 2, on router 1; group 3's link back is 0, on its router 0.
        let path = [(false, 0), (true, 1), (false, 1), (false, 1)];
        assert_eq!(phases(false, 0, 3 * 8 + 5), path);
        assert_eq!(phases(true, 0, 3 * 8 + 5), path.map(|(global, phase)| (global, phase + 1)));
        assert_eq!(phases(false, 0, 4), [(false, 0), (false, 0)]);
        assert_eq!(phases(true, 0, 4), [(false, 2), (false, 2)]);
    }
}
