//! Which synchronisation packets a router waits for, and where it sends one when they have come.
//!
//! Where no path leads back all routers combine at once: each waits for a packet on every input to which participants lead, then sends one
//! by every output that leads to participants. Where several ways lead to a terminal, only those count that packets between participants
//! take. In other networks packets are combined on a tree of links, up to the first router below
//! which all participants are, and from there go down to all of them.
//!
//! On a tree a participant leaves a round when the packet from above has come, so after all routers above it have had all that they wait
//! for in this round: a packet of the next round finds their tables empty, one row is enough. Where all combine at once a participant may
//! leave while routers on other paths still wait, so that its next packet overtakes; the round after that cannot, since the one between
//! would have to end everywhere first. So there are two rows.
//!
//! A synchronisation packet takes no room in queues for data: it is counted when it comes, and waits for nothing but the channel and, at
//! the end, for room at a terminal. Both are held for bounded times only, as data never waits for a synchronisation.

use super::Refusal;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Endpoint, Network};

/// The tables of synchronisations of a network with at most [`GROUP`](super::GROUP) terminals.
#[derive(Clone, Debug)]
pub struct Synchronisation {
    ports: usize,
    /// By router and input: the terminals from which packets come.
    before: Vec<u64>,
    /// By router and output: the terminals to which packets go.
    behind: Vec<u64>,
    rule: Rule,
}

/// How routers combine.
#[derive(Clone, Debug)]
enum Rule {
    /// All at once; each way between two terminals is the only one.
    Everywhere,
    /// All at once, where several ways lead to a terminal and a packet takes one of them.
    Ways(Ways),
    /// On a tree: by router.
    Tree(Vec<Branch>),
}

/// Whose packets to whom come on each input and leave by each output, by router and port.
#[derive(Clone, Debug)]
struct Ways {
    into: Vec<Vec<Pairs>>,
    out: Vec<Vec<Pairs>>,
}

/// A terminal and the terminals to which its packets go.
#[derive(Clone, Copy, Debug)]
struct Pairs {
    from: u32,
    to: u64,
}

/// A router on the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Branch {
    /// The terminals below it.
    below: u64,
    /// The port of the link up; the root has none.
    up: Option<Port>,
}

/// What a router does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The inputs on which packets have to have come, a bit each; nothing if it comes from above and goes on at once.
    pub expected: Option<u32>,
    /// The outputs by which a packet leaves then, a bit each.
    pub outputs: u32,
}

/// A link to another router: the port here, the router, and the port there.
type Neighbour = (Port, RouterId, Port);

impl Synchronisation {
    /// All routers combine at once.
    pub(super) fn everywhere(ports: usize, before: Vec<u64>, behind: Vec<u64>) -> Self {
        Self { ports, before, behind, rule: Rule::Everywhere }
    }

    /// All routers combine at once, and a packet from one terminal to another takes the outputs that `output` says by router, input and
    /// destination. A port takes part if the way of some participant's packet to some participant goes through it.
    pub(super) fn on_fixed_ways(network: &Network, ports: usize, output: impl Fn(RouterId, Port, TerminalId) -> Option<Port>) -> Self {
        let places = network.router_count() as usize * ports;
        let mut ways = Ways { into: vec![Vec::new(); places], out: vec![Vec::new(); places] };
        let terminals = || (0..network.terminal_count()).map(TerminalId);
        for from in terminals() {
            for to in terminals() {
                let (mut router, mut input) = network.injection_port(from);
                while let Some(port) = output(router, input, to) {
                    Pairs::add(&mut ways.into[router.index() * ports + usize::from(input)], from.0, to.0);
                    Pairs::add(&mut ways.out[router.index() * ports + usize::from(port)], from.0, to.0);
                    match network.output_channel(router, port).map(|channel| network.destination(channel)) {
                        Some(Endpoint::Router(next, entered)) => (router, input) = (next, entered),
                        _ => break,
                    }
                }
            }
        }
        Self { ports, before: Vec::new(), behind: Vec::new(), rule: Rule::Ways(ways) }
    }

