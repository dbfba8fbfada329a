//! Which terminals a user gets when it asks for a number of nodes.

use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the free terminals of a machine are given to users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The next free terminals, in their order.
    #[default]
    Contiguous,
    /// Free terminals at random.
    Random,
    /// In turn: the terminals in their order, one for each user that still needs terminals.
    RoundRobin,
    /// Whole routers: the free terminals of the router with most free ones first, so that users share as few routers as possible.
    BySwitch,
}

impl Placement {
    /// The name in the experiment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::Random => "random",
            Self::RoundRobin => "round-robin",
            Self::BySwitch => "by-switch",
        }
    }
}

/// What one user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The policy.
    pub placement: Placement,
    /// How many terminals.
    pub nodes: u32,
}

/// Gives each user its terminals out of the free ones, users in their order; those by turns together, after the others.
///
/// # Errors
/// The position of a request for more terminals than are left, and how many those are.
pub fn place(
    requests: &[Option<Request>],
    network: &Network,
    mut free: Vec<TerminalId>,
    stream: &mut Stream,
) -> Result<Vec<Vec<TerminalId>>, (usize, u32)> {
    let mut given = vec![Vec::new(); requests.len()];
    let mut turns = Vec::new();
    for (user, request) in requests.iter().enumerate() {
        let Some(Request { placement, nodes }) = *request else { continue };
        if nodes as usize > free.len() {
            return Err((user, free.len() as u32));
        }
        given[user] = match placement {
            Placement::Contiguous => free.drain(..nodes as usize).collect(),
            Placement::Random => (0..nodes).map(|_| free.swap_remove(stream.below(free.len() as u32) as usize)).collect(),
            Placement::BySwitch => by_switch(network, &mut free, nodes),
            Placement::RoundRobin => {
                turns.push((user, nodes));
                Vec::new()
            }
        };
        free.sort_unstable();
    }
    let mut left = free.into_iter();
    while !turns.is_empty() {
        for (user, nodes) in &mut turns {
            let had = given[*user].len() as u32;
            given[*user].push(left.next().ok_or((*user, had))?);
            *nodes -= 1;
        }
        turns.retain(|&(_, nodes)| nodes > 0);
    }
    Ok(given)
}

/// Terminals of the routers with most free ones, whole routers as far as they go.
fn by_switch(network: &Network, free: &mut Vec<TerminalId>, nodes: u32) -> Vec<TerminalId> {
    let mut of_router: BTreeMap<u32, Vec<TerminalId>> = BTreeMap::new();
    for &terminal in free.iter() {
        of_router.entry(network.injection_port(terminal).0.0).or_default().push(terminal);
    }
    let mut routers: Vec<Vec<TerminalId>> = of_router.into_values().collect();
    // Stable, so that equal routers stay in their order.
    routers.sort_by_key(|terminals| std::cmp::Reverse(terminals.len()));
    let taken: Vec<TerminalId> = routers.into_iter().flatten().take(nodes as usize).collect();
    free.retain(|terminal| !taken.contains(terminal));
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Streams};
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology, full_mesh::FullMesh};

    fn network() -> Network {
        let build = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        FullMesh { routers: 4, concentration: 4 }.build(&build).unwrap()
    }

    fn placed(placements: [Placement; 2], nodes: u32) -> Vec<Vec<u32>> {
        let network = network();
        let requests = placements.map(|placement| Some(Request { placement, nodes }));
        let free = (0..16).map(TerminalId).collect();
        let mut stream = Streams::new(1).get(Purpose::Placement, 0);
        let given = place(&requests, &network, free, &mut stream).unwrap();
        given.into_iter().map(|given| given.into_iter().map(|terminal| terminal.0).collect()).collect()
    }

    #[test]
    fn each_policy_gives_each_user_what_he_asks_for_and_no_terminal_twice() {
        assert_eq!(placed([Placement::Contiguous; 2], 3), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(placed([Placement::RoundRobin; 2], 3), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(placed([Placement::BySwitch; 2], 4), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(placed([Placement::Contiguous, Placement::BySwitch], 3), [[0, 1, 2], [4, 5, 6]]);
        let mut random = placed([Placement::Random; 2], 8).concat();
        random.sort_unstable();
        assert_eq!(random, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn who_asks_for_more_than_is_left_is_told_what_is_left() {
        let requests =
            [Some(Request { placement: Placement::Contiguous, nodes: 10 }), Some(Request { placement: Placement::Random, nodes: 7 })];
        let mut stream = Streams::new(1).get(Purpose::Placement, 0);
        assert_eq!(place(&requests, &network(), (0..16).map(TerminalId).collect(), &mut stream), Err((1, 6)));
    }
}
