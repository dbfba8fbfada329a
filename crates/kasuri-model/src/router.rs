//! The router as the experiment file describes it: `[router]`. It describes the machine and belongs to every engine.

mod allocation;

pub use allocation::{AllocatorParameters, Arbiter, ArbiterParameters, Draw, Turns};

use crate::time::CyclesOrTime;
use kasuri_network::deadlock::{EscapePath, Rules};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::predictor::{self, Built, Fold, Options, Table};
use kasuri_network::routing::VirtualChannels;
use kasuri_workload::endpoint::Routers;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most virtual channels of a port.
pub const MAX_VIRTUAL_CHANNELS: u32 = 256;

/// The keys of `[router]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouterParameters {
    /// When a packet may move on: `wormhole` flit by flit; `virtual-cut-through` flit by flit into a buffer with room for all of it;
    /// `store-and-forward` only when all of it has arrived.
    pub switching: Switching,
    /// Virtual channels of each port, 1 to 256.
    pub virtual_channels: u32,
    /// One virtual channel for each destination terminal, on all channels; `virtual_channels` is then the number of terminals.
    pub vc_per_destination: bool,
    /// If the last packet of a source entered by a virtual channel outside the range of the next packet, the source tries only the first of
    /// that range, as in BookSim 2; otherwise it tries them all.
    pub first_after_change: bool,
    /// Each class of `[traffic]` has a separate queue at its source; the queues take turns flit by flit, so that packets of several classes
    /// enter the network in parallel (as in BookSim 2). Otherwise a source has one queue and sends packet after packet.
    pub class_queues: bool,
    /// Buffer of each virtual channel of an input port, in flits.
    pub buffer_flits: u32,
    /// How the virtual channels of an input port divide its buffer: `private`: each has `buffer_flits`; `shared`: each has `private_flits`
    /// and takes the rest as it needs it; `limited`: the same, but none holds more than `most_held_flits`; `dynamic`: none holds more than
    /// the whole over the number of virtual channels in use; `shifting`: the same with that number rounded up to a power of two.
    pub buffer_policy: BufferPolicy,
    /// Shared buffers: the buffer of a port, in flits; `virtual_channels` x `buffer_flits` unless given.
    pub port_buffer_flits: Option<u32>,
    /// Shared buffers: places that only the virtual channel itself may take, at least 1; where packets wait as a whole (virtual cut-through,
    /// store-and-forward), at least the longest packet.
    pub private_flits: u32,
    /// Limited shared buffers: the most flits that a virtual channel may hold; all unless given.
    pub most_held_flits: Option<u32>,
    /// The stages of the router in order: `RC`, `VA`, `SA` (or `VSA`), `ST`. A serial router has `Des` before and `Ser` after them; `LT`
    /// at the end says how much of the channel's latency is the transfer of the flit itself.
    pub pipeline: Vec<PipelineEntry>,
    /// A head bids for the switch in the cycle in which it bids for a virtual channel; real requests win over such bids.
    pub speculative: bool,
    /// How speculative bids for the switch compete with real ones: `apart`: they get the inputs and outputs that real bids leave;
    /// `together`: one allocation handles both, in which speculative bids have the lowest priority; allocators that ignore priorities then
    /// let them displace real bids (as in BookSim 2).
    pub speculation: Speculation,
    /// The route of the next router is computed one router ahead: RC takes no cycle.
    pub lookahead: bool,
    /// With lookahead, when a congestion-aware routing decides: `on-arrival`: as the head comes to the front of its buffer, by the state of
    /// its router; `on-departure`: as the head leaves the router before, or its source, by the state of the next router in that cycle (as
    /// in BookSim 2).
    pub lookahead_decides: LookaheadDecides,
    /// How a congestion-aware routing measures an output: `claimed`: the flits beyond it with outstanding credits, and half of the flits of
    /// packets that are routed to it and have not left, from the cycle in which the head is routed; outputs that differ by less than half
    /// of the packet's flits are equal, and one is drawn; `credits`: only the flits with outstanding credits, so that heads routed one
    /// after the other all find the same output free (as in BookSim 2).
    pub congestion: Congestion,
    /// Cycles that a credit waits in the router before it is sent, 0 to 65535.
    pub credit_delay: u32,
    /// When an output virtual channel becomes free again.
    pub vc_release: VcRelease,
    /// Which heads get which virtual channels (`kasuri list allocators`).
    pub vc_allocator: AllocatorParameters,
    /// A virtual channel without a credit counts as taken: no packet gets it.
    pub vc_busy_when_full: bool,
    /// Bubble flow control on the rings of a torus: a packet that enters a ring (from a terminal, from another dimension or direction, or from
    /// another virtual channel) gets a virtual channel only where there is room for two packets, so that rings never fill up and need no dateline.
    /// It requires virtual cut-through or store-and-forward, and for packets of one length.
    pub bubble: bool,
    /// Heads prefer virtual channels with an empty buffer, where the allocator heeds preferences (the separable ones, wavefronts,
    /// `select`).
    pub vc_prefer_empty: bool,
    /// Which flits cross the switch (`kasuri list allocators`).
    pub switch_allocator: AllocatorParameters,
    /// Which packets go before others in the allocators that heed priorities (the separable ones, wavefronts, `select`), and among the
    /// virtual channels of an input port.
    pub priority: Priority,
    /// Inputs that the switch has for each input port: virtual channel v uses input v mod this number.
    pub input_speedup: u32,
    /// Outputs of the switch for each output port: input port p uses output p mod this number. Simultaneous flits wait in the output's
    /// buffer.
    pub output_speedup: u32,
    /// Steps that the router takes in a cycle, 1 to 64; each stage of a cycle then takes a step. Fractions add up: with 1.5 every other
    /// cycle has two steps.
    pub internal_speedup: f64,
    /// Places of an output's buffer between switch and channel, in flits; while it is full nothing crosses to it. Without bounds unless
    /// given.
    pub output_buffer_flits: Option<u32>,
    /// An input and an output of the switch stay connected until the packet's tail has crossed, or its flits or credits run out.
    pub hold_switch: bool,
    /// How a stage of several cycles treats flits that arrive while it works: `pipelined`: it takes new ones in every cycle; `batched`: it
    /// takes all waiting ones when it has finished with those before (RC and ST; as BookSim 2 does).
    pub long_stages: LongStages,
    /// Guesses a packet's output before it arrives (`kasuri list predictors`).
    pub predictor: String,
    /// The guess of the predictor static-straight at the top of a fat tree, where nothing leads up: `next`: input i and output i + 1, which
    /// is the default; `pairs`: inputs 2i and 2i + 1 and each other's outputs; `back`: the output that leads back, which is never right.
    pub predictor_fold: Option<Fold>,
    /// Lines of an input port's table of the predictor finite-context, 1 to 1024; 64 unless given.
    pub predictor_entries: Option<u32>,
    /// Outputs that an input port remembers for the predictor finite-context, 1 to 4; 2 unless given.
    pub predictor_history: Option<u32>,
    /// The predictor of each level of a fat tree for the predictor by-level, the leaves' first; `none` for no predictor.
    pub predictor_levels: Option<Vec<String>>,
    /// The file of the predictor table, relative to the experiment file: comma-separated values with the columns router, input and output.
    pub predictor_table: Option<String>,
    /// The content of that file.
    #[serde(skip)]
    #[schemars(skip)]
    pub guesses: Option<Arc<Table>>,
    /// Which guesses are right: `any-up`: where a packet may take any port up a fat tree, the predicted one will do; `exact`: only
    /// the port that the routing chooses.
    pub predictor_match: PredictorMatch,
    /// How a flit is treated that was sent to a wrongly predicted output: `kill`: it is dropped inside the router; `hint`: bits in front of
    /// the packet show that the guess is wrong before the flit leaves its buffer; `forward`: it leaves, if there is a place for it, and is
    /// dropped by the next router, which then gives back its virtual channel and its place in the buffer.
    pub on_miss: OnMiss,
    /// With `on_miss = "hint"`, cycles of the hint bits in front of a packet on each channel, 0 to 1000: they delay the packet's arrival
    /// and extend its use of the channel.
    pub hint_cycles: u32,
    /// With `on_miss = "forward"`, which flits leave by a wrong output: `head`: only the head, which is the default; `until-route`: also
    /// the flits behind it that come before its route computation has ended.
    pub forward_copies: Option<ForwardCopies>,
    /// What a right prediction saves: `both`: the stages but ST, and the wait for the end of the flit where its transfer (`LT`) takes time;
    /// `stages`: only the stages, so that a flit passes on once all of it has come; `wait`: only the wait, so that the front of a flit goes
    /// through all stages as it arrives. The last two separate the two effects.
    pub hit_saves: HitSaves,
    /// Where packets wait: `input-queued`: in the virtual channels of the input ports; `virtual-output-queued`: each input port has a queue
    /// for each output, and sends from one of them at a time; `crosspoint`: there is a queue for each pair of an input and an output, and
    /// each output takes from its own queues, independently of the others. The previous router chooses the queue. `virtual_channels` and
    /// `buffer_flits` are then those of each queue. `output-queued`: each output has one queue, which all inputs can fill at the same time, for
    /// whole packets, first come, first served; there are neither virtual channels nor input buffers nor credits. With the endpoint cenju4, crosspoint routers have the times of `router.crosspoint` in
    /// place of a pipeline, and queues take whole packets only.
    pub architecture: Architecture,
    /// The latencies of a crosspoint router that multicasts and synchronises (endpoint cenju4), and how its outputs choose.
    #[serde(deserialize_with = "from_table")]
    pub crosspoint: CrosspointParameters,
    /// Output-queued routers, in place of `pipeline`: how long a packet is in the router if nothing is in its way, from the arrival of its last
    /// flit (with virtual cut-through of its first one) until it can leave. A number of cycles, or a time such as `"600 ns"`.
    pub latency: Option<CyclesOrTime>,
    /// Output-queued routers: the reaction to a full queue. `unlimited`: none ever is. `pause`: an input port with packets of more than
    /// `queue_flits` in the queues of its router pauses the channel that leads to it, until they take no more than that. `drop`: a packet
    /// without room for the whole of it in the queue of its output is lost.
    pub queue: Queue,
    /// With `queue = "pause"`, flits of packets from one input port that its router accepts before it pauses the channel, not counting
    /// those under way at that time. With `queue = "drop"`, the most waiting flits in the queue of an output, not counting the packet that
    /// is sent. At least those of the longest packet.
    pub queue_flits: Option<u32>,
    /// With `queue = "drop"`, the time from the loss of a packet until its source may resend it, before all others: the time-out, or the
    /// notice. A number of cycles, or a time such as `"10 us"`. Without it lost packets stay lost, which only open traffic tolerates.
    pub resend_after: Option<CyclesOrTime>,
    /// Output-queued routers: how the messages that a terminal has to send share its channel. `packet`: they take turns, packet by packet;
    /// `message`: one after the other, first come, first served.
    pub source_turns: SourceTurns,
}

