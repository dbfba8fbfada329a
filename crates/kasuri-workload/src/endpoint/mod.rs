//! Endpoints: what stands between a processor and the network.
//!
//! Without `[endpoint]` a terminal is an ideal source with a queue. A model here is of one of two kinds ([`Prepared`]). A *machine* has
//! tables, memories, protection, and programs of its own that run on it, described by `[workload]`; here is its meaning without time,
//! and the engine that knows its timing runs it. *Interfaces* stand between any closed workload and the network, and say when a message
//! enters the network and when a program sees what has happened; engines need not know of them, for the
//! agenda of the workload does (`workload/agenda.rs`). Members import the contract (`contract.rs`), never this file.
//!
//! To add one: a file (or folder) here that implements [`EndpointModel`] and [`Member`](kasuri_network::registry::Member), its line in
//! [`ENDPOINTS`], and for a machine its timed side in the engine (`kasuri-flit/src/endpoint/`).

pub mod cenju4;
mod contract;
pub mod dsm;
pub mod rdma;
pub mod running;
pub mod tlb;

pub use contract::{
    Endpoint, EndpointContext, EndpointError, EndpointModel, EndpointSchedule, Interfaces, Prepared, Routers, RunningInterfaces, Space,
    UserMachine, UserSpace,
};

use kasuri_network::registry;

registry! {
    /// All endpoint models.
    pub ENDPOINTS: dyn EndpointModel = [
        cenju4::Cenju4,
        dsm::Dsm,
        rdma::Rdma,
    ]
}
