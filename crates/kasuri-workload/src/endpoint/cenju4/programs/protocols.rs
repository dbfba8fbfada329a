//! Every protocol once, each with a look at what it has changed.

use super::super::memory::PAGE;
use super::super::parcel::{Header, Protocol, SENT};
use super::super::script::{ANSWERS, COUNTER, Op, SOURCE, Script, TARGET, WORDS};
use super::{Entry, Job, Registers, Turn};

pub(super) const ENTRY: Entry = Entry {
    name: "protocols",
    schedule: "",
    summary: "the first rank uses every protocol on the last one; the run fails if one has not done what it is for",
    run,
    target_bytes: |workload, _| workload.message_bytes + 4 * PAGE,
    registers: Registers::Nothing,
};

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn) {
    let (last, bytes) = (job.ranks - 1, job.workload.message_bytes.min(PAGE));
    let seed = u64::from(turn.run);
    let place = |number: u64| TARGET + number * PAGE;
    if turn.rank == 0 {
        let to = last as u16;
        let words = |words: [u64; 3], protocol, length: u64| Header { log: true, ..Header::new(protocol, to, length as u32, words) };
        script.op(Op::Fill { address: SOURCE, bytes, seed });
        script.parcel(&Header { notify: true, ..words([SOURCE, place(0), WORDS], Protocol::RemoteDma, bytes) });
        script.op(Op::AwaitWord { address: WORDS, least: SENT });
        for register in 0..3 {
            script.parcel(&words([SOURCE, 0, 0], Protocol::AddressRegister(register), bytes));
        }
        for buffer in 0..2 {
            script.parcel(&Header { inline: true, ..words([100 + u64::from(buffer), 0, 0], Protocol::Message(buffer), 8) });
        }
        script.add(to, false, 5);
        script.parcel(&Header::new(Protocol::Swap, to, 8, [COUNTER, 7, WORDS + 8]));
        script.op(Op::AwaitWord { address: WORDS + 8, least: 5 });
        script.parcel(&Header { remote_read_id: 1, ..Header::new(Protocol::CompareSwap, to, 8, [COUNTER, 7, 0]) });
        // 3: the comparison held.
        script.op(Op::AwaitWord { address: ANSWERS + 24, least: 3 });
        script.get(to, place(0), place(0), bytes as u32, 2);
        script.op(Op::Check { address: place(0), bytes, seed });
    } else if turn.rank == last {
        for register in 0..3u8 {
            script.op(Op::SetRegister { register, address: place(1 + u64::from(register)) });
        }
        script.receive(6);
        for number in 0..4 {
            script.op(Op::Check { address: place(number), bytes, seed });
        }
    }
}
