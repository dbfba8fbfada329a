//! The programs that `[workload]` can name, and the machine that they run on. To add one: a file here and its line in [`PROGRAMS`].

mod allgather;
mod barrier;
mod multicast_pair;
mod ping_pong;
mod protection;
mod protocols;
mod storm;
mod supervisor;
pub mod user_script;

use super::memory::PAGE;
use super::node::Node;
use super::parcel::MAX_PARCEL;
use super::script::{Op, Program, SOURCE, Script, TARGET};
use super::task::{Destination, GROUP, Multicast, Synchronisation};
use super::{Cenju4, Machine, set_up};
use crate::endpoint::contract::{EndpointContext, EndpointError, EndpointSchedule};
use kasuri_network::rng::Purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The keys of `[workload]` on this machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// A program in place of a collective: `ping-pong`: the first rank sends to the last one, which sends back; `protocols`: the first
    /// rank uses every protocol on the last one; `protection`: it tries what its tables do not allow; `multicast-storm`: every rank multicasts to random sets of nodes;
    /// `multicast-pair`: the first and the last rank do at the same time, and every byte is compared; `script`: what `script`
    /// says.
    pub program: Option<String>,
    /// The collective operation.
    pub collective: Option<String>,
    /// How it is done; the first that `kasuri list schedules` shows for this endpoint unless given.
    pub schedule: Option<String>,
    /// With `program = "script"`: what the ranks do. A rank's data is a sequence of its own; a rank that several parts name does one after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<user_script::Part>,
    /// Bytes of a message, or of each rank's block, at least 1.
    pub message_bytes: u64,
    /// Tasks of each rank's node, each of which runs the program: at most 16. With more of them than `endpoint.user_registers`, the operating system
    /// gives control registers of the Sender to another task when a header queue is empty and its last packet has left.
    pub tasks: u32,
    /// Parcels of `message_bytes` that the operating system of each rank's node sends to that of the next, in supervisor mode.
    pub system_parcels: u32,
    /// Ranks, on the first nodes. All nodes unless given.
    pub ranks: Option<u32>,
    /// How often the program is run, one run after the other, at least 1.
    pub repeat: u32,
    /// How often it is run before that, while time does not count: translations are loaded then.
    pub warmup: u32,
    /// Each rank starts after a random time from 0 to so many nanoseconds.
    pub start_skew_ns: f64,
    /// The library that sends a ping-pong's messages.
    pub library: Library,
    /// A ping-pong's messages are sent by a system call, which also writes their lines back to memory.
    pub system_call: bool,
    /// Where in its page the data that is sent begins, in bytes; a multiple of 4.
    pub source_offset: u64,
    /// The same for the data that a ping-pong sends back; as `source_offset` unless given.
    pub return_offset: Option<u64>,
    /// Where in its page the data that is received begins, in bytes; a multiple of 4.
    pub target_offset: u64,
    /// The interface does not ask the cache again for a line in which the packet before ended.
    pub reuse_line: bool,
    /// When multicasts and synchronisations are registered with the operating system.
    pub registration: Registration,
    /// The first so many pages of what a rank sends are not in memory when time begins.
    pub missing_source_pages: u32,
    /// The first so many pages of where a rank receives are not in memory when time begins.
    pub missing_target_pages: u32,
    /// Copy data at an odd word to a double word before it is sent, in place of having the interface rearrange it.
    pub copy_odd_words: bool,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            program: None,
            collective: None,
            schedule: None,
            script: Vec::new(),
            message_bytes: 8,
            tasks: 1,
            system_parcels: 0,
            ranks: None,
            repeat: 1,
            warmup: 0,
            start_skew_ns: 0.0,
            library: Library::default(),
            system_call: false,
            source_offset: 0,
            return_offset: None,
            target_offset: 0,
            reuse_line: true,
            registration: Registration::default(),
            missing_source_pages: 0,
            missing_target_pages: 0,
            copy_odd_words: false,
        }
    }
}

/// The library of a ping-pong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// The machine's own: a put to a known address.
    #[default]
    Paralib,
    /// MPI on top of it.
    Mpi,
}

/// When what a program multicasts or synchronises with is registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// Before time begins.
    #[default]
    BeforeStart,
    /// By the program, before its first run: a system call for each, which also writes the entry of the table.
    FirstUse,
}

