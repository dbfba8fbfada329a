//! Programs go on, step by step, on the processors of a node.

use super::event::{Event, picoseconds};
use super::simulation::{Simulation, Station};
use crate::crosspoint::Time;
use kasuri_model::engine::EngineError;
use kasuri_workload::endpoint::cenju4::fault::{Fault, Interrupt};
use kasuri_workload::endpoint::cenju4::memory::LINE;
use kasuri_workload::endpoint::cenju4::script::{Op, sequence};

/// What comes after an operation.
enum Then {
    /// The next one at once.
    Next,
    /// The next one after this time.
    After(Time),
    /// The same one again when something has happened.
    Wait,
}

impl Station {
    /// Has the operating system been told of packets that could not be used? It stops a program that finds their data missing.
    fn lacks_packets(&self) -> bool {
        self.node.interrupts.iter().any(|interrupt| matches!(interrupt, Interrupt::Damaged(_)))
    }
}

impl Simulation<'_> {
    /// Runs a program until it has to wait.
    pub(super) fn proceed(&mut self, node: u32, task: u32) -> Result<(), EngineError> {
        let machine = self.machine;
        let program = &machine.programs[node as usize][task as usize];
        loop {
            let processor = &mut self.stations[node as usize].processors[task as usize];
            let Some(op) = program.ops.get(processor.next) else {
                if processor.ended.is_none() {
                    processor.ended = Some(self.now);
                    self.unfinished -= 1;
                }
                return Ok(());
            };
            let then = self.execute(node, task, op).map_err(|what| EngineError::Program { node, what })?;
            let processor = &mut self.stations[node as usize].processors[task as usize];
            match then {
                Then::Next => processor.next += 1,
                Then::After(time) => {
                    processor.next += 1;
                    self.schedule(self.now + time, Event::Processor { node, task });
                    return Ok(());
                }
                Then::Wait => return Ok(()),
            }
        }
    }

    fn execute(&mut self, node: u32, task: u32, op: &Op) -> Result<Then, String> {
        let station = &mut self.stations[node as usize];
        let cid = station.processors[task as usize].cid;
        let fault = |fault: Fault| fault.to_string();
        match *op {
            Op::CheckFaults { ref faults } => {
                let mut missing = faults.clone();
                for found in station.node.faults() {
                    let place = missing.iter().position(|fault| *fault == found);
                    missing.swap_remove(place.ok_or_else(|| format!("an unexpected fault was reported: {found}"))?);
                }
                if let Some(fault) = missing.first() {
                    return Err(format!("a fault was not reported: {fault}"));
                }
            }
            Op::Busy { ns } => return Ok(Then::After(picoseconds(ns))),
            Op::Post { words, inline_from } => return self.write_header(node, task, words, inline_from),
            Op::Fill { address, bytes, seed } => station.node.store(cid, address, &sequence(seed, bytes)).map_err(fault)?,
            Op::Check { address, bytes, seed } => {
                let mut found = vec![0; bytes as usize];
                station.node.load(cid, address, &mut found).map_err(fault)?;
                if let Some(at) = found.iter().zip(sequence(seed, bytes)).position(|(found, expected)| *found != expected) {
                    if station.lacks_packets() {
                        return Ok(Then::Wait);
                    }
                    return Err(format!("byte {at} of {bytes} at address {address:#x} is not what was sent"));
                }
            }
            Op::CheckWord { address, value } => {
                let found = station.node.word(cid, address).map_err(fault)?;
                if found != value {
                    if station.lacks_packets() {
                        return Ok(Then::Wait);
                    }
                    return Err(format!("the double word at address {address:#x} is {found}; it should be {value}"));
                }
            }
            Op::CopyWords { from, to, bytes } => {
                let mut data = vec![0; bytes as usize];
                station.node.load(cid, from, &mut data).map_err(fault)?;
                station.node.store(cid, to, &data).map_err(fault)?;
                return Ok(Then::After(bytes.div_ceil(4) * self.times.word_copy));
            }
            Op::Flush { address, bytes } => {
                for line in address / LINE..(address + bytes).div_ceil(LINE) {
                    let physical = station.node.task(cid).and_then(|task| task.translate(line * LINE, false)).map_err(fault)?;
                    station.node.memory.flush(physical);
                }
            }
            Op::RegisterMulticast { ref nodes } => {
                station.node.register_multicast(cid, nodes).map_err(fault)?;
                return Ok(Then::After(self.times.registration()));
            }
            Op::RegisterSynchronisation { sid, ref nodes } => {
                station.node.register_synchronisation(cid, sid, nodes).map_err(fault)?;
                return Ok(Then::After(self.times.registration()));
            }
            Op::SetRegister { register, address } => {
                let registers = &mut station.node.task_mut(cid).map_err(fault)?.buffers.registers;
                if let Some(register) = registers.get_mut(usize::from(register)) {
                    *register = Some(address);
                }
            }
            Op::Stamp => station.processors[task as usize].stamps.push(self.now),
            Op::AwaitLog { .. } | Op::AwaitMessages { .. } | Op::AwaitWord { .. } | Op::AwaitFaults { .. } => {
                if self.holds(node, cid, op).map_err(fault)? {
                    return Ok(Then::After(self.times.poll));
                }
                self.stations[node as usize].processors[task as usize].waiting = true;
                return Ok(Then::Wait);
            }
        }
        Ok(Then::Next)
    }

    /// Has come what a program waits for?
    fn holds(&self, node: u32, cid: u8, op: &Op) -> Result<bool, Fault> {
        let node = &self.stations[node as usize].node;
        let buffers = &node.task(cid)?.buffers;
        Ok(match *op {
            Op::AwaitLog { entries } => buffers.log.written >= entries * kasuri_workload::endpoint::cenju4::task::LOG_ENTRY,
            Op::AwaitMessages { buffer, bytes } => buffers.messages.get(usize::from(buffer)).is_some_and(|ring| ring.written >= bytes),
            Op::AwaitWord { address, least } => node.word(cid, address)? >= least,
            Op::AwaitFaults { count } => node.faults().count() >= count,
            _ => true,
        })
    }

    /// (1) The header is written when the write to the queue's pointer has ended.
    fn write_header(&mut self, node: u32, task: u32, words: [u64; 4], inline_from: Option<(u64, u32)>) -> Result<Then, String> {
        let station = &mut self.stations[node as usize];
        let processor = &mut station.processors[task as usize];
        let (words, number) = match processor.posting.take() {
            Some(posting) => posting,
            None => {
                let mut words = words;
                if let Some((address, bytes)) = inline_from {
                    let mut data = [0; 8];
                    let part = &mut data[..bytes.min(8) as usize];
                    station.node.load(processor.cid, address, part).map_err(|fault| fault.to_string())?;
                    words[1] = u64::from_le_bytes(data);
                }
                let number = self.parcels;
                self.parcels += 1;
                processor.posting = Some((words, number));
                let (begin, end) = (self.now, self.now + self.times.pointer);
                self.note("(1) header written to the queue", node, "processor", number, begin, end);
                self.schedule(end, Event::Processor { node, task });
                return Ok(Then::Wait);
            }
        };
        if !station.sender.has_room(task as usize) {
            processor.posting = Some((words, number));
            station.sender.blocked[task as usize] = true;
            return Ok(Then::Wait);
        }
        self.post(node, task as usize, words, number);
        Ok(Then::Next)
    }

    /// Something has changed in a node's memory: programs that poll look again.
    pub(super) fn wake(&mut self, node: u32) {
        let machine = self.machine;
        for (task, program) in machine.programs[node as usize].iter().enumerate() {
            let processor = &self.stations[node as usize].processors[task];
            let Some(op) = program.ops.get(processor.next).filter(|_| processor.waiting) else { continue };
            // The address was found to be right when the program began to wait.
            if self.holds(node, processor.cid, op).unwrap_or(false) {
                let processor = &mut self.stations[node as usize].processors[task];
                processor.waiting = false;
                processor.next += 1;
                let looks = self.now.max(processor.serves_until);
                self.schedule(looks + self.times.poll, Event::Processor { node, task: task as u32 });
            }
        }
    }
}
