//! Open traffic of terminals with several ports.

use super::{PortChoice, Way};
use crate::traffic::pattern::Pattern;
use kasuri_network::id::TerminalId;
use kasuri_network::network::terminal_ports::TerminalPorts;
use kasuri_network::rng::Stream;
use std::sync::Arc;

/// A pattern of terminals as one of their ports. A port creates the part of its terminal's packets that takes it: what a terminal sends is the
/// sum over its ports.
#[derive(Debug)]
pub struct PortPattern {
    pattern: Arc<dyn Pattern>,
    ports: Arc<TerminalPorts>,
    choice: PortChoice,
    /// By port: its part, as a multiple of an equal one. Empty where all have an equal part and send to the port of their own number.
    parts: Box<[f64]>,
}

impl PortPattern {
    /// The pattern of `pattern`'s terminals, whose ports these are.
    pub fn new(pattern: Arc<dyn Pattern>, ports: Arc<TerminalPorts>, choice: PortChoice) -> Self {
        let equal = Self { pattern, ports, choice, parts: Box::default() };
        if equal.ports.are_all_up() && choice != PortChoice::ByDestination {
            return equal;
        }
        let parts = (0..equal.ports.port_count()).map(|port| equal.part(TerminalId(port))).collect();
        Self { parts, ..equal }
    }

    /// What of its terminal's packets takes a port, as a multiple of an equal part.
    fn part(&self, port: TerminalId) -> f64 {
        let equal = self.ports.ports_of(self.ports.terminal_of(port)).len() as f64;
        equal * self.taken(port).into_iter().map(|(_, weight)| weight).sum::<f64>()
    }

    /// The probabilities of the ports to which a port sends; those of all ports of a terminal sum to 1.
    fn taken(&self, port: TerminalId) -> Vec<(TerminalId, f64)> {
        let source = self.ports.terminal_of(port);
        let (mut taken, mut all) = (Vec::new(), Vec::new());
        for (destination, weight) in self.pattern.weights(source) {
            self.ports.ways(source, destination, &mut all);
            let each = weight * self.probability(&all);
            let chosen = self.chosen(source, destination, &all);
            taken.extend(chosen.iter().filter(|(from, _)| *from == port).map(|&(_, to)| (to, each)));
        }
        taken
    }

    /// Of the ways between two terminals those that their packets take, each as often as the others.
    fn chosen<'w>(&self, source: TerminalId, destination: TerminalId, all: &'w [Way]) -> &'w [Way] {
        match self.choice {
            PortChoice::ByDestination if !all.is_empty() => std::slice::from_ref(&all[PortChoice::by_hash(source, destination, all.len())]),
            _ => all,
        }
    }

    fn probability(&self, all: &[Way]) -> f64 {
        if self.choice == PortChoice::ByDestination { 1.0 } else { 1.0 / all.len().max(1) as f64 }
    }

    /// The port of the same number of another terminal.
    fn across(&self, port: TerminalId, destination: TerminalId) -> TerminalId {
        let number = port.0 - self.first(self.ports.terminal_of(port)).0;
        TerminalId(self.first(destination).0 + number)
    }

    fn first(&self, terminal: TerminalId) -> TerminalId {
        self.ports.ports_of(terminal).next().unwrap_or(TerminalId(0))
    }
}

impl Pattern for PortPattern {
    fn destination(&self, port: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        let source = self.ports.terminal_of(port);
        if self.parts.is_empty() {
            return Some(self.across(port, self.pattern.destination(source, stream)?));
        }
        if self.parts[port.index()] == 0.0 {
            return None;
        }
        // Of all packets of the terminal those that take this port.
        let mut all = Vec::new();
        loop {
            let destination = self.pattern.destination(source, stream)?;
            self.ports.ways(source, destination, &mut all);
            let chosen = self.chosen(source, destination, &all);
            let (from, to) = match chosen {
                [] => continue,
                [only] => *only,
                several => several[stream.below(several.len() as u32) as usize],
            };
            if from == port {
                return Some(to);
            }
        }
    }

    fn weights(&self, port: TerminalId) -> Vec<(TerminalId, f64)> {
        if self.parts.is_empty() {
            let of_terminal = self.pattern.weights(self.ports.terminal_of(port));
            return of_terminal.into_iter().map(|(destination, weight)| (self.across(port, destination), weight)).collect();
        }
        let mut taken = self.taken(port);
        let sum: f64 = taken.iter().map(|(_, weight)| weight).sum();
        taken.iter_mut().for_each(|(_, weight)| *weight /= sum);
        taken.sort_unstable_by_key(|&(port, _)| port);
        taken
    }

