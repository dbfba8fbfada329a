//! All-to-alls in which each pair of ranks has one message, counted by routers in place of terminals.
//!
//! Terminals of a router with equal channels are one source and one destination, so the cost is that of the routes to each router.

use super::AnalysisError;
use super::flow::{Flow, for_each_exchange};
use super::tails::Tails;
use super::totals::Totals;
use crate::lone::{self, Sizes};
use crate::paths::Paths;
use kasuri_model::engine::{Controller, EngineError, whole_cycles};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::{NONE, Network};
use kasuri_network::routing::walk::DELIVERED;
use kasuri_workload::workload::Collective;
use std::ops::ControlFlow;

/// Is the scenario's workload an all-to-all that is counted by the routes to each router, in place of message by message?
pub fn is_counted_by_routers(scenario: &Scenario) -> bool {
    scenario.workload.as_ref().is_some_and(|closed| exchange_of(scenario, closed).is_some())
}

/// The workload as an all-to-all of one message a pair, if it is one and its routes do not depend on the source terminal.
pub(super) fn exchange_of<'a>(scenario: &Scenario, closed: &'a ClosedWorkload) -> Option<Collective<'a>> {
    let collective = closed.workload.collective().filter(|_| closed.parts.len() == 1 && !scenario.routing.facts().reads.source)?;
    collective.is_one_message_a_pair(closed.workload.messages()).then_some(collective)
}

/// The sums over all messages, means where routes are random; `None` if the run is to end.
pub(super) fn exchange(
    scenario: &Scenario,
    closed: &ClosedWorkload,
    collective: &Collective<'_>,
    controller: &mut dyn Controller,
) -> Result<Option<Totals>, EngineError> {
    let network = &*scenario.network;
    let flits = collective.message_flits;
    let paths = Paths::new(scenario);
    let (terminal_of, channel_of) = samples_of_links(network);
    let sizes = Sizes { flits, packet: closed.parts[0].packet_flits };
    let latency = |links: &[u32]| {
        let others: Vec<u32> = links[1..].iter().map(|&link| channel_of[link as usize]).collect();
        paths.lone_latency(network, terminal_of[links[0] as usize], &others, sizes)
    };
    let mut latencies = Tails::costs(scenario, latency);
    let mut messages_of = vec![0.0; network.channel_count() as usize];
    let (mut sums, mut is_stopped) = (Sums { is_whole: true, ..Sums::default() }, false);
    let visit = |flow: &Flow<'_>| {
        sums.add(flow, &mut latencies, &mut messages_of);
        is_stopped = controller.should_stop();
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    for_each_exchange(scenario, closed.parts[0].virtual_channels, collective.terminals, visit).map_err(refuse)?;
    if is_stopped {
        return Ok(None);
    }
    let others = collective.terminals.len() as f64 - 1.0;
    for &terminal in collective.terminals {
        messages_of[network.injection_channel(terminal).index()] = others;
        messages_of[network.ejection_channel(terminal).index()] = others;
    }
    let flits_of_messages = f64::from(flits) * f64::from(collective.times);
    let times = f64::from(collective.times);
    let mut approximations = lone::approximations(scenario, paths.has_drawn());
    if sums.draws {
        approximations.push("routing.algorithm (loads are means over what it draws)".to_owned());
    }
    if !sums.is_whole || !latencies.is_exact() {
        approximations.push("approximate: a sample of the routes stands for all".to_owned());
    }
    let whole = |cycles: f64| whole_cycles(cycles) as u64;
    let busy = |(channel, messages): (usize, &f64)| {
        whole(messages * flits_of_messages * f64::from(network.link(ChannelId(channel as u32)).period))
    };
    Ok(Some(Totals {
        bound: messages_of.iter().enumerate().map(busy).max(),
        channel_flits: messages_of.iter().map(|messages| whole(messages * flits_of_messages)).collect(),
        to_self: 0,
        messages: closed.workload.messages(),
        hops: sums.hops * times,
        latency: sums.latency * times,
        flit_hops: (sums.hops * flits_of_messages).round() as u64,
        approximations,
    }))
}

fn refuse(error: AnalysisError) -> EngineError {
    let AnalysisError::Lost { from, to, problem } = error else { return super::refuse(error).into() };
    let reason = format!("a message from terminal {from} to terminal {to} does not arrive: {problem}");
    Refusal::new("routing.algorithm", reason).into()
}

/// Sums over messages, each sent once.
#[derive(Default)]
struct Sums {
    hops: f64,
    latency: f64,
    /// Is any route random?
    draws: bool,
    /// Have all routes been walked?
    is_whole: bool,
}

impl Sums {
    fn add(&mut self, flow: &Flow<'_>, latencies: &mut Tails<'_>, messages_of: &mut [f64]) {
        let (through, routes) = (flow.through(), flow.routes);
        // If only a part of the routes was walked, its sums are scaled up.
        let whole = 1.0 / routes.share;
        for step in &routes.steps {
            let messages = through[step.from as usize] * step.probability * whole;
            self.hops += messages;
            self.draws |= step.probability < 1.0;
            if step.to != DELIVERED {
                messages_of[step.channel.index()] += messages;
            }
        }
        self.draws |= routes.starts.iter().any(|start| start.probability < 1.0);
        self.is_whole &= routes.share == 1.0 && routes.branch_share == 1.0;
        self.latency += latencies.of(flow, &through) * whole;
    }
}

/// By link, a channel of it and, if there is one, a terminal that injects over it.
fn samples_of_links(network: &Network) -> (Vec<TerminalId>, Vec<u32>) {
    let (mut terminal_of, mut channel_of) = (vec![TerminalId(0); network.links().len()], vec![NONE; network.links().len()]);
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        terminal_of[network.link_number(network.injection_channel(terminal)) as usize] = terminal;
    }
    (0..network.channel_count()).for_each(|channel| channel_of[network.link_number(ChannelId(channel)) as usize] = channel);
    (terminal_of, channel_of)
}
