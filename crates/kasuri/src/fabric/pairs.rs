//! The routes of some pairs of terminals by forwarding tables.

use super::audit::{Loads, MAX_SHOWN_PAIRS, Unreachable, assumed_lanes, busiest, lane_name};
use kasuri_config::fabric::Fabric;
use kasuri_network::deadlock::{EscapePath, Verdict, check_within};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Endpoint;
use kasuri_network::network::tables::{ForwardingTables, Stray};
use kasuri_network::routing::forwarding::{AddressChoice, TableRouting};
use kasuri_network::routing::{Routing, VirtualChannels};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Routes of pairs, each to the first address of its destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairRoutes {
    /// Pairs; repeated ones count each time.
    pub routes: u64,
    /// Pairs with packets that do not arrive.
    pub unreachable: u64,
    /// Forwarding loops among these: packets loop between switches.
    pub going_round: u64,
    /// The first of them, with the reason.
    pub unreachable_first: Vec<Unreachable>,
    /// The number of routes by their number of cables between switches.
    pub hops: BTreeMap<u32, u64>,
    /// True if delivered ones of these packets can wait for each other in a cycle.
    pub credit_loops: bool,
    /// The cycle, a cable and its virtual lane each.
    pub cycle: Vec<String>,
    /// Virtual lanes that tables use.
    pub virtual_lanes: u32,
    /// The virtual lanes that the verdict assumes, where the dumps do not give them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_lanes: Option<String>,
    /// Routes over each cable, if every pair sends equally.
    pub loads: Loads,
}

/// Follows the route of each pair. The deadlock check sees the entries of the tables that these packets use, and no others.
pub(super) fn routes_of(fabric: &Fabric, tables: &ForwardingTables, pairs: &[(TerminalId, TerminalId)], top: usize) -> PairRoutes {
    let network = &fabric.network;
    let (mut hops, mut lost, mut unreachable, mut going_round) = (BTreeMap::new(), Vec::new(), 0, 0);
    let mut load = vec![0.0; network.channel_count() as usize];
    let (mut used, mut path) = (BTreeSet::new(), Vec::new());
    for &(from, to) in pairs {
        let addresses = tables.addresses(to);
        let result = match addresses.is_empty() {
            true => Err("it has no address".to_owned()),
            false => tables.follow(network, network.injection_port(from).0, to, addresses.start, &mut path).map_err(|stray| {
                going_round += u64::from(matches!(stray, Stray::Round(_)));
                stray.describe(network)
            }),
        };
        if let Err(problem) = result {
            unreachable += 1;
            if lost.len() < MAX_SHOWN_PAIRS {
                let [from, to] = [from, to].map(|terminal| network.terminal_names().of(terminal.0));
                lost.push(Unreachable { from, to, problem });
            }
            continue;
        }
        *hops.entry(path.len() as u32 - 1).or_default() += 1;
        for &channel in &path {
            load[channel.index()] += 1.0;
            if let Endpoint::Router(router, _) = network.source(channel) {
                used.insert((router, addresses.start));
            }
        }
    }
    let routing = TableRouting::new(network, Arc::new(tables.only(&used)), AddressChoice::First);
    let lanes = routing.facts().virtual_channels_required;
    let report = check_within(network, &routing, &[VirtualChannels { begin: 0, end: lanes as u16 }], EscapePath::Open, u64::MAX);
    let cycle = match &report.verdict {
        Verdict::Acyclic => Vec::new(),
        Verdict::Cycle(cycle) => cycle.iter().map(|&(channel, lane)| lane_name(fabric, channel, lane, lanes)).collect(),
    };
    let between: Vec<f64> = network.router_channels().map(|channel| load[channel.index()]).collect();
    let mean = between.iter().sum::<f64>() / between.len().max(1) as f64;
    let max = between.into_iter().fold(0.0, f64::max);
    PairRoutes {
        routes: pairs.len() as u64,
        unreachable,
        going_round,
        unreachable_first: lost,
        hops,
        credit_loops: !cycle.is_empty(),
        cycle,
        virtual_lanes: lanes,
        assumed_lanes: assumed_lanes(fabric, tables),
        loads: Loads { max, mean, cables: busiest(fabric, &load, top) },
    }
}
