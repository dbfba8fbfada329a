//! Equal shares: the message-flow model. A channel of bandwidth b with n flows offers each b / n; a flow takes the least offer on
//! its way, whatever the others leave.

use super::Sharing;
use crate::graph::Graph;

/// Bandwidth over flows.
#[derive(Debug)]
pub(crate) struct EqualShare;

impl Sharing for EqualShare {
    fn level(&mut self, graph: &mut Graph) {
        while let Some(channel) = graph.dirty.pop() {
            graph.clean(channel);
            let flows = graph.flows_on(channel);
            let level = if flows == 0 { f64::INFINITY } else { graph.bandwidth(channel) / f64::from(flows) };
            graph.set_level(channel, level);
        }
    }
}
