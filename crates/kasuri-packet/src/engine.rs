//! The event loop.
//!
//! Each port, link, switch and interface has at most one event planned. Ports first, then links, switches, interfaces:
//! * a port: the packet that it sends has left; it moves into the link before the next one is served;
//! * a link: its oldest packet arrives; the one behind it is planned after all that this sets off;
//! * a switch: its latency of the oldest packet is over;
//! * an interface: it is free for the next packet.

use super::{Input, MAX_TIME, Options, Outcome};
use crate::calendar::Calendar;
use crate::flows::{Flow, Triggers};
use crate::interfaces::{Interface, Next};
use crate::packets::{Packet, Packets, Queue};
use crate::paths::Paths;
use crate::ports::Port;
use crate::wiring::{PortEnd, Wiring};
use kasuri_network::memory::prefetch;
use kasuri_workload::ethernet::fabric::Fabric;
use kasuri_workload::ethernet::matrix::Begin;

/// Events between asking for memory and its use.
const EVENTS_AHEAD: usize = 6;

/// Packets inside a switch, between a link and a queue.
#[derive(Clone, Copy, Debug)]
struct Switch {
    passing: Queue,
    latency: u64,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Engine<'a> {
    options: Options,
    hosts: u32,
    /// Of the interfaces, Mbit/s.
    interface_mbps: u64,
    wiring: Wiring,
    paths: Paths,
    calendar: Calendar,
    packets: Packets,
    ports: Vec<Port>,
    switches: Vec<Switch>,
    interfaces: Vec<Interface>,
    flows: Vec<Flow>,
    triggers: Triggers<'a>,
    /// Flows that start when the event at hand has been handled.
    set_off: &'a [u32],
    /// When flows start by themselves, the last first.
    starts: Vec<(u64, u32)>,
    counts: Outcome,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(input: &Input<'a>) -> Self {
        let Input { fabric, matrix, options } = *input;
        let wiring = Wiring::new(fabric);
        let ports: Vec<Port> = wiring.ends(options.slow_links).iter().map(|end| port(fabric, end)).collect();
        let latency = |switch: u32| 1000 * fabric.tiers[wiring.tier_of(switch)].switch_latency_ns;
        let switches: Vec<Switch> =
            (0..wiring.switches()).map(|switch| Switch { passing: Queue::EMPTY, latency: latency(switch) }).collect();
        let begin = |begin: Begin| if let Begin::At(time) = begin { Some(time) } else { None };
        let mut starts: Vec<(u64, u32)> =
            matrix.connections.iter().zip(0..).filter_map(|(flow, index)| Some((begin(flow.begin)?, index))).collect();
        starts.sort_unstable_by(|one, other| other.cmp(one));
        let ids = matrix.connections.iter().map(|flow| flow.id).collect();
        Self {
            options,
            hosts: fabric.hosts,
            interface_mbps: u64::from(options.interface_mbps.unwrap_or(1000 * fabric.tiers[0].rate_gbps)),
            paths: Paths::new(&options, &wiring, ids),
            calendar: calendar(fabric, &options, 2 * ports.len() + switches.len() + fabric.hosts as usize),
            wiring,
            packets: Packets::new(),
            ports,
            switches,
            interfaces: vec![Interface::IDLE; fabric.hosts as usize],
            flows: matrix.connections.iter().map(|flow| Flow::new(flow, &options)).collect(),
            triggers: Triggers::new(matrix),
            set_off: &[],
            starts,
            counts: Outcome::default(),
        }
    }

    /// # Errors
    /// The run goes on beyond the last picosecond.
    pub(crate) fn run(mut self) -> Result<Outcome, String> {
        loop {
            let limit = self.starts.last().map_or(MAX_TIME, |&(time, _)| time);
            while let Some(event) = self.calendar.next_before(limit) {
                self.prefetch();
                self.handle(event);
                // The last named first.
                for &flow in std::mem::take(&mut self.set_off).iter().rev() {
                    self.start(flow);
                }
            }
            // Starts were planned before everything else.
            let Some((_, flow)) = self.starts.pop() else { break };
            self.start(flow);
        }
        self.counts.flows = self.flows.iter().map(|flow| flow.times).collect();
        Ok(self.counts)
    }

