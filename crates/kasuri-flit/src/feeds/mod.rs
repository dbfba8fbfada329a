//! What feeds the terminals' queues with packets: each file implements [`PacketFeed`] or serves one that does.
//!
//! Feeds are open traffic and batches (`open`), closed workloads whose terminals proceed by themselves (`local`) or by a central list
//! (`closed`, `dispatcher`), and the interfaces of a machine (`machine`); `combined` makes one of several, `translated` puts the translation
//! of users in front of any, and `resending` has lost packets sent again. To add one: a file that implements the trait, and its line in
//! [`feed_of`], the only place that knows which there are.
//!
//! Invariant: what a feed hears in a cycle has consequences in the next one. No feed knows a router or another tile: messages for feeds of
//! other tiles go at the end of a window.

use crate::facts;
use crate::feeds::closed::Messages;
use crate::feeds::combined::Combined;
use crate::feeds::local::LocalWorkload;
use crate::feeds::machine::Interfaces;
use crate::feeds::null::NullFeed;
use crate::feeds::open::OpenTraffic;
use crate::feeds::resending::Resending;
use crate::feeds::translated::Translated;
use crate::state::feed::PacketFeed;
use crate::state::share::Share;
use kasuri_model::scenario::Scenario;

pub(crate) mod accesses;
pub(crate) mod batch;
pub(crate) mod calendar;
pub(crate) mod closed;
pub(crate) mod combined;
pub(crate) mod dispatcher;
pub(crate) mod local;
pub(crate) mod machine;
pub(crate) mod null;
pub(crate) mod open;
pub(crate) mod ranks;
pub(crate) mod resending;
pub(crate) mod translated;
pub(crate) mod waiting;

/// What feeds the terminals of a tile.
pub(crate) fn feed_of<'a>(scenario: &'a Scenario, share: &Share, block_shift: u32) -> Box<dyn PacketFeed + 'a> {
    if facts::needs_central_edge(scenario) && share.terminals.is_empty() {
        return Box::new(NullFeed);
    }
    let parts = scenario.workload.as_ref().map_or(0, |closed| closed.parts.len());
    let local = LocalWorkload::new(scenario, share, block_shift).map(|feed| Box::new(feed) as Box<dyn PacketFeed>);
    let messages = local.or_else(|| Messages::new(scenario, share).map(|feed| Box::new(feed) as Box<dyn PacketFeed>));
    let messages = messages.map(|feed| (feed, parts));
    let interfaces = Interfaces::new(scenario).map(|feed| (feed.classes(), Box::new(feed) as Box<dyn PacketFeed>));
    let interfaces = interfaces.map(|(classes, feed)| (feed, classes));
    let mut feeds: Vec<_> = messages.into_iter().chain(interfaces).collect();
    if !scenario.classes.is_empty() || feeds.is_empty() {
        let open = OpenTraffic::new(scenario, share, block_shift, feeds.is_empty());
        feeds.insert(0, (Box::new(open), scenario.classes.len()));
    }
    let feed = Translated::over(Combined::of(feeds, scenario.network.terminal_count()), scenario);
    Resending::over(feed, scenario, share, block_shift)
}

/// Bytes of the feeds of a tile of so many terminals, without their packets.
pub(crate) fn bytes(scenario: &Scenario, terminals: usize, block_shift: u32) -> usize {
    OpenTraffic::bytes(scenario, terminals, block_shift)
}
