//! What MSCCL accepts: the rules of its loader, and the waits of its interpreter.
//!
//! Source: microsoft/msccl b23e9cd, `src/graph/topo.cc`, `src/graph/xml.cc`, `src/include/msccl.h`,
//! `src/collectives/device/msccl_interpreter.h`. Where RCCL's limit is larger, it applies.

use super::{Algorithm, Collective, Gpu, Place, Step, StepKind, ThreadBlock};
use std::collections::BTreeMap;

/// Chunks of a step, at most: `MSCCL_MAX_COUNT` - 1.
pub(super) const MAX_COUNT: u32 = 71;
/// Steps of a threadblock, at most: `MSCCL_MAX_NUM_STEPS`.
const MAX_STEPS: usize = 256;
/// Threadblocks of a GPU, at most: `MSCCL_MAX_NUM_THREAD_BLOCKS`.
const MAX_BLOCKS: usize = 216;
/// Threadblocks of a GPU that send, or that receive, on one channel, at most: `MSCCL_MAX_NUM_THREAD_BLOCKS_PER_CHANNEL`.
pub(super) const MAX_BLOCKS_PER_CHANNEL: u32 = 32;
/// Channels, at most: `MAXCHANNELS` of RCCL.
const MAX_CHANNELS: u32 = 128;
/// Elements of the file that the loader of one GPU keeps, at most: `MAX_NODES` - 1.
const MAX_ELEMENTS: usize = 4095;
/// Elements in one, at most: `MAX_SUBS`.
const MAX_GPUS: usize = 1024;

/// The algorithm as MSCCL runs it: each step waits for the first step of the other threadblock with a high enough flag.
///
/// # Errors
/// A sentence about the first thing that the loader refuses, or about a wait that would never end.
pub fn as_run(algorithm: &Algorithm) -> Result<Algorithm, String> {
    let Algorithm { min_bytes, max_bytes, channels, .. } = *algorithm;
    if max_bytes > 0 && min_bytes > max_bytes {
        return Err(format!("minBytes is {min_bytes}, above maxBytes = {max_bytes}"));
    }
    if channels > MAX_CHANNELS {
        return Err(format!("nchannels is {channels}; MSCCL has at most {MAX_CHANNELS}"));
    }
    if algorithm.gpus.len() > MAX_GPUS {
        return Err(format!("has {} GPUs; MSCCL's loader takes at most {MAX_GPUS}", algorithm.gpus.len()));
    }
    let mut run = algorithm.clone();
    for (number, gpu) in run.gpus.iter_mut().enumerate() {
        check_gpu(algorithm, number as u32).map_err(|problem| format!("gpu {number}{problem}"))?;
        resolve_waits(gpu).map_err(|problem| format!("gpu {number} {problem}"))?;
    }
    Ok(run)
}

fn check_gpu(algorithm: &Algorithm, number: u32) -> Result<(), String> {
    let gpu = &algorithm.gpus[number as usize];
    check_chunks(algorithm, gpu)?;
    let steps: usize = gpu.blocks.iter().map(|block| block.steps.len()).sum();
    let elements = 1 + algorithm.gpus.len() + gpu.blocks.len() + steps;
    if gpu.blocks.len() > MAX_BLOCKS {
        return Err(format!(" has {} threadblocks; MSCCL runs at most {MAX_BLOCKS}", gpu.blocks.len()));
    }
    if elements > MAX_ELEMENTS {
        return Err(format!(
            " has {steps} steps: with all <gpu> and its <tb> {elements} elements; MSCCL's loader takes at most {MAX_ELEMENTS}"
        ));
    }
    let mut users: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    for (id, block) in gpu.blocks.iter().enumerate() {
        check_block(algorithm, number, block).map_err(|problem| format!(" tb {id}{problem}"))?;
        for (direction, _) in [("send", block.send), ("receive", block.receive)].into_iter().filter(|(_, peer)| peer.is_some()) {
            let count = users.entry((block.channel, direction)).or_default();
            *count += 1;
            if *count > MAX_BLOCKS_PER_CHANNEL {
                let most = MAX_BLOCKS_PER_CHANNEL;
                return Err(format!(
                    " tb {id} is one more than the {most} threadblocks that can {direction} on a channel, {}",
                    block.channel
                ));
            }
        }
    }
    Ok(())
}