    /// A spanning tree of links: its root is the router that is least far from the terminal that is farthest from it, the first of them.
    ///
    /// # Errors
    /// Links lead one way only, or not to all terminals.
    pub(super) fn on_a_tree(network: &Network, ports: usize) -> Result<Self, Refusal> {
        let routers = network.router_count() as usize;
        let links: Vec<Vec<Neighbour>> = (0..network.router_count()).map(|router| neighbours(network, RouterId(router))).collect();
        let root = root(network, &links)?;
        let (parents, order) = spanning_tree(&links, root);
        let mut branches = vec![Branch::default(); routers];
        let (mut before, mut behind) = (vec![0; routers * ports], vec![0; routers * ports]);
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            let ((router, input), (_, output)) = (network.injection_port(terminal), network.ejection_port(terminal));
            branches[router.index()].below |= 1 << terminal.0;
            before[router.index() * ports + usize::from(input)] |= 1 << terminal.0;
            behind[router.index() * ports + usize::from(output)] |= 1 << terminal.0;
        }
        for &router in order.iter().rev() {
            let Some((up, parent, port)) = parents[router.index()] else { continue };
            branches[router.index()].up = Some(up);
            let below = branches[router.index()].below;
            branches[parent.index()].below |= below;
            before[parent.index() * ports + usize::from(port)] |= below;
            behind[parent.index() * ports + usize::from(port)] |= below;
        }
        Ok(Self { ports, before, behind, rule: Rule::Tree(branches) })
    }

    /// What a router does with a packet of these participants that comes on an input.
    pub fn step(&self, router: u32, input: u32, terminals: u64) -> Step {
        let at = router as usize * self.ports;
        let range = at..at + self.ports;
        let branches = match &self.rule {
            Rule::Ways(Ways { into, out }) => {
                return Step { expected: Some(used(&into[range.clone()], terminals)), outputs: used(&out[range], terminals) };
            }
            Rule::Everywhere => &[][..],
            Rule::Tree(branches) => branches,
        };
        let to_all = ports_of(&self.behind[range.clone()], terminals);
        let expected = Some(ports_of(&self.before[range], terminals));
        match branches.get(router as usize) {
            Some(&Branch { up: Some(up), .. }) if u32::from(up) == input => Step { expected: None, outputs: to_all },
            Some(&Branch { up: Some(up), below, .. }) if terminals & !below != 0 => Step { expected, outputs: 1 << up },
            _ => Step { expected, outputs: to_all },
        }
    }

    /// Rounds of one synchronisation of which packets can be at a router at a time.
    pub fn rows(&self) -> usize {
        if matches!(self.rule, Rule::Tree(_)) { 1 } else { 2 }
    }
}

impl Pairs {
    /// Adds a pair; those of a terminal follow each other.
    fn add(list: &mut Vec<Self>, from: u32, to: u32) {
        match list.last_mut().filter(|last| last.from == from) {
            Some(last) => last.to |= 1 << to,
            None => list.push(Self { from, to: 1 << to }),
        }
    }
}

/// The ports through which packets go from some of these terminals to some of them.
fn used(ways: &[Vec<Pairs>], terminals: u64) -> u32 {
    let is_used = |pairs: &Pairs| terminals & 1 << pairs.from != 0 && terminals & pairs.to != 0;
    ways.iter().enumerate().filter(|(_, pairs)| pairs.iter().any(is_used)).map(|(port, _)| 1 << port).sum()
}

/// The ports whose terminals are among these.
fn ports_of(sets: &[u64], terminals: u64) -> u32 {
    sets.iter().enumerate().filter(|(_, set)| **set & terminals != 0).map(|(port, _)| 1 << port).sum()
}

/// The routers to which there is a link in both directions.
fn neighbours(network: &Network, router: RouterId) -> Vec<Neighbour> {
    let mut found = Vec::new();
    for port in 0..network.port_count(router) as Port {
        let Some(channel) = network.output_channel(router, port) else { continue };
        let Endpoint::Router(next, input) = network.destination(channel) else { continue };
        let back = network.output_channel(next, input).map(|channel| network.destination(channel));
        if back == Some(Endpoint::Router(router, port)) {
            found.push((port, next, input));
        }
    }
    found
}

/// The router whose farthest terminal is nearest.
fn root(network: &Network, links: &[Vec<Neighbour>]) -> Result<RouterId, Refusal> {
    let refusal = |what: &str| {
        let name = network.name();
        Refusal::network(format!("is {name}, {what}; crosspoint routers combine synchronisations on links that lead both ways"))
    };
    let mut farthest = vec![0u32; links.len()];
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        let (router, _) = network.injection_port(terminal);
        if router != network.ejection_port(terminal).0 {
            return Err(refusal("whose terminals send to one router and are served by another"));
        }
        let (parents, order) = spanning_tree(links, router);
        let mut distance = vec![u32::MAX; links.len()];
        for &reached in &order {
            distance[reached.index()] = parents[reached.index()].map_or(0, |(_, parent, _)| distance[parent.index()] + 1);
        }
        farthest.iter_mut().zip(&distance).for_each(|(farthest, distance)| *farthest = (*farthest).max(*distance));
    }
    let nearest = (0..links.len() as u32).min_by_key(|&router| farthest[router as usize]).unwrap_or(0);
    if farthest.get(nearest as usize).is_none_or(|&farthest| farthest == u32::MAX) {
        return Err(refusal("in which links in both directions do not lead to all terminals"));
    }
    Ok(RouterId(nearest))
}

/// The shortest paths from a root over links: each router's link up, and the routers from the root on.
fn spanning_tree(links: &[Vec<Neighbour>], root: RouterId) -> (Vec<Option<Neighbour>>, Vec<RouterId>) {
    let mut parents = vec![None; links.len()];
    let mut order = vec![root];
    let mut next = 0;
    while let Some(&router) = order.get(next) {
        next += 1;
        for &(port, child, up) in &links[router.index()] {
            if child != root && parents[child.index()].is_none() {
                parents[child.index()] = Some((up, router, port));
                order.push(child);
            }
        }
    }
    (parents, order)
}