impl Default for RouterParameters {
    fn default() -> Self {
        Self {
            architecture: Architecture::default(),
            crosspoint: CrosspointParameters::default(),
            latency: None,
            queue: Queue::default(),
            queue_flits: None,
            resend_after: None,
            source_turns: SourceTurns::default(),
            switching: Switching::Wormhole,
            virtual_channels: 2,
            vc_per_destination: false,
            first_after_change: false,
            class_queues: false,
            buffer_flits: 8,
            buffer_policy: BufferPolicy::default(),
            port_buffer_flits: None,
            private_flits: 1,
            most_held_flits: None,
            pipeline: ["RC", "VA", "SA", "ST"].map(|stage| PipelineEntry::Stage(stage.to_owned())).to_vec(),
            speculative: false,
            speculation: Speculation::default(),
            lookahead: false,
            lookahead_decides: LookaheadDecides::default(),
            congestion: Congestion::default(),
            credit_delay: 0,
            vc_release: VcRelease::Tail,
            vc_allocator: AllocatorParameters::default(),
            vc_busy_when_full: false,
            bubble: false,
            vc_prefer_empty: false,
            switch_allocator: AllocatorParameters::default(),
            priority: Priority::default(),
            input_speedup: 1,
            output_speedup: 1,
            internal_speedup: 1.0,
            output_buffer_flits: None,
            hold_switch: false,
            long_stages: LongStages::default(),
            predictor: "none".to_owned(),
            predictor_fold: None,
            predictor_entries: None,
            predictor_history: None,
            predictor_levels: None,
            predictor_table: None,
            guesses: None,
            predictor_match: PredictorMatch::default(),
            on_miss: OnMiss::default(),
            hint_cycles: 0,
            forward_copies: None,
            hit_saves: HitSaves::default(),
        }
    }
}

