//! What the tests of schedules and workloads share.

// Each test binary uses its own part of this.
#![allow(dead_code)]
#![allow(unused_imports)]

pub(crate) mod closed;
#[path = "../../../../kasuri-network/tests/suite/common/mod.rs"]
mod network_common;

pub(crate) use network_common::{network, routing};
