//! What the routers of a tile find routes with.

use crate::state::claims::Claims;
use crate::state::failures::Failures;
use crate::state::lookahead::Lookahead;
use crate::state::route_memo::RouteMemo;
use crate::state::share::Share;
use kasuri_model::router::Congestion;
use kasuri_model::scenario::Scenario;
use kasuri_network::rng::Purpose;
use kasuri_network::routing::{Candidate, Routing, VirtualChannels};

/// What routes are found with.
pub(crate) struct RouteState<'a> {
    /// Who finds them.
    pub(crate) function: &'a dyn Routing,
    /// Of the draws.
    pub(crate) seed: u64,
    /// By class: the virtual channels of its packets and of their replies.
    pub(crate) channels_of_class: Vec<[VirtualChannels; 2]>,
    /// What the routing has answered.
    pub(crate) candidates: Vec<Candidate>,
    /// Routes that are known already, where the network is small.
    pub(crate) memo: Option<RouteMemo>,
    /// What heads have claimed of the outputs, where a routing looks at that.
    pub(crate) claims: Option<Box<Claims>>,
    /// What is decided ahead of a head, where lookahead decides on departure.
    pub(crate) lookahead: Option<Lookahead>,
    /// What is dead, if anything fails during the run.
    pub(crate) failures: Option<Box<Failures>>,
}

impl<'a> RouteState<'a> {
    pub(crate) fn new(scenario: &'a Scenario, share: &Share, router_ports: u32, vc_shift: u32) -> Self {
        let router_slots = router_ports << vc_shift;
        let channels_of_class = scenario.channels_of_classes();
        let looks_at_claims = scenario.routing.facts().observes_congestion && scenario.router.congestion == Congestion::Claimed;
        Self {
            function: &*scenario.routing,
            seed: scenario.streams.key(Purpose::Routing),
            candidates: Vec::new(),
            memo: RouteMemo::new(&*scenario.routing, &scenario.network, share.routers.len(), router_slots, &channels_of_class),
            channels_of_class,
            claims: looks_at_claims.then(|| Box::new(Claims::new(router_slots as usize))),
            lookahead: Lookahead::of(scenario),
            failures: Failures::of(scenario, router_ports, share.routers.len()),
        }
    }
}

/// Where a head goes next, and its routing state after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) candidate: Candidate,
    pub(crate) state: u32,
}
