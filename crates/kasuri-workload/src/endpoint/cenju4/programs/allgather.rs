//! All-gather: every rank sends its block to all, itself among them.

use super::super::script::{Op, Put, SOURCE, Script, TARGET};
use super::{Entry, Job, Registers, Turn, Workload, to_all};

pub(super) const MULTICAST: Entry = Entry {
    name: "allgather",
    schedule: "network-multicast",
    summary: "one multicast to each group of 64 nodes, copied inside the network",
    run: |script, job, turn| {
        let own = job.groups().map(|group| (group, true));
        run(script, job, turn, own);
    },
    target_bytes,
    registers: Registers::Multicasts(to_all),
};

pub(super) const SHIFT: Entry = Entry {
    name: "allgather",
    schedule: "shift",
    summary: "rank i sends to i + 1, i + 2, ... and at last to itself",
    run: |script, job, turn| {
        let all = (1..=job.ranks).map(|step| (((turn.rank + step) % job.ranks) as u16, false));
        run(script, job, turn, all);
    },
    target_bytes,
    registers: Registers::Multicasts(to_all),
};

pub(super) const IN_ORDER: Entry = Entry {
    name: "allgather",
    schedule: "in-order",
    summary: "every rank sends to rank 0, 1, 2, ...",
    run: |script, job, turn| {
        let all = (0..job.ranks).map(|rank| (rank as u16, false));
        run(script, job, turn, all);
    },
    target_bytes,
    registers: Registers::Multicasts(to_all),
};

fn target_bytes(workload: &Workload, ranks: u32) -> u64 {
    workload.message_bytes.next_multiple_of(8) * u64::from(ranks)
}

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn, to: impl Iterator<Item = (u16, bool)>) {
    let bytes = job.workload.message_bytes;
    let block = |rank: u32| TARGET + job.workload.target_offset + u64::from(rank) * bytes.next_multiple_of(8);
    // Other tasks have other data.
    let seed = |rank: u32| u64::from(job.cid) << 56 | u64::from(turn.run) << 32 | u64::from(rank);
    let source = SOURCE + job.workload.source_offset;
    if turn.run > 0 {
        // Nobody's blocks may be written anew while another one still reads them.
        job.groups().for_each(|group| script.add(group, true, 1));
        script.await_counter(u64::from(job.ranks) * u64::from(turn.run));
    }
    script.op(Op::Fill { address: source, bytes, seed: seed(turn.rank) });
    for (to, multicast) in to {
        let reuse_line = job.workload.reuse_line;
        script.put(Put { to, multicast, source, destination: block(turn.rank), bytes, reuse_line });
    }
    script.receive(u64::from(job.ranks));
    for rank in 0..job.ranks {
        script.op(Op::Check { address: block(rank), bytes, seed: seed(rank) });
    }
}
