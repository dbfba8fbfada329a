//! The load of each channel, and the throughput that the most loaded one allows.

use super::AnalysisError;
use super::flow::{Congestion, Ends, for_each_flow, packets};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::routing::walk::DELIVERED;

/// Expected channel loads (Dally and Towles, section 3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelLoads {
    /// Flits per cycle on each channel when the classes together offer one flit per terminal and cycle, shape `[channels]`.
    pub load: Vec<f64>,
    /// Flits per cycle at that load that all terminals together send to themselves.
    pub to_self: f64,
    /// The part of the traffic that was looked at; 1 is all. Large networks are sampled, and the loads scaled up: their sum is
    /// an estimate, single loads are not.
    pub share: f64,
}

impl ChannelLoads {
    /// The channel whose load times period is greatest, and this product: the part of its time that it is busy at load 1.
    /// `None` without traffic, and where only a sample was looked at.
    pub fn bottleneck(&self, network: &Network) -> Option<(ChannelId, f64)> {
        if self.share < 1.0 - 1e-6 {
            return None;
        }
        let busy = |channel: ChannelId| self.load[channel.index()] * f64::from(network.link(channel).period);
        let channels = (0..self.load.len() as u32).map(|channel| (ChannelId(channel), busy(ChannelId(channel))));
        // Of equal ones the first.
        channels.reduce(|best, next| if next.1 > best.1 { next } else { best }).filter(|(_, busy)| *busy > 0.0)
    }

    /// The offered load, in flits per terminal and cycle, at which the bottleneck is always busy: no router and no flow control
    /// can accept more of this traffic with this routing.
    pub fn ideal_throughput(&self, network: &Network) -> Option<f64> {
        self.bottleneck(network).map(|(_, busy)| 1.0 / busy)
    }
}

/// The load that a scenario's traffic and routing put on each channel.
///
/// # Errors
/// A packet that does not arrive, or routes that lead back.
pub fn channel_loads(scenario: &Scenario) -> Result<ChannelLoads, AnalysisError> {
    let network = &scenario.network;
    let mut loads = ChannelLoads { load: vec![0.0; network.channel_count() as usize], to_self: 0.0, share: 1.0 };
    for kind in packets(scenario) {
        let mut between_routers = vec![0.0; loads.load.len()];
        let (demand, share) = for_each_flow(scenario, &kind, Congestion::Unknown, Ends::ByRoute, |flow| {
            let through = flow.through();
            for step in flow.routes.steps.iter().filter(|step| step.to != DELIVERED) {
                between_routers[step.channel.index()] += through[step.from as usize] * step.probability;
            }
        })?;
        if share == 0.0 {
            continue;
        }
        let flits = kind.rate * kind.sizes.mean();
        for (load, packets) in loads.load.iter_mut().zip(&between_routers) {
            *load += flits * packets / share;
        }
        loads.to_self += flits * demand.to_self;
        // Routes to terminals on one router share all but their last channel: these are added from the pattern itself.
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            loads.load[network.injection_channel(terminal).index()] += flits * demand.sent[terminal.index()];
            loads.load[network.ejection_channel(terminal).index()] += flits * demand.received[terminal.index()];
        }
        loads.share = loads.share.min(share * demand.share);
    }
    Ok(loads)
}