/// Where packets wait in a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// In virtual channels at the input ports.
    #[default]
    InputQueued,
    /// At the input ports, in a queue for each output port.
    VirtualOutputQueued,
    /// In a queue for each pair of an input and an output port.
    Crosspoint,
    /// In one queue for each output port, which all inputs can fill at the same time: Ethernet switches with a shared memory.
    OutputQueued,
}

/// The longest latency of a router, cycles.
pub const MAX_LATENCY: u32 = 1 << 28;

/// The reaction to a full queue of an output-queued router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// None ever is.
    #[default]
    Unlimited,
    /// The router pauses the channel of an input port with too many waiting flits.
    Pause,
    /// A packet for which there is no room is lost.
    Drop,
}

/// How the messages of a terminal share its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceTurns {
    /// Packet by packet, in turn.
    #[default]
    Packet,
    /// One message after the other.
    Message,
}

/// From the arrival of a head at a crosspoint router to its departure, in cycles, if nothing is in the way; and the choice of an output
/// among several of its queues that could send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CrosspointParameters {
    /// Packets to one terminal.
    pub latency: u32,
    /// Packets to several, which are written into several queues at once.
    pub multicast_latency: u32,
    /// Synchronisation packets: from the arrival of the last awaited one.
    pub synchronisation_latency: u32,
    /// An access to the table of synchronisations; simultaneous packets take turns.
    pub table_access: u32,
    /// Which queue an output takes among those with a packet that can be sent: `round-robin`: the one that it served last comes last;
    /// `rotating`: the one that comes first moves on by one every cycle, whichever is served; `first-come`: the packet that was first at the
    /// head of its queue and ready; `fixed`: the one of the least input.
    pub arbiter: CrosspointArbiter,
}

impl Default for CrosspointParameters {
    fn default() -> Self {
        let arbiter = CrosspointArbiter::default();
        Self { latency: 10, multicast_latency: 15, synchronisation_latency: 16, table_access: 1, arbiter }
    }
}

/// Reads a structure only from a table: serde would also take a list of its values.
fn from_table<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    toml::Table::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
}

/// The choice of an output of a crosspoint router among its queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrosspointArbiter {
    /// The one served last comes last.
    #[default]
    RoundRobin,
    /// The first one moves on by one every cycle, whichever is served.
    Rotating,
    /// The packet that could leave first by the rules of its own router.
    FirstCome,
    /// The one of the lowest input.
    Fixed,
}

/// Which predicted output port serves a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorMatch {
    /// Any of the ports among which the routing chooses by chance or congestion; elsewhere the one that it chooses.
    #[default]
    AnyUp,
    /// Only the port that the routing chooses.
    Exact,
}

/// The treatment of a flit that crossed the switch to a wrongly predicted output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnMiss {
    /// Route computation runs in parallel with the traversal and stops the flit inside the router.
    #[default]
    Kill,
    /// Hint bits in front of the packet show that the prediction is wrong before anything crosses.
    Hint,
    /// The flit is sent, with a virtual channel and a place in the next buffer, and dropped at the other end of the channel.
    Forward,
}

/// Which flits of a packet leave by a wrongly predicted output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardCopies {
    /// Its head.
    #[default]
    Head,
    /// All that come before the route is known.
    UntilRoute,
}

/// The savings of a rightly predicted flit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HitSaves {
    /// The stages and the wait.
    #[default]
    Both,
    /// The stages before and after switch traversal.
    Stages,
    /// The wait for its own end.
    Wait,
}

/// How far a packet must have come before it moves on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// Flit by flit.
    #[default]
    Wormhole,
    /// Flit by flit, but only into a buffer with room for the whole packet.
    VirtualCutThrough,
    /// Only when the whole packet has arrived, and only into a buffer with room for it.
    StoreAndForward,
}

/// When an output virtual channel may be given to another packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VcRelease {
    /// When the tail has won the switch.
    #[default]
    Tail,
    /// When, after that, all its credits are back.
    TailCredit,
}

/// How the virtual channels of an input port divide its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferPolicy {
    /// Each has a separate part.
    #[default]
    Private,
    /// A place that is not private to a virtual channel goes to the first request.
    Shared,
    /// The same up to a fixed limit.
    Limited,
    /// The same up to an equal part for each virtual channel in use.
    Dynamic,
    /// As `dynamic`, with the number of virtual channels in use rounded up to a power of two.
    Shifting,
}

/// Which packets go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// All are equal.
    #[default]
    None,
    /// Those of the class with the higher `traffic.class.priority`.
    Class,
    /// Those created earlier.
    Age,
    /// Those that entered the network earlier.
    NetworkAge,
    /// Those that came to this router earlier.
    LocalAge,
    /// Those that have crossed more routers.
    HopCount,
    /// Those with more flits waiting in their virtual channel.
    QueueLength,
    /// Those of a lower running number at their source.
    Sequence,
}

/// How speculative bids for the switch compete with real ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Speculation {
    /// A separate allocation, after that of the real ones.
    #[default]
    #[serde(rename = "apart")]
    Separate,
    /// One allocation of both, speculative bids at the lowest priority.
    Together,
}

/// The measure of an output's congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// The flits that routed packets still have to send to it (counted half), and the flits beyond it with outstanding credits.
    #[default]
    Claimed,
    /// The flits beyond it with outstanding credits.
    Credits,
}

/// When an adaptive routing decides where the route is computed one router ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LookaheadDecides {
    /// When the head comes to the front of its buffer.
    #[default]
    OnArrival,
    /// When the head leaves the router before.
    OnDeparture,
}

/// How a stage of several cycles treats flits that arrive while it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LongStages {
    /// It takes new flits in every cycle.
    #[default]
    Pipelined,
    /// All waiting flits are taken together once those before have left the stage.
    Batched,
}

/// One entry of `router.pipeline`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PipelineEntry {
    /// A stage of one cycle.
    Stage(String),
    /// A stage of several cycles, fully pipelined.
    Timed {
        /// `Des`, `RC`, `VA`, `SA`, `VSA`, `ST`, `Ser` or `LT`.
        stage: String,
        /// Cycles.
        cycles: u32,
    },
    /// Several stages that share their cycles.
    Together {
        /// The stages in order.
        stages: Vec<String>,
        /// Cycles of all of them together.
        cycles: u32,
    },
}

