//! Programs: what the processor of a node does for a task, and the message-passing library that they are written with.

use super::Cenju4;
use super::fault::Fault;
use super::memory::{LINE, PAGE};
use super::parcel::{Header, Kind, MAX_PARCEL, Protocol};

/// Where a task has its data to send.
pub const SOURCE: u64 = 0x1000_0000;
/// Where a task receives data.
pub const TARGET: u64 = 0x4000_0000;
/// Where a task has its buffers, and what others may add to.
pub const SYSTEM: u64 = 0x8000_0000;
/// Where the library keeps data on its way.
pub const BOUNCE: u64 = 0xc000_0000;
/// A double word in [`SYSTEM`] that others add to.
pub const COUNTER: u64 = SYSTEM;
/// Where answers to remote reads are announced.
pub const ANSWERS: u64 = SYSTEM + PAGE;
/// A second use of [`SYSTEM`]: words that the Sender or an answer writes.
pub const WORDS: u64 = SYSTEM + 2 * PAGE;
/// The log buffer, message buffer 0 and message buffer 1 follow each other from here on.
pub const RINGS: u64 = SYSTEM + 3 * PAGE;

/// What a processor does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Computes, or runs the library's code.
    Busy {
        /// For how long, ns.
        ns: f64,
    },
    /// Writes a header into the header queue and moves the queue's pointer.
    Post {
        /// The header's four double words.
        words: [u64; 4],
        /// Its second double word is what stands in so many bytes of memory at present.
        inline_from: Option<(u64, u32)>,
    },
    /// Writes a sequence of bytes that follows from `seed`; it is then in the cache. Takes no time: it is what came before.
    Fill {
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// Which sequence.
        seed: u64,
    },
    /// Is a sequence of bytes there? Takes no time; a run in which it is not there fails.
    Check {
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// Which sequence.
        seed: u64,
    },
    /// Is a double word what it should be? Takes no time; a run in which it is not fails.
    CheckWord {
        /// Where.
        address: u64,
        /// What it should be.
        value: u64,
    },
    /// Copies words of 4 bytes, one after the other.
    CopyWords {
        /// From where.
        from: u64,
        /// To where.
        to: u64,
        /// How many bytes, a multiple of 4 or up to the next one.
        bytes: u64,
    },
    /// Takes lines out of the cache, within a system call whose time is counted apart.
    Flush {
        /// From where.
        address: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// Waits until so many packets have been logged since the beginning.
    AwaitLog {
        /// How many.
        entries: u64,
    },
    /// Waits until so many bytes have been written to a message buffer since the beginning.
    AwaitMessages {
        /// Which buffer.
        buffer: u8,
        /// How many.
        bytes: u64,
    },
    /// Waits until a double word is at least so large.
    AwaitWord {
        /// Where.
        address: u64,
        /// How large.
        least: u64,
    },
    /// Waits until the operating system of the node has been told of so many refusals.
    AwaitFaults {
        /// How many.
        count: usize,
    },
    /// Has the operating system of the node been told of just these refusals? Takes no time; a run in which it has not fails.
    CheckFaults {
        /// Which, in any order.
        faults: Vec<Fault>,
    },
    /// The system call that registers a multicast to logical destinations; the offset in the table is the number of those before.
    RegisterMulticast {
        /// The destinations.
        nodes: Vec<u16>,
    },
    /// The system call that registers a synchronisation among logical destinations.
    RegisterSynchronisation {
        /// The identifier.
        sid: u8,
        /// The participants.
        nodes: Vec<u16>,
    },
    /// Sets an address register of the Receiver.
    SetRegister {
        /// Which.
        register: u8,
        /// To what.
        address: u64,
    },
    /// Notes the time.
    Stamp,
}

/// A program of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The task.
    pub cid: u8,
    /// What it does, in order.
    pub ops: Vec<Op>,
}

/// Byte `index` of the sequence of a seed.
pub fn sequence(seed: u64, bytes: u64) -> Vec<u8> {
    let words = (0..bytes.div_ceil(8)).flat_map(|word| kasuri_network::rng::split_mix(seed.rotate_left(32) ^ word).to_le_bytes());
    words.take(bytes as usize).collect()
}

/// Writes the program of one task with the calls of the library.
#[derive(Debug)]
pub struct Script<'a> {
    constants: &'a Cenju4,
    ops: Vec<Op>,
    logged: u64,
    message_bytes: u64,
    /// The last call sent a parcel: the next one needs no more than a header.
    sending: bool,
    /// Its parcels are in supervisor mode.
    supervisor: bool,
}

/// How a message is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// The offset in the node table, or in the multicast table.
    pub to: u16,
    /// By multicast.
    pub multicast: bool,
    /// From where.
    pub source: u64,
    /// To where.
    pub destination: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Do not ask the cache for a line twice.
    pub reuse_line: bool,
}

impl<'a> Script<'a> {
    /// An empty program.
    pub fn new(constants: &'a Cenju4) -> Self {
        Self { constants, ops: Vec::new(), logged: 0, message_bytes: 0, sending: false, supervisor: false }
    }

    /// An empty program of the operating system.
    pub fn of_operating_system(constants: &'a Cenju4) -> Self {
        Self { supervisor: true, ..Self::new(constants) }
    }

    /// The program.
    pub fn finish(self, cid: u8) -> Program {
        Program { cid, ops: self.ops }
    }

    /// Adds what is no call of the library.
    pub fn op(&mut self, op: Op) {
        self.sending = false;
        self.ops.push(op);
    }

    /// Computes.
    pub fn busy(&mut self, ns: f64) {
        self.op(Op::Busy { ns });
    }

