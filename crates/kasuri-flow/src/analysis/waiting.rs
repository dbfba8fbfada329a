//! What waiting for channels adds to the latency of a lone packet.

use super::AnalysisError;
use super::channel_load::ChannelLoads;
use super::flow::{Congestion, Ends, Flow, for_each_flow, packets};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::walk::DELIVERED;

/// Pairs of input and output ports that are told apart; beyond, an output's packets count as spread evenly over the inputs.
const MAX_TURNS: usize = 1 << 22;

/// A channel that is idle for less than this part of its time is full: the rest is rounding.
const FULL: f64 = 1e-9;

/// Every channel as a queue with one server (M/G/1, the formula of Pollaczek and Khinchine).
///
/// A packet that meets a busy channel waits for the rest of its service and for those before it. Packets that come by the same
/// input have queued up before already and do not meet again, so the wait of a router's output is multiplied by the probability
/// that two of its packets come by different inputs. Buffers count as unbounded and routers as without other limits: near
/// saturation, where packets block each other over several routers, the true latency is greater.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// By channel: packets per cycle and flits per cycle, times its period, at an offered load of 1.
    channels: Vec<Channel>,
    /// Packets per cycle of all terminals at an offered load of 1.
    packets: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    /// Packets per cycle at load 1.
    packets: f64,
    /// Part of its time that it is busy at load 1.
    busy: f64,
    /// Packets per cycle times the square of their service times, at load 1.
    square: f64,
    /// Probability that two of its packets come by different inputs of its router.
    meeting: f64,
}

impl Waiting {
    /// Works out the queues of a scenario.
    pub(super) fn of(scenario: &Scenario, loads: &ChannelLoads) -> Result<Self, AnalysisError> {
        let network = &*scenario.network;
        let mut queues = Self { channels: vec![Channel { meeting: 1.0, ..Channel::default() }; loads.load.len()], packets: 0.0 };
        let mut turns = Turns::of(network);
        for kind in packets(scenario) {
            let mut between_routers = vec![0.0; loads.load.len()];
            let (demand, share) = for_each_flow(scenario, &kind, Congestion::Unknown, Ends::ByRoute, |flow| {
                let through = flow.through();
                let inflow = Inflow::of(network, flow, &through);
                for step in &flow.routes.steps {
                    let packets = kind.rate * through[step.from as usize] * step.probability;
                    if step.to != DELIVERED {
                        between_routers[step.channel.index()] += packets;
                    }
                    for &(port, share) in inflow.at(step.from) {
                        turns.add(step.channel, port, packets * share);
                    }
                }
            })?;
            if share == 0.0 {
                continue;
            }
            let mean_square = kind.sizes.mean_square();
            for (index, &packets) in between_routers.iter().enumerate() {
                queues.add(network, ChannelId(index as u32), packets / share, mean_square);
            }
            for terminal in (0..network.terminal_count()).map(TerminalId) {
                let (sent, received) = (kind.rate * demand.sent[terminal.index()], kind.rate * demand.received[terminal.index()]);
                queues.add(network, network.injection_channel(terminal), sent, mean_square);
                queues.add(network, network.ejection_channel(terminal), received, mean_square);
            }
            queues.packets += kind.rate * demand.total();
        }
        for (index, queue) in queues.channels.iter_mut().enumerate() {
            let channel = ChannelId(index as u32);
            queue.busy = loads.load[index] * f64::from(network.link(channel).period);
            queue.meeting = turns.meeting(network, channel);
        }
        Ok(queues)
    }

    fn add(&mut self, network: &Network, channel: ChannelId, packets: f64, mean_square: f64) {
        let period = f64::from(network.link(channel).period);
        let queue = &mut self.channels[channel.index()];
        queue.packets += packets;
        queue.square += packets * mean_square * period * period;
    }

    /// Cycles that a packet waits in all, on the average, at an offered load in flits per terminal and cycle. `None` where some
    /// channel is offered as much as it can carry.
    pub(super) fn cycles(&self, load: f64) -> Option<f64> {
        let mut sum = 0.0;
        for queue in self.channels.iter().filter(|queue| queue.packets > 0.0) {
            let idle = 1.0 - load * queue.busy;
            if idle < FULL {
                return None;
            }
            sum += queue.packets * queue.meeting * load * queue.square / (2.0 * idle);
        }
        Some(if self.packets > 0.0 { sum / self.packets } else { 0.0 })
    }
}

