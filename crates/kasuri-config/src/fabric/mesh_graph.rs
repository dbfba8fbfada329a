//! Machines of Tenstorrent's chips: each chip is a router with one terminal, and packets go in dimension order by tables.
//!
//! A terminal has an address for each parallel link: a packet keeps to the links of its number, the routing planes of these machines.
//! Within a mesh it goes along the first dimension first, half-way round a ring upwards; to another mesh it goes by the fewest links, of
//! several such paths by the join that is named first.

use super::parts::{LinkPart, MAX_TABLE_ENTRIES, Parts, Ports, TerminalPart};
use super::{Fabric, FabricError, Options};
use kasuri_formats::FormatError;
use kasuri_formats::mesh_graph::{Connection, Mesh, MeshGraph, Policy, Shape};
use kasuri_formats::rate::Speed;
use kasuri_network::id::{Port, RouterId};
use kasuri_network::network::tables::ForwardingTables;
use std::collections::BTreeMap;

/// Links between chips of two meshes, of which descriptors do not say the chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Mesh and chip of both ends.
    pub ends: [(u32, u32); 2],
    /// How many parallel links.
    pub links: u32,
}

/// Parallel links of a join, at most.
const MAX_JOINED: u32 = 128;

impl Join {
    /// Reads `0:12=1:0`, or `0:12=1:0*2` for two links.
    ///
    /// # Errors
    /// Another form; the message shows the right one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid join `{text}`; expected MESH:CHIP=MESH:CHIP, e.g. 0:12=1:0, or 0:12=1:0*2 for two links");
        let (ends, links) = text.split_once('*').unwrap_or((text, "1"));
        let links = links.parse().ok().filter(|links| (1..=MAX_JOINED).contains(links)).ok_or_else(wrong)?;
        let end = |text: &str| {
            let (mesh, chip) = text.split_once(':')?;
            Some((mesh.trim().parse().ok()?, chip.trim().parse().ok()?))
        };
        let (one, other) = ends.split_once('=').ok_or_else(wrong)?;
        match (end(one), end(other)) {
            (Some(one), Some(other)) => Ok(Self { ends: [one, other], links }),
            _ => Err(wrong()),
        }
    }
}

/// The fabric that a descriptor says.
///
/// # Errors
/// Joins that are missing, or are not those of the descriptor.
pub(super) fn fabric(graph: &MeshGraph, options: &Options<'_>) -> Result<Fabric, FabricError> {
    let machine = Machine::of(graph, options)?;
    let mut parts = machine.parts(options);
    let entries = u64::from(machine.chips) * u64::from(machine.chips) * u64::from(machine.planes());
    let has_tables = entries <= MAX_TABLE_ENTRIES;
    if !has_tables {
        parts.notes.push(format!("without forwarding tables, which would have {entries} entries"));
    }
    parts.fabric(|terminals, ports| has_tables.then(|| machine.tables(terminals, ports)))
}

/// A mesh with the number of its first chip.
struct Placed<'a> {
    mesh: &'a Mesh,
    first: u32,
}

impl Placed<'_> {
    fn holds(&self, chip: u32) -> bool {
        (self.first..self.first + self.mesh.shape.chips()).contains(&chip)
    }
}

/// All chips of a machine, numbered mesh by mesh.
struct Machine<'a> {
    graph: &'a MeshGraph,
    meshes: Vec<Placed<'a>>,
    chips: u32,
    /// Links between meshes: two chips, and how many.
    joins: Vec<([u32; 2], u32)>,
}

/// The coordinate of a chip in a dimension.
fn coordinate(shape: &Shape, chip: u32, dimension: usize) -> u32 {
    let below: u32 = shape.dims[dimension + 1..].iter().product();
    chip / below % shape.dims[dimension]
}

