//! Slurm's picture of a network: `topology.conf`, and `topology.yaml` of Slurm 25.05 and later.
//!
//! ```text
//! SwitchName=leaf0 Nodes=n[00-17]            - topology: default
//! SwitchName=leaf1 Nodes=n[18-35]              cluster_default: true
//! SwitchName=spine Switches=leaf[0-1]          tree:
//!                                                switches:
//!                                                - switch: leaf0
//!                                                  nodes: n[00-17]
//! ```
//!
//! A tree has switches with nodes, or with switches, below them; a block is a set of nodes (`BlockName=b1 Nodes=n[01-18]`, `BlockSizes=18,36`).
//! Neither says how many cables there are. As for slurmctld 22.05, which warns of it, a switch may be below several others, and a node too.
//! Keys of `topology.conf` are in any case, `#` begins a comment, a backslash at the end of a line continues it. What `scontrol show topology`
//! prints is read, too: there a switch above others lists all nodes that these reach, and each block its size. Source: the manual pages
//! topology.conf(5) and topology.yaml(5) of Slurm 25.05, and what its `scontrol` prints.

mod yaml;

pub use yaml::{FromYaml, parse_yaml, write_yaml};

use crate::error::FormatError;
use crate::hostlist;
use crate::text::text_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Switches above each other, or blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmTopology {
    /// The switches, in the order of the file.
    pub switches: Vec<Switch>,
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The sizes of blocks that are planned with: the first is that of the base block.
    pub block_sizes: Vec<u32>,
}

/// A switch of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The nodes below it.
    pub nodes: Vec<String>,
    /// The switches below it.
    pub switches: Vec<String>,
    /// Its line.
    pub line: usize,
}

/// A set of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// Its line.
    pub line: usize,
}

/// The most characters of a switch's name.
const MAX_CHARACTERS: usize = 64;

/// Reads a `topology.conf`. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, an unknown key, a switch below itself, or a file with neither switches nor blocks: each names the line, and the
/// other line where there is one.
pub fn parse_conf(name: &str, bytes: &[u8]) -> Result<SlurmTopology, FormatError> {
    let mut found = SlurmTopology::default();
    let mut shown_sizes = BTreeSet::new();
    for (line, text) in logical_lines(text_of(name, bytes)?) {
        let error = |problem: String| FormatError::new(name, line, problem);
        let mut keys = keys_of(&text).map_err(error)?;
        let mut list = |key: &str| keys.remove(key).map_or(Ok(Vec::new()), |value| hostlist::parse(&value));
        let (nodes, switches) = (list("nodes").map_err(error)?, list("switches").map_err(error)?);
        if let Some(switch) = keys.remove("switchname") {
            // The level is that of scontrol.
            keys.retain(|key, _| key != "linkspeed" && key != "level");
            found.switches.push(Switch { name: switch, nodes, switches, line });
        } else if let Some(block) = keys.remove("blockname") {
            shown_sizes.extend(shown_size(&mut keys).map_err(error)?);
            found.blocks.push(Block { name: block, nodes, line });
        } else if keys.remove("aggregatedblock").is_some() {
            // Blocks that scontrol shows together.
            shown_sizes.extend(shown_size(&mut keys).map_err(error)?);
        } else if let Some(sizes) = keys.remove("blocksizes") {
            let wrong = || error(format!("invalid BlockSizes=`{sizes}`; expected numbers such as 18,36"));
            found.block_sizes = sizes.split(',').map(|size| size.trim().parse().ok()).collect::<Option<_>>().ok_or_else(wrong)?;
        } else {
            return Err(error("has neither SwitchName=, nor BlockName=, nor BlockSizes=".to_owned()));
        }
        if let Some(key) = keys.keys().next() {
            return Err(error(format!("`{key}` is not known here; a switch has Nodes= or Switches= (and LinkSpeed=), a block Nodes=")));
        }
    }
    if found.block_sizes.is_empty() {
        found.block_sizes = shown_sizes.into_iter().collect();
    }
    found.check(name)?;
    found.keep_lowest_places();
    Ok(found)
}

