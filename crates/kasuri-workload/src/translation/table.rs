//! One user's table: logical node to physical nodes.

use kasuri_network::id::TerminalId;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// What a user's logical nodes are on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    entries: Vec<Entry>,
    /// The address bits above these choose among aliases.
    shift: u32,
    key: Key,
}

/// What chooses among the physical nodes of a logical node: "a suitable key, such as some bits of the address" (Sato and Tanaka, section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// Bits of the address.
    #[default]
    Address,
    /// The logical node that asks: useful where all ask for the same words.
    Requester,
}

/// What one logical node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its physical nodes: none if the entry is not valid, several for aliases.
    pub physical: Vec<TerminalId>,
    /// Is it being changed? Then accesses wait.
    pub closing: bool,
}

/// An access to a node that is not in the table: nothing is sent, the requester learns of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Fault {
    /// The table has no such line.
    #[error("logical node {0} is beyond the table")]
    Beyond(u32),
    /// The line is not valid.
    #[error("logical node {0} is not valid")]
    Invalid(u32),
}

/// Why an access is not sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Never: protection.
    Fault(Fault),
    /// Its entry is being changed; try again.
    Held,
}

/// A line of a table in its written form that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct TableError {
    /// The position of the line.
    pub line: usize,
    /// What was found and what would be right.
    pub problem: String,
}

/// One written line: a logical node, its key bits and the physical node that they choose.
pub type Line = (u32, u32, TerminalId);

impl Table {
    /// A table by logical node; an empty list is an entry that is not valid. Aliases are chosen by `(address >> shift) mod k`.
    pub fn new(physical: Vec<Vec<TerminalId>>, shift: u32) -> Self {
        let entries = physical.into_iter().map(|physical| Entry { physical, closing: false }).collect();
        Self { entries, shift, key: Key::Address }
    }

    /// The same table, whose aliases another key chooses.
    pub fn keyed_by(self, key: Key) -> Self {
        Self { key, ..self }
    }

    /// Every node under its own number: the table of the operating system.
    pub fn identity(terminals: u32) -> Self {
        Self::new((0..terminals).map(|terminal| vec![TerminalId(terminal)]).collect(), 0)
    }

    /// A table from its lines. Logical nodes that no line names are not valid; the physical nodes of one logical node have the
    /// keys 0, 1, … without a gap.
    ///
    /// # Errors
    /// A physical node that the machine does not have, a key given twice for different nodes, a key that leaves a gap.
    pub fn from_lines(lines: &[Line], shift: u32, terminals: u32) -> Result<Self, TableError> {
        let mut seen: BTreeMap<(u32, u32), (usize, TerminalId)> = BTreeMap::new();
        for (line, &(logical, key, physical)) in lines.iter().enumerate() {
            let wrong = |problem| Err(TableError { line, problem });
            if physical.0 >= terminals {
                return wrong(format!("physical node {physical}; the network has the terminals 0 to {}", terminals - 1));
            }
            if let Some((_, other)) = seen.insert((logical, key), (line, physical)) {
                return wrong(format!(
                    "logical node {logical} with key {key} is physical node {physical} here and {other} further up; \
                     a key chooses one node, so give another key or leave one of the two out"
                ));
            }
        }
        let mut physical = vec![Vec::new(); lines.iter().map(|&(logical, ..)| logical as usize + 1).max().unwrap_or(0)];
        for (&(logical, key), &(line, terminal)) in &seen {
            let aliases: &mut Vec<TerminalId> = &mut physical[logical as usize];
            if aliases.len() as u32 != key {
                let problem = format!("key {key} of logical node {logical}; its keys must be 0, 1, … and {} is missing", aliases.len());
                return Err(TableError { line, problem });
            }
            aliases.push(terminal);
        }
        Ok(Self::new(physical, shift))
    }

    /// Logical nodes, valid or not.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The address bits from this one on choose among aliases.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Has it no line at all?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of a logical node, if the table has such a line.
    pub fn entry(&self, node: u32) -> Option<&Entry> {
        self.entries.get(node as usize)
    }

    /// The physical nodes of a logical node: none if it is not valid.
    pub fn physical(&self, node: u32) -> &[TerminalId] {
        self.entry(node).map_or(&[], |entry| &entry.physical)
    }

