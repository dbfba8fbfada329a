//! Paths that are found once: where neither chance nor the way in decides, all messages from a router to a terminal take the same.

use kasuri_model::scenario::Scenario;
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::Network;
use kasuri_network::predictor;
use std::collections::BTreeSet;

/// Pairs of routers and terminals whose paths are kept: 16 MiB of places.
const MOST_PAIRS: u64 = 1 << 22;

/// No row, no path.
const NONE: u32 = u32::MAX;

/// The paths between routers that have terminals and all terminals, as they are found.
#[derive(Debug)]
pub(crate) struct PathCache {
    terminals: usize,
    /// By router: the beginning of its row in `place`.
    row: Vec<u32>,
    /// By row and destination: where in `paths` a path begins, with its length.
    place: Vec<u32>,
    paths: Vec<u32>,
}

impl PathCache {
    /// A memory, if the scenario's messages are so many that most paths are taken again, and the same every time.
    pub(crate) fn of(scenario: &Scenario) -> Option<Self> {
        let messages = scenario.workload.as_ref()?.workload.messages();
        let network = &*scenario.network;
        let pairs = pairs(network);
        let reads = scenario.routing.facts().reads;
        // A hit is counted by the message.
        let predicts = scenario.router.predictor != predictor::NONE;
        // What terminals of one router share with others differs.
        let depends = predicts || scenario.hosts.is_some() || reads.source || reads.input || scenario.routing.facts().observes_congestion;
        (!depends && pairs <= MOST_PAIRS && messages > 2 * pairs).then(|| Self {
            terminals: network.terminal_count() as usize,
            row: vec![NONE; network.router_count() as usize],
            place: Vec::new(),
            paths: Vec::new(),
        })
    }

    /// All paths, at the places that [`Self::find`] tells.
    pub(crate) fn paths(&self) -> &[u32] {
        &self.paths
    }

    /// The path from a router to a terminal, if it has been found before: where it begins, and its channels after that of injection.
    #[inline(always)]
    pub(crate) fn find(&self, from: RouterId, to: TerminalId) -> Option<(u32, &[u32])> {
        let row = self.row[from.index()];
        if row == NONE {
            return None;
        }
        let place = self.place[row as usize + to.index()];
        if place == NONE {
            return None;
        }
        let first = place as usize + 1;
        Some((place + 1, &self.paths[first..first + self.paths[first - 1] as usize]))
    }

    /// Keeps a path.
    pub(crate) fn keep(&mut self, from: RouterId, to: TerminalId, path: &[u32]) {
        if self.row[from.index()] == NONE {
            self.row[from.index()] = self.place.len() as u32;
            self.place.resize(self.place.len() + self.terminals, NONE);
        }
        self.place[self.row[from.index()] as usize + to.index()] = self.paths.len() as u32;
        self.paths.push(path.len() as u32);
        self.paths.extend_from_slice(path);
    }
}

/// Routers that have terminals, times terminals.
fn pairs(network: &Network) -> u64 {
    let terminals = network.terminal_count();
    let routers: BTreeSet<u32> = (0..terminals).map(|terminal| network.injection_port(TerminalId(terminal)).0.0).collect();
    routers.len() as u64 * u64::from(terminals)
}