/// The neighbour in a dimension, upwards or downwards; round the ring where the dimension is one of more than two chips.
fn neighbour(shape: &Shape, chip: u32, dimension: usize, upwards: bool) -> Option<u32> {
    let below: u32 = shape.dims[dimension + 1..].iter().product();
    let (at, count) = (coordinate(shape, chip, dimension), shape.dims[dimension]);
    let closes = shape.rings[dimension] && count > 2;
    let next = match (upwards, at) {
        (true, at) if at + 1 < count => at + 1,
        (true, _) if closes => 0,
        (false, at) if at > 0 => at - 1,
        (false, _) if closes => count - 1,
        _ => return None,
    };
    Some(chip + next * below - at * below)
}

/// Steps between two chips in a dimension, and whether they go upwards.
fn steps(shape: &Shape, from: u32, to: u32, dimension: usize) -> (u32, bool) {
    let [from, to] = [from, to].map(|chip| coordinate(shape, chip, dimension));
    let count = shape.dims[dimension];
    let up = (to + count - from) % count;
    match shape.rings[dimension] && count > 2 {
        true if up <= count - up => (up, true),
        true => (count - up, false),
        false => (from.abs_diff(to), to > from),
    }
}

/// Links of the path in dimension order between two chips of a mesh.
fn distance(shape: &Shape, from: u32, to: u32) -> u32 {
    (0..shape.dims.len()).map(|dimension| steps(shape, from, to, dimension).0).sum()
}

/// The next chip in dimension order; `None` at the end.
fn next_chip(shape: &Shape, from: u32, to: u32) -> Option<u32> {
    let moves = |dimension: &usize| steps(shape, from, to, *dimension).0 > 0;
    let dimension = (0..shape.dims.len()).find(moves)?;
    neighbour(shape, from, dimension, steps(shape, from, to, dimension).1)
}

