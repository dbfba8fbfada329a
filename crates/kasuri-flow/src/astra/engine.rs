//! The state of a run, and its loop.

use super::calendar::{Calendar, Event};
use super::messages::Message;
use super::wires::Wires;
use super::{Backend, Input};
use kasuri_workload::execution::npus::{Done, Item, Npus, Outside, Sending};
use kasuri_workload::execution::trace::MAX_NS;
use std::collections::VecDeque;

/// All that an NPU has set itself for one time.
#[derive(Debug)]
struct Batch {
    time: u64,
    items: Vec<Item>,
}

/// Time and network by ASTRA-sim's rules.
///
/// Many fields, because they are the whole state of a run but for the NPUs'.
#[derive(Debug)]
pub(super) struct Clockwork<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) npu_count: u32,
    /// NPU 0 stands for all.
    pub(super) alike: bool,
    pub(super) calendar: Calendar,
    pub(super) wires: Wires,
    pub(super) messages: Vec<Message>,
    pub(super) free_messages: Vec<u32>,
    /// What each NPU has set itself, by time.
    batches: Vec<VecDeque<Batch>>,
    /// Receives that end in this nanosecond.
    late: Vec<(u32, Done)>,
    finished: Vec<Option<u64>>,
    spare: Vec<Vec<Item>>,
    problem: Option<String>,
}

/// Runs to the end: when each NPU has finished.
pub(super) fn run(input: &Input<'_>, alike: bool) -> Result<Vec<u64>, String> {
    let npu_count = input.job.cluster.npus();
    let own = if alike { 1 } else { npu_count };
    let clockwork = Clockwork {
        input,
        npu_count,
        alike,
        calendar: Calendar::new(),
        wires: Wires::new(input.job.cluster, input.backend, alike)?,
        messages: Vec::new(),
        free_messages: Vec::new(),
        batches: (0..own).map(|_| VecDeque::new()).collect(),
        late: Vec::new(),
        finished: vec![None; own as usize],
        spare: Vec::new(),
        problem: None,
    };
    let mut npus = Npus::new(input.job, own, clockwork)?;
    npus.start();
    while npus.problem().is_none() && npus.outside.problem.is_none() {
        let Some(event) = npus.outside.calendar.next() else { break };
        match event {
            Event::Batch(npu) => do_batch(&mut npus, npu),
            Event::Arrival(message) => arrive(&mut npus, message),
            Event::Free(link) => npus.outside.free(link),
            Event::Received(place) => {
                let (npu, done) = npus.outside.take_late(place);
                npus.tell(npu, done);
            }
        }
    }
    if let Some(problem) = npus.outside.problem.as_deref().or(npus.problem()) {
        return Err(problem.to_owned());
    }
    if let Some(unfinished) = npus.unfinished() {
        return Err(format!("{unfinished}; ASTRA-sim says nothing about it"));
    }
    Ok(npus.outside.finished.into_iter().flatten().collect())
}

/// Does what an NPU has set itself for now, and what it adds to that meanwhile.
fn do_batch(npus: &mut Npus<'_, Clockwork<'_>>, npu: u32) {
    let mut next = 0;
    while let Some(&item) = npus.outside.batches[npu as usize].front().and_then(|batch| batch.items.get(next)) {
        next += 1;
        npus.due(npu, item);
    }
    let outside = &mut npus.outside;
    if let Some(mut batch) = outside.batches[npu as usize].pop_front() {
        batch.items.clear();
        outside.spare.push(batch.items);
    }
}

/// A message is at the end of a link.
fn arrive(npus: &mut Npus<'_, Clockwork<'_>>, place: u32) {
    let Some(message) = npus.outside.arrive(place) else { return };
    let destination = if npus.outside.alike { 0 } else { message.sending.destination };
    npus.arrived(destination, &message.sending);
}

impl Clockwork<'_> {
    /// Enters an event. ASTRA-sim cannot have one at the very beginning.
    pub(super) fn enter(&mut self, time: u64, event: Event) {
        if time == 0 {
            let problem =
                "something ends at 0 ns, at which ASTRA-sim stops by an assertion; it needs an endpoint-delay, a duration or a latency";
            self.problem.get_or_insert(problem.to_owned());
        }
        self.calendar.enter(time, event);
    }

    /// The time of an NPU's event `delay` from now; `None`, and the run ends, if that is too long to be simulated.
    pub(super) fn after(&mut self, npu: u32, delay: u64) -> Option<u64> {
        let time = self.calendar.now().checked_add(delay).filter(|&time| time <= MAX_NS);
        if time.is_none() {
            let problem = format!("NPU {npu}: an event is due after more than 2^60 ns (36 years), the longest time that is simulated");
            self.problem.get_or_insert(problem);
        }
        time
    }

    pub(super) fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn take_late(&mut self, place: u32) -> (u32, Done) {
        let late = self.late[place as usize];
        if place as usize + 1 == self.late.len() {
            self.late.clear();
        }
        late
    }
}

impl Outside for Clockwork<'_> {
    /// What is set for the same time is done together, when the first was entered.
    fn set(&mut self, npu: u32, delay: u64, item: Item) {
        let Some(time) = self.after(npu, delay) else { return };
        let batches = &mut self.batches[npu as usize];
        let place = if batches.back().is_none_or(|last| last.time < time) {
            batches.len()
        } else {
            batches.partition_point(|batch| batch.time < time)
        };
        if let Some(batch) = batches.get_mut(place).filter(|batch| batch.time == time) {
            batch.items.push(item);
            return;
        }
        let mut items = self.spare.pop().unwrap_or_default();
        items.push(item);
        batches.insert(place, Batch { time, items });
        self.enter(time, Event::Batch(npu));
    }

    fn send(&mut self, message: Sending) -> Result<(), String> {
        let Sending { source, destination, bytes, .. } = message;
        if bytes == 0 {
            return Err(format!("NPU {source} sends a message of 0 bytes, at which ASTRA-sim stops by an assertion"));
        }
        if destination >= self.npu_count || (source == destination && !self.sends_to_itself()) {
            let problem = "ASTRA-sim stops where an NPU sends to itself or to one that does not exist";
            return Err(format!("NPU {source} sends to NPU {destination} of {}; {problem}", self.npu_count));
        }
        self.carry(&message);
        Ok(())
    }

    fn is_astra_sim(&self) -> bool {
        true
    }

    fn received(&mut self, npu: u32, done: Done) {
        let place = self.late.len() as u32;
        self.late.push((npu, done));
        self.enter(self.calendar.now(), Event::Received(place));
    }

    fn finished(&mut self, npu: u32) {
        self.finished[npu as usize] = Some(self.calendar.now());
    }
}

impl Clockwork<'_> {
    fn sends_to_itself(&self) -> bool {
        use kasuri_workload::execution::cluster::Topology;
        self.input.backend == Backend::Aware && self.input.job.cluster.dimensions[0].topology == Topology::Switch
    }
}