/// The size of a block, which scontrol shows with its nodes; removes its number, too.
fn shown_size(keys: &mut BTreeMap<String, String>) -> Result<Option<u32>, String> {
    keys.remove("blockindex");
    let Some(size) = keys.remove("blocksize") else { return Ok(None) };
    size.parse().map(Some).map_err(|_| format!("invalid BlockSize=`{size}`; expected a number, such as 18"))
}

/// Lines without their comments, those that a backslash continues put together.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = None;
    for (line, number) in text.lines().zip(1..) {
        let text = line.split('#').next().unwrap_or_default().trim_end();
        let (begin, mut whole) = open.take().unwrap_or((number, String::new()));
        match text.strip_suffix('\\') {
            Some(text) => {
                whole += text;
                open = Some((begin, whole + " "));
            }
            None => lines.push((begin, whole + text)),
        }
    }
    lines.extend(open);
    lines.retain(|(_, text)| !text.trim().is_empty());
    lines
}

/// `Key=value` pairs, keys in small letters.
fn keys_of(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut keys = BTreeMap::new();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("invalid word `{word}`; expected Key=value"))?;
        if keys.insert(key.to_ascii_lowercase(), value.to_owned()).is_some() {
            return Err(format!("duplicate key `{key}`"));
        }
    }
    Ok(keys)
}

impl SlurmTopology {
    /// Refuses what is neither a tree nor blocks.
    fn check(&self, name: &str) -> Result<(), FormatError> {
        if self.switches.is_empty() == self.blocks.is_empty() {
            let problem = if self.switches.is_empty() {
                "has neither switches nor blocks"
            } else {
                "has switches and blocks; it is a tree or blocks"
            };
            return Err(FormatError::new(name, 1, problem));
        }
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        let named =
            self.switches.iter().map(|switch| (&switch.name, switch.line)).chain(self.blocks.iter().map(|block| (&block.name, block.line)));
        for (each, line) in named {
            if each.is_empty() || each.len() > MAX_CHARACTERS {
                return Err(FormatError::new(name, line, format!("invalid name `{each}`; expected 1 to {MAX_CHARACTERS} characters")));
            }
            if let Some(first) = lines.insert(each, line) {
                return Err(FormatError::new(name, line, format!("describes `{each}` again; line {first} describes it, too")));
            }
        }
        self.check_children(name, &lines)?;
        self.check_sizes(name)
    }

    /// A node is in one block, a switch has something below it, and no switch is below itself.
    fn check_children(&self, name: &str, lines: &BTreeMap<&str, usize>) -> Result<(), FormatError> {
        let mut block_of: BTreeMap<&str, usize> = BTreeMap::new();
        for block in &self.blocks {
            for node in &block.nodes {
                if let Some(first) = block_of.insert(node, block.line) {
                    return Err(FormatError::new(name, block.line, format!("has node `{node}`, which line {first} has, too")));
                }
            }
        }
        for switch in &self.switches {
            if switch.nodes.is_empty() && switch.switches.is_empty() {
                return Err(FormatError::new(name, switch.line, format!("`{}` has neither nodes nor switches below it", switch.name)));
            }
            if let Some(child) = switch.switches.iter().find(|child| !lines.contains_key(child.as_str())) {
                return Err(FormatError::new(name, switch.line, format!("has switch `{child}` below it, which no line describes")));
            }
        }
        match self.upwards() {
            Ok(_) => Ok(()),
            Err(switch) => Err(FormatError::new(name, switch.line, format!("`{}` is below itself", switch.name))),
        }
    }

