//! Mesh graph descriptors of Tenstorrent machines: grids of chips, and graphs of these.
//!
//! Source: tenstorrent/tt-metal, `tt_metal/fabric/protobuf/mesh_graph_descriptor.proto` and the descriptors of
//! `tt_metal/fabric/mesh_graph_descriptors`: text of Protocol Buffers, and an older form in YAML ([`parse_yaml`]).

mod yaml;

pub use yaml::parse_yaml;

use crate::error::FormatError;
use crate::names::nearest;
use crate::protobuf_text::{self, Field, Message, Value};
use crate::text::short;

/// What a descriptor builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshGraph {
    /// The file's name.
    pub name: String,
    /// The grids of chips, by number.
    pub meshes: Vec<Mesh>,
    /// What joins them.
    pub connections: Vec<Connection>,
}

/// A grid of chips, numbered with the last dimension fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Its `mesh_id`.
    pub id: u32,
    /// What is the same of all grids of its kind.
    pub shape: Shape,
}

/// A kind of grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which chips.
    pub chip: Chip,
    /// Chips in each dimension.
    pub dims: Vec<u32>,
    /// Is a dimension closed to a ring? One of two chips is a line all the same.
    pub rings: Vec<bool>,
    /// Parallel links between neighbours, by dimension.
    pub links: Vec<u32>,
    /// Must all links be there?
    pub policy: Policy,
    /// Hosts in each dimension.
    pub hosts: Vec<u32>,
    /// Links between other chips than neighbours.
    pub express: Vec<[u32; 2]>,
    /// Where it is described.
    pub line: usize,
}

impl Shape {
    /// How many chips it has.
    pub fn chips(&self) -> u32 {
        self.dims.iter().product()
    }
}

/// A generation of chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chip {
    /// `WORMHOLE_B0`: links of 100 Gbit/s.
    Wormhole,
    /// `BLACKHOLE`: links of 400 Gbit/s.
    Blackhole,
}

/// Names in descriptors, in capitals.
const CHIPS: [(&str, Chip); 2] = [("WORMHOLE_B0", Chip::Wormhole), ("BLACKHOLE", Chip::Blackhole)];

impl Chip {
    /// The nominal rate of one of its Ethernet links, Gbit/s.
    pub fn gbit_per_second(self) -> f64 {
        match self {
            Self::Wormhole => 100.0,
            Self::Blackhole => 400.0,
        }
    }
}

/// Whether fewer links than said may be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `STRICT`: all.
    #[default]
    Strict,
    /// `RELAXED`: fewer will do.
    Relaxed,
}

/// Links between two meshes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The positions of the meshes.
    pub meshes: [usize; 2],
    /// The chips, where they are said.
    pub chips: [Option<u32>; 2],
    /// How many links.
    pub links: u32,
    /// Must all be there?
    pub policy: Policy,
    /// The line.
    pub line: usize,
}

/// Chips of all meshes together, at most.
pub const MAX_CHIPS: u32 = 1 << 14;

/// Meshes of a graph, at most.
const MAX_MESHES: usize = 256;

/// Parallel links between two chips, or links of a connection, at most.
const MAX_LINKS: u32 = 128;

/// Dimensions of a grid, at most.
const MAX_DIMENSIONS: usize = 4;

/// Reads a descriptor in text of Protocol Buffers.
///
/// # Errors
/// An unknown field or word, a number outside its range, a name that nothing has, a second mesh of one number; with the line.
pub fn parse(name: &str, bytes: &[u8]) -> Result<MeshGraph, FormatError> {
    let message = protobuf_text::parse(name, bytes)?;
    let file = Block { name, line: 1, what: "a mesh graph descriptor", message: &message };
    file.known(&["mesh_descriptors", "graph_descriptors", "switch_descriptors", "pinnings", "top_level_instance"])?;
    if let Some(switch) = file.all("switch_descriptors").next() {
        return Err(file.error(switch.line, "describes a switch between meshes, which is not read here"));
    }
    let mut shapes: Vec<(&str, Shape)> = Vec::new();
    for block in file.blocks("mesh_descriptors")? {
        let shape = (block.word("name")?, block.shape()?);
        if shapes.iter().any(|(name, _)| *name == shape.0) {
            return Err(block.error(block.line, format!("describes mesh `{}` again", short(shape.0))));
        }
        shapes.push(shape);
    }
    let graphs = file.blocks("graph_descriptors")?;
    let top = file.block("top_level_instance")?.ok_or_else(|| file.error(1, "has no `top_level_instance`, which says what is built"))?;
    let mut found = MeshGraph { name: name.to_owned(), meshes: Vec::new(), connections: Vec::new() };
    match top.block("graph")? {
        None => found.meshes.push(top.mesh(&shapes)?.mesh),
        Some(reference) => {
            let wanted = reference.word("graph_descriptor")?;
            let names = graphs.iter().map(|graph| graph.word("name")).collect::<Result<Vec<_>, _>>()?;
            let place = names.iter().position(|name| *name == wanted);
            let graph = place.ok_or_else(|| reference.error(reference.line, nobody("graph", wanted, &names)))?;
            found.read_graph(&graphs[graph], &shapes)?;
        }
    }
    found.check(&top)?;
    Ok(found)
}

