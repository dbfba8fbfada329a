//! The tables of all users, the other way round for receivers, and their changes while accesses are under way.

use super::table::{Fault, Refusal, Table};
use kasuri_network::id::TerminalId;
use thiserror::Error;

/// The number under which the operating system has its own table: every terminal under its own number.
pub const SYSTEM: u16 = u16::MAX;

/// A logical node of a user: what packets carry, and by which a receiver finds the processor meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualNode {
    /// The user, or [`SYSTEM`].
    pub user: u16,
    /// Its logical node.
    pub node: u32,
}

/// All tables of a machine.
///
/// A change of a table goes in three steps, so that no access meets an old entry: [`Tables::begin_update`] closes the entries
/// (new accesses to and from their nodes are held) and names what the TLBs forget; the accesses under way end; when none is
/// left, [`Tables::finish_updates`] writes the entries. So an access is always served by the node that the table names.
#[derive(Clone, Debug)]
pub struct Tables {
    users: Vec<Table>,
    system: Table,
    /// By terminal: the logical nodes that it is, in order.
    hosted: Vec<Vec<VirtualNode>>,
    /// By user and logical node: accesses to it or from it that have been translated and not ended.
    under_way: Vec<Vec<u32>>,
    updates: Vec<Update>,
    /// Changes that have been written.
    pub written: u64,
}

/// A change that waits for accesses under way.
#[derive(Clone, Debug)]
struct Update {
    user: u16,
    entries: Vec<(u32, Vec<TerminalId>)>,
}

/// A change that has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The user whose table it is.
    pub user: u16,
    /// What the changed entries were before: logical nodes with their physical nodes.
    pub before: Vec<(u32, Vec<TerminalId>)>,
}

/// A change that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UpdateError {
    /// There is no such user, or it has no such line. Change lines that are there.
    #[error("user {user} has no logical node {node}", user = .0.user, node = .0.node)]
    Absent(VirtualNode),
    /// The entry is being changed already. Wait until that change is written.
    #[error("logical node {node} of user {user} is being changed already", user = .0.user, node = .0.node)]
    Busy(VirtualNode),
    /// The machine has no such terminal. Name one that it has.
    #[error("the machine has no physical node {0}")]
    OutOfRange(TerminalId),
}

impl Tables {
    /// The users' tables on a machine of so many terminals.
    pub fn new(users: Vec<Table>, terminals: u32) -> Self {
        let under_way = users.iter().map(|table| vec![0; table.len() as usize]).collect();
        let mut tables = Self { users, system: Table::identity(terminals), hosted: Vec::new(), under_way, updates: Vec::new(), written: 0 };
        tables.rebuild_hosted();
        tables
    }

    fn rebuild_hosted(&mut self) {
        let mut hosted = vec![Vec::new(); self.system.len() as usize];
        for (user, table) in self.users.iter().enumerate() {
            for (node, physical) in table.valid() {
                for terminal in physical {
                    let nodes: &mut Vec<VirtualNode> = &mut hosted[terminal.index()];
                    let here = VirtualNode { user: user as u16, node };
                    if !nodes.contains(&here) {
                        nodes.push(here);
                    }
                }
            }
        }
        self.hosted = hosted;
    }

    /// The table of a user or of the operating system.
    pub fn table(&self, user: u16) -> &Table {
        if user == SYSTEM { &self.system } else { &self.users[usize::from(user)] }
    }

    /// Users, the operating system not counted.
    pub fn users(&self) -> u16 {
        self.users.len() as u16
    }

    /// The logical nodes that a terminal is, of all users: the receiver's list.
    pub fn hosted(&self, terminal: TerminalId) -> &[VirtualNode] {
        &self.hosted[terminal.index()]
    }

    /// How many users with smaller numbers a terminal has.
    pub fn rank_of_user(&self, terminal: TerminalId, user: u16) -> u32 {
        // They stand in the order of their users.
        let users = self.hosted(terminal).chunk_by(|one, other| one.user == other.user);
        users.filter(|here| here[0].user < user).count() as u32
    }

