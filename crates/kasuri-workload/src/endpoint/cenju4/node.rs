//! A node without time: its memory, its tasks, what its Sender makes of a parcel and what its Receiver does with a packet.

use super::fault::{Fault, Interrupt};
use super::memory::{LINE, Memory, PAGE};
use super::parcel::{Header, Kind, MAX_PARCEL, Protocol, SENT, packet_length};
use super::task::{
    Destination, GROUP, LOG_ENTRY, Multicast, OPERATING_SYSTEM, PageEntry, SEGMENTS, SYNCHRONISATIONS, Segment, Synchronisation, Task,
};
use crate::endpoint::tlb::Tlb;

/// A node of the machine.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its physical number.
    pub number: u16,
    /// Its main memory.
    pub memory: Memory,
    /// Its tasks by communication identifier.
    tasks: Vec<Option<Box<Task>>>,
    /// What the operating system was told.
    pub interrupts: Vec<Interrupt>,
    /// The Sender's translations.
    pub sender_tlb: Tlb<(u8, u64)>,
    /// The Receiver's translations.
    pub receiver_tlb: Tlb<(u8, u64)>,
    frames: u64,
}

/// Where the packets of a parcel go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To one task.
    Unicast(Destination),
    /// To a task on each node of a set.
    Multicast(Multicast),
    /// Through the routers' tables.
    Synchronisation(Synchronisation),
}

impl Target {
    fn cid(&self) -> u8 {
        match self {
            Self::Unicast(to) => to.cid,
            Self::Multicast(to) => to.cid,
            Self::Synchronisation(to) => to.cid,
        }
    }
}

/// A parcel in a header register of the Sender: checked, and with a physical destination.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    /// Where it goes.
    pub target: Target,
    /// The task whose tables translate its addresses.
    cid: u8,
    header: Header,
    /// It answers another node's request.
    answer: Option<Answer>,
    sent: u32,
    /// The physical line with which the packet before ended.
    last_line: Option<u64>,
}

/// An answer that the Receiver puts into the header queue for remote reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Who asked.
    to: Destination,
    /// The task that was asked.
    cid: u8,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Read { source: u64, destination: u64, length: u32, id: u8 },
    Swap { destination: u64, old: u64 },
    CompareSwap { id: u8, old: u64, equal: bool },
    Refused,
}

/// What a packet does where it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes its data.
    Write {
        /// Where.
        address: u64,
    },
    /// Writes its data where an address register points, and so many bytes further.
    RegisterWrite {
        /// Which register.
        register: u8,
        /// How far.
        offset: u64,
    },
    /// Appends its data to a message buffer.
    Message {
        /// Which one.
        buffer: u8,
    },
    /// Adds to a double word.
    AtomicAdd {
        /// Where.
        address: u64,
        /// What.
        addend: u64,
    },
    /// Asks for memory.
    Read {
        /// There.
        source: u64,
        /// Where it is wanted.
        destination: u64,
        /// Bytes.
        length: u32,
        /// Where the answer is announced.
        id: u8,
    },
    /// Exchanges a double word.
    Swap {
        /// Where.
        address: u64,
        /// The new value.
        value: u64,
        /// Where the old one is wanted.
        back: u64,
    },
    /// Exchanges a double word if it has a value.
    CompareSwap {
        /// Where.
        address: u64,
        /// The value.
        expected: u64,
        /// The new value.
        value: u64,
        /// Where the answer is announced.
        id: u8,
    },
    /// The answer to a read: writes its data and announces the end.
    Answer {
        /// Where.
        address: u64,
        /// Where the answer is announced.
        id: u8,
    },
    /// The answer to a swap: writes its data, a double word.
    Swapped {
        /// Where.
        address: u64,
    },
    /// The answer to a compare-and-swap.
    Compared {
        /// The value found.
        old: u64,
        /// Was it the expected one?
        equal: bool,
        /// Where the answer is announced.
        id: u8,
    },
    /// The request that it answers was refused.
    Refused,
    /// All participants have come.
    Synchronised,
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub from: Destination,
    /// The task that it is for.
    pub cid: u8,
    /// What it does.
    pub operation: Operation,
    /// Its data.
    pub data: Vec<u8>,
    /// The last of its parcel.
    pub last: bool,
    log: bool,
    interrupt: bool,
}

