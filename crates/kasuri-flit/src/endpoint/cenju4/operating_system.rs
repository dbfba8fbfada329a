//! The operating system of a node: it serves interrupts, which cost its processor time, and brings pages that are not in memory.

use super::event::Event;
use super::simulation::Simulation;
use kasuri_model::engine::EngineError;
use kasuri_workload::endpoint::cenju4::fault::{Cause, Interrupt};

impl Simulation<'_> {
    /// Has the interface stopped at a page? The operating system is told, and will have brought it after its time.
    pub(super) fn page_fault(&mut self, node: u32, parcel: u64, cid: u8, address: u64, receiver: bool) {
        self.systems.done.page_faults += 1;
        self.interrupt(node, Interrupt::PageFault(cid, address));
        let end = self.now + self.times.page_fault;
        self.note("page fault", node, "operating system", parcel, self.now, end);
        self.schedule(end, Event::Page { node, cid, address, receiver });
    }

    /// A page is in memory: what has stopped at it goes on.
    pub(super) fn page_is_there(&mut self, node: u32, cid: u8, address: u64, receiver: bool) {
        let station = &mut self.stations[node as usize];
        if let Ok(task) = station.node.task_mut(cid) {
            task.set_present(address, true);
        }
        if receiver {
            self.write(node);
        } else {
            station.sender.go_on(cid, address);
            self.make_packet(node);
        }
    }

    /// Tells the operating system of a node something.
    pub(super) fn interrupt(&mut self, node: u32, interrupt: Interrupt) {
        self.stations[node as usize].node.interrupt(interrupt);
        self.systems.interrupted.push(node);
    }

    /// Takes the time of the interrupts that have come from the processors of their nodes, unless they are masked.
    pub(super) fn serve_interrupts(&mut self) {
        let mut nodes = std::mem::take(&mut self.systems.interrupted);
        for node in nodes.drain(..) {
            let station = &mut self.stations[node as usize];
            let masked = &self.machine.constants.masked_interrupts;
            let new = &station.node.interrupts[station.served..];
            // That a Sender is empty matters only if a task waits for it; then it is the beginning of a switch.
            let reaches = |interrupt: &&Interrupt| interrupt.cause() != Cause::SenderEmpty && !masked.contains(&interrupt.cause());
            let count = new.iter().filter(reaches).count() as u64;
            self.systems.done.interrupts += count;
            self.systems.done.masked += new.len() as u64 - count;
            station.served = station.node.interrupts.len();
            self.steal(node, count);
        }
        self.systems.interrupted = nodes;
    }

    /// The processor of a node serves so many interrupts.
    fn steal(&mut self, node: u32, interrupts: u64) {
        let lasts = interrupts * self.times.interrupt;
        let processors = &mut self.stations[node as usize].processors;
        processors.iter_mut().for_each(|processor| processor.steal(self.now, lasts));
    }

    /// A header queue is empty and its last packet has left, while another task waits for control registers: it gets them after the interrupt.
    pub(super) fn begin_switch(&mut self, node: u32, set: u32) {
        self.systems.done.interrupts += 1;
        self.systems.done.task_switches += 1;
        self.steal(node, 1);
        self.schedule(self.now + self.times.interrupt, Event::Switch { node, set });
    }

    /// A processor goes on with its program, when it has served the interrupts that came meanwhile.
    pub(super) fn resume(&mut self, node: u32, task: u32) -> Result<(), EngineError> {
        match self.stations[node as usize].processors[task as usize].take_stolen() {
            0 => self.proceed(node, task),
            stolen => {
                self.schedule(self.now + stolen, Event::Processor { node, task });
                Ok(())
            }
        }
    }
}
