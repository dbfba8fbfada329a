//! What is worked out of a scenario before anything is made.

use crate::facts;
use crate::record::clock::Clock;
use crate::record::options::LayoutName;
use crate::record::rings::Rings;
use crate::record::shared_buffers::flits_of_port;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::addresses::Addresses;
use crate::state::crossings::Crossings;
use crate::state::delays::Delays;
use crate::state::full_parameters::FullParameters;
use crate::state::layout::RouterState;
use crate::state::output_shares::Granted;
use crate::state::parameters::Parameters;
use crate::state::share::Partition;
use crate::state::work::Work;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{Architecture, Bidding, Turns};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use std::sync::Arc;

/// The state of so many slots lies in the near caches, about 100 bytes each.
const NEAR_SLOTS: u64 = 1 << 13;

/// The state of more slots lies in no cache but the last one, if in any.
const FAR_SLOTS: u64 = 1 << 17;

/// Longest window: what has arrived in a block is worked on for so long while it lies in a near cache.
const MAX_WINDOW: u32 = 32;

/// A network is cut anew if the tile that has most has at most this part of its work then.
const WORTH_CUTTING: f64 = 0.9;

/// What is worked out of a scenario before anything is made: addresses, times, sizes. All limits of the engine are checked on the way.
pub(crate) struct Compiled {
    pub(crate) partition: Partition,
    /// By tile.
    pub(crate) tiles: Vec<Addresses>,
    pub(crate) crossings: Vec<Arc<Crossings>>,
    pub(crate) delays: Delays,
    /// Those of the first tile.
    pub(crate) parameters: Parameters,
    pub(crate) packets_per_buffer: u32,
    /// Cycles that the wheels of flits and credits take, and the credits that a port may send in a cycle.
    pub(crate) horizon: u32,
    pub(crate) credits_of_port: u32,
}

impl Compiled {
    /// Works them out for a layout and for `tiles` tiles, fewer where the scenario allows no more.
    ///
    /// # Errors
    /// The network is too large for 32-bit addresses, or a latency for 16 bits.
    pub(crate) fn of<L: RouterState>(scenario: &Scenario, tiles: u32) -> Result<Self, Refusal> {
        Self::with::<L>(scenario, partition(scenario, tiles), Delays::new(scenario)?)
    }

    /// The same scenario for another number of tiles.
    ///
    /// # Errors
    /// As of [`Self::of`].
    pub(crate) fn cut_anew<L: RouterState>(&self, scenario: &Scenario, tiles: u32) -> Result<Self, Refusal> {
        Self::with::<L>(scenario, partition(scenario, tiles), self.delays)
    }

    /// The same scenario in as many tiles, cut as [`Self::evened`] says.
    ///
    /// # Errors
    /// As of [`Self::of`].
    pub(crate) fn cut_as<L: RouterState>(&self, scenario: &Scenario, partition: Partition) -> Result<Self, Refusal> {
        Self::with::<L>(scenario, partition, self.delays)
    }

    /// A cut into as many tiles by the work that has been seen, if the tile that has most would have clearly less.
    pub(crate) fn evened(&self, scenario: &Scenario, work: &Work) -> Option<Partition> {
        let partition = cut(scenario, self.tiles.len() as u32, || work.clone());
        let is_worth = partition.greatest_work(work) as f64 <= WORTH_CUTTING * self.partition.greatest_work(work) as f64;
        is_worth.then_some(partition)
    }

