//! Algorithms of MSCCL made of collectives in rounds.
//!
//! Everything is done in place: an all-reduce, reduce-scatter or broadcast in the input, an all-gather in the output. A GPU has a threadblock
//! for each GPU that it sends to, and one for each that it receives from, so that a connection has one at each end. A step waits for the
//! steps of other threadblocks that wrote what it reads or overwrites, or read what it overwrites; several of them by steps that do
//! nothing else.

use super::loader::{MAX_BLOCKS_PER_CHANNEL, MAX_COUNT, as_run};
use super::{Algorithm, Buffer, Collective, Gpu, Place, Step, StepKind, ThreadBlock};
use kasuri_workload::collective::{self, Block, Parameters};
use kasuri_workload::schedule::arranged::{Effect, follow};
use std::collections::{BTreeMap, BTreeSet};

/// Makes an algorithm of a collective: `operation` is `allreduce`, `allgather`, `reducescatter` or `broadcast`.
///
/// # Errors
/// Another operation, a collective that does not do what the operation promises, or one that is too large for MSCCL.
pub fn compose(
    name: &str,
    operation: &'static str,
    collective: &dyn collective::Collective,
    parameters: &Parameters,
) -> Result<Algorithm, String> {
    let ranks = parameters.ranks;
    let (kind, buffer, chunks) = match operation {
        "allreduce" => (Collective::AllReduce, Buffer::Input, [collective.parts(); 2]),
        "allgather" => (Collective::AllGather, Buffer::Output, [1, ranks]),
        "reducescatter" => (Collective::ReduceScatter, Buffer::Input, [ranks, 1]),
        "broadcast" => (Collective::Broadcast, Buffer::Input, [collective.parts(); 2]),
        other => {
            return Err(format!("unsupported collective `{other}` for MSCCL; supported: allreduce, allgather, reducescatter, broadcast"));
        }
    };
    let mut effects: BTreeMap<(u32, u32), Vec<Effect>> = BTreeMap::new();
    follow(operation, collective, parameters, &mut |round, sender, of_message| {
        effects.insert((round, sender), of_message.to_vec());
    })?;
    let offset = |block: &Block| if operation == "allgather" { block.origin } else { block.part };
    let mut gpus: Vec<Composer> = (0..ranks).map(|_| Composer::new(buffer)).collect();
    let channels = channels(collective, ranks);
    let channel = |from: u32, to: u32| channels.get(&((to + ranks - from) % ranks)).copied().unwrap_or(0);
    for round in 0..collective.rounds() {
        let messages: Vec<(u32, u32, Vec<Run>)> = (0..ranks)
            .filter_map(|rank| {
                let peer = collective.send(rank, round)?.peer;
                let of_message = effects.get(&(round, rank))?;
                let blocks = collective.blocks(rank, round);
                Some((rank, peer, runs(blocks.iter().map(offset).zip(of_message.iter().copied()))))
            })
            .collect();
        // What is sent in a round was there before it.
        for (rank, peer, runs) in &messages {
            runs.iter().for_each(|run| gpus[*rank as usize].send(*peer, channel(*rank, *peer), *run));
        }
        for (rank, peer, runs) in &messages {
            runs.iter().for_each(|run| gpus[*peer as usize].receive(*rank, channel(*rank, *peer), *run));
        }
    }
    let gpus = gpus.into_iter().map(|gpu| Gpu { chunks: [chunks[0], chunks[1], 0], blocks: gpu.finish() }).collect();
    let algorithm = Algorithm {
        name: name.to_owned(),
        protocol: "Simple".to_owned(),
        channels: channels.values().max().map_or(1, |last| last + 1),
        chunks: chunks[0].max(chunks[1]),
        collective: kind,
        in_place: true,
        out_of_place: false,
        min_bytes: 0,
        max_bytes: 0,
        gpus,
        notes: Vec::new(),
    };
    as_run(&algorithm).map_err(|problem| format!("MSCCL does not take this algorithm: {problem}"))?;
    Ok(algorithm)
}

