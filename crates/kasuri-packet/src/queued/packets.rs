//! The packets that are under way.

/// No packet, no message, no channel.
pub(super) const NONE: u32 = u32::MAX;

/// A packet. Many fields, because all that is known of it travels in one record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) created: u64,
    /// The cycle that decides whether it is measured: `created` or, of an answer, that of the packet that it answers.
    pub(super) asked: u64,
    /// When its head has left the terminal, for the last time.
    pub(super) injected: u64,
    /// From when on its last flit could be sent from where it is.
    pub(super) tail: u64,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) flits: u32,
    /// Its message and its number in it; [`NONE`] of open traffic.
    pub(super) message: u32,
    pub(super) number: u32,
    /// Its number among those of its source.
    pub(super) serial: u32,
    pub(super) route_state: u32,
    /// The channel by which it has come to where it is.
    pub(super) came_by: u32,
    /// Routers crossed.
    pub(super) hops: u16,
    pub(super) class: u8,
    pub(super) is_reply: bool,
    /// Has a failure cut it in two? Then it ends as lost where it arrives.
    pub(super) is_cut: bool,
    /// The epoch of whose routing its state is, as routers know them.
    pub(super) routed_in: u32,
}

impl Packet {
    /// One that has not left its terminal: `ends` are its source and its destination; of a message its number there follows.
    pub(super) fn new([source, destination]: [u32; 2], flits: u32, class: u8, [created, asked]: [u64; 2]) -> Self {
        Self {
            created,
            asked,
            injected: 0,
            tail: 0,
            source,
            destination,
            flits,
            message: NONE,
            number: 0,
            serial: 0,
            route_state: 0,
            came_by: NONE,
            hops: 0,
            class,
            is_reply: false,
            is_cut: false,
            routed_in: 0,
        }
    }
}

/// All packets; the places of those that are over are used again.
#[derive(Debug, Default)]
pub(super) struct Packets {
    all: Vec<Packet>,
    free: Vec<u32>,
    /// Of those that live: flits, and flits times creation.
    pub(super) flits: u64,
    flits_by_creation: u128,
}

impl Packets {
    pub(super) fn add(&mut self, packet: Packet) -> u32 {
        self.flits += u64::from(packet.flits);
        self.flits_by_creation += u128::from(packet.flits) * u128::from(packet.created);
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = packet;
            return place;
        }
        self.all.push(packet);
        self.all.len() as u32 - 1
    }

    /// Takes a packet out.
    pub(super) fn remove(&mut self, place: u32) -> Packet {
        let packet = self.all[place as usize];
        self.flits -= u64::from(packet.flits);
        self.flits_by_creation -= u128::from(packet.flits) * u128::from(packet.created);
        self.free.push(place);
        packet
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> &Packet {
        &self.all[place as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut Packet {
        &mut self.all[place as usize]
    }

    /// How many live.
    pub(super) fn count(&self) -> u64 {
        (self.all.len() - self.free.len()) as u64
    }

    /// Those that live.
    pub(super) fn live(&self) -> impl Iterator<Item = &Packet> {
        let mut is_free = vec![false; self.all.len()];
        self.free.iter().for_each(|&place| is_free[place as usize] = true);
        self.all.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(packet, _)| packet)
    }

    /// The sum over the flits of all of the age of their packet.
    pub(super) fn age(&self, now: u64) -> u64 {
        (u128::from(self.flits) * u128::from(now)).saturating_sub(self.flits_by_creation) as u64
    }
}
