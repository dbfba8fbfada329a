//! Whether an algorithm does what it says: it is run step by step, with what every chunk holds as a multiset of (GPU, chunk of its input).
//!
//! Threadblocks and connections are a network of processes that block on reading and on writing, so whether all of them end does not
//! depend on how they are interleaved (Kahn 1974; bounded connections: Parks 1995). What a chunk holds does not either if any two accesses
//! to it of which one writes are ordered by steps, messages or dependencies; vector clocks say whether they are.

use super::loader::as_run;
use super::{Algorithm, Buffer, Collective, Place, Step, StepKind, ThreadBlock};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What was proved of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// All threadblocks.
    pub blocks: usize,
    /// All steps.
    pub steps: usize,
    /// Messages.
    pub sends: usize,
    /// Chunks in them.
    pub chunks_sent: u64,
    /// Messages that have to fit into a connection at once.
    pub slots: usize,
}

/// Messages that fit into a connection of NCCL.
const SLOTS: usize = 8;
/// Clock values that a check may keep.
const MAX_CLOCKS: usize = 1 << 27;
/// Parts of values that a check may add or copy, over all its runs.
const MAX_WORK: usize = 1 << 26;

/// Proves that MSCCL accepts an algorithm, and its postcondition, in each place in which it may work.
///
/// # Errors
/// A sentence about the first thing that is wrong: with the GPU, threadblock and step, or the block of the output and what it holds.
pub fn check(algorithm: &Algorithm) -> Result<Checked, String> {
    let steps = || algorithm.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| &block.steps);
    if let Collective::Other(name) = algorithm.collective {
        return Err(format!(
            "coll is `{name}`, whose result is not known here; allreduce, allgather, reducescatter, alltoall and broadcast (from GPU 0) can be checked"
        ));
    }
    let gpus = algorithm.gpus.len() as u32;
    let is_divided = !matches!(algorithm.collective, Collective::AllReduce | Collective::Broadcast);
    if is_divided && !algorithm.chunks.is_multiple_of(gpus) {
        return Err(format!("nchunksperloop is {}; it must be a multiple of the {gpus} GPUs", algorithm.chunks));
    }
    let run = as_run(algorithm)?;
    let (mut slots, mut work) = (0, 0);
    for (allowed, in_place) in [(algorithm.in_place, true), (algorithm.out_of_place, false)] {
        if allowed {
            slots = slots.max(check_place(&run, in_place, &mut work)?);
        }
    }
    if slots == 0 {
        return Err("inplace and outofplace are both 0: it works in no place".to_owned());
    }
    let sent = || steps().filter(|step| step.kind.sends());
    Ok(Checked {
        blocks: algorithm.gpus.iter().map(|gpu| gpu.blocks.len()).sum(),
        steps: steps().count(),
        sends: sent().count(),
        chunks_sent: sent().map(|step| u64::from(step.count)).sum(),
        slots,
    })
}

/// The messages of a connection that are needed at once.
fn check_place(algorithm: &Algorithm, in_place: bool, work: &mut usize) -> Result<usize, String> {
    for slots in 1..=SLOTS {
        let mut run = Run::new(algorithm, in_place, slots)?;
        run.work = *work;
        run.run()?;
        *work = run.work;
        match run.stuck() {
            None => {
                run.check_left_over()?;
                run.check_result()?;
                return run.race.map_or(Ok(slots), Err);
            }
            Some(problem) if slots == SLOTS => return Err(problem),
            Some(_) => {}
        }
    }
    Err("does not end".to_owned())
}

/// How often each (GPU, chunk of its input) is in a value.
type Value = Rc<BTreeMap<(u32, u32), u32>>;
type Clock = Vec<u32>;

/// A chunk of a buffer, and who has last written and read it: threadblock and step.
#[derive(Debug, Default)]
struct Cell {
    value: Option<Value>,
    writer: Option<(usize, u32)>,
    readers: Vec<(usize, u32)>,
}

