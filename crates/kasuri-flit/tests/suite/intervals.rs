//! Intervals that end within windows: who is told of them afterwards hears the same as who is asked at each end.

use crate::common::Setup;
use kasuri_model::engine::{Command, Controller, Interval, Outcome, Status};
use kasuri_network::topology::{ChannelParameters, PerDimension};

/// Measures after a warm-up in intervals of one length, then drains, and keeps what it hears.
struct Listener {
    warm_up: u64,
    cycles: u64,
    length: u64,
    /// Does it promise to go on before the last interval of each phase?
    assures: bool,
    now: u64,
    is_draining: bool,
    heard: Vec<Interval>,
}

impl Listener {
    fn new(warm_up: u64, cycles: u64, length: u64, assures: bool) -> Self {
        Self { warm_up, cycles, length, assures, now: 0, is_draining: false, heard: Vec::new() }
    }

    /// The end of the present phase, and intervals that end before it.
    fn end(&self) -> u64 {
        if self.now < self.warm_up { self.warm_up } else { self.warm_up + self.cycles }
    }
}

impl Controller for Listener {
    fn interval_cycles(&mut self) -> u64 {
        if self.is_draining { 1000 } else { self.length.min(self.end() - self.now) }
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        self.now = interval.end_cycle;
        self.heard.push(interval.clone());
        if self.is_draining {
            return if interval.outstanding_packets == 0 { Command::End(Status::Converged) } else { Command::Continue };
        }
        match self.now {
            now if now == self.warm_up => Command::Measure,
            now if now == self.warm_up + self.cycles => {
                self.is_draining = true;
                Command::Drain
            }
            _ => Command::Continue,
        }
    }

    fn assured_intervals(&self) -> u64 {
        if self.assures && !self.is_draining { (self.end() - self.now - 1) / self.length } else { 0 }
    }
}

/// What comes out, and what the controller has heard on the way.
fn run(setup: &Setup, length: u64, assures: bool) -> (Outcome, Vec<Interval>) {
    let mut listener = Listener::new(300, 700, length, assures);
    let outcome = setup.run(&mut listener);
    (outcome, listener.heard)
}

fn long_channels(latency: u32) -> ChannelParameters {
    ChannelParameters { channel_latency: PerDimension::All(latency), terminal_channel_latency: latency, ..Default::default() }
}

/// Short and long intervals, short and long windows, networks that are full and that are empty for most of the time, in every layout, tile by
/// tile and on threads.
#[test]
fn intervals_within_windows_are_heard_as_they_were() {
    for topology in [Setup::mesh(&[4, 3]), Setup::torus(&[4, 4]), Setup::fat_tree(3, 2)] {
        for (layout, simd) in [(None, "always"), (Some("plain"), "portable"), (Some("full"), "portable")] {
            for (latency, load) in [(9, 0.4), (30, 0.9), (9, 0.002), (1, 0.3)] {
                let setup = Setup { load, layout, simd: simd.to_owned(), channels: long_channels(latency), ..topology.clone() };
                for length in [1, 2, 5, 13, 64] {
                    let expected = run(&setup, length, false);
                    assert!(expected.0.flit_hops > 0);
                    let case = format!("{:?}, {layout:?}, {latency} cycles, load {load}, intervals of {length}", topology.topology);
                    assert_eq!(run(&setup, length, true), expected, "{case}");
                    let cut = Setup { tiles: 3, threads: 2, ..setup.clone() };
                    assert_eq!(run(&cut, length, true), expected, "{case}, three tiles");
                }
            }
        }
    }
}
