//! The input of an engine: everything that is simulated, immutable.

use crate::router::{Pipeline, PredictorMatch, RouterParameters};
use kasuri_network::deadlock::{self, EscapePath};
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::rng::{Stream, Streams};
use kasuri_network::routing::accepting::Accepting;
use kasuri_network::routing::{Routing, VirtualChannels};
use kasuri_workload::endpoint::{Endpoint, Interfaces};
use kasuri_workload::traffic::PacketSizes;
use kasuri_workload::traffic::pattern::Pattern;
use kasuri_workload::traffic::process::{Process, Window};
use kasuri_workload::translation::users::Users;
use kasuri_workload::units::Units;
use kasuri_workload::workload::agenda::Agenda;
use kasuri_workload::workload::{Token, Workload};
use std::sync::Arc;

/// A network, its routing, its routers and its traffic.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Routers, terminals, channels.
    pub network: Arc<Network>,
    /// Where packets go next.
    pub routing: Arc<dyn Routing>,
    /// The routers.
    pub router: RouterParameters,
    /// The router's stages, derived from `router`.
    pub pipeline: Pipeline,
    /// The open traffic: at least one class, unless there is a closed workload or a machine, with which it is the background.
    pub classes: Vec<TrafficClass>,
    /// A closed workload, which ends the run. The classes of its messages follow the open traffic's, one for each part.
    pub workload: Option<ClosedWorkload>,
    /// The users that own the classes, if any.
    pub users: Option<Arc<Users>>,
    /// A machine with its programs, which ends the run, in place of a workload.
    pub endpoint: Option<Arc<dyn Endpoint>>,
    /// Hosts with a memory shared by their terminals, if modelled.
    pub hosts: Option<Hosts>,
    /// Cycles from the loss of a packet in a full queue until its source may resend it (`router.resend_after`); without it the packet stays
    /// lost.
    pub resend_after: Option<u32>,
    /// The failures during the run, if any.
    pub failure: Option<Arc<Failure>>,
    /// The physical units behind flits and cycles, if known.
    pub units: Units,
    /// The random streams of this run.
    pub streams: Streams,
    /// No run goes beyond this many cycles.
    pub max_cycles: u64,
    /// The engine's own section of the experiment file (`[flit]`, `[flow]`, `[analysis]`).
    pub engine_options: toml::Table,
    /// Check conservation of flits and credits while running (`--paranoid`).
    pub paranoid: bool,
    /// Record a timeline (`--timeline`).
    pub timeline: bool,
}

/// Links and routers that fail and recover during a run.
#[derive(Clone, Debug)]
pub struct Failure {
    /// By ascending cycle, at least one: the network from that cycle on.
    pub epochs: Vec<Epoch>,
    /// Cycles from the loss of a packet until its source may resend it; without it the packet stays lost.
    pub resend_after: Option<u32>,
}

/// A time without a change of the working components.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// The cycle in which it begins.
    pub cycle: u64,
    /// The channels between routers that have failed and are dead until the next epoch, ascending.
    pub channels: Vec<ChannelId>,
    /// The routers that are dead as a whole, ascending; their channels are in `channels`.
    pub routers: Vec<RouterId>,
    /// The cycle from which on routers know of the change.
    pub detected: u64,
    /// The working part of the network, and its routing, in use once the change is known.
    pub network: Arc<Network>,
    /// That routing.
    pub routing: Arc<dyn Routing>,
}

/// Hosts with several terminals each (virtual machines or network ports) and one memory. A message takes part of the memory of its source's
/// host and of its destination's for as long as it flows; within a host it takes both from the same memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hosts {
    /// Terminals of a host, in the order of their numbers, at least 1.
    pub terminals: u32,
    /// Flits per cycle that a memory carries for messages, each counted once at either end, above 0.
    pub memory_bandwidth: f64,
}

impl Hosts {
    /// The number of hosts of a network of this many terminals.
    pub fn count(&self, terminals: u32) -> u32 {
        terminals.div_ceil(self.terminals)
    }

    /// The host of a terminal.
    pub fn of(&self, terminal: TerminalId) -> u32 {
        terminal.0 / self.terminals
    }
}

impl Scenario {
    /// True if the run ends without a controller: with a workload, or if there are only batches.
    pub fn is_closed(&self) -> bool {
        self.workload.is_some() || self.endpoint.is_some() || self.has_only_batches()
    }

    /// Flits of the longest packet, replies included; 1 where there are none.
    pub fn longest_packet(&self) -> u32 {
        longest_packet(&self.classes, self.workload.as_ref(), self.endpoint.as_deref()).unwrap_or(1).max(1)
    }