/// The pipeline in the form for engines. A head that arrives at the front of its buffer in cycle `T` bids for a virtual channel first in `T
/// + route_cycles`, for the switch as `bidding` says, and its grant in cycle `S` puts it on the channel in `S + traversal_cycles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Cycles from arrival to the deciding cycle of virtual-channel allocation.
    pub route_cycles: u32,
    /// When the switch allocation of a head takes place.
    pub bidding: Bidding,
    /// Cycles of switch allocation beyond the first.
    pub switch_extra_cycles: u32,
    /// Cycles from the switch grant to the sending on the channel: switch traversal and serialisation.
    pub traversal_cycles: u32,
    /// Cycles of route computation: until a wrong prediction is detected.
    pub computation_cycles: u32,
    /// Of `traversal_cycles`, those of serialisation (`Ser`), which a predicted flit passes by.
    pub serialisation_cycles: u32,
    /// Of a channel's latency, the cycles that one flit needs to cross it (`LT`): a predicted flit does not wait for its own end.
    pub link_cycles: u32,
}

/// The order of virtual-channel and switch allocation of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bidding {
    /// Switch allocation in the cycle after the virtual channel was won.
    InTurn,
    /// Switch allocation in the same cycle, with the virtual channel just won.
    SameCycle,
    /// Both in the same cycle, in parallel: a switch grant without a virtual channel is lost.
    Speculative,
}

impl Pipeline {
    /// Cycles that an uncontended head spends in a router: `P` of the zero-load formula.
    pub fn head_cycles(&self) -> u32 {
        // + 1: the cycle of the switch grant itself.
        self.decision_cycles() + self.switch_extra_cycles + 1 + self.traversal_cycles
    }

    /// Cycles from the arrival of an uncontended head at a router to its first possible switch grant.
    pub fn decision_cycles(&self) -> u32 {
        self.route_cycles + u32::from(self.bidding == Bidding::InTurn)
    }

    /// Cycles from sending a flit to sending the next one into the same place of the buffer, over a channel of this latency, if the router
    /// passes flits on at once.
    pub fn credit_loop(&self, latency: u32, credit_delay: u32) -> u64 {
        let [latency, in_routers] = [latency, self.traversal_cycles + self.switch_extra_cycles].map(u64::from);
        in_routers + 2 * (latency + 1) + u64::from(credit_delay)
    }

    /// A pipeline in which a head spends this many cycles besides the one in which it leaves.
    pub fn of_latency(cycles: u32) -> Self {
        Self {
            route_cycles: cycles,
            bidding: Bidding::SameCycle,
            switch_extra_cycles: 0,
            traversal_cycles: 0,
            computation_cycles: 0,
            serialisation_cycles: 0,
            link_cycles: 0,
        }
    }

    /// Cycles of the stages other than ST, which a rightly predicted head skips.
    pub fn skipped_cycles(&self) -> u32 {
        self.head_cycles() - (self.traversal_cycles - self.serialisation_cycles)
    }

    /// The cycles between the departure of the front of a flit that passes on in one cycle and the arrival of its end. If a hit saves only
    /// the wait, the stages of the flit use up part of them.
    pub fn front_cycles(&self, hit_saves: HitSaves) -> u32 {
        match hit_saves {
            HitSaves::Both => self.link_cycles,
            HitSaves::Stages => 0,
            HitSaves::Wait => self.link_cycles.saturating_sub(self.skipped_cycles()),
        }
    }
}

impl RouterParameters {
    /// True if the router has a predictor.
    pub fn predicts(&self) -> bool {
        self.predictor != predictor::NONE
    }

    /// Whether a head that waits for several virtual channels can always take one of an escape path. It can if it is never granted a full
    /// one: a head with a virtual channel waits for that one alone.
    pub fn escape_path(&self) -> EscapePath {
        let has_room = self.vc_release == VcRelease::TailCredit || self.vc_busy_when_full || self.switching != Switching::Wormhole;
        if has_room { EscapePath::Open } else { EscapePath::Closed }
    }

    /// The guarantees of the routers to waiting heads.
    pub fn waiting_rules(&self) -> Rules {
        let never_blocks = self.architecture == Architecture::OutputQueued && self.queue != Queue::Pause;
        Rules { escape_path: self.escape_path(), bubbles: self.bubble, never_blocks }
    }

    /// Cycles of the hint bits of each packet on each channel.
    pub fn total_hint_cycles(&self) -> u32 {
        if self.predicts() && self.on_miss == OnMiss::Hint { self.hint_cycles } else { 0 }
    }

    /// The predictor for a network.
    ///
    /// # Errors
    /// A sentence on the networks that it supports.
    pub fn build_predictor(&self, network: &Network) -> Built {
        predictor::build(&self.predictor, network, &self.predictor_options())
    }

    fn predictor_options(&self) -> Options {
        Options {
            fold: self.predictor_fold,
            entries: self.predictor_entries,
            history: self.predictor_history,
            levels: self.predictor_levels.clone(),
            table: self.guesses.clone(),
        }
    }

    fn check_hit_saves(&self, pipeline: &Pipeline) -> Result<(), (String, String)> {
        let wrong = |problem: String| Err(("hit_saves".to_owned(), problem));
        if self.hit_saves == HitSaves::Both {
            return Ok(());
        }
        if !self.predicts() {
            return wrong("means nothing without a predictor; leave it out".to_owned());
        }
        if self.hit_saves == HitSaves::Stages {
            return Ok(());
        }
        let (link, skipped) = (pipeline.link_cycles, pipeline.skipped_cycles());
        if link < skipped {
            return wrong(format!(
                "is \"wait\": the front of a flit would go through {skipped} cycles of stages while the flit arrives, which takes {link} (LT); \
                 take \"stages\", or an LT of at least {skipped} cycles"
            ));
        }
        if self.internal_speedup > 1.0 {
            return wrong("is \"wait\", which is worked out for stages of whole cycles: internal_speedup = 1".to_owned());
        }
        Ok(())
    }

    /// A predictor must use its parameters. Parameters of an unknown predictor cannot be checked.
    fn check_predictor(&self) -> Result<(), (String, String)> {
        if self.forward_copies.is_some() && (self.on_miss != OnMiss::Forward || !self.predicts()) {
            let problem = "says which copies leave, and none do; set on_miss = \"forward\" with a predictor, or leave it out";
            return Err(("forward_copies".to_owned(), problem.to_owned()));
        }
        if self.hint_cycles > 0 && (self.on_miss != OnMiss::Hint || !self.predicts()) {
            let problem = "is the time of bits that no packet has; set on_miss = \"hint\" with a predictor, or leave it out";
            return Err(("hint_cycles".to_owned(), problem.to_owned()));
        }
        if self.hint_cycles > 1000 {
            return Err(("hint_cycles".to_owned(), format!("is {}; hint bits take 0 to 1000 cycles", self.hint_cycles)));
        }
        if !predictor::names().any(|name| name == self.predictor) {
            return Ok(());
        }
        predictor::check(&self.predictor, &self.predictor_options()).map_err(|(key, problem)| (key.to_owned(), problem))
    }