impl<'a> Machine<'a> {
    fn of(graph: &'a MeshGraph, options: &Options<'_>) -> Result<Self, FabricError> {
        let mut chips = 0;
        let place = |mesh: &'a Mesh| {
            let first = chips;
            chips += mesh.shape.chips();
            Placed { mesh, first }
        };
        let meshes: Vec<Placed<'_>> = graph.meshes.iter().map(place).collect();
        let mut machine = Self { graph, meshes, chips, joins: Vec::new() };
        machine.join(options.joins)?;
        Ok(machine)
    }

    /// Gives the links between meshes their chips: those of the descriptor, else those that are told.
    fn join(&mut self, given: &[Join]) -> Result<(), FabricError> {
        let mut by_pair: BTreeMap<[usize; 2], Vec<&Connection>> = BTreeMap::new();
        for connection in &self.graph.connections {
            match (connection.meshes, connection.chips) {
                ([one, other], [Some(from), Some(to)]) => {
                    let ends = [self.meshes[one].first + from, self.meshes[other].first + to];
                    self.joins.push((ends, connection.links));
                }
                ([one, other], _) => by_pair.entry([one.min(other), one.max(other)]).or_default().push(connection),
            }
        }
        let mut found: BTreeMap<[usize; 2], u32> = BTreeMap::new();
        for join in given {
            let ends = join.ends.map(|(id, chip)| self.end(id, chip));
            let [(one, from), (other, to)] = match ends {
                [Ok(one), Ok(other)] => [one, other],
                [Err(problem), _] | [_, Err(problem)] => return Err(FabricError::Files(problem)),
            };
            let pair = [one.min(other), one.max(other)];
            if !by_pair.contains_key(&pair) {
                let [one, other] = join.ends.map(|(id, _)| id);
                let problem =
                    format!("{}: the descriptor has no links between meshes {one} and {other} whose chips are open", self.graph.name);
                return Err(FabricError::Files(problem));
            }
            *found.entry(pair).or_default() += join.links;
            self.joins.push(([from, to], join.links));
        }
        by_pair.iter().try_for_each(|(pair, connections)| self.check_joined(pair, connections, found.get(pair).copied().unwrap_or(0)))
    }

    /// The mesh and the number among all chips of a chip that the user names.
    fn end(&self, id: u32, chip: u32) -> Result<(usize, u32), String> {
        let place = self.meshes.iter().position(|placed| placed.mesh.id == id);
        let place = place.ok_or_else(|| format!("{}: there is no mesh {id}", self.graph.name))?;
        let Placed { mesh, first } = &self.meshes[place];
        match chip < mesh.shape.chips() {
            true => Ok((place, first + chip)),
            false => Err(format!("{}: mesh {id} has chips 0 to {}, no chip {chip}", self.graph.name, mesh.shape.chips() - 1)),
        }
    }

    fn check_joined(&self, pair: &[usize; 2], connections: &[&Connection], found: u32) -> Result<(), FabricError> {
        let wanted: u32 = connections.iter().map(|connection| connection.links).sum();
        let is_strict = connections.iter().any(|connection| connection.policy == Policy::Strict);
        if found == wanted || !is_strict && (1..wanted).contains(&found) {
            return Ok(());
        }
        let [one, other] = pair.map(|place| self.meshes[place].mesh.id);
        let problem = format!(
            "joins meshes {one} and {other} by {wanted} links and does not say which chips; {found} are told. Give --join {one}:CHIP={other}:CHIP \
             for each link (with *2 behind it for two)"
        );
        Err(FormatError::new(&self.graph.name, connections[0].line, problem).into())
    }

    fn placed(&self, chip: u32) -> &Placed<'a> {
        &self.meshes[self.meshes.partition_point(|placed| placed.first <= chip) - 1]
    }

    /// Parallel links, and so routing planes, of the mesh that has most.
    fn planes(&self) -> u32 {
        self.meshes.iter().flat_map(|placed| placed.mesh.shape.links.iter().copied()).max().unwrap_or(1)
    }

    fn parts(&self, options: &Options<'_>) -> Parts {
        let mut parts = Parts { file: self.graph.name.clone(), is_switch: vec![false; self.chips as usize], ..Parts::default() };
        let mut is_nominal = false;
        let mut speed_of = |shape: &Shape| {
            let nominal = || Speed::from_gbit_per_second(shape.chip.gbit_per_second());
            is_nominal |= options.link_rate.is_none();
            options.link_rate.or_else(nominal).expect("nominal rates are above 0")
        };
        let mut degrees = vec![0u32; self.chips as usize];
        for Placed { mesh, first } in &self.meshes {
            let (shape, speed) = (&mesh.shape, speed_of(&mesh.shape));
            for (one, other, links) in links_of(shape) {
                let ends = [first + one, first + other];
                ends.iter().for_each(|&end| degrees[end as usize] += links);
                parts.links.extend((0..links).map(|_| LinkPart { ends, speed, latency_ns: None }));
            }
        }
        for &(ends, links) in &self.joins {
            let speed = ends.map(|chip| speed_of(&self.placed(chip).mesh.shape)).into_iter().min().expect("two ends");
            ends.iter().for_each(|&end| degrees[end as usize] += links);
            parts.links.extend((0..links).map(|_| LinkPart { ends, speed, latency_ns: None }));
        }
        // What a chip sends may leave by all its links at once.
        let widest = degrees.iter().copied().max().unwrap_or(1);
        for Placed { mesh, first } in &self.meshes {
            let speed = speed_of(&mesh.shape).times(widest);
            for chip in 0..mesh.shape.chips() {
                let name = format!("{}:{chip}", mesh.id);
                parts.routers.push(name.clone());
                let host = host(mesh, chip);
                parts.terminals.push(TerminalPart { name, host, router: first + chip, speed, latency_ns: None });
            }
        }
        if is_nominal {
            parts
                .notes
                .push("the descriptor says no rates: links have the nominal one of their chips; --link-rate sets another".to_owned());
        }
        if self.meshes.iter().any(|placed| !placed.mesh.shape.express.is_empty()) {
            parts.notes.push("express connections are there, but no route uses them".to_owned());
        }
        parts
    }

    /// Dimension order within a mesh, the fewest links between meshes.
    fn tables(&self, terminals: &[Port], ports: &Ports) -> ForwardingTables {
        let planes = self.planes();
        let mut tables = ForwardingTables::new(self.chips, (0..self.chips).map(|_| planes));
        let exits = self.exits();
        for to in 0..self.chips {
            let there = self.placed(to);
            let costs = self.costs(&exits, there, to);
            for from in 0..self.chips {
                for plane in 0..planes {
                    let port = match from == to {
                        true => Some(terminals[to as usize]),
                        false => self.next(&exits, &costs, there, from, to).and_then(|next| ports.of(from, next, plane)),
                    };
                    if let Some(port) = port {
                        tables.set(RouterId(from), to * planes + plane, port);
                    }
                }
            }
        }
        tables
    }

    /// Both directions of the joins.
    fn exits(&self) -> Vec<[u32; 2]> {
        self.joins.iter().flat_map(|&([one, other], _)| [[one, other], [other, one]]).collect()
    }

    /// Links from the chip of each exit to a chip, by that exit; `u32::MAX` if it does not lead there.
    fn costs(&self, exits: &[[u32; 2]], there: &Placed<'_>, to: u32) -> Vec<u32> {
        let mut costs = vec![u32::MAX; exits.len()];
        // Each round settles paths of one more mesh.
        loop {
            let cost = |&[from, into]: &[u32; 2]| match (there.holds(from), there.holds(into)) {
                (true, _) => u32::MAX,
                (_, true) => 1 + distance(&there.mesh.shape, into - there.first, to - there.first),
                _ => self.best(exits, &costs, into).map_or(u32::MAX, |(_, cost)| cost + 1),
            };
            let next: Vec<u32> = exits.iter().map(cost).collect();
            if next == costs {
                return costs;
            }
            costs = next;
        }
    }

    /// The exit of its own mesh by which a chip reaches the destination by the fewest links, and their number.
    fn best(&self, exits: &[[u32; 2]], costs: &[u32], from: u32) -> Option<(usize, u32)> {
        let here = self.placed(from);
        let usable = exits.iter().zip(costs).enumerate().filter(|(_, (exit, cost))| **cost < u32::MAX && here.holds(exit[0]));
        let total = |exit: &[u32; 2], cost: u32| cost + distance(&here.mesh.shape, from - here.first, exit[0] - here.first);
        usable.map(|(place, (exit, &cost))| (place, total(exit, cost))).min_by_key(|&(place, cost)| (cost, place))
    }

    /// The next chip on the path between two others.
    fn next(&self, exits: &[[u32; 2]], costs: &[u32], there: &Placed<'_>, from: u32, to: u32) -> Option<u32> {
        let here = self.placed(from);
        let step = |to: u32| next_chip(&here.mesh.shape, from - here.first, to - here.first).map(|chip| chip + here.first);
        if there.holds(from) {
            return step(to);
        }
        let [at, into] = exits[self.best(exits, costs, from)?.0];
        if at == from { Some(into) } else { step(at) }
    }
}

/// Neighbours within a mesh, each pair once, and how many links they have; then express connections.
fn links_of(shape: &Shape) -> Vec<(u32, u32, u32)> {
    let mut links = Vec::new();
    for dimension in 0..shape.dims.len() {
        for chip in 0..shape.chips() {
            links.extend(neighbour(shape, chip, dimension, true).map(|next| (chip, next, shape.links[dimension])));
        }
    }
    links.extend(shape.express.iter().map(|&[one, other]| (one, other, 1)));
    links
}

/// The host of a chip: the grid of hosts divides that of chips.
fn host(mesh: &Mesh, chip: u32) -> String {
    let shape = &mesh.shape;
    let number = (0..shape.dims.len()).fold(0, |number, dimension| {
        let (chips, hosts) = (shape.dims[dimension], shape.hosts[dimension]);
        number * hosts + coordinate(shape, chip, dimension) / (chips / hosts)
    });
    format!("mesh{}-host{number}", mesh.id)
}
