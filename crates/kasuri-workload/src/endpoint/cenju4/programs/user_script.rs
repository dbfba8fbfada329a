//! A user's own program: `workload.script` says what some ranks do, step by step.

use super::super::script::{Op, Put, SOURCE, Script, TARGET};
use super::super::task::{GROUP, Multicast};
use super::{Entry, Job, Registers, Turn, Workload};
use crate::endpoint::contract::EndpointError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const ENTRY: Entry = Entry {
    name: "script",
    schedule: "",
    summary: "what `workload.script` says",
    run,
    target_bytes: |workload, _| steps(workload).map(Step::target_end).max().unwrap_or(0).max(8),
    registers: Registers::Multicasts(multicasts),
};

/// What some ranks do. Ranks that no part names do nothing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The ranks.
    pub ranks: Vec<u16>,
    /// What each of them does, in order.
    pub steps: Vec<Step>,
}

/// A step. Which of its keys have a meaning follows from the action; others must be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// `put`, `message`, `add`: the rank that it is for.
    pub to: Option<u16>,
    /// `get`, `check`: the rank whose data it is.
    pub from: Option<u16>,
    /// `multicast`: the ranks that it is for, all in one group of 64.
    pub group: Option<Vec<u16>>,
    /// `put`, `multicast`, `get`, `check`: how many bytes.
    pub bytes: Option<u64>,
    /// `put`, `multicast`, `get`: where in the sender's data they begin; a multiple of 4, 0 unless given.
    pub source_offset: Option<u64>,
    /// `put`, `multicast`, `get`, `check`: where in the receiver's memory they begin; a multiple of 8, 0 unless given.
    pub target_offset: Option<u64>,
    /// `receive`, `receive-messages`: how many more, 1 unless given. `add`: what is added, 1 unless given. `await-counter`: the value to wait for.
    pub count: Option<u64>,
    /// `compute`: for how long.
    pub ns: Option<f64>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Computes.
    #[default]
    Compute,
    /// Writes into another rank's memory.
    Put,
    /// Writes into the memories of several ranks.
    Multicast,
    /// Reads another rank's memory, and waits for it.
    Get,
    /// Waits until puts and multicasts to this rank have arrived.
    Receive,
    /// Sends 8 bytes to a rank's message buffer.
    Message,
    /// Waits for messages.
    ReceiveMessages,
    /// Adds to another rank's counter.
    Add,
    /// Waits until this rank's counter has a value.
    AwaitCounter,
    /// Waits in the routers until all ranks have come.
    Barrier,
    /// Fails the run unless the bytes are those of a rank's data, from its beginning.
    Check,
}

impl Action {
    /// The keys that it needs, and those that it may have.
    fn keys(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Compute => (&["ns"], &[]),
            Self::Put => (&["to", "bytes"], &["source_offset", "target_offset"]),
            Self::Multicast => (&["group", "bytes"], &["source_offset", "target_offset"]),
            Self::Get => (&["from", "bytes"], &["source_offset", "target_offset"]),
            Self::Receive | Self::ReceiveMessages => (&[], &["count"]),
            Self::Message => (&["to"], &[]),
            Self::Add => (&["to"], &["count"]),
            Self::AwaitCounter => (&["count"], &[]),
            Self::Barrier => (&[], &[]),
            Self::Check => (&["from", "bytes"], &["target_offset"]),
        }
    }
}