    /// The virtual channels that a packet to `destination` may use to enter the network, of those of its class.
    #[inline]
    pub fn entering(&self, destination: TerminalId, class: VirtualChannels) -> VirtualChannels {
        if self.vc_per_destination { VirtualChannels::only(destination) } else { class }
    }

    /// Checks the conditions of all routers, on any engine, and derives the pipeline.
    ///
    /// # Errors
    /// The key and a sentence for each error.
    pub fn check(&self) -> Result<Pipeline, Vec<(String, String)>> {
        let of_allocator = |key: &str, allocator: &AllocatorParameters| allocator.check().map_err(|problem| (key.to_owned(), problem));
        let checks = [
            self.check_ranges(),
            of_allocator("vc_allocator", &self.vc_allocator),
            of_allocator("switch_allocator", &self.switch_allocator),
            self.check_sharing(),
            self.check_speedups(),
            self.check_architecture(),
            self.check_queue(),
            self.check_bubble(),
            self.check_predictor(),
        ];
        let mut problems: Vec<(String, String)> = checks.into_iter().filter_map(Result::err).collect();
        let pipeline = self.timing().map_err(|problem| problems.push(("pipeline".to_owned(), problem)));
        if let Ok(pipeline) = &pipeline {
            problems.extend(self.check_hit_saves(pipeline).err());
        }
        match pipeline {
            Ok(pipeline) if problems.is_empty() => Ok(pipeline),
            _ => Err(problems),
        }
    }

    fn check_bubble(&self) -> Result<(), (String, String)> {
        let wrong = |problem: &str| Err(("bubble".to_owned(), problem.to_owned()));
        match () {
            () if !self.bubble => Ok(()),
            () if self.switching == Switching::Wormhole => wrong(
                "keeps room for whole packets, which wormhole switching does not know; set switching = \"virtual-cut-through\" or \
                 \"store-and-forward\"",
            ),
            () if self.architecture != Architecture::InputQueued => {
                wrong("needs architecture = \"input-queued\": a ring is one buffer after the other, not one for each output")
            }
            () if self.vc_release == VcRelease::TailCredit => wrong(
                "conflicts with vc_release = \"tail-credit\": a virtual channel is then free only when all its credits are back, so it holds \
                 one packet at a time and a full ring cannot move; set vc_release = \"tail\"",
            ),
            () if self.predicts() => {
                wrong("conflicts with predictor: a hit enters the next buffer before the room in it is known; keep one")
            }
            () => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: String| Err((key.to_owned(), problem));
        if self.virtual_channels == 0 || self.virtual_channels > MAX_VIRTUAL_CHANNELS {
            return wrong("virtual_channels", format!("is {}; a port has 1 to 256 virtual channels", self.virtual_channels));
        }
        if self.buffer_flits == 0 || self.buffer_flits > u32::from(u16::MAX) {
            return wrong("buffer_flits", format!("is {}; a virtual channel buffers 1 to 65535 flits", self.buffer_flits));
        }
        if self.credit_delay > u32::from(u16::MAX) {
            return wrong("credit_delay", format!("is {}; a credit waits for 0 to 65535 cycles", self.credit_delay));
        }
        Ok(())
    }

    /// The largest buffer that a virtual channel can have, as its sender counts: all of a shared one.
    pub fn channel_depth(&self) -> u32 {
        if self.architecture == Architecture::OutputQueued {
            return u32::MAX;
        }
        match self.buffer_policy {
            BufferPolicy::Private => self.buffer_flits,
            _ => self.port_buffer_flits.unwrap_or(self.virtual_channels.saturating_mul(self.buffer_flits)),
        }
    }

    /// The key that bounds the longest packet that a virtual channel (a queue) can always hold as a whole, and its value.
    pub fn whole_packet_flits(&self) -> (&'static str, u32) {
        if self.architecture == Architecture::OutputQueued {
            return ("queue_flits", self.queue_flits.unwrap_or(u32::MAX));
        }
        match (self.buffer_policy, self.most_held_flits) {
            (BufferPolicy::Private, _) => ("buffer_flits", self.buffer_flits),
            (BufferPolicy::Limited, Some(most)) if most < self.private_flits => ("most_held_flits", most),
            _ => ("private_flits", self.private_flits),
        }
    }

    /// The properties of the routers that endpoint models depend on.
    pub fn for_endpoints(&self) -> Routers {
        let (depth, channels) = (self.channel_depth(), self.virtual_channels.max(1));
        let most_held_flits = match self.buffer_policy {
            BufferPolicy::Private | BufferPolicy::Shared => depth,
            BufferPolicy::Limited => self.most_held_flits.unwrap_or(depth),
            BufferPolicy::Dynamic => depth / channels,
            BufferPolicy::Shifting => depth / channels.next_power_of_two(),
        };
        Routers {
            are_crosspoints: self.architecture == Architecture::Crosspoint,
            virtual_channels: self.virtual_channels,
            vc_per_destination: self.vc_per_destination,
            buffer_flits: self.buffer_flits,
            buffers_are_private: self.buffer_policy == BufferPolicy::Private,
            port_buffer_flits: depth,
            private_flits: self.private_flits,
            most_held_flits,
        }
    }

    fn check_sharing(&self) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: String| Err((key.to_owned(), problem));
        if self.architecture == Architecture::OutputQueued {
            // There is nothing to share: the keys are refused as such.
            return Ok(());
        }
        if self.buffer_policy == BufferPolicy::Private {
            let stray = [("port_buffer_flits", self.port_buffer_flits.is_some()), ("most_held_flits", self.most_held_flits.is_some())];
            return match stray.into_iter().find(|&(_, given)| given) {
                Some((key, _)) => {
                    wrong(key, "belongs to shared buffers; set buffer_policy, for example to \"shared\", or leave it out".to_owned())
                }
                None => Ok(()),
            };
        }
        let (depth, own) = (self.channel_depth(), self.virtual_channels.saturating_mul(self.private_flits));
        if self.private_flits == 0 {
            return wrong(
                "private_flits",
                "is 0; each virtual channel needs at least 1 private place, otherwise packets can deadlock".to_owned(),
            );
        }
        if depth < own || depth > u32::from(u16::MAX) {
            let problem = format!("makes a buffer of {depth} flits; {own}, the virtual channels' private places, to 65535 are possible");
            return wrong("port_buffer_flits", problem);
        }
        if self.most_held_flits == Some(0) {
            return wrong("most_held_flits", "is 0; give at least 1".to_owned());
        }
        Ok(())
    }

