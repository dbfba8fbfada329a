//! The packets that are under way, and lists of them.

use kasuri_network::memory::prefetch;

/// No packet.
pub(crate) const NONE: u32 = u32::MAX;

/// A packet of data or an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When it comes out of the link or switch in which it is.
    pub(crate) arrives: u64,
    /// The index of its flow.
    pub(crate) flow: u32,
    /// Of data: its number in the flow. Of an acknowledgement: how many packets have come without a gap.
    pub(crate) number: u32,
    /// The host to which it goes.
    pub(crate) destination: u32,
    /// The packet behind it in its list.
    next: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u16,
    /// Its path number.
    pub(crate) path: u16,
    /// Whether it is an acknowledgement.
    pub(crate) acknowledges: bool,
}

impl Packet {
    pub(crate) fn new(flow: u32, number: u32, destination: u32, bytes: u16, path: u16, acknowledges: bool) -> Self {
        Self { arrives: 0, flow, number, destination, next: NONE, bytes, path, acknowledges }
    }
}

/// All packets; places of those that have arrived are used again.
#[derive(Debug)]
pub(crate) struct Packets {
    all: Vec<Packet>,
    free: u32,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), free: NONE }
    }

    #[inline]
    pub(crate) fn add(&mut self, packet: Packet) -> u32 {
        let place = self.free;
        if place == NONE {
            self.all.push(packet);
            return self.all.len() as u32 - 1;
        }
        self.free = self.all[place as usize].next;
        self.all[place as usize] = packet;
        place
    }

    #[inline]
    pub(crate) fn remove(&mut self, packet: u32) {
        self.all[packet as usize].next = self.free;
        self.free = packet;
    }

    /// Asks for a packet ahead of its use.
    #[inline]
    pub(crate) fn prefetch(&self, packet: u32) {
        if let Some(packet) = self.all.get(packet as usize) {
            prefetch(packet);
        }
    }

    /// Asks for the packet behind another ahead of its use, and names that one's flow, if there is one.
    #[inline]
    pub(crate) fn prefetch_behind(&self, packet: u32) -> Option<u32> {
        let packet = self.all.get(packet as usize)?;
        self.prefetch(packet.next);
        Some(packet.flow)
    }

    #[inline]
    pub(crate) fn get(&self, packet: u32) -> &Packet {
        &self.all[packet as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, packet: u32) -> &mut Packet {
        &mut self.all[packet as usize]
    }
}

/// Packets one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The packet in front; there is one.
    #[inline]
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// The packet at the end, if there ever was one.
    #[inline]
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    #[inline]
    pub(crate) fn push(&mut self, packets: &mut Packets, packet: u32) {
        packets.get_mut(packet).next = NONE;
        if self.first == NONE {
            self.first = packet;
        } else {
            packets.get_mut(self.last).next = packet;
        }
        self.last = packet;
    }

    #[inline]
    pub(crate) fn pop(&mut self, packets: &Packets) -> Option<u32> {
        let packet = self.first;
        if packet == NONE {
            return None;
        }
        self.first = packets.get(packet).next;
        Some(packet)
    }
}
