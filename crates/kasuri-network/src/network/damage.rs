//! Networks of which something is down: all numbers and names stay what they were.

use super::{Endpoint, NONE, Network};
use crate::draws::SplitMix64;
use crate::id::{ChannelId, RouterId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What of a network is down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Channels between routers, ascending; those of routers that are down among them.
    channels: Vec<ChannelId>,
    /// Routers, ascending.
    routers: Vec<RouterId>,
}

impl Damage {
    /// The channels between routers that are down, ascending.
    pub fn channels(&self) -> &[ChannelId] {
        &self.channels
    }

    /// The routers that are down as a whole, ascending.
    pub fn routers(&self) -> &[RouterId] {
        &self.routers
    }

    /// In words: `2 of 8 channels between routers are down, and 1 router`.
    pub fn describe(&self, network: &Network) -> String {
        let down = self.channels.len();
        let all = down + network.router_channels().count();
        let channels = format!("{down} of {all} channels between routers {} down", if down == 1 { "is" } else { "are" });
        match self.routers.as_slice() {
            [] => channels,
            [only] => format!("{channels}, all of {} among them", network.router_name(*only)),
            several => format!("{channels}, all of {} routers among them", several.len()),
        }
    }
}

/// A cable between two routers: one channel, or the two between the same two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// The channel that was added first.
    pub first: ChannelId,
    /// The way back, if there is one.
    pub back: Option<ChannelId>,
}

impl Cable {
    /// Its channels.
    pub fn channels(self) -> impl Iterator<Item = ChannelId> {
        std::iter::once(self.first).chain(self.back)
    }
}

/// The cables between routers that are not down, in the order in which the topology has added them.
pub fn cables(network: &Network) -> Vec<Cable> {
    let cable = |first: ChannelId| {
        let Endpoint::Router(router, port) = network.destination(first) else { return None };
        let leads_back = |back: &ChannelId| network.destination(*back) == network.source(first);
        let back = network.output_channel(router, port).filter(leads_back);
        back.is_none_or(|back| first < back).then_some(Cable { first, back })
    };
    network.router_channels().filter_map(cable).collect()
}

/// So many of the cables, drawn without repeats: the first ones after a shuffle of Fisher and Yates by SplitMix64 of this seed.
pub fn drawn(cables: &[Cable], count: usize, seed: u64) -> Vec<Cable> {
    let mut shuffled = cables.to_vec();
    SplitMix64::new(seed).shuffle(&mut shuffled);
    shuffled.truncate(count);
    shuffled
}

