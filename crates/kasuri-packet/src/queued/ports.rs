//! A channel with the output before it: what waits, what is sent, and what is on its way.

use super::packets::NONE;
use kasuri_network::id::{ChannelId, Port as PortNumber, RouterId};
use kasuri_network::network::{Endpoint, Network};
use std::collections::VecDeque;

/// Where a channel leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Terminal(u32),
    Router(RouterId, PortNumber),
}

/// The tail of a packet on a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The cycle in which it comes to the end.
    pub(super) seen: u64,
    /// Where the packet is kept. If its head has been lost meanwhile, another packet, or the same one sent again, may have the place under
    /// another number.
    pub(super) place: u32,
    pub(super) source: u32,
    pub(super) serial: u32,
}

/// An output and the channel behind it. Many fields, because what happens at either end is decided together.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) end: End,
    /// The router whose output it is, or [`NONE`] of a terminal.
    pub(super) router: u32,
    /// Cycles that a flit occupies the channel, and takes to its end beside the one in which it is sent.
    pub(super) period: u64,
    pub(super) latency: u64,
    pub(super) queue: VecDeque<u32>,
    /// Flits in it.
    pub(super) queued: u64,
    /// Is a packet sent, and when may the next one be? Its flits, and the channel by which it has come: its own record may be ahead of it.
    pub(super) sends: bool,
    pub(super) free_at: u64,
    pub(super) sent_flits: u32,
    pub(super) sent_from: u32,
    /// Packets under way with the cycles in which they join the next queue, or have arrived.
    pub(super) link: VecDeque<(u64, u32)>,
    /// If channels may fail: tails that have not come to the end.
    pub(super) tails: VecDeque<Tail>,
    pub(super) is_dead: bool,
    /// Flits that the router at the end holds of packets that have come by this channel.
    pub(super) held: u64,
    /// Has that router asked for a pause, and has this output heard of it?
    pub(super) pause_asked: bool,
    pub(super) paused: bool,
    /// Flits sent while rates were counted.
    pub(super) flits: u64,
}

impl Port {
    fn new(network: &Network, channel: ChannelId) -> Self {
        let link = network.link(channel);
        let end = match network.destination(channel) {
            Endpoint::Terminal(terminal) => End::Terminal(terminal.0),
            Endpoint::Router(router, port) => End::Router(router, port),
        };
        let router = if let Endpoint::Router(router, _) = network.source(channel) { router.0 } else { NONE };
        Self {
            end,
            router,
            period: u64::from(link.period),
            latency: u64::from(link.latency),
            queue: VecDeque::new(),
            queued: 0,
            sends: false,
            free_at: 0,
            sent_flits: 0,
            sent_from: NONE,
            link: VecDeque::new(),
            tails: VecDeque::new(),
            is_dead: false,
            held: 0,
            pause_asked: false,
            paused: false,
            flits: 0,
        }
    }

    /// All channels of a network, by number.
    pub(super) fn all(network: &Network) -> Vec<Self> {
        (0..network.channel_count()).map(|channel| Self::new(network, ChannelId(channel))).collect()
    }

    /// May the next packet be sent?
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.sends && !self.paused
    }

    /// Flits that are still to be sent, those of the packet that is sent among them.
    pub(super) fn waiting(&self, now: u64) -> u64 {
        let left = if self.sends { self.free_at.saturating_sub(now).div_ceil(self.period) } else { 0 };
        self.queued + left
    }
}