/// A line that the Sender has to read for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRead {
    /// Does the memory controller ask the cache?
    pub coherent: bool,
    /// Has the cache the line, so that it comes from there?
    pub cached: bool,
    /// Double words until all that the packet needs of the line is there.
    pub needed: u32,
}

/// A packet and what making it takes.
#[derive(Clone, Debug)]
pub struct Made {
    /// The packet.
    pub packet: Packet,
    /// The lines read for it, in order.
    pub reads: Vec<LineRead>,
    /// Translations that were not in the buffer.
    pub tlb_misses: u32,
}

/// What the Receiver has to do for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Lines written.
    pub lines: u32,
    /// A double word is read and written again.
    pub atomic: bool,
    /// Translations that were not in the buffer.
    pub tlb_misses: u32,
}

impl Node {
    /// A node without tasks.
    pub fn new(number: u16, tlb_entries: usize) -> Self {
        Self {
            number,
            memory: Memory::default(),
            tasks: Vec::new(),
            interrupts: Vec::new(),
            sender_tlb: Tlb::new(tlb_entries),
            receiver_tlb: Tlb::new(tlb_entries),
            frames: 0,
        }
    }

    /// Sets a task up.
    pub fn create_task(&mut self, cid: u8) -> &mut Task {
        let place = usize::from(cid);
        if place >= self.tasks.len() {
            self.tasks.resize_with(place + 1, || None);
        }
        self.tasks[place].get_or_insert_default()
    }

    /// A task.
    ///
    /// # Errors
    /// There is none with this communication identifier.
    pub fn task(&self, cid: u8) -> Result<&Task, Fault> {
        self.tasks.get(usize::from(cid)).and_then(Option::as_deref).ok_or(Fault::NoTask(cid))
    }

    /// A task, to change it as the operating system does.
    ///
    /// # Errors
    /// There is none with this communication identifier.
    pub fn task_mut(&mut self, cid: u8) -> Result<&mut Task, Fault> {
        self.tasks.get_mut(usize::from(cid)).and_then(Option::as_deref_mut).ok_or(Fault::NoTask(cid))
    }

    /// Adds a segment of so many bytes at an address (both rounded to pages), each page in a frame of its own. No two frames that are
    /// used follow each other, so that what runs over the end of a page goes astray as it may on a machine.
    ///
    /// # Errors
    /// The task has four segments already: its table has no place for another one.
    pub fn map(&mut self, cid: u8, address: u64, bytes: u64, writable: bool) -> Result<(), Fault> {
        if self.create_task(cid).segments.len() >= SEGMENTS {
            return Err(Fault::TooManySegments);
        }
        let count = bytes.div_ceil(PAGE);
        let first = self.frames;
        self.frames += 2 * count;
        let pages = (0..count).map(|page| Some(PageEntry { frame: first + 2 * page, writable, present: true })).collect();
        self.create_task(cid).segments.push(Segment { first_page: address / PAGE, pages });
        Ok(())
    }

    /// Page frames that follow each other, for the operating system: their physical address.
    pub fn reserve(&mut self, bytes: u64) -> u64 {
        let first = self.frames;
        self.frames += bytes.div_ceil(PAGE) + 1;
        first * PAGE
    }

    /// The system call that registers a multicast to some logical destinations of a task. Its offset in the multicast table is its number.
    ///
    /// # Errors
    /// A destination is outside the task's node table, or a multicast cannot reach them all.
    pub fn register_multicast(&mut self, cid: u8, nodes: &[u16]) -> Result<u16, Fault> {
        let (group, nodes, of) = self.physical(cid, nodes)?;
        let table = &mut self.task_mut(cid)?.multicasts;
        table.push(Multicast { group, nodes, cid: of });
        Ok(table.len() as u16 - 1)
    }

