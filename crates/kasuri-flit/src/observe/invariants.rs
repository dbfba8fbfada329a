//! The invariants that a `paranoid` run checks: flits and credits are conserved, lists agree with the state.

use crate::fabric::layout::RouterLayout;
use crate::fabric::vc_mask::VcMask;
use crate::state::wheel::Wheel;
use crate::state::{NONE, Simulation};
use kasuri_model::engine::EngineError;

impl<L: RouterLayout> Simulation<'_, L> {
    /// Checks conservation between two windows.
    ///
    /// # Errors
    /// Which law is broken.
    pub(crate) fn check_invariants(&self) -> Result<(), EngineError> {
        let slots = self.wiring.links.len() << L::Mask::SHIFT;
        let (mut flits, mut credits) = (vec![0u32; slots], vec![0u32; slots]);
        for slot in self.in_flight.arrivals.waiting() {
            flits[slot as usize] += 1;
        }
        for slot in self.in_flight.credits.waiting() {
            credits[slot as usize] += 1;
        }
        if let Some(broken) = self.edge.feed().broken() {
            return Err(self.unbalanced(broken));
        }
        self.check_credits(&flits, &credits)?;
        self.check_flits(&flits)?;
        if let Some(wrong) = self.prediction.as_ref().and_then(|unit| unit.wrongs()) {
            return Err(self.unbalanced(wrong));
        }
        self.check_ready()
    }

    fn unbalanced(&self, what: String) -> EngineError {
        EngineError::Unbalanced { cycle: self.cycle, what }
    }

    /// For every channel and virtual channel: credits upstream + credits on their way + flits on their way + flits buffered =
    /// the depth of the buffer.
    fn check_credits(&self, flits: &[u32], credits: &[u32]) -> Result<(), EngineError> {
        let terminals = self.first_terminal_slot();
        let held = self.edge.feed().held_flits(self.terminals.ejection.len());
        let sunk = |slot: u32| {
            let sink = &self.terminals.ejection[slot];
            // Of a packet that is arriving, too.
            held.as_ref().map_or(0, |held| held[slot as usize]) + if sink.held { u32::from(sink.index) } else { 0 }
        };
        for port in 0..self.wiring.links.len() as u32 {
            let link = self.wiring.links[port].flit_link;
            if link == NONE {
                continue;
            }
            for vc in 0..self.parameters.virtual_channels {
                let (slot, downstream) = (port << L::Mask::SHIFT | vc, link + vc);
                let buffered = if downstream >= terminals { sunk(downstream - terminals) } else { self.layout.flits(downstream) };
                let held = if slot >= terminals {
                    u32::from(self.terminals.injection[slot - terminals].credits)
                } else {
                    self.layout.credits(slot)
                };
                let total = held + credits[slot as usize] + flits[downstream as usize] + buffered;
                if total != u32::from(self.parameters.buffer_flits) {
                    let name = self.channel_of_port(port).map(|channel| self.scenario.network.channel_name(channel)).unwrap_or_default();
                    return Err(self.unbalanced(format!(
                        "{name}, virtual channel {vc}: credits and flits make {total}, the buffer holds {}",
                        self.parameters.buffer_flits
                    )));
                }
            }
        }
        Ok(())
    }

    /// Flits injected less flits delivered are in buffers or on channels.
    fn check_flits(&self, flits: &[u32]) -> Result<(), EngineError> {
        let buffered: u64 = (0..self.first_terminal_slot()).map(|slot| u64::from(self.layout.flits(slot))).sum();
        let moving: u64 = flits.iter().map(|&flits| u64::from(flits)).sum();
        if buffered + moving != self.statistics.flits_inside {
            return Err(self.unbalanced(format!(
                "{} flits entered and did not leave, {} are found",
                self.statistics.flits_inside,
                buffered + moving
            )));
        }
        Ok(())
    }

    /// Holder and held know each other, what is held is not free, and a virtual channel bids for the switch exactly if it is
    /// held, its holder has a flit and it has a credit.
    fn check_ready(&self) -> Result<(), EngineError> {
        for output in 0..self.first_terminal_slot() {
            let (port, vc) = (output >> L::Mask::SHIFT, output & (L::Mask::BITS - 1));
            if self.wiring.links[port].flit_link == NONE || vc >= self.parameters.virtual_channels {
                continue;
            }
            let holder = self.layout.holder(output);
            let held = holder != NONE;
            if held && (self.layout.held_output(holder) != output || !self.layout.free(port).and(L::Mask::bit(vc)).is_empty()) {
                return Err(
                    self.unbalanced(format!("output slot {output} is held by {holder}, which holds {}", self.layout.held_output(holder)))
                );
            }
            let due = held && self.layout.credits(output) > 0 && self.layout.flits(holder) > 0;
            if self.layout.is_ready(output).is_some_and(|ready| ready != due) {
                return Err(self.unbalanced(format!("output slot {output}: bids for the switch: {}", !due)));
            }
        }
        Ok(())
    }
}