#[derive(Debug)]
struct Message {
    values: Vec<Value>,
    clock: Clock,
}

#[derive(Debug)]
struct Connection {
    queue: VecDeque<Message>,
    sender: usize,
    receiver: usize,
}

/// A threadblock, numbered through all GPUs.
struct Process<'a> {
    gpu: u32,
    number: usize,
    block: &'a ThreadBlock,
    done: u32,
    sends_to: Option<usize>,
    receives_from: Option<usize>,
    /// Who waits for a step of this one.
    waiters: Vec<usize>,
}

struct Run<'a> {
    algorithm: &'a Algorithm,
    in_place: bool,
    slots: usize,
    processes: Vec<Process<'a>>,
    /// The first threadblock of each GPU.
    first: Vec<usize>,
    connections: Vec<Connection>,
    cells: BTreeMap<(u32, u8, u32), Cell>,
    clocks: Vec<Clock>,
    /// Of the steps for which others wait.
    kept: BTreeMap<(usize, u32), Option<Clock>>,
    /// The first accesses whose order nothing says. A wrong result counts more: it names the block.
    race: Option<String>,
    /// Parts of values that have been added or copied.
    work: usize,
}

impl<'a> Run<'a> {
    fn new(algorithm: &'a Algorithm, in_place: bool, slots: usize) -> Result<Self, String> {
        let (mut processes, mut first) = (Vec::new(), Vec::new());
        for (gpu, item) in algorithm.gpus.iter().enumerate() {
            first.push(processes.len());
            for (number, block) in item.blocks.iter().enumerate() {
                let gpu = gpu as u32;
                processes.push(Process { gpu, number, block, done: 0, sends_to: None, receives_from: None, waiters: Vec::new() });
            }
        }
        let count = processes.len();
        let mut run = Self {
            algorithm,
            in_place,
            slots,
            processes,
            first,
            connections: Vec::new(),
            cells: BTreeMap::new(),
            clocks: Vec::new(),
            kept: BTreeMap::new(),
            race: None,
            work: 0,
        };
        run.connect()?;
        run.find_dependencies()?;
        if count * (count + run.kept.len() + run.connections.len() * slots) > MAX_CLOCKS {
            return Err(format!("has {count} threadblocks with {} dependencies, which is too large to check", run.kept.len()));
        }
        run.clocks = vec![vec![0; count]; count];
        Ok(run)
    }

