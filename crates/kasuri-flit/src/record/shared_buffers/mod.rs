//! Buffers that the virtual channels of an input port share: who may have how much of them.
//!
//! The sender keeps the account, router or terminal. Each virtual channel has places of its own; what it holds beyond these comes out of
//! a pool of the port. A policy limits what one may hold of both. A place that becomes free while a packet is on its way through an empty
//! buffer stays reserved for this packet, lest others take it before its next flit comes (as in BookSim 2).
//!
//! Where packets wait as a whole (virtual cut-through, store-and-forward), a packet gets a virtual channel only if there is room for all of
//! it, and its places are reserved at once: whoever else comes, whatever the policy allows later, its flits never stop for want of room.
//!
//! Touches virtual-channel allocation and switch allocation (is there room?), traversal and injection (a place is taken), and the credits
//! that come back (a place is free).
//!
//! To add a policy: a file here, a `mod` line, its line in [`limit_of`], and its name in `kasuri_model::router`.

mod dynamic;
mod limited;
mod shifting;

use kasuri_model::router::{BufferPolicy, RouterParameters, Switching};
use kasuri_network::memory::Column;

/// Flits that the buffers of an input port can hold.
pub(crate) fn flits_of_port(router: &RouterParameters) -> u32 {
    let buffers = if router.buffer_policy == BufferPolicy::Private { router.virtual_channels } else { 1 };
    buffers * router.channel_depth()
}

/// How much of the port's buffer one virtual channel may hold while `active` of them have packets: by the total, and the policy's own limit.
type Limit = fn(total: u32, most_held: u32, active: u32) -> u32;

fn limit_of(policy: BufferPolicy) -> Limit {
    match policy {
        BufferPolicy::Private | BufferPolicy::Shared => |total, _, _| total,
        BufferPolicy::Limited => limited::limit,
        BufferPolicy::Dynamic => dynamic::limit,
        BufferPolicy::Shifting => shifting::limit,
    }
}

/// What a virtual channel has of the buffer at the other end.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Flits that are there or on their way.
    flits: u16,
    /// Places that they and reservations take.
    places: u16,
    /// Places that are kept for its packet.
    reserved: u16,
}

/// What is used of a port's buffer.
#[derive(Clone, Copy, Debug, Default)]
struct PortUse {
    /// Places of the pool that are taken.
    pool: u32,
    /// Virtual channels with a packet that has not been sent in whole.
    active: u32,
}

/// The accounts of all shared buffers, by output slot of their senders.
pub(crate) struct Buffers {
    shift: u32,
    total: u32,
    own: u32,
    pool: u32,
    most_held: u32,
    limit: Limit,
    /// Do packets wait as a whole?
    whole: bool,
    slot: Column<Use>,
    port: Column<PortUse>,
}

impl Buffers {
    /// Empty buffers of `ports` ports of `2^shift` slots, if the routers share theirs.
    pub(crate) fn new(router: &RouterParameters, ports: usize, shift: u32) -> Option<Box<Self>> {
        if router.buffer_policy == BufferPolicy::Private {
            return None;
        }
        let total = router.channel_depth();
        Some(Box::new(Self {
            shift,
            total,
            own: router.private_flits,
            pool: total - router.private_flits * router.virtual_channels,
            most_held: router.most_held_flits.unwrap_or(total),
            limit: limit_of(router.buffer_policy),
            whole: router.switching != Switching::Wormhole,
            slot: Column::filled(ports << shift, Use::default()),
            port: Column::filled(ports, PortUse::default()),
        }))
    }

    /// Flits that the virtual channel of this output slot may send now or, where packets wait as a whole and none is on its way there, the
    /// longest packet that it may be given to.
    pub(crate) fn room(&self, slot: u32) -> u32 {
        let Use { flits, places, reserved } = self.slot[slot];
        if self.whole && reserved > 0 {
            return reserved.into();
        }
        let PortUse { pool, active } = self.port[slot >> self.shift];
        let places = u32::from(reserved) + self.own.saturating_sub(u32::from(places)) + (self.pool - pool);
        // The packet that asks for a virtual channel is one more.
        let active = if self.whole { active + 1 } else { active.max(1) };
        places.min((self.limit)(self.total, self.most_held, active).saturating_sub(u32::from(flits)))
    }

    /// A packet of so many flits has got this virtual channel.
    pub(crate) fn take(&mut self, slot: u32, flits: u16) {
        self.port[slot >> self.shift].active += 1;
        if self.whole {
            (0..flits).for_each(|_| self.take_place(slot));
            self.slot[slot].reserved += flits;
        }
    }

    /// A flit is sent, for which there was room.
    pub(crate) fn send(&mut self, slot: u32, is_tail: bool) {
        let account = &mut self.slot[slot];
        account.flits += 1;
        if account.reserved > 0 {
            account.reserved -= 1;
        } else {
            self.take_place(slot);
        }
        if is_tail {
            self.port[slot >> self.shift].active -= 1;
            while self.slot[slot].reserved > 0 {
                self.slot[slot].reserved -= 1;
                self.free_place(slot);
            }
        }
    }