    /// The places of the switches in the list, each after all that are below it.
    ///
    /// # Errors
    /// A switch below itself.
    fn upwards(&self) -> Result<Vec<usize>, &Switch> {
        let place: BTreeMap<&str, usize> = self.switches.iter().zip(0..).map(|(switch, place)| (switch.name.as_str(), place)).collect();
        let mut parents = vec![Vec::new(); self.switches.len()];
        let mut waits_for = vec![0usize; self.switches.len()];
        for (above, switch) in self.switches.iter().enumerate() {
            for &below in switch.switches.iter().filter_map(|child| place.get(child.as_str())) {
                parents[below].push(above);
                waits_for[above] += 1;
            }
        }
        let mut order: Vec<usize> = (0..self.switches.len()).filter(|&switch| waits_for[switch] == 0).collect();
        let mut next = 0;
        while let Some(&below) = order.get(next) {
            next += 1;
            for &above in &parents[below] {
                waits_for[above] -= 1;
                if waits_for[above] == 0 {
                    order.push(above);
                }
            }
        }
        match waits_for.iter().position(|&count| count > 0) {
            Some(within) => Err(&self.switches[within]),
            None => Ok(order),
        }
    }

    /// Removes from each switch the nodes of the switches below it, which scontrol shows as well.
    fn keep_lowest_places(&mut self) {
        if !self.switches.iter().any(|switch| !switch.nodes.is_empty() && !switch.switches.is_empty()) {
            return;
        }
        let mut parents: BTreeMap<String, usize> = BTreeMap::new();
        self.switches.iter().flat_map(|switch| &switch.switches).for_each(|child| *parents.entry(child.clone()).or_default() += 1);
        let mut reached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for place in self.upwards().unwrap_or_default() {
            let switch = &mut self.switches[place];
            let mut nodes = BTreeSet::new();
            for child in &switch.switches {
                let left = parents.entry(child.clone()).or_default();
                *left = left.saturating_sub(1);
                // The last parent takes the set, so that a chain of switches holds it once.
                let below = if *left == 0 { reached.remove(child) } else { reached.get(child).cloned() };
                let (small, large) = (nodes, below.unwrap_or_default());
                let (small, mut large) = if small.len() > large.len() { (large, small) } else { (small, large) };
                large.extend(small);
                nodes = large;
            }
            switch.nodes.retain(|node| !nodes.contains(node));
            nodes.extend(switch.nodes.iter().cloned());
            reached.insert(switch.name.clone(), nodes);
        }
    }

    /// Each size is the first times a power of two, and grows.
    fn check_sizes(&self, name: &str) -> Result<(), FormatError> {
        let Some(&base) = self.block_sizes.first() else { return Ok(()) };
        let is_right = |size: u32| base > 0 && size.is_multiple_of(base) && (size / base).is_power_of_two();
        let grows = self.block_sizes.windows(2).all(|pair| pair[0] < pair[1]);
        if !grows || !self.block_sizes.iter().all(|&size| is_right(size)) {
            let problem =
                format!("block sizes {:?}: each is the first times a power of two, and greater than the one before", self.block_sizes);
            return Err(FormatError::new(name, 1, problem));
        }
        match self.blocks.iter().find(|block| block.nodes.len() < base as usize) {
            Some(block) => {
                let problem = format!("block `{}` has {} nodes, fewer than the base block's {base}", block.name, block.nodes.len());
                Err(FormatError::new(name, block.line, problem))
            }
            None => Ok(()),
        }
    }

    /// The edge list of a skeleton: a router for each switch or block, a terminal for each node, `trunk` links between switches. Blocks have
    /// one more router above them.
    ///
    /// # Errors
    /// A node at several switches: a terminal of an edge list has one link.
    pub fn edge_list(&self, trunk: u32) -> Result<String, String> {
        let mut switch_of: BTreeMap<&str, &str> = BTreeMap::new();
        for switch in &self.switches {
            for node in &switch.nodes {
                if let Some(first) = switch_of.insert(node, &switch.name) {
                    return Err(format!("node `{node}` is at `{first}` and at `{}`; a terminal of an edge list has one link", switch.name));
                }
            }
        }
        let quoted = |name: &str| serde_json::to_string(name).expect("text is always JSON");
        let mut text = String::new();
        let groups = self.switches.iter().map(|switch| (&switch.name, &switch.nodes));
        for (name, nodes) in groups.chain(self.blocks.iter().map(|block| (&block.name, &block.nodes))) {
            for node in nodes {
                let _ = writeln!(text, "terminal {} router {}", quoted(node), quoted(name));
            }
        }
        let below = self.switches.iter().flat_map(|switch| switch.switches.iter().map(move |child| (child.as_str(), switch.name.as_str())));
        for (child, parent) in below.chain(self.blocks.iter().map(|block| (block.name.as_str(), "between blocks"))) {
            for _ in 0..trunk {
                let _ = writeln!(text, "router {} router {}", quoted(child), quoted(parent));
            }
        }
        Ok(text)
    }

