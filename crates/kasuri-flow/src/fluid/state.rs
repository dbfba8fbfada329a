//! What a running simulation of flows keeps, by what it is for.

use super::territory::Territory;
use crate::cohort::Cohort;
use crate::counts::{Counts, Ends};
use crate::graph::{Bandwidth, Graph};
use crate::heap::Heap;
use crate::path_prefetch::{PathPrefetch, may_look_ahead};
use crate::paths::{self, Paths};
use crate::predictions::Predictions;
use crate::scout::Scouted;
use crate::sharing::Sharing;
use kasuri_model::scenario::Scenario;
use kasuri_model::sources::Sources;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::memory::filled;
use kasuri_network::network::{Link, Network};
use kasuri_workload::workload::Token;
use kasuri_workload::workload::agenda::Agenda;

/// The message that a terminal sends at present. 40 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) created: f64,
    pub(super) begun: f64,
    /// Flits that the counters hold already.
    pub(super) counted: f64,
    pub(super) destination: TerminalId,
    /// 0: there is none.
    pub(super) flits: u32,
    /// Cycles from the end of the transfer to the arrival of the last flit, of either sign.
    pub(super) head_latency: f32,
    pub(super) hops: u16,
    pub(super) class: u8,
    pub(super) is_reply: bool,
}

impl Message {
    pub(super) const NONE: Self = Self {
        created: 0.0,
        begun: 0.0,
        counted: 0.0,
        destination: TerminalId(0),
        flits: 0,
        head_latency: 0.0,
        hops: 0,
        class: 0,
        is_reply: false,
    };

    pub(super) fn is_there(&self) -> bool {
        self.flits > 0
    }
}

/// A running simulation. Flow number t is the message of terminal t.
pub(crate) struct Fluid<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) now: f64,
    /// Times at which something has happened.
    pub(super) rounds: u64,
    pub(super) rates: Rates,
    pub(super) routes: Routes,
    pub(super) open: OpenTraffic,
    pub(super) workload: RunningWorkload<'a>,
    pub(super) sending: Sending,
    pub(super) counts: Counts,
    pub(super) ends: Ends,
}

/// The flows under way and their rates.
pub(super) struct Rates {
    pub(super) graph: Graph,
    /// Flows that have begun together and are not in the graph.
    pub(super) cohort: Cohort,
    pub(super) sharing: Box<dyn Sharing>,
    pub(super) by_equal_shares: bool,
}

/// Which path a message takes, and what that adds to its latency.
pub(super) struct Routes {
    pub(super) paths: Paths,
    pub(super) prefetch: PathPrefetch,
    /// What another thread has drawn and found of messages; only where they are prepared ahead.
    pub(super) scouted: Option<Scouted>,
    /// What routers that predict save.
    pub(super) predictions: Option<Predictions>,
    /// Where users are simulated one by one: the channels that have been seen to be the present one's.
    pub(super) territory: Option<Territory>,
    /// Do heads take time through routers and channels?
    pub(super) with_latency: bool,
}

/// Open traffic and batches.
pub(super) struct OpenTraffic {
    pub(super) sources: Sources,
    /// How many classes there are; those of the workload's messages follow.
    pub(super) classes: u8,
    /// When idle terminals have something to send.
    pub(super) wakes: Heap,
    /// Terminals that have something to send at the present moment.
    pub(super) waking: Vec<u32>,
}

/// A closed workload in place of open traffic or beside it.
pub(super) struct RunningWorkload<'a> {
    pub(super) agenda: Option<Agenda<'a>>,
    /// Do its messages follow each other whatever else happens? Then the events of a round need not be reported.
    pub(super) rounds_are_predictable: bool,
    /// By part of a workload of users: messages that have not arrived, and when the last one has. Empty without users.
    pub(super) parts: Vec<(u64, f64)>,
    /// The part whose messages begin together: the one that is simulated alone, or all there is.
    pub(super) part: usize,
    /// By terminal: the workload's name of its message; empty without one.
    pub(super) tokens: Box<[Token]>,
}

/// The messages under way.
pub(super) struct Sending {
    /// By terminal.
    pub(super) messages: Box<[Message]>,
    /// By terminal, where there are answers: the cycle that decides whether its message is measured.
    pub(super) asked: Box<[u64]>,
    /// Flows that end at the present moment.
    pub(super) ending: Vec<u32>,
    /// How many messages are on their way.
    pub(super) live: u64,
    /// Draining: measured messages on their way, and queues whose next message is measured.
    pub(super) outstanding: u64,
}

