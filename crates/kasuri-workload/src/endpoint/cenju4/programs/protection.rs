//! What the tables do not allow is refused: each kind of wrong parcel once, then a right one.

use super::super::fault::Fault;
use super::super::memory::PAGE;
use super::super::parcel::{Header, Kind, MAX_PARCEL, Protocol};
use super::super::script::{COUNTER, Op, SOURCE, Script, TARGET, WORDS};
use super::super::task::SYNCHRONISATIONS;
use super::{Entry, Job, Registers, Turn};

pub(super) const ENTRY: Entry = Entry {
    name: "protection",
    schedule: "",
    summary: "the first rank sends parcels that its tables do not allow; the run fails unless each is refused and changes nothing",
    run,
    target_bytes: |_, _| 8,
    registers: Registers::Nothing,
};

/// An address that no task has.
const NOWHERE: u64 = 0x7000_0000;

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn) {
    let last = job.ranks - 1;
    if turn.rank == 0 {
        attack(script, job, last as u16);
    } else if turn.rank == last {
        // The right parcel is the only one that comes through.
        script.op(Op::AwaitWord { address: COUNTER, least: 7 });
        script.op(Op::CheckFaults { faults: vec![Fault::Unmapped(NOWHERE)] });
        script.op(Op::CheckWord { address: COUNTER, value: 7 });
        script.op(Op::CheckWord { address: TARGET, value: 0 });
    }
}

fn attack(script: &mut Script<'_>, job: &Job<'_>, to: u16) {
    let dma = |to: u16, source, destination| Header::new(Protocol::RemoteDma, to, 8, [source, destination, 0]);
    let (nodes, groups) = (job.ranks as u16, job.groups().end);
    let beyond = u16::from(SYNCHRONISATIONS);
    script.parcel(&dma(nodes, SOURCE, TARGET));
    script.parcel(&Header { kind: Kind::Multicast, ..dma(groups, SOURCE, TARGET) });
    script.parcel(&Header { kind: Kind::Synchronisation, ..Header::new(Protocol::AtomicAdd, beyond, 0, [0; 3]) });
    script.parcel(&Header { length: MAX_PARCEL + 8, ..dma(to, SOURCE, TARGET) });
    script.parcel(&dma(to, NOWHERE, TARGET));
    // The first page behind the segment with the data that is sent.
    let offset = job.workload.source_offset.max(job.workload.return_offset.unwrap_or(0));
    let behind = SOURCE + (offset + job.workload.message_bytes + PAGE).next_multiple_of(PAGE);
    script.parcel(&dma(to, behind, TARGET));
    script.parcel(&dma(to, SOURCE, NOWHERE));
    script.parcel(&Header::new(Protocol::Swap, to, 8, [COUNTER, 7, WORDS + 8]));
    script.op(Op::AwaitFaults { count: 6 });
    let faults = vec![
        Fault::OutsideNodeTable(nodes),
        Fault::OutsideMulticastTable(groups),
        Fault::OutsideSynchronisationTable(beyond),
        Fault::TooLong(MAX_PARCEL + 8),
        Fault::Unmapped(NOWHERE),
        Fault::Unmapped(behind),
    ];
    script.op(Op::CheckFaults { faults });
}