impl MeshGraph {
    fn read_graph(&mut self, graph: &Block<'_>, shapes: &[(&str, Shape)]) -> Result<(), FormatError> {
        graph.known(&["name", "type", "instances", "channels", "graph_topology", "connections"])?;
        for instance in graph.blocks("instances")? {
            let mesh = instance.mesh(shapes)?.mesh;
            if self.meshes.iter().any(|other| other.id == mesh.id) {
                return Err(instance.error(instance.line, format!("has a second mesh of mesh_id {}", mesh.id)));
            }
            if self.meshes.len() >= MAX_MESHES {
                return Err(instance.error(instance.line, format!("is one mesh too many: at most {MAX_MESHES} are read")));
            }
            self.meshes.push(mesh);
        }
        let pairs = self.pairs_of_layout(graph)?;
        if let Some(&(_, layout)) = pairs.first() {
            let (links, policy) = layout;
            let line = graph.line;
            let whole = |(meshes, _): ([usize; 2], (u32, Policy))| Connection { meshes, chips: [None; 2], links, policy, line };
            self.connections.extend(pairs.into_iter().map(whole));
        }
        for block in graph.blocks("connections")? {
            block.known(&["nodes", "channels", "directional", "assign_z_direction", "routing_direction"])?;
            let ends = block.blocks("nodes")?;
            let [one, other] = &ends[..] else {
                return Err(block.error(block.line, format!("joins {} nodes; a connection joins two", ends.len())));
            };
            let ends = [one.mesh(shapes)?, other.mesh(shapes)?];
            let mut meshes = [0; 2];
            for (place, end) in meshes.iter_mut().zip(&ends) {
                let found = self.meshes.iter().position(|mesh| mesh.id == end.mesh.id);
                *place = found.ok_or_else(|| block.error(block.line, format!("joins unknown mesh instance {}", end.mesh.id)))?;
            }
            let (links, policy) = block.channels()?;
            self.connections.push(Connection { meshes, chips: ends.map(|end| end.chip), links, policy, line: block.line });
        }
        Ok(())
    }

    /// What `graph_topology` joins, with links and policy: all pairs, or a ring.
    fn pairs_of_layout(&self, graph: &Block<'_>) -> Result<Vec<([usize; 2], (u32, Policy))>, FormatError> {
        let Some(field) = graph.all("graph_topology").next() else { return Ok(Vec::new()) };
        let inner = match &field.value {
            Value::Message(message) => Some(Block { name: graph.name, line: field.line, what: "graph_topology", message }),
            Value::Word(_) => None,
        };
        let (layout, channels) = match (&inner, &field.value) {
            (Some(inner), _) => (inner.word("layout_type")?, inner.channels()?),
            (None, Value::Word(word)) => (word.as_str(), graph.channels()?),
            (None, Value::Message(_)) => return Ok(Vec::new()),
        };
        let count = self.meshes.len();
        let pairs: Vec<[usize; 2]> = match layout {
            "ALL_TO_ALL" => (0..count).flat_map(|one| (one + 1..count).map(move |other| [one, other])).collect(),
            "RING" if count > 2 => (0..count).map(|one| [one, (one + 1) % count]).collect(),
            "RING" => (1..count).map(|one| [one - 1, one]).collect(),
            _ => {
                let problem = format!("graph_topology is `{}`; it must be ALL_TO_ALL or RING", short(layout));
                return Err(graph.error(field.line, problem));
            }
        };
        Ok(pairs.into_iter().map(|pair| (pair, channels)).collect())
    }