    /// Is open traffic only the background of a closed workload or of a machine? Of users it is as much the question as their workloads.
    pub fn has_background(&self) -> bool {
        let has_subject = self.workload.is_some() || self.endpoint.is_some();
        has_subject && !self.classes.is_empty() && self.users.is_none()
    }

    /// Begins the closed workload, if there is one, at time 0.
    pub fn agenda(&self) -> Option<Agenda<'_>> {
        let closed = self.workload.as_ref()?;
        let packet_flits = || closed.parts.iter().map(|part| part.packet_flits).collect();
        let interfaces = closed.interfaces.clone().map(|interfaces| interfaces.begin(packet_flits(), self.timeline));
        let mut agenda = Agenda::begin(&*closed.workload, &self.streams, interfaces);
        if self.timeline {
            agenda.note(self.units.cycle_ns.unwrap_or(1.0));
        }
        Some(agenda)
    }

    /// Begins one of several independent parts of the closed workload at time 0, without a timeline: its numbers cover all parts.
    pub fn agenda_of_part(&self, part: usize) -> Option<Agenda<'_>> {
        Agenda::begin_part(&*self.workload.as_ref()?.workload, part, &self.streams)
    }

    /// True if all open traffic consists of batches, which end.
    pub fn has_only_batches(&self) -> bool {
        self.classes.iter().all(|class| class.packets_per_terminal.is_some())
    }

    /// The classes with a batch, with its packets of each terminal; of classes with a common batch, the first.
    pub fn batches(&self) -> impl Iterator<Item = (&TrafficClass, u64)> {
        let own = self.classes.iter().enumerate().filter(|&(number, _)| self.coin_stream_of(number).is_none_or(|first| first == number));
        own.filter_map(|(_, class)| Some((class, class.packets_per_terminal?)))
    }

    /// Messages of a closed workload or of batches, replies included; `None` for open traffic.
    pub fn closed_messages(&self) -> Option<u64> {
        if let Some(closed) = &self.workload {
            return Some(closed.workload.messages());
        }
        let terminals = self.network.terminal_count();
        let of_batch = |(class, count): (&TrafficClass, u64)| {
            let senders = (0..terminals).filter(|&terminal| !class.pattern.is_silent(TerminalId(terminal))).count() as u64;
            senders * count * if class.reply.is_some() && !class.window.counts_answers { 2 } else { 1 }
        };
        self.has_only_batches().then(|| self.batches().map(of_batch).sum())
    }

    /// The first of the classes that share a class's random numbers, if any: those of one user share theirs.
    pub fn coin_stream_of(&self, class: usize) -> Option<usize> {
        let user = |class: usize| self.users.as_ref().and_then(|users| users.of_class(class));
        self.classes[class].joint.as_ref()?;
        (0..=class).find(|&other| self.classes[other].joint.is_some() && user(other) == user(class))
    }

    /// True if a class counts the answers that a terminal sends among the packets of its batch.
    pub fn counts_answers(&self) -> bool {
        self.classes.iter().any(|class| class.window.counts_answers)
    }

    /// The groups of classes with common random numbers: of each user, or of all classes without users.
    pub fn joint(&self) -> Vec<Joint> {
        (0..self.classes.len()).filter_map(|class| Joint::with_leader(self, class)).collect()
    }

    /// True if a right prediction may take a packet by a port that the routing accepts but would not have chosen.
    pub fn takes_accepted_ports(&self) -> bool {
        self.router.predicts() && self.router.predictor_match == PredictorMatch::AnyUp
    }

    /// The routing with all the paths that packets can take, with those accepted by predicting routers.
    pub fn possible_routing(&self) -> Arc<dyn Routing> {
        if self.takes_accepted_ports() {
            Arc::new(Accepting::over(Arc::clone(&self.network), Arc::clone(&self.routing)))
        } else {
            Arc::clone(&self.routing)
        }
    }

    /// Checks whether packets can wait for each other in a cycle; beyond a budget of steps on a sample of the destinations.
    pub fn check_deadlock(&self, budget: u64) -> deadlock::Report {
        let (routing, ranges) = (self.possible_routing(), self.virtual_channel_ranges());
        deadlock::check_within(&self.network, &*routing, &ranges, self.router.waiting_rules(), budget)
    }

    /// True if the end of a workload or a batch, an answer or a window depends on packets.
    pub fn waits_for_packets(&self) -> bool {
        let waits = |class: &TrafficClass| class.reply.is_some() || class.window.outstanding.is_some();
        self.is_closed() || self.classes.iter().any(waits)
    }

    /// True if a failure discards packets for good on which something depends.
    pub fn drops_required_packets(&self) -> bool {
        let loses = self.failure.as_ref().is_some_and(|failure| failure.resend_after.is_none());
        loses && self.waits_for_packets()
    }

    /// The epochs of a run with other working components than at its beginning.
    pub fn changed_epochs(&self) -> impl Iterator<Item = &Epoch> {
        let epochs = self.failure.iter().flat_map(|failure| &failure.epochs);
        epochs.filter(|epoch| !Arc::ptr_eq(&epoch.network, &self.network))
    }

    /// The scenario in an epoch, once that is known.
    pub fn in_epoch(&self, epoch: &Epoch) -> Self {
        let (network, routing) = (Arc::clone(&epoch.network), Arc::clone(&epoch.routing));
        Self { network, routing, failure: None, ..self.clone() }
    }

    /// True if the routing has an escape path that the routers do not keep open.
    pub fn closes_escape_path(&self) -> bool {
        let has_one = || self.virtual_channel_ranges().into_iter().any(|range| self.routing.escape_channels(range).is_some());
        self.router.escape_path() == EscapePath::Closed && has_one()
    }

    /// The virtual channels of each class's packets and of the replies to them: the open traffic's classes first, then one for each part
    /// of a closed workload, or of a machine.
    pub fn channels_of_classes(&self) -> Vec<[VirtualChannels; 2]> {
        let of_class = |class: &TrafficClass| {
            let own = class.virtual_channels;
            [own, class.reply.as_ref().map_or(own, |reply| reply.virtual_channels)]
        };
        let of_workload = self.workload.iter().flat_map(|workload| &workload.parts).map(|part| [part.virtual_channels; 2]);
        let of_endpoint = self.endpoint.iter().flat_map(|endpoint| endpoint.class_channels());
        self.classes.iter().map(of_class).chain(of_workload).chain(of_endpoint).collect()
    }

    /// The ranges of virtual channels that the classes and their replies use, each once, in order.
    pub fn virtual_channel_ranges(&self) -> Vec<VirtualChannels> {
        let of_endpoint = self.endpoint.iter().flat_map(|endpoint| endpoint.class_channels()).flatten();
        let mut ranges: Vec<VirtualChannels> = Vec::new();
        for range in of_endpoint.chain(self.channels_of_classes().into_iter().flatten()) {
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        ranges
    }
}