    fn check_speedups(&self) -> Result<(), (String, String)> {
        for (key, speedup) in [("input_speedup", self.input_speedup), ("output_speedup", self.output_speedup)] {
            if !(1..=MAX_VIRTUAL_CHANNELS).contains(&speedup) {
                return Err((key.to_owned(), format!("is {speedup}; a port has 1 to 256 inputs or outputs of the switch")));
            }
        }
        if !(1.0..=64.0).contains(&self.internal_speedup) {
            let problem = format!("is {}; a router takes 1 to 64 steps in a cycle", self.internal_speedup);
            return Err(("internal_speedup".to_owned(), problem));
        }
        if self.output_buffer_flits == Some(0) {
            return Err((
                "output_buffer_flits".to_owned(),
                "is 0; give at least 1, or leave it out for a buffer without bounds".to_owned(),
            ));
        }
        Ok(())
    }

    /// The keys that can request features beyond the canonical router.
    pub const EXTENSION_KEYS: [&'static str; 15] = [
        "vc_allocator",
        "switch_allocator",
        "buffer_policy",
        "vc_busy_when_full",
        "bubble",
        "vc_prefer_empty",
        "priority",
        "input_speedup",
        "output_speedup",
        "internal_speedup",
        "output_buffer_flits",
        "hold_switch",
        "speculation",
        "long_stages",
        "lookahead_decides",
    ];

