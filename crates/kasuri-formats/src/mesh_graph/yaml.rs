//! The older form of the descriptors: `ChipSpec`, `Board`, `Mesh`, `Graph`.

use super::{CHIPS, Chip, MAX_CHIPS, MAX_LINKS, Mesh, MeshGraph, Policy, Shape};
use crate::error::FormatError;
use crate::names::nearest;
use crate::text::{short, text_of};
use crate::yaml::{self, Content, Value};

/// Reads a descriptor in YAML. A mesh has as many chips in a dimension as its boards have there together.
///
/// # Errors
/// No YAML, an unknown key, a number outside its range, an unknown board, or a graph of meshes: of that the newer form says more.
pub fn parse_yaml(name: &str, bytes: &[u8]) -> Result<MeshGraph, FormatError> {
    let whole = yaml::load(name, indented(text_of(name, bytes)?).as_bytes())?;
    let reader = Reader { name };
    let file = reader.map(&whole, "the file", &["ChipSpec", "Board", "Mesh", "Graph"])?;
    let key = |key: &str| file.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    let needed = |name: &'static str| key(name).ok_or_else(|| reader.error(&whole, format!("has no `{name}`")));
    let (chip, links) = reader.chip(needed("ChipSpec")?)?;
    let boards: Vec<Board<'_>> =
        reader.list(needed("Board")?, "Board")?.iter().map(|board| reader.board(board)).collect::<Result<_, _>>()?;
    if let Some(graph) = key("Graph").filter(|graph| reader.list(graph, "Graph").is_ok_and(|edges| !edges.is_empty())) {
        return Err(reader.error(graph, "joins meshes; of these the descriptor in text of Protocol Buffers (.textproto) is read"));
    }
    let mut meshes: Vec<Mesh> = Vec::new();
    for value in reader.list(needed("Mesh")?, "Mesh")? {
        let mesh = reader.mesh(value, &boards, chip, links)?;
        if meshes.iter().any(|other| other.id == mesh.id) {
            return Err(reader.error(value, format!("has a second mesh of id {}", mesh.id)));
        }
        meshes.push(mesh);
    }
    let chips: u64 = meshes.iter().map(|mesh| u64::from(mesh.shape.chips())).sum();
    if meshes.is_empty() || chips > u64::from(MAX_CHIPS) {
        return Err(reader.error(&whole, format!("has {chips} chips; 1 to {MAX_CHIPS} are read")));
    }
    Ok(MeshGraph { name: name.to_owned(), meshes, connections: Vec::new() })
}

/// The text with a blank before each line that begins within brackets. Their programs take lists that end in the first column, which YAML
/// does not allow.
fn indented(text: &str) -> String {
    let mut depth = 0i64;
    let line = |line: &str| {
        let indent = if depth > 0 { " " } else { "" };
        let says = line.split('#').next().unwrap_or_default();
        depth += says.chars().map(|sign| i64::from("[{".contains(sign)) - i64::from("]}".contains(sign))).sum::<i64>();
        format!("{indent}{line}\n")
    };
    text.lines().map(line).collect()
}

/// A board: a grid of chips.
struct Board<'a> {
    name: &'a str,
    dims: [u32; 2],
    is_torus: bool,
}

struct Reader<'a> {
    name: &'a str,
}