/// By which input ports, in which shares, the packets of a flow come to each place. A place stands for all inputs that the
/// routing does not tell apart.
struct Inflow {
    first: Vec<u32>,
    shares: Vec<(u16, f64)>,
}

impl Inflow {
    fn of(network: &Network, flow: &Flow<'_>, through: &[f64]) -> Self {
        let places = flow.routes.places.len();
        let arriving = || flow.routes.steps.iter().filter(|step| step.to != DELIVERED);
        let mut first = vec![0u32; places + 2];
        arriving().for_each(|step| first[step.to as usize + 2] += 1);
        let begins = |place: usize| flow.beginning[place] > 0.0;
        (0..places).filter(|&place| begins(place)).for_each(|place| first[place + 2] += 1);
        for place in 2..first.len() {
            first[place] += first[place - 1];
        }
        let mut shares = vec![(0, 0.0); first[places + 1] as usize];
        let mut put = |place: usize, entry: (u16, f64)| {
            shares[first[place + 1] as usize] = entry;
            first[place + 1] += 1;
        };
        for step in arriving() {
            if let Endpoint::Router(_, port) = network.destination(step.channel) {
                let to = step.to as usize;
                let packets = through[step.from as usize] * step.probability;
                put(to, (port, if through[to] > 0.0 { packets / through[to] } else { 0.0 }));
            }
        }
        for place in (0..places).filter(|&place| begins(place)) {
            // The terminals of a router count as one input.
            put(place, (flow.routes.places[place].hop.input, flow.beginning[place] / through[place]));
        }
        Self { first, shares }
    }

    fn at(&self, place: u32) -> &[(u16, f64)] {
        &self.shares[self.first[place as usize] as usize..self.first[place as usize + 1] as usize]
    }
}

/// Packets by output channel and input port of its router. All ejection channels of a router share one entry: routes to its
/// terminals are alike up to there.
struct Turns {
    /// First place of each channel's ports in `packets`; empty if inputs are not told apart.
    base: Vec<usize>,
    packets: Vec<f64>,
}

impl Turns {
    fn of(network: &Network) -> Self {
        let channels = || (0..network.channel_count()).map(ChannelId);
        let ports = |router: RouterId| network.port_count(router) as usize;
        let total: usize = channels().filter_map(|channel| Self::router(network, channel)).map(ports).sum();
        if total > MAX_TURNS {
            return Self { base: Vec::new(), packets: Vec::new() };
        }
        let mut ejection = vec![None; network.router_count() as usize];
        let mut next = 0;
        let mut take = |router: RouterId| {
            next += ports(router);
            next - ports(router)
        };
        let base = channels().map(|channel| match (Self::router(network, channel), network.destination(channel)) {
            (None, _) => 0,
            (Some(router), Endpoint::Router(..)) => take(router),
            (Some(router), Endpoint::Terminal(_)) => *ejection[router.index()].get_or_insert_with(|| take(router)),
        });
        let base = base.collect();
        Self { base, packets: vec![0.0; next] }
    }

    /// The router that sends on a channel.
    fn router(network: &Network, channel: ChannelId) -> Option<RouterId> {
        match network.source(channel) {
            Endpoint::Router(router, _) => Some(router),
            Endpoint::Terminal(_) => None,
        }
    }

    fn add(&mut self, channel: ChannelId, input: u16, packets: f64) {
        if let Some(base) = self.base.get(channel.index()) {
            self.packets[base + usize::from(input)] += packets;
        }
    }

    /// The probability that two packets of a channel come by different inputs; 1 for the queue of a source. Where inputs are not
    /// told apart, as if the packets were spread evenly over the other ports.
    fn meeting(&self, network: &Network, channel: ChannelId) -> f64 {
        let Some(router) = Self::router(network, channel) else { return 1.0 };
        let ports = network.port_count(router) as usize;
        let by_input = self.base.get(channel.index()).map_or(&[][..], |&base| &self.packets[base..base + ports]);
        let sum: f64 = by_input.iter().sum();
        if sum > 0.0 {
            1.0 - by_input.iter().map(|packets| (packets / sum).powi(2)).sum::<f64>()
        } else {
            1.0 - 1.0 / (ports.max(2) - 1) as f64
        }
    }
}
