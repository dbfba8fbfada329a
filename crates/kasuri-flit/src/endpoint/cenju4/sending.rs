//! The Sender at work: it chooses among registers, reads headers and makes packets.

use super::event::{Event, Load};
use super::sender::{HEADER_WORDS, Header, Outgoing, Queued, Register};
use super::simulation::Simulation;
use crate::crosspoint::{Target as Destination, Time};
use kasuri_workload::endpoint::cenju4::fault::{Fault, Interrupt};
use kasuri_workload::endpoint::cenju4::node::{Made, Reply, Target};
use kasuri_workload::endpoint::cenju4::task::OPERATING_SYSTEM;
use std::rc::Rc;

impl Simulation<'_> {
    /// (1) A task has written a header and moved its queue's pointer.
    pub(super) fn post(&mut self, node: u32, task: usize, words: [u64; 4], parcel: u64) {
        self.stations[node as usize].sender.queues[task].push_back(Queued { header: words, parcel });
        self.lend_registers(node);
        self.read_header(node);
    }

    /// The Receiver puts an answer into the header queue for answers.
    pub(super) fn answer(&mut self, node: u32, reply: Reply, parcel: u64) {
        self.stations[node as usize].sender.answers.push_back(Queued { header: reply, parcel });
        self.read_header(node);
    }

    /// (2) The next header is read, if a register is free for it.
    fn read_header(&mut self, node: u32) {
        let station = &mut self.stations[node as usize];
        let sender = &mut station.sender;
        if sender.reading.is_some() || sender.registers.len() >= sender.limits.registers {
            return;
        }
        let processors = &station.processors;
        let Some(queued) = sender.next_header(|task| processors[task].cid()) else { return };
        let beats = HEADER_WORDS * self.times.beat;
        let lasts = match queued.header {
            // The processor has just written it: it is in the cache.
            Header::User { cid: OPERATING_SYSTEM, .. } => self.times.cache + beats,
            Header::User { .. } => self.times.cache + beats + self.times.node_table,
            Header::Answer(_) => self.times.memory + beats,
        };
        let unblocked = match queued.header {
            Header::User { task, .. } if std::mem::take(&mut sender.blocked[task]) => Some(task),
            _ => None,
        };
        let parcel = queued.parcel;
        sender.reading = Some(queued);
        self.note("(2) RHM reads the header", node, "Sender RHM", parcel, self.now, self.now + lasts);
        self.schedule(self.now + lasts, Event::HeaderRead { node });
        if let Some(task) = unblocked {
            self.schedule(self.now, Event::Processor { node, task: task as u32 });
        }
    }

    /// A header has been read and checked: it fills a register, or the operating system is told why not.
    pub(super) fn header_read(&mut self, node: u32) {
        let station = &mut self.stations[node as usize];
        let Some(Queued { header, parcel: number }) = station.sender.reading.take() else { return };
        let (parcel, task, cid) = match header {
            Header::Answer(reply) => (Ok(station.node.answer(reply)), None, 0),
            Header::User { task, cid, words } => (station.node.admit(cid, words), Some(task), cid),
        };
        match parcel {
            Ok(parcel) => {
                let destination = destination(&parcel.target);
                let sender = &mut station.sender;
                sender.filled += 1;
                let register = Register { parcel, number, task, rank: sender.filled, destination, created: self.now, missing: None };
                sender.registers.push_back(register);
                self.make_packet(node);
            }
            Err(fault) => {
                self.interrupt(node, Interrupt::SendFault(cid, fault));
                self.end_parcel(node, task);
                self.wake(node);
            }
        }
        self.read_header(node);
    }

    /// (3), (4) When it is idle, the module that makes packets chooses a register and makes its next packet. Before that there is none of it.
    pub(super) fn make_packet(&mut self, node: u32) {
        while !self.stations[node as usize].sender.making {
            let Some(place) = self.choose(node) else { return };
            match self.begin_packet(node, place) {
                Ok(()) => return,
                // The parcel stops, and others go on.
                Err(Fault::Missing(address)) => {
                    let register = &mut self.stations[node as usize].sender.registers[place];
                    register.missing = Some(address);
                    let (parcel, cid) = (register.number, register.parcel.cid());
                    self.page_fault(node, parcel, cid, address, false);
                }
                Err(fault) => {
                    let cid = self.stations[node as usize].sender.registers[place].parcel.cid();
                    self.interrupt(node, Interrupt::SendFault(cid, fault));
                    let station = &mut self.stations[node as usize];
                    if !station.sender.registers[place].parcel.refuse() {
                        let register = station.sender.registers.remove(place);
                        self.end_parcel(node, register.and_then(|register| register.task));
                        self.wake(node);
                        self.read_header(node);
                    }
                }
            }
        }
    }

    /// The first register whose packet finds room, both in the FIFO memory to the network and in the queues of the first router that its port
    /// bits name, apart from what was promised to packets under way. Parcels to a common node stay in order.
    fn choose(&self, node: u32) -> Option<usize> {
        let sender = &self.stations[node as usize].sender;
        sender.in_order().find(|&place| {
            let register = &sender.registers[place];
            let destination = register.destination;
            let in_turn = !sender.registers.iter().take(place).any(|older| older.destination.meets(destination));
            let waits = register.parcel.is_answered() && register.parcel.is_new() && sender.outstanding >= sender.limits.outstanding;
            let flits = self.machine.constants.packet_flits(register.parcel.next_bytes());
            in_turn && !waits && register.missing.is_none() && self.network.can_promise(node, destination, flits)
        })
    }

    fn begin_packet(&mut self, node: u32, place: usize) -> Result<(), Fault> {
        let now = self.now;
        let station = &mut self.stations[node as usize];
        let register = &mut station.sender.registers[place];
        let sid = match register.destination {
            Destination::Synchronisation { sid, .. } => Some(sid),
            _ => None,
        };
        if let Some(sid) = sid {
            if station.sender.synchronising & 1 << sid != 0 {
                return Err(Fault::Synchronising(sid));
            }
            station.sender.synchronising |= 1 << sid;
        }
        if register.parcel.is_answered() && register.parcel.is_new() {
            station.sender.outstanding += 1;
        }
        let bytes = register.parcel.next_bytes();
        let made = station.node.next_packet(&mut register.parcel)?;
        debug_assert_eq!(made.packet.data.len() as u32, bytes, "room was found for another packet");
        let load = Load { packet: Rc::new(made.packet.clone()), parcel: register.number, created: register.created, sid };
        let flits = self.machine.constants.packet_flits(made.packet.data.len() as u32);
        register.created = now;
        let (number, last, destination) = (register.number, register.parcel.is_sent(), register.destination);
        let outgoing = Outgoing { task: register.task, ends: last.then_some(register.parcel) };
        station.sender.chosen = register.rank;
        station.sender.outgoing.push_back(outgoing);
        station.sender.made = Some((load, destination, flits));
        station.sender.making = true;
        self.network.promise(node, destination, flits);
        let (complete, idle) = self.read_data(node, &made, number);
        if last {
            self.finish(node, place);
        }
        self.schedule(complete, Event::Made { node });
        self.schedule(idle, Event::Idle { node });
        Ok(())
    }

    /// (4a), (4b) The lines are read one after the other, beside the making of the packet's header. Gives when the packet is whole, and
    /// when the module is idle.
    fn read_data(&mut self, node: u32, made: &Made, parcel: u64) -> (Time, Time) {
        let translated = self.now + self.times.table_walks(made.tlb_misses);
        let header = translated + self.times.packet;
        self.note("(3) SPM makes the packet header", node, "Sender SPM", parcel, self.now, header);
        let (mut time, mut complete) = (translated, header);
        for read in &made.reads {
            let access = match (read.coherent, read.cached) {
                (true, true) => self.times.cache,
                (true, false) => self.times.snoop + self.times.memory,
                (false, _) => self.times.memory,
            };
            let name = if read.cached { "(4b) data from the cache" } else { "(4a) data from main memory" };
            let end = time + access + kasuri_workload::endpoint::cenju4::memory::LINE / 8 * self.times.beat;
            complete = complete.max(time + access + u64::from(read.needed) * self.times.beat);
            self.note(name, node, "memory", parcel, time, end);
            time = end;
        }
        (complete, time.max(complete))
    }

    /// The last packet of a parcel is being made: its register is free.
    fn finish(&mut self, node: u32, place: usize) {
        self.stations[node as usize].sender.registers.remove(place);
        self.read_header(node);
    }

    /// A packet goes into the FIFO memory to the network.
    pub(super) fn made(&mut self, node: u32) {
        let Some((load, destination, flits)) = self.stations[node as usize].sender.made.take() else { return };
        self.network.inject(node, destination, flits, load, self.now);
    }

    /// The module that makes packets is idle.
    pub(super) fn idle(&mut self, node: u32) {
        self.stations[node as usize].sender.making = false;
        self.make_packet(node);
    }

    /// A request of a node has been answered, or a synchronisation has ended.
    pub(super) fn answered(&mut self, node: u32, synchronisation: Option<u8>) {
        let sender = &mut self.stations[node as usize].sender;
        match synchronisation {
            Some(sid) => sender.synchronising &= !(1 << sid),
            None => sender.outstanding = sender.outstanding.saturating_sub(1),
        }
        self.make_packet(node);
    }

    /// The tail of a packet has left: there is room for another one. After the last one of its parcel the task is told, if it asked for that.
    pub(super) fn gone(&mut self, node: u32) {
        let station = &mut self.stations[node as usize];
        let Some(Outgoing { task, ends }) = station.sender.outgoing.pop_front() else { return };
        if let Some(parcel) = ends {
            if let Err(fault) = parcel.notify(&mut station.node) {
                self.interrupt(node, Interrupt::SendFault(parcel.cid(), fault));
            }
            self.wake(node);
        }
        self.end_parcel(node, task);
        self.make_packet(node);
    }

    /// A packet has left, or a parcel was refused. If its task has nothing left, another one that waits may have its set of control registers.
    fn end_parcel(&mut self, node: u32, task: Option<usize>) {
        let Some(task) = task else { return };
        let station = &mut self.stations[node as usize];
        if station.sender.is_drained(task) {
            let cid = station.processors[task].cid();
            self.interrupt(node, Interrupt::QueueDrained(cid));
            self.lend_registers(node);
        }
    }

    /// The operating system begins to give sets of control registers whose tasks have nothing to send to tasks that have.
    fn lend_registers(&mut self, node: u32) {
        let sender = &mut self.stations[node as usize].sender;
        let drained = (0..sender.controls.sets.len()).find(|&set| sender.controls.sets[set].is_some_and(|task| sender.is_drained(task)));
        if let (Some(_), Some(set)) = (sender.task_without_registers(), drained) {
            sender.controls.sets[set] = None;
            self.begin_switch(node, set as u32);
        }
    }

    /// The operating system has given a set to the task that has waited.
    pub(super) fn switch_task(&mut self, node: u32, set: u32) {
        let sender = &mut self.stations[node as usize].sender;
        let other =
            (0..sender.queues.len()).find(|&task| sender.controls.system != Some(task) && !sender.controls.sets.contains(&Some(task)));
        sender.controls.sets[set as usize] = sender.task_without_registers().or(other);
        self.read_header(node);
        self.lend_registers(node);
    }
}

fn destination(target: &Target) -> Destination {
    match target {
        Target::Unicast(to) => Destination::Unicast(u32::from(to.node)),
        Target::Multicast(to) => Destination::Multicast { group: to.group, terminals: to.nodes },
        Target::Synchronisation(to) => Destination::Synchronisation { sid: to.sid, terminals: to.nodes },
    }
}
