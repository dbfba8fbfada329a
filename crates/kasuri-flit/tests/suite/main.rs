//! The tests of the flit engine from outside, as one program: it is linked once, and its tests fill all cores.

mod architectures;
mod common;
mod congestion;
mod full_layout;
mod intervals;
mod known_routes;
mod layouts;
mod local_workloads;
mod measuring;
mod memories;
mod one_flit;
mod prediction;
mod prediction_full;
mod prediction_properties;
mod shared_buffers;
mod sources;
mod tiles;
mod zero_load;
