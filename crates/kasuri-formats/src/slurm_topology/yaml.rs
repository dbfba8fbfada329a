//! `topology.yaml`: a list of topologies. The requested one is read, else the cluster's default, else the first.

use super::{Block, SlurmTopology, Switch};
use crate::error::FormatError;
use crate::hostlist;
use crate::yaml::{self, Content, Value};
use std::fmt::Write;

/// A topology of a file that may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromYaml {
    /// The chosen topology.
    pub topology: SlurmTopology,
    /// Its name.
    pub name: String,
    /// The names of the others.
    pub others: Vec<String>,
}

/// Reads a `topology.yaml`. `name` is the file's name for messages, `wanted` the name of the topology: without it the cluster's default, else
/// the first, is taken.
///
/// # Errors
/// No YAML, no topology of this name; of the one that is taken an unknown key, that it is flat, or what [`super::parse_conf`] refuses.
pub fn parse_yaml(name: &str, bytes: &[u8], wanted: Option<&str>) -> Result<FromYaml, FormatError> {
    let reader = Reader { name };
    let whole = yaml::load(name, bytes)?;
    let topologies = reader.list(&whole, "the file")?;
    let names = topologies.iter().map(|value| reader.word_of(value, "topology").unwrap_or_default());
    let names: Vec<&str> = names.collect();
    let is_default = |value: &Value| reader.word_of(value, "cluster_default").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let chosen = match wanted {
        Some(wanted) => names.iter().position(|name| *name == wanted),
        None => topologies.iter().position(is_default).or((!topologies.is_empty()).then_some(0)),
    };
    let missing = || match wanted {
        Some(wanted) => FormatError::new(name, 1, format!("has no topology `{wanted}`; it has {}", names.join(", "))),
        None => FormatError::new(name, 1, "has no topology"),
    };
    let chosen = chosen.ok_or_else(missing)?;
    let topology = reader.topology(&topologies[chosen])?;
    topology.check(name)?;
    let others = names.iter().zip(0..).filter(|(_, place)| *place != chosen).map(|(name, _)| (*name).to_owned()).collect();
    Ok(FromYaml { topology, name: names[chosen].to_owned(), others })
}

/// Reads values with their names in messages.
struct Reader<'a> {
    name: &'a str,
}