impl Network {
    /// What is down, if anything is.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_deref()
    }

    /// Is this channel down?
    pub fn is_down(&self, channel: ChannelId) -> bool {
        self.damage.as_ref().is_some_and(|damage| damage.channels.binary_search(&channel).is_ok())
    }

    /// The network without these cables and without all cables of these routers, beside what is down already. Routers, terminals, ports and
    /// channels keep their numbers and names; no port leads to a channel that is down. With nothing to take away it stays what it is.
    #[must_use]
    pub fn without(mut self, cables: &[Cable], routers: &[RouterId]) -> Self {
        let known = self.damage().cloned().unwrap_or_default();
        let routers: BTreeSet<RouterId> = routers.iter().chain(&known.routers).copied().collect();
        let mut down: BTreeSet<ChannelId> = known.channels.into_iter().collect();
        down.extend(cables.iter().flat_map(|cable| cable.channels()));
        let is_at = |end: Endpoint| matches!(end, Endpoint::Router(router, _) if routers.contains(&router));
        down.extend(self.router_channels().filter(|&channel| is_at(self.source(channel)) || is_at(self.destination(channel))));
        if down.is_empty() && routers.is_empty() {
            return self;
        }
        // Where a channel that is down begins is known from here on by this column alone.
        let sources: Vec<Endpoint> = down.iter().map(|&channel| self.source(channel)).collect();
        for source in sources {
            if let Endpoint::Router(router, port) = source {
                let index = self.port_index(router, port);
                self.output_channel[index] = NONE;
            }
        }
        self.requested.inputs = Default::default();
        self.damage = Some(Arc::new(Damage { channels: down.into_iter().collect(), routers: routers.into_iter().collect() }));
        self
    }

    /// Takes down what is down in another network with the same channels between routers; `first` is the first of these there.
    pub(super) fn with_damage_of(self, damage: &Damage, first: u32) -> Self {
        let here = 2 * self.terminal_count();
        let cable = |channel: &ChannelId| Cable { first: ChannelId(channel.0 - first + here), back: None };
        let cables: Vec<Cable> = damage.channels.iter().map(cable).collect();
        self.without(&cables, &damage.routers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TerminalId;
    use crate::network::metrics::Metrics;
    use crate::topology::{BuildContext, ChannelParameters, NoFiles, Topology, leaf_spine::LeafSpine, torus::Torus};

    const CONTEXT: fn(&ChannelParameters) -> BuildContext<'_> = |channels| BuildContext { channels, files: &NoFiles, structure_seed: 0 };

    fn ring() -> Network {
        Torus { dimensions: vec![4], concentration: 1 }.build(&CONTEXT(&ChannelParameters::default())).unwrap()
    }

    /// A ring of four without one link is a row of four: diameter 3 in place of 2, average (3 + 2 x 2 + 3 x 1) / 6.
    #[test]
    fn a_ring_without_a_link_is_a_row() {
        let whole = ring();
        assert_eq!(cables(&whole).len(), 4);
        let cable = cables(&whole)[0];
        let row = whole.clone().without(&[cable], &[]);
        let metrics = Metrics::of(&row);
        assert_eq!((metrics.links, metrics.router_channels, metrics.distances.diameter), (3, 6, 3));
        assert!((metrics.distances.average - 10.0 / 6.0).abs() < 1e-12);
        assert_eq!(metrics.bisection.map(|cut| cut.channels), Some(2));
        assert_eq!(row.channel_count(), whole.channel_count());
        for channel in (0..whole.channel_count()).map(ChannelId) {
            assert_eq!((row.source(channel), row.destination(channel)), (whole.source(channel), whole.destination(channel)));
            let Endpoint::Router(from, port) = row.source(channel) else { continue };
            assert_eq!(row.output_channel(from, port).is_none(), cable.channels().any(|down| down == channel), "{channel:?}");
        }
        assert_eq!(row.damage().unwrap().describe(&row), "2 of 8 channels between routers are down");
    }

    /// By `shuffled` of draws.rs for ten items and seed 42: 8, 3, 6, 5 come first.
    #[test]
    fn drawn_links_are_the_first_after_the_shuffle() {
        let torus = Torus { dimensions: vec![10], concentration: 1 }.build(&CONTEXT(&ChannelParameters::default())).unwrap();
        let all = cables(&torus);
        assert_eq!(all.len(), 10);
        assert_eq!(drawn(&all, 4, 42), [8, 3, 6, 5].map(|place| all[place]));
        assert_eq!(drawn(&all, 0, 42), []);
    }

    /// Nothing leads to or from a router that is down; who was served by the others still is.
    #[test]
    fn a_spine_that_is_down_takes_its_links_along() {
        let leaf_spine = LeafSpine { leaves: 4, spines: 3, down: 2, ..toml::from_str("leaves = 1\nspines = 1\ndown = 1").unwrap() };
        let whole = leaf_spine.build(&CONTEXT(&ChannelParameters::default())).unwrap();
        let spine = RouterId(5);
        let damaged = whole.clone().without(&[], &[spine]);
        assert_eq!(damaged.damage().unwrap().channels().len(), 8);
        assert_eq!(damaged.damage().unwrap().routers(), [spine]);
        assert!((0..damaged.port_count(spine)).all(|port| damaged.output_channel(spine, port as u16).is_none()));
        assert!((0..damaged.port_count(spine)).all(|port| damaged.input_channel(spine, port as u16).is_none()));
        assert_eq!(crate::network::connectivity::separated(&damaged), None);
        let none_left = damaged.without(&[], &[RouterId(4), RouterId(6)]);
        assert_eq!(crate::network::connectivity::separated(&none_left), Some((TerminalId(0), TerminalId(2))));
        assert_eq!(whole.clone().without(&[], &[]), whole);
    }
}
