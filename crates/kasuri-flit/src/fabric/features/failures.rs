//! Links and routers that fail during the run, and come up again.
//!
//! What is on a channel when it dies is lost. Of a packet that a failure tears, of which some flits have come to the end of the channel and some
//! have not, those that have go on; so that they end as packets do, empty flits follow them in the place of the others, and the receiver finds the
//! packet damaged. A head that is to leave by a dead channel is thrown away where it stands, flit by flit as its packet comes, one in a cycle
//! from each input of the switch; a router knows at once which of its own channels are dead, and where its routing offers others it takes those.
//! All that a dead router has in it goes the same way. Other routers go on as before until they hear of it: then all route by what is left.
//! Credits stay with their buffers: a channel that comes up again begins with those that its buffers have places for.
//!
//! Touches routing (heads are thrown away in place of waiting), the state of channels between two cycles, ejection (damaged packets are refused) and
//! the feeds, which have packets sent again.

use crate::fabric::cycle::RouterCycle;
use crate::record::drawn::{Attempt, Drawn};
use crate::record::event::{Event, Loss};
use crate::record::vc_mask::VcMask;
use crate::state::failures::Change;
use crate::state::layout::RouterState;
use crate::state::route_memo::RouteMemo;
use crate::state::tile::Tile;
use kasuri_model::scenario::{Epoch, Scenario};
use kasuri_network::id::TerminalId;
use kasuri_network::network::Endpoint;
use kasuri_network::routing::{SourceChoice, packet_key};

impl<'a, L: RouterCycle> Tile<'a, L> {
    /// Something fails or comes up again, or is known, before the cycle that begins.
    pub(crate) fn change(&mut self, change: Change) {
        let scenario: &'a Scenario = self.scenario;
        let Some(failure) = &scenario.failure else { return };
        match change {
            Change::Begins(epoch) => self.begin_epoch(&failure.epochs[epoch]),
            Change::IsKnown(epoch) => self.route_anew(&failure.epochs[epoch]),
        }
    }

    fn begin_epoch(&mut self, epoch: &Epoch) {
        let Some(failures) = &mut self.routing.failures else { return };
        let before = failures.dead.clone();
        failures.dead.fill(false);
        for &channel in &epoch.channels {
            let Endpoint::Router(router, port) = self.scenario.network.source(channel) else { continue };
            failures.dead[(self.wiring.first_port(router.0) + u32::from(port)) as usize] = true;
        }
        failures.dead_routers.fill(false);
        for &router in &epoch.routers {
            failures.dead_routers[self.wiring.own_number(router.0) as usize] = true;
        }
        let dead = (0..).zip(before.iter().zip(&failures.dead)).filter(|(_, (before, now))| !**before && **now);
        let ports: Vec<u32> = dead.map(|(port, _)| port).collect();
        ports.into_iter().for_each(|port| L::kill_port(self, port));
    }

    /// From now on packets go by the routing on what is left, those that are under way too, as if they had begun with it.
    fn route_anew(&mut self, epoch: &'a Epoch) {
        let (network, routers) = (&self.scenario.network, self.parameters.share.routers.len());
        self.routing.function = &*epoch.routing;
        self.routing.memo = RouteMemo::new(
            &*epoch.routing,
            network,
            routers,
            self.parameters.first_terminal_port << L::Mask::SHIFT,
            &self.routing.channels_of_class,
        );
        for packet in self.packets.live_mut() {
            let (source, destination) = (TerminalId(packet.source), TerminalId(packet.destination));
            let mut choice = SourceChoice::new(packet_key(self.routing.seed, packet.source, packet.serial), packet.serial);
            packet.route_state = epoch.routing.initial_state(source, destination, &mut choice);
        }
    }
}

impl<L: RouterState> Tile<'_, L> {
    /// A packet is across a channel that dies: from now on its flits are no longer counted where they arrive.
    pub(crate) fn tear(&mut self, packet: u32) {
        self.packets.damage(packet);
        self.terminals.ejection.iter_mut().filter(|sink| sink.left > 0 && sink.packet == packet).for_each(|sink| sink.counted = false);
    }

    /// A packet is lost, of which so many flits have not come to its terminal.
    pub(crate) fn lose(&mut self, packet: u32, missing: u16, now: u64) {
        let record = self.packets[packet];
        let asked = self.packets.origins.decisive(&record, packet);
        let has_waited = self.packets.origins.has_waited(packet);
        let drawn = Drawn {
            created: record.created,
            asked,
            destination: TerminalId(record.destination),
            flits: u32::from(record.flits),
            class: record.class,
            is_reply: record.is_reply,
            again: Attempt::Retransmission { has_waited },
            tag: self.packets.tag(packet),
        };
        self.statistics.balance.flits_in_flight -= i64::from(missing);
        let is_measured = self.packets.is_waited_for(&self.statistics.counting, packet);
        self.packets.release(packet);
        if let Some(failures) = &mut self.routing.failures {
            failures.lost += 1;
        }
        self.in_flight.events.list.push(Event::Loss(Loss { drawn, source: record.source, serial: record.serial, now, is_measured }));
    }
}
