//! The invariants that a `paranoid` run checks: flits and credits are conserved, lists agree with the state.

use crate::record::marks::NONE;
use crate::record::vc_mask::VcMask;
use crate::record::wheel::Wheel;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use kasuri_model::engine::EngineError;

/// By tile and slot: flits and credits that are on their way to it.
struct OnTheWay {
    flits: Vec<Vec<u32>>,
    credits: Vec<Vec<u32>>,
}

impl OnTheWay {
    /// Counts them; what is to cross a border goes to the slot behind it.
    fn of<L: RouterState>(tiles: &[Tile<'_, L>]) -> Self {
        let none = || tiles.iter().map(|tile| vec![0u32; tile.wiring.links.len() << L::Mask::SHIFT]).collect();
        let mut all = Self { flits: none(), credits: none() };
        for (tile, number) in tiles.iter().zip(0..) {
            for slot in tile.in_flight.arrivals.waiting() {
                let (to, slot) = tile.in_flight.border.behind::<L>(number, slot);
                all.flits[to as usize][slot as usize] += 1;
            }
            for slot in tile.in_flight.credits.waiting() {
                let (to, slot) = tile.in_flight.border.upstream_of::<L>(number, slot);
                all.credits[to as usize][slot as usize] += 1;
            }
            // A copy that has left is a credit that comes back.
            for output in tile.prediction.iter().flat_map(|unit| unit.copies.outputs()) {
                all.credits[number as usize][output as usize] += 1;
            }
        }
        all
    }
}

/// Checks conservation between two windows, of tiles with so many flits in buffers and on channels, and of packets that have not arrived.
///
/// # Errors
/// Which law is broken.
pub(crate) fn check<L: RouterState>(tiles: &[Tile<'_, L>], cycle: u64, flits_inside: u64, flits_in_flight: u64) -> Result<(), EngineError> {
    Laws { tiles, cycle, flits_inside, flits_in_flight }.check()
}

/// What is checked.
struct Laws<'t, 'a, L: RouterState> {
    tiles: &'t [Tile<'a, L>],
    cycle: u64,
    flits_inside: u64,
    flits_in_flight: u64,
}

impl<L: RouterState> Laws<'_, '_, L> {
    fn check(&self) -> Result<(), EngineError> {
        let unbalanced = |what: String| EngineError::Unbalanced { cycle: self.cycle, what };
        if let Some(broken) = self.tiles.iter().find_map(|tile| tile.edge.feed().broken(self.cycle)) {
            return Err(unbalanced(broken));
        }
        let moving = OnTheWay::of(self.tiles);
        self.check_credits(&moving).map_err(unbalanced)?;
        self.check_flits(&moving).map_err(unbalanced)?;
        if let Some(wrong) = self.tiles.iter().find_map(|tile| tile.prediction.as_ref().and_then(|unit| unit.wrongs())) {
            return Err(unbalanced(wrong));
        }
        self.tiles.iter().try_for_each(Tile::check_ready).map_err(unbalanced)
    }