    fn with<L: RouterState>(scenario: &Scenario, partition: Partition, delays: Delays) -> Result<Self, Refusal> {
        let network = &*scenario.network;
        let router = &scenario.router;
        let vc_shift = L::Mask::SHIFT;
        let (tiles, crossings) = Addresses::of_tiles::<L>(network, &partition)?;
        let largest = tiles.iter().map(|tile| tile.ports as usize).max().unwrap_or(0);
        let (ports, slots) = (largest, largest << vc_shift);
        let predicts = router.predictor != kasuri_network::predictor::NONE;
        // A buffer of B flits holds parts of at most (B - 1) / shortest + 1 packets; one more may have been announced.
        let depth = router.channel_depth();
        let packets_per_buffer = (depth - 1) / facts::shortest_packet(scenario) + 2;
        if Rings::length(slots, packets_per_buffer).is_none() {
            let channels = router.virtual_channels;
            let reason = format!("the buffers of {ports} ports, {channels} virtual channels and {depth} flits each take too much memory");
            return Err(Refusal::new("router.buffer_flits", reason));
        }
        let window = if facts::needs_window_of_one(scenario) { 1 } else { delays.least.clamp(1, MAX_WINDOW) };
        // What is lost in a window is not sent again before its end.
        let resend_after = scenario.failure.as_ref().and_then(|failure| failure.resend_after);
        let window = window.min(resend_after.unwrap_or(u32::MAX).max(1));
        let hint_cycles = router.total_hint_cycles();
        let periodic = facts::has_slow_channel(network) || hint_cycles > 0;
        let all_slots: u64 = tiles.iter().map(|tile| tile.slots_of_routers).sum();
        let parameters = Parameters {
            virtual_channels: router.virtual_channels,
            block_shift: tiles[0].block_shift,
            buffer_flits: depth as u16,
            route_cycles: scenario.pipeline.route_cycles,
            traversal_cycles: scenario.pipeline.traversal_cycles,
            clock: Clock::new(router.internal_speedup),
            bidding: scenario.pipeline.bidding,
            switching: router.switching,
            release: router.vc_release,
            restricts_entry: router.architecture != Architecture::InputQueued
                || facts::routings(scenario).any(|routing| routing.facts().restricts_entry),
            redraws_entry: facts::routings(scenario).any(|routing| routing.facts().redraws_entry),
            crosspoint: router.architecture == Architecture::Crosspoint,
            periodic,
            hint_cycles,
            fetches: all_slots > NEAR_SLOTS,
            is_far: all_slots > FAR_SLOTS,
            modern: facts::is_modern(),
            vc_allocator: router.vc_allocator.clone(),
            switch_allocator: router.switch_allocator.clone(),
            enters_at_once: !periodic && facts::packets_enter_at_once(scenario),
            one_flit: L::LAYOUT == LayoutName::Plain && !periodic && facts::has_fast_one_flit_cycle(scenario, all_slots),
            full: (L::LAYOUT == LayoutName::Full).then(|| FullParameters {
                router: router.clone(),
                computation_steps: scenario.pipeline.computation_cycles,
                traversal_steps: scenario.pipeline.traversal_cycles,
                streams: scenario.streams,
                offers_several: facts::routings(scenario).any(|routing| routing.facts().offers_several),
                fails: scenario.failure.is_some(),
                speculates: scenario.pipeline.bidding == Bidding::Speculative,
                vc_turns: router.vc_allocator.turns() == Turns::Waiting,
                switch_turns: router.switch_allocator.turns() == Turns::Waiting,
            }),
            granted: Granted::of(scenario),
            window,
            share: tiles[0].share.clone(),
            first_terminal_port: 0,
            router_blocks: 0,
            blocks: 0,
        };
        // In a cycle a port may send a credit for a flit that passes on, and one for a flit that wins the switch; one for each queue of a
        // crosspoint router.
        if let Some(full) = &parameters.full {
            full.check_size(network)?;
        }
        // In the full layout, one for each input of the switch; a flit or a credit may have to wait for its channel.
        let general_credits = parameters.full.as_ref().map(|full| (full.router.input_speedup + u32::from(predicts)).min(1 << vc_shift));
        let usual_credits = if parameters.crosspoint { 1 << vc_shift } else { 1 + u32::from(predicts && vc_shift > 0) };
        let credits_of_port = general_credits.unwrap_or(usual_credits);
        let longest_wait = match &parameters.full {
            Some(full) => full.longest_wait(),
            None if parameters.clock.is_plain() => 0,
            None => flits_of_port(router),
        };
        let horizon = delays.greatest + longest_wait + window + 1;
        let mut compiled = Self { partition, tiles, crossings, delays, parameters, packets_per_buffer, horizon, credits_of_port };
        compiled.parameters = compiled.parameters_of::<L>(0);
        let block_shift = compiled.parameters.block_shift;
        let fits = |events_of_port: u32| L::Wheel::fits(horizon, slots as u32, block_shift, (1 << vc_shift) / events_of_port);
        if !fits(1) || !fits(credits_of_port) {
            let greatest = compiled.delays.greatest;
            let reason =
                format!("{ports} ports and channels of up to {greatest} cycles need more event lists than the flit engine can name");
            return Err(Refusal::new("network", reason));
        }
        Ok(compiled)
    }

    /// The parameters of a tile.
    pub(crate) fn parameters_of<L: RouterState>(&self, tile: usize) -> Parameters {
        let addresses = &self.tiles[tile];
        let block_ports_shift = addresses.block_shift - L::Mask::SHIFT;
        Parameters {
            block_shift: addresses.block_shift,
            share: addresses.share.clone(),
            first_terminal_port: addresses.first_terminal_port,
            router_blocks: addresses.first_terminal_port >> block_ports_shift,
            blocks: (addresses.first_terminal_port + addresses.share.terminals.len() as u32).div_ceil(1 << block_ports_shift),
            ..self.parameters.clone()
        }
    }
}

/// Cuts the network of a scenario into `tiles` tiles, fewer where it allows no more, by the work that is expected.
fn partition(scenario: &Scenario, tiles: u32) -> Partition {
    // Lookahead at departure reads the downstream router; express channels read the arrivals of the next cycle.
    let is_express = scenario.router.predictor == kasuri_network::predictor::EXPRESS;
    // A channel that dies concerns the buffers at both its ends.
    let looks_around = is_express || facts::decides_on_departure(scenario) || scenario.failure.is_some();
    let tiles = if looks_around { 1 } else { tiles };
    cut(scenario, tiles, || {
        let busy = facts::busy_terminals(scenario, tiles);
        Work::expected(&scenario.network, &|terminal: TerminalId| busy.as_ref().is_none_or(|busy| busy[terminal.index()]))
    })
}

/// Cuts it into tiles of about as much of this work each.
fn cut(scenario: &Scenario, tiles: u32, work: impl FnOnce() -> Work) -> Partition {
    let of_host = scenario.hosts.map_or(1, |hosts| hosts.terminals);
    Partition::new(&scenario.network, tiles, facts::needs_central_edge(scenario), of_host, work)
}
