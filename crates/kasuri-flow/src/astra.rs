//! Execution traces by the rules of ASTRA-sim's analytical backends, to the nanosecond.
//!
//! An event-driven model of its own: whole nanoseconds, events of one time in the order in which they were entered. [`run`] gives the
//! finish time of every NPU, or says why there is none: where ASTRA-sim stops by an assertion, never ends or ends without a word.
//!
//! Where all NPUs do the same in a network in which none stands out, one stands for all ([`alike`]): what it sends to the NPU d places
//! ahead is what it receives from the NPU d places behind. Source of the rules: Won et al., ASTRA-sim2.0, ISPASS 2023, and what the
//! program does (revision 518bd513a with astra-network-analytical 599a0473a).

mod calendar;
mod engine;
mod messages;
mod wires;

use kasuri_workload::execution::alike;
use kasuri_workload::execution::npus::Job;

/// Which of the two backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Each link carries one message at a time.
    Aware,
    /// Messages do not disturb each other.
    Unaware,
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What the NPUs do.
    pub job: Job<'a>,
    /// Which backend.
    pub backend: Backend,
    /// Whether one NPU may stand for all where they are alike. The results are the same.
    pub use_symmetry: bool,
}

/// When each NPU has finished, in nanoseconds.
///
/// # Errors
/// A sentence that says where ASTRA-sim stops, hangs or leaves an NPU unfinished, and why.
pub fn run(input: &Input<'_>) -> Result<Vec<u64>, String> {
    input.job.check()?;
    let npus = input.job.cluster.npus() as usize;
    let alike = input.use_symmetry && are_alike(input);
    let finished = engine::run(input, alike)?;
    Ok(if alike { vec![finished[0]; npus] } else { finished })
}

/// May one NPU stand for all?
fn are_alike(input: &Input<'_>) -> bool {
    // Over several dimensions it has not been shown that the order of events of one time does not matter.
    input.job.cluster.dimensions.len() == 1 && alike::is_symmetric(&input.job, input.backend == Backend::Aware)
}

#[cfg(test)]
mod tests;
