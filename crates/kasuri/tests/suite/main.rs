//! The tests of the command and its parts from outside, as one program: it is linked once, and its tests fill all cores.

mod all_to_all_formulas;
mod alltoallv;
mod arbitrated_networks;
mod astra;
mod bad_input;
mod booksim;
#[path = "common/chakra.rs"]
mod chakra;
mod cluster;
mod cluster_formulas;
#[path = "common/collectives.rs"]
mod collectives;
mod command_line;
mod common;
mod convergence;
mod deadlock;
mod dsm_translated;
mod dsm_users;
mod efficiency;
mod extremes;
mod fabrics;
mod faults;
mod fidelity;
mod flit_background;
#[path = "../../../kasuri-flit/tests/suite/common/mod.rs"]
mod flit_common;
mod flit_dsm;
mod flit_failures;
mod flit_hosts;
mod flit_moving_tables;
mod flit_multicast_networks;
mod flit_one_user;
mod flit_progress;
mod flit_users;
mod floors;
mod flow_background;
mod flow_batches;
mod flow_dsm;
mod flow_hosts;
mod flow_parts;
mod flow_predictions;
mod flow_rounds;
mod flow_users;
mod flow_windows;
mod gate;
#[path = "common/hosts.rs"]
mod hosts;
mod latencies;
mod lone_messages;
mod lone_packets;
mod matrix;
mod other_fabrics;
mod output_queued;
mod own_engine;
mod predictions;
mod programs;
mod rdma;
mod real_fabrics;
mod runs;
mod schedules;
#[path = "common/shared_memory.rs"]
mod shared_memory;
mod slowdown;
mod stopping;
mod sweeps;
mod terminal_ports;
mod uec;
mod workloads;
