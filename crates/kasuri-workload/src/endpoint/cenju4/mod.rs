//! The network interface of the Cenju-4: a user-level interface with protection by tables, multicast and synchronisation.
//!
//! Here is its meaning: parcels and packets ([`parcel`]), tables and protection ([`task`]), what Sender and Receiver do to the memories
//! ([`node`]), flits and their check bits ([`framing`]), and programs with their library ([`script`], [`programs`]). How long all of it takes, by the constants of [`Cenju4`], is
//! known to the engine. Source: Kano et al., "User-level Network Interface for a Parallel Computer Cenju-4", IPSJ Journal 41 (2000).

pub mod fault;
pub mod framing;
pub mod memory;
pub mod node;
pub mod parcel;
pub mod programs;
pub mod script;
pub mod task;

use super::contract::{Endpoint, EndpointContext, EndpointError, EndpointModel, Prepared};
use fault::Cause;
use kasuri_network::multicast::Tables;
use kasuri_network::registry::Member;
use kasuri_network::routing::VirtualChannels;
use memory::PAGE;
use node::Node;
use programs::Workload;
use schemars::{JsonSchema, Schema, schema_for};
use script::Program;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The constants of the interface, of the memory and of the library. Times are in nanoseconds.
///
/// The defaults are those of the machine; docs/explanation/papers/cenju4.md says which are given, derived and calibrated.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cenju4 {
    /// Flits in front of the data of a packet.
    pub header_flits: u32,
    /// The library's code before a parcel is sent.
    pub send_ns: f64,
    /// The library's code before each further parcel that is sent at once.
    pub send_more_ns: f64,
    /// The write to the header queue's pointer.
    pub pointer_ns: f64,
    /// From a coherent read of a line that the cache has to its first double word. The cache answers with the line also when that has
    /// been read before.
    pub cache_ns: f64,
    /// From a coherent read to the answer of a cache that does not have the line.
    pub snoop_ns: f64,
    /// From a read of main memory to its first double word.
    pub memory_ns: f64,
    /// Between two double words.
    pub beat_ns: f64,
    /// The look-up of a destination in its table.
    pub node_table_ns: f64,
    /// Making the header of a packet; the data is read meanwhile.
    pub packet_ns: f64,
    /// Packets of the longest kind that the FIFO memory from the Sender to the network holds. It sends them in order.
    pub send_queue_packets: u32,
    /// Of which header register the Sender makes the next packet, of those whose packet finds room in the first switch.
    pub register_choice: RegisterChoice,
    /// Packets of the longest kind that the queue from the network to the Receiver holds.
    pub receive_queue_packets: u32,
    /// Header registers of the Sender.
    pub header_registers: u32,
    /// Entries of each of the two translation buffers.
    pub tlb_entries: u32,
    /// What the Receiver does before it writes a packet's data.
    pub receiver_ns: f64,
    /// The writing of one line.
    pub line_ns: f64,
    /// Adding to, or exchanging, a double word.
    pub atomic_ns: f64,
    /// From the writing of data to the announcement in the buffer table.
    pub notice_ns: f64,
    /// The read of a processor that polls and finds a change.
    pub poll_ns: f64,
    /// The library's code after a message has been found.
    pub receive_ns: f64,
    /// What MPI adds to sending.
    pub mpi_send_ns: f64,
    /// What MPI adds to receiving.
    pub mpi_receive_ns: f64,
    /// Bytes up to which MPI sends without asking.
    pub mpi_eager_bytes: u64,
    /// A system call.
    pub system_call_ns: f64,
    /// What an interrupt takes of the processor: entry, handler and return.
    pub interrupt_ns: f64,
    /// Interrupts that do not reach the processor. Page faults always do.
    pub masked_interrupts: Vec<Cause>,
    /// From the interrupt for a page that is not in memory until the operating system has entered it in its table.
    pub page_fault_ns: f64,
    /// The processor's copying of a word of 4 bytes.
    pub word_copy_ns: f64,
    /// Headers that the header queue of a task holds: 128 to 2048, which are 4 to 64 Kbyte.
    pub header_queue: u32,
    /// Sets of control registers for tasks: as many tasks can send at a time.
    pub user_registers: u32,
    /// Requests of a node that are not answered yet: as many of 1024 nodes must fit into one header queue.
    pub outstanding_requests: u32,
    /// The fraction of the bits on a channel that arrive changed. The receiving end finds them by parity and check bits, corrects one in
    /// each double word, and refuses packets with more; nothing is sent again.
    pub bit_error_rate: f64,
    /// The fraction of the flits on a channel that are lost. The receiving end detects this by the positions and the number of flits, and
    /// refuses the packet.
    pub flit_loss_rate: f64,
}

/// Which of several header registers goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegisterChoice {
    /// The one that was filled first.
    #[default]
    Oldest,
    /// After each packet the next one that was filled later, and then the first again.
    Rotating,
}

