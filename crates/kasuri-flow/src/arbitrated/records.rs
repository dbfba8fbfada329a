//! The state of the network, in flat columns: channels with who waits for them, lanes with the buffers at their ends, parcels.

use super::rules::Rules;
use super::timing::Timing;
use kasuri_network::id::ChannelId;
use kasuri_network::memory::{Column, GrowingColumn, large_vec};
use kasuri_network::network::Network;
use smallvec::{Array, SmallVec};

/// No entry, or never.
pub(super) const NONE: u32 = u32::MAX;

/// A parcel that waits at a channel. 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) parcel: u32,
    /// The channel by which it comes; [`NONE`] at its source.
    pub(super) from: u32,
    /// The number of that input at the router.
    pub(super) input: u16,
    /// The first and the last lane that it may have; of one that has a lane, that.
    pub(super) first: u8,
    pub(super) last: u8,
}

/// A channel, seen from the router at its beginning, and who waits for it.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Output {
    /// Until when a parcel crosses.
    pub(super) busy: u32,
    /// When it is looked at again.
    pub(super) look: u32,
    /// Round robin: the input that comes first for a lane, and for the channel.
    pub(super) grant: u16,
    pub(super) turn: u16,
    /// Its number among the kinds of links.
    pub(super) link: u32,
    /// Flits that have crossed it.
    pub(super) flits: u64,
    /// Parcels that have a lane, and heads that wait for one.
    pub(super) ready: SmallVec<[Entry; 4]>,
    pub(super) waiting: SmallVec<[Entry; 2]>,
    pub(super) ejects: bool,
    /// Its lanes that are taken.
    pub(super) taken: u16,
    /// The lane that comes first in turn, among those with equally many parcels.
    pub(super) next_lane: u8,
}

impl Output {
    /// Is one of so many lanes free?
    #[inline(always)]
    pub(super) fn has_free_lane(&self, lanes: u32) -> bool {
        u32::from(self.taken) < lanes
    }

    /// Does a head wait for a lane while one of so many is free?
    #[inline(always)]
    pub(super) fn can_grant(&self, lanes: u32) -> bool {
        !self.waiting.is_empty() && self.has_free_lane(lanes)
    }
}

/// Takes one of those that wait out of their list; the others keep their order.
#[inline(always)]
pub(super) fn take_entry<const N: usize>(list: &mut SmallVec<[Entry; N]>, position: usize) -> Entry
where
    [Entry; N]: Array<Item = Entry>,
{
    // Most often it is the only one, and nothing moves up.
    if position + 1 == list.len() { list.pop().expect("the list has that position") } else { list.remove(position) }
}

/// The end of a channel, seen from the router there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// Until when it sends.
    pub(super) busy: u32,
    /// Its number at the router.
    pub(super) number: u16,
}

/// A virtual channel of a channel with the buffer at its end. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    /// Who stands first and last in the buffer, on the way into it and out of it included; and at which place of its path the last does.
    pub(super) front: u32,
    pub(super) back: u32,
    pub(super) back_place: u16,
    /// Parcels that have ever begun to enter, of which it is known when there is room behind them, and behind which there is.
    pub(super) entered: u16,
    pub(super) leaving: u16,
    pub(super) left: u16,
    /// When there is room behind the parcel that leaves first, in a buffer for one.
    pub(super) room_at: u32,
    /// Somebody has been granted it and has not crossed with its tail.
    pub(super) is_taken: bool,
    /// Its owner has not begun to cross.
    pub(super) is_awaited: bool,
}

/// What a parcel remembers of a place of its path. 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The lane there.
    pub(super) lane: u32,
    /// When it began to cross.
    pub(super) start: u32,
    /// Who stands behind it in the buffer.
    pub(super) next: u32,
}

/// A parcel on its way. 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    pub(super) message: u32,
    /// Where its path begins among all hops.
    pub(super) path: u32,
    pub(super) flits: u32,
    /// Which parcel of all it is.
    pub(super) born: u32,
    /// The lane of the last channel that its head has begun to cross.
    pub(super) lane: u32,
    /// Where its head is, or for which place it asks; and the place of the ejection.
    pub(super) place: u16,
    pub(super) last: u16,
    /// Cycles that it takes on the slowest channel so far.
    pub(super) cycles: u32,
    /// Its head has come, but another one's tail stands before it.
    pub(super) is_behind: bool,
    /// Is it on its way; and has its head begun to cross the last channel?
    pub(super) is_there: bool,
    pub(super) arrives: bool,
    /// Its head waits for the channel at `place`.
    pub(super) asks: bool,
}

