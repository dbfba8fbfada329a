//! Channels that die, in the full layout.

use crate::fabric::layouts::full::{Full, InputVc};
use crate::record::marks::{DISCARDED, NONE};
use crate::record::vc_mask::VcMask;
use crate::state::tile::Tile;
use kasuri_model::router::VcRelease;

/// What a dying channel does to the packets that were announced to the buffer behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// The place of the packet that it tears, if any.
    pub(super) torn: Option<usize>,
    /// The place of the first packet of which nothing has arrived.
    pub(super) first_lost: usize,
    /// Of the flits on the channel, those that belong to the packet that is torn.
    pub(super) kept: usize,
}

impl Cut {
    /// By the flits of each packet and those of the first that have not left the buffer, the flits in the buffer, and those on the channel.
    pub(super) fn of(flits: &[u32], left_of_first: u32, in_buffer: u32, on_channel: usize) -> Self {
        let mut found = Self { torn: None, first_lost: flits.len(), kept: 0 };
        let mut in_buffer = in_buffer;
        for (place, &length) in flits.iter().enumerate() {
            let left = if place == 0 { left_of_first } else { length };
            let missing = left - left.min(in_buffer);
            in_buffer -= left - missing;
            if missing == length {
                found.first_lost = place;
                break;
            }
            if missing > 0 {
                (found.torn, found.kept) = (Some(place), on_channel.min(missing as usize));
            }
        }
        found
    }
}

