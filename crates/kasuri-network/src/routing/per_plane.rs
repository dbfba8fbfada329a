//! Routes in a network whose parts no channel joins: planes, each with a routing of its own.

use super::choice::Choice;
use super::contract::{Routing, RoutingFacts};
use super::hop::{Candidate, Hop, Reads, VirtualChannels};
use crate::id::{Port, RouterId, TerminalId};
use crate::network::Network;
use crate::network::parts::{CUT_OFF, InPart, Parts};
use std::sync::Arc;

/// Takes each packet through the part of the network in which its source is, by the routing of that part; to another part there is no path, nor to
/// what cannot be reached any more.
#[derive(Debug)]
pub struct PerPlaneRouting {
    facts: RoutingFacts,
    /// Those of equal parts are the same.
    routings: Vec<Arc<dyn Routing>>,
    routers: Box<[InPart]>,
    terminals: Box<[Place]>,
}

/// Where a terminal is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its part.
    part: u32,
    /// Its routing.
    routing: u32,
    /// Its number there.
    number: TerminalId,
    /// Terminals with the same one reach each other over what is up; [`CUT_OFF`]: nobody does.
    live: u32,
}

impl PerPlaneRouting {
    /// Prepares the paths of a network by a routing for each of its parts, which `compile` makes. Where something is down and a part's routing
    /// cannot be made for all of its terminals, it is made for those that reach each other.
    ///
    /// # Errors
    /// As `compile`.
    pub fn new<E>(network: &Network, compile: impl Fn(&Arc<Network>) -> Result<Arc<dyn Routing>, E>) -> Result<Self, E> {
        let parts = Parts::of(network);
        let place = |(terminal, place): (u32, &InPart)| Place {
            part: place.part,
            routing: 0,
            number: TerminalId(place.number),
            live: parts.live_of(network, TerminalId(terminal)),
        };
        let mut terminals: Vec<Place> = (0..).zip(&parts.terminals).map(place).collect();
        let mut routings: Vec<Arc<dyn Routing>> = Vec::new();
        let mut of_wholes: Vec<(&Arc<Network>, Arc<dyn Routing>)> = Vec::new();
        for (part, whole) in (0..).zip(&parts.networks) {
            let known = of_wholes.iter().find(|(known, _)| Arc::ptr_eq(known, whole)).map(|(_, routing)| Ok(Arc::clone(routing)));
            match known.unwrap_or_else(|| compile(whole)) {
                Ok(routing) => {
                    let number = routings.len() as u32;
                    terminals.iter_mut().filter(|place| place.part == part).for_each(|place| place.routing = number);
                    of_wholes.push((whole, Arc::clone(&routing)));
                    routings.push(routing);
                }
                Err(error) if whole.damage().is_none() => return Err(error),
                Err(_) => {
                    for (inside, left) in parts.connected_components(network, part) {
                        for (number, terminal) in (0..).map(TerminalId).zip(inside) {
                            let place = &mut terminals[terminal.index()];
                            (place.routing, place.number) = (routings.len() as u32, number);
                        }
                        routings.push(compile(&Arc::new(left))?);
                    }
                }
            }
        }
        let own = parts.routers.len() * size_of::<InPart>() + terminals.len() * size_of::<Place>();
        let facts = facts_of(&routings, own as u64);
        Ok(Self { facts, routings, routers: parts.routers.into(), terminals: terminals.into() })
    }

    /// The routing of a terminal's part, and the terminals as they are numbered there.
    fn of_part(&self, source: TerminalId, destination: TerminalId) -> (&dyn Routing, TerminalId, TerminalId) {
        let [source, destination] = [source, destination].map(|terminal| self.terminals[terminal.index()]);
        (&*self.routings[destination.routing as usize], source.number, destination.number)
    }

    /// The routing of a hop's part, and the hop as it is numbered there.
    fn of_hop(&self, hop: &Hop) -> (&dyn Routing, Hop) {
        let (routing, source, destination) = self.of_part(hop.source, hop.destination);
        (routing, Hop { router: RouterId(self.routers[hop.router.index()].number), source, destination, ..*hop })
    }
}

/// The facts of routings together, each of equal parts once; `own` are the bytes of the columns beside them.
fn facts_of(routings: &[Arc<dyn Routing>], own: u64) -> RoutingFacts {
    let all: Vec<RoutingFacts> = routings.iter().map(|routing| routing.facts()).collect();
    let any = |holds: fn(&RoutingFacts) -> bool| all.iter().any(holds);
    let is_first = |&place: &usize| !routings[..place].iter().any(|known| Arc::ptr_eq(known, &routings[place]));
    let sum = |bytes: fn(&RoutingFacts) -> u64| (0..all.len()).filter(is_first).map(|place| bytes(&all[place])).sum::<u64>();
    let table_bytes = own + sum(|facts| facts.table_bytes);
    RoutingFacts {
        virtual_channels_required: all.iter().map(|facts| facts.virtual_channels_required).max().unwrap_or(1),
        reads: Reads {
            source: any(|facts| facts.reads.source),
            input: any(|facts| facts.reads.input),
            virtual_channel: any(|facts| facts.reads.virtual_channel),
            terminal: any(|facts| facts.reads.terminal),
        },
        is_deadlock_free: all.iter().all(|facts| facts.is_deadlock_free),
        searches_paths: all.iter().all(|facts| facts.searches_paths),
        observes_congestion: any(|facts| facts.observes_congestion),
        offers_several: any(|facts| facts.offers_several),
        restricts_entry: any(|facts| facts.restricts_entry),
        redraws_entry: any(|facts| facts.redraws_entry),
        table_bytes,
        build_peak_bytes: table_bytes.max(sum(|facts| facts.build_peak_bytes)),
        ..RoutingFacts::default()
    }
}

