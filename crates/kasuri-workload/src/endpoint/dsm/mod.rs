//! Distributed shared memory: a processor reads and writes the memories of other nodes by packets that its network interface sends.
//!
//! A node is a processor element, a network interface unit, a local memory and a router. The interface handles one packet at a time,
//! each for `interface_cycles`: a request that it issues for its processor, a request of another node that it serves from the local
//! memory, a reply that it hands to its processor. Here is what happens ([`programs`]: what processors do; [`nodes`]: what the
//! interfaces make of it); how packets travel is known to the engines. Source: Sato and Tanaka, "Virtual Network System and its
//! Preliminary Evaluation", section 4.1.

pub mod nodes;
pub mod programs;

use super::running::{MachinePacket, RunningMachine};
use super::{Endpoint, EndpointContext, EndpointError, EndpointModel, Prepared, Routers, UserMachine};
use kasuri_network::id::TerminalId;
use kasuri_network::registry::Member;
use kasuri_network::routing::VirtualChannels;
use nodes::Nodes;
use programs::{Step, Workload};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use std::any::Any;
use std::sync::Arc;

/// The constants of the network interface. All terminals are nodes; of several users each terminal of one.
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
}

impl Default for Dsm {
    fn default() -> Self {
        Self { interface_cycles: 4, memory_cycles: 0, window: 16, command_flits: 2, data_flits: 4 }
    }
}

impl Member for Dsm {
    const NAME: &'static str = "dsm";
    const SUMMARY: &'static str = "distributed shared memory: network interfaces that read and write the memories of other nodes";
    const SOURCE: &'static str = "Sato and Tanaka, Virtual Network System and its Preliminary Evaluation, section 4.1";
    const EXAMPLE: &'static str = "window = 16";
}

/// The greatest value of a key in cycles.
const MAX_CYCLES: u32 = 1_000_000_000;

/// The greatest number of flits of a packet, and of requests of a node that are not answered.
const MAX_COUNT: u32 = 65_535;

/// The machine and its programs.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The interface.
    pub constants: Dsm,
    /// What the processor of each terminal does.
    pub programs: Vec<Vec<Step>>,
    /// Of each part (all, or a user each): the virtual channels of requests, and those of replies.
    pub networks: Vec<[VirtualChannels; 2]>,
    /// By terminal: the part that its requests belong to.
    pub part_of: Vec<u8>,
}

impl Machine {
    /// A parcel as engines carry it. It belongs to the part of its requester.
    fn packet(&self, parcel: &Parcel) -> MachinePacket {
        MachinePacket {
            source: parcel.source(),
            destination: parcel.destination(),
            flits: self.constants.flits(parcel),
            part: self.part_of[parcel.requester.index()],
            is_reply: parcel.is_reply,
            exchange: u64::from(parcel.requester.0) << 32 | u64::from(parcel.number),
            content: u64::from(parcel.phase) << 1 | u64::from(parcel.access == Access::Write),
        }
    }
}

impl Endpoint for Machine {
    fn model(&self) -> &'static str {
        Dsm::NAME
    }

    fn packet_flits(&self) -> Option<[u32; 2]> {
        let Dsm { command_flits, data_flits, .. } = self.constants;
        Some([command_flits.min(data_flits), command_flits.max(data_flits)])
    }

    fn begin(&self) -> Option<Box<dyn RunningMachine + '_>> {
        Some(Box::new(Nodes::new(self)))
    }

    fn class_channels(&self) -> Vec<[VirtualChannels; 2]> {
        self.networks.clone()
    }
}

impl EndpointModel for Dsm {
    fn workload_schema(&self) -> Option<Schema> {
        Some(schema_for!(Workload))
    }