    /// The system call that registers a synchronisation among some logical destinations of a task, under an identifier that all of them use.
    /// Its offset in the synchronisation table is its number.
    ///
    /// # Errors
    /// As [`Node::register_multicast`]; and the identifier has more than 7 bits.
    pub fn register_synchronisation(&mut self, cid: u8, sid: u8, nodes: &[u16]) -> Result<u16, Fault> {
        let (group, nodes, of) = self.physical(cid, nodes)?;
        if sid >= SYNCHRONISATIONS {
            return Err(Fault::OutsideSynchronisationTable(u16::from(sid)));
        }
        if group != 0 {
            return Err(Fault::MixedDestinations);
        }
        let table = &mut self.task_mut(cid)?.synchronisations;
        table.push(Synchronisation { sid, nodes, cid: of });
        Ok(table.len() as u16 - 1)
    }

    /// The group of some logical destinations, their bits in it, and the identifier of the task on each.
    fn physical(&self, cid: u8, nodes: &[u16]) -> Result<(u8, u64, u8), Fault> {
        let table = &self.task(cid)?.nodes;
        let group_of = |to: &Destination| (u32::from(to.node) / GROUP, to.cid);
        let mut found = None;
        let mut bits = 0u64;
        for &logical in nodes {
            let to = table.get(usize::from(logical)).ok_or(Fault::OutsideNodeTable(logical))?;
            if *found.get_or_insert(group_of(to)) != group_of(to) {
                return Err(Fault::MixedDestinations);
            }
            bits |= 1 << (u32::from(to.node) % GROUP);
        }
        let (group, of) = found.ok_or(Fault::MixedDestinations)?;
        Ok((group as u8, bits, of))
    }

    /// The processor writes bytes for a task.
    ///
    /// # Errors
    /// As [`Task::translate`].
    pub fn store(&mut self, cid: u8, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        for (at, range) in pieces(address, bytes.len()) {
            let physical = self.task(cid)?.translate(at, true)?;
            self.memory.store(physical, &bytes[range]);
        }
        Ok(())
    }

    /// The processor reads bytes for a task.
    ///
    /// # Errors
    /// As [`Task::translate`].
    pub fn load(&self, cid: u8, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        for (at, range) in pieces(address, bytes.len()) {
            let physical = self.task(cid)?.translate(at, false)?;
            self.memory.read(physical, &mut bytes[range]);
        }
        Ok(())
    }

    /// The double word at a task's address.
    ///
    /// # Errors
    /// As [`Task::translate`].
    pub fn word(&self, cid: u8, address: u64) -> Result<u64, Fault> {
        Ok(self.memory.word(self.task(cid)?.translate(address, false)?))
    }