    /// Writes a `topology.conf`.
    pub fn write_conf(&self) -> String {
        let mut text = String::new();
        for switch in &self.switches {
            let _ = write!(text, "SwitchName={}", switch.name);
            for (key, names) in [("Nodes", &switch.nodes), ("Switches", &switch.switches)] {
                if !names.is_empty() {
                    let _ = write!(text, " {key}={}", hostlist::write(names));
                }
            }
            text.push('\n');
        }
        for block in &self.blocks {
            let _ = writeln!(text, "BlockName={} Nodes={}", block.name, hostlist::write(&block.nodes));
        }
        if !self.block_sizes.is_empty() {
            let sizes: Vec<String> = self.block_sizes.iter().map(u32::to_string).collect();
            let _ = writeln!(text, "BlockSizes={}", sizes.join(","));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str =
        "# racks\nSwitchName=leaf0 Nodes=n[00-02] LinkSpeed=1\nswitchname=leaf1 nodes=n03,\\\nn04\nSwitchName=spine Switches=leaf[0-1]\n";

    #[test]
    fn a_tree_is_read_and_written() {
        let tree = parse_conf("t", TREE.replace(",\\\n", ",n05\\\n").replace("n04", "").as_bytes());
        assert!(tree.is_ok(), "{tree:?}");
        let tree = parse_conf("t", TREE.replace("n03,\\\nn04", "n03,n04").as_bytes()).unwrap();
        assert_eq!(tree.switches[2].switches, ["leaf0", "leaf1"]);
        let written = "SwitchName=leaf0 Nodes=n[00-02]\nSwitchName=leaf1 Nodes=n[03-04]\nSwitchName=spine Switches=leaf[0-1]\n";
        assert_eq!(tree.write_conf(), written);
        let again = parse_yaml("y", write_yaml(&tree, "default").as_bytes(), None).unwrap().topology;
        assert_eq!(again.write_conf(), written);
        let network = crate::edge_list::parse("e", tree.edge_list(2).unwrap().as_bytes()).unwrap();
        assert_eq!((network.routers.len(), network.terminals.len(), network.edges.len()), (3, 5, 9));
    }

    #[test]
    fn blocks_are_read_and_written() {
        let text = "BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-09]\nBlockSizes=4,16\n";
        let blocks = parse_conf("b", text.as_bytes()).unwrap();
        assert_eq!((blocks.write_conf().as_str(), blocks.blocks[1].nodes.len()), (text, 5));
        assert_eq!(parse_yaml("y", write_yaml(&blocks, "default").as_bytes(), None).unwrap().topology.write_conf(), text);
    }

    #[test]
    fn what_is_no_topology_is_refused_by_its_lines() {
        for (text, expected) in [
            ("BlockName=a Nodes=n1\nBlockName=b Nodes=n1\n", "t:2: has node `n1`, which line 1 has, too"),
            ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "t:2: describes `a` again; line 1"),
            ("SwitchName=a Switches=b\n", "t:1: has switch `b` below it, which no line describes"),
            ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "is below itself"),
            ("SwitchName=a\n", "t:1: `a` has neither nodes nor switches"),
            ("SwitchName=a Nodes=n1 Color=red\n", "t:1: `color` is not known here"),
            ("SwitchName=a Nodes=n[1\n", "t:1: `n[1` does not close its bracket"),
            ("Nodes=n1\n", "t:1: has neither SwitchName="),
            ("", "t:1: has neither switches nor blocks"),
            ("BlockName=a Nodes=n[1-4]\nBlockSizes=4,12\n", "each is the first times a power of two"),
            ("BlockName=a Nodes=n[1-3]\nBlockSizes=4\n", "block `a` has 3 nodes, fewer than the base block's 4"),
            ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", "has switches and blocks"),
        ] {
            let error = parse_conf("t", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// slurmctld 22.05 loads both, and warns of nodes at several switches.
    #[test]
    fn switches_and_nodes_may_have_several_above_them() {
        let text = "SwitchName=spine1 Switches=l[1-2]\nSwitchName=spine2 Switches=l[1-2]\nSwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n";
        let found = parse_conf("t", text.as_bytes()).unwrap();
        assert_eq!(found.write_conf(), text);
        let list = crate::edge_list::parse("e", found.edge_list(1).unwrap().as_bytes()).unwrap();
        // Four nodes and a link from each of two leaves to each of two spines.
        assert_eq!((list.routers.len(), list.terminals.len(), list.edges.len()), (4, 4, 8));
        let twice = parse_conf("t", b"SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-4]\n").unwrap();
        assert!(twice.edge_list(1).unwrap_err().starts_with("node `n2` is at `a` and at `b`"));
    }

    /// What scontrol of Slurm 22.05 prints of a tree, and that of 25.05 of blocks.
    #[test]
    fn what_scontrol_shows_is_the_topology() {
        let text = "SwitchName=root Level=2 LinkSpeed=1 Nodes=n[1-6] Switches=top,l3\n\
                    SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=l[1-2]\n\
                    SwitchName=l1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=l2 Level=0 LinkSpeed=1 Nodes=n[3-4]\n\
                    SwitchName=l3 Level=0 LinkSpeed=1 Nodes=n[5-6]\n";
        let tree = parse_conf("t", text.as_bytes()).unwrap();
        assert_eq!(
            tree.write_conf(),
            "SwitchName=root Switches=top,l3\nSwitchName=top Switches=l[1-2]\nSwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n\
             SwitchName=l3 Nodes=n[5-6]\n"
        );
        let text = "BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4\nBlockName=b2 BlockIndex=1 Nodes=n[5-8] BlockSize=4\n\
                    AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n";
        let blocks = parse_conf("t", text.as_bytes()).unwrap();
        assert_eq!(blocks.write_conf(), "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n");
    }

    #[test]
    fn a_topology_of_several_is_named_or_the_default() {
        let text = "- topology: eth\n  flat: true\n- topology: ib\n  cluster_default: true\n  tree:\n    switches:\n    - switch: a\n      nodes: n1\n\
                    - topology: rack\n  block:\n    blocks:\n    - block: b\n      nodes: n2\n";
        let read = |wanted| parse_yaml("y", text.as_bytes(), wanted);
        let found = read(None).unwrap();
        assert_eq!(
            (found.name.as_str(), found.others, found.topology.switches.len()),
            ("ib", vec!["eth".to_owned(), "rack".to_owned()], 1)
        );
        assert_eq!(read(Some("rack")).unwrap().topology.blocks.len(), 1);
        assert!(read(Some("eth")).unwrap_err().to_string().contains("y:2: is flat"));
        assert_eq!(read(Some("ethernet")).unwrap_err().to_string(), "y:1: has no topology `ethernet`; it has eth, ib, rack");
    }

    #[test]
    fn yaml_that_is_no_topology_is_refused_by_its_line() {
        for (text, expected) in [
            ("topology: x\n", "y:1: "),
            ("- topology: x\n", "has no `tree`, `block` or `flat`"),
            ("- topology: x\n  flat: true\n", "is flat: it has no switches"),
            ("- topology: x\n  tree:\n    switches:\n    - switch: a\n      color: red\n", "y:5: `color` is not known here"),
            ("- topology: x\n  tree:\n    switches:\n    - switch: a\n      nodes: n[1\n", "does not close its bracket"),
            ("- topology: [x\n", "y:"),
            ("- topology: x\n  tree: &a\n    switches: *a\n", "y:"),
        ] {
            let error = parse_yaml("y", text.as_bytes(), None).unwrap_err().to_string();
            assert!(error.starts_with("y:") && error.contains(expected), "{text}: {error}");
        }
    }
}