/// A program.
#[derive(Debug)]
pub struct Entry {
    /// `workload.program`, or the collective.
    pub name: &'static str,
    /// How the collective is done; empty for what is no collective.
    pub schedule: &'static str,
    /// One line for `kasuri list`.
    pub summary: &'static str,
    /// Writes what one rank does in one run.
    run: fn(&mut Script<'_>, &Job<'_>, Turn),
    /// Bytes that a rank receives.
    target_bytes: fn(&Workload, u32) -> u64,
    /// What of the network it uses that has to be registered.
    registers: Registers,
}

/// What a program registers with the operating system before it uses it.
#[derive(Clone, Copy, Debug)]
enum Registers {
    /// Nothing.
    Nothing,
    /// Multicasts of a rank.
    Multicasts(fn(&Job<'_>, u32) -> Vec<Multicast>),
    /// A synchronisation of all ranks.
    Synchronisation,
}

/// All programs, a collective's default first.
pub static PROGRAMS: &[Entry] = &[
    ping_pong::ENTRY,
    protocols::ENTRY,
    protection::ENTRY,
    storm::ENTRY,
    multicast_pair::ENTRY,
    user_script::ENTRY,
    allgather::MULTICAST,
    allgather::SHIFT,
    allgather::IN_ORDER,
    barrier::NETWORK,
    barrier::MULTICAST_ADD,
    barrier::ADD,
    barrier::TREE,
    barrier::MESSAGES,
];

const SECTION: &str = "Kano et al., IPSJ Journal 41 (2000), section 6";

/// The schedules of collectives, for `kasuri list schedules`.
pub fn schedules() -> impl Iterator<Item = EndpointSchedule> {
    PROGRAMS.iter().filter(|entry| !entry.schedule.is_empty()).map(|entry| EndpointSchedule {
        model: "cenju4",
        collective: entry.name,
        schedule: entry.schedule,
        summary: entry.summary,
        source: SECTION,
    })
}

/// What all ranks have in common.
#[derive(Debug)]
struct Job<'a> {
    workload: &'a Workload,
    constants: &'a Cenju4,
    ranks: u32,
    /// Runs, those of the warm-up among them.
    runs: u32,
    /// The communication identifier of the task.
    cid: u8,
    /// What random choices follow from.
    key: u64,
}

/// One rank in one run.
#[derive(Clone, Copy, Debug)]
struct Turn {
    rank: u32,
    /// From 0.
    run: u32,
}

impl Job<'_> {
    /// The multicasts that reach all ranks, one to each group of 64 nodes.
    fn multicasts_to_all(&self) -> Vec<Multicast> {
        let nodes = |group: u32| u64::MAX >> (GROUP - (self.ranks - group * GROUP).min(GROUP));
        (0..self.ranks.div_ceil(GROUP)).map(|group| Multicast { group: group as u8, nodes: nodes(group), cid: self.cid }).collect()
    }

    /// Multicasts that reach all ranks: their offsets in the multicast table.
    fn groups(&self) -> std::ops::Range<u16> {
        0..self.ranks.div_ceil(GROUP) as u16
    }
}

/// The most tasks of a node.
const MOST_TASKS: u32 = 16;

/// Puts the machine together.
pub(super) fn machine(constants: &Cenju4, workload: &Workload, context: &EndpointContext<'_>) -> Result<Machine, EndpointError> {
    let entry = find(workload)?;
    let terminals = context.network.terminal_count();
    let ranks = workload.ranks.unwrap_or(terminals);
    check(workload, entry, ranks, terminals)?;
    let runs = workload.warmup + workload.repeat;
    let key = context.streams.key(Purpose::Destination);
    let jobs: Vec<Job<'_>> =
        (1..=workload.tasks as u8).map(|cid| Job { workload, constants, ranks, runs, cid, key: key ^ u64::from(cid - 1) }).collect();
    let mut nodes: Vec<Node> = (0..terminals).map(|node| Node::new(node as u16, constants.tlb_entries as usize)).collect();
    for node in nodes.iter_mut().take(ranks as usize) {
        jobs.iter().for_each(|job| prepare(node, job, entry, terminals));
    }
    let mut programs = vec![Vec::new(); terminals as usize];
    for rank in 0..ranks {
        for job in &jobs {
            let start = rank + terminals * u32::from(job.cid - 1);
            let skew = context.streams.get(Purpose::Start, start).unit() * workload.start_skew_ns;
            programs[rank as usize].push(program(job, entry, rank, skew));
        }
    }
    if workload.system_parcels > 0 {
        supervisor::add(&jobs[0], &mut nodes, &mut programs);
    }
    Ok(Machine { constants: constants.clone(), nodes, programs, warmup: workload.warmup as usize })
}

