//! A storm of multicasts to random sets of nodes: all arrive where they are for, once, and nowhere else.

use super::super::parcel::{Header, Kind, Protocol};
use super::super::script::{COUNTER, Op, SOURCE, Script};
use super::super::task::{GROUP, Multicast};
use super::{Entry, Job, Registers, Turn};
use kasuri_network::rng::split_mix;

pub(super) const ENTRY: Entry = Entry {
    name: "multicast-storm",
    schedule: "",
    summary: "every rank multicasts to random sets of the nodes of random groups, all at once",
    run,
    target_bytes: |workload, _| workload.message_bytes,
    registers: Registers::Multicasts(targets),
};

/// Where a rank multicasts in a run: a group and a set of its ranks, at least one.
pub(super) fn target(job: &Job<'_>, rank: u32, run: u32) -> Multicast {
    let draw = |what: u64| split_mix(job.key ^ split_mix(u64::from(rank) << 34 | u64::from(run) << 2 | what));
    let group = (draw(0) % u64::from(job.ranks.div_ceil(GROUP))) as u32;
    let ranks = (job.ranks - group * GROUP).min(GROUP);
    let nodes = draw(1) & (u64::MAX >> (GROUP - ranks));
    Multicast { group: group as u8, nodes: if nodes == 0 { 1 } else { nodes }, cid: job.cid }
}

/// Where a rank multicasts, run after run.
fn targets(job: &Job<'_>, rank: u32) -> Vec<Multicast> {
    (0..job.runs).map(|run| target(job, rank, run)).collect()
}

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn) {
    let bytes = job.workload.message_bytes;
    if turn.run == 0 {
        script.op(Op::Fill { address: SOURCE, bytes, seed: u64::from(turn.rank) });
    }
    // An address register says where data goes: it is different on each node.
    let header =
        Header { kind: Kind::Multicast, ..Header::new(Protocol::AddressRegister(0), turn.run as u16, bytes as u32, [SOURCE, 0, 0]) };
    script.parcel(&header);
    script.add(turn.run as u16, true, 1);
    if turn.run + 1 == job.runs {
        let mine = |rank: u32, run: u32| target(job, rank, run).has(turn.rank);
        let expected: u64 = (0..job.ranks).map(|rank| (0..job.runs).filter(|&run| mine(rank, run)).count() as u64).sum();
        script.await_counter(expected);
        // Long after the last one: whoever got one too many has it by now.
        script.busy(1e9);
        script.op(Op::CheckWord { address: COUNTER, value: expected });
    }
}