    #[inline]
    fn handle(&mut self, event: u32) {
        let ports = self.ports.len() as u32;
        let switches = self.switches.len() as u32;
        if event < ports {
            self.port_has_sent(event);
        } else if event < 2 * ports {
            self.link_delivers(event - ports);
        } else if event < 2 * ports + switches {
            self.switch_passes_on(event - 2 * ports);
        } else {
            self.interface_is_free(event - 2 * ports - switches);
        }
    }

    /// Asks for the memory of events that are to come: first their ports, then the packets that these name, then what those name.
    #[inline]
    fn prefetch(&self) {
        let ports = self.ports.len() as u32;
        let port_of = |event: u32| self.ports.get(if event < ports { event } else { event.wrapping_sub(ports) } as usize);
        if let Some(port) = self.calendar.ahead(3 * EVENTS_AHEAD).and_then(port_of) {
            prefetch(port);
        }
        let near = |places: usize| self.calendar.ahead(places).and_then(|event| Some((event < ports, port_of(event)?)));
        if let Some((has_sent, port)) = near(2 * EVENTS_AHEAD) {
            port.packets(has_sent).into_iter().for_each(|packet| self.packets.prefetch(packet));
        }
        if let Some((false, port)) = near(EVENTS_AHEAD) {
            let flow = self.packets.prefetch_behind(port.packets(false)[0]);
            if let Some(flow) = flow.filter(|_| port.node < self.hosts) {
                prefetch(&raw const self.flows[flow as usize].receiver);
            }
        }
    }

    fn port_has_sent(&mut self, index: u32) {
        let now = self.calendar.now();
        let port = &mut self.ports[index as usize];
        if let Some(arrives) = port.leave(&mut self.packets, now) {
            self.calendar.plan(self.ports.len() as u32 + index, arrives);
        }
        if let Some(time) = self.ports[index as usize].serve(&self.packets) {
            self.calendar.plan(index, now + time);
        }
    }

    fn link_delivers(&mut self, index: u32) {
        let port = &mut self.ports[index as usize];
        let node = port.node;
        if let Some(packet) = port.take_arrived(&self.packets) {
            if node < self.hosts {
                self.host_receives(packet);
            } else {
                self.switch_receives(node - self.hosts, packet);
            }
        }
        if let Some(arrives) = self.ports[index as usize].next_arrival(&self.packets) {
            self.calendar.plan(self.ports.len() as u32 + index, arrives);
        }
    }

    fn switch_receives(&mut self, index: u32, packet: u32) {
        let switch = &mut self.switches[index as usize];
        let arrives = self.calendar.now() + switch.latency;
        let was_empty = switch.passing.is_empty();
        self.packets.get_mut(packet).arrives = arrives;
        switch.passing.push(&mut self.packets, packet);
        if was_empty {
            self.calendar.plan(2 * self.ports.len() as u32 + index, arrives);
        }
    }

    fn switch_passes_on(&mut self, index: u32) {
        if let Some(packet) = self.switches[index as usize].passing.pop(&self.packets) {
            let choice = self.wiring.choice(index, self.packets.get(packet).destination);
            let port = self.paths.choose(index, choice, self.packets.get(packet));
            self.join(port, packet);
        }
        let passing = self.switches[index as usize].passing;
        if !passing.is_empty() {
            let arrives = self.packets.get(passing.first()).arrives;
            self.calendar.plan(2 * self.ports.len() as u32 + index, arrives);
        }
    }

    #[inline]
    fn join(&mut self, port: u32, packet: u32) {
        if let Some(time) = self.ports[port as usize].join(&mut self.packets, packet) {
            self.calendar.plan(port, self.calendar.now() + time);
        }
    }

    fn host_receives(&mut self, packet: u32) {
        let arrived = *self.packets.get(packet);
        self.packets.remove(packet);
        if arrived.acknowledges {
            self.acknowledged(arrived);
        } else {
            self.data_received(arrived);
        }
    }

