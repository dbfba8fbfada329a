//! Two multicasts at once: every byte is the sender's, and where none was sent nothing has changed.

use super::super::memory::PAGE;
use super::super::parcel::{Header, Kind, Protocol};
use super::super::script::{COUNTER, Op, SOURCE, Script, TARGET};
use super::super::task::Multicast;
use super::{Entry, Job, Registers, Turn, Workload, storm};

pub(super) const ENTRY: Entry = Entry {
    name: "multicast-pair",
    schedule: "",
    summary: "the first and the last rank multicast to random sets at once; the run fails unless each byte is right on every node",
    run,
    target_bytes: |workload, _| 2 * stride(workload),
    registers: Registers::Multicasts(multicasts),
};

/// A counter beside that of the barriers: multicasts that have come.
const COME: u64 = COUNTER + 8;

/// Between the places of the two.
fn stride(workload: &Workload) -> u64 {
    workload.message_bytes.next_multiple_of(PAGE) + PAGE
}

/// All groups, for the barriers, and a random set for each run.
fn multicasts(job: &Job<'_>, rank: u32) -> Vec<Multicast> {
    job.multicasts_to_all().into_iter().chain((0..job.runs).map(|run| storm::target(job, rank, run))).collect()
}

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn) {
    let bytes = job.workload.message_bytes;
    let senders = [0, job.ranks - 1];
    // Every node has addresses of its own, to which its registers point.
    let place = |which: u64| TARGET + which * stride(job.workload) + 24 * u64::from(turn.rank % 128);
    let untouched = |which: u64| 1 << 62 | u64::from(turn.run) << 32 | u64::from(turn.rank) << 1 | which;
    let sent = |which: u64, run: u32| 1 << 63 | u64::from(run) << 32 | which;
    for which in 0..2 {
        script.op(Op::Fill { address: place(which), bytes, seed: untouched(which) });
        script.op(Op::SetRegister { register: which as u8, address: place(which) });
    }
    job.groups().for_each(|group| script.add(group, true, 1));
    script.await_counter(u64::from(job.ranks) * u64::from(turn.run + 1));
    if let Some(which) = senders.iter().position(|&sender| sender == turn.rank) {
        let to = job.groups().end + turn.run as u16;
        let multicast = |protocol, length, words| Header { kind: Kind::Multicast, ..Header::new(protocol, to, length, words) };
        script.op(Op::Fill { address: SOURCE, bytes, seed: sent(which as u64, turn.run) });
        script.parcel(&multicast(Protocol::AddressRegister(which as u8), bytes as u32, [SOURCE, 0, 0]));
        script.parcel(&multicast(Protocol::AtomicAdd, 8, [COME, 1, 0]));
    }
    let is_mine = |which: usize, run: u32| storm::target(job, senders[which], run).has(turn.rank);
    let come = (0..=turn.run).map(|run| (0..2).filter(|&which| is_mine(which, run)).count() as u64).sum();
    script.op(Op::AwaitWord { address: COME, least: come });
    // Longer than a packet is in the network: what came here and is for others has come by now.
    script.busy(100_000.0);
    script.op(Op::CheckWord { address: COME, value: come });
    for which in 0..2 {
        let seed = if is_mine(which as usize, turn.run) { sent(which, turn.run) } else { untouched(which) };
        script.op(Op::Check { address: place(which), bytes, seed });
    }
}