    /// The keys that request features beyond the canonical router, of [`RouterParameters::EXTENSION_KEYS`].
    pub fn extensions(&self) -> impl Iterator<Item = &'static str> {
        Self::EXTENSION_KEYS.into_iter().filter(|key| self.extends(key))
    }

    /// True if this key requests a feature beyond the canonical router.
    pub fn extends(&self, key: &str) -> bool {
        let plain = |allocator: &AllocatorParameters| {
            ["islip", "separable-input-first", "separable-output-first"].contains(&allocator.name())
                && allocator.arbiter() == ArbiterParameters::default()
        };
        let is_long =
            |entry: &PipelineEntry| matches!(entry, PipelineEntry::Timed { stage, cycles: 2.. } if ["RC", "ST"].contains(&stage.as_str()));
        match key {
            "vc_allocator" => !plain(&self.vc_allocator),
            "switch_allocator" => !plain(&self.switch_allocator),
            "buffer_policy" => self.buffer_policy != BufferPolicy::Private,
            "vc_busy_when_full" => self.vc_busy_when_full,
            "bubble" => self.bubble,
            "vc_prefer_empty" => self.vc_prefer_empty,
            "priority" => self.priority != Priority::None,
            "input_speedup" => self.input_speedup > 1,
            "output_speedup" => self.output_speedup > 1,
            "internal_speedup" => self.internal_speedup > 1.0,
            "output_buffer_flits" => self.output_buffer_flits.is_some(),
            "hold_switch" => self.hold_switch,
            "speculation" => self.speculation == Speculation::Together && self.speculates(),
            "long_stages" => self.long_stages == LongStages::Batched && self.pipeline.iter().any(is_long),
            "lookahead_decides" => self.decides_on_departure(),
            _ => false,
        }
    }

    /// True if a congestion-aware routing decides before the head leaves the router upstream.
    pub fn decides_on_departure(&self) -> bool {
        self.lookahead && self.lookahead_decides == LookaheadDecides::OnDeparture
    }

    /// True if heads bid for the switch before they have a virtual channel.
    fn speculates(&self) -> bool {
        self.timing().is_ok_and(|pipeline| pipeline.bidding == Bidding::Speculative)
    }

    fn check_architecture(&self) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: &str| Err((key.to_owned(), problem.to_owned()));
        if self.architecture == Architecture::InputQueued {
            return Ok(());
        }
        if self.predicts() {
            return wrong("predictor", "needs architecture = \"input-queued\": queues for each output know the output already");
        }
        if self.vc_per_destination {
            return wrong("vc_per_destination", "needs architecture = \"input-queued\"; queues are for outputs or for destinations");
        }
        if self.architecture == Architecture::Crosspoint {
            let of_switch = ["switch_allocator", "input_speedup", "output_speedup", "hold_switch"];
            if let Some(key) = of_switch.into_iter().find(|key| self.extends(key)) {
                return wrong(key, "has no meaning for crosspoint routers, which have no switch to be allocated; leave it out");
            }
            if self.speculates() {
                return wrong(
                    "pipeline",
                    "bids speculatively for the switch; outputs of crosspoint routers take from their own queues, so write RC, VA, SA, ST",
                );
            }
            if self.switch_allocator != AllocatorParameters::default() {
                return wrong(
                    "switch_allocator",
                    "has no meaning for crosspoint routers, whose outputs choose for themselves; leave it out",
                );
            }
        }
        Ok(())
    }

    /// The keys that output-queued routers use.
    pub const OUTPUT_QUEUE_KEYS: [&'static str; 9] =
        ["architecture", "switching", "pipeline", "lookahead", "latency", "queue", "queue_flits", "resend_after", "source_turns"];

    fn check_queue(&self) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: &str| Err((key.to_owned(), problem.to_owned()));
        if self.architecture != Architecture::OutputQueued {
            let given = [
                ("latency", self.latency.is_some()),
                ("queue", self.queue != Queue::Unlimited),
                ("queue_flits", self.queue_flits.is_some()),
                ("resend_after", self.resend_after.is_some()),
                ("source_turns", self.source_turns != SourceTurns::Packet),
            ];
            return match given.into_iter().find(|&(_, given)| given) {
                Some((key, _)) => wrong(key, "belongs to architecture = \"output-queued\"; set that, or leave it out"),
                None => Ok(()),
            };
        }
        if self.switching == Switching::Wormhole {
            return wrong(
                "switching",
                "is \"wormhole\", but queues at outputs take whole packets; set \"store-and-forward\" or \"virtual-cut-through\"",
            );
        }
        match (self.queue, self.queue_flits) {
            (Queue::Unlimited, Some(_)) => {
                return wrong("queue_flits", "bounds queues that are unlimited; set queue = \"pause\" or \"drop\"");
            }
            (Queue::Pause | Queue::Drop, None) => {
                return wrong("queue_flits", "is missing: say how many flits a queue takes, for example queue_flits = 1024");
            }
            (_, Some(0)) => return wrong("queue_flits", "is 0; give at least the flits of the longest packet"),
            _ => {}
        }
        if self.resend_after.is_some() && self.queue != Queue::Drop {
            return wrong("resend_after", "is about packets that are lost, and none is; set queue = \"drop\", or leave it out");
        }
        Ok(())
    }

    fn timing(&self) -> Result<Pipeline, String> {
        let mut groups = self.stage_groups()?;
        let ends = self.serial_ends(&mut groups)?;
        // The last cycle of each stage, counted from the arrival in cycle 0; and its group.
        let mut end = [0i64; 4];
        let mut group_of = [0usize; 4];
        let mut now = i64::from(ends.deserialisation);
        let mut speculative = self.speculative;
        let mut next = 0;
        let mut computation_cycles = 0;
        for (number, (stages, cycles)) in groups.iter().enumerate() {
            let alone_rc = stages.as_slice() == [0];
            now += if self.lookahead && alone_rc { 0 } else { i64::from(*cycles) };
            for &stage in stages {
                if stage != next {
                    return Err(STAGES.to_owned());
                }
                (end[stage], group_of[stage]) = (now - 1, number);
                if stage == 0 {
                    computation_cycles = if self.lookahead && alone_rc { 0 } else { *cycles };
                }
                next += 1;
            }
        }
        if next != 4 {
            return Err(STAGES.to_owned());
        }
        if self
            .pipeline
            .iter()
            .any(|entry| matches!(entry, PipelineEntry::Stage(stage) | PipelineEntry::Timed { stage, .. } if stage == "VSA"))
        {
            speculative = true;
        }
        let (va, sa, st) = (end[1], end[2], end[3]);
        let shared = group_of[1] == group_of[2];
        let (bidding, extra) = match (speculative, shared) {
            // Both bid in the cycle in which virtual-channel allocation decides; a longer switch allocation ends later.
            (true, _) => (Bidding::Speculative, if shared { 0 } else { (sa - va - 1).max(0) }),
            (false, true) => (Bidding::SameCycle, 0),
            (false, false) => (Bidding::InTurn, sa - va - 1),
        };
        Ok(Pipeline {
            route_cycles: va as u32,
            bidding,
            switch_extra_cycles: extra as u32,
            traversal_cycles: (st - sa) as u32 + ends.serialisation,
            computation_cycles,
            serialisation_cycles: ends.serialisation,
            link_cycles: ends.link,
        })
    }

    /// Removes the stages of a serial router from both ends of the list: `Des` before all others, `Ser` and `LT` after them.
    fn serial_ends(&self, groups: &mut Vec<(Vec<usize>, u32)>) -> Result<SerialEnds, String> {
        let mut ends = SerialEnds::default();
        if let Some((_, cycles)) = groups.first().filter(|(stages, _)| stages == &[DES]) {
            ends.deserialisation = *cycles;
            groups.remove(0);
        }
        if let Some((_, cycles)) = groups.pop_if(|(stages, _)| stages == &[LT]) {
            ends.link = cycles;
        }
        if let Some((_, cycles)) = groups.pop_if(|(stages, _)| stages == &[SER]) {
            ends.serialisation = cycles;
        }
        if groups.iter().any(|(stages, _)| stages.iter().any(|&stage| stage > 3)) {
            return Err(STAGES.to_owned());
        }
        Ok(ends)
    }

    fn stage_groups(&self) -> Result<Vec<(Vec<usize>, u32)>, String> {
        let mut groups = Vec::new();
        for entry in &self.pipeline {
            let (names, cycles) = match entry {
                PipelineEntry::Stage(stage) => (vec![stage.as_str()], 1),
                PipelineEntry::Timed { stage, cycles } => (vec![stage.as_str()], *cycles),
                PipelineEntry::Together { stages, cycles } => (stages.iter().map(String::as_str).collect(), *cycles),
            };
            if cycles == 0 || cycles > 1000 {
                return Err(format!(
                    "a stage of {cycles} cycles; a stage takes 1 to 1000 (put stages that share a cycle together: {{ stages = [\"VA\", \"SA\"], cycles = 1 }})"
                ));
            }
            let mut stages = Vec::new();
            for name in names {
                match name {
                    "RC" => stages.push(0),
                    "VA" => stages.push(1),
                    "SA" => stages.push(2),
                    "VSA" => stages.extend([1, 2]),
                    "ST" => stages.push(3),
                    "Des" => stages.push(DES),
                    "Ser" => stages.push(SER),
                    "LT" => stages.push(LT),
                    other => return Err(format!("unknown stage `{other}`; {STAGES}")),
                }
            }
            groups.push((stages, cycles));
        }
        Ok(groups)
    }
}

const STAGES: &str = "the stages are RC, VA, SA, ST in this order, each once; VSA stands for VA and SA in one cycle; \
    a serial router has Des before them and Ser after them, each for itself, and LT at the end";

/// Numbers of the stages beyond RC, VA, SA and ST, which are 0 to 3.
const DES: usize = 4;
const SER: usize = 5;
const LT: usize = 6;

/// Cycles of the stages at the ends of a serial router.
#[derive(Clone, Copy, Debug, Default)]
struct SerialEnds {
    deserialisation: u32,
    serialisation: u32,
    link: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(entries: &[PipelineEntry], speculative: bool, lookahead: bool) -> Pipeline {
        RouterParameters { pipeline: entries.to_vec(), speculative, lookahead, ..RouterParameters::default() }.check().unwrap()
    }

    fn stage(name: &str) -> PipelineEntry {
        PipelineEntry::Stage(name.to_owned())
    }

    fn timed(name: &str, cycles: u32) -> PipelineEntry {
        PipelineEntry::Timed { stage: name.to_owned(), cycles }
    }

    fn canonical() -> Vec<PipelineEntry> {
        ["RC", "VA", "SA", "ST"].map(stage).to_vec()
    }