    fn prepare(&self, context: &EndpointContext<'_>) -> Result<Prepared, EndpointError> {
        self.check()?;
        self.check_buffers(context.routers)?;
        let networks = virtual_networks(context)?;
        let workload: Workload = context
            .workload
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| EndpointError::new("workload", "program", error.message()))?;
        let programs = programs::of_nodes(&workload, context)?;
        let part_of = vec![0; programs.len()];
        Ok(Prepared::Machine(Arc::new(Machine { constants: self.clone(), programs, networks: vec![networks], part_of })))
    }

    fn join(&self, parts: Vec<UserMachine>, terminals: u32) -> Result<Arc<dyn Endpoint>, String> {
        let mut taken = vec![false; terminals as usize];
        let mut joined = Machine {
            constants: self.clone(),
            programs: vec![Vec::new(); terminals as usize],
            networks: Vec::new(),
            part_of: vec![0; terminals as usize],
        };
        for (number, part) in parts.iter().enumerate() {
            let machine: &dyn Any = &*part.machine;
            let machine: &Machine = machine.downcast_ref().ok_or("its users have machines of another kind")?;
            joined.networks.push(
                machine.networks[0]
                    .map(|range| VirtualChannels { begin: range.begin + part.first_channel, end: range.end + part.first_channel }),
            );
            for (program, terminal) in machine.programs.iter().zip(&part.terminals) {
                if std::mem::replace(&mut taken[terminal.index()], true) {
                    return Err("a processor runs the program of one user, and two users share a terminal".to_owned());
                }
                joined.programs[terminal.index()] = program.iter().map(|step| step.placed(&part.terminals)).collect();
                joined.part_of[terminal.index()] = number as u8;
            }
        }
        let overlap = |one: VirtualChannels, other: VirtualChannels| one.begin < other.end && other.begin < one.end;
        let requests_meet_replies =
            joined.networks.iter().any(|[requests, _]| joined.networks.iter().any(|[_, replies]| overlap(*requests, *replies)));
        if requests_meet_replies {
            return Err(
                "the requests of a user and the replies of another share virtual channels, and could wait for each other".to_owned()
            );
        }
        Ok(Arc::new(joined))
    }

    fn binds(&self) -> &'static str {
        "the words of a node are in its memory"
    }

    fn channels_beside(&self, own: VirtualChannels) -> VirtualChannels {
        // What it held of the replies' could wait for requests.
        VirtualChannels { begin: own.begin, end: own.begin + (own.count() / 2).max(1) }
    }
}

impl Dsm {
    fn check(&self) -> Result<(), EndpointError> {
        let limits = [
            ("interface_cycles", self.interface_cycles, 0, MAX_CYCLES),
            ("memory_cycles", self.memory_cycles, 0, MAX_CYCLES),
            ("window", self.window, 1, MAX_COUNT),
            ("command_flits", self.command_flits, 1, MAX_COUNT),
            ("data_flits", self.data_flits, 1, MAX_COUNT),
        ];
        match limits.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
            Some((key, value, least, most)) => {
                Err(EndpointError::new("endpoint", key, format!("is {value}; it must be {least} to {most}")))
            }
            None => Ok(()),
        }
    }

    /// A packet stays before an interface until it is there in whole: the buffer at the end of the channel must be able to hold it,
    /// whatever the other virtual channels hold.
    fn check_buffers(&self, routers: Routers) -> Result<(), EndpointError> {
        let longest = self.command_flits.max(self.data_flits);
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

    /// Flits of a parcel.
    pub fn flits(&self, parcel: &Parcel) -> u32 {
        if (parcel.access == Access::Read) == parcel.is_reply { self.data_flits } else { self.command_flits }
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

/// What a processor does to a word of another node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads it.
    Read,
    /// It writes it.
    Write,
}

/// A request, or the reply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Who wants to read or write.
    pub requester: TerminalId,
    /// Whose memory it is.
    pub home: TerminalId,
    /// What is done to it.
    pub access: Access,
    /// Number of the request at its requester.
    pub number: u32,
    /// What a write belongs to; programs wait for the writes of a phase.
    pub phase: u32,
    /// Is it the reply?
    pub is_reply: bool,
}

impl From<MachinePacket> for Parcel {
    fn from(packet: MachinePacket) -> Self {
        let MachinePacket { source, destination, is_reply, exchange, content, .. } = packet;
        let (requester, home) = if is_reply { (destination, source) } else { (source, destination) };
        let access = if content & 1 == 1 { Access::Write } else { Access::Read };
        Self { requester, home, access, number: exchange as u32, phase: (content >> 1) as u32, is_reply }
    }
}

impl Parcel {
    /// Who sends it.
    pub fn source(&self) -> TerminalId {
        if self.is_reply { self.home } else { self.requester }
    }

    /// Who receives it.
    pub fn destination(&self) -> TerminalId {
        if self.is_reply { self.requester } else { self.home }
    }
}
