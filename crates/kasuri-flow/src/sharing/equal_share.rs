//! Equal shares: the message-flow model. A channel of bandwidth b with n flows offers each b / n; a flow takes the least offer on
//! its path, whatever the others leave.

use super::contract::{LevelByCount, Sharing};
use crate::graph::Graph;

/// Bandwidth over flows.
#[derive(Debug)]
pub(crate) struct EqualShare;

impl Sharing for EqualShare {
    fn level(&mut self, graph: &mut Graph) {
        while let Some(channel) = graph.dirty.pop() {
            graph.clean(channel);
            graph.set_level(channel, share(graph.bandwidth(channel), graph.flows_on(channel)));
        }
    }

    fn begin_another(&self) -> Box<dyn Sharing> {
        Box::new(Self)
    }

    fn by_count(&self) -> Option<LevelByCount> {
        Some(share)
    }
}

fn share(bandwidth: f64, flows: u32) -> f64 {
    if flows == 0 { f64::INFINITY } else { bandwidth / f64::from(flows) }
}
