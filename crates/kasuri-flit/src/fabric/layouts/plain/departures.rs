//! Routers that take several steps in a cycle: their channels still carry one flit in a cycle, and one message with credits.

use crate::record::clock::Sent;
use kasuri_network::memory::Column;

/// When the channels of the ports are free.
pub(super) struct Departures {
    /// By output port: the first cycle that no flit has yet.
    next_flit: Column<u64>,
    /// By output port: when the last flits are sent.
    sent: Column<Sent>,
    /// By input port: the latest cycle that has a credit.
    last_credit: Column<u64>,
}

impl Departures {
    pub(super) fn new(ports: usize) -> Self {
        Self { next_flit: Column::filled(ports, 0), sent: Column::filled(ports, Sent::default()), last_credit: Column::filled(ports, 0) }
    }

    /// A flit leaves an input port in cycle `now`, and comes out of the switch at an output port in cycle `across`.
    #[inline(always)]
    pub(super) fn send(&mut self, input_port: u32, port: u32, across: u64, traversal_cycles: u32, now: u64) -> Departure {
        let departure = self.send_flit(port, across) as u32;
        // The delay of a channel includes the crossing.
        Departure { flit: departure.wrapping_sub(traversal_cycles), credit: self.send_credit(input_port, now) as u32 }
    }

    /// The cycle in which a flit is sent that comes out of the switch at an output port in cycle `across`.
    #[inline(always)]
    fn send_flit(&mut self, port: u32, across: u64) -> u64 {
        let departure = across.max(self.next_flit[port]);
        self.next_flit[port] = departure + 1;
        self.sent[port].add(departure);
        departure
    }

    /// Flits of an output port that are sent in cycle `from` or later.
    pub(super) fn waiting(&self, port: u32, from: u64) -> u32 {
        self.sent[port].from(from, 1)
    }

    /// The cycle in which the credit is sent for a flit that leaves an input port in cycle `now`.
    #[inline(always)]
    fn send_credit(&mut self, port: u32, now: u64) -> u64 {
        let departure = now.max(self.last_credit[port] + 1);
        self.last_credit[port] = departure;
        departure
    }
}

/// The cycles, by their low 32 bits, from which the delays of a flit and of its credit count.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) flit: u32,
    pub(super) credit: u32,
}

impl Departure {
    /// Both leave in the cycle of their switch grant.
    #[inline(always)]
    pub(super) fn at(now: u64) -> Self {
        Self { flit: now as u32, credit: now as u32 }
    }
}