/// The parcels on their way, with as many places each as the longest needs, at least a handful.
#[derive(Debug)]
pub(super) struct Parcels {
    pub(super) parcels: GrowingColumn<Parcel>,
    places: GrowingColumn<Place>,
    /// Places of each are 2 to this power; by place modulo their number.
    shift: u32,
    free: Vec<u32>,
}

impl Parcels {
    pub(super) fn new(terminals: usize) -> Self {
        let capacity = terminals.next_power_of_two();
        Self { parcels: large_vec(capacity).into(), places: large_vec(capacity << 3).into(), shift: 3, free: Vec::new() }
    }

    #[inline(always)]
    fn index(&self, parcel: u32, place: u16) -> u32 {
        (parcel << self.shift) | (u32::from(place) & ((1 << self.shift) - 1))
    }

    #[inline(always)]
    pub(super) fn place(&self, parcel: u32, place: u16) -> Place {
        self.places[self.index(parcel, place)]
    }

    #[inline(always)]
    pub(super) fn place_mut(&mut self, parcel: u32, place: u16) -> &mut Place {
        let index = self.index(parcel, place);
        &mut self.places[index]
    }

    #[inline(always)]
    pub(super) fn fetch_places(&self, parcel: u32, place: u16) {
        kasuri_network::memory::fetch_ahead(&self.places, self.index(parcel, place) as usize);
    }

    /// Makes room for parcels that remember so many places.
    pub(super) fn remember(&mut self, places: usize) {
        let shift = places.next_power_of_two().trailing_zeros();
        if shift <= self.shift {
            return;
        }
        let mut wider = large_vec(self.parcels.capacity() << shift);
        for number in 0..self.parcels.len() as u32 {
            let place = self.parcels[number].place;
            let first = place.saturating_sub((1 << self.shift) - 1);
            let begin = wider.len();
            wider.resize(begin + (1 << shift), Place { lane: NONE, start: 0, next: NONE });
            for place in first..=place {
                wider[begin + (usize::from(place) & ((1 << shift) - 1))] = self.place(number, place);
            }
        }
        (self.places, self.shift) = (wider.into(), shift);
    }

    pub(super) fn begin(&mut self, parcel: Parcel) -> u32 {
        if let Some(number) = self.free.pop() {
            self.parcels[number] = parcel;
            return number;
        }
        self.parcels.push(parcel);
        self.places.resize(self.parcels.len() << self.shift, Place { lane: NONE, start: 0, next: NONE });
        self.parcels.len() as u32 - 1
    }

    pub(super) fn end(&mut self, number: u32) {
        self.parcels[number].is_there = false;
        self.free.push(number);
    }

    /// Numbers of all that are on their way.
    pub(super) fn on_their_way(&self) -> impl Iterator<Item = u32> {
        self.parcels.iter().zip(0..).filter(|(parcel, _)| parcel.is_there).map(|(_, number)| number)
    }

    /// All times are `cycles` less from now on.
    pub(super) fn rebase(&mut self, cycles: u32) {
        self.places.iter_mut().for_each(|place| place.start = place.start.saturating_sub(cycles));
    }
}

/// The power of two that is the number of places for so many lanes of a channel.
pub(super) fn lane_shift(lanes: u32) -> u32 {
    lanes.next_power_of_two().trailing_zeros()
}

/// Channels and lanes.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) outputs: Column<Output>,
    pub(super) inputs: Column<Input>,
    /// Those of a channel begin at multiples of a power of two, `lane_shift`, so that nothing is divided to find a lane's channel.
    pub(super) lanes: Column<Lane>,
    /// Lanes of a channel.
    pub(super) each: u32,
    lane_shift: u32,
    /// Parcels that a buffer holds, 0 for any number; and when there is room behind them, where that is more than one: of each lane 2 to
    /// the power of `ring_shift` times, used in turn.
    room: u16,
    ring_shift: u32,
    rooms: Column<u32>,
}