    /// What was refused here, in the order in which the operating system was told.
    pub fn faults(&self) -> impl Iterator<Item = Fault> + '_ {
        self.interrupts.iter().filter_map(|interrupt| match interrupt {
            Interrupt::SendFault(_, fault) | Interrupt::ReceiveFault(_, fault) => Some(*fault),
            _ => None,
        })
    }

    /// Tells the operating system.
    pub fn interrupt(&mut self, interrupt: Interrupt) {
        self.interrupts.push(interrupt);
    }

    /// What the Sender does with a header: it is checked, and its destination looked up.
    ///
    /// # Errors
    /// The header is impossible, or its destination outside the task's table.
    pub fn admit(&self, cid: u8, words: [u64; 4]) -> Result<Parcel, Fault> {
        let header = Header::decode(words)?;
        check(&header)?;
        let task = self.task(cid)?;
        if header.supervisor != task.supervisor {
            return Err(Fault::WrongMode);
        }
        let place = usize::from(header.destination);
        let target = match header.kind {
            Kind::Unicast => task.nodes.get(place).copied().map(Target::Unicast).ok_or(Fault::OutsideNodeTable(header.destination))?,
            Kind::Multicast => {
                task.multicasts.get(place).copied().map(Target::Multicast).ok_or(Fault::OutsideMulticastTable(header.destination))?
            }
            Kind::Synchronisation => {
                let entry = task.synchronisations.get(place).copied();
                entry.map(Target::Synchronisation).ok_or(Fault::OutsideSynchronisationTable(header.destination))?
            }
        };
        Ok(Parcel { target, cid, header, answer: None, sent: 0, last_line: None })
    }

    /// The parcel of an answer.
    pub fn answer(&self, reply: Reply) -> Parcel {
        let length = match reply.answer {
            Answer::Read { length, .. } => length,
            Answer::Swap { .. } | Answer::CompareSwap { .. } | Answer::Refused => 8,
        };
        let header = Header { reuse_line: true, ..Header::new(Protocol::RemoteDma, 0, length, [0; 3]) };
        Parcel { target: Target::Unicast(reply.to), cid: reply.cid, header, answer: Some(reply.answer), sent: 0, last_line: None }
    }

    /// Makes the next packet of a parcel.
    ///
    /// # Errors
    /// A source address is not the task's.
    pub fn next_packet(&mut self, parcel: &mut Parcel) -> Result<Made, Fault> {
        let from = Destination { node: self.number, cid: parcel.cid };
        let header = parcel.header;
        let to = parcel.target.cid();
        let packet = |operation, data, last| Packet {
            from,
            cid: to,
            operation,
            data,
            last,
            log: header.log && last,
            interrupt: header.interrupt && last,
        };
        let alone = |operation, data| Ok(Made { packet: packet(operation, data, true), reads: Vec::new(), tlb_misses: 0 });
        let [second, third, fourth] = header.words;
        let inline = second.to_le_bytes()[..header.length.min(8) as usize].to_vec();
        let id = header.remote_read_id;
        match (parcel.answer, header.protocol) {
            (Some(Answer::Refused), _) => {
                parcel.sent = header.length;
                alone(Operation::Refused, Vec::new())
            }
            (Some(Answer::Swap { destination, old }), _) => {
                parcel.sent = 8;
                alone(Operation::Swapped { address: destination }, old.to_le_bytes().to_vec())
            }
            (Some(Answer::CompareSwap { id, old, equal }), _) => {
                parcel.sent = 8;
                alone(Operation::Compared { old, equal, id }, old.to_le_bytes().to_vec())
            }
            (Some(Answer::Read { source, destination, length, id }), _) => {
                let (data, reads, tlb_misses) = self.read(parcel, source, destination)?;
                let address = destination + u64::from(parcel.sent);
                parcel.sent += data.len() as u32;
                let last = parcel.sent == length;
                Ok(Made { packet: packet(Operation::Answer { address, id }, data, last), reads, tlb_misses })
            }
            _ if header.kind == Kind::Synchronisation => {
                parcel.sent = header.length;
                alone(Operation::Synchronised, Vec::new())
            }
            (None, Protocol::AtomicAdd) => {
                parcel.sent = header.length;
                alone(Operation::AtomicAdd { address: second, addend: third }, third.to_le_bytes().to_vec())
            }
            (None, Protocol::RemoteRead) => {
                parcel.sent = header.length;
                let operation = Operation::Read { source: second, destination: third, length: header.length, id };
                alone(operation, vec![0; 16])
            }
            (None, Protocol::Swap) => {
                parcel.sent = header.length;
                alone(Operation::Swap { address: second, value: third, back: fourth }, vec![0; 16])
            }
            (None, Protocol::CompareSwap) => {
                parcel.sent = header.length;
                alone(Operation::CompareSwap { address: second, expected: third, value: fourth, id }, vec![0; 16])
            }
            (None, Protocol::RemoteDma | Protocol::AddressRegister(_) | Protocol::Message(_)) => {
                let sent = u64::from(parcel.sent);
                let (operation, destination) = match header.protocol {
                    Protocol::RemoteDma => (Operation::Write { address: third.wrapping_add(sent) }, third),
                    Protocol::AddressRegister(register) => (Operation::RegisterWrite { register, offset: sent }, 0),
                    Protocol::Message(buffer) => (Operation::Message { buffer }, 0),
                    _ => unreachable!("the outer arm names three protocols"),
                };
                if header.inline {
                    parcel.sent = header.length;
                    return alone(operation, inline);
                }
                let (data, reads, tlb_misses) = self.read(parcel, second, destination)?;
                parcel.sent += data.len() as u32;
                Ok(Made { packet: packet(operation, data, parcel.sent == header.length), reads, tlb_misses })
            }
        }
    }

    /// Reads the data of the next packet and counts the lines.
    fn read(&mut self, parcel: &mut Parcel, source: u64, destination: u64) -> Result<(Vec<u8>, Vec<LineRead>, u32), Fault> {
        let sent = u64::from(parcel.sent);
        let (from, to) = (source.wrapping_add(sent), destination.wrapping_add(sent));
        let left = parcel.header.length - parcel.sent;
        let mut data = vec![0; packet_length(from, to, left) as usize];
        if data.is_empty() {
            return Ok((data, Vec::new(), 0));
        }
        let physical = self.task(parcel.cid)?.reach(from, false)?;
        let misses = u32::from(parcel.cid != OPERATING_SYSTEM && !self.sender_tlb.access((parcel.cid, from / PAGE)));
        self.memory.read(physical, &mut data);
        // The interface reads double words; a source at an odd word takes one more.
        let (begin, end) = (physical / 8 * 8, (physical + data.len() as u64).div_ceil(8) * 8);
        let odd_by_one = from % 8 == 4 && from.wrapping_sub(destination.wrapping_add(sent)) % LINE == 4;
        let reusable = parcel.last_line.filter(|_| parcel.header.reuse_line && !odd_by_one);
        let mut reads = Vec::new();
        for line in begin / LINE..(end - 1) / LINE + 1 {
            let (first, beyond) = ((line * LINE).max(begin), ((line + 1) * LINE).min(end));
            let coherent = reusable != Some(line);
            let cached = coherent && self.memory.is_cached(line * LINE);
            reads.push(LineRead { coherent, cached, needed: ((beyond - first) / 8) as u32 });
        }
        parcel.last_line = Some((end - 1) / LINE);
        Ok((data, reads, misses))
    }

    /// What the Receiver will have to do for a packet; its translations are loaded.
    pub fn work(&mut self, packet: &Packet) -> Work {
        let bytes = packet.data.len() as u64;
        let mut work = Work { lines: 1, ..Work::default() };
        let buffers = self.task(packet.cid).map(|task| task.buffers).unwrap_or_default();
        let address = match packet.operation {
            Operation::Write { address } | Operation::Swapped { address } | Operation::Answer { address, .. } => Some(address),
            Operation::RegisterWrite { register, offset } => {
                buffers.registers.get(usize::from(register)).copied().flatten().map(|base| base.wrapping_add(offset))
            }
            Operation::Message { buffer } => buffers.messages.get(usize::from(buffer)).map(|ring| ring.base),
            Operation::AtomicAdd { address, .. } | Operation::Swap { address, .. } | Operation::CompareSwap { address, .. } => {
                work.atomic = true;
                Some(address)
            }
            Operation::Read { .. } | Operation::Compared { .. } | Operation::Refused | Operation::Synchronised => None,
        };
        if let Some(address) = address {
            let written = if work.atomic { 8 } else { bytes.max(1) };
            work.lines = (address % LINE + written).div_ceil(LINE) as u32;
            for (at, _) in pieces(address, written as usize) {
                work.tlb_misses += u32::from(packet.cid != OPERATING_SYSTEM && !self.receiver_tlb.access((packet.cid, at / PAGE)));
            }
        }
        work
    }

    /// The first address that a packet is to write and whose page is not in memory.
    pub fn missing(&self, packet: &Packet) -> Option<u64> {
        let task = self.task(packet.cid).ok()?;
        let address = match packet.operation {
            Operation::Write { address } | Operation::Swapped { address } | Operation::Answer { address, .. } => address,
            Operation::RegisterWrite { register, offset } => {
                task.buffers.registers.get(usize::from(register)).copied().flatten()?.wrapping_add(offset)
            }
            Operation::AtomicAdd { address, .. } | Operation::Swap { address, .. } | Operation::CompareSwap { address, .. } => address,
            // Message buffers, logs and tables stay in memory.
            Operation::Message { .. }
            | Operation::Read { .. }
            | Operation::Compared { .. }
            | Operation::Refused
            | Operation::Synchronised => return None,
        };
        let bytes = packet.data.len().max(1);
        pieces(address, bytes).map(|(at, _)| at).find(|&at| task.reach(at, true) == Err(Fault::Missing(at)))
    }

    /// What the Receiver does with a packet. Gives the answer to a request.
    ///
    /// # Errors
    /// The task is not here, or the addresses are not its own; nothing has changed then.
    pub fn receive(&mut self, packet: &Packet) -> Result<Option<Reply>, Fault> {
        let cid = packet.cid;
        self.task(cid)?;
        let answer = match packet.operation {
            Operation::Write { address } | Operation::Swapped { address } => {
                self.write(packet, address)?;
                None
            }
            Operation::RegisterWrite { register, offset } => {
                let base = self.task(cid)?.buffers.registers.get(usize::from(register)).copied().flatten();
                self.write(packet, base.ok_or(Fault::NoBuffer)?.wrapping_add(offset))?;
                None
            }
            Operation::Message { buffer } => {
                self.append(packet, buffer)?;
                None
            }
            Operation::AtomicAdd { address, addend } => {
                self.exchange(cid, address, |old| Some(old.wrapping_add(addend)))?;
                None
            }
            Operation::Read { source, destination, length, id } => Some(Answer::Read { source, destination, length, id }),
            Operation::Swap { address, value, back } => {
                let old = self.exchange(cid, address, |_| Some(value))?;
                Some(Answer::Swap { destination: back, old })
            }
            Operation::CompareSwap { address, expected, value, id } => {
                let old = self.exchange(cid, address, |old| (old == expected).then_some(value))?;
                Some(Answer::CompareSwap { id, old, equal: old == expected })
            }
            Operation::Answer { address, id } => {
                self.write(packet, address)?;
                if packet.last {
                    self.announce(cid, id, 0, true)?;
                }
                None
            }
            Operation::Compared { old, equal, id } => {
                self.announce(cid, id, old, equal)?;
                None
            }
            Operation::Refused => None,
            Operation::Synchronised => {
                self.log(packet, 0)?;
                None
            }
        };
        if packet.interrupt {
            self.interrupt(Interrupt::Received(cid));
        }
        Ok(answer.map(|answer| Reply { to: packet.from, cid, answer }))
    }

    /// The answer to a request that was refused, so that who asked does not wait for ever; `None` if the packet is no request.
    pub fn refusal(packet: &Packet) -> Option<Reply> {
        let asks = matches!(packet.operation, Operation::Read { .. } | Operation::Swap { .. } | Operation::CompareSwap { .. });
        asks.then_some(Reply { to: packet.from, cid: packet.cid, answer: Answer::Refused })
    }

    fn write(&mut self, packet: &Packet, address: u64) -> Result<(), Fault> {
        let task = self.task(packet.cid)?;
        let mut places = Vec::with_capacity(2);
        for (at, range) in pieces(address, packet.data.len()) {
            places.push((task.translate(at, true)?, range));
        }
        for (physical, range) in places {
            self.memory.write(physical, &packet.data[range]);
        }
        if packet.log { self.log(packet, address) } else { Ok(()) }
    }

    fn append(&mut self, packet: &Packet, buffer: u8) -> Result<(), Fault> {
        let place = usize::from(buffer);
        let bytes = (packet.data.len() as u64).div_ceil(LINE) * LINE;
        let mut ring = *self.task(packet.cid)?.buffers.messages.get(place).ok_or(Fault::NoBuffer)?;
        let (address, quarter) = ring.take(bytes)?;
        self.write(packet, address)?;
        self.task_mut(packet.cid)?.buffers.messages[place] = ring;
        if let Some(quarter) = quarter {
            self.interrupt(Interrupt::MessageQuarter(packet.cid, buffer, quarter));
        }
        Ok(())
    }

    /// Does a packet answer a request of the node at which it arrives, whatever becomes of it?
    pub fn ends_request(packet: &Packet) -> bool {
        match packet.operation {
            Operation::Answer { .. } => packet.last,
            Operation::Swapped { .. } | Operation::Compared { .. } | Operation::Refused => true,
            _ => false,
        }
    }

    /// Replaces a double word by what `change` says, if it says anything; returns the old value.
    fn exchange(&mut self, cid: u8, address: u64, change: impl Fn(u64) -> Option<u64>) -> Result<u64, Fault> {
        if !address.is_multiple_of(8) {
            return Err(Fault::Misaligned(address));
        }
        let physical = self.task(cid)?.translate(address, true)?;
        let old = self.memory.word(physical);
        if let Some(new) = change(old) {
            self.memory.write(physical, &new.to_le_bytes());
        }
        Ok(old)
    }

    /// Writes a value and 1 (or 3 for a comparison that held) where the task waits for the answer to a request.
    fn announce(&mut self, cid: u8, id: u8, value: u64, equal: bool) -> Result<(), Fault> {
        let task = self.task(cid)?;
        let base = task.buffers.remote_reads.ok_or(Fault::NoBuffer)?;
        let physical = task.translate(base.wrapping_add(16 * u64::from(id)), true)?;
        self.memory.write(physical, &value.to_le_bytes());
        self.memory.write(physical + 8, &(if equal { 3u64 } else { 1 }).to_le_bytes());
        Ok(())
    }

    /// Logs what kind of packet came from where, and where its data went.
    fn log(&mut self, packet: &Packet, address: u64) -> Result<(), Fault> {
        let task = self.task(packet.cid)?;
        let mut ring = task.buffers.log;
        let (at, quarter) = ring.take(LOG_ENTRY)?;
        let physical = task.translate(at, true)?;
        let kind = match packet.operation {
            Operation::Synchronised => 2u64,
            Operation::Message { .. } => 1,
            _ => 0,
        };
        let first = kind << 32 | u64::from(packet.from.node) << 8 | u64::from(packet.from.cid);
        self.memory.write(physical, &first.to_le_bytes());
        self.memory.write(physical + 8, &address.to_le_bytes());
        self.task_mut(packet.cid)?.buffers.log = ring;
        if let Some(quarter) = quarter {
            self.interrupt(Interrupt::LogQuarter(packet.cid, quarter));
        }
        Ok(())
    }
}

