//! What a tile counts: samples of its buffers, the parts of intervals, and what a phase begins with.

use crate::record::marks::NONE;
use crate::record::packet::Packet;
use crate::record::vc_mask::VcMask;
use crate::state::layout::RouterState;
use crate::state::prediction::{CONNECTED, COUNTED};
use crate::state::tile::Tile;
use kasuri_model::engine::{Interval, Phase};
use kasuri_network::id::RouterId;

/// Cycles between two samples of buffer occupancy.
pub(crate) const OCCUPANCY_PERIOD: u64 = 256;

/// Cycles after which the ports' short counters are collected in any case: a flit a cycle fits into 32 bits for longer.
const COLLECTION_PERIOD: u64 = 1 << 30;

impl<L: RouterState> Tile<'_, L> {
    pub(crate) fn sample_occupancy(&mut self) {
        if !self.statistics.counting.rates {
            return;
        }
        let network = &self.scenario.network;
        let routers = self.parameters.share.routers.iter();
        for (&router, occupancy) in routers.zip(&mut self.statistics.occupancy.flits) {
            let base = self.wiring.first_port(router);
            let ports = network.port_count(RouterId(router));
            let slots = base << L::Mask::SHIFT..(base + ports) << L::Mask::SHIFT;
            *occupancy += slots.map(|slot| u64::from(self.layout.flits(slot))).sum::<u64>();
        }
        self.statistics.occupancy.samples += 1;
    }

    /// Time that is skipped because nothing is inside counts as samples of empty buffers.
    pub(crate) fn sample_idle(&mut self, from: u64, to: u64) {
        if self.statistics.counting.rates {
            self.statistics.occupancy.samples += to / OCCUPANCY_PERIOD - from / OCCUPANCY_PERIOD;
        }
    }

    /// The tile's part of the counts of an interval that ends now, with the ages of its packets or without.
    pub(crate) fn close_interval(&mut self, ages: bool) -> Interval {
        let now = self.cycle;
        self.take_mail();
        if now - self.wiring.collected_in >= COLLECTION_PERIOD {
            self.collect_counters();
        }
        if let Some(unit) = &mut self.prediction {
            unit.settle(now);
        }
        let mut interval = std::mem::take(&mut self.statistics.interval);
        self.statistics.interval.counted = interval.counted;
        self.statistics.counted_accepted += interval.accepted_flits * u64::from(self.statistics.counting.rates);
        interval.counted_accepted_flits = self.statistics.counted_accepted;
        interval.in_flight_age = if ages { self.in_flight_age() } else { 0 };
        interval.backlog_cycles = self.edge.feed().backlog(now).cycles(now);
        interval
    }

    /// The ages of the packets in flight, each as often as it has flits that have not arrived.
    fn in_flight_age(&self) -> u64 {
        let age = |packet: &Packet| self.cycle - packet.created.min(self.cycle);
        let all: u64 = self.packets.live().map(|(packet, _)| u64::from(packet.flits) * age(packet)).sum();
        let sinks = self.terminals.ejection.iter().filter(|sink| sink.left > 0);
        let arrived: u64 = sinks.map(|sink| u64::from(sink.index) * age(&self.packets[sink.packet])).sum();
        all - arrived
    }

    /// Moves the ports' short counters into the channels' and terminals' long ones: before a phase begins that counts otherwise, and at the
    /// end.
    pub(crate) fn collect_counters(&mut self) {
        self.wiring.collected_in = self.cycle;
        self.settle_sent();
        for port in 0..self.statistics.sent.len() as u32 {
            let mut sent = std::mem::take(&mut self.wiring.links[port].sent);
            if (port as usize) < self.wiring.before_channel.len() {
                // What has crossed the switch and stands before the channel is not sent yet.
                let period = if self.parameters.periodic { self.wiring.period[port] } else { 1 };
                let waiting = self.layout.before_channel(port, self.cycle, period);
                let before = std::mem::replace(&mut self.wiring.before_channel[port], waiting);
                sent = (sent + before).saturating_sub(waiting);
            }
            if self.statistics.counting.rates {
                self.statistics.sent[port] += u64::from(sent);
            }
        }
    }

    /// Puts what each port has sent on the channel that leaves by it.
    pub(crate) fn put_on_channels(&self, sent_by_port: impl Iterator<Item = u64>, flits_of_channel: &mut [u64]) {
        for (port, sent) in (0..).zip(sent_by_port).filter(|(_, sent)| *sent > 0) {
            let channel = self.channel_of_port(port).expect("only connected ports send");
            flits_of_channel[channel.index()] = sent;
        }
    }

    /// The ports' short counters hold all flits that have been sent, also of packets that are still passing.
    pub(crate) fn settle_sent(&mut self) {
        self.settle_terminals();
        self.layout.collect_sent(&mut self.wiring.links);
    }

    pub(crate) fn clear(&mut self, phase: Phase) {
        self.collect_counters();
        self.statistics.clear(phase, self.cycle);
        if let Some(unit) = &mut self.prediction {
            unit.clear(&self.scenario.network);
        }
        self.edge.feed_mut().clear();
        self.recount_arriving_packets();
    }

    /// A new phase decides anew whether it counts the packets that are arriving, and those that pass routers on predictions.
    fn recount_arriving_packets(&mut self) {
        self.recount_predicted_packets();
        for sink in self.terminals.ejection.iter_mut().filter(|sink| sink.left > 0) {
            sink.counted = self.packets.is_counted(&self.statistics.counting, sink.packet);
        }
    }

    pub(crate) fn drain(&mut self, phase: Phase) {
        self.collect_counters();
        self.statistics.counting.drain(phase, self.cycle);
        self.recount_arriving_packets();
        let measured_from = self.statistics.counting.measured_from;
        // Whatever is drawn from now on counts, if it was created before.
        let from = if self.packets.origins.measures_waiting { 0 } else { measured_from };
        let answers = self.edge.drain(from, measured_from, self.cycle, phase == Phase::Emptying);
        let live = self.packets.live().filter(|&(_, packet)| self.packets.is_waited_for(&self.statistics.counting, packet)).count();
        self.statistics.balance.draining_live = answers as i64 + live as i64;
    }

    /// A new phase decides anew whether it counts the packets that pass on.
    pub(crate) fn recount_predicted_packets(&mut self) {
        let Some(mut unit) = self.prediction.take() else { return };
        for slot in (0..unit.flags.len() as u32).filter(|&slot| self.wiring.router_of_port[slot >> L::Mask::SHIFT] != NONE) {
            if unit.flags[slot] & CONNECTED != 0 {
                let counted = self.packets.counts_predictions(&self.statistics.counting, self.front_packet(slot));
                unit.flags[slot] = unit.flags[slot] & !COUNTED | if counted { COUNTED } else { 0 };
            }
        }
        self.prediction = Some(unit);
    }
}
