//! Barriers: nobody leaves before all have entered.

use super::super::script::Script;
use super::{Entry, Job, Registers, Turn, to_all};

const fn entry(schedule: &'static str, summary: &'static str, run: fn(&mut Script<'_>, &Job<'_>, Turn)) -> Entry {
    Entry { name: "barrier", schedule, summary, run, target_bytes: |_, _| 0, registers: Registers::Nothing }
}

pub(super) const NETWORK: Entry = Entry {
    registers: Registers::Synchronisation,
    ..entry("network-barrier", "the routers wait for a packet of each rank, then send one to each", |script, _, _| script.synchronise(0))
};

pub(super) const MULTICAST_ADD: Entry = Entry {
    registers: Registers::Multicasts(to_all),
    ..entry("multicast-atomic-add", "every rank adds 1 to a counter on all nodes, by multicast", |script, job, turn| {
        for group in job.groups() {
            script.add(group, true, 1);
        }
        script.await_counter(u64::from(job.ranks) * u64::from(turn.run + 1));
    })
};

pub(super) const ADD: Entry = entry("atomic-add", "every rank adds 1 to a counter on each node", |script, job, turn| {
    for step in 1..=job.ranks {
        script.add(((turn.rank + step) % job.ranks) as u16, false, 1);
    }
    script.await_counter(u64::from(job.ranks) * u64::from(turn.run + 1));
});

pub(super) const MESSAGES: Entry = entry("messages", "every rank sends a message to each rank", |script, job, turn| {
    for step in 1..=job.ranks {
        script.message(((turn.rank + step) % job.ranks) as u16, u64::from(turn.rank));
    }
    script.receive_messages(u64::from(job.ranks));
});

/// A binomial tree: in round k the ranks with bit k (and no lower one) report to the rank without it; then the same way back.
pub(super) const TREE: Entry = entry("tree", "messages up a binary tree and back", |script, job, turn| {
    let own = if turn.rank == 0 { u32::BITS } else { turn.rank.trailing_zeros() };
    let children: Vec<u32> = (0..own.min(31)).map(|bit| turn.rank + (1 << bit)).take_while(|&child| child < job.ranks).collect();
    for _ in &children {
        script.receive_messages(1);
    }
    if turn.rank != 0 {
        script.message((turn.rank & (turn.rank - 1)) as u16, u64::from(turn.run));
        script.receive_messages(1);
    }
    for child in children.iter().rev() {
        script.message(*child as u16, u64::from(turn.run));
    }
});
