//! What the nodes of a job ask for, without running them: for formulas.

use super::super::trace::{Collective, Operation};
use super::issue::{Course, Task, recorded};
use super::{Done, Form, Item, Job, Npus, Outside, Sending};

/// What a node asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing, in no time.
    Nothing,
    /// So many nanoseconds.
    Time(u64),
    /// A message to another NPU, under a tag.
    Send {
        /// The NPU.
        to: u32,
        /// The tag.
        tag: u32,
        /// Its size.
        bytes: u64,
    },
    /// A message from another NPU.
    Receive {
        /// The NPU.
        from: u32,
        /// The tag.
        tag: u32,
        /// Its size.
        bytes: u64,
    },
    /// A collective that is made of messages.
    Gathering(Gathering),
}

/// A collective, as one of those that take part sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gathering {
    /// What it is.
    pub operation: Operation,
    /// Its size in the trace.
    pub bytes: u64,
    /// The number of the communicator group; 0 for all NPUs.
    pub group: u32,
    /// All that take part.
    pub members: Vec<u32>,
}

/// No time and no network: for NPUs that are only looked at.
#[derive(Debug)]
pub struct Silence;

impl Outside for Silence {
    fn set(&mut self, _npu: u32, _delay: u64, _item: Item) {}

    fn send(&mut self, _message: Sending) -> Result<(), String> {
        Ok(())
    }

    fn is_astra_sim(&self) -> bool {
        false
    }

    fn received(&mut self, _npu: u32, _done: Done) {}

    fn finished(&mut self, _npu: u32) {}
}

/// The programs of a job, to be looked at.
#[derive(Debug)]
pub struct Outline<'a>(Npus<'a, Silence>);

impl<'a> Outline<'a> {
    /// Of a job. Communicator groups that traces define are known from the beginning.
    ///
    /// # Errors
    /// A node waits for one that is not there.
    pub fn new(job: Job<'a>) -> Result<Self, String> {
        let mut npus = Npus::new(job, job.cluster.npus(), Silence)?;
        for npu in 0..npus.npus.len() as u32 {
            for node in 0..job.traces[npu as usize].nodes.len() as u32 {
                if let Ok(Task::Defines(groups)) = npus.task(npu, node) {
                    npus.define_groups(npu, groups);
                }
            }
        }
        Ok(Self(npus))
    }

    /// What a node asks for.
    ///
    /// # Errors
    /// A sentence about a node that cannot be run, or for which there is no formula.
    pub fn asks(&self, npu: u32, node: u32) -> Result<Asks, String> {
        Ok(match self.0.task(npu, node)? {
            Task::Nothing | Task::Defines(_) => Asks::Nothing,
            Task::Takes(time) => Asks::Time(time),
            Task::Sends { to, tag, bytes } => Asks::Send { to, tag, bytes },
            Task::Receives { from, tag, bytes } => Asks::Receive { from, tag, bytes },
            Task::Gathers(collective) => self.gathering(npu, node, collective)?,
        })
    }

    fn gathering(&self, npu: u32, node: u32, collective: &Collective) -> Result<Asks, String> {
        match self.0.course(npu, node, collective)? {
            Course::Silent => Ok(Asks::Time(recorded(&self.0.job.traces[npu as usize].nodes[node as usize]))),
            Course::Alone => Ok(Asks::Nothing),
            Course::Trace { .. } => {
                Err("is a collective that is a trace of its own, for which there is no formula; use --engine flow".to_owned())
            }
            Course::Phases { scope, .. } => Ok(Asks::Gathering(Gathering {
                operation: collective.operation.unwrap_or(Operation::AllReduce),
                bytes: collective.bytes.unwrap_or(0),
                group: collective.group,
                members: scope.members(npu),
            })),
        }
    }

    /// The phases of a collective, as an NPU sees them.
    ///
    /// # Errors
    /// A sentence about a collective that cannot be run; a node that is none has no phases.
    pub fn form(&self, npu: u32, node: u32) -> Result<Form, String> {
        let Task::Gathers(collective) = self.0.task(npu, node)? else { return Ok(Form::default()) };
        let Course::Phases { scope, chunks, chunk, .. } = self.0.course(npu, node, collective)? else { return Ok(Form::default()) };
        let system = self.0.job.system;
        scope.form(self.0.job.queues, system.optimization, chunks, chunk)
    }
}