impl Parcel {
    /// Has its last packet been made?
    pub fn is_sent(&self) -> bool {
        self.sent >= self.header.length
    }

    /// Has no packet of it been made?
    pub fn is_new(&self) -> bool {
        self.sent == 0
    }

    /// Bytes of data of its next packet, which follow from its header.
    pub fn next_bytes(&self) -> u32 {
        let [second, third, _] = self.header.words;
        let part = |source: u64, destination: u64| {
            let sent = u64::from(self.sent);
            packet_length(source.wrapping_add(sent), destination.wrapping_add(sent), self.header.length - self.sent)
        };
        match (self.answer, self.header.protocol) {
            (Some(Answer::Refused), _) => 0,
            (Some(Answer::Swap { .. } | Answer::CompareSwap { .. }), _) => 8,
            (Some(Answer::Read { source, destination, .. }), _) => part(source, destination),
            _ if self.header.kind == Kind::Synchronisation => 0,
            (None, Protocol::AtomicAdd) => 8,
            (None, Protocol::RemoteRead | Protocol::Swap | Protocol::CompareSwap) => 16,
            (None, _) if self.header.inline => self.header.length.min(8),
            (None, Protocol::RemoteDma) => part(second, third),
            (None, Protocol::AddressRegister(_) | Protocol::Message(_)) => part(second, 0),
        }
    }