    fn share(&self, port: TerminalId) -> f64 {
        self.parts.get(port.index()).unwrap_or(&1.0) * self.pattern.share(self.ports.terminal_of(port))
    }

    fn has_shares(&self) -> bool {
        !self.parts.is_empty() || self.pattern.has_shares()
    }

    fn is_silent(&self, port: TerminalId) -> bool {
        self.parts.get(port.index()) == Some(&0.0) || self.pattern.is_silent(self.ports.terminal_of(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::pattern::{PATTERNS, PatternContext};
    use kasuri_network::id::RouterId;
    use kasuri_network::network::Network;
    use kasuri_network::registry::find;
    use kasuri_network::rng::{Purpose, Streams};
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
    use std::collections::BTreeMap;

    /// Two planes of a leaf-spine with four terminals, with routers that are down.
    fn planes(down: &[u32]) -> (Arc<Network>, Arc<TerminalPorts>) {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let keys = "planes = 2\nof = \"leaf-spine\"\nleaves = 2\nspines = 1\ndown = 2";
        let network =
            (find(TOPOLOGIES, "planes").unwrap().parse)(toml::from_str(keys).unwrap()).unwrap().build(&context).map(Arc::new).unwrap();
        let down: Vec<RouterId> = down.iter().copied().map(RouterId).collect();
        let ports = TerminalPorts::of(&network, &network.by_terminal_ports().without(&[], &down));
        (network, Arc::new(ports))
    }

    fn pattern(name: &str, choice: PortChoice, down: &[u32]) -> (PortPattern, Arc<dyn Pattern>, Arc<TerminalPorts>) {
        let (network, ports) = planes(down);
        let context = PatternContext { network: &network, include_self: false, files: &NoFiles };
        let parsed = (find(PATTERNS, name).unwrap().parse)(toml::Table::new()).unwrap();
        let of_terminals: Arc<dyn Pattern> = Arc::from(parsed.compile(&context).unwrap());
        (PortPattern::new(Arc::clone(&of_terminals), Arc::clone(&ports), choice), of_terminals, ports)
    }

    /// What the ports of a terminal send to those of another is what the terminal sends to it, whatever is chosen and whatever is down; ports
    /// send to ports that they reach, by the probabilities that are told.
    #[test]
    fn ports_send_together_what_their_terminal_sends() {
        use PortChoice::{ByDestination, ByMessage, ByPacket};
        for name in ["uniform", "bit-complement", "neighbor"] {
            for choice in [ByPacket, ByMessage, ByDestination] {
                for down in [&[][..], &[2], &[3], &[0]] {
                    let (by_port, of_terminals, ports) = pattern(name, choice, down);
                    for terminal in (0..4).map(TerminalId) {
                        let mut sent: BTreeMap<TerminalId, f64> = BTreeMap::new();
                        for port in ports.ports_of(terminal).filter(|&port| !by_port.is_silent(port)) {
                            let weights = by_port.weights(port);
                            assert!((weights.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
                            for &(to, weight) in &weights {
                                assert!(ports.are_joined(port, to), "{name} {choice:?} {down:?}");
                                *sent.entry(ports.terminal_of(to)).or_default() += by_port.share(port) * weight / 2.0;
                            }
                            let mut stream = Streams::new(7).get(Purpose::Destination, port.0);
                            let mut drawn: BTreeMap<TerminalId, f64> = BTreeMap::new();
                            (0..4000)
                                .for_each(|_| *drawn.entry(by_port.destination(port, &mut stream).unwrap()).or_default() += 1.0 / 4000.0);
                            assert!(weights.iter().all(|(to, weight)| (drawn[to] - weight).abs() < 0.04), "{name} {choice:?} {down:?}");
                        }
                        for (destination, weight) in of_terminals.weights(terminal) {
                            let found = sent.get(&destination).copied().unwrap_or(0.0);
                            assert!((found - weight).abs() < 1e-12, "{name} {choice:?} {down:?}: {found}, {weight}");
                        }
                    }
                }
            }
        }
    }

    /// With a hash each pair of terminals takes one plane.
    #[test]
    fn a_hash_takes_one_port_for_each_destination() {
        let (by_port, _, ports) = pattern("uniform", PortChoice::ByDestination, &[]);
        let mut planes_of_pair: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for port in (0..8).map(TerminalId).filter(|&port| !by_port.is_silent(port)) {
            for (to, _) in by_port.weights(port) {
                *planes_of_pair.entry((ports.terminal_of(port).0, ports.terminal_of(to).0)).or_default() += 1;
            }
        }
        assert!(planes_of_pair.len() == 12 && planes_of_pair.values().all(|&planes| planes == 1), "{planes_of_pair:?}");
    }
}