impl Step {
    fn given(&self) -> [(&'static str, bool); 8] {
        [
            ("to", self.to.is_some()),
            ("from", self.from.is_some()),
            ("group", self.group.is_some()),
            ("bytes", self.bytes.is_some()),
            ("source_offset", self.source_offset.is_some()),
            ("target_offset", self.target_offset.is_some()),
            ("count", self.count.is_some()),
            ("ns", self.ns.is_some()),
        ]
    }

    fn source(&self) -> u64 {
        SOURCE + self.source_offset.unwrap_or(0)
    }

    fn target(&self) -> u64 {
        TARGET + self.target_offset.unwrap_or(0)
    }

    fn source_end(&self) -> u64 {
        self.source_offset.unwrap_or(0).saturating_add(self.bytes.unwrap_or(0))
    }

    fn target_end(&self) -> u64 {
        self.target_offset.unwrap_or(0).saturating_add(self.bytes.unwrap_or(0))
    }

    /// What is wrong with it, if anything is.
    fn problem(&self, ranks: u32, terminals: u32) -> Option<String> {
        let (needed, allowed) = self.action.keys();
        let name = name_in_file(self.action);
        for (key, is_given) in self.given() {
            if is_given && !needed.contains(&key) && !allowed.contains(&key) {
                return Some(format!("has `{key}`, which means nothing for {name}; leave it out"));
            }
            if !is_given && needed.contains(&key) {
                return Some(format!("lacks `{key}`, which {name} needs"));
            }
        }
        let others = self.to.iter().chain(&self.from).chain(self.group.iter().flatten());
        if let Some(rank) = others.copied().find(|&rank| u32::from(rank) >= ranks) {
            return Some(format!("names rank {rank}; there are ranks 0 to {}", ranks - 1));
        }
        if self.action == Action::Multicast {
            let group = self.group.as_deref().unwrap_or_default();
            let group_of = |rank: &u16| u32::from(*rank) / GROUP;
            if group.is_empty() || group.iter().any(|rank| group_of(rank) != group_of(&group[0])) {
                return Some(
                    "has a group of none, or of several groups of 64 nodes, to which no multicast goes; name ranks of one".to_owned(),
                );
            }
        }
        if self.action == Action::Barrier && terminals > GROUP {
            return Some(format!(
                "is a barrier on {terminals} nodes; the routers' tables have bits for {GROUP}; use add and await-counter"
            ));
        }
        let most = super::super::MOST_BYTES;
        if self.bytes.is_some_and(|bytes| !(1..=most).contains(&bytes)) || self.source_end().max(self.target_end()) > most {
            return Some(format!("has bytes from 1 to {most} only, offsets included"));
        }
        if self.action == Action::Get && self.bytes > Some(u64::from(super::super::parcel::MAX_PARCEL)) {
            return Some("gets more than 524288 bytes, the most that a remote read brings; use several".to_owned());
        }
        if !(self.source_offset.unwrap_or(0).is_multiple_of(4) && self.target_offset.unwrap_or(0).is_multiple_of(8)) {
            return Some(
                "has a source_offset that is no multiple of 4, or a target_offset that is none of 8: data begins at words".to_owned(),
            );
        }
        let wrong = |ns: &f64| !(0.0..=1e12).contains(ns);
        self.ns.filter(wrong).map(|ns| format!("computes for {ns} ns; it must be 0 to 10^12"))
    }

    fn write(&self, script: &mut Script<'_>, multicast: u16) {
        let (source, destination, bytes) = (self.source(), self.target(), self.bytes.unwrap_or(0));
        let put = |to: u16, multicast: bool| Put { to, multicast, source, destination, bytes, reuse_line: true };
        let (to, from, count) = (self.to.unwrap_or(0), self.from.unwrap_or(0), self.count.unwrap_or(1));
        match self.action {
            Action::Compute => script.busy(self.ns.unwrap_or(0.0)),
            Action::Put => script.put(put(to, false)),
            Action::Multicast => script.put(put(multicast, true)),
            Action::Get => script.get(from, source, destination, bytes as u32, 0),
            Action::Receive => script.receive(count),
            Action::Message => script.message(to, 1),
            Action::ReceiveMessages => script.receive_messages(count),
            Action::Add => script.add(to, false, count),
            Action::AwaitCounter => script.await_counter(count),
            Action::Barrier => script.synchronise(0),
            Action::Check => script.op(Op::Check { address: destination, bytes, seed: u64::from(from) }),
        }
    }
}

/// An action's name in the file.
fn name_in_file(action: Action) -> String {
    toml::Value::try_from(action).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn steps(workload: &Workload) -> impl Iterator<Item = &Step> {
    workload.script.iter().flat_map(|part| &part.steps)
}

/// Bytes of data that a rank has to send.
pub(super) fn source_bytes(workload: &Workload) -> u64 {
    steps(workload).map(Step::source_end).max().unwrap_or(0)
}

fn of_rank(workload: &Workload, rank: u32) -> impl Iterator<Item = &Step> {
    workload.script.iter().filter(move |part| part.ranks.iter().any(|&of| u32::from(of) == rank)).flat_map(|part| &part.steps)
}

/// The multicasts of a rank, in their order.
fn multicasts(job: &Job<'_>, rank: u32) -> Vec<Multicast> {
    let groups = of_rank(job.workload, rank).filter(|step| step.action == Action::Multicast).filter_map(|step| step.group.as_ref());
    let multicast = |group: &Vec<u16>| Multicast {
        group: (u32::from(group[0]) / GROUP) as u8,
        nodes: group.iter().fold(0, |nodes, rank| nodes | 1 << (u32::from(*rank) % GROUP)),
        cid: job.cid,
    };
    groups.map(multicast).collect()
}

fn run(script: &mut Script<'_>, job: &Job<'_>, turn: Turn) {
    let bytes = source_bytes(job.workload);
    if bytes > 0 {
        script.op(Op::Fill { address: SOURCE, bytes, seed: u64::from(turn.rank) });
    }
    let mut multicast = 0;
    for step in of_rank(job.workload, turn.rank) {
        step.write(script, multicast);
        multicast += u16::from(step.action == Action::Multicast);
    }
}

/// Refuses scripts that no machine can run.
pub(super) fn check(workload: &Workload, is_chosen: bool, ranks: u32, terminals: u32) -> Result<(), EndpointError> {
    let wrong = |key: &str, problem: String| Err(EndpointError::new("workload", key, problem));
    if is_chosen == workload.script.is_empty() {
        let problem = if is_chosen { "is missing; program = \"script\" runs it" } else { "has no meaning without program = \"script\"" };
        return wrong("script", problem.to_owned());
    }
    if is_chosen && (workload.repeat, workload.warmup) != (1, 0) {
        return wrong("repeat", "has no meaning for a script, which runs once; write its steps as often as they are to be done".to_owned());
    }
    if is_chosen && workload.registration != super::Registration::BeforeStart {
        return wrong("registration", "must be \"before-start\": what a script multicasts to is registered before time begins".to_owned());
    }
    for (number, part) in workload.script.iter().enumerate() {
        if let Some(rank) = part.ranks.iter().find(|&&rank| u32::from(rank) >= ranks) {
            return wrong("script", format!("has rank {rank} in part {}; there are ranks 0 to {}", number + 1, ranks - 1));
        }
        for (place, step) in part.steps.iter().enumerate() {
            if let Some(problem) = step.problem(ranks, terminals) {
                return wrong("script", format!("step {} of part {} {problem}", place + 1, number + 1));
            }
        }
    }
    for rank in 0..ranks {
        let count = of_rank(workload, rank).filter(|step| step.action == Action::Multicast).count();
        if count > 4096 {
            return wrong("script", format!("has {count} multicasts of rank {rank}; the offsets of its table have 12 bits, for 4096"));
        }
    }
    Ok(())
}
