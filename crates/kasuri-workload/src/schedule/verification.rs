//! Counts a schedule on its network.

use super::contract::{Plan, VerifyError};
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::routing::{Candidate, Choice, CongestionView, Hop, Routing, VirtualChannels};

/// What a schedule does on a network with a routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Terminals that take part, N.
    pub terminals: u32,
    /// By phase, the most messages that share a channel, injection and ejection channels included.
    pub loads: Vec<u32>,
    /// By phase, the time of the channel that takes longest; a message on a channel of period p counts p.
    pub times: Vec<u64>,
    /// The most messages that share a channel between routers in all phases together.
    pub all_pairs_load: u32,
    /// The time of all phases together on the channel between routers that takes longest, counted like [`Self::times`].
    pub all_pairs_time: u64,
    /// The time of the N - 1 messages of the terminal with the slowest channel, counted like [`Self::times`].
    pub terminal_time: u64,
    /// Channels on the longest path of a message, injection and ejection channels included.
    pub longest_path: u32,
    /// The first ordered pair that is not served exactly once, if there is one.
    pub shortfall: Option<Shortfall>,
}

/// An ordered pair of ranks that is not served exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Who should send.
    pub source: u32,
    /// Who should receive.
    pub destination: u32,
    /// Is it served more than once, and not never?
    pub is_repeated: bool,
}

impl Verification {
    /// Is every ordered pair served exactly once?
    pub fn is_complete(&self) -> bool {
        self.shortfall.is_none()
    }

    /// Does no channel carry two messages in any phase?
    pub fn is_contention_free(&self) -> bool {
        self.max_load() <= 1
    }

    /// The most messages that share a channel in any phase.
    pub fn max_load(&self) -> u32 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    /// The time of all phases one after the other, in transmissions of a message on a channel of period 1.
    pub fn time(&self) -> u64 {
        self.times.iter().sum()
    }

    /// The least [`Self::time`] of any schedule with this routing: each terminal sends N - 1 messages, and the channel between routers that
    /// takes longest carries all of its messages.
    pub fn lower_bound(&self) -> u64 {
        self.all_pairs_time.max(self.terminal_time)
    }
}

