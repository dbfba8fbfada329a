//! Links and routers that fail during the run.
//!
//! What waits for a dead channel or is on it is lost, and so is what comes to it before the failure is known. Of a packet that is cut in two the
//! part behind the failure is lost; the part before goes on, and its receiver finds it damaged. What stands in the router behind a dead channel
//! goes on. A router that is dead has lost all that was in it. What comes up again carries what is sent from then on, once routers know of it.

use super::packets::NONE;
use super::run::{Rare, Run};
use kasuri_model::scenario::{Failure, Scenario};
use kasuri_network::id::ChannelId;
use std::sync::Arc;

/// What fails and comes up again, and what is known of it.
#[derive(Debug)]
pub(super) struct Failures {
    pub(super) failure: Option<Arc<Failure>>,
    /// The last epoch of which routers know, from 1; 0 before the first.
    pub(super) known: u32,
}

impl Failures {
    pub(super) fn of(scenario: &Scenario) -> Self {
        Self { failure: scenario.failure.clone(), known: 0 }
    }
}

impl<'a> Run<'a> {
    /// Notes when something fails or comes up again, and when routers hear of it.
    pub(super) fn note_failures(&mut self) {
        let epochs = self.scenario.failure.iter().flat_map(|failure| &failure.epochs);
        for (number, epoch) in (0..).zip(epochs) {
            self.rare.note(epoch.cycle, Rare::Changes(number));
            self.rare.note(epoch.detected, Rare::Known(number));
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
    pub(super) fn note_tail(&mut self, channel: u32, place: u32, tail_seen: u64) {
        if self.failures.failure.is_none() {
            return;
        }
        let now = self.calendar.now();
        let tails = &mut self.ports[channel as usize].tails;
        while tails.front().is_some_and(|&(seen, _)| seen <= now) {
            tails.pop_front();
        }
        tails.push_back((tail_seen, place));
    }

    /// A channel dies with what is on it and before it.
    fn kill(&mut self, channel: u32) {
        let now = self.calendar.now();
        let port = &mut self.ports[channel as usize];
        port.is_dead = true;
        let cut: Vec<u32> = port.tails.drain(..).filter(|&(seen, _)| seen > now).map(|(_, place)| place).collect();
        let (on_link, stored): (Vec<_>, Vec<_>) = port.link.drain(..).partition(|(_, place)| cut.contains(place));
        port.link.extend(stored);
        let waiting: Vec<u32> = port.queue.drain(..).collect();
        let (router, queued) = (port.router, std::mem::take(&mut port.queued));
        self.counts.queue_changed(router, queued as u32, false, now);
        for &place in &cut {
            if on_link.iter().all(|&(_, other)| other != place) {
                self.packets.get_mut(place).is_cut = true;
            }
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
        on_link.into_iter().for_each(|(_, place)| self.lose(place));
    }

    /// A dead router loses what has come to it and is in no queue yet.
    fn clear_inputs(&mut self, router: u32) {
        for channel in 0..self.ports.len() {
            let port = &mut self.ports[channel];
            if port.is_dead && matches!(port.end, super::ports::End::Router(end, _) if end.0 == router) {
                let stored: Vec<_> = port.link.drain(..).collect();
                stored.into_iter().for_each(|(_, place)| self.lose(place));
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
