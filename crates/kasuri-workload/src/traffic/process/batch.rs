//! A batch of packets per terminal.

use super::contract::{InjectionProcess, Process, Window};
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Each terminal creates a packet a cycle until its batch is out, and sends as fast as the network takes them, or as its window lets it.
///
/// The run ends when the last packet has arrived; `completion_time` is its answer. `load` has no meaning here. Classes that share their
/// coins have one batch together, of equal parts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Packets of each terminal.
    pub batch_packets: u64,
    /// Packets of a terminal that may be outstanding at a time. A packet is outstanding until it has arrived or, if packets are answered,
    /// until its answer has arrived; the next packet is created in the following cycle. By default there is no limit.
    #[serde(default)]
    pub outstanding_packets: Option<u32>,
    /// Do the answers that a terminal sends count among the packets of its batch, as in BookSim 2? A terminal answers all packets that
    /// arrive. The run does not wait for packets that no terminal has begun to send when all others have arrived.
    #[serde(default)]
    pub counts_answers: bool,
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
        if self.outstanding_packets == Some(0) {
            return Err("outstanding_packets is 0; give at least 1, or leave it out for no limit".to_owned());
        }
        Ok(Box::new(Compiled { packets: self.batch_packets }))
    }

    fn packets_per_terminal(&self) -> Option<u64> {
        Some(self.batch_packets)
    }

    fn window(&self) -> Window {
        Window { outstanding: self.outstanding_packets, counts_answers: self.counts_answers }
    }
}

#[derive(Debug)]
struct Compiled {
    packets: u64,
}

impl Process for Compiled {
    fn next(&self, index: u64, previous: Option<u64>, _stream: &mut Stream) -> Option<u64> {
        (index < self.packets).then(|| previous.map_or(0, |previous| previous + 1))
    }
}
