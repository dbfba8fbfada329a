//! Routes that stay out of other users' regions (`users.routing = "inside"`).

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads};
use super::table::edges;
use super::up_down::UpDownRoutes;
use crate::id::TerminalId;
use crate::network::Network;
use std::sync::Arc;

/// In place of a region's number: the terminal is nobody's.
const NOBODY: u8 = u8::MAX;

/// Takes each user's packets through routers at which it has terminals, or at which no other user has any: up a spanning order of these
/// routers, then down, by a shortest of such routes.
///
/// Of one user's packets none can wait for each other in a cycle. Those of several users may, where they share routers and virtual
/// channels.
#[derive(Debug)]
pub struct Regional {
    /// By user.
    regions: Vec<UpDownRoutes>,
    /// By terminal: whose it is, or [`NOBODY`].
    region_of: Box<[u8]>,
    /// Do no two users share channels?
    are_apart: bool,
}

/// Why a user's packets cannot stay inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPath {
    /// The user's number.
    pub user: usize,
    /// A terminal of this user.
    pub source: TerminalId,
    /// Another, to which no such route leads.
    pub destination: TerminalId,
}

impl Regional {
    /// Prepares the paths of users of whom each has these terminals, no two the same one, at most 64 users; `regions` tells by router who
    /// has terminals there, user `i` as bit `i`. `channels_are_divided`: do the users have virtual channels of their own?
    ///
    /// # Errors
    /// There is no path inside for some pair of a user's terminals.
    pub fn new(network: &Arc<Network>, users: &[&[TerminalId]], regions: &[u64], channels_are_divided: bool) -> Result<Self, NoPath> {
        let all = edges(network);
        let mut routes = Vec::new();
        let mut region_of = vec![NOBODY; network.terminal_count() as usize];
        for (number, &terminals) in users.iter().enumerate() {
            let may_pass = |router: usize| regions[router] == 0 || regions[router] & 1 << number != 0;
            let inside: Vec<_> = all.iter().filter(|edge| may_pass(edge.from.index()) && may_pass(edge.to.index())).copied().collect();
            let own = UpDownRoutes::within(network, &inside, terminals, None);
            if let Some((source, destination)) = own.cut_off(terminals) {
                return Err(NoPath { user: number, source, destination });
            }
            routes.push(own);
            terminals.iter().for_each(|terminal| region_of[terminal.index()] = number as u8);
        }
        let is_anothers = |&region: &u64| region.count_ones() == 1;
        let are_apart = channels_are_divided || users.len() < 2 || regions.iter().all(is_anothers);
        Ok(Self { regions: routes, region_of: region_of.into(), are_apart })
    }
}

impl Routing for Regional {
    fn facts(&self) -> RoutingFacts {
        RoutingFacts {
            // Terminals of several users may be at one router.
            reads: Reads { source: true, terminal: true, ..Reads::DESTINATION_ROUTER },
            is_deadlock_free: self.are_apart,
            observes_congestion: false,
            ..RoutingFacts::default()
        }
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        let region = self.region_of[destination.index()];
        region != NOBODY && region == self.region_of[source.index()]
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        if self.connects(hop.source, hop.destination) {
            self.regions[usize::from(self.region_of[hop.destination.index()])].route(hop, state, choice, candidates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadlock::{self, Verdict};
    use crate::id::RouterId;
    use crate::network::Endpoint;
    use crate::routing::VirtualChannels;
    use crate::routing::every_hop;
    use crate::topology::torus::Torus;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology};

    const SIDE: u32 = 6;

    fn torus() -> Arc<Network> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Arc::new(Torus { dimensions: vec![SIDE, SIDE], concentration: 1 }.build(&context).unwrap())
    }

    fn user(nodes: &[u32]) -> Vec<TerminalId> {
        nodes.iter().copied().map(TerminalId).collect()
    }

    fn regional(network: &Arc<Network>, users: &[Vec<TerminalId>], channels_are_divided: bool) -> Result<Regional, NoPath> {
        let users: Vec<&[TerminalId]> = users.iter().map(Vec::as_slice).collect();
        Regional::new(network, &users, &regions(network, &users), channels_are_divided)
    }

    fn regions(network: &Network, users: &[&[TerminalId]]) -> Vec<u64> {
        let owner = |terminal: u32| users.iter().position(|user| user.contains(&TerminalId(terminal)));
        (0..network.router_count()).map(|router| owner(router).map_or(0, |user| 1 << user)).collect()
    }

    /// An L of seven nodes: the corner it leaves is another's.
    const BENT: [u32; 7] = [0, 1, 2, 3, 9, 15, 21];

    fn rest(own: &[u32]) -> Vec<u32> {
        (0..SIDE * SIDE).filter(|node| !own.contains(node)).collect()
    }

    /// Routers that a packet may pass on any path.
    fn passed(network: &Network, routing: &dyn Routing, source: u32, destination: u32) -> Vec<RouterId> {
        let available = VirtualChannels { begin: 0, end: 1 };
        let (router, input) = network.injection_port(TerminalId(source));
        let hop = Hop { router, input, virtual_channel: 0, source: TerminalId(source), destination: TerminalId(destination), available };
        let (mut open, mut all) = (vec![(hop, 0)], Vec::new());
        while let Some((hop, state)) = open.pop() {
            all.push(hop.router);
            assert!(all.len() < 10_000, "a packet goes round for ever");
            for (candidates, state) in every_hop(routing, &hop, state) {
                assert!(!candidates.is_empty(), "a packet is lost at {:?}", hop.router);
                for candidate in candidates {
                    let channel = network.output_channel(hop.router, candidate.port).expect("a packet leaves by a connected port");
                    if let Endpoint::Router(router, input) = network.destination(channel) {
                        open.push((Hop { router, input, ..hop }, state));
                    }
                }
            }
        }
        all
    }

    #[test]
    fn no_packet_passes_a_router_that_is_anothers() {
        let network = torus();
        let users = [user(&BENT), user(&rest(&BENT))];
        let routing = regional(&network, &users, false).unwrap();
        for user in &users {
            for &source in user {
                for &destination in user {
                    let routers = passed(&network, &routing, source.0, destination.0);
                    assert!(routers.iter().all(|router| user.contains(&TerminalId(router.0))));
                }
            }
        }
        let all = [VirtualChannels { begin: 0, end: 1 }];
        assert!(routing.facts().is_deadlock_free);
        let report = deadlock::check(&network, &routing, &all);
        assert_eq!((report.verdict, report.unroutable), (Verdict::Acyclic, None));
    }

    /// Routers of nobody serve all, and then only virtual channels of their own keep users from waiting for each other.
    #[test]
    fn routers_of_nobody_are_open_to_all() {
        let network = torus();
        let users = [user(&[0, 14]), user(&[3, 17])];
        let routing = regional(&network, &users, false).unwrap();
        assert!(!passed(&network, &routing, 0, 14).contains(&RouterId(3)));
        assert!(!routing.facts().is_deadlock_free);
        assert!(regional(&network, &users, true).unwrap().facts().is_deadlock_free);
    }

    #[test]
    fn a_user_in_two_pieces_has_no_path_inside() {
        let network = torus();
        let own = [0, 1, 14];
        let users = [user(&own), user(&rest(&own))];
        let refused = regional(&network, &users, true).unwrap_err();
        assert_eq!((refused.user, refused.destination), (0, TerminalId(14)));
    }
}