impl Channels {
    pub(super) fn new(network: &Network, timing: &Timing) -> Self {
        let lane_shift = lane_shift(timing.lanes);
        let lanes = (network.channel_count() as usize) << lane_shift;
        let empty = Lane {
            front: NONE,
            back: NONE,
            back_place: 0,
            entered: 0,
            leaving: 0,
            left: 0,
            room_at: 0,
            is_taken: false,
            is_awaited: false,
        };
        let output = |channel: u32| Output {
            busy: 0,
            look: NONE,
            grant: 0,
            turn: 0,
            link: network.link_number(ChannelId(channel)),
            flits: 0,
            ready: SmallVec::new(),
            waiting: SmallVec::new(),
            ejects: network.ejected_terminal(ChannelId(channel)).is_some(),
            taken: 0,
            next_lane: 0,
        };
        let input = |channel: u32| {
            let is_of_router = network.ejected_terminal(ChannelId(channel)).is_none();
            Input { busy: 0, number: if is_of_router { network.input_port(ChannelId(channel)).1 } else { 0 } }
        };
        let ring_shift = timing.room.max(1).next_power_of_two().trailing_zeros();
        let several = if timing.room > 1 { lanes << ring_shift } else { 0 };
        Self {
            outputs: (0..network.channel_count()).map(output).collect(),
            inputs: (0..network.channel_count()).map(input).collect(),
            lanes: Column::filled(lanes, empty),
            each: timing.lanes,
            lane_shift,
            room: timing.room,
            ring_shift,
            rooms: Column::filled(several, 0),
        }
    }

    /// A lane of a channel by its number there.
    #[inline(always)]
    pub(super) fn lane(&self, channel: u32, number: u32) -> u32 {
        channel << self.lane_shift | number
    }

    /// The channel of a lane.
    #[inline(always)]
    pub(super) fn channel_of(&self, lane: u32) -> u32 {
        lane >> self.lane_shift
    }

    /// The number of a lane at its channel.
    #[inline(always)]
    pub(super) fn number_of(&self, lane: u32) -> u32 {
        lane & ((1 << self.lane_shift) - 1)
    }

    #[inline(always)]
    fn room_index(&self, lane: u32, number: u16) -> u32 {
        (lane << self.ring_shift) | (u32::from(number) & ((1 << self.ring_shift) - 1))
    }

    #[inline(always)]
    fn room_at<R: Rules>(&self, lane: u32, number: u16) -> u32 {
        if R::room(self.room) == 1 { self.lanes[lane].room_at } else { self.rooms[self.room_index(lane, number)] }
    }

    #[inline(always)]
    fn set_room<R: Rules>(&mut self, lane: u32, number: u16, time: u32) {
        if R::room(self.room) == 1 {
            self.lanes[lane].room_at = time;
        } else {
            let index = self.room_index(lane, number);
            self.rooms[index] = time;
        }
    }

    /// Parcels in a buffer behind which there is no room at `now`.
    #[inline(always)]
    pub(super) fn held<R: Rules>(&mut self, lane: u32, now: u32) -> u16 {
        let Lane { entered, leaving, mut left, .. } = self.lanes[lane];
        while left != leaving && self.room_at::<R>(lane, left) <= now {
            left = left.wrapping_add(1);
        }
        self.lanes[lane].left = left;
        entered.wrapping_sub(left)
    }

    /// When there is room in a lane's buffer for a further parcel: `now`, later, or [`NONE`] if that is not known.
    #[inline(always)]
    pub(super) fn has_room_at<R: Rules>(&mut self, lane: u32, now: u32) -> u32 {
        let room = R::room(self.room);
        if room == 0 || self.held::<R>(lane, now) < room {
            return now;
        }
        let Lane { leaving, left, .. } = self.lanes[lane];
        if left == leaving { NONE } else { self.room_at::<R>(lane, left) }
    }

    /// A parcel begins to enter a buffer.
    #[inline(always)]
    pub(super) fn enter<R: Rules>(&mut self, lane: u32) {
        let lane = &mut self.lanes[lane];
        lane.entered = lane.entered.wrapping_add(u16::from(R::room(self.room) > 0));
    }

    /// There will be room at `time` behind the parcel that leaves a buffer next. Does somebody wait for that?
    #[inline(always)]
    pub(super) fn leave<R: Rules>(&mut self, lane: u32, time: u32) -> bool {
        if R::room(self.room) == 0 {
            return false;
        }
        let leaving = self.lanes[lane].leaving;
        self.set_room::<R>(lane, leaving, time);
        let lane = &mut self.lanes[lane];
        debug_assert!(lane.leaving != lane.entered, "who leaves a buffer has entered it");
        lane.leaving = leaving.wrapping_add(1);
        lane.is_awaited
    }

    /// All times are `cycles` less from now on.
    pub(super) fn rebase(&mut self, cycles: u32) {
        let earlier = |time: &mut u32| *time = if *time == NONE { NONE } else { time.saturating_sub(cycles) };
        for output in self.outputs.iter_mut() {
            earlier(&mut output.busy);
            earlier(&mut output.look);
        }
        self.inputs.iter_mut().for_each(|input| earlier(&mut input.busy));
        self.lanes.iter_mut().for_each(|lane| earlier(&mut lane.room_at));
        self.rooms.iter_mut().for_each(earlier);
    }
}