impl<M: VcMask> Tile<'_, Full<M>> {
    /// Is the router dead?
    pub(super) fn is_dead(&self, number: usize) -> bool {
        self.routing.failures.as_ref().is_some_and(|failures| failures.dead_routers[number])
    }

    /// The channel that leaves by a port dies.
    pub(super) fn cut_port(&mut self, port: u32) {
        let number = self.layout.unit_of_port[port] as usize;
        for vc in 0..self.parameters.virtual_channels {
            self.cut_channel(number, port << M::SHIFT | vc);
        }
        let mut waiting = std::mem::take(&mut self.layout.units[number].waiting);
        waiting.retain(|&slot| {
            let stays = self.keep_living(number, slot);
            if !stays {
                self.throw_away(number, slot);
            }
            stays
        });
        self.layout.units[number].waiting = waiting;
        self.layout.wake(port);
    }

    /// One virtual channel of it: tears the packet that is across, and takes back what is on the channel of others.
    fn cut_channel(&mut self, number: usize, output: u32) {
        let downstream = self.wiring.links[output >> M::SHIFT].flit_link + (output & (M::BITS - 1));
        let packets = self.buffers.rings.packets(&self.layout.input[downstream].packet.queue, downstream);
        // What arrives in the cycle that begins has arrived.
        let mut on_channel = self.in_flight.arrivals.times_of(self.cycle, downstream);
        let arrives = usize::from(on_channel.first() == Some(&self.cycle));
        on_channel.drain(..arrives);
        let cut = self.cut_of(downstream, &packets, arrives, on_channel.len());
        if let Some(torn) = cut.torn {
            self.tear(packets[torn]);
        }
        for &time in &on_channel[cut.kept..] {
            self.in_flight.arrivals.remove(time, downstream);
        }
        let gone = on_channel.len() - cut.kept;
        self.layout.output[output].credits += gone as u32;
        self.statistics.balance.flits_inside -= gone as i64;
        for &packet in packets[cut.first_lost..].iter().rev() {
            self.buffers.rings.take_back(&mut self.layout.input[downstream].packet.queue);
            self.lose_before_arrival(number, output, packet);
        }
        let account = self.layout.output[output];
        let all_back = account.credits == u32::from(self.parameters.buffer_flits);
        if account.holder == NONE && (all_back || self.parameters.release == VcRelease::Tail) {
            self.layout.set_free_channel(output);
        }
    }

    /// What the cut does to the packets that were announced to a buffer.
    fn cut_of(&self, downstream: u32, packets: &[u32], arrives: usize, on_channel: usize) -> Cut {
        let flits: Vec<u32> = packets.iter().map(|&packet| u32::from(self.packets[packet].flits)).collect();
        let InputVc { left, flits: in_buffer, .. } = self.layout.input[downstream];
        // Nothing is noted of a packet that has not been routed yet: all of it is left.
        let left = if left > 0 { u32::from(left) } else { flits.first().copied().unwrap_or(0) };
        Cut::of(&flits, left, u32::from(in_buffer) + arrives as u32, on_channel)
    }

    /// A packet of which nothing has passed is lost: at once if all of it has been sent, else as the rest of it comes.
    fn lose_before_arrival(&mut self, number: usize, output: u32, packet: u32) {
        let holder = self.layout.output[output].holder;
        if holder != NONE && self.front_packet(holder) == packet {
            self.give_channel_up(number, holder, output);
        } else {
            let flits = self.packets[packet].flits;
            self.lose(packet, flits, self.cycle);
        }
    }

    /// A packet holds the dead channel no more: what is left of it is thrown away.
    fn give_channel_up(&mut self, number: usize, holder: u32, output: u32) {
        let unit = &mut self.layout.units[number];
        unit.active.retain(|&slot| slot != holder);
        unit.kept.retain(|&slot| slot != holder);
        self.layout.output[output].holder = NONE;
        self.throw_away(number, holder);
    }

    /// Of the candidates of a head those stay whose channels live. Does any?
    pub(super) fn keep_living(&mut self, number: usize, slot: u32) -> bool {
        let Some(failures) = &self.routing.failures else { return true };
        let base = self.layout.units[number].base;
        let lives = |port: u16| !failures.dead[(base + u32::from(port)) as usize];
        match self.layout.heads.routes.get_mut(slot as usize) {
            Some(candidates) => {
                candidates.retain(|candidate| lives(candidate.port));
                !candidates.is_empty()
            }
            None => lives(self.layout.input[slot].candidate.port),
        }
    }

    /// The packet at the front of a buffer goes nowhere.
    pub(super) fn throw_away(&mut self, number: usize, slot: u32) {
        if let Some(claims) = &mut self.routing.claims {
            claims.give_up(slot);
        }
        self.layout.input[slot].output = DISCARDED;
        self.layout.units[number].thrown_away.push(slot);
    }

    /// Flits of packets that are thrown away leave their buffers, each in the place of one that crosses the switch. Did any?
    pub(super) fn throw_flits_away(&mut self, number: usize, step: u64, now: u64) -> bool {
        if self.layout.units[number].thrown_away.is_empty() {
            return false;
        }
        let mut slots = std::mem::take(&mut self.layout.units[number].thrown_away);
        let mut any = false;
        slots.retain(|&slot| {
            let row = self.layout.switch_input(number, slot) as usize;
            if self.layout.input[slot].flits == 0 || self.layout.step.taken.rows[row] {
                return true;
            }
            (self.layout.step.taken.rows[row], any) = (true, true);
            self.throw_flit_away(number, slot, step, now);
            self.layout.input[slot].output == DISCARDED
        });
        self.layout.units[number].thrown_away = slots;
        any
    }

    fn throw_flit_away(&mut self, number: usize, slot: u32, step: u64, now: u64) {
        if let Some(came) = self.layout.came.get_mut(slot as usize) {
            came.pop_front();
        }
        let input = &mut self.layout.input[slot];
        input.flits -= 1;
        input.left -= 1;
        let left = input.left;
        self.statistics.balance.flits_inside -= 1;
        self.send_credit(slot, step, now);
        if left == 0 {
            let packet = self.front_packet(slot);
            self.layout.input[slot].output = NONE;
            self.leave_queue(slot);
            self.begin_next(number, slot);
            let flits = self.packets[packet].flits;
            self.lose(packet, flits, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cut;

    /// Three packets of four flits were announced. What has arrived of the first, on the channel and not, says which one is torn.
    #[test]
    fn a_cut_tears_the_packet_that_is_across() {
        let cut = |left_of_first, in_buffer, on_channel| Cut::of(&[4, 4, 4], left_of_first, in_buffer, on_channel);
        let found = |torn, first_lost, kept| Cut { torn, first_lost, kept };
        assert_eq!(cut(4, 0, 5), found(None, 0, 0), "nothing has arrived");
        assert_eq!(cut(4, 1, 5), found(Some(0), 1, 3), "one flit of the first; the second is on the channel");
        assert_eq!(cut(2, 0, 3), found(Some(0), 1, 2), "two have arrived and left");
        assert_eq!(cut(2, 2, 3), found(None, 1, 0), "all of the first");
        assert_eq!(cut(2, 5, 1), found(Some(1), 2, 1), "three of the second");
        assert_eq!(cut(1, 9, 0), found(None, 3, 0), "all of them");
    }
}
