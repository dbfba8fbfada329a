//! The state of a run: ports, packets, terminals, the workload, and failures.

use super::control::ControlQueue;
use super::counts::Counts;
use super::packets::Packets;
use super::ports::Port;
use crate::calendar::Calendar;
use kasuri_model::router::Switching;
use kasuri_model::scenario::{ClosedWorkload, Failure, Scenario};
use kasuri_model::sources::Sources;
use kasuri_network::rng::Purpose;
use kasuri_network::routing::{Candidate, Routing, VirtualChannels};
use kasuri_workload::workload::Token;
use kasuri_workload::workload::agenda::Agenda;
use std::collections::VecDeque;
use std::sync::Arc;

/// A run. Many fields, because it is the whole state.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) routing: &'a dyn Routing,
    pub(super) routing_seed: u64,
    pub(super) failures: Failures,
    /// Cycles from the arrival of a head (a tail, where packets are stored) at a router to its first chance to leave.
    pub(super) router_cycles: u64,
    pub(super) stores: bool,
    pub(super) calendar: Calendar,
    pub(super) control: ControlQueue,
    /// When the workload does something next.
    pub(super) due: u64,
    pub(super) packets: Packets,
    pub(super) ports: Vec<Port>,
    pub(super) terminals: Terminals,
    pub(super) workload: Option<RunningWorkload<'a>>,
    pub(super) ends: Ends,
    pub(super) counts: Counts,
    pub(super) candidates: Vec<Candidate>,
    pub(super) channels_of_classes: Vec<[VirtualChannels; 2]>,
    /// Events so far, and those at the last look for a deadlock.
    pub(super) events: u64,
    pub(super) searched_at: u64,
}

impl<'a> Run<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let network = &scenario.network;
        let ports = Port::all(network);
        let terminals = network.terminal_count() as usize;
        let flits = u64::from(scenario.longest_packet());
        let reach =
            ports.iter().map(|port| port.latency + flits * port.period).max().unwrap_or(1) + u64::from(scenario.pipeline.head_cycles());
        let spacing = flits as f64 / (8.0 * terminals.max(1) as f64);
        let workload = RunningWorkload::of(scenario);
        let to_come = scenario.closed_messages();
        Self {
            scenario,
            routing: &*scenario.routing,
            failures: Failures::of(scenario),
            routing_seed: scenario.streams.key(Purpose::Routing),
            router_cycles: u64::from(scenario.pipeline.head_cycles()) - 1,
            stores: scenario.router.switching == Switching::StoreAndForward,
            calendar: Calendar::new(2 * ports.len() + terminals, spacing, reach),
            control: ControlQueue::default(),
            due: if workload.is_some() { 0 } else { u64::MAX },
            packets: Packets::default(),
            ports,
            terminals: Terminals::new(scenario),
            ends: Ends {
                is_closed: to_come.is_some(),
                to_come: to_come.unwrap_or(0) as i64,
                counts_open: workload.is_none() && to_come.is_some(),
                completion: vec![0; if to_come.is_some() { terminals } else { 0 }],
                first_finished: false,
                first_told: false,
            },
            workload,
            counts: Counts::new(scenario),
            candidates: Vec::new(),
            channels_of_classes: scenario.channels_of_classes(),
            events: 0,
            searched_at: 0,
        }
    }
}

/// How near a closed run is to its end.
#[derive(Debug)]
pub(super) struct Ends {
    /// Does the run end by itself? Then messages, or packets of batches, that have not arrived.
    pub(super) is_closed: bool,
    pub(super) to_come: i64,
    /// Do packets of open traffic count there?
    pub(super) counts_open: bool,
    /// By terminal: the cycle after the arrival of its last packet.
    pub(super) completion: Vec<u64>,
    pub(super) first_finished: bool,
    pub(super) first_told: bool,
}

/// What fails and comes up again, and what is known of it.
#[derive(Debug)]
pub(super) struct Failures {
    pub(super) failure: Option<Arc<Failure>>,
    /// The last epoch of which routers know, from 1; 0 before the first.
    pub(super) known: u32,
}

impl Failures {
    pub(super) fn of(scenario: &Scenario) -> Self {
        Self { failure: scenario.failure.clone(), known: 0 }
    }
}

/// A terminal.
#[derive(Clone, Debug, Default)]
pub(super) struct Terminal {
    /// Packets that were lost and may be sent again.
    pub(super) resend: VecDeque<u32>,
    /// Messages of which packets are left to send, in the order of their turns.
    pub(super) messages: VecDeque<u32>,
    /// Packets sent so far.
    pub(super) serial: u32,
    /// Of its packets, those that have been begun and have not arrived.
    pub(super) under_way: u32,
    /// Does open traffic go before messages next time?
    pub(super) open_goes_first: bool,
}

/// The terminals, and what creates open traffic.
#[derive(Debug)]
pub(super) struct Terminals {
    pub(super) all: Vec<Terminal>,
    pub(super) sources: Sources,
    /// By terminal: the cycle in which it is looked at anyway.
    pub(super) awaited: Vec<u64>,
    pub(super) has_open: bool,
}

impl Terminals {
    pub(super) fn new(scenario: &kasuri_model::scenario::Scenario) -> Self {
        let terminals = scenario.network.terminal_count() as usize;
        Self {
            all: vec![Terminal::default(); terminals],
            sources: Sources::new(scenario),
            awaited: vec![u64::MAX; terminals],
            has_open: !scenario.classes.is_empty(),
        }
    }

    /// The terminals that are to wake, with the cycles.
    pub(super) fn wake_times(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(self.awaited.iter().copied()).filter(|&(_, time)| time < u64::MAX)
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) token: Token,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// Flits that are not in any packet yet.
    pub(super) left: u32,
    pub(super) packet_flits: u32,
    pub(super) packets: u32,
    /// Packets that have been begun, have begun to leave their terminal, and have arrived.
    pub(super) begun: u32,
    pub(super) sent: u32,
    pub(super) arrived: u32,
    /// One more than the highest number that has arrived.
    pub(super) next: u32,
    pub(super) since: u64,
    pub(super) class: u8,
}

/// A running workload.
#[derive(Debug)]
pub(super) struct RunningWorkload<'a> {
    pub(super) closed: &'a ClosedWorkload,
    pub(super) agenda: Agenda<'a>,
    pub(super) messages: Vec<Message>,
    pub(super) free: Vec<u32>,
    /// What has happened in this cycle, of which the workload hears in the next: messages that have left, and those that have arrived, by
    /// destination.
    pub(super) left: Vec<u32>,
    pub(super) arrived: Vec<(u32, u32)>,
    pub(super) first_class: u8,
}

impl<'a> RunningWorkload<'a> {
    pub(super) fn of(scenario: &'a Scenario) -> Option<Self> {
        let (closed, agenda) = (scenario.workload.as_ref()?, scenario.agenda()?);
        let first_class = scenario.classes.len() as u8;
        Some(Self { closed, agenda, messages: Vec::new(), free: Vec::new(), left: Vec::new(), arrived: Vec::new(), first_class })
    }

    /// Is nothing due, and has it heard of everything?
    pub(super) fn is_idle(&self) -> bool {
        self.left.is_empty() && self.arrived.is_empty() && self.agenda.is_idle()
    }

    /// When it does something next, if ever.
    pub(super) fn next_due(&self, now: u64) -> u64 {
        if !(self.left.is_empty() && self.arrived.is_empty()) {
            return now + 1;
        }
        let due = self.agenda.next_due();
        if due.is_finite() { (due.ceil() as u64).max(now) } else { u64::MAX }
    }
}
