//! What becomes of a logical network's links on the physical one: dilation, congestion, load of each channel.

use super::routes::RoutedPaths;
use kasuri_network::id::{ChannelId, TerminalId};
use std::collections::BTreeMap;

/// A logical network laid onto physical nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// Each directed logical link, and the channels between routers that its packets take, on average where they have a choice.
    pub dilations: Vec<((u32, u32), f64)>,
    /// Each channel that some logical link uses, with the number of directed logical links over it, in ascending order.
    pub loads: Vec<(ChannelId, f64)>,
}

impl Embedding {
    /// Lays directed logical links onto `physical`, the terminal of each logical node.
    pub fn of(edges: &[(u32, u32)], physical: &[TerminalId], paths: &mut RoutedPaths<'_>) -> Self {
        let mut loads: BTreeMap<ChannelId, f64> = BTreeMap::new();
        let mut dilations = Vec::with_capacity(edges.len());
        for &(from, to) in edges {
            let path = paths.between(physical[from as usize], physical[to as usize]);
            dilations.push(((from, to), path.iter().map(|&(_, share)| share).sum()));
            for (channel, share) in path {
                *loads.entry(channel).or_default() += share;
            }
        }
        Self { dilations, loads: loads.into_iter().collect() }
    }

    /// The longest path of a logical link, in channels.
    pub fn dilation_max(&self) -> f64 {
        self.dilations.iter().map(|&(_, dilation)| dilation).fold(0.0, f64::max)
    }

    /// The mean path of a logical link, in channels; 0 without links.
    pub fn dilation_mean(&self) -> f64 {
        self.dilations.iter().map(|&(_, dilation)| dilation).sum::<f64>() / self.dilations.len().max(1) as f64
    }

    /// The most directed logical links over one channel.
    pub fn congestion(&self) -> f64 {
        self.loads.iter().map(|&(_, load)| load).fold(0.0, f64::max)
    }
}