    /// A connection has one threadblock at each end.
    fn connect(&mut self) -> Result<(), String> {
        let mut ends: BTreeMap<(u32, u32, u32), [Option<usize>; 2]> = BTreeMap::new();
        for (index, process) in self.processes.iter().enumerate() {
            let ThreadBlock { send, receive, channel, .. } = *process.block;
            let sends = send.map(|to| ((process.gpu, to, channel), 0, "send"));
            let receives = receive.map(|from| ((from, process.gpu, channel), 1, "receive"));
            for (key, end, verb) in sends.into_iter().chain(receives) {
                if let Some(other) = ends.entry(key).or_default()[end].replace(index) {
                    let (from, to, channel) = key;
                    return Err(format!(
                        "two threadblocks at one end: tb {} and {} of gpu {} both {verb} on the connection from gpu {from} to gpu {to}, channel {channel}",
                        self.processes[other].number, process.number, process.gpu
                    ));
                }
            }
        }
        for ((from, to, channel), [sender, receiver]) in ends {
            let steps = |process: usize, uses: fn(StepKind) -> bool| self.processes[process].block.steps.iter().any(|step| uses(step.kind));
            match (sender, receiver) {
                (Some(sender), Some(receiver)) => {
                    let connection = self.connections.len();
                    self.processes[sender].sends_to = Some(connection);
                    self.processes[receiver].receives_from = Some(connection);
                    self.connections.push(Connection { queue: VecDeque::new(), sender, receiver });
                }
                (Some(sender), None) if steps(sender, StepKind::sends) => {
                    let number = self.processes[sender].number;
                    return Err(format!(
                        "gpu {from} tb {number} sends to gpu {to} on channel {channel}, without a receiver: sent but never received"
                    ));
                }
                (None, Some(receiver)) if steps(receiver, StepKind::receives) => {
                    let number = self.processes[receiver].number;
                    return Err(format!("gpu {to} tb {number} receives from gpu {from} on channel {channel} without a sender"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn find_dependencies(&mut self) -> Result<(), String> {
        for process in &self.processes {
            for (number, step) in process.block.steps.iter().enumerate() {
                let Some((block, on)) = step.waits_for else { continue };
                let blocks = &self.algorithm.gpus[process.gpu as usize].blocks;
                if blocks.get(block as usize).is_none_or(|block| block.steps.len() as u64 <= u64::from(on)) {
                    let place = format!("gpu {} tb {} step {number}", process.gpu, process.number);
                    return Err(format!("{place} waits for step {on} of tb {block}, which does not exist"));
                }
                self.kept.insert((self.first[process.gpu as usize] + block as usize, on), None);
            }
        }
        Ok(())
    }

    fn name(&self, process: usize) -> String {
        let Process { gpu, number, done, .. } = &self.processes[process];
        format!("gpu {gpu} tb {number} step {done}")
    }

    /// Runs every threadblock as far as it can go.
    fn run(&mut self) -> Result<(), String> {
        let mut ready: VecDeque<usize> = (0..self.processes.len()).collect();
        while let Some(process) = ready.pop_front() {
            while let Some(&step) = self.processes[process].block.steps.get(self.processes[process].done as usize) {
                if !self.can_go(process, &step) {
                    break;
                }
                self.step(process, &step)?;
                ready.append(&mut self.processes[process].waiters.drain(..).collect());
                let Process { sends_to, receives_from, .. } = self.processes[process];
                ready.extend(sends_to.filter(|_| step.kind.sends()).map(|connection| self.connections[connection].receiver));
                ready.extend(receives_from.filter(|_| step.kind.receives()).map(|connection| self.connections[connection].sender));
            }
        }
        Ok(())
    }

    fn can_go(&mut self, process: usize, step: &Step) -> bool {
        let Process { gpu, sends_to, receives_from, .. } = self.processes[process];
        if let Some((block, on)) = step.waits_for {
            let other = &mut self.processes[self.first[gpu as usize] + block as usize];
            if other.done <= on {
                other.waiters.push(process);
                return false;
            }
        }
        let has_message = receives_from.is_some_and(|connection| !self.connections[connection].queue.is_empty());
        let has_slot = sends_to.is_some_and(|connection| self.connections[connection].queue.len() < self.slots);
        (!step.kind.receives() || has_message) && (!step.kind.sends() || has_slot)
    }

    fn step(&mut self, process: usize, step: &Step) -> Result<(), String> {
        let Process { gpu, sends_to, receives_from, done, .. } = self.processes[process];
        if let Some((block, on)) = step.waits_for {
            let other = (self.first[gpu as usize] + block as usize, on);
            if let Some(Some(clock)) = self.kept.get(&other) {
                join(&mut self.clocks[process], clock);
            }
        }
        let message = receives_from.filter(|_| step.kind.receives()).and_then(|connection| self.connections[connection].queue.pop_front());
        if let Some(message) = &message {
            if message.values.len() != step.count as usize {
                return Err(format!("{} receives {} chunks, expects {}", self.name(process), message.values.len(), step.count));
            }
            join(&mut self.clocks[process], &message.clock);
        }
        self.check_overlap(process, step)?;
        let mut passed = Vec::with_capacity(step.count as usize);
        for chunk in 0..step.count {
            let received = message.as_ref().map(|message| message.values[chunk as usize].clone());
            passed.push(self.chunk(process, step, chunk, received)?);
        }
        self.clocks[process][process] = done + 1;
        if let Some(connection) = sends_to.filter(|_| step.kind.sends()) {
            self.connections[connection].queue.push_back(Message { values: passed, clock: self.clocks[process].clone() });
        }
        if let Some(kept) = self.kept.get_mut(&(process, done)) {
            *kept = Some(self.clocks[process].clone());
        }
        self.processes[process].done += 1;
        Ok(())
    }

    /// Refuses a step with a partly overlapping source and destination: MSCCL's threads process all chunks in parallel. With the same
    /// chunks as source and destination each thread writes what it has read.
    fn check_overlap(&self, process: usize, step: &Step) -> Result<(), String> {
        if !(step.kind.reads() && step.kind.writes()) {
            return Ok(());
        }
        let gpu = self.processes[process].gpu;
        let [from, to] = [step.source, step.destination].map(|place| self.shared(gpu, place));
        let distance = from.2.abs_diff(to.2);
        if from.1 != to.1 || distance == 0 || distance >= step.count {
            return Ok(());
        }
        let (name, count) = (self.name(process), step.count);
        let (source, destination) = (step.source, step.destination);
        Err(format!(
            "{name}: the {count} chunks from {source} and the {count} from {destination} overlap; MSCCL processes all of them at once, so \
             that the result is undefined"
        ))
    }

    /// What a step does with one of its chunks; what it passes on.
    fn chunk(&mut self, process: usize, step: &Step, chunk: u32, received: Option<Value>) -> Result<Value, String> {
        let at = |place: Place| Place { offset: place.offset.saturating_add(chunk), ..place };
        let mut value = received.unwrap_or_default();
        if step.kind.reads() {
            let read = self.read(process, at(step.source))?;
            value = sum(&value, &read);
        }
        if step.kind == StepKind::Reduce {
            let read = self.read(process, at(step.destination))?;
            value = sum(&value, &read);
        }
        if step.kind.writes() {
            self.write(process, at(step.destination), value.clone())?;
        }
        self.work += 1 + value.len();
        if self.work > MAX_WORK {
            return Err(format!("needs a check of more than {MAX_WORK} additions and copies, which is too many"));
        }
        Ok(value)
    }

    /// Chunks of a buffer.
    fn size(&self, gpu: u32, buffer: Buffer) -> u32 {
        let (chunks, gpus) = (self.algorithm.chunks, self.algorithm.gpus.len() as u32);
        match (buffer, self.algorithm.collective) {
            (Buffer::Scratch, _) => self.algorithm.gpus[gpu as usize].chunks[2],
            (Buffer::Input, Collective::AllGather) | (Buffer::Output, Collective::ReduceScatter) => chunks / gpus,
            _ => chunks,
        }
    }

    /// Where a chunk is: in place, input and output share their chunks.
    fn key(&self, process: usize, gpu: u32, place: Place) -> Result<(u32, u8, u32), String> {
        let size = self.size(gpu, place.buffer);
        if place.offset >= size {
            return Err(format!("{}: {place} of gpu {gpu} does not exist, the buffer has {size} chunks", self.name(process)));
        }
        Ok(self.shared(gpu, place))
    }

    fn shared(&self, gpu: u32, place: Place) -> (u32, u8, u32) {
        let part = gpu * (self.algorithm.chunks / self.algorithm.gpus.len() as u32);
        let (buffer, offset) = match (place.buffer, self.algorithm.collective) {
            (buffer, _) if !self.in_place => (buffer, place.offset),
            (Buffer::Input, Collective::AllGather) => (Buffer::Output, part.saturating_add(place.offset)),
            (Buffer::Output, Collective::ReduceScatter) => (Buffer::Input, part.saturating_add(place.offset)),
            (Buffer::Output, Collective::AllReduce | Collective::AllToAll | Collective::Broadcast) => (Buffer::Input, place.offset),
            (buffer, _) => (buffer, place.offset),
        };
        (gpu, buffer as u8, offset)
    }

    /// What a chunk holds before anything is written there.
    fn initial(&self, (gpu, buffer, offset): (u32, u8, u32)) -> Option<Value> {
        let part = self.algorithm.chunks / self.algorithm.gpus.len() as u32;
        let one = |chunk| Some(Rc::new(BTreeMap::from([((gpu, chunk), 1)])));
        if self.in_place && self.algorithm.collective == Collective::AllGather {
            return if buffer == Buffer::Output as u8 && offset / part == gpu { one(offset % part) } else { None };
        }
        let is_given = self.algorithm.collective != Collective::Broadcast || gpu == 0;
        if buffer == Buffer::Input as u8 && is_given { one(offset) } else { None }
    }

    fn held(&self, key: (u32, u8, u32)) -> Option<Value> {
        match self.cells.get(&key).and_then(|cell| cell.value.clone()) {
            Some(value) => Some(value),
            None => self.initial(key),
        }
    }

    fn read(&mut self, process: usize, place: Place) -> Result<Value, String> {
        let gpu = self.processes[process].gpu;
        let key = self.key(process, gpu, place)?;
        let Some(value) = self.held(key) else {
            return Err(format!("{} reads {place} of gpu {gpu}, in which nothing has been put", self.name(process)));
        };
        let writer = self.cells.get(&key).and_then(|cell| cell.writer);
        if let Some(writer) = writer.filter(|&writer| !self.is_before(writer, process)) {
            self.note_race(process, place, writer, ("reads", "written"));
        }
        let step = self.processes[process].done;
        self.cells.entry(key).or_default().readers.push((process, step));
        Ok(value)
    }

    fn write(&mut self, process: usize, place: Place, value: Value) -> Result<(), String> {
        let gpu = self.processes[process].gpu;
        let key = self.key(process, gpu, place)?;
        let step = self.processes[process].done;
        if let Some(cell) = self.cells.get(&key) {
            let writer = cell.writer.filter(|&writer| !self.is_before(writer, process));
            let reader = cell.readers.iter().copied().find(|&reader| !self.is_before(reader, process));
            if let Some(writer) = writer {
                self.note_race(process, place, writer, ("writes", "written"));
            } else if let Some(reader) = reader {
                self.note_race(process, place, reader, ("writes", "read"));
            }
        }
        self.cells.insert(key, Cell { value: Some(value), writer: Some((process, step)), readers: Vec::new() });
        Ok(())
    }

    /// Whether a step of a threadblock is done before what another does now, however they are interleaved.
    fn is_before(&self, (other, step): (usize, u32), process: usize) -> bool {
        other == process || self.clocks[process][other] > step
    }

    fn note_race(&mut self, process: usize, place: Place, (other, step): (usize, u32), (verb, done): (&str, &str)) {
        let (gpu, number) = (self.processes[other].gpu, self.processes[other].number);
        let first = self.name(process);
        let text =
            format!("{first} {verb} {place}, which is {done} by tb {number} step {step} of gpu {gpu}; nothing says which comes first");
        self.race.get_or_insert(text);
    }

    /// A sentence if threadblocks wait for each other.
    fn stuck(&self) -> Option<String> {
        let all: usize = self.processes.iter().map(|process| process.block.steps.len()).sum();
        let done: usize = self.processes.iter().map(|process| process.done as usize).sum();
        let waits = |process: &&Process<'_>| (process.done as usize) < process.block.steps.len();
        let first = self.processes.iter().find(waits)?;
        let index = self.first[first.gpu as usize] + first.number;
        let step = &first.block.steps[first.done as usize];
        let reason = match step.waits_for {
            Some((block, on)) if self.processes[self.first[first.gpu as usize] + block as usize].done <= on => {
                format!("step {on} of tb {block}")
            }
            _ if step.kind.receives() => format!("a message from gpu {}", first.block.receive.unwrap_or(0)),
            _ => format!("room in the connection to gpu {}", first.block.send.unwrap_or(0)),
        };
        Some(format!("deadlock: {done} of {all} steps done, {} waits for {reason}", self.name(index)))
    }

    fn check_left_over(&self) -> Result<(), String> {
        match self.connections.iter().find(|connection| !connection.queue.is_empty()) {
            None => Ok(()),
            Some(left) => {
                let (from, to) = (&self.processes[left.sender], &self.processes[left.receiver]);
                let count = left.queue.len();
                Err(format!(
                    "{count} messages from gpu {} tb {} to gpu {} tb {} are sent but never received",
                    from.gpu, from.number, to.gpu, to.number
                ))
            }
        }
    }

    /// Every block of every output holds what it should.
    fn check_result(&self) -> Result<(), String> {
        let gpus = self.algorithm.gpus.len() as u32;
        for gpu in 0..gpus {
            for offset in 0..self.size(gpu, Buffer::Output) {
                let held = self.held(self.shared(gpu, Place { buffer: Buffer::Output, offset }));
                let expected = self.expected(gpu, offset);
                if held.as_deref() != Some(&expected) {
                    return Err(difference(gpu, offset, held.as_deref(), &expected));
                }
            }
        }
        Ok(())
    }

    fn expected(&self, gpu: u32, offset: u32) -> BTreeMap<(u32, u32), u32> {
        let gpus = self.algorithm.gpus.len() as u32;
        let part = self.algorithm.chunks / gpus;
        let all = |chunk: u32| (0..gpus).map(|other| ((other, chunk), 1)).collect();
        match self.algorithm.collective {
            Collective::ReduceScatter => all(gpu * part + offset),
            Collective::AllGather => BTreeMap::from([((offset / part, offset % part), 1)]),
            Collective::AllToAll => BTreeMap::from([((offset / part, gpu * part + offset % part), 1)]),
            Collective::Broadcast => BTreeMap::from([((0, offset), 1)]),
            Collective::AllReduce | Collective::Other(_) => all(offset),
        }
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

fn sum(one: &Value, other: &Value) -> Value {
    if one.is_empty() {
        return other.clone();
    }
    let mut all = (**one).clone();
    for (part, count) in other.iter() {
        let own = all.entry(*part).or_default();
        *own = own.saturating_add(*count);
    }
    Rc::new(all)
}

/// What is wrong with a block of an output.
fn difference(gpu: u32, offset: u32, held: Option<&BTreeMap<(u32, u32), u32>>, expected: &BTreeMap<(u32, u32), u32>) -> String {
    let block = format!("gpu {gpu} output {offset}");
    let Some(held) = held else { return format!("{block} holds nothing; {} is missing", named(expected.keys().next())) };
    let missing: Vec<_> = expected.keys().filter(|part| !held.contains_key(part)).collect();
    let foreign: Vec<_> = held.keys().filter(|part| !expected.contains_key(part)).collect();
    let double = held.iter().find(|&(part, &count)| expected.contains_key(part) && count > 1);
    let mut problems = Vec::new();
    if let Some(first) = missing.first() {
        problems.push(format!("{} is missing{}", named(Some(first)), more(missing.len())));
    }
    if let Some(first) = foreign.first() {
        problems.push(format!("{} does not belong there{}", named(Some(first)), more(foreign.len())));
    }
    if let Some((part, count)) = double {
        problems.push(format!("{} is in it {count} times", named(Some(part))));
    }
    format!("{block} is wrong: {}", problems.join(", "))
}

fn more(count: usize) -> String {
    if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() }
}

fn named(part: Option<&(u32, u32)>) -> String {
    part.map_or_else(|| "everything".to_owned(), |(gpu, chunk)| format!("input {chunk} of gpu {gpu}"))
}
