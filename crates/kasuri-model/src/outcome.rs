//! Builds an [`Outcome`]: it begins empty, and an engine adds its answers.

use crate::engine::{Distribution, Outcome, Status};
use kasuri_network::network::Network;

impl Outcome {
    /// The outcome of a run with this status and no other data: all vectors are empty.
    pub fn new(status: Status) -> Self {
        Self {
            status,
            cycles: 0,
            warmup_cycles: 0,
            measured_cycles: 0,
            packet_latency: Distribution::default(),
            network_latency: Distribution::default(),
            flit_latency: Distribution::default(),
            hops: Distribution::default(),
            injected_flits: Vec::new(),
            accepted_flits: Vec::new(),
            self_flits: None,
            channel_flits: Vec::new(),
            router_occupancy: Vec::new(),
            completion_cycles: Vec::new(),
            completion_time: None,
            finished: Vec::new(),
            deadlock: Vec::new(),
            standstill: Vec::new(),
            flit_hops: 0,
            prediction: None,
            link_errors: None,
            queues: None,
            operating_systems: None,
            not_modelled: Vec::new(),
            users: Vec::new(),
            background: None,
            formulas: None,
            timeline: Vec::new(),
            interfaces: None,
            losses: None,
        }
    }

    /// The outcome of a run without packets and measurements: all counts are zero.
    pub fn empty(status: Status, network: &Network) -> Self {
        let occupancy = vec![0.0; network.router_count() as usize];
        let accepted = vec![0; network.terminal_count() as usize];
        Self { router_occupancy: occupancy, ..Self::new(status).with_flits(vec![0; network.channel_count() as usize], accepted) }
    }

    /// Sets the length of the run, all of it measured.
    pub fn after(self, cycles: u64) -> Self {
        self.measured_for(cycles, 0, cycles)
    }

    /// Sets the lengths of the run, its warm-up and its measured part.
    pub fn measured_for(self, cycles: u64, warmup_cycles: u64, measured_cycles: u64) -> Self {
        Self { cycles, warmup_cycles, measured_cycles, ..self }
    }

    /// Latencies of packets, in all and in the network, and the routers that they crossed.
    pub fn with_packets(self, [packet_latency, network_latency, hops]: [Distribution; 3]) -> Self {
        Self { packet_latency, network_latency, hops, ..self }
    }

    /// Sets the flits by channel, and those that each terminal accepted. A terminal injects the flits of its injection channel, which has
    /// the same number.
    pub fn with_flits(self, channel_flits: Vec<u64>, accepted_flits: Vec<u64>) -> Self {
        Self { injected_flits: channel_flits[..accepted_flits.len()].to_vec(), accepted_flits, channel_flits, ..self }
    }

    /// Sets the completion of a closed workload, and the last arrival at each terminal; `None` if it was not delivered.
    pub fn completed(self, end: Option<(f64, Vec<u64>)>) -> Self {
        let (completion_time, completion_cycles) = end.map_or((None, Vec::new()), |(time, cycles)| (Some(time), cycles));
        Self { completion_time, completion_cycles, ..self }
    }

    /// Sets the keys that the engine ignores: always, and for this scenario.
    pub fn with_ignored_keys(self, always: &[&str], besides: impl IntoIterator<Item = String>) -> Self {
        Self { not_modelled: always.iter().map(|&key| key.to_owned()).chain(besides).collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two terminals and a channel between routers: the first two channels carry the injected flits.
    #[test]
    fn additions_keep_earlier_values() {
        let outcome = Outcome::new(Status::Completed).after(9).with_flits(vec![3, 1, 4], vec![2, 2]).completed(Some((8.5, vec![7, 9])));
        assert_eq!((outcome.cycles, outcome.warmup_cycles, outcome.measured_cycles), (9, 0, 9));
        assert_eq!((outcome.injected_flits, outcome.accepted_flits), (vec![3, 1], vec![2, 2]));
        assert_eq!((outcome.completion_time, outcome.completion_cycles), (Some(8.5), vec![7, 9]));
        let unfinished = Outcome::new(Status::MaxCycles).completed(None).with_ignored_keys(&["a.b"], ["c.d".to_owned()]);
        assert_eq!((unfinished.completion_time, unfinished.completion_cycles.len()), (None, 0));
        assert_eq!(unfinished.not_modelled, ["a.b", "c.d"]);
    }
}