impl Reader<'_> {
    fn error(&self, value: &Value, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, value.line.max(1), problem)
    }

    fn list<'v>(&self, value: &'v Value, what: &str) -> Result<&'v [Value], FormatError> {
        match &value.content {
            Content::List(list) => Ok(list),
            _ => Err(self.error(value, format!("{what} must be a list: lines that begin with `-`"))),
        }
    }

    fn map<'v>(&self, value: &'v Value, what: &str) -> Result<&'v [(String, Value)], FormatError> {
        match &value.content {
            Content::Map(map) => Ok(map),
            _ => Err(self.error(value, format!("{what} must have keys"))),
        }
    }

    fn text<'v>(&self, value: &'v Value, key: &str) -> Result<&'v str, FormatError> {
        match &value.content {
            Content::Text(text) => Ok(text),
            _ => Err(self.error(value, format!("`{key}` must be a word"))),
        }
    }

    /// The word of a key, if the value has such a key and it is one.
    fn word_of<'v>(&self, value: &'v Value, key: &str) -> Option<&'v str> {
        let map = self.map(value, "a topology").ok()?;
        let (_, value) = map.iter().find(|(name, _)| name == key)?;
        self.text(value, key).ok()
    }

    fn hosts(&self, value: &Value, key: &str) -> Result<Vec<String>, FormatError> {
        hostlist::parse(self.text(value, key)?).map_err(|problem| self.error(value, problem))
    }

    fn unknown(&self, value: &Value, key: &str, known: &str) -> FormatError {
        self.error(value, format!("`{key}` is not known here; known are {known}"))
    }

    fn topology(&self, value: &Value) -> Result<SlurmTopology, FormatError> {
        let mut found = None;
        for (key, inner) in self.map(value, "a topology")? {
            match key.as_str() {
                "topology" | "cluster_default" => {}
                "tree" => found = Some(self.tree(inner)?),
                "block" => found = Some(self.blocks(inner)?),
                "flat" => return Err(self.error(inner, "is flat: it has no switches")),
                _ => return Err(self.unknown(inner, key, "topology, cluster_default, tree, block, flat")),
            }
        }
        found.ok_or_else(|| self.error(value, "has no `tree`, `block` or `flat`"))
    }

    fn tree(&self, value: &Value) -> Result<SlurmTopology, FormatError> {
        let mut found = SlurmTopology::default();
        for (key, inner) in self.map(value, "a tree")? {
            if key != "switches" {
                return Err(self.unknown(inner, key, "switches"));
            }
            for entry in self.list(inner, "`switches`")? {
                let mut switch = Switch { line: entry.line.max(1), ..Switch::default() };
                for (key, value) in self.map(entry, "a switch")? {
                    match key.as_str() {
                        "switch" => self.text(value, key)?.clone_into(&mut switch.name),
                        "children" => switch.switches = self.hosts(value, key)?,
                        "nodes" => switch.nodes = self.hosts(value, key)?,
                        _ => return Err(self.unknown(value, key, "switch, children, nodes")),
                    }
                }
                found.switches.push(switch);
            }
        }
        Ok(found)
    }

    fn blocks(&self, value: &Value) -> Result<SlurmTopology, FormatError> {
        let mut found = SlurmTopology::default();
        for (key, inner) in self.map(value, "`block`")? {
            match key.as_str() {
                "block_sizes" => {
                    for size in self.list(inner, "`block_sizes`")? {
                        let text = self.text(size, "block_sizes")?;
                        let number =
                            text.parse().map_err(|_| self.error(size, format!("invalid block size `{text}`; expected e.g. 18")))?;
                        found.block_sizes.push(number);
                    }
                }
                "blocks" => {
                    for entry in self.list(inner, "`blocks`")? {
                        let mut block = Block { line: entry.line.max(1), ..Block::default() };
                        for (key, value) in self.map(entry, "a block")? {
                            match key.as_str() {
                                "block" => self.text(value, key)?.clone_into(&mut block.name),
                                "nodes" => block.nodes = self.hosts(value, key)?,
                                _ => return Err(self.unknown(value, key, "block, nodes")),
                            }
                        }
                        found.blocks.push(block);
                    }
                }
                _ => return Err(self.unknown(inner, key, "block_sizes, blocks")),
            }
        }
        Ok(found)
    }
}

/// Writes a `topology.yaml` with this topology as the cluster's default.
pub fn write_yaml(topology: &SlurmTopology, name: &str) -> String {
    let quoted = |text: &str| serde_json::to_string(text).expect("text is always JSON");
    let mut text = format!("---\n- topology: {name}\n  cluster_default: true\n");
    if !topology.switches.is_empty() {
        text += "  tree:\n    switches:\n";
    }
    for switch in &topology.switches {
        let _ = writeln!(text, "    - switch: {}", quoted(&switch.name));
        for (key, names) in [("children", &switch.switches), ("nodes", &switch.nodes)] {
            if !names.is_empty() {
                let _ = writeln!(text, "      {key}: {}", quoted(&hostlist::write(names)));
            }
        }
    }
    if !topology.blocks.is_empty() {
        text += "  block:\n";
        if !topology.block_sizes.is_empty() {
            let _ = writeln!(text, "    block_sizes: {:?}", topology.block_sizes);
        }
        text += "    blocks:\n";
    }
    for block in &topology.blocks {
        let _ = writeln!(text, "    - block: {}\n      nodes: {}", quoted(&block.name), quoted(&hostlist::write(&block.nodes)));
    }
    text
}