impl Default for Cenju4 {
    fn default() -> Self {
        Self {
            header_flits: 12,
            send_ns: 1200.0,
            send_more_ns: 350.0,
            pointer_ns: 250.0,
            cache_ns: 410.0,
            snoop_ns: 160.0,
            memory_ns: 87.5,
            beat_ns: 12.5,
            node_table_ns: 150.0,
            packet_ns: 135.0,
            send_queue_packets: 2,
            register_choice: RegisterChoice::default(),
            receive_queue_packets: 4,
            header_registers: 4,
            tlb_entries: 4,
            receiver_ns: 117.5,
            line_ns: 200.0,
            atomic_ns: 200.0,
            notice_ns: 350.0,
            poll_ns: 350.0,
            receive_ns: 1000.0,
            mpi_send_ns: 2100.0,
            mpi_receive_ns: 2050.0,
            mpi_eager_bytes: 1024,
            system_call_ns: 13_000.0,
            interrupt_ns: 5000.0,
            masked_interrupts: Vec::new(),
            page_fault_ns: 50_000.0,
            word_copy_ns: 25.0,
            header_queue: 2048,
            user_registers: 2,
            outstanding_requests: 2,
            bit_error_rate: 0.0,
            flit_loss_rate: 0.0,
        }
    }
}

impl Member for Cenju4 {
    const NAME: &'static str = "cenju4";
    const SUMMARY: &'static str = "user-level network interface of the Cenju-4: parcels, protection by tables, multicast, synchronisation";
    const SOURCE: &'static str = "Kano et al., User-level Network Interface for a Parallel Computer Cenju-4, IPSJ Journal 41 (2000)";
    const EXAMPLE: &'static str = "header_flits = 12";
}

/// The machine: its nodes as the operating system has set them up, and their programs.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Times and sizes.
    pub constants: Cenju4,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The programs of each node, one for each of its tasks.
    pub programs: Vec<Vec<Program>>,
    /// Time counts from when the last program has reached its `Stamp` of this number; from the beginning if it is 0.
    pub warmup: usize,
}

impl Endpoint for Machine {
    fn model(&self) -> &'static str {
        Cenju4::NAME
    }

    /// The routers' queues, one for each input and output, wait for each other as one virtual channel of each channel would.
    fn class_channels(&self) -> Vec<[VirtualChannels; 2]> {
        vec![[VirtualChannels { begin: 0, end: 1 }; 2]]
    }
}

impl EndpointModel for Cenju4 {
    fn workload_schema(&self) -> Option<Schema> {
        Some(schema_for!(Workload))
    }

    fn serves_users(&self) -> Result<(), &'static str> {
        Err("its interfaces translate node numbers by tables of their own, and its users are the tasks of its nodes")
    }

    fn prepare(&self, context: &EndpointContext<'_>) -> Result<Prepared, EndpointError> {
        self.check(context)?;
        check_ways(context)?;
        let workload: Workload = context
            .workload
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| EndpointError::new("workload", "program", error.message()))?;
        Ok(Prepared::Machine(Arc::new(programs::machine(self, &workload, context)?)))
    }
}

/// The most bytes that a node sends in a message or receives: addresses of the segments are 2^28 bytes and more apart.
const MOST_BYTES: u64 = 1 << 26;

impl Cenju4 {
    /// Flits of the longest packet.
    pub fn longest_packet(&self) -> u32 {
        self.packet_flits(parcel::MAX_PACKET)
    }

    /// Flits of a packet with so many bytes of data: 3 flits hold 8 bytes and their check bits.
    pub fn packet_flits(&self, bytes: u32) -> u32 {
        (self.header_flits + framing::WORD_FLITS as u32 * bytes.div_ceil(8)).max(1)
    }

