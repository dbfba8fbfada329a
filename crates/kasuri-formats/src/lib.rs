//! Every external file format: parsers from bytes to plain values, and writers to text.
//!
//! Each format is a module of its own. Some values are descriptions of `kasuri-network` and `kasuri-workload`: networks, because writers of
//! edge lists, GraphML, DOT and JSON take them; programs, traces and matrices, because readers return them.
//!
//! No module opens a file, and none knows the experiment file or which of its keys names a format: that is `kasuri-config`.

pub mod anynet;
pub mod astra;
pub mod booksim;
pub mod chakra;
pub mod details;
pub mod discovery;
pub mod dot;
pub mod edge_list;
pub mod error;
pub mod file_kind;
pub mod forwarding_csv;
pub mod forwarding_dump;
pub mod goal;
pub mod goal_binary;
pub mod graphml;
pub mod hostlist;
pub mod hosts;
pub mod ibnetdiscover;
pub mod ibnetdiscover_ports;
pub mod layers;
pub mod mesh_graph;
pub mod mpi;
pub mod msccl;
pub mod names;
pub mod nccl;
pub mod network_json;
pub mod ns3;
pub mod pairs;
mod protobuf_text;
pub mod rate;
pub mod recognise;
pub mod router_name;
pub mod service_levels;
pub mod sl2vl;
pub mod slurm_topology;
pub mod text;
pub mod tool_messages;
pub mod trace;
pub mod traffic;
pub mod uec;
pub mod words;
mod xml;
mod yaml;

pub use error::FormatError;