    /// Enters the library to send, or goes on sending.
    fn post(&mut self, header: &Header, inline_from: Option<(u64, u32)>) {
        let ns = if self.sending { self.constants.send_more_ns } else { self.constants.send_ns };
        self.ops.push(Op::Busy { ns });
        let header = Header { supervisor: header.supervisor || self.supervisor, ..*header };
        self.ops.push(Op::Post { words: header.encode(), inline_from });
        self.sending = true;
    }

    /// Sends a raw header.
    pub fn parcel(&mut self, header: &Header) {
        self.post(header, None);
    }

    /// Writes this task's memory into that of another task or of several; the end is logged there once for each.
    ///
    /// Parcels hold 512 Kbyte. Up to 8 bytes go in the header. A destination at an odd word gets its first word in a parcel of its own;
    /// after that a source at an odd word is rearranged by the interface, and the word at the beginning of each of its pages is sent again.
    pub fn put(&mut self, put: Put) {
        let mut parts = Vec::new();
        let mut put = put;
        if put.destination % 8 == 4 && put.bytes > 4 {
            parts.push(Put { bytes: 4, ..put });
            put = put.after(4);
        }
        while put.bytes > 0 {
            let bytes = put.bytes.min(u64::from(MAX_PARCEL));
            parts.push(Put { bytes, ..put });
            if put.source % 8 == 4 && bytes > 8 {
                let first = (put.source / PAGE + 1) * PAGE;
                let pages = (0..).map(|page| first + page * PAGE).take_while(|&page| page < put.source + bytes);
                parts.extend(pages.map(|page| Put { bytes: 4.min(put.source + bytes - page), ..put.after(page - put.source) }));
            }
            put = put.after(bytes);
        }
        let last = parts.len().saturating_sub(1);
        for (place, part) in parts.into_iter().enumerate() {
            self.part(&part, place == last);
        }
    }

    fn part(&mut self, part: &Put, log: bool) {
        let words = [part.source, part.destination, 0];
        let inline = part.bytes <= 8;
        let header = Header {
            kind: if part.multicast { Kind::Multicast } else { Kind::Unicast },
            inline,
            log,
            reuse_line: part.reuse_line,
            // At most one parcel: `put` cuts.
            ..Header::new(Protocol::RemoteDma, part.to, part.bytes as u32, words)
        };
        self.post(&header, inline.then_some((part.source, part.bytes as u32)));
    }

    /// Waits for the ends of so many puts to this task.
    pub fn receive(&mut self, puts: u64) {
        self.logged += puts;
        self.op(Op::AwaitLog { entries: self.logged });
        self.busy(self.constants.receive_ns);
    }

    /// Reads another task's memory and waits for it. The announcement is in place `id`, which must not be in use.
    pub fn get(&mut self, from: u16, source: u64, destination: u64, bytes: u32, id: u8) {
        let header = Header { remote_read_id: id, ..Header::new(Protocol::RemoteRead, from, bytes, [source, destination, 0]) };
        self.post(&header, None);
        self.op(Op::AwaitWord { address: ANSWERS + 16 * u64::from(id) + 8, least: 1 });
        self.busy(self.constants.receive_ns);
    }

    /// Sends 8 bytes to message buffer 0 of another task.
    pub fn message(&mut self, to: u16, value: u64) {
        let header = Header { inline: true, ..Header::new(Protocol::Message(0), to, 8, [value, 0, 0]) };
        self.post(&header, None);
    }

    /// Waits for so many messages.
    pub fn receive_messages(&mut self, messages: u64) {
        self.message_bytes += messages * LINE;
        self.op(Op::AwaitMessages { buffer: 0, bytes: self.message_bytes });
        self.busy(self.constants.receive_ns);
    }

    /// Adds to the counter of another task, or of several by multicast.
    pub fn add(&mut self, to: u16, multicast: bool, addend: u64) {
        let kind = if multicast { Kind::Multicast } else { Kind::Unicast };
        self.post(&Header { kind, ..Header::new(Protocol::AtomicAdd, to, 8, [COUNTER, addend, 0]) }, None);
    }

    /// Waits until the counter of this task is at least so large.
    pub fn await_counter(&mut self, least: u64) {
        self.op(Op::AwaitWord { address: COUNTER, least });
        self.busy(self.constants.receive_ns);
    }

    /// Takes part in a synchronisation, an offset of the synchronisation table, and waits for its end.
    pub fn synchronise(&mut self, offset: u16) {
        self.post(&Header { kind: Kind::Synchronisation, ..Header::new(Protocol::AtomicAdd, offset, 0, [0; 3]) }, None);
        self.receive(1);
    }

    /// MPI: sends to a task that calls [`Script::mpi_receive`] with the same length. Short messages go to where the library keeps them and
    /// are copied there; for longer ones a request and an answer go before.
    pub fn mpi_send(&mut self, put: Put) {
        self.busy(self.constants.mpi_send_ns);
        if put.bytes <= self.constants.mpi_eager_bytes {
            self.put(Put { destination: BOUNCE, ..put });
        } else {
            self.message(put.to, put.bytes);
            self.receive_messages(1);
            self.put(put);
        }
    }

    /// MPI: receives from a task.
    pub fn mpi_receive(&mut self, from: u16, destination: u64, bytes: u64) {
        if bytes <= self.constants.mpi_eager_bytes {
            self.receive(1);
            self.busy(self.constants.mpi_receive_ns);
            self.op(Op::CopyWords { from: BOUNCE, to: destination, bytes });
        } else {
            self.receive_messages(1);
            self.busy(self.constants.mpi_receive_ns);
            self.message(from, destination);
            self.receive(1);
        }
    }
}

impl Put {
    fn after(self, bytes: u64) -> Self {
        Self { source: self.source + bytes, destination: self.destination + bytes, bytes: self.bytes - bytes, ..self }
    }
}
