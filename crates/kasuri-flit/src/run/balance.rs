//! Whether all tiles of a run on several threads have as much to do.

use crate::fabric::cycle::RouterCycle;
use crate::record::team::Team;
use crate::run::clock::Run;
use crate::state::tile::Tile;
use crate::state::work::Work;
use kasuri_model::engine::{Controller, EngineError};

/// The cycle in which a run looks at its tiles, if it is long enough.
const LATEST_LOOK: u64 = 256;

/// A look before this cycle would not see what is usual.
const EARLIEST_LOOK: u64 = 64;

/// A look after more than this part of a run, 1/8, would throw too much away.
const PARTS_OF_LOOK: u64 = 8;

/// The work of each router is counted if the tile with most flits has at least so many times the mean.
const UNEVEN: f64 = 1.1;

impl<'a, L: RouterCycle> Run<'a, L> {
    /// Runs the first cycles; [`Self::run`] goes on from there. If a tile has much more to do than others, returns the work of each router
    /// and terminal in these cycles. The caller may then cut tiles by it and begin with another run: the controller has heard of nothing.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    pub(crate) fn begin(&mut self, controller: &mut dyn Controller, team: &mut Team<'_>) -> Result<Option<Work>, EngineError> {
        let latest = (self.scenario.max_cycles / PARTS_OF_LOOK).min(LATEST_LOOK);
        // What a collective or a trace does first need not be what it does later.
        let is_steady = self.scenario.workload.is_none();
        if team.size() == 1 || !is_steady || latest < EARLIEST_LOOK {
            return Ok(None);
        }
        let (begin, end) = self.begin_interval(controller);
        self.begun = Some((begin, end));
        // An interval may end sooner, and is told of at its end.
        let look = latest.min(end - 1);
        if look < EARLIEST_LOOK {
            return Ok(None);
        }
        let outstanding = self.outstanding();
        // Where it comes to a halt, it will do so again.
        self.advance(look, controller, team)?;
        let is_early = !self.ends || outstanding - self.outstanding() <= outstanding / PARTS_OF_LOOK as i64;
        let goes_on = self.cycle >= look && is_early;
        Ok((goes_on && self.is_uneven(team)).then(|| self.work()))
    }

    /// Has a tile much more flits to move than others?
    fn is_uneven(&mut self, team: &mut Team<'_>) -> bool {
        let mut sent: Vec<(&mut Tile<'a, L>, u64)> = self.tiles.iter_mut().map(|tile| (tile, 0)).collect();
        team.each(&mut sent, |_, (tile, sent)| {
            tile.settle_sent();
            *sent = tile.wiring.links.iter().map(|links| u64::from(links.sent)).sum();
        });
        let of_tiles = sent.iter().map(|(_, sent)| *sent);
        of_tiles.clone().max().unwrap_or(0) as f64 * sent.len() as f64 > UNEVEN * of_tiles.sum::<u64>() as f64
    }

    /// What the cycles so far have taken; nothing that counts flits has been cleared, and all counters are settled.
    fn work(&self) -> Work {
        let network = &*self.scenario.network;
        let mut flits = vec![0; network.channel_count() as usize];
        for tile in &self.tiles {
            tile.put_on_channels(tile.wiring.links.iter().map(|links| u64::from(links.sent)), &mut flits);
        }
        Work::measured(network, &flits, self.cycle)
    }
}