/// A closed workload and how its messages become packets.
#[derive(Clone, Debug)]
pub struct ClosedWorkload {
    /// The messages to deliver.
    pub workload: Arc<dyn Workload>,
    /// The parts and how their messages are sent: one part, or one for each user with a workload.
    pub parts: Vec<WorkloadPart>,
    /// The network interfaces of all messages; `None`: messages join the queues of ideal sources.
    pub interfaces: Option<Arc<dyn Interfaces>>,
}

impl ClosedWorkload {
    /// A workload of one part.
    pub fn new(workload: Arc<dyn Workload>, packet_flits: u32, virtual_channels: VirtualChannels) -> Self {
        let parts = vec![WorkloadPart::new(&*workload, packet_flits, virtual_channels)];
        Self { workload, parts, interfaces: None }
    }

    /// The part that a message belongs to.
    pub fn part_of(&self, token: Token) -> usize {
        // Most have one part, and then the message does not matter.
        if self.parts.len() == 1 { 0 } else { self.workload.part_of(token) }
    }

    /// Flits of the longest packet.
    pub fn longest_packet(&self) -> u32 {
        self.parts.iter().map(|part| part.longest_packet).max().unwrap_or(1)
    }
}

/// Flits of the longest packet of open traffic, of a closed workload and of a machine on the routers; `None` where none sends a packet.
pub fn longest_packet(classes: &[TrafficClass], workload: Option<&ClosedWorkload>, endpoint: Option<&dyn Endpoint>) -> Option<u32> {
    let sizes = classes.iter().flat_map(|class| [Some(&class.sizes), class.reply.as_ref().map(|reply| &reply.sizes)]).flatten();
    let of_workload = workload.map(ClosedWorkload::longest_packet);
    let of_endpoint = endpoint.and_then(Endpoint::packet_flits).map(|[_, longest]| longest);
    sizes.map(PacketSizes::max).chain(of_workload).chain(of_endpoint).max()
}

