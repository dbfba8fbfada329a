//! Arbitrated flows against the flit engine on random networks, routings, routers and messages.

use crate::common::UntilDone;
use kasuri::input::KNOWN;
use kasuri_config::{Document, Preparation};
use kasuri_model::engine::{Outcome, Status};
use kasuri_network::topology::Files;
use std::collections::BTreeSet;

/// Numbers that are the same everywhere.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A drawn network and the messages that its terminals send.
struct Drawn {
    network: String,
    messages: String,
}

impl Files for Drawn {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Ok((if path == "network" { &self.network } else { &self.messages }).clone().into_bytes())
    }
}

/// A ring with as many chords as routers, a terminal at each router, as a network's file.
fn network(routers: u64, draws: &mut Draws) -> String {
    let mut text: String = (0..routers).map(|router| format!("terminal {router} router {router}\n")).collect();
    let mut links: BTreeSet<(u64, u64)> =
        (0..routers).map(|router| (router.min((router + 1) % routers), router.max((router + 1) % routers))).collect();
    for router in 0..routers {
        let other = draws.below(routers);
        if other != router {
            links.insert((router.min(other), router.max(other)));
        }
    }
    text.extend(links.iter().map(|(one, other)| format!("router {one} router {other}\n")));
    text
}

/// Each terminal sends messages of `flits` flits one after the other, to random destinations.
fn messages(terminals: u64, each: u64, flits: u64, draws: &mut Draws) -> String {
    let mut received = vec![Vec::new(); terminals as usize];
    let mut sent = vec![Vec::new(); terminals as usize];
    for (source, tag) in (0..terminals).flat_map(|source| (0..each).map(move |tag| (source, tag))) {
        let destination = (source + 1 + draws.below(terminals - 1)) % terminals;
        sent[source as usize].push((destination, tag));
        received[destination as usize].push((source, tag));
    }
    let mut text = format!("num_ranks {terminals}\n");
    for (rank, (sent, received)) in sent.iter().zip(&received).enumerate() {
        text += &format!("rank {rank} {{\n");
        for (number, (destination, tag)) in sent.iter().enumerate() {
            text += &format!("s{number}: send {flits}b to {destination} tag {tag}\n");
            if number > 0 {
                text += &format!("s{number} requires s{}\n", number - 1);
            }
        }
        for (number, (source, tag)) in received.iter().enumerate() {
            text += &format!("r{number}: recv {flits}b from {source} tag {tag}\n");
        }
        text += "}\n";
    }
    text
}

/// Terminals, network and routing: a drawn graph, or one of the usual networks.
fn topology(draws: &mut Draws) -> (u64, String, &'static str) {
    match draws.below(6) {
        0 => (20, "topology = \"file\"\npath = \"network\"".into(), "algorithm = \"up-down\""),
        1 => (25, "topology = \"mesh\"\ndimensions = [5, 5]".into(), "algorithm = \"dimension-order\""),
        2 => (32, "topology = \"mesh\"\ndimensions = [4, 4]\nconcentration = 2".into(), "algorithm = \"dimension-order\""),
        3 => (27, "topology = \"fat-tree\"\nup = 3\ndown = 3\nlevels = 3".into(), "algorithm = \"nca\""),
        4 => (24, "topology = \"full-mesh\"\nrouters = 8\nconcentration = 3".into(), "algorithm = \"minimal\""),
        _ => (16, "topology = \"butterfly\"\nradix = 2\nstages = 4".into(), "algorithm = \"destination-tag\""),
    }
}

fn run(engine: &str, text: &str, files: &Drawn) -> Outcome {
    let text = format!("{engine}\n{text}");
    let document = Document::parse_for(*KNOWN, "drawn.toml", &text).unwrap();
    let study =
        Preparation::new(&document, files, *KNOWN).study(&document.points().unwrap()[0]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = KNOWN.engine(&study.engine).unwrap().run(&study.scenario, &mut UntilDone).unwrap();
    assert_eq!(outcome.status, Status::Completed, "{text}");
    outcome
}

/// How far the end of all, and at the median the end of a terminal's last message, are from those of packets, of these.
fn errors(model: &Outcome, packets: &Outcome) -> [f64; 2] {
    let relative = |one: f64, other: f64| (one - other).abs() / other;
    let mut ends: Vec<f64> = model
        .completion_cycles
        .iter()
        .zip(&packets.completion_cycles)
        .filter(|(_, packets)| **packets > 0)
        .map(|(model, packets)| relative(*model as f64, *packets as f64))
        .collect();
    ends.sort_by(f64::total_cmp);
    [relative(model.completion_time.unwrap(), packets.completion_time.unwrap()), ends[ends.len() / 2]]
}

/// The mean error over random cases stays within the bounds accepted for the model: 6 % of the makespan and 10.5 % at the median, each at
/// most half of the error of equal shares.
#[test]
fn arbitrated_flows_end_when_packets_do_and_equal_shares_do_not() {
    const CASES: u64 = 40;
    let mut sums = [[0.0; 2]; 2];
    for case in 0..CASES {
        let mut draws = Draws(case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (terminals, network_keys, routing) = topology(&mut draws);
        let [virtual_channels, buffer, flits] = [&["1", "1", "2"][..], &["8", "16"], &["64", "256"]].map(|choices| draws.of(choices));
        let messages = messages(terminals, 6, flits.parse().unwrap(), &mut draws);
        let files = Drawn { network: network(terminals, &mut draws), messages };
        let text = format!(
            "[network]\n{network_keys}\nflit_bytes = 1\n[routing]\n{routing}\n[router]\nvirtual_channels = {virtual_channels}\n\
             buffer_flits = {buffer}\n[workload]\ntrace = \"messages.goal\"\npacket_flits = 16\n"
        );
        let packets = run("engine = \"flit\"", &text, &files);
        for (sum, sharing) in sums.iter_mut().zip(["arbitrated", "equal-share"]) {
            let found = errors(&run(&format!("engine = \"flow\"\nflow.sharing = \"{sharing}\""), &text, &files), &packets);
            sum.iter_mut().zip(found).for_each(|(sum, error)| *sum += error / CASES as f64);
        }
    }
    let [arbitrated, equal] = sums;
    assert!(arbitrated[0] <= 0.06 && arbitrated[1] <= 0.105, "{arbitrated:?}");
    assert!(arbitrated[0] <= equal[0] / 2.0 && arbitrated[1] <= equal[1] / 2.0, "{arbitrated:?} against {equal:?}");
}