/// The channel of each distance (receiver less sender, modulo ranks): the same at both ends of a connection, and with no more threadblocks
/// of a GPU than a channel may have.
fn channels(collective: &dyn collective::Collective, ranks: u32) -> BTreeMap<u32, u32> {
    let rounds = (0..collective.rounds()).flat_map(|round| (0..ranks).map(move |rank| (round, rank)));
    let distance = |(round, rank)| Some((collective.send(rank, round)?.peer + ranks - rank) % ranks);
    let distances: BTreeSet<u32> = rounds.filter_map(distance).collect();
    (0..).zip(distances).map(|(place, distance)| (distance, place / MAX_BLOCKS_PER_CHANNEL)).collect()
}

/// Consecutive chunks with the same effect at the receiver, at most as many as a step may have.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    count: u32,
    effect: Effect,
}

fn runs(chunks: impl Iterator<Item = (u32, Effect)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (chunk, effect) in chunks {
        match runs.last_mut().filter(|run| run.first + run.count == chunk && run.effect == effect && run.count < MAX_COUNT) {
            Some(run) => run.count += 1,
            None => runs.push(Run { first: chunk, count: 1, effect }),
        }
    }
    runs
}

/// A step, by its threadblock and its number there.
type At = (u32, u32);

/// A GPU that is being composed.
#[derive(Debug)]
struct Composer {
    buffer: Buffer,
    blocks: Vec<ThreadBlock>,
    /// The threadblock that sends to a GPU, and the one that receives from it.
    sends: BTreeMap<u32, u32>,
    receives: BTreeMap<u32, u32>,
    /// By chunk: who wrote it last, and who has read it since.
    written: BTreeMap<u32, At>,
    read: BTreeMap<u32, Vec<At>>,
}

impl Composer {
    fn new(buffer: Buffer) -> Self {
        Self {
            buffer,
            blocks: Vec::new(),
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
        }
    }

    fn send(&mut self, to: u32, channel: u32, run: Run) {
        let next = self.blocks.len() as u32;
        let block = *self.sends.entry(to).or_insert(next);
        if block == next {
            self.blocks.push(ThreadBlock { send: Some(to), receive: None, channel, steps: Vec::new() });
        }
        let waits = (run.first..run.first + run.count).filter_map(|chunk| self.written.get(&chunk).copied()).collect();
        let at = self.add(block, StepKind::Send, run, waits);
        for chunk in run.first..run.first + run.count {
            self.read.entry(chunk).or_default().push(at);
        }
    }

    fn receive(&mut self, from: u32, channel: u32, run: Run) {
        let next = self.blocks.len() as u32;
        let block = *self.receives.entry(from).or_insert(next);
        if block == next {
            self.blocks.push(ThreadBlock { send: None, receive: Some(from), channel, steps: Vec::new() });
        }
        let mut waits = Vec::new();
        for chunk in run.first..run.first + run.count {
            waits.extend(self.written.get(&chunk));
            waits.extend(self.read.remove(&chunk).unwrap_or_default());
        }
        let kind = if run.effect == Effect::Added { StepKind::ReceiveReduceCopy } else { StepKind::Receive };
        let at = self.add(block, kind, run, waits);
        for chunk in run.first..run.first + run.count {
            self.written.insert(chunk, at);
        }
    }

    /// Adds a step behind those that it waits for: of each other threadblock the last.
    fn add(&mut self, block: u32, kind: StepKind, run: Run, waits: Vec<At>) -> At {
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for (other, step) in waits.into_iter().filter(|&(other, _)| other != block) {
            let known = last.entry(other).or_insert(step);
            *known = step.max(*known);
        }
        for (&other, &step) in &last {
            self.blocks[other as usize].steps[step as usize].has_dependents = true;
        }
        let mut waits: Vec<At> = last.into_iter().collect();
        let own = waits.pop();
        let place = Place { buffer: self.buffer, offset: run.first };
        let step = |kind, count, waits_for| Step { kind, source: place, destination: place, count, waits_for, has_dependents: false };
        let steps = &mut self.blocks[block as usize].steps;
        steps.extend(waits.into_iter().map(|wait| step(StepKind::Nothing, 0, Some(wait))));
        steps.push(step(kind, run.count, own));
        (block, steps.len() as u32 - 1)
    }

    fn finish(self) -> Vec<ThreadBlock> {
        self.blocks
    }
}