/// A part of a closed workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadPart {
    /// A message is cut into packets of this many flits, the last one shorter.
    pub packet_flits: u32,
    /// The longest of these packets, flits.
    pub longest_packet: u32,
    /// The virtual channels that the packets may use.
    pub virtual_channels: VirtualChannels,
    /// The number of its messages.
    pub messages: u64,
}

impl WorkloadPart {
    /// A part with this length of packets.
    pub fn new(workload: &dyn Workload, packet_flits: u32, virtual_channels: VirtualChannels) -> Self {
        let longest_packet = packet_flits.min(workload.longest_message());
        Self { packet_flits, longest_packet, virtual_channels, messages: workload.messages() }
    }
}

/// One class of open traffic.
#[derive(Clone, Debug)]
pub struct TrafficClass {
    /// Where its packets go.
    pub pattern: Arc<dyn Pattern>,
    /// When they are created.
    pub process: Arc<dyn Process>,
    /// The process of all classes (of a user) that share their coins, where this is one of them: at the sum of their rates. Each packet that it
    /// creates is of one of these classes, drawn by their rates in packets. The same in each of them.
    pub joint: Option<Arc<dyn Process>>,
    /// Packets of each terminal if the process is a batch.
    pub packets_per_terminal: Option<u64>,
    /// Limits on a terminal besides the process.
    pub window: Window,
    /// Offered load, flits/terminal/cycle.
    pub load: f64,
    /// The lengths of its packets.
    pub sizes: PacketSizes,
    /// The virtual channels of its packets.
    pub virtual_channels: VirtualChannels,
    /// Higher goes first where `router.priority` is `class`.
    pub priority: i32,
    /// Whether a delivered packet makes its destination send an answer.
    pub reply: Option<Reply>,
}

impl TrafficClass {
    /// When a terminal creates its packets.
    pub fn process_at(&self, terminal: TerminalId) -> &dyn Process {
        self.process.at(terminal).unwrap_or(&*self.process)
    }

    /// Offered packets/terminal/cycle; 0 for a batch.
    pub fn packet_rate(&self) -> f64 {
        self.load / self.sizes.mean()
    }
}

/// Classes with a common process of packet creation. The first class keeps the creations of all.
#[derive(Clone, Debug)]
pub struct Joint {
    /// When a terminal creates a packet of any of them.
    pub process: Arc<dyn Process>,
    /// Their numbers, rising.
    pub classes: Vec<u32>,
    /// Cumulative probabilities that a packet is of one of them, the last one 1.
    cumulative: Vec<f64>,
}

impl Joint {
    /// The classes led by this one.
    fn with_leader(scenario: &Scenario, first: usize) -> Option<Self> {
        let sharing = || scenario.classes.iter().zip(0u32..).filter(|&(_, number)| scenario.coin_stream_of(number as usize) == Some(first));
        let process = Arc::clone(sharing().next()?.0.joint.as_ref()?);
        let total: f64 = sharing().map(|(class, _)| class.packet_rate()).sum();
        let equal_part = 1.0 / sharing().count() as f64;
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = sharing()
            .map(|(class, _)| {
                // Batches have no rates.
                sum += if total > 0.0 { class.packet_rate() / total } else { equal_part };
                sum
            })
            .collect();
        *cumulative.last_mut()? = 1.0;
        Some(Self { process, classes: sharing().map(|(_, number)| number).collect(), cumulative })
    }

    /// The class of the next packet.
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        let point = stream.unit();
        let place = self.cumulative.iter().position(|&up_to| point < up_to).unwrap_or(self.classes.len() - 1);
        self.classes[place]
    }

    /// The group of `all` with this class.
    pub fn of_class(all: &[Self], class: u32) -> Option<&Self> {
        all.iter().find(|joint| joint.classes.contains(&class))
    }

    /// The entry of `all` with creations that this class keeps.
    pub fn of_leader(all: &[Self], class: u32) -> Option<&Self> {
        all.iter().find(|joint| joint.classes[0] == class)
    }

    /// The class that keeps the creations of a class: the first of its group, or the class itself.
    pub fn leader_of(all: &[Self], class: u32) -> u32 {
        Self::of_class(all, class).map_or(class, |joint| joint.classes[0])
    }
}

/// The answers to the packets of a class.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Their lengths.
    pub sizes: PacketSizes,
    /// Cycles from the arrival of a packet, when its answer is created, until the answer may be sent.
    pub delay: u32,
    /// The virtual channels of the replies, distinct from those of the requests so that the two cannot block each other.
    pub virtual_channels: VirtualChannels,
}