    /// P = rd + va + sa + st, or rd + max(va, sa) + st if speculative (BookSim 2's IQ router).
    #[test]
    fn head_cycles_are_the_sum_of_the_stages() {
        assert_eq!(pipeline(&canonical(), false, false).head_cycles(), 4);
        assert_eq!(pipeline(&canonical(), true, false).head_cycles(), 3);
        assert_eq!(pipeline(&canonical(), false, true).head_cycles(), 3);
        assert_eq!(pipeline(&canonical(), true, true).head_cycles(), 2);
        assert_eq!(pipeline(&["RC", "VSA", "ST"].map(stage), false, false).head_cycles(), 3);
        let long = [timed("RC", 3), timed("VA", 2), timed("SA", 2), timed("ST", 3)];
        assert_eq!(pipeline(&long, false, false).head_cycles(), 10);
        let one = [PipelineEntry::Together { stages: ["RC", "VA", "SA", "ST"].map(String::from).to_vec(), cycles: 1 }];
        assert_eq!(pipeline(&one, false, false).head_cycles(), 1);
    }

    /// Des, RC, VSA, ST, Ser take a cycle each; link traversal is part of the channel's latency, not of the router.
    #[test]
    fn a_serial_router_takes_its_five_stages() {
        let entries = ["Des", "RC", "VSA", "ST", "Ser"].map(stage).into_iter().chain([timed("LT", 32)]).collect::<Vec<_>>();
        let serial = pipeline(&entries, false, false);
        assert_eq!(serial.head_cycles(), 5);
        assert_eq!((serial.route_cycles, serial.traversal_cycles), (2, 2));
        assert_eq!((serial.computation_cycles, serial.serialisation_cycles, serial.link_cycles), (1, 1, 32));
        let plain = pipeline(&["RC", "VSA", "ST"].map(stage), false, false);
        assert_eq!((plain.serialisation_cycles, plain.link_cycles), (0, 0));
    }

    /// The refused key, and the message.
    fn complaint(text: &str) -> (String, String) {
        toml::from_str::<RouterParameters>(text).unwrap().check().unwrap_err().remove(0)
    }

    #[test]
    fn wrong_options_of_routers_name_a_remedy() {
        for (text, key, wanted) in [
            ("input_speedup = 0", "input_speedup", "1 to 256"),
            ("output_speedup = 300", "output_speedup", "1 to 256"),
            ("internal_speedup = 0.5", "internal_speedup", "1 to 64"),
            ("output_buffer_flits = 0", "output_buffer_flits", "at least 1"),
            ("vc_allocator = { name = \"islip\", iterations = 0 }", "vc_allocator", "at least 1"),
            ("vc_allocator = { name = \"wavefront\", iterations = 2 }", "vc_allocator", "only islip, pim and select iterate"),
            ("vc_allocator = { name = \"select\", turns = \"waiting\" }", "vc_allocator", "only maximum-size"),
            ("switch_allocator = { name = \"loa\", arbiter = \"matrix\" }", "switch_allocator", "separable-input-first"),
            ("switch_allocator = { name = \"separable-input-first\", arbiter = { groups = 0 } }", "switch_allocator", "at least 1"),
            ("port_buffer_flits = 16", "port_buffer_flits", "set buffer_policy"),
            ("buffer_policy = \"shared\"\nprivate_flits = 0", "private_flits", "at least 1 private place"),
            (
                "buffer_policy = \"shared\"\nvirtual_channels = 8\nport_buffer_flits = 7",
                "port_buffer_flits",
                "8, the virtual channels' private places",
            ),
            ("buffer_policy = \"limited\"\nmost_held_flits = 0", "most_held_flits", "at least 1"),
            ("hit_saves = \"stages\"", "hit_saves", "without a predictor"),
            (
                "hit_saves = \"wait\"\npredictor = \"oracle\"\npipeline = [\"RC\", \"VSA\", \"ST\"]",
                "hit_saves",
                "an LT of at least 2 cycles",
            ),
            ("forward_copies = \"head\"\npredictor = \"oracle\"", "forward_copies", "set on_miss = \"forward\""),
            ("hint_cycles = 1\npredictor = \"up-priority\"", "hint_cycles", "set on_miss = \"hint\""),
            ("hint_cycles = 1\non_miss = \"hint\"", "hint_cycles", "with a predictor"),
            ("hint_cycles = 1001\npredictor = \"up-priority\"\non_miss = \"hint\"", "hint_cycles", "0 to 1000"),
            ("predictor_fold = \"back\"", "predictor_fold", "only to static-straight"),
            ("predictor = \"by-level\"", "predictor", "predictor_levels"),
            ("hold_switch = true\narchitecture = \"crosspoint\"", "hold_switch", "no switch to be allocated"),
        ] {
            let (found, problem) = complaint(text);
            assert!(found == key && problem.contains(wanted), "{text}: {found}: {problem}");
        }
        assert!(toml::from_str::<RouterParameters>("switch_allocator = { name = \"islip\", rounds = 2 }").is_err());
        assert!(toml::from_str::<RouterParameters>("vc_allocator = { name = \"separable-input-first\", arbiter = \"oldest\" }").is_err());
    }

    #[test]
    fn defaults_are_not_extensions() {
        let general = |text: &str| toml::from_str::<RouterParameters>(text).unwrap().extensions().next().is_some();
        assert!(!general("switch_allocator = { name = \"islip\", iterations = 3 }\nlong_stages = \"batched\"\ninternal_speedup = 1"));
        for text in ["vc_allocator = \"pim\"", "internal_speedup = 1.5", "buffer_policy = \"shared\"", "priority = \"class\""] {
            assert!(general(text), "{text}");
        }
        assert!(general("speculation = \"together\"\nspeculative = true"));
        assert!(!general("speculation = \"together\"") && !general("speculative = true"));
        assert!(general("lookahead_decides = \"on-departure\"\nlookahead = true") && !general("lookahead_decides = \"on-departure\""));
        assert!(general("long_stages = \"batched\"\npipeline = [\"RC\", \"VA\", \"SA\", { stage = \"ST\", cycles = 2 }]"));
    }

    #[test]
    fn wrong_pipelines_are_refused() {
        for entries in [
            vec![stage("RC")],
            vec![stage("VA"), stage("RC"), stage("SA"), stage("ST")],
            vec![stage("XX")],
            vec![timed("RC", 0)],
            ["RC", "Des", "VSA", "ST"].map(stage).to_vec(),
            ["RC", "VSA", "ST", "LT", "Ser"].map(stage).to_vec(),
        ] {
            let router = RouterParameters { pipeline: entries, ..RouterParameters::default() };
            assert_eq!(router.check().unwrap_err()[0].0, "pipeline");
        }
    }
}