    /// For every channel and virtual channel: credits upstream + credits on their way + flits on their way + flits buffered =
    /// the depth of the buffer.
    fn check_credits(&self, moving: &OnTheWay) -> Result<(), String> {
        let sunk: Vec<Vec<u32>> = self.tiles.iter().map(Tile::sunk_flits).collect();
        for (tile, number) in self.tiles.iter().zip(0u32..) {
            let terminals = tile.first_terminal_slot();
            for port in 0..tile.statistics.sent.len() as u32 {
                let link = tile.wiring.links[port].flit_link;
                if link == NONE {
                    continue;
                }
                for vc in 0..tile.parameters.virtual_channels {
                    let slot = port << L::Mask::SHIFT | vc;
                    let (to, downstream) = tile.in_flight.border.behind::<L>(number, link + vc);
                    let other = &self.tiles[to as usize];
                    let buffered = match downstream.checked_sub(other.first_terminal_slot()) {
                        Some(sink) => sunk[to as usize][sink as usize],
                        None => other.layout.flits(downstream),
                    };
                    let held = match slot.checked_sub(terminals) {
                        Some(source) => u32::from(tile.terminals.injection[source].credits),
                        None => tile.layout.credits(slot),
                    };
                    let credits = moving.credits[number as usize][slot as usize];
                    let total = held + credits + moving.flits[to as usize][downstream as usize] + buffered;
                    if total != u32::from(tile.parameters.buffer_flits) {
                        let name =
                            tile.channel_of_port(port).map(|channel| tile.scenario.network.channel_name(channel)).unwrap_or_default();
                        let depth = tile.parameters.buffer_flits;
                        return Err(format!("{name}, virtual channel {vc}: credits and flits make {total}, the buffer holds {depth}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Flits injected less flits delivered are in buffers or on channels; packets begun less flits delivered are on their way.
    fn check_flits(&self, moving: &OnTheWay) -> Result<(), String> {
        let in_buffers = |tile: &Tile<'_, L>| (0..tile.first_terminal_slot()).map(|slot| u64::from(tile.layout.flits(slot))).sum::<u64>();
        let buffered: u64 = self.tiles.iter().map(in_buffers).sum();
        let on_channels: u64 = moving.flits.iter().flatten().map(|&flits| u64::from(flits)).sum();
        let memories = self.tiles.iter().filter_map(|tile| tile.terminals.memories.as_ref());
        let waiting: u64 = memories.flat_map(|memories| memories.waiting()).map(|&flits| u64::from(flits)).sum();
        let (found, inside) = (buffered + on_channels + waiting, self.flits_inside);
        if found != inside {
            return Err(format!("{inside} flits entered and did not leave, {found} are found"));
        }
        let (found, counted) = (self.tiles.iter().map(Tile::flits_of_packets).sum::<u64>(), self.flits_in_flight);
        if found == counted { Ok(()) } else { Err(format!("packets with {counted} flits are on their way, those found have {found}")) }
    }
}

impl<L: RouterState> Tile<'_, L> {
    /// Flits of the packets that have a number, without those that have arrived.
    fn flits_of_packets(&self) -> u64 {
        let all: u64 = self.packets.live().map(|(packet, _)| u64::from(packet.flits)).sum();
        let arrived: u64 = self.terminals.ejection.iter().filter(|sink| sink.left > 0).map(|sink| u64::from(sink.index)).sum();
        all - arrived
    }

    /// By sink's slot, counted from the first: flits that stay in its buffer, those of a packet that is arriving, too.
    fn sunk_flits(&self) -> Vec<u32> {
        let held = self.edge.feed().held_flits(self.terminals.ejection.len());
        let mut sunk = held.unwrap_or_else(|| vec![0; self.terminals.ejection.len()]);
        for (flits, sink) in sunk.iter_mut().zip(self.terminals.ejection.iter()).filter(|(_, sink)| sink.held) {
            *flits += u32::from(sink.index);
        }
        for (flits, waiting) in sunk.iter_mut().zip(self.terminals.memories.iter().flat_map(|memories| memories.waiting())) {
            *flits += u32::from(*waiting);
        }
        sunk
    }

    /// Holder and held know each other, what is held is not free, and a virtual channel bids for the switch exactly if it is
    /// held, its holder has a flit and it has a credit.
    fn check_ready(&self) -> Result<(), String> {
        for output in 0..self.first_terminal_slot() {
            let (port, vc) = (output >> L::Mask::SHIFT, output & (L::Mask::BITS - 1));
            if self.wiring.links[port].flit_link == NONE || vc >= self.parameters.virtual_channels {
                continue;
            }
            let holder = self.layout.holder(output);
            let held = holder != NONE;
            if held && (self.layout.held_output(holder) != output || !self.layout.free(port).and(L::Mask::bit(vc)).is_empty()) {
                return Err(format!("output slot {output} is held by {holder}, which holds {}", self.layout.held_output(holder)));
            }
            let due = held && self.layout.credits(output) > 0 && self.layout.flits(holder) > 0;
            if self.layout.is_ready(output).is_some_and(|ready| ready != due) {
                return Err(format!("output slot {output}: bids for the switch: {}", !due));
            }
        }
        Ok(())
    }
}