    fn check(&self, context: &EndpointContext<'_>) -> Result<(), EndpointError> {
        let wrong = |key: &str, problem: String| Err(EndpointError::new("endpoint", key, problem));
        for (key, ns) in self.times() {
            if !(0.0..=1e9).contains(&ns) {
                return wrong(key, format!("is {ns}; it must be 0 to 10^9 ns"));
            }
        }
        for (key, rate) in [("bit_error_rate", self.bit_error_rate), ("flit_loss_rate", self.flit_loss_rate)] {
            if !(0.0..1.0).contains(&rate) {
                return wrong(key, format!("is {rate}; it must be a part of all, 0 or more and less than 1"));
            }
        }
        if self.masked_interrupts.contains(&Cause::SenderEmpty) {
            return wrong(
                "masked_interrupts",
                "has \"sender-empty\"; that cannot be masked: nobody would give control registers to a task that waits for them".to_owned(),
            );
        }
        if self.masked_interrupts.contains(&Cause::PageFault) {
            return wrong(
                "masked_interrupts",
                "has \"page-fault\"; that cannot be masked: nobody would bring the page, and the transfer would never go on".to_owned(),
            );
        }
        if self.mpi_eager_bytes > MOST_BYTES {
            return wrong("mpi_eager_bytes", format!("is {}; it must be at most {MOST_BYTES}: no message is longer", self.mpi_eager_bytes));
        }
        let counts = [
            ("header_flits", self.header_flits, 0, 1000),
            ("send_queue_packets", self.send_queue_packets, 1, 1000),
            ("receive_queue_packets", self.receive_queue_packets, 1, 1000),
            ("header_registers", self.header_registers, 1, 64),
            ("tlb_entries", self.tlb_entries, 0, 4096),
            ("header_queue", self.header_queue, 128, 2048),
            ("user_registers", self.user_registers, 1, 16),
            ("outstanding_requests", self.outstanding_requests, 1, 64),
        ];
        if let Some((key, value, least, most)) = counts.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
            return wrong(key, format!("is {value}; it must be {least} to {most}"));
        }
        let terminals = context.network.terminal_count();
        if terminals > 1024 {
            return wrong("model", format!("is \"cenju4\", whose nodes have numbers of 10 bits; the network has {terminals} terminals"));
        }
        if terminals * self.outstanding_requests > 2048 {
            let most = 2048 / terminals;
            let problem =
                format!("is {}; the requests of {terminals} nodes must fit into 2048 headers: at most {most}", self.outstanding_requests);
            return wrong("outstanding_requests", problem);
        }
        let router = |key: &str, problem: String| Err(EndpointError::new("router", key, problem));
        if !context.routers.are_crosspoints {
            return router("architecture", "must be \"crosspoint\" with endpoint.model = \"cenju4\"".to_owned());
        }
        if context.routers.buffer_flits < self.longest_packet() {
            let problem = format!("is {}; a buffer holds whole packets, of {} flits", context.routers.buffer_flits, self.longest_packet());
            return router("buffer_flits", problem);
        }
        if context.units.cycle_ns.is_none() {
            return Err(EndpointError::new(
                "network",
                "cycle_ns",
                "is missing; the interface's times are in ns, so say how long a cycle is",
            ));
        }
        Ok(())
    }

    fn times(&self) -> [(&'static str, f64); 21] {
        [
            ("send_ns", self.send_ns),
            ("send_more_ns", self.send_more_ns),
            ("pointer_ns", self.pointer_ns),
            ("cache_ns", self.cache_ns),
            ("snoop_ns", self.snoop_ns),
            ("memory_ns", self.memory_ns),
            ("beat_ns", self.beat_ns),
            ("node_table_ns", self.node_table_ns),
            ("packet_ns", self.packet_ns),
            ("receiver_ns", self.receiver_ns),
            ("line_ns", self.line_ns),
            ("atomic_ns", self.atomic_ns),
            ("notice_ns", self.notice_ns),
            ("poll_ns", self.poll_ns),
            ("receive_ns", self.receive_ns),
            ("mpi_send_ns", self.mpi_send_ns),
            ("mpi_receive_ns", self.mpi_receive_ns),
            ("system_call_ns", self.system_call_ns),
            ("interrupt_ns", self.interrupt_ns),
            ("page_fault_ns", self.page_fault_ns),
            ("word_copy_ns", self.word_copy_ns),
        ]
    }
}

/// Refuses networks and routings on which multicasts are not safe.
fn check_ways(context: &EndpointContext<'_>) -> Result<(), EndpointError> {
    let tables = Tables::new(context.network, context.routing);
    tables.map(|_| ()).map_err(|refusal| EndpointError::new(refusal.section, refusal.key, refusal.problem))
}

/// Sets a task up as the operating system does: segments for data to send and to receive (bytes each, both from a page on), one for its
/// buffers and one for the library.
pub fn set_up(node: &mut Node, cid: u8, source_bytes: u64, target_bytes: u64, constants: &Cenju4) {
    let (log, messages) = (64 * PAGE, 64 * PAGE);
    let segments = [
        (script::SOURCE, source_bytes + PAGE),
        (script::TARGET, target_bytes + PAGE),
        (script::SYSTEM, script::RINGS - script::SYSTEM + log + 2 * messages),
        (script::BOUNCE, source_bytes.max(constants.mpi_eager_bytes) + PAGE),
    ];
    for (address, bytes) in segments {
        node.map(cid, address, bytes, true).expect("a task that is set up has no segments yet");
    }
    let buffers = &mut node.create_task(cid).buffers;
    let ring = |base, size| task::Ring { base, size, written: 0 };
    buffers.log = ring(script::RINGS, log);
    buffers.messages = [ring(script::RINGS + log, messages), ring(script::RINGS + log + messages, messages)];
    buffers.remote_reads = Some(script::ANSWERS);
    buffers.registers = [Some(script::TARGET); 3];
}
