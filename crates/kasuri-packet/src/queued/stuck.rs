//! Channels that pause each other for ever.

use super::state::Run;
use kasuri_network::id::ChannelId;

impl Run<'_> {
    /// Channels each of which is paused because of packets that wait for the next, the last because of the first; empty if there are none.
    ///
    /// A channel stays paused for ever if the packets that have come by it and wait for such channels are more by themselves than its router
    /// takes. So all that are paused are suspected, and those of which enough can still leave are struck off until none is left to strike.
    pub(super) fn paused_cycle(&self) -> Vec<(ChannelId, u16)> {
        let most = self.scenario.router.queue_flits.map_or(u64::MAX, u64::from);
        let mut stuck: Vec<bool> = self.ports.iter().map(|port| port.pause_asked).collect();
        loop {
            let mut held = vec![0_u64; self.ports.len()];
            for port in self.ports.iter().zip(&stuck).filter(|(_, stuck)| **stuck).map(|(port, _)| port) {
                for &place in &port.queue {
                    let packet = self.packets.get(place);
                    held[packet.came_by as usize] += u64::from(packet.flits);
                }
            }
            let before = stuck.iter().filter(|stuck| **stuck).count();
            stuck.iter_mut().zip(&held).for_each(|(stuck, &held)| *stuck &= held > most);
            if stuck.iter().filter(|stuck| **stuck).count() == before {
                break;
            }
        }
        self.paused_cycle_among(&stuck)
    }

    /// Follows channels that are stuck from each to one for which its packets wait.
    fn paused_cycle_among(&self, stuck: &[bool]) -> Vec<(ChannelId, u16)> {
        let mut waits_for = vec![None; self.ports.len()];
        for (channel, port) in self.ports.iter().enumerate().filter(|(channel, _)| stuck[*channel]) {
            for &place in &port.queue {
                waits_for[self.packets.get(place).came_by as usize].get_or_insert(channel);
            }
        }
        let Some(mut at) = stuck.iter().position(|stuck| *stuck) else { return Vec::new() };
        let mut seen = vec![None; self.ports.len()];
        let mut path = Vec::new();
        loop {
            if let Some(begin) = seen[at] {
                return path.split_off(begin);
            }
            seen[at] = Some(path.len());
            path.push((ChannelId(at as u32), 0));
            match waits_for[at] {
                Some(next) => at = next,
                None => return Vec::new(),
            }
        }
    }
}