/// Sets up a task of a node.
fn prepare(node: &mut Node, job: &Job<'_>, entry: &Entry, terminals: u32) {
    let (workload, cid, rank) = (job.workload, job.cid, u32::from(node.number));
    let offsets = workload.source_offset.max(workload.return_offset.unwrap_or(0));
    let target = workload.target_offset + (entry.target_bytes)(workload, job.ranks);
    let source = (offsets + workload.message_bytes).max(user_script::source_bytes(workload));
    set_up(node, cid, source, target, job.constants);
    let task = node.create_task(cid);
    task.nodes = (0..job.ranks).map(|rank| Destination { node: rank as u16, cid }).collect();
    for (address, pages) in [(SOURCE, workload.missing_source_pages), (TARGET, workload.missing_target_pages)] {
        (0..u64::from(pages)).for_each(|page| task.set_present(address + page * PAGE, false));
    }
    if workload.registration == Registration::BeforeStart || matches!(entry.registers, Registers::Nothing) {
        task.multicasts = match entry.registers {
            Registers::Multicasts(of) => of(job, rank),
            _ => job.multicasts_to_all(),
        };
        if terminals <= GROUP {
            task.synchronisations = vec![Synchronisation { sid: cid - 1, nodes: job.multicasts_to_all()[0].nodes, cid }];
        }
    }
}

/// What a task of a node does, from a time on.
fn program(job: &Job<'_>, entry: &Entry, rank: u32, start_ns: f64) -> Program {
    let mut script = Script::new(job.constants);
    if start_ns > 0.0 {
        script.busy(start_ns);
    }
    if job.workload.registration == Registration::FirstUse {
        register(&mut script, job, entry, rank);
    }
    for run in 0..job.runs {
        script.op(Op::Stamp);
        (entry.run)(&mut script, job, Turn { rank, run });
    }
    script.op(Op::Stamp);
    script.finish(job.cid)
}

/// The multicasts of a program that multicasts to all ranks.
fn to_all(job: &Job<'_>, _rank: u32) -> Vec<Multicast> {
    job.multicasts_to_all()
}

/// The system calls by which a rank registers what its program uses.
fn register(script: &mut Script<'_>, job: &Job<'_>, entry: &Entry, rank: u32) {
    let logical = |group: u8, nodes: u64| -> Vec<u16> {
        (0..GROUP as u16).filter(|bit| nodes >> bit & 1 == 1).map(|bit| u16::from(group) * GROUP as u16 + bit).collect()
    };
    match entry.registers {
        Registers::Nothing => {}
        Registers::Multicasts(of) => {
            for multicast in of(job, rank) {
                script.op(Op::RegisterMulticast { nodes: logical(multicast.group, multicast.nodes) });
            }
        }
        Registers::Synchronisation => {
            script.op(Op::RegisterSynchronisation { sid: job.cid - 1, nodes: logical(0, job.multicasts_to_all()[0].nodes) });
        }
    }
}

fn find(workload: &Workload) -> Result<&'static Entry, EndpointError> {
    let wrong = |key: &str, problem: String| Err(EndpointError::new("workload", key, problem));
    let names = |schedule: bool| {
        let mut names: Vec<&str> = PROGRAMS.iter().filter(|entry| entry.schedule.is_empty() != schedule).map(|entry| entry.name).collect();
        names.dedup();
        names.join(", ")
    };
    match (&workload.program, &workload.collective) {
        (Some(_), Some(_)) => wrong("program", "conflicts with collective; keep one of the two".to_owned()),
        (None, None) => {
            wrong("collective", format!("is missing; on this endpoint it is one of {}, or program is one of {}", names(true), names(false)))
        }
        (Some(name), None) => match PROGRAMS.iter().find(|entry| entry.schedule.is_empty() && entry.name == name) {
            Some(entry) => Ok(entry),
            None => wrong("program", format!("is \"{name}\"; on this endpoint it must be one of {}", names(false))),
        },
        (None, Some(name)) => {
            let of: Vec<&Entry> = PROGRAMS.iter().filter(|entry| !entry.schedule.is_empty() && entry.name == name).collect();
            let Some(first) = of.first() else {
                return wrong("collective", format!("is \"{name}\"; on this endpoint it must be one of {}", names(true)));
            };
            let wanted = workload.schedule.as_deref().unwrap_or(first.schedule);
            match of.iter().find(|entry| entry.schedule == wanted) {
                Some(entry) => Ok(entry),
                None => {
                    let known: Vec<&str> = of.iter().map(|entry| entry.schedule).collect();
                    wrong(
                        "schedule",
                        format!("is \"{wanted}\"; with collective {name} on this endpoint it must be one of {}", known.join(", ")),
                    )
                }
            }
        }
    }
}

