//! Links and routers that fail during the run.
//!
//! What waits for a dead channel or is on it is lost, and so is what comes to it before the failure is known. Of a packet that is cut in two the
//! part behind the failure is lost; the part before goes on, and its receiver finds it damaged. What stands in the router behind a dead channel
//! goes on. A router that is dead has lost all that was in it. What comes up again carries what is sent from then on, once routers know of it.

use super::control::ControlEvent;
use super::packets::NONE;
use super::ports::{End, Tail};
use super::state::Run;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::ChannelId;

impl<'a> Run<'a> {
    /// Notes when something fails or comes up again, and when routers hear of it.
    pub(super) fn note_failures(&mut self) {
        let epochs = self.scenario.failure.iter().flat_map(|failure| &failure.epochs);
        for (number, epoch) in (0..).zip(epochs) {
            self.control.note(epoch.cycle, ControlEvent::Changes(number));
            self.control.note(epoch.detected, ControlEvent::Known(number));
        }
    }

    /// Channels and routers die, and others come up again.
    pub(super) fn change(&mut self, epoch: u32) {
        let Some(failure) = self.failures.failure.clone() else { return };
        let epoch = &failure.epochs[epoch as usize];
        for channel in 0..self.ports.len() as u32 {
            let is_dead = epoch.channels.binary_search(&ChannelId(channel)).is_ok();
            if is_dead && !self.ports[channel as usize].is_dead {
                self.kill(channel);
            }
            self.ports[channel as usize].is_dead = is_dead;
        }
        for &router in &epoch.routers {
            self.clear_inputs(router.0);
        }
    }

    /// Routers know what is up, and route by it.
    pub(super) fn learn(&mut self, epoch: u32) {
        let scenario: &'a Scenario = self.scenario;
        if let Some(failure) = &scenario.failure {
            self.failures.known = epoch + 1;
            self.routing = &*failure.epochs[epoch as usize].routing;
        }
    }

    /// Notes of a packet that is sent when its tail will have come to the end of the channel.
    pub(super) fn note_tail(&mut self, channel: u32, place: u32, seen: u64) {
        if self.failures.failure.is_none() {
            return;
        }
        let now = self.calendar.now();
        let packet = self.packets.get(place);
        let tails = &mut self.ports[channel as usize].tails;
        while tails.front().is_some_and(|tail| tail.seen <= now) {
            tails.pop_front();
        }
        tails.push_back(Tail { seen, place, source: packet.source, serial: packet.serial });
    }

    /// Removes the packets of a channel from place `from` on, with the event of the first one if that is among them.
    fn clear_link(&mut self, channel: u32, from: usize) -> Vec<u32> {
        let link = &mut self.ports[channel as usize].link;
        let first = link.front().copied().filter(|_| from == 0);
        let cleared = link.drain(from..).map(|(_, place)| place).collect();
        if let Some((due, _)) = first {
            let was_planned = self.calendar.withdraw(self.ports.len() as u32 + channel, due);
            debug_assert!(was_planned, "the first packet of a channel has its event");
        }
        cleared
    }

    /// A channel dies with what is on it and before it.
    fn kill(&mut self, channel: u32) {
        let now = self.calendar.now();
        let port = &mut self.ports[channel as usize];
        port.is_dead = true;
        let mut cut: Vec<Tail> = port.tails.drain(..).filter(|tail| tail.seen > now).collect();
        cut.retain(|tail| {
            let packet = self.packets.get(tail.place);
            (packet.source, packet.serial) == (tail.source, tail.serial)
        });
        // Packets with tails at the end may still wait there for the router: they were sent before the others.
        let stored = port.link.iter().take_while(|(_, place)| cut.iter().all(|tail| tail.place != *place)).count();
        let waiting: Vec<u32> = port.queue.drain(..).collect();
        let (router, queued) = (port.router, std::mem::take(&mut port.queued));
        self.counts.queue_changed(router, queued as u32, false, now);
        let on_link = self.clear_link(channel, stored);
        for tail in cut.iter().filter(|tail| !on_link.contains(&tail.place)) {
            self.packets.get_mut(tail.place).is_cut = true;
        }
        for place in waiting {
            let (from, flits) = {
                let packet = self.packets.get(place);
                (packet.came_by, packet.flits)
            };
            if from != NONE && self.bounds_inputs() {
                self.give_room(from, flits);
            }
            self.lose(place);
        }
        on_link.into_iter().for_each(|place| self.lose(place));
    }

    /// A dead router loses what has come to it and is in no queue yet.
    fn clear_inputs(&mut self, router: u32) {
        for channel in 0..self.ports.len() as u32 {
            let port = &self.ports[channel as usize];
            if port.is_dead && matches!(port.end, End::Router(end, _) if end.0 == router) {
                self.clear_link(channel, 0).into_iter().for_each(|place| self.lose(place));
            }
        }
    }

    /// A failure takes a packet along.
    pub(super) fn lose(&mut self, place: u32) {
        if let Some(lost) = &mut self.counts.queues.lost {
            *lost += 1;
        }
        let resend_after = self.failures.failure.as_ref().and_then(|failure| failure.resend_after);
        self.end_or_resend(place, resend_after);
    }
}
