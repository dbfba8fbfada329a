//! Networks with failed components, and equal-cost paths, on all engines.

use crate::common::UntilDone;
use kasuri::input::KNOWN;
use kasuri::plan::{self, RunOptions, Summary};
use kasuri_config::{Document, Preparation};
use kasuri_flit::FlitEngine;
use kasuri_flow::FlowEngine;
use kasuri_model::engine::{Engine, Outcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;
use kasuri_network::network::Network;
use kasuri_network::topology::NoFiles;
use std::sync::Arc;

/// A ring of four without the link between 0 and 1: the row 1, 2, 3, 0.
const ROW: &str = r#"
    [network]
    topology = "torus"
    dimensions = [4]
    [faults]
    links = ["0 1"]
    [routing]
    algorithm = "minimal"
    [router]
    virtual_channels = 2
    buffer_flits = 8
    [traffic]
    pattern = "uniform"
    load = 0.3
    packet_flits = 3
    [measure]
    warmup = 500
    cycles = 4000
"#;

fn run(text: &str) -> Result<Summary, String> {
    let document = Document::parse_for(*KNOWN, "test.toml", text).map_err(|error| error.to_string())?;
    plan::run(&document, &NoFiles, &RunOptions { paranoid: true, ..RunOptions::default() }).map_err(|error| error.to_string())
}

/// Each of the two routers on one side of the middle link sends 2/3 of its packets to the other side: the link carries 4/3 of the load, and
/// 3/4 is the most it can take. In a row of four the mean distance is 10/6, in routers one more.
#[test]
fn a_row_that_is_left_of_a_ring_takes_three_quarters_of_the_load() {
    let summary = run(&format!("{ROW}\n[sweep]\nengine = [\"analysis\", \"flow\", \"flit\"]")).unwrap();
    let number = |row: usize, name: &str| summary.rows[row].number(name);
    let close = |found: Option<f64>, expected: f64, within: f64| {
        assert!(found.is_some_and(|found| (found / expected - 1.0).abs() < within), "{found:?}, not {expected}");
    };
    close(number(0, "static_throughput"), 0.75, 1e-9);
    close(number(0, "hops_mean"), 1.0 + 10.0 / 6.0, 1e-9);
    for row in [1, 2] {
        close(number(row, "accepted_throughput_mean"), 0.3, 0.05);
        close(number(row, "hops_mean"), 1.0 + 10.0 / 6.0, 0.03);
        close(number(row, "channel_utilisation_max"), 0.4, 0.08);
        // Three links of two channels: load x distance x terminals over their number, the dead one left out.
        close(number(row, "channel_utilisation_mean"), 0.3 * 10.0 / 6.0 * 4.0 / 6.0, 0.05);
    }
}

/// An engine's outcome for a closed workload, and the network.
fn outcome(engine: &dyn Engine, text: &str) -> (Outcome, Arc<Network>) {
    let document = Document::parse_for(*KNOWN, "test.toml", text).unwrap();
    let study = Preparation::new(&document, &NoFiles, *KNOWN).study(&document.points().unwrap()[0]).unwrap();
    let scenario = Scenario { paranoid: true, ..study.scenario };
    let outcome = engine.run(&scenario, &mut UntilDone).unwrap();
    (outcome, Arc::clone(&scenario.network))
}

fn fabric(routing: &str, faults: &str) -> String {
    format!(
        "[network]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 3\ndown = 4\ntrunk = 2\n[routing]\nalgorithm = \"ecmp\"\n{routing}\n\
         [faults]\n{faults}\n[workload]\ncollective = \"alltoall\"\nmessage_flits = 6\npacket_flits = 6\n"
    )
}

/// Flows are hashed alike by all engines: each channel carries the same flits, and those that are down carry none.
#[test]
fn hashed_flows_take_the_same_paths_in_flows_and_flits() {
    for routing in ["", "salt = \"none\"", "weights = \"capacity\"", "weights = \"capacity\"\nentries = 16"] {
        let text = fabric(routing, "routers = [6]\nlinks = [\"1 5 copy 0\"]");
        let [(flow, network), (flit, _)] = [&FlowEngine as &dyn Engine, &FlitEngine].map(|engine| outcome(engine, &text));
        assert_eq!(flow.channel_flits, flit.channel_flits, "{routing}");
        let on_dead = |outcome: &Outcome| -> u64 {
            let all = (0..network.channel_count()).map(ChannelId).filter(|&channel| network.is_down(channel));
            all.map(|channel| outcome.channel_flits[channel.index()]).sum()
        };
        assert_eq!((on_dead(&flow), network.damage().unwrap().channels().len()), (0, 18));
        // All that leaves a leaf goes up once and down once: 16 terminals with 12 messages of 6 flits each.
        let between: u64 = network.router_channels().map(|channel| flow.channel_flits[channel.index()]).sum();
        assert_eq!(between, 16 * 12 * 6 * 2, "{routing}");
    }
}

/// Sprayed packets: a spine that has lost one of its two links to a leaf gets a third of what goes there from the others by equal shares, and a
/// fifth by weights 1, 1, 1/2.
#[test]
fn sprayed_packets_follow_the_weights() {
    for (weights, expected) in [("equal", 1.0 / 3.0), ("capacity", 1.0 / 5.0)] {
        let routing = format!("policy = \"random\"\nweights = \"{weights}\"");
        // From each of the twelve terminals of the other leaves to each of leaf 1: many packets.
        let text = fabric(&routing, "links = [\"1 6 copy 1\"]").replace("message_flits = 6", "message_flits = 900");
        let (outcome, network) = outcome(&FlitEngine, &text);
        let into_leaf = |spine: u32| -> f64 {
            let ends = |channel: &ChannelId| {
                let name = network.channel_name(*channel);
                name.starts_with(&format!("router {spine} port ")) && name.contains("-> router 1 port ")
            };
            network.router_channels().filter(ends).map(|channel| outcome.channel_flits[channel.index()] as f64).sum()
        };
        let all = [4, 5, 6].map(into_leaf);
        let share = all[2] / all.iter().sum::<f64>();
        assert_eq!(all.iter().sum::<f64>(), 12.0 * 4.0 * 900.0);
        // 7200 packets: within four standard deviations.
        assert!((share - expected).abs() < 4.0 * (expected * (1.0 - expected) / 7200.0).sqrt(), "{weights}: {share}");
    }
}

/// A sweep over the number and the choice of failed links: each point has a separate network, and a cut network is an error before anything
/// runs.
#[test]
fn a_sweep_over_failures_has_a_network_for_each_point() {
    let sweep = |counts: &str| {
        ROW.replace("links = [\"0 1\"]", "").replace("dimensions = [4]", "dimensions = [4, 4]").replace("minimal", "up-down")
            + &format!("\n[analysis]\n[sweep]\nengine = [\"analysis\"]\n\"faults.link_count\" = {counts}\n\"faults.seed\" = [1, 2, 3]")
    };
    let summary = run(&sweep("[0, 3]")).unwrap();
    let values: Vec<f64> = summary.rows.iter().map(|row| row.number("hops_mean").unwrap()).collect();
    assert_eq!(values.len(), 6);
    // Nothing is down: the seed changes nothing. With three links less paths are longer.
    assert!(values[..3].iter().all(|value| *value == values[0]) && values[3..].iter().all(|value| *value > values[0]), "{values:?}");
    let error = run(&sweep("[32]")).unwrap_err();
    assert!(error.contains("faults: cut the network: 64 of 64 channels between routers are down"), "{error}");
}
