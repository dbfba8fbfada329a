//! Execution traces of AI clusters: what each accelerator (NPU) does, and the cluster and its collectives as ASTRA-sim describes them.
//!
//! [`trace`] is the graph of one NPU as a Chakra trace holds it, [`layers`] a training step as a table of layers, [`cluster`] the network in dimensions and the settings by which
//! collectives become messages. Nothing here has a time of its own: `kasuri_flow::astra` runs it by ASTRA-sim's rules, and
//! `kasuri_flow::analysis::programs` answers in formulas. Sources: Sridharan et al., Chakra: Advancing Performance Benchmarking and Co-design
//! using Standardized Execution Traces (2023); Won et al., ASTRA-sim2.0, ISPASS 2023.

pub mod alike;
pub mod cluster;
pub mod layers;
pub mod npus;
pub mod trace;
pub mod workload;
