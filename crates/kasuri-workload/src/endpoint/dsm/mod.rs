//! Distributed shared memory: a processor reads and writes the memories of other nodes by packets that its network interface sends.
//!
//! A node is a processor element, a local memory, a unit that translates node numbers, and one network interface or several, each before a
//! router. An interface handles one packet at a time, each for `interface_cycles`: a request that it issues for its processor, a request of
//! another node that it serves from the local memory, a reply that it hands to its processor. Here is what happens ([`programs`]: what
//! processors do; [`processors`]: whose processors stand where; [`nodes`]: what the interfaces make of it, in time); how packets travel is
//! known to the engines. Source: Sato and Tanaka, "Virtual Network System and its Preliminary Evaluation", sections 3 and 4.1.

mod accesses;
mod interface;
pub mod layout;
mod memory;
mod node;
pub mod nodes;
mod pages;
pub mod processors;
pub mod programs;
mod rotation;
pub mod steps;

use super::contract::{Endpoint, EndpointContext, EndpointError, EndpointModel, Prepared, Routers, Space, UserMachine};
use super::running::RunningMachine;
use crate::translation::sharing::Sharing;
use crate::translation::{Table, Tables};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::registry::Member;
use kasuri_network::rng::Streams;
use kasuri_network::routing::VirtualChannels;
use layout::{InterfacesAt, Layout};
use nodes::Nodes;
use processors::{Part, Processors};
use programs::{Messages, Place, Workload};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use std::any::Any;
use std::sync::Arc;
use steps::{Access, MAX_CYCLES, Step};

/// The constants of the network interface. Each terminal is a node, unless nodes have several interfaces.
///
/// Requests use the lower half of the virtual channels and replies the upper half, so that neither can block the other; crosspoint routers
/// have a queue for each virtual channel at each crossing. How many
/// packets the channels between router and interface carry is `network.terminal_channel_period`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dsm {
    /// Cycles for which the interface works on each packet that it issues, serves or accepts.
    pub interface_cycles: u32,
    /// Cycles more for each request that it serves: the access to the local memory.
    pub memory_cycles: u32,
    /// Requests of a node that are not answered yet, at most; at least 1.
    pub window: u32,
    /// Flits of a packet without data: the request of a read and the reply to a write.
    pub command_flits: u32,
    /// Flits of a packet with data: the reply to a read and the request of a write.
    pub data_flits: u32,
    /// Words that one packet of a message carries, at most, for programs that send messages; such a packet has data_flits for the first word
    /// and for each other one as many as data_flits has more than command_flits, at least one.
    pub message_words: Option<u32>,
    /// Cycles for which the processor prepares a message before it hands its packets to its interface.
    pub message_cycles: u32,
    /// Network interfaces of a node: so many terminals are one node, with one processor, one memory, and as many physical numbers.
    pub interfaces: u32,
    /// Where a node's interfaces stand.
    pub interfaces_at: InterfacesAt,
}

impl Default for Dsm {
    fn default() -> Self {
        let (interfaces, interfaces_at) = (1, InterfacesAt::Router);
        let (message_words, message_cycles) = (None, 0);
        let (interface_cycles, memory_cycles, window) = (4, 0, 16);
        let (command_flits, data_flits) = (2, 4);
        Self {
            interface_cycles,
            memory_cycles,
            window,
            command_flits,
            data_flits,
            message_words,
            message_cycles,
            interfaces,
            interfaces_at,
        }
    }
}

impl Member for Dsm {
    const NAME: &'static str = "dsm";
    const SUMMARY: &'static str = "distributed shared memory: network interfaces that read and write the memories of other nodes";
    const SOURCE: &'static str = "Sato and Tanaka, Virtual Network System and its Preliminary Evaluation, section 4.1";
    const EXAMPLE: &'static str = "window = 16";
}

/// The greatest number of flits of a packet, and of requests of a node that are not answered.
const MAX_COUNT: u32 = 65_535;

/// The greatest number of words in a packet of a message.
const MAX_WORDS: u32 = 4096;

/// The greatest number of interfaces of a node.
const MAX_INTERFACES: u32 = 64;

/// A program of logical nodes, not yet on a machine.
#[derive(Clone, Debug)]
struct Programs {
    /// The steps of each logical node.
    steps: Vec<Vec<Step>>,
    /// The virtual channels of requests, and those of replies.
    channels: [VirtualChannels; 2],
}

impl Endpoint for Programs {
    fn model(&self) -> &'static str {
        Dsm::NAME
    }
}

/// The machine and its programs.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The interface.
    pub constants: Dsm,
    /// Which terminals are a node.
    pub layout: Layout,
    /// What runs on the nodes.
    pub processors: Processors,
    /// Tables, their costs and changes.
    pub sharing: Sharing,
}

