//! Closed workloads: what their messages put on each channel, and how soon they can be done.

use super::NOT_MODELLED;
use super::exchange::{exchange, exchange_of};
use super::totals::Totals;
use crate::lone::{self, Sizes};
use crate::paths::{Paths, Request, Walk};
use kasuri_model::engine::{Controller, EngineError, Formulas, Interval, Outcome, Status, least_cycles};
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::metrics::Bisection;
use kasuri_workload::workload::Message;

/// Messages that are routed in step.
const BATCH: usize = 32;

/// Sums over the messages of a workload, one by one.
#[derive(Debug)]
struct Sums {
    paths: Paths,
    /// Messages of each terminal so far.
    serials: Vec<u32>,
    totals: Totals,
}

/// A bound for a closed workload: each channel has to carry its flits, whatever the order. Waiting for each other is left out.
pub(super) fn closed_workload(
    scenario: &Scenario,
    closed: &ClosedWorkload,
    controller: &mut dyn Controller,
) -> Result<Outcome, EngineError> {
    let totals = match exchange_of(scenario, closed) {
        Some(collective) => exchange(scenario, closed, &collective, controller)?,
        None => one_by_one(scenario, closed, controller)?,
    };
    if let Some(totals) = totals {
        return Ok(outcome(scenario, totals));
    }
    controller.interval_ended(&Interval::default());
    Ok(Outcome::new(Status::MaxCycles))
}

/// Routes message by message; `None` if the run is to end.
fn one_by_one(scenario: &Scenario, closed: &ClosedWorkload, controller: &mut dyn Controller) -> Result<Option<Totals>, EngineError> {
    let network = &*scenario.network;
    let totals = Totals { channel_flits: vec![0; network.channel_count() as usize], ..Totals::default() };
    let mut sums = Sums { paths: Paths::new(scenario), serials: vec![0; network.terminal_count() as usize], totals };
    let (mut batch, mut result, mut is_stopped) = (Vec::with_capacity(BATCH), Ok(()), false);
    closed.workload.each_message(&mut |message| {
        if is_stopped {
            return;
        }
        batch.push(*message);
        if batch.len() == BATCH {
            result = sums.add(scenario, closed, &batch);
            is_stopped = result.is_err() || controller.should_stop();
            batch.clear();
        }
    });
    result?;
    if is_stopped {
        return Ok(None);
    }
    sums.add(scenario, closed, &batch)?;
    Ok(Some(Totals { approximations: lone::approximations(scenario, sums.paths.has_drawn()), ..sums.totals }))
}

impl Sums {
    fn add(&mut self, scenario: &Scenario, closed: &ClosedWorkload, batch: &[Message]) -> Result<(), EngineError> {
        let mut walks = Vec::with_capacity(batch.len());
        for &Message { source, destination, token, .. } in batch {
            let available = closed.parts[closed.part_of(token)].virtual_channels;
            let serial = self.serials[source.index()];
            self.serials[source.index()] += 1;
            walks.push(Walk::new(Request { source, destination, serial, available }, Vec::new()));
        }
        self.paths.find(scenario, &mut walks, &|_| 0)?;
        for (walk, message) in walks.iter().zip(batch) {
            let hops = walk.channels.len() as u64 - 1;
            let totals = &mut self.totals;
            walk.channels.iter().for_each(|&channel| totals.channel_flits[channel as usize] += u64::from(message.flits));
            totals.to_self += if message.source == message.destination { u64::from(message.flits) } else { 0 };
            totals.messages += 1;
            totals.hops += hops as f64;
            totals.flit_hops += hops * u64::from(message.flits);
            let packet = closed.parts[closed.part_of(message.token)].packet_flits;
            let sizes = Sizes { flits: message.flits, packet };
            totals.latency += self.paths.lone_latency(&scenario.network, message.source, &walk.channels[1..], sizes);
        }
        Ok(())
    }
}

fn outcome(scenario: &Scenario, sums: Totals) -> Outcome {
    let network = &*scenario.network;
    let busy = |channel: ChannelId| sums.channel_flits[channel.index()] * u64::from(network.link(channel).period);
    let busiest = || (0..network.channel_count()).map(|channel| busy(ChannelId(channel))).max().unwrap_or(0);
    let busiest = sums.bound.unwrap_or_else(busiest);
    let terminals = || (0..network.terminal_count()).map(TerminalId);
    let of = |channel: ChannelId| sums.channel_flits[channel.index()];
    let messages = sums.messages.max(1) as f64;
    Outcome {
        measured_cycles: busiest,
        accepted_flits: terminals().map(|terminal| of(network.ejection_channel(terminal))).collect(),
        injected_flits: terminals().map(|terminal| of(network.injection_channel(terminal))).collect(),
        self_flits: Some(sums.to_self),
        flit_hops: sums.flit_hops,
        formulas: Some(Formulas {
            zero_load_latency: sums.latency / messages,
            packet_latency: None,
            hops: sums.hops / messages,
            static_throughput: None,
            ideal_throughput: None,
            saturation_load: None,
            bisection_bandwidth: Bisection::of(network).map(|cut| cut.bandwidth),
        }),
        channel_flits: sums.channel_flits,
        ..Outcome::new(Status::Completed)
            .completed(Some((least_cycles(network, busiest as f64), Vec::new())))
            .with_ignored_keys(NOT_MODELLED, std::iter::once("workload.synchronisation".to_owned()).chain(sums.approximations))
    }
}