    fn data_received(&mut self, arrived: Packet) {
        let now = self.calendar.now();
        let flow = &mut self.flows[arrived.flow as usize];
        let threshold = self.options.acknowledged_bytes;
        let arrival = flow.receiver.receive(arrived.number, flow.packets, arrived.bytes, threshold);
        self.counts.early_packets += u64::from(arrival.early);
        if arrival.complete {
            flow.times.received = Some(now);
        }
        let Some(number) = arrival.acknowledged else { return };
        let source = flow.source;
        self.counts.acknowledgements += 1;
        let made = Packet::new(arrived.flow, number, source, self.options.header, arrived.path, true);
        let made = self.packets.add(made);
        let interface = &mut self.interfaces[arrived.destination as usize];
        interface.acknowledge(&mut self.packets, made);
        if !interface.busy {
            self.send(arrived.destination);
        }
    }

    fn acknowledged(&mut self, arrived: Packet) {
        let flow = &mut self.flows[arrived.flow as usize];
        if arrived.number < flow.packets || flow.times.finished.is_some() {
            return;
        }
        flow.times.finished = Some(self.calendar.now());
        if flow.tells != crate::packets::NONE {
            self.set_off = self.triggers.tell(flow.tells);
        }
    }

    fn start(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let source = flow.source;
        flow.times.started = Some(self.calendar.now());
        let interface = &mut self.interfaces[source as usize];
        interface.join(&mut self.flows, index);
        if !interface.busy {
            self.send(source);
        }
    }

    fn interface_is_free(&mut self, host: u32) {
        self.interfaces[host as usize].busy = false;
        self.send(host);
    }

    /// An idle interface hands the next packet to the host's port, if there is one.
    fn send(&mut self, host: u32) {
        let Some(next) = self.interfaces[host as usize].next(&self.flows, &self.packets) else { return };
        let packet = match next {
            Next::Acknowledgement(packet) => packet,
            Next::Data(flow) => self.next_packet(host, flow),
        };
        self.interfaces[host as usize].busy = true;
        let bytes = u64::from(self.packets.get(packet).bytes);
        self.join(host, packet);
        let event = 2 * self.ports.len() as u32 + self.switches.len() as u32 + host;
        self.calendar.plan(event, self.calendar.now() + bytes * 8_000_000 / self.interface_mbps);
    }

    /// The next packet of a flow, which joins the line again if that was not its last.
    fn next_packet(&mut self, host: u32, index: u32) -> u32 {
        let flow = &mut self.flows[index as usize];
        let number = flow.sent;
        flow.sent += 1;
        self.counts.packets += 1;
        let is_last = flow.sent == flow.packets;
        let bytes = if is_last { flow.last_bytes } else { self.options.mtu };
        let destination = flow.destination;
        if !is_last {
            self.interfaces[host as usize].join(&mut self.flows, index);
        }
        self.packets.add(Packet::new(index, number, destination, bytes, self.paths.number(index, number), false))
    }
}

fn port(fabric: &Fabric, end: &PortEnd) -> Port {
    Port::new(end.picoseconds_per_byte(fabric), 1000 * fabric.tiers[usize::from(end.tier)].link_latency_ns, end.node)
}

fn calendar(fabric: &Fabric, options: &Options, events: usize) -> Calendar {
    let slowest = fabric.tiers.iter().map(|tier| 4 * tier.picoseconds_per_byte()).max().unwrap_or(1);
    let latency = fabric.tiers.iter().map(|tier| 1000 * tier.link_latency_ns.max(tier.switch_latency_ns)).max().unwrap_or(1);
    let full = u64::from(options.mtu) * fabric.tiers[0].picoseconds_per_byte();
    // About a dozen events of each packet that a host sends.
    let spacing = full as f64 / (12.0 * f64::from(fabric.hosts));
    Calendar::new(events, spacing, latency.max(u64::from(options.mtu) * slowest))
}
