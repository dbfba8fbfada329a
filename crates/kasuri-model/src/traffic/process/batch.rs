//! A batch of packets per terminal.

use super::{InjectionProcess, Process};
use crate::registry::Member;
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Each terminal creates a packet a cycle until its batch is out, and sends as fast as the network takes them.
///
/// The run ends when the last packet has arrived; `completion_time` is its answer. `load` has no meaning here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Packets of each terminal.
    pub batch_packets: u64,
}

impl Member for Batch {
    const NAME: &'static str = "batch";
    const SUMMARY: &'static str = "a number of packets per terminal, as fast as the network takes them";
    const SOURCE: &'static str = "Dally and Towles (2004), section 24.3; BookSim 2, sim_type = batch";
    const EXAMPLE: &'static str = "batch_packets = 10";
}

impl InjectionProcess for Batch {
    fn compile(&self, _packet_rate: f64) -> Result<Box<dyn Process>, String> {
        if self.batch_packets == 0 {
            return Err("batch_packets is 0; give at least 1 packet per terminal".to_owned());
        }
        Ok(Box::new(Compiled { packets: self.batch_packets }))
    }

    fn packets_per_terminal(&self) -> Option<u64> {
        Some(self.batch_packets)
    }
}

#[derive(Debug)]
struct Compiled {
    packets: u64,
}

impl Process for Compiled {
    fn next(&self, index: u64, _previous: Option<u64>, _stream: &mut Stream) -> Option<u64> {
        (index < self.packets).then_some(index)
    }
}