/// By which rules messages flow.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) sharing: Box<dyn Sharing>,
    pub(crate) by_equal_shares: bool,
    /// Do heads take time through routers and channels?
    pub(crate) with_latency: bool,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(scenario: &'a Scenario, rules: Rules, predictions: Option<Predictions>) -> Self {
        let agenda = scenario.agenda();
        let begins_together = agenda.is_some() && scenario.classes.is_empty() && scenario.users.is_none() && scenario.hosts.is_none();
        Self::with_agenda(scenario, rules, predictions, agenda, begins_together)
    }

    /// For a workload of users, of whom one is simulated at a time.
    pub(crate) fn one_by_one(scenario: &'a Scenario, rules: Rules) -> Self {
        Self::with_agenda(scenario, rules, None, None, true)
    }

    /// May messages begin together, without the lists of the graph?
    fn with_agenda(
        scenario: &'a Scenario,
        rules: Rules,
        predictions: Option<Predictions>,
        agenda: Option<Agenda<'a>>,
        begins_together: bool,
    ) -> Self {
        let terminals = scenario.network.terminal_count() as usize;
        let Rules { sharing, by_equal_shares, with_latency } = rules;
        let workload = RunningWorkload::new(scenario, agenda);
        let prefetch = PathPrefetch::new(terminals, may_look_ahead(scenario));
        let waking = Vec::new();
        Self {
            scenario,
            now: 0.0,
            rounds: 0,
            rates: Rates::new(scenario, sharing, by_equal_shares, begins_together),
            routes: Routes { paths: Paths::new(scenario), prefetch, scouted: None, predictions, territory: None, with_latency },
            open: OpenTraffic {
                sources: Sources::new(scenario),
                classes: scenario.classes.len() as u8,
                wakes: Heap::new(terminals),
                waking,
            },
            workload,
            sending: Sending::new(scenario),
            counts: Counts::new(scenario),
            ends: Ends::new(scenario),
        }
    }

    /// With what a scout finds ahead, if there is one.
    pub(crate) fn scouted(mut self, scouted: Option<Scouted>) -> Self {
        self.routes.scouted = scouted;
        self
    }
}

impl Rates {
    fn new(scenario: &Scenario, sharing: Box<dyn Sharing>, by_equal_shares: bool, begins_together: bool) -> Self {
        let network = &scenario.network;
        let terminals = network.terminal_count() as usize;
        // A terminal has one message under way, so its injection channel is all its own.
        let first = if injection_never_limits(network) { terminals as u32 } else { 0 };
        // The memories of hosts follow the network's channels.
        let memories = scenario.hosts.map_or(0, |hosts| hosts.count(terminals as u32));
        let channels = first..network.channel_count() + memories;
        let mut graph = Graph::new(bandwidth(scenario, channels.clone()), channels, terminals as u32, terminals);
        // A memory that has led to one terminal only may be slower than the terminal's channel; a channel that counts for others is crossed
        // several times on the way to one.
        if scenario.routing.facts().observes_congestion || memories > 0 || paths::folded(scenario).is_some() {
            graph.list_all();
        }
        let cohort = Cohort::new(if begins_together { network.channel_count() as usize } else { 0 }, sharing.by_count());
        Self { graph, cohort, sharing, by_equal_shares }
    }
}

impl<'a> RunningWorkload<'a> {
    fn new(scenario: &Scenario, agenda: Option<Agenda<'a>>) -> Self {
        // Who looks at the flows under way sees those that have begun before.
        let follows = scenario.classes.is_empty() && !scenario.routing.facts().observes_congestion;
        let of_users = scenario.workload.as_ref().filter(|_| scenario.users.is_some());
        let terminals = scenario.network.terminal_count() as usize;
        Self {
            rounds_are_predictable: follows && agenda.as_ref().is_some_and(Agenda::follows),
            agenda,
            part: 0,
            parts: of_users.map(|closed| closed.parts.iter().map(|part| (part.messages, 0.0)).collect()).unwrap_or_default(),
            tokens: filled(if scenario.workload.is_some() { terminals } else { 0 }, 0),
        }
    }

    /// Begins a part alone.
    pub(super) fn begin_part(&mut self, part: usize, agenda: Agenda<'a>) {
        self.rounds_are_predictable = agenda.follows();
        (self.part, self.agenda) = (part, Some(agenda));
    }

    /// Adds what has become of other parts elsewhere.
    pub(super) fn absorb(&mut self, other: &Self) {
        for ((to_come, last), &(left, time)) in self.parts.iter_mut().zip(&other.parts) {
            (*to_come, *last) = ((*to_come).min(left), last.max(time));
        }
    }
}

impl Sending {
    fn new(scenario: &Scenario) -> Self {
        let terminals = scenario.network.terminal_count() as usize;
        let is_answered = scenario.classes.iter().any(|class| class.reply.is_some());
        Self {
            messages: filled(terminals, Message::NONE),
            asked: filled(if is_answered { terminals } else { 0 }, 0),
            ending: Vec::new(),
            live: 0,
            outstanding: 0,
        }
    }
}

/// The bandwidth of these channels.
fn bandwidth(scenario: &Scenario, channels: std::ops::Range<u32>) -> Bandwidth {
    let network = &scenario.network;
    let of = |link: &Link| 1.0 / f64::from(link.period);
    let first = network.links().first().map_or(1.0, of);
    if scenario.hosts.is_none() && network.links().iter().all(|link| of(link) == first) {
        return Bandwidth::Equal(first);
    }
    let of_memory = scenario.hosts.map_or(0.0, |hosts| hosts.memory_bandwidth);
    let of_channel = |channel| if channel < network.channel_count() { of(&network.link(ChannelId(channel))) } else { of_memory };
    Bandwidth::Each(channels.map(of_channel).collect())
}

/// Is every injection channel at least as fast as every ejection channel, so that the one limits no message that the other does
/// not?
fn injection_never_limits(network: &Network) -> bool {
    let periods = |first: u32| (first..first + network.terminal_count()).map(|channel| network.link(ChannelId(channel)).period);
    network.links().len() == 1 || periods(0).max() <= periods(network.terminal_count()).min()
}