    /// The logical nodes of one user that a terminal is.
    pub fn hosted_of(&self, terminal: TerminalId, user: u16) -> impl Iterator<Item = u32> + '_ {
        self.hosted(terminal).iter().filter(move |here| here.user == user).map(|here| here.node)
    }

    /// The logical node of a user whose first physical node a terminal is: that whose rank of a workload runs there.
    pub fn rank_at(&self, terminal: TerminalId, user: u16) -> Option<u32> {
        self.hosted_of(terminal, user).find(|&node| self.table(user).physical(node).first() == Some(&terminal))
    }

    /// Which of a receiver's virtual processors a packet is for; `None` if it has come to a node that is not in the table.
    pub fn demultiplex(&self, terminal: TerminalId, meant: VirtualNode) -> Option<usize> {
        if meant.user == SYSTEM {
            return (meant.node == terminal.0).then_some(0);
        }
        self.hosted(terminal).iter().position(|&here| here == meant)
    }

    /// Where an access of logical node `from` to an address of logical node `to` goes. It counts as under way until
    /// [`Tables::ended`] says otherwise.
    ///
    /// # Errors
    /// A protection fault, or one of the two entries is being changed.
    pub fn begin(&mut self, user: u16, from: u32, to: u32, address: u64) -> Result<TerminalId, Refusal> {
        let physical = self.table(user).translate(from, to, address)?;
        if user == SYSTEM {
            return Ok(physical);
        }
        match self.table(user).entry(from) {
            None => return Err(Refusal::Fault(Fault::Beyond(from))),
            Some(entry) if entry.closing => return Err(Refusal::Held),
            Some(_) => {}
        }
        let under_way = &mut self.under_way[usize::from(user)];
        under_way[from as usize] += 1;
        under_way[to as usize] += 1;
        Ok(physical)
    }

    /// An access that [`Tables::begin`] has let through has ended: its answer has arrived, or its only packet.
    pub fn ended(&mut self, user: u16, from: u32, to: u32) {
        if user != SYSTEM {
            let under_way = &mut self.under_way[usize::from(user)];
            under_way[from as usize] -= 1;
            under_way[to as usize] -= 1;
        }
    }

    /// Closes entries of a user and says what they shall become. The keys that TLBs must forget are those of the entries.
    ///
    /// # Errors
    /// A user, line or terminal that is not there, an entry that is being changed already. Then nothing is changed.
    pub fn begin_update(&mut self, user: u16, entries: Vec<(u32, Vec<TerminalId>)>) -> Result<(), UpdateError> {
        for (node, physical) in &entries {
            let here = VirtualNode { user, node: *node };
            let entry = self.users.get(usize::from(user)).and_then(|table| table.entry(*node)).ok_or(UpdateError::Absent(here))?;
            if entry.closing {
                return Err(UpdateError::Busy(here));
            }
            if let Some(&absent) = physical.iter().find(|terminal| terminal.0 >= self.system.len()) {
                return Err(UpdateError::OutOfRange(absent));
            }
        }
        for (node, _) in &entries {
            if let Some(entry) = self.users[usize::from(user)].entry_mut(*node) {
                entry.closing = true;
            }
        }
        self.updates.push(Update { user, entries });
        Ok(())
    }

    /// Is a change waiting?
    pub fn is_updating(&self) -> bool {
        !self.updates.is_empty()
    }

    /// The terminals that waiting changes of a user will name.
    pub fn promised(&self, user: u16) -> impl Iterator<Item = TerminalId> + '_ {
        let updates = self.updates.iter().filter(move |update| update.user == user);
        updates.flat_map(|update| &update.entries).flat_map(|(_, physical)| physical.iter().copied())
    }

    /// Writes the changes whose nodes no access is under way to or from, and tells of each. Was there any?
    pub fn finish_updates(&mut self, mut written: impl FnMut(Written)) -> bool {
        let mut updates = std::mem::take(&mut self.updates);
        let before = self.written;
        updates.retain_mut(|update| {
            let under_way = &self.under_way[usize::from(update.user)];
            let waits = update.entries.iter().any(|(node, _)| under_way[*node as usize] > 0);
            if !waits {
                self.write(update);
                written(Written { user: update.user, before: std::mem::take(&mut update.entries) });
            }
            waits
        });
        self.updates = updates;
        if self.written > before {
            self.rebuild_hosted();
        }
        self.written > before
    }

    /// Writes a change; what it replaces stands in the change afterwards.
    fn write(&mut self, update: &mut Update) {
        for (node, physical) in &mut update.entries {
            if let Some(entry) = self.users[usize::from(update.user)].entry_mut(*node) {
                std::mem::swap(&mut entry.physical, physical);
                entry.closing = false;
            }
        }
        self.written += 1;
    }

    /// The pairs of terminals that a change has made each other: all logical nodes that one was the other is now. A spare terminal is
    /// none.
    pub fn exchanged(&self, written: &Written) -> Vec<[TerminalId; 2]> {
        let Written { user, before } = written;
        let now = |terminal: TerminalId| -> Vec<u32> { self.hosted_of(terminal, *user).collect() };
        let was = |terminal: TerminalId| {
            let changed = |node: u32| before.iter().any(|&(other, _)| other == node);
            let mut nodes: Vec<u32> = now(terminal).into_iter().filter(|&node| !changed(node)).collect();
            nodes.extend(before.iter().filter(|(_, physical)| physical.contains(&terminal)).map(|&(node, _)| node));
            nodes.sort_unstable();
            nodes
        };
        let after = before.iter().flat_map(|&(node, _)| self.table(*user).physical(node));
        let mut terminals: Vec<TerminalId> = before.iter().flat_map(|(_, physical)| physical).chain(after).copied().collect();
        terminals.sort_unstable();
        terminals.dedup();
        let mut pairs: Vec<[TerminalId; 2]> = Vec::new();
        while let Some(one) = terminals.pop() {
            let has_changed = was(one) != now(one);
            let partner = terminals.iter().position(|&other| was(one) == now(other) && was(other) == now(one));
            if let Some(place) = partner.filter(|_| has_changed) {
                pairs.push([terminals.remove(place), one]);
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_each(numbers: &[u32]) -> Table {
        Table::new(numbers.iter().map(|&number| vec![TerminalId(number)]).collect(), 0)
    }

    #[test]
    fn the_operating_system_has_every_node_under_its_own_number() {
        let mut tables = Tables::new(vec![one_each(&[3, 1])], 4);
        for terminal in 0..4 {
            assert_eq!(tables.begin(SYSTEM, 0, terminal, 0), Ok(TerminalId(terminal)));
        }
        assert_eq!(tables.begin(SYSTEM, 0, 4, 0), Err(Refusal::Fault(Fault::Beyond(4))));
        assert_eq!(tables.begin(0, 0, 1, 0), Ok(TerminalId(1)));
    }

    /// Logical nodes 0, 1 and 2 of user 0 and node 0 of user 1 are one terminal: four virtual processors, each found by its pair.
    #[test]
    fn a_receiver_tells_its_virtual_processors_apart() {
        let tables = Tables::new(vec![one_each(&[5, 5, 5, 2]), one_each(&[5])], 8);
        let meant = [(0, 0), (0, 1), (0, 2), (1, 0)].map(|(user, node)| VirtualNode { user, node });
        let found: Vec<_> = meant.iter().map(|&meant| tables.demultiplex(TerminalId(5), meant)).collect();
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(tables.demultiplex(TerminalId(5), VirtualNode { user: 0, node: 3 }), None);
        assert_eq!(tables.hosted_of(TerminalId(5), 1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_change_waits_for_the_accesses_under_way_and_holds_new_ones() {
        let mut tables = Tables::new(vec![one_each(&[0, 1, 2])], 4);
        assert_eq!(tables.begin(0, 0, 1, 0), Ok(TerminalId(1)));
        tables.begin_update(0, vec![(1, vec![TerminalId(3)])]).unwrap();
        assert_eq!(tables.begin(0, 2, 1, 0), Err(Refusal::Held));
        assert_eq!(tables.begin(0, 1, 2, 0), Err(Refusal::Held));
        assert_eq!(tables.begin(0, 2, 0, 0), Ok(TerminalId(0)));
        assert!(!tables.finish_updates(|_| ()), "an access to the node is under way");
        tables.ended(0, 0, 1);
        assert!(tables.finish_updates(|_| ()));
        assert_eq!(tables.begin(0, 0, 1, 0), Ok(TerminalId(3)));
        assert!(tables.hosted(TerminalId(1)).is_empty());
    }

    /// Three logical nodes on terminals 0, 1 and (two of them) 2: what one terminal was the other is, unless it keeps a node.
    #[test]
    fn terminals_that_become_each_other_are_named() {
        let terminals = |numbers: &[u32]| numbers.iter().copied().map(TerminalId).collect::<Vec<_>>();
        let changed = |entries: &[(u32, &[u32])]| {
            let table = Table::new([&[0][..], &[1, 5], &[2], &[2]].map(terminals).to_vec(), 0);
            let mut tables = Tables::new(vec![table], 8);
            tables.begin_update(0, entries.iter().map(|&(node, physical)| (node, terminals(physical))).collect()).unwrap();
            let mut all = Vec::new();
            tables.finish_updates(|written| all.push(written));
            tables.exchanged(&all[0]).iter().map(|pair| pair.map(|terminal| terminal.0)).collect::<Vec<_>>()
        };
        assert_eq!(changed(&[(0, &[7])]), [[0, 7]], "to a spare terminal");
        assert_eq!(changed(&[(1, &[1, 7])]), [[5, 7]], "an alias");
        assert_eq!(changed(&[(0, &[1, 5]), (1, &[0])]), [[0, 5]], "one alias finds no partner");
        assert_eq!(changed(&[(0, &[2]), (2, &[0])]), Vec::<[u32; 2]>::new(), "terminal 2 stays logical node 3");
        assert_eq!(changed(&[(2, &[7])]), Vec::<[u32; 2]>::new());
    }

    /// The first terminal of a logical node has its rank, also where another's alias lies.
    #[test]
    fn a_rank_is_on_the_first_terminal_of_its_node() {
        let tables = Tables::new(vec![Table::new(vec![vec![TerminalId(3), TerminalId(1)], vec![TerminalId(1)]], 0)], 4);
        assert_eq!([1, 2, 3].map(|terminal| tables.rank_at(TerminalId(terminal), 0)), [Some(1), None, Some(0)]);
    }

    #[test]
    fn changes_of_what_is_not_there_are_refused() {
        let mut tables = Tables::new(vec![one_each(&[0, 1])], 4);
        let absent = VirtualNode { user: 0, node: 2 };
        assert_eq!(tables.begin_update(0, vec![(2, Vec::new())]), Err(UpdateError::Absent(absent)));
        assert_eq!(tables.begin_update(1, vec![(0, Vec::new())]), Err(UpdateError::Absent(VirtualNode { user: 1, node: 0 })));
        assert_eq!(tables.begin_update(0, vec![(0, vec![TerminalId(4)])]), Err(UpdateError::OutOfRange(TerminalId(4))));
        tables.begin_update(0, vec![(0, Vec::new())]).unwrap();
        assert_eq!(tables.begin_update(0, vec![(0, Vec::new())]), Err(UpdateError::Busy(VirtualNode { user: 0, node: 0 })));
    }
}