    /// Each valid logical node with its physical nodes.
    pub fn valid(&self) -> impl Iterator<Item = (u32, &[TerminalId])> {
        let all = self.entries.iter().enumerate().map(|(node, entry)| (node as u32, entry.physical.as_slice()));
        all.filter(|(_, physical)| !physical.is_empty())
    }

    /// All physical nodes in ascending order, each once.
    pub fn nodes(&self) -> Vec<TerminalId> {
        let mut nodes: Vec<TerminalId> = self.entries.iter().flat_map(|entry| entry.physical.iter().copied()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Where an access of logical node `from` to a local address of a logical node goes.
    ///
    /// # Errors
    /// A protection fault, or an entry that is being changed.
    pub fn translate(&self, from: u32, node: u32, address: u64) -> Result<TerminalId, Refusal> {
        let entry = self.entries.get(node as usize).ok_or(Refusal::Fault(Fault::Beyond(node)))?;
        match entry.physical.len() as u64 {
            0 => Err(Refusal::Fault(Fault::Invalid(node))),
            _ if entry.closing => Err(Refusal::Held),
            aliases => Ok(entry.physical[(self.key(from, address) % aliases) as usize]),
        }
    }

    fn key(&self, from: u32, address: u64) -> u64 {
        match self.key {
            Key::Address => address.checked_shr(self.shift).unwrap_or(0),
            Key::Requester => from.into(),
        }
    }

    pub(super) fn entry_mut(&mut self, node: u32) -> Option<&mut Entry> {
        self.entries.get_mut(node as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminals(numbers: &[u32]) -> Vec<TerminalId> {
        numbers.iter().copied().map(TerminalId).collect()
    }

    /// Of the address bits from `shift` on, the remainder by the number of aliases chooses: phys[(addr >> shift) mod k].
    #[test]
    fn key_bits_choose_among_aliases() {
        let table = Table::new(vec![terminals(&[7]), terminals(&[3, 5, 9])], 6);
        for line in 0..7 {
            assert_eq!(table.translate(9, 0, line << 6), Ok(TerminalId(7)));
            assert_eq!(table.translate(9, 1, (line << 6) + 63), Ok(TerminalId([3, 5, 9][line as usize % 3])));
        }
    }

    #[test]
    fn a_requester_may_be_the_key() {
        let table = Table::new(vec![terminals(&[3, 5])], 6).keyed_by(Key::Requester);
        assert_eq!([0, 1, 2].map(|from| table.translate(from, 0, 64)), [3, 5, 3].map(|terminal| Ok(TerminalId(terminal))));
    }

    #[test]
    fn what_the_table_does_not_name_is_a_fault() {
        let table = Table::new(vec![terminals(&[7]), Vec::new()], 0);
        assert_eq!(table.translate(9, 1, 0), Err(Refusal::Fault(Fault::Invalid(1))));
        assert_eq!(table.translate(9, 2, 0), Err(Refusal::Fault(Fault::Beyond(2))));
        assert_eq!(table.nodes(), terminals(&[7]));
    }

    #[test]
    fn conflicting_lines_gaps_and_absent_nodes_are_refused_at_their_line() {
        let line = |logical, key, physical| (logical, key, TerminalId(physical));
        let refused = |lines: &[Line]| Table::from_lines(lines, 0, 16).unwrap_err();
        assert_eq!(refused(&[line(0, 0, 1), line(1, 0, 16)]).line, 1);
        let conflict = refused(&[line(0, 0, 1), line(1, 0, 2), line(0, 0, 3)]);
        assert_eq!(conflict.line, 2);
        assert!(
            conflict.problem.contains("logical node 0 with key 0") && conflict.problem.contains("3 here and 1 further up"),
            "{conflict}"
        );
        assert_eq!(refused(&[line(0, 0, 1), line(0, 2, 3)]).line, 1);
        let table = Table::from_lines(&[line(2, 1, 5), line(2, 0, 4), line(0, 0, 6)], 0, 16).unwrap();
        assert_eq!((table.physical(0), table.physical(1), table.physical(2)), (&terminals(&[6])[..], &[][..], &terminals(&[4, 5])[..]));
    }
}