    fn check(&self, top: &Block<'_>) -> Result<(), FormatError> {
        let chips: u64 = self.meshes.iter().map(|mesh| u64::from(mesh.shape.chips())).sum();
        if self.meshes.is_empty() || chips > u64::from(MAX_CHIPS) {
            return Err(top.error(top.line, format!("has {chips} chips; 1 to {MAX_CHIPS} are read")));
        }
        for connection in &self.connections {
            let [one, other] = connection.meshes.map(|mesh| &self.meshes[mesh]);
            for (mesh, chip) in [one, other].into_iter().zip(connection.chips) {
                if let Some(chip) = chip.filter(|&chip| chip >= mesh.shape.chips()) {
                    let problem = format!("names chip {chip} of mesh {}, which has {} chips", mesh.id, mesh.shape.chips());
                    return Err(top.error(connection.line, problem));
                }
            }
            if one.id == other.id {
                return Err(top.error(connection.line, format!("joins mesh {} to itself", one.id)));
            }
        }
        Ok(())
    }
}

/// What is said where a name is nobody's.
fn nobody(kind: &str, wanted: &str, known: &[&str]) -> String {
    let meant = nearest(wanted, known).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
    format!("no {kind} is described as `{}`{meant}", short(wanted))
}

/// A mesh that is referred to, and its chip if that is said.
struct End {
    mesh: Mesh,
    chip: Option<u32>,
}

/// A message with its place.
struct Block<'a> {
    name: &'a str,
    line: usize,
    /// What it is, for messages.
    what: &'a str,
    message: &'a Message,
}