    /// Turns an answer whose data cannot be read into a refusal. Is there anything to be sent now?
    pub fn refuse(&mut self) -> bool {
        let is_answer = self.answer.is_some_and(|answer| answer != Answer::Refused);
        if is_answer {
            (self.answer, self.sent) = (Some(Answer::Refused), 0);
        }
        is_answer
    }

    /// The task that sends it.
    pub fn cid(&self) -> u8 {
        self.cid
    }

    /// Does the destination send something back for which the Sender keeps a place?
    pub fn is_answered(&self) -> bool {
        self.answer.is_none() && self.header.kind != Kind::Synchronisation && self.header.protocol.is_answered()
    }

    /// Tells the task that all has been sent, if it asked for that.
    ///
    /// # Errors
    /// The address is not the task's.
    pub fn notify(&self, node: &mut Node) -> Result<bool, Fault> {
        let takes_fourth = matches!(self.header.protocol, Protocol::Swap | Protocol::CompareSwap);
        if !self.header.notify || takes_fourth || self.answer.is_some() {
            return Ok(false);
        }
        let address = self.header.words[2];
        if !address.is_multiple_of(8) {
            return Err(Fault::Misaligned(address));
        }
        let physical = node.task(self.cid)?.translate(address, true)?;
        node.memory.write(physical, &SENT.to_le_bytes());
        Ok(true)
    }
}