/// Follows every message of every phase over the network and counts.
///
/// # Errors
/// A routing with choices or one that does not deliver, or a schedule whose two sides disagree.
pub fn verify(network: &Network, routing: &dyn Routing, plan: &Plan) -> Result<Verification, VerifyError> {
    let ranks = plan.terminals.len() as u32;
    let mut routes = Routes::new(network, routing);
    let mut served = Pairs::new(ranks);
    let (mut load, mut total) = (vec![0u32; network.channel_count() as usize], vec![0u32; network.channel_count() as usize]);
    let (mut touched, mut path, mut loads, mut times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut longest_path = 0;
    let time = |channel: ChannelId, messages: u32| u64::from(messages) * u64::from(network.link(channel).period);
    for phase in 0..plan.schedule.phases() {
        let (mut most, mut longest) = (0, 0);
        for rank in 0..ranks {
            let Some(peer) = plan.schedule.destination(rank, phase) else { continue };
            if peer >= ranks || plan.schedule.source(peer, phase) != Some(rank) {
                return Err(VerifyError::Unexpected { phase, source_rank: rank, destination: peer });
            }
            served.add(rank, peer);
            routes.follow(plan.terminals[rank as usize], plan.terminals[peer as usize], &mut path)?;
            longest_path = longest_path.max(path.len() as u32);
            for &channel in &path {
                load[channel.index()] += 1;
                most = most.max(load[channel.index()]);
                longest = longest.max(time(channel, load[channel.index()]));
                touched.push(channel);
            }
        }
        loads.push(most);
        times.push(longest);
        for channel in touched.drain(..) {
            load[channel.index()] = 0;
            total[channel.index()] += 1;
        }
    }
    let of_terminal = |&terminal: &TerminalId| [network.injection_channel(terminal), network.ejection_channel(terminal)];
    Ok(Verification {
        terminals: ranks,
        loads,
        times,
        all_pairs_load: network.all_router_channels().map(|channel| total[channel.index()]).max().unwrap_or(0),
        all_pairs_time: network.all_router_channels().map(|channel| time(channel, total[channel.index()])).max().unwrap_or(0),
        terminal_time: plan.terminals.iter().flat_map(of_terminal).map(|channel| time(channel, ranks - 1)).max().unwrap_or(0),
        longest_path,
        shortfall: served.shortfall(),
    })
}

/// Which ordered pairs have been served: a bit each.
struct Pairs {
    ranks: u32,
    bits: Vec<u64>,
    repeated: Option<Shortfall>,
}

impl Pairs {
    fn new(ranks: u32) -> Self {
        let pairs = u64::from(ranks) * u64::from(ranks);
        Self { ranks, bits: vec![0; pairs.div_ceil(64) as usize], repeated: None }
    }

    fn at(&self, source: u32, destination: u32) -> (usize, u64) {
        let pair = u64::from(source) * u64::from(self.ranks) + u64::from(destination);
        ((pair / 64) as usize, 1 << (pair % 64))
    }

    fn add(&mut self, source: u32, destination: u32) {
        let (word, bit) = self.at(source, destination);
        if self.bits[word] & bit != 0 || source == destination {
            self.repeated.get_or_insert(Shortfall { source, destination, is_repeated: true });
        }
        self.bits[word] |= bit;
    }

    fn shortfall(&self) -> Option<Shortfall> {
        let is_missing = |source: u32, destination: u32| {
            let (word, bit) = self.at(source, destination);
            source != destination && self.bits[word] & bit == 0
        };
        self.repeated.or_else(|| {
            (0..self.ranks).find_map(|source| {
                let destination = (0..self.ranks).find(|&destination| is_missing(source, destination))?;
                Some(Shortfall { source, destination, is_repeated: false })
            })
        })
    }
}

/// Follows packets of a routing without choices.
#[derive(Debug)]
pub struct Routes<'a> {
    network: &'a Network,
    routing: &'a dyn Routing,
    available: VirtualChannels,
    candidates: Vec<Candidate>,
}

impl<'a> Routes<'a> {
    /// Those of a routing on its network.
    pub fn new(network: &'a Network, routing: &'a dyn Routing) -> Self {
        let available = VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 };
        Self { network, routing, available, candidates: Vec::new() }
    }

    /// The channels from a terminal to a terminal, its injection and ejection channels included, in the place of what `path` holds.
    ///
    /// # Errors
    /// The routing has a choice, or does not lead there.
    pub fn follow(&mut self, from: TerminalId, to: TerminalId, path: &mut Vec<ChannelId>) -> Result<(), VerifyError> {
        path.clear();
        let mut choice = Fixed { has_chosen: false };
        let mut state = self.routing.initial_state(from, to, &mut choice);
        let mut channel = self.network.injection_channel(from);
        let mut virtual_channel = self.available.begin;
        while path.len() <= self.network.channel_count() as usize {
            path.push(channel);
            let (router, input) = match self.network.destination(channel) {
                Endpoint::Router(router, input) => (router, input),
                Endpoint::Terminal(end) if end == to => return Ok(()),
                Endpoint::Terminal(_) => break,
            };
            let hop = Hop { router, input, virtual_channel, source: from, destination: to, available: self.available };
            self.candidates.clear();
            self.routing.route(&hop, &mut state, &mut choice, &mut self.candidates);
            if choice.has_chosen || self.candidates.len() > 1 {
                return Err(VerifyError::Choice { from, to });
            }
            let Some(candidate) = self.candidates.first() else { break };
            let Some(next) = self.network.output_channel(router, candidate.port) else { break };
            (channel, virtual_channel) = (next, candidate.virtual_channels.begin);
        }
        Err(VerifyError::Lost { from, to })
    }
}

/// Notices that it is asked.
struct Fixed {
    has_chosen: bool,
}

impl Choice for Fixed {
    fn uniform(&mut self, alternatives: u32) -> u32 {
        self.has_chosen |= alternatives > 1;
        0
    }

    fn least(&mut self, alternatives: u32, _cost: &dyn Fn(&dyn CongestionView, u32) -> i64) -> u32 {
        self.uniform(alternatives)
    }
}
