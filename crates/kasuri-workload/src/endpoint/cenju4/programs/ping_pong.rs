//! Ping-pong: the time of a message there and back.

use super::super::memory::PAGE;
use super::super::script::{BOUNCE, Op, Put, SOURCE, Script, TARGET};
use super::{Entry, Job, Library, Registers, Turn};

pub(super) const ENTRY: Entry = Entry {
    name: "ping-pong",
    schedule: "",
    summary: "the first rank sends a message to the last one, which sends one back",
    run,
    target_bytes: |workload, _| workload.message_bytes,
    registers: Registers::Nothing,
};

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn) {
    let last = job.ranks - 1;
    let bytes = job.workload.message_bytes;
    let target = TARGET + job.workload.target_offset;
    let seed = u64::from(turn.run) << 32 | u64::from(turn.rank);
    let (other, offset) = match turn.rank {
        0 => (last, job.workload.source_offset),
        rank if rank == last => (0, job.workload.return_offset.unwrap_or(job.workload.source_offset)),
        _ => return,
    };
    let source = SOURCE + offset;
    // Not before: the interface may still be reading what was sent last, unless an answer to it has come.
    if turn.rank == 0 {
        script.op(Op::Fill { address: source, bytes, seed });
        send(script, job, other as u16, source, target);
    }
    match job.workload.library {
        Library::Paralib => script.receive(1),
        Library::Mpi => script.mpi_receive(other as u16, target, bytes),
    }
    script.op(Op::Check { address: target, bytes, seed: u64::from(turn.run) << 32 | u64::from(other) });
    if turn.rank == last {
        script.op(Op::Fill { address: source, bytes, seed });
        send(script, job, other as u16, source, target);
    }
}

fn send(script: &mut Script<'_>, job: &Job<'_>, to: u16, source: u64, destination: u64) {
    let workload = job.workload;
    let bytes = workload.message_bytes;
    let mut put = Put { to, multicast: false, source, destination, bytes, reuse_line: workload.reuse_line };
    if workload.system_call {
        script.busy(job.constants.system_call_ns);
        script.op(Op::Flush { address: source, bytes });
    }
    if workload.copy_odd_words && source % 8 == 4 {
        // To a double word, and not to the beginning of a line, which would be the copy that needs the fewest reads.
        put.source = BOUNCE + PAGE / 64;
        script.op(Op::CopyWords { from: source, to: put.source, bytes });
    }
    match workload.library {
        Library::Paralib => script.put(put),
        Library::Mpi => script.mpi_send(put),
    }
}
