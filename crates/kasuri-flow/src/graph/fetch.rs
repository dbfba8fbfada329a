//! What will be touched soon is fetched: in a large network nearly every step waits for memory.

use super::{Channel, Graph, LISTED, NONE};
use kasuri_network::memory::fetch_ahead;

impl Graph {
    /// Lists, in a list that is empty, flows that end until some time at their present rates, no more than about `most`.
    pub(crate) fn list_ending(&self, until: f64, most: usize, into: &mut Vec<u32>) {
        self.ends.list_until(until, most, into);
    }

    /// Says that a flow will end soon: the first of three steps that fetch what that takes.
    pub(crate) fn fetch_flow(&self, flow: u32) {
        fetch_ahead(self.flows.as_slice(), flow as usize);
        fetch_ahead(self.unlisted.channels.as_slice(), (flow * self.unlisted.room) as usize);
    }

    /// The second step, when the first has fetched: the channels of its path.
    pub(crate) fn fetch_channels(&self, flow: u32) {
        self.visit(flow, |_, entry| {
            fetch_ahead(self.channels.as_slice(), entry.channel as usize);
            fetch_ahead(self.carried.as_slice(), entry.channel as usize);
        });
        self.visit_unlisted(flow, |channel| fetch_ahead(self.carried.as_slice(), channel as usize));
    }

    /// The third step: the flows at the head of their lists.
    pub(crate) fn fetch_neighbours(&self, flow: u32) {
        self.visit(flow, |_, entry| self.fetch_head(entry.channel));
    }

    /// Says that a flow will begin on a channel of the network soon.
    pub(crate) fn fetch_channel(&self, channel: u32) {
        if let Some(channel) = channel.checked_sub(self.left_out) {
            fetch_ahead(self.channels.as_slice(), channel as usize);
        }
    }

    /// Then, when that is there: the flow at the head of its list.
    pub(crate) fn fetch_first(&self, channel: u32) {
        if let Some(channel) = channel.checked_sub(self.left_out) {
            self.fetch_head(channel);
        }
    }

    fn fetch_head(&self, channel: u32) {
        let Channel { first, state, .. } = self.channels[channel];
        if state & LISTED != 0 && first != NONE {
            if first < self.overflow.first {
                fetch_ahead(self.flows.as_slice(), first as usize / 4);
            } else {
                fetch_ahead(self.overflow.entries.as_slice(), (first - self.overflow.first) as usize);
                fetch_ahead(self.flows.as_slice(), self.flow_of(first) as usize);
            }
        }
    }
}
