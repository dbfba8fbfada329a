//! An output: its queues, and the link behind it.

use crate::packets::{NONE, Packet, Packets, Queue};

/// An output of a host or switch. Acknowledgements go before data, and interrupt nothing.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Port {
    data: Queue,
    acknowledgements: Queue,
    /// The packet that is sent.
    sent: u32,
    /// What is on the link.
    link: Queue,
    picoseconds_per_byte: u32,
    /// To which the link leads: a host, or the number of hosts and a switch.
    pub(crate) node: u32,
    latency: u64,
}

impl Port {
    pub(crate) fn new(picoseconds_per_byte: u32, latency: u64, node: u32) -> Self {
        let empty = Queue::EMPTY;
        Self { data: empty, acknowledgements: empty, sent: NONE, link: empty, picoseconds_per_byte, node, latency }
    }

    /// The packets that are looked at when this port has sent, or when its link delivers.
    #[inline]
    pub(crate) fn packets(&self, has_sent: bool) -> [u32; 3] {
        if has_sent { [self.sent, self.link.last(), self.data.first()] } else { [self.link.first(), NONE, NONE] }
    }

    /// A packet joins its queue. If nothing is sent, the next one is: for so many picoseconds.
    #[inline]
    pub(crate) fn join(&mut self, packets: &mut Packets, packet: u32) -> Option<u64> {
        let Packet { acknowledges, bytes, .. } = *packets.get(packet);
        if self.sent == NONE {
            self.sent = packet;
            return Some(self.time(bytes));
        }
        if acknowledges { &mut self.acknowledgements } else { &mut self.data }.push(packets, packet);
        None
    }

    fn time(&self, bytes: u16) -> u64 {
        u64::from(bytes) * u64::from(self.picoseconds_per_byte)
    }

    /// The packet that was sent moves into the link. When it arrives, if the link was empty.
    #[inline]
    pub(crate) fn leave(&mut self, packets: &mut Packets, now: u64) -> Option<u64> {
        let arrives = now + self.latency;
        let was_empty = self.link.is_empty();
        packets.get_mut(self.sent).arrives = arrives;
        self.link.push(packets, self.sent);
        self.sent = NONE;
        was_empty.then_some(arrives)
    }

    /// The next packet is sent, if one waits: for so many picoseconds.
    #[inline]
    pub(crate) fn serve(&mut self, packets: &Packets) -> Option<u64> {
        self.sent = self.acknowledgements.pop(packets).or_else(|| self.data.pop(packets))?;
        Some(self.time(packets.get(self.sent).bytes))
    }

    /// The packet that comes out of the link.
    #[inline]
    pub(crate) fn take_arrived(&mut self, packets: &Packets) -> Option<u32> {
        self.link.pop(packets)
    }

    /// When the oldest packet of the link arrives.
    #[inline]
    pub(crate) fn next_arrival(&self, packets: &Packets) -> Option<u64> {
        (!self.link.is_empty()).then(|| packets.get(self.link.first()).arrives)
    }
}
