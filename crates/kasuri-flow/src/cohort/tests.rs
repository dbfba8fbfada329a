//! Messages that begin together and are only counted fare as those that all are in the graph.

use super::*;
use crate::graph::Bandwidth;
use crate::sharing::{self, Sharing};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::{Purpose, Stream, Streams};

/// Terminals of the random networks. Their injection channels come first, their ejection channels next.
const TERMINALS: u32 = 16;

/// Flows of which some have begun together and some have not, as the event loop has them.
struct Flows {
    cohort: Cohort,
    graph: Graph,
    sharing: Box<dyn Sharing>,
    live: u64,
}

impl Flows {
    /// Over channels from `first` on with these bandwidths.
    fn new(name: &str, bandwidth: &[f64], first: u32, counts: bool) -> Self {
        let (channels, sharing) = (bandwidth.len() as u32, sharing::by_levels(name).unwrap());
        let of_graph = Bandwidth::Each(bandwidth[first as usize..].into());
        let cohort = Cohort::new(if counts { bandwidth.len() } else { 0 }, sharing.by_count());
        let graph = Graph::new(of_graph, first..channels, TERMINALS, TERMINALS as usize);
        Self { cohort, graph, sharing, live: 0 }
    }

    fn begin(&mut self, flow: u32, drawn: &SourceMessage, others: &[u32], now: f64) {
        if self.cohort.admits(self.live) {
            let mut member = Member::new(flow, 0, drawn);
            self.cohort.enter(&mut member, others);
            self.cohort.begin(member);
        } else {
            self.dissolve(now);
            self.graph.begin(flow, flow, others, drawn.destination.0, f64::from(drawn.flits), now);
        }
        self.live += 1;
    }

    fn dissolve(&mut self, now: f64) {
        let graph = &mut self.graph;
        let since = self.cohort.dissolve(&[], now, |member, others, begun| {
            graph.begin(member.flow, member.flow, others, member.destination, f64::from(member.flits), begun);
        });
        if let Some(begun) = since {
            self.sharing.share(&mut self.graph, begun);
        }
    }

    /// Did counts tell the rates?
    fn share(&mut self, now: f64) -> bool {
        let are_counted = self.cohort.share(&self.graph, &[], now);
        if !are_counted {
            self.dissolve(now);
            self.sharing.share(&mut self.graph, now);
        }
        are_counted
    }

    fn next_end(&mut self) -> Option<f64> {
        self.cohort.first_end().or_else(|| self.graph.next_end())
    }

    /// Ends the flows that end now, which have so many flits.
    fn end(&mut self, now: f64, flits: impl Fn(u32) -> f64) -> Vec<u32> {
        let mut ending = Vec::new();
        if self.cohort.end_by(now) {
            ending.extend(self.cohort.end().iter().map(|member| member.flow));
            self.cohort.go_on(Vec::new());
        } else {
            self.dissolve(now);
            self.graph.take_ending(now, &mut ending);
            ending.iter().for_each(|&flow| self.graph.end(flow, flits(flow)));
        }
        self.live -= ending.len() as u64;
        self.graph.forget_ended();
        ending
    }

    /// What the channels between routers and those of ejection have carried.
    fn carried(&mut self, now: f64, channels: u32) -> Vec<f64> {
        self.dissolve(now);
        let graph = &mut self.graph;
        self.cohort.take_carried(true, |channel, flits| graph.add_carried(channel, flits));
        (TERMINALS..channels).map(|channel| graph.carried(channel)).collect()
    }
}

fn random_path(stream: &mut Stream, channels: u32, destination: u32) -> Vec<u32> {
    let mut path: Vec<u32> = Vec::new();
    for _ in 0..stream.below(7) {
        let channel = 2 * TERMINALS + stream.below(channels);
        if !path.contains(&channel) {
            path.push(channel);
        }
    }
    path.push(TERMINALS + destination);
    path
}

/// On how many occasions did counts tell the rates, and all end together?
fn compare(name: &str, seed: u64) -> (u32, u32) {
    let mut stream = Streams::new(seed).get(Purpose::Structure, 1);
    // Half of the networks have room for all, and half of those leave the injection channels out.
    let between = 1 + stream.below(if seed.is_multiple_of(2) { 30 } else { 1000 });
    let most = if seed.is_multiple_of(2) { 3 } else { 1 };
    let first = if seed % 4 < 2 { TERMINALS } else { 0 };
    let slowest = |channel: u32| if channel < TERMINALS && first > 0 { 1 } else { 2 };
    let bandwidth: Vec<f64> = (0..2 * TERMINALS + between).map(|channel| 1.0 / f64::from(1 + stream.below(slowest(channel)))).collect();
    let mut both = [true, false].map(|counts| Flows::new(name, &bandwidth, first, counts));
    let (mut now, mut idle): (f64, Vec<u32>) = (0.0, (0..TERMINALS).collect());
    let mut flits = [0; TERMINALS as usize];
    let (mut counted, mut ended) = (0, 0);
    for _ in 0..20 {
        for _ in 0..stream.below(1 + idle.len() as u32) {
            let flow = idle.swap_remove(stream.below(idle.len() as u32) as usize);
            let destination = TerminalId(stream.below(TERMINALS));
            let path = random_path(&mut stream, between, destination.0);
            flits[flow as usize] = 1 + stream.below(most);
            let drawn = SourceMessage { created: 0.0, asked: 0, destination, flits: flits[flow as usize], class: 0, is_reply: false };
            both.iter_mut().for_each(|flows| flows.begin(flow, &drawn, &path, now));
        }
        counted += u32::from(both.each_mut().map(|flows| flows.share(now))[0]);
        if stream.below(4) == 0 {
            both[0].dissolve(now);
        }
        let [quick, plain] = &mut both;
        assert_eq!(quick.next_end(), plain.next_end(), "seed {seed}");
        assert!(plain.graph.is_fair(name == "equal-share"));
        let Some(end) = plain.next_end() else { continue };
        now = end;
        let together = quick.cohort.end_by(now);
        let ending = both.each_mut().map(|flows| flows.end(now, |flow| f64::from(flits[flow as usize])));
        assert_eq!(ending[0], ending[1], "seed {seed}");
        ended += u32::from(together);
        idle.extend(&ending[0]);
    }
    let channels = bandwidth.len() as u32;
    let carried = both.each_mut().map(|flows| flows.carried(now, channels));
    assert_eq!(carried[0], carried[1], "seed {seed}");
    (counted, ended)
}

#[test]
fn messages_that_begin_together_fare_as_those_that_do_not() {
    for name in ["equal-share", "max-min"] {
        let sums = (0..1000).map(|seed| compare(name, seed)).fold((0, 0), |sums, (counted, ended)| (sums.0 + counted, sums.1 + ended));
        assert!(sums.0 > 200 && sums.1 > 100, "{name}: {sums:?} handfuls");
    }
}