/// Checks the numbers of chunks of input and output; an unused buffer may have 0.
fn check_chunks(algorithm: &Algorithm, gpu: &Gpu) -> Result<(), String> {
    let gpus = algorithm.gpus.len() as u64;
    let [input_parts, output_parts] = match algorithm.collective {
        Collective::AllGather => [gpus, 1],
        Collective::ReduceScatter => [1, gpus],
        _ => [1, 1],
    };
    for (key, chunks, parts) in [("i_chunks", gpu.chunks[0], input_parts), ("o_chunks", gpu.chunks[1], output_parts)] {
        let whole = u64::from(algorithm.chunks);
        if chunks > 0 && u64::from(chunks) * parts != whole {
            let name = algorithm.collective.name();
            return Err(format!(
                ": {key} is {chunks}; with {name} and nchunksperloop = {whole} it must be {}, or 0 if unused",
                whole / parts
            ));
        }
    }
    Ok(())
}

fn check_block(algorithm: &Algorithm, gpu: u32, block: &ThreadBlock) -> Result<(), String> {
    if [block.send, block.receive].contains(&Some(gpu)) {
        return Err(format!(" has the GPU {gpu} itself as its peer; it must be another GPU, or -1"));
    }
    if block.channel >= algorithm.channels {
        let channels = algorithm.channels;
        return Err(format!(": chan is {}; with nchannels = {channels} it must be below {channels}", block.channel));
    }
    if block.steps.len() > MAX_STEPS {
        return Err(format!(" has {} steps; MSCCL runs at most {MAX_STEPS}", block.steps.len()));
    }
    let mut before: Option<&Step> = None;
    for (number, step) in block.steps.iter().enumerate() {
        check_step(&algorithm.gpus[gpu as usize], step, before).map_err(|problem| format!(" step {number}{problem}"))?;
        before = Some(step);
    }
    Ok(())
}

fn check_step(gpu: &Gpu, step: &Step, before: Option<&Step>) -> Result<(), String> {
    if step.kind == StepKind::Nothing {
        return Ok(());
    }
    if step.count > MAX_COUNT {
        return Err(format!(": cnt is {}; MSCCL takes at most {MAX_COUNT}", step.count));
    }
    if before.is_some_and(|before| before.kind == StepKind::Nothing && before.waits_for.is_some()) && step.waits_for.is_none() {
        return Err(
            ": steps `nop` that wait come before it, and depid is -1; MSCCL accepts them only before a step that waits, too".to_owned()
        );
    }
    let is_fused = |before: &Step| {
        let same = before.destination == step.destination && before.source.buffer == step.source.buffer;
        before.kind == StepKind::Reduce && step.kind == StepKind::Reduce && same && step.waits_for.is_none() && !before.has_dependents
    };
    if let Some(before) = before.filter(|before| is_fused(before) && before.count != step.count) {
        return Err(format!(": adds {} chunks where the step before adds {}; MSCCL makes one of both", step.count, before.count));
    }
    // The loader checks neither place of this kind.
    let is_checked = step.kind != StepKind::ReceiveReduceCopy;
    let places = [(step.kind.reads(), step.source), (step.kind.writes(), step.destination)];
    let used = places.into_iter().filter(|(is_used, _)| *is_used && is_checked);
    for (_, Place { buffer, offset }) in used {
        let chunks = gpu.chunks[buffer as usize];
        if offset >= chunks {
            let place = Place { buffer, offset };
            return Err(format!(": {place} does not exist, {}_chunks is {chunks}", buffer.name()));
        }
    }
    Ok(())
}

/// For each step the number that it writes into its threadblock's flag at its end; `None` if it writes none.
///
/// The interpreter counts steps that do something, and before each the steps `nop` that wait.
fn flags(block: &ThreadBlock) -> Vec<Option<u32>> {
    let mut count = 0;
    let flag = |step: &Step| {
        let is_counted = step.kind != StepKind::Nothing || step.waits_for.is_some();
        let found = (step.kind != StepKind::Nothing && step.has_dependents).then_some(count);
        count += u32::from(is_counted);
        found
    };
    block.steps.iter().map(flag).collect()
}

/// Makes each step wait for the first step of the other threadblock with a flag of at least the awaited number.
fn resolve_waits(gpu: &mut Gpu) -> Result<(), String> {
    let all: Vec<Vec<Option<u32>>> = gpu.blocks.iter().map(flags).collect();
    for (number, block) in gpu.blocks.iter_mut().enumerate() {
        for (place, step) in block.steps.iter_mut().enumerate() {
            let Some((other, on)) = step.waits_for else { continue };
            // A missing step is reported when the steps are run.
            let Some(flags) = all.get(other as usize).filter(|flags| (on as usize) < flags.len()) else { continue };
            let Some(first) = flags.iter().position(|flag| flag.is_some_and(|flag| flag >= on)) else {
                return Err(format!(
                    "tb {number} step {place} waits for step {on} of tb {other}, which never signals its end: hasdep must be 1; MSCCL \
                     would wait forever"
                ));
            };
            step.waits_for = Some((other, first as u32));
        }
    }
    Ok(())
}