    /// A credit is back; `is_held`: a packet is on its way through this virtual channel.
    pub(crate) fn free(&mut self, slot: u32, is_held: bool) {
        let account = &mut self.slot[slot];
        account.flits -= 1;
        if is_held && account.flits == 0 && !self.whole {
            account.reserved += 1;
        } else {
            self.free_place(slot);
        }
    }

    fn take_place(&mut self, slot: u32) {
        let account = &mut self.slot[slot];
        account.places += 1;
        self.port[slot >> self.shift].pool += u32::from(u32::from(account.places) > self.own);
    }

    fn free_place(&mut self, slot: u32) {
        let account = &mut self.slot[slot];
        account.places -= 1;
        self.port[slot >> self.shift].pool -= u32::from(u32::from(account.places) >= self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(policy: BufferPolicy, most_held_flits: Option<u32>) -> Box<Buffers> {
        let router = RouterParameters {
            virtual_channels: 4,
            buffer_policy: policy,
            port_buffer_flits: Some(16),
            private_flits: 2,
            most_held_flits,
            ..RouterParameters::default()
        };
        Buffers::new(&router, 2, 2).unwrap()
    }

    fn fill(buffers: &mut Buffers, slot: u32) -> u32 {
        buffers.take(slot, 1);
        (0..)
            .take_while(|_| {
                buffers.room(slot) > 0 && {
                    buffers.send(slot, false);
                    true
                }
            })
            .count() as u32
    }

    /// Of 16 places for 4 channels with 2 each, one alone gets 2 and the pool of 8; the others keep their own 2, and the port beside has
    /// buffers of its own.
    #[test]
    fn the_pool_goes_to_whoever_comes_first() {
        let mut shared = buffers(BufferPolicy::Shared, None);
        assert_eq!([4, 5, 6, 7].map(|slot| fill(&mut shared, slot)), [10, 2, 2, 2]);
        assert_eq!(fill(&mut shared, 0), 10);
        // What comes back goes to the pool first.
        (0..3).for_each(|_| shared.free(4, true));
        assert_eq!((shared.room(4), shared.room(5)), (3, 3));
    }

    /// At most 5 by a fixed limit; a half, a third and a quarter of 16, or 16, 8 and 4, as more channels are active.
    #[test]
    fn policies_limit_what_one_may_hold() {
        assert_eq!(fill(&mut buffers(BufferPolicy::Limited, Some(5)), 0), 5);
        let limits = |policy| {
            let mut buffers = buffers(policy, None);
            [0, 1, 2, 3].map(|slot| {
                buffers.take(slot, 1);
                (buffers.limit)(buffers.total, buffers.most_held, buffers.port[0].active)
            })
        };
        assert_eq!(limits(BufferPolicy::Dynamic), [16, 8, 5, 4]);
        assert_eq!(limits(BufferPolicy::Shifting), [16, 8, 4, 4]);
    }

    /// A packet whose flits have all been passed on keeps one place, until its tail has come.
    #[test]
    fn a_packet_on_its_way_keeps_a_place() {
        let mut shared = buffers(BufferPolicy::Shared, None);
        shared.take(0, 1);
        shared.send(0, false);
        shared.free(0, true);
        assert_eq!((shared.slot[0].reserved, shared.slot[0].places), (1, 1));
        shared.send(0, true);
        assert_eq!((shared.slot[0].reserved, shared.slot[0].places), (0, 1));
        shared.free(0, false);
        assert_eq!((shared.slot[0].places, shared.port[0].pool, shared.port[0].active), (0, 0, 0));
    }

    /// A packet of 5 flits that has a virtual channel can send them all, however many packets come after it: of 16 places, of which each of
    /// 4 channels has 2 for itself, the first two packets take 2 and 3 of the pool of 8, so that a third finds 4.
    #[test]
    fn a_packet_that_waits_as_a_whole_has_room_for_all_its_flits() {
        for (policy, most_held, packets) in [
            (BufferPolicy::Shared, None, 2),
            (BufferPolicy::Limited, Some(5), 2),
            (BufferPolicy::Limited, Some(4), 0),
            (BufferPolicy::Dynamic, None, 2),
            (BufferPolicy::Shifting, None, 2),
        ] {
            let mut shared = buffers(policy, most_held);
            shared.whole = true;
            let mut given = Vec::new();
            for slot in 0..4 {
                if shared.room(slot) >= 5 {
                    shared.take(slot, 5);
                    given.push(slot);
                }
            }
            assert_eq!(given.len(), packets, "{policy:?}");
            for &slot in given.iter().rev() {
                for left in (0..5).rev() {
                    assert_eq!(shared.room(slot), left + 1, "{policy:?}");
                    shared.send(slot, left == 0);
                }
            }
            given.iter().for_each(|&slot| (0..5).for_each(|_| shared.free(slot, false)));
            assert_eq!((shared.port[0].pool, shared.port[0].active, shared.slot[0].places), (0, 0, 0), "{policy:?}");
        }
    }
}