impl Reader<'_> {
    fn error(&self, value: &Value, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, value.line.max(1), problem)
    }

    fn map<'v>(&self, value: &'v Value, what: &str, known: &[&'static str]) -> Result<&'v [(String, Value)], FormatError> {
        let Content::Map(map) = &value.content else { return Err(self.error(value, format!("{what} must have keys"))) };
        match map.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(map),
            Some((key, inner)) => {
                let meant = nearest(key, known).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
                Err(self.error(inner, format!("unknown key `{}` of {what}{meant}; known keys: {}", short(key), known.join(", "))))
            }
        }
    }

    fn list<'v>(&self, value: &'v Value, what: &str) -> Result<&'v [Value], FormatError> {
        match &value.content {
            Content::List(list) => Ok(list),
            _ => Err(self.error(value, format!("{what} must be a list"))),
        }
    }

    fn get<'v>(&self, map: &'v [(String, Value)], of: &Value, key: &str) -> Result<&'v Value, FormatError> {
        map.iter().find(|(name, _)| name == key).map(|(_, value)| value).ok_or_else(|| self.error(of, format!("has no `{key}`")))
    }

    fn text<'v>(&self, value: &'v Value, key: &str) -> Result<&'v str, FormatError> {
        match &value.content {
            Content::Text(text) => Ok(text),
            _ => Err(self.error(value, format!("{key} must be a word"))),
        }
    }

    fn number(&self, value: &Value, key: &str, least: u32, most: u32) -> Result<u32, FormatError> {
        let text = self.text(value, key)?;
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.error(value, format!("{key} is `{}`; it must be a whole number, {least} to {most}", short(text))))
    }

    fn pair(&self, value: &Value, key: &str) -> Result<[u32; 2], FormatError> {
        match self.list(value, key)? {
            [rows, columns] => Ok([self.number(rows, key, 1, MAX_CHIPS)?, self.number(columns, key, 1, MAX_CHIPS)?]),
            other => Err(self.error(value, format!("{key} has {} numbers; it must have 2: rows, columns", other.len()))),
        }
    }

    /// The generation, and the links north and south, east and west.
    fn chip(&self, value: &Value) -> Result<(Chip, [u32; 2]), FormatError> {
        let map = self.map(value, "ChipSpec", &["arch", "ethernet_ports"])?;
        let arch = self.get(map, value, "arch")?;
        let word = self.text(arch, "arch")?;
        let chip = CHIPS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, chip)| *chip);
        let chip = chip.ok_or_else(|| self.error(arch, format!("arch is `{}`; it must be wormhole_b0 or blackhole", short(word))))?;
        let ports = self.get(map, value, "ethernet_ports")?;
        let of = self.map(ports, "ethernet_ports", &["N", "E", "S", "W", "Z"])?;
        let links = |one: &'static str, other: &'static str| {
            let [a, b] = [one, other].map(|side| self.number(self.get(of, ports, side)?, side, 1, MAX_LINKS));
            match (a?, b?) {
                (a, b) if a == b => Ok(a),
                (a, b) => Err(self.error(ports, format!("has {a} links {one} and {b} links {other}; each link has two ends"))),
            }
        };
        Ok((chip, [links("N", "S")?, links("E", "W")?]))
    }

    fn board<'v>(&self, value: &'v Value) -> Result<Board<'v>, FormatError> {
        let map = self.map(value, "a board", &["name", "type", "topology"])?;
        let kind = self.get(map, value, "type")?;
        let is_torus = match self.text(kind, "type")? {
            word if word.eq_ignore_ascii_case("mesh") => false,
            word if word.eq_ignore_ascii_case("torus_2d") => true,
            word => return Err(self.error(kind, format!("type is `{}`; it must be Mesh or TORUS_2D", short(word)))),
        };
        let name = self.text(self.get(map, value, "name")?, "name")?;
        Ok(Board { name, dims: self.pair(self.get(map, value, "topology")?, "topology")?, is_torus })
    }

    fn mesh(&self, value: &Value, boards: &[Board<'_>], chip: Chip, links: [u32; 2]) -> Result<Mesh, FormatError> {
        let map = self.map(value, "a mesh", &["id", "board", "topology", "device_topology", "host_topology", "host_ranks"])?;
        let wanted = self.get(map, value, "board")?;
        let name = self.text(wanted, "board")?;
        let board = boards.iter().find(|board| board.name == name);
        let board = board.ok_or_else(|| self.error(wanted, format!("no board is described as `{}`", short(name))))?;
        let count = match map.iter().find(|(key, _)| key == "topology") {
            Some((_, value)) => self.pair(value, "topology")?,
            None => self.pair(self.get(map, value, "device_topology")?, "device_topology")?,
        };
        let dims: Vec<u32> = board.dims.iter().zip(count).map(|(&chips, boards)| chips.saturating_mul(boards)).collect();
        if u64::from(dims[0]) * u64::from(dims[1]) > u64::from(MAX_CHIPS) {
            return Err(self.error(value, format!("has {} x {} chips; at most {MAX_CHIPS} are read", dims[0], dims[1])));
        }
        Ok(Mesh {
            id: self.number(self.get(map, value, "id")?, "id", 0, u32::MAX)?,
            shape: Shape {
                chip,
                rings: vec![board.is_torus; 2],
                links: links.to_vec(),
                policy: Policy::Relaxed,
                hosts: self.hosts(map, &dims)?,
                express: Vec::new(),
                line: value.line.max(1),
                dims,
            },
        })
    }

    /// The grid of host ranks, where it divides the chips.
    fn hosts(&self, map: &[(String, Value)], dims: &[u32]) -> Result<Vec<u32>, FormatError> {
        let Some((_, value)) = map.iter().find(|(key, _)| key == "host_ranks") else { return Ok(vec![1; 2]) };
        let rows = self.list(value, "host_ranks")?;
        let columns = rows.first().map_or(Ok(0), |row| self.list(row, "host_ranks").map(<[Value]>::len))?;
        let hosts = [rows.len() as u32, columns as u32];
        if hosts.iter().zip(dims).any(|(&hosts, &chips)| hosts == 0 || !chips.is_multiple_of(hosts)) {
            return Err(self.error(value, format!("host_ranks of {} x {} do not divide the chips {dims:?}", hosts[0], hosts[1])));
        }
        Ok(hosts.to_vec())
    }
}