/// What can be seen to be wrong in a header alone.
fn check(header: &Header) -> Result<(), Fault> {
    let aligned = |address: u64, to: u64| if address.is_multiple_of(to) { Ok(()) } else { Err(Fault::Misaligned(address)) };
    if header.kind == Kind::Synchronisation {
        return Ok(());
    }
    if header.kind == Kind::Multicast && header.protocol.is_answered() {
        return Err(Fault::BadHeader);
    }
    let most = if header.inline || !(header.protocol.has_data() || header.protocol == Protocol::RemoteRead) { 8 } else { MAX_PARCEL };
    if header.length > most {
        return Err(Fault::TooLong(header.length));
    }
    match header.protocol {
        Protocol::RemoteDma if header.inline => {
            aligned(header.words[1], 4)?;
            // One packet crosses no page.
            if header.words[1] % PAGE + u64::from(header.length) > PAGE { Err(Fault::Misaligned(header.words[1])) } else { Ok(()) }
        }
        Protocol::RemoteDma | Protocol::RemoteRead => aligned(header.words[0], 4).and(aligned(header.words[1], 8)),
        Protocol::AddressRegister(_) | Protocol::Message(_) if !header.inline => aligned(header.words[0], 4),
        _ => Ok(()),
    }
}

/// The parts of some bytes in each page: the address and the range of bytes.
fn pieces(address: u64, length: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= length {
            return None;
        }
        let at = address.wrapping_add(done as u64);
        let end = (done + (PAGE - at % PAGE) as usize).min(length);
        let range = done..end;
        done = end;
        Some((at, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        let mut node = Node::new(3, 4);
        let nodes = (0..200).map(|node| Destination { node, cid: 1 + u8::from(node % 50 == 49) }).collect();
        node.create_task(7).nodes = nodes;
        node
    }

    #[test]
    fn a_fifth_segment_is_an_error() {
        let mut node = node();
        for segment in 0..4 {
            assert_eq!(node.map(7, segment * 16 * PAGE, PAGE, true), Ok(()));
        }
        assert_eq!(node.map(7, 64 * PAGE, PAGE, true), Err(Fault::TooManySegments));
        assert_eq!(node.map(8, 64 * PAGE, PAGE, true), Ok(()), "another task has segments of its own");
        assert_eq!(node.store(7, 64 * PAGE, &[1]), Err(Fault::Unmapped(64 * PAGE)));
    }

    #[test]
    fn what_is_registered_from_logical_numbers_is_known_by_its_offset() {
        let mut node = node();
        assert_eq!(node.register_multicast(7, &[64, 66, 127]), Ok(0));
        assert_eq!(node.register_multicast(7, &[49]), Ok(1));
        let table = &node.task(7).unwrap().multicasts;
        assert_eq!(table[0], Multicast { group: 1, nodes: 0b101 | 1 << 63, cid: 1 });
        assert_eq!(table[1], Multicast { group: 0, nodes: 1 << 49, cid: 2 });
        assert_eq!(node.register_synchronisation(7, 5, &[0, 3]), Ok(0));
        assert_eq!(node.task(7).unwrap().synchronisations[0], Synchronisation { sid: 5, nodes: 0b1001, cid: 1 });
        for (wrong, fault) in [
            (vec![63, 64], Fault::MixedDestinations),
            (vec![48, 49], Fault::MixedDestinations),
            (vec![], Fault::MixedDestinations),
            (vec![1, 200], Fault::OutsideNodeTable(200)),
        ] {
            assert_eq!(node.register_multicast(7, &wrong), Err(fault));
            assert_eq!(node.register_synchronisation(7, 1, &wrong), Err(fault));
        }
        assert_eq!(node.register_synchronisation(7, 1, &[64, 65]), Err(Fault::MixedDestinations), "only the first 64 nodes synchronise");
        assert_eq!(node.register_synchronisation(7, 128, &[0]), Err(Fault::OutsideSynchronisationTable(128)));
        assert_eq!(node.task(7).unwrap().multicasts.len(), 2, "what is refused is not entered");
    }
}