impl Endpoint for Machine {
    fn model(&self) -> &'static str {
        Dsm::NAME
    }

    fn packet_flits(&self) -> Option<[u32; 2]> {
        let Dsm { command_flits, data_flits, .. } = self.constants;
        Some([command_flits.min(data_flits), self.constants.longest_packet()])
    }

    fn begin(&self) -> Option<Box<dyn RunningMachine + '_>> {
        Some(Box::new(Nodes::new(self)))
    }

    fn class_channels(&self) -> Vec<[VirtualChannels; 2]> {
        self.processors.parts.iter().map(|part| part.channels).collect()
    }
}

impl EndpointModel for Dsm {
    fn workload_schema(&self) -> Option<Schema> {
        Some(schema_for!(Workload))
    }

    fn prepare(&self, context: &EndpointContext<'_>) -> Result<Prepared, EndpointError> {
        self.check()?;
        self.check_buffers(context.routers)?;
        let channels = virtual_networks(context)?;
        let workload: Workload = context
            .workload
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| EndpointError::new("workload", "program", error.message()))?;
        let of = |nodes, homes| {
            let messages = self.message_words.map(|words| Messages { words, cycles: self.message_cycles });
            let place = Place { nodes, homes, messages, streams: context.streams };
            let steps = programs::of_nodes(&workload, context.workload, place)?;
            Ok(Programs { steps, channels })
        };
        match context.space {
            Some(space) => Ok(Prepared::Machine(Arc::new(of(space.nodes, space.homes)?))),
            None => {
                let layout = self.layout(context.network).map_err(|problem| EndpointError::new("endpoint", "interfaces", problem))?;
                let programs = of(layout.nodes(), layout.nodes())?;
                let table = Table::new(layout.interfaces.clone(), LINE_BITS);
                let sharing = Sharing::of_one(Tables::new(vec![table], context.network.terminal_count()));
                let part = Part { user: 0, is_system: false, is_supervisor: false, channels };
                let all = vec![(part, programs.steps)];
                let processors = Processors::new(all, &layout, &sharing, context.streams);
                let processors = processors.map_err(|problem| EndpointError::new("endpoint", "model", problem))?;
                Ok(Prepared::Machine(Arc::new(Machine { constants: self.clone(), layout, processors, sharing })))
            }
        }
    }

    fn join(&self, parts: Vec<UserMachine>, network: &Network, sharing: Sharing, streams: &Streams) -> Result<Arc<dyn Endpoint>, String> {
        let layout = self.layout(network)?;
        let mut all = Vec::new();
        for part in &parts {
            let machine: &dyn Any = &*part.machine;
            let programs: &Programs = machine.downcast_ref().ok_or("its users have machines of another kind")?;
            let placed =
                |range: VirtualChannels| VirtualChannels { begin: range.begin + part.first_channel, end: range.end + part.first_channel };
            let (user, is_supervisor, is_system) = (part.user, part.is_supervisor, part.space == Space::System);
            all.push((Part { user, is_system, is_supervisor, channels: programs.channels.map(placed) }, programs.steps.clone()));
        }
        refuse_meeting_replies(all.iter().map(|(part, _)| part.channels).collect())?;
        let processors = Processors::new(all, &layout, &sharing, streams)?;
        Ok(Arc::new(Machine { constants: self.clone(), layout, processors, sharing }))
    }

    fn nodes(&self, network: &Network, terminals: &[TerminalId]) -> Result<Vec<Vec<TerminalId>>, (&'static str, String)> {
        let layout = self.layout(network).map_err(|problem| ("interfaces", problem))?;
        let mut numbers: Vec<u32> = Vec::new();
        let mut nodes: Vec<Vec<TerminalId>> = Vec::new();
        for &terminal in terminals {
            let number = layout.node(terminal);
            match numbers.iter().position(|&known| known == number) {
                Some(place) => nodes[place].push(terminal),
                None => {
                    numbers.push(number);
                    nodes.push(vec![terminal]);
                }
            }
        }
        Ok(nodes)
    }

    fn binds(&self) -> &'static str {
        "the words of a node are in its memory"
    }

    fn translates(&self) -> bool {
        true
    }

    fn channels_beside(&self, own: VirtualChannels) -> VirtualChannels {
        // Otherwise open traffic on the reply network could block on requests.
        VirtualChannels { begin: own.begin, end: own.begin + (own.count() / 2).max(1) }
    }
}

/// log2 of the bytes of a line: the aliases of a node that no user has take lines in turn.
const LINE_BITS: u32 = 6;

fn refuse_meeting_replies(networks: Vec<[VirtualChannels; 2]>) -> Result<(), String> {
    let overlap = |one: VirtualChannels, other: VirtualChannels| one.begin < other.end && other.begin < one.end;
    if networks.iter().any(|[requests, _]| networks.iter().any(|[_, replies]| overlap(*requests, *replies))) {
        return Err("the requests of a user and the replies of another share virtual channels, and could wait for each other".to_owned());
    }
    Ok(())
}