impl<'a> Block<'a> {
    fn error(&self, line: usize, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, line, problem)
    }

    /// Refuses fields of other names.
    fn known(&self, names: &[&'static str]) -> Result<(), FormatError> {
        let Some(other) = self.message.fields.iter().find(|field| !names.contains(&field.name.as_str())) else { return Ok(()) };
        let meant = nearest(&other.name, names).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let problem = format!("unknown field `{}` of {}{meant}; known fields: {}", short(&other.name), self.what, names.join(", "));
        Err(self.error(other.line, problem))
    }

    fn all(&self, name: &'static str) -> impl Iterator<Item = &'a Field> {
        self.message.fields.iter().filter(move |field| field.name == name)
    }

    /// The last field of a name, as Protocol Buffers have it.
    fn last(&self, name: &'static str) -> Option<&'a Field> {
        self.all(name).last()
    }

    fn blocks(&self, name: &'static str) -> Result<Vec<Block<'a>>, FormatError> {
        let block = |field: &'a Field| match &field.value {
            Value::Message(message) => Ok(Block { name: self.name, line: field.line, what: name, message }),
            Value::Word(word) => Err(self.error(field.line, format!("{name} is `{}`; it must be fields in braces", short(word)))),
        };
        self.all(name).map(block).collect()
    }

    fn block(&self, name: &'static str) -> Result<Option<Block<'a>>, FormatError> {
        Ok(self.blocks(name)?.pop())
    }

    fn needed(&self, name: &'static str) -> Result<Block<'a>, FormatError> {
        self.block(name)?.ok_or_else(|| self.error(self.line, format!("{} has no `{name}`", self.what)))
    }

    fn word_of(&self, field: &'a Field) -> Result<&'a str, FormatError> {
        match &field.value {
            Value::Word(word) => Ok(word),
            Value::Message(_) => Err(self.error(field.line, format!("{} must be a word or a number", field.name))),
        }
    }

    fn word(&self, name: &'static str) -> Result<&'a str, FormatError> {
        let field = self.last(name).ok_or_else(|| self.error(self.line, format!("{} has no `{name}`", self.what)))?;
        self.word_of(field)
    }

    fn number_of(&self, field: &'a Field, least: u32, most: u32) -> Result<u32, FormatError> {
        let word = self.word_of(field)?;
        let number = word.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            self.error(field.line, format!("{} is `{}`; it must be a whole number, {least} to {most}", field.name, short(word)))
        })
    }

    fn optional_number(&self, name: &'static str, most: u32) -> Result<Option<u32>, FormatError> {
        self.last(name).map(|field| self.number_of(field, 0, most)).transpose()
    }

    fn numbers(&self, name: &'static str, most: u32) -> Result<Vec<u32>, FormatError> {
        self.all(name).map(|field| self.number_of(field, 1, most)).collect()
    }

    /// One of several words.
    fn choice<T: Copy>(&self, field: &'a Field, choices: &[(&'static str, T)]) -> Result<T, FormatError> {
        let word = self.word_of(field)?;
        choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.error(field.line, format!("{} is `{}`; it must be {}", field.name, short(word), names.join(" or ")))
        })
    }

    /// Links and policy of `channels`.
    fn channels(&self) -> Result<(u32, Policy), FormatError> {
        let block = self.needed("channels")?;
        block.known(&["count", "policy"])?;
        let count = block.last("count").ok_or_else(|| block.error(block.line, "channels has no `count`"))?;
        let policies = [("STRICT", Policy::Strict), ("RELAXED", Policy::Relaxed)];
        let policy = block.last("policy").map(|field| block.choice(field, &policies)).transpose()?;
        Ok((block.number_of(count, 1, MAX_LINKS)?, policy.unwrap_or_default()))
    }

    fn shape(&self) -> Result<Shape, FormatError> {
        self.known(&["name", "arch", "device_topology", "host_topology", "channels", "express_connections"])?;
        let arch = self.last("arch").ok_or_else(|| self.error(self.line, "mesh_descriptors has no `arch`"))?;
        let devices = self.needed("device_topology")?;
        devices.known(&["dims", "dim_types", "types"])?;
        let dims = devices.numbers("dims", MAX_CHIPS)?;
        let count = dims.iter().try_fold(1u32, |product, &dim| product.checked_mul(dim).filter(|&product| product <= MAX_CHIPS));
        if dims.is_empty() || dims.len() > MAX_DIMENSIONS || count.is_none() {
            let problem = format!("dims is {dims:?}; it must be 1 to {MAX_DIMENSIONS} numbers, at most {MAX_CHIPS} chips in all");
            return Err(devices.error(devices.line, problem));
        }
        let types = devices.all("dim_types").chain(devices.all("types"));
        let mut rings = types.map(|field| devices.choice(field, &[("LINE", false), ("RING", true)])).collect::<Result<Vec<_>, _>>()?;
        if rings.len() > dims.len() {
            return Err(devices.error(devices.line, format!("has {} dim_types for {} dims", rings.len(), dims.len())));
        }
        rings.resize(dims.len(), false);
        let hosts = match self.block("host_topology")? {
            Some(hosts) => hosts.numbers("dims", MAX_CHIPS)?,
            None => vec![1; dims.len()],
        };
        if hosts.len() != dims.len() || dims.iter().zip(&hosts).any(|(chips, hosts)| !chips.is_multiple_of(*hosts)) {
            let problem = format!("host_topology {hosts:?} does not divide device_topology {dims:?}");
            return Err(self.error(self.line, problem));
        }
        let (links, policy) = self.channels()?;
        let most = count.unwrap_or(1) - 1;
        let express = |block: Block<'a>| {
            let [one, other] = [block.optional_number("src", most)?, block.optional_number("dst", most)?];
            match (one.unwrap_or(0), other.unwrap_or(0)) {
                (one, other) if one == other => Err(block.error(block.line, format!("joins chip {one} to itself"))),
                (one, other) => Ok([one, other]),
            }
        };
        Ok(Shape {
            chip: self.choice(arch, &CHIPS)?,
            links: vec![links; dims.len()],
            policy,
            rings,
            hosts,
            express: self.blocks("express_connections")?.into_iter().map(express).collect::<Result<_, _>>()?,
            line: self.line,
            dims,
        })
    }

    /// The mesh that a reference names.
    fn mesh(&self, shapes: &[(&str, Shape)]) -> Result<End, FormatError> {
        if self.block("graph")?.is_some() {
            return Err(self.error(self.line, "names a graph within a graph; graphs of meshes are read here, no graphs of graphs"));
        }
        let block = self.needed("mesh")?;
        block.known(&["mesh_descriptor", "mesh_id", "device_id"])?;
        let wanted = block.word("mesh_descriptor")?;
        let names: Vec<&str> = shapes.iter().map(|(name, _)| *name).collect();
        let found = shapes.iter().find(|(name, _)| *name == wanted);
        let (_, shape) = found.ok_or_else(|| block.error(block.line, nobody("mesh", wanted, &names)))?;
        let id = block.optional_number("mesh_id", u32::MAX)?.unwrap_or(0);
        Ok(End { mesh: Mesh { id, shape: shape.clone() }, chip: block.optional_number("device_id", MAX_CHIPS)? })
    }
}

#[cfg(test)]
mod tests;
