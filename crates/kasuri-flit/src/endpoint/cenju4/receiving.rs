//! The Receiver at work: it looks packets up, writes them and lets their effects be seen.

use super::event::{Event, Load};
use super::simulation::Simulation;
use crate::crosspoint::Time;
use kasuri_workload::endpoint::cenju4::fault::Interrupt;
use kasuri_workload::endpoint::cenju4::node::{Node, Operation};
use std::rc::Rc;

impl Simulation<'_> {
    /// A packet's tail has arrived.
    pub(super) fn arrive(&mut self, node: u32, flight: u32, hops: u32) {
        let (load, flits, injected) = self.network.load(flight);
        let (parcel, created) = (load.parcel, load.created);
        let cycles = |time: Time| time / self.cycle;
        let (latency, in_network) = (cycles(self.now - created), cycles(self.now - injected));
        let statistics = &mut self.statistics;
        statistics.packets += 1;
        statistics.packet_latency.record(latency);
        statistics.network_latency.record(in_network);
        statistics.hops.record(u64::from(hops));
        statistics.arrived.packets += 1;
        statistics.arrived.packet_latency += latency;
        statistics.arrived.network_latency += in_network;
        statistics.arrived.hops += u64::from(hops);
        statistics.accepted_flits += u64::from(flits);
        let station = &mut self.stations[node as usize];
        station.accepted_flits += u64::from(flits);
        station.last_arrival = self.now;
        self.note("network", node, "network", parcel, injected, self.now);
        if self.is_usable(node, flight, hops, self.now) {
            self.schedule(self.now + self.times.receiver, Event::Looked { node, flight });
        }
    }

    pub(super) fn look_up(&mut self, node: u32, flight: u32) {
        let parcel = self.network.load(flight).0.parcel;
        self.note("Receiver looks the task up", node, "Receiver", parcel, self.now - self.times.receiver, self.now);
        self.stations[node as usize].receiver.waiting.push_back(flight);
        self.write_next(node);
    }

    fn write_next(&mut self, node: u32) {
        let station = &mut self.stations[node as usize];
        if station.receiver.writing.is_some() {
            return;
        }
        let Some(flight) = station.receiver.waiting.pop_front() else { return };
        station.receiver.writing = Some(flight);
        self.write(node);
    }

    /// Writes the packet that it has taken, unless a page that it needs is not in memory: then it stops until the operating system has
    /// brought that, and what comes after it waits.
    pub(super) fn write(&mut self, node: u32) {
        let station = &mut self.stations[node as usize];
        let Some(flight) = station.receiver.writing else { return };
        let load = self.network.load(flight).0;
        if let Some(address) = station.node.missing(&load.packet) {
            let (parcel, cid) = (load.parcel, load.packet.cid);
            return self.page_fault(node, parcel, cid, address, true);
        }
        let load = self.network.load(flight).0;
        let parcel = load.parcel;
        let work = station.node.work(&load.packet);
        let writing = if work.atomic { self.times.atomic } else { Time::from(work.lines) * self.times.line };
        let end = self.now + self.times.table_walks(work.tlb_misses) + writing;
        self.note("Receiver writes memory", node, "Receiver memory", parcel, self.now, end);
        self.schedule(end, Event::Written { node });
    }

    /// A packet has been written: its place is free, and soon its effect can be seen.
    pub(super) fn written(&mut self, node: u32) {
        let Some(flight) = self.stations[node as usize].receiver.writing.take() else { return };
        let parcel = self.network.load(flight).0.parcel;
        self.note("Receiver announces", node, "buffer table", parcel, self.now, self.now + self.times.notice);
        self.network.take(node, flight, self.now);
        self.schedule(self.now + self.times.notice, Event::Effect { node, flight });
        self.write_next(node);
    }

    /// What a packet does to memory can be seen.
    pub(super) fn effect(&mut self, node: u32, flight: u32) {
        let load = self.network.load(flight).0.clone();
        self.network.end_copy(flight);
        let spoilt = self.links.as_mut().and_then(|links| links.take_spoilt(node, flight));
        let Load { mut packet, parcel, sid, .. } = load;
        if let Some(data) = spoilt {
            Rc::make_mut(&mut packet).data = data;
        }
        let packet = &*packet;
        let station = &mut self.stations[node as usize];
        self.systems.interrupted.push(node);
        let reply = station.node.receive(packet).unwrap_or_else(|fault| {
            station.node.interrupt(Interrupt::ReceiveFault(packet.cid, fault));
            Node::refusal(packet)
        });
        if let Some(reply) = reply {
            self.answer(node, reply, parcel);
        }
        if packet.operation == Operation::Synchronised {
            self.answered(node, sid);
        } else if Node::ends_request(packet) {
            self.answered(node, None);
        }
        self.wake(node);
    }
}

impl Simulation<'_> {
    /// Checks a packet that has arrived. One that cannot be used is gone, and the operating system is told.
    pub(super) fn is_usable(&mut self, node: u32, flight: u32, hops: u32, now: Time) -> bool {
        let Some(links) = &mut self.links else { return true };
        match links.cross(&self.network.load(flight).0.packet, u64::from(hops) + 1) {
            Ok(None) => true,
            Ok(Some(data)) => {
                links.spoilt.insert((node, flight), data);
                true
            }
            Err(damage) => {
                self.interrupt(node, Interrupt::Damaged(damage));
                self.network.take(node, flight, now);
                self.network.end_copy(flight);
                false
            }
        }
    }
}