impl Routing for PerPlaneRouting {
    fn facts(&self) -> RoutingFacts {
        self.facts
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        let [one, other] = [source, destination].map(|terminal| self.terminals[terminal.index()].live);
        if one == CUT_OFF || one != other {
            return false;
        }
        let (routing, source, destination) = self.of_part(source, destination);
        routing.connects(source, destination)
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        let (routing, source, destination) = self.of_part(source, destination);
        routing.initial_state(source, destination, choice)
    }

    fn escape_channels(&self, available: VirtualChannels) -> Option<VirtualChannels> {
        // One algorithm has made them all.
        self.routings.first()?.escape_channels(available)
    }

    fn accepts(&self, hop: &Hop, state: u32, port: Port) -> Option<VirtualChannels> {
        let (routing, hop) = self.of_hop(hop);
        routing.accepts(&hop, state, port)
    }

    fn entering(&self, hop: &Hop, state: u32, choice: &mut dyn Choice) -> VirtualChannels {
        let (routing, hop) = self.of_hop(hop);
        routing.entering(&hop, state, choice)
    }

    fn port_to(&self, router: RouterId, destination: TerminalId) -> Option<Port> {
        let (router, destination) = (self.routers[router.index()], self.terminals[destination.index()]);
        let same = router.part == destination.part && destination.live != CUT_OFF;
        // What leads nowhere is asked for by nobody who sends there.
        let number = if same { destination.number } else { TerminalId(0) };
        self.routings[destination.routing as usize].port_to(RouterId(router.number), number)
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let destination = self.terminals[hop.destination.index()];
        if self.routers[hop.router.index()].part == destination.part && destination.live != CUT_OFF {
            let (routing, hop) = self.of_hop(hop);
            routing.route(&hop, state, choice, candidates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadlock::{self, Verdict};
    use crate::network::terminal_ports::TerminalPorts;
    use crate::registry::find;
    use crate::routing::{ROUTINGS, RoutingError};
    use crate::topology::built;

    /// All packets between ports of one plane arrive, by each family of routings, without a cycle, as in one plane alone.
    #[test]
    fn packets_arrive_in_the_plane_in_which_they_begin() {
        for (of, keys, algorithm) in [
            ("mesh", "dimensions = [3, 2]", "dimension-order"),
            ("torus", "dimensions = [4, 3]", "dimension-order"),
            ("xgft", "m = [3, 3]\nw = [1, 2]", "nca"),
            ("leaf-spine", "leaves = 4\nspines = 2\ndown = 2", "ecmp"),
            ("dragonfly", "terminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1", "minimal"),
            ("mesh", "dimensions = [3, 2]", "up-down"),
        ] {
            let base = Arc::new(built(of, keys));
            let network = Arc::new(built("planes", &format!("planes = 2\nof = \"{of}\"\n{keys}")));
            let by_ports = network.by_terminal_ports();
            let entry = find(ROUTINGS, algorithm).unwrap();
            let compile = |network: &Arc<Network>| {
                let routing = (entry.parse)(toml::Table::new()).unwrap().compile(network);
                Arc::<dyn Routing>::from(routing.unwrap_or_else(|error| panic!("{of} {algorithm}: {error}")))
            };
            let alone = compile(&base);
            let routing = PerPlaneRouting::new::<RoutingError>(&by_ports, |part| Ok(compile(part))).unwrap();
            assert_eq!(routing.routings.len(), 2);
            assert!(Arc::ptr_eq(&routing.routings[0], &routing.routings[1]), "equal planes have one routing");
            let channels = [VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 }];
            let [one, two] = [deadlock::check(&base, &*alone, &channels), deadlock::check(&by_ports, &routing, &channels)];
            assert_eq!((one.verdict, one.unroutable), (Verdict::Acyclic, None), "{of}");
            assert_eq!((two.verdict, two.unroutable), (Verdict::Acyclic, None), "{of}");
            assert_eq!((2 * one.channels, 2 * one.dependencies), (two.channels, two.dependencies), "{of}");
            let ports = TerminalPorts::of(&network, &by_ports);
            for (from, to) in (0..ports.port_count()).flat_map(|from| (0..ports.port_count()).map(move |to| (from, to))) {
                assert_eq!(routing.connects(TerminalId(from), TerminalId(to)), from % 2 == to % 2);
            }
        }
    }
}