impl Dsm {
    fn check(&self) -> Result<(), EndpointError> {
        let limits = [
            ("interface_cycles", self.interface_cycles, 0, MAX_CYCLES),
            ("memory_cycles", self.memory_cycles, 0, MAX_CYCLES),
            ("window", self.window, 1, MAX_COUNT),
            ("command_flits", self.command_flits, 1, MAX_COUNT),
            ("data_flits", self.data_flits, 1, MAX_COUNT),
            ("message_words", self.message_words.unwrap_or(1), 1, MAX_WORDS),
            ("message_cycles", self.message_cycles, 0, MAX_CYCLES),
            ("interfaces", self.interfaces, 1, MAX_INTERFACES),
        ];
        if let Some((key, value, least, most)) = limits.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
            return Err(EndpointError::new("endpoint", key, format!("is {value}; it must be {least} to {most}")));
        }
        if self.longest_packet() > MAX_COUNT {
            let problem = format!("makes packets of {} flits; there may be {MAX_COUNT}", self.longest_packet());
            return Err(EndpointError::new("endpoint", "message_words", problem));
        }
        Ok(())
    }

    /// A packet stays before an interface until it is there in whole: the buffer at the end of the channel must be able to hold it,
    /// whatever the other virtual channels hold.
    fn check_buffers(&self, routers: Routers) -> Result<(), EndpointError> {
        let longest = self.longest_packet();
        let wrong = |key: &str, problem: String| Err(EndpointError::new("router", key, problem));
        if routers.buffers_are_private {
            if routers.buffer_flits < longest {
                let problem = format!(
                    "is {}; it must be {longest} or more with endpoint.model = \"dsm\": a packet of {longest} flits waits in one buffer \
                     until its interface takes it",
                    routers.buffer_flits
                );
                return wrong("buffer_flits", problem);
            }
            return Ok(());
        }
        let most = routers.most_held_flits;
        // At worst each virtual channel has all of a packet but its last flit.
        let parts = u64::from(routers.virtual_channels) * u64::from((longest - 1).max(routers.private_flits));
        if most < longest || routers.private_flits < longest && u64::from(routers.port_buffer_flits) <= parts {
            let least = if most < longest { "more for each virtual channel".to_owned() } else { format!("{} or more", parts + 1) };
            let problem = format!(
                "makes a buffer of {} flits; it must be {least} with endpoint.model = \"dsm\": a packet of {longest} flits waits in it until \
                 its interface takes it",
                routers.port_buffer_flits
            );
            return wrong("port_buffer_flits", problem);
        }
        Ok(())
    }

    /// Flits of a request or reply: commands carry no data, nor does an answer that reports an error.
    pub fn flits(&self, access: Access, is_reply: bool, is_error: bool) -> u32 {
        match (access, is_reply) {
            _ if is_error => self.command_flits,
            (Access::Read, true) => self.data_flits,
            (Access::Write { words, .. }, false) => self.flits_of_words(words),
            (Access::Read, false) | (Access::Write { .. }, true) => self.command_flits,
        }
    }

    /// Flits of a packet that carries so many words.
    fn flits_of_words(&self, words: u32) -> u32 {
        let of_another = self.data_flits.saturating_sub(self.command_flits).max(1);
        self.data_flits.saturating_add(of_another.saturating_mul(words - 1))
    }

    fn longest_packet(&self) -> u32 {
        self.command_flits.max(self.flits_of_words(self.message_words.unwrap_or(1)))
    }

    fn layout(&self, network: &Network) -> Result<Layout, String> {
        Layout::new(network, self.interfaces, self.interfaces_at)
    }
}

/// Divides the virtual channels between requests and replies.
fn virtual_networks(context: &EndpointContext<'_>) -> Result<[VirtualChannels; 2], EndpointError> {
    let router = |key: &str, problem: String| Err(EndpointError::new("router", key, problem));
    if context.routers.vc_per_destination {
        return router(
            "vc_per_destination",
            "must be left out with endpoint.model = \"dsm\", whose requests and replies keep apart".to_owned(),
        );
    }
    let channels = context.routers.virtual_channels;
    if channels < 2 || !channels.is_multiple_of(2) {
        let problem = format!("is {channels}; it must be even with endpoint.model = \"dsm\": one half for requests, one for replies");
        return router("virtual_channels", problem);
    }
    // Checked to be a few hundred at most where the routers are read.
    let (half, all) = ((channels / 2) as u16, channels as u16);
    Ok([VirtualChannels { begin: 0, end: half }, VirtualChannels { begin: half, end: all }])
}
