//! Messages whose paths have been found before they begin.
//!
//! In a large network almost every step of a path waits for memory. The paths of several messages found in step wait together.

use crate::graph::Graph;
use crate::paths::Walk;
use kasuri_model::scenario::Scenario;
use kasuri_model::sources::{Forecast, SourceMessage};

/// Nothing prepared.
const NONE: u32 = u32::MAX;

/// Messages that are looked at before they end; 32 take a tenth longer at 46,656 terminals.
pub(crate) const MOST: usize = 96;

/// Terminals of a network that is large enough: with 4,096 it takes a twentieth longer than without.
const LEAST_TERMINALS: u32 = 8192;

/// May messages be drawn, and their paths be found, before they begin? Batches of one class do not depend on when. Of a small network
/// everything is near at hand, and nothing gained.
pub(crate) fn may_look_ahead(scenario: &Scenario) -> bool {
    let is_large = scenario.network.terminal_count() >= LEAST_TERMINALS;
    is_large && Forecast::is_possible(scenario) && !scenario.routing.facts().observes_congestion
}

/// A message with its path: injection, between routers, ejection.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) drawn: SourceMessage,
    pub(crate) channels: Vec<u32>,
}

/// The messages prepared, and memory that is used again and again.
#[derive(Debug)]
pub(crate) struct PathPrefetch {
    /// Are messages prepared ahead at all?
    pub(crate) is_used: bool,
    /// By terminal: where its next message lies in `prepared`; empty unless used.
    place: Vec<u32>,
    prepared: Vec<Option<Prepared>>,
    free: Vec<u32>,
    unused_paths: Vec<Vec<u32>>,
    /// Messages that end within so many cycles are looked at, as many as make a handful.
    horizon: f64,
    /// Not again before this time.
    again_from: f64,
    pub(crate) walks: Vec<Walk>,
    pub(crate) drawns: Vec<SourceMessage>,
    pub(crate) soon: Vec<u32>,
}

impl PathPrefetch {
    pub(crate) fn new(terminals: usize, is_used: bool) -> Self {
        Self {
            is_used,
            place: vec![NONE; if is_used { terminals } else { 0 }],
            prepared: Vec::new(),
            free: Vec::new(),
            unused_paths: Vec::new(),
            horizon: 1.0,
            again_from: 0.0,
            walks: Vec::new(),
            drawns: Vec::new(),
            soon: Vec::new(),
        }
    }

    /// Lists, in a list that is empty, the flows that end next and whose terminals' next messages are not prepared; none where
    /// that has been done a short time ago, for flows whose ends have moved since. `but` is left out.
    pub(crate) fn list_next(&mut self, graph: &Graph, now: f64, but: u32, into: &mut Vec<u32>) {
        if now < self.again_from {
            return;
        }
        self.again_from = now + self.horizon / 2.0;
        graph.list_ending(now + self.horizon, MOST, into);
        if into.len() >= MOST {
            self.horizon /= 2.0;
        } else if into.len() < MOST / 4 {
            self.horizon *= 2.0;
        }
        into.retain(|&flow| flow != but && !self.has(flow));
    }

    /// Is a terminal's next message prepared?
    pub(crate) fn has(&self, terminal: u32) -> bool {
        self.place.get(terminal as usize).is_some_and(|&place| place != NONE)
    }

    /// Takes a terminal's prepared message.
    pub(crate) fn take(&mut self, terminal: u32) -> Option<Prepared> {
        let place = std::mem::replace(&mut self.place[terminal as usize], NONE);
        if place == NONE {
            return None;
        }
        self.free.push(place);
        self.prepared[place as usize].take()
    }

    /// Keeps a terminal's next message.
    pub(crate) fn put(&mut self, terminal: u32, prepared: Prepared) {
        let place = self.free.pop().unwrap_or(self.prepared.len() as u32);
        if place as usize == self.prepared.len() {
            self.prepared.push(None);
        }
        self.prepared[place as usize] = Some(prepared);
        self.place[terminal as usize] = place;
    }

    /// Memory for a path.
    pub(crate) fn memory(&mut self) -> Vec<u32> {
        self.unused_paths.pop().unwrap_or_default()
    }

    /// Gives the memory of a path back.
    pub(crate) fn give_back(&mut self, path: Vec<u32>) {
        self.unused_paths.push(path);
    }
}