fn check(workload: &Workload, entry: &Entry, ranks: u32, terminals: u32) -> Result<(), EndpointError> {
    let wrong = |key: &str, problem: String| Err(EndpointError::new("workload", key, problem));
    let least = if entry.schedule.is_empty() { 2 } else { 1 };
    if !(least..=terminals).contains(&ranks) {
        return wrong("ranks", format!("is {ranks}; with {terminals} terminals it must be {least} to {terminals}"));
    }
    if matches!(entry.registers, Registers::Synchronisation) && terminals > GROUP {
        let problem = format!(
            "is \"{}\", which a machine of {terminals} nodes cannot do: the participants are {GROUP} bits of a packet and of the routers' \
             tables, so the network has at most {GROUP} nodes; use multicast-atomic-add",
            entry.schedule
        );
        return wrong("schedule", problem);
    }
    user_script::check(workload, entry.name == user_script::ENTRY.name, ranks, terminals)?;
    if !(1..=MOST_TASKS).contains(&workload.tasks) {
        return wrong("tasks", format!("is {}; it must be 1 to {MOST_TASKS}", workload.tasks));
    }
    let most_pages = (super::MOST_BYTES / PAGE) as u32;
    for (key, pages) in [("missing_source_pages", workload.missing_source_pages), ("missing_target_pages", workload.missing_target_pages)] {
        if pages > most_pages {
            return wrong(key, format!("is {pages}; it must be at most {most_pages}, the pages of all that a rank sends or receives"));
        }
    }
    if workload.system_parcels > 1000 {
        return wrong("system_parcels", format!("is {}; it must be at most 1000", workload.system_parcels));
    }
    if workload.system_parcels > 0 && workload.message_bytes > u64::from(MAX_PARCEL) {
        let problem = format!("is {}; with system_parcels it must be at most {MAX_PARCEL}, what a parcel holds", workload.message_bytes);
        return wrong("message_bytes", problem);
    }
    if workload.repeat == 0 {
        return wrong("repeat", "is 0; it must be at least 1".to_owned());
    }
    for (key, runs) in [("repeat", workload.repeat), ("warmup", workload.warmup)] {
        if runs > 1_000_000 {
            return wrong(key, format!("is {runs}; it must be at most 1000000"));
        }
    }
    let sets = [storm::ENTRY.name, multicast_pair::ENTRY.name].contains(&entry.name);
    if sets && (workload.repeat + workload.warmup > 4000 || workload.message_bytes > u64::from(MAX_PARCEL)) {
        return wrong(
            "repeat",
            format!(
                "is {}; such a program has at most 4000 parcels of each rank, of 512 Kbyte each: the offsets of its sets have 12 bits",
                workload.repeat
            ),
        );
    }
    let alone = [protection::ENTRY.name].contains(&entry.name);
    if alone && (workload.tasks > 1 || workload.system_parcels > 0) {
        let problem = format!("is {}; the program protection counts all that its node refuses, so it is alone", workload.tasks);
        return wrong("tasks", problem);
    }
    let once = [protocols::ENTRY.name, protection::ENTRY.name].contains(&entry.name);
    if once && (workload.repeat, workload.warmup) != (1, 0) {
        let problem = format!("has no meaning for the program {}, which runs once; leave it and warmup out", entry.name);
        return wrong("repeat", problem);
    }
    if !(0.0..=1e12).contains(&workload.start_skew_ns) {
        return wrong("start_skew_ns", format!("is {}; it must be 0 to 10^12", workload.start_skew_ns));
    }
    let most = super::MOST_BYTES;
    if !(1..=most).contains(&workload.message_bytes) || (entry.target_bytes)(workload, ranks) > most {
        let problem = format!("is {}; it must be 1 to {most}, and a node may receive at most {most} in all", workload.message_bytes);
        return wrong("message_bytes", problem);
    }
    let offsets = [
        ("source_offset", Some(workload.source_offset)),
        ("return_offset", workload.return_offset),
        ("target_offset", Some(workload.target_offset)),
    ];
    for (key, offset) in offsets {
        if let Some(offset) = offset.filter(|offset| offset % 4 != 0 || *offset >= super::PAGE) {
            return wrong(key, format!("is {offset}; it must be a multiple of 4 below {}", super::PAGE));
        }
    }
    Ok(())
}
