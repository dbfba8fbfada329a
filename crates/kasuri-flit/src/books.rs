//! The books of a `paranoid` run: flits and credits are conserved, lists agree with the state.

use crate::state::{NONE, Simulation};
use crate::vc_mask::VcMask;
use kasuri_model::engine::EngineError;

impl<M: VcMask> Simulation<'_, M> {
    /// Checks conservation between two windows.
    ///
    /// # Errors
    /// Which law is broken.
    pub(crate) fn balance_books(&self) -> Result<(), EngineError> {
        let slots = self.input.len();
        let (mut flits, mut credits) = (vec![0u32; slots], vec![0u32; slots]);
        for slot in self.arrivals.waiting() {
            flits[slot as usize] += 1;
        }
        for slot in self.credits.waiting() {
            credits[slot as usize] += 1;
        }
        self.check_credits(&flits, &credits)?;
        self.check_flits(&flits)?;
        self.check_ready()
    }

    fn unbalanced(&self, what: String) -> EngineError {
        EngineError::Unbalanced { cycle: self.cycle, what }
    }

    /// For every channel and virtual channel: credits upstream + credits on their way + flits on their way + flits buffered =
    /// the depth of the buffer.
    fn check_credits(&self, flits: &[u32], credits: &[u32]) -> Result<(), EngineError> {
        for port in 0..self.output_port.len() as u32 {
            let link = self.output_port[port].link;
            if link == NONE {
                continue;
            }
            for vc in 0..self.parameters.virtual_channels {
                let (slot, downstream) = (port << M::SHIFT | vc, link + vc);
                let at_sink = downstream >> M::SHIFT >= self.parameters.first_terminal_port;
                let buffered = if at_sink { 0 } else { u32::from(self.input[downstream].flits) };
                let total = u32::from(self.output[slot].credits) + credits[slot as usize] + flits[downstream as usize] + buffered;
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
        let routers = (self.parameters.first_terminal_port << M::SHIFT) as usize;
        let buffered: u64 = self.input.iter().take(routers).map(|input| u64::from(input.flits)).sum();
        let moving: u64 = flits.iter().map(|&flits| u64::from(flits)).sum();
        if buffered + moving != self.flits_inside {
            return Err(self.unbalanced(format!("{} flits entered and did not leave, {} are found", self.flits_inside, buffered + moving)));
        }
        Ok(())
    }

    /// A virtual channel is ready exactly if it is held, its holder has a flit and it has a credit.
    fn check_ready(&self) -> Result<(), EngineError> {
        let granted: Vec<u32> = self.tiles.iter().flat_map(|tile| tile.granted.as_slice().iter().copied()).collect();
        for port in 0..self.parameters.first_terminal_port {
            for vc in 0..self.parameters.virtual_channels {
                let slot = port << M::SHIFT | vc;
                let account = self.output[slot];
                let due = account.holder != NONE && account.credits > 0 && self.input[account.holder].flits > 0;
                let ready = !self.output_port[port].ready.and(M::bit(vc)).is_empty();
                if due != ready && !granted.contains(&slot) {
                    return Err(self.unbalanced(format!("port address {port}, virtual channel {vc}: ready is {ready}")));
                }
            }
        }
        Ok(())
    }
}
