//! Deadlock while running: packets that wait for each other and for nothing else.
//!
//! A buffer can move if its front packet holds an output virtual channel whose downstream buffer has room or can itself move, or
//! waits for one that is free or whose holder can move. The set of buffers that can move is the least fixed point of this rule;
//! flits outside it are deadlocked for ever, however busy the rest of the network is. (Warnakulasuriya and Pinkston 1997 call
//! the set of channels a knot.)

use crate::record::marks::{DISCARDED, NONE};
use crate::record::slots::InputSlot;
use crate::record::team::Team;
use crate::record::vc_mask::VcMask;
use crate::state::layout::RouterState;
use crate::state::tile::Tile;
use crate::state::wiring::RouterPlace;
use kasuri_model::engine::EngineError;
use kasuri_model::router::Switching;
use kasuri_network::id::ChannelId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// Cycles between two looks for packets that wait for each other in a part of the network while the rest goes on.
pub(crate) const PERIOD: u64 = 16_384;

/// Buffers of a standstill that are described, at most.
const NAMED: usize = 4;

/// A slot of a tile, by the tile's number and its address there.
type Place = (u32, u32);

/// Virtual channels of an output port of a tile that a head waits for.
struct Asked {
    port: u32,
    channels: Range<u32>,
}

/// Heads of a tile that wait for virtual channels, by the slots in which they stand: what they ask for, one wish after the other.
struct Waiting(Vec<(u32, Asked)>);

impl Waiting {
    fn of<L: RouterState>(tile: &Tile<'_, L>) -> Self {
        let mut waiting = Vec::new();
        for port in 0..tile.parameters.first_terminal_port {
            let mut head = tile.wiring.links[port].request_head;
            while head != NONE {
                let InputSlot { request_first: first, request_last: last, request_next, .. } = *tile.layout.input_slot(head);
                waiting.push((head, Asked { port, channels: u32::from(first)..u32::from(last) + 1 }));
                head = request_next;
            }
        }
        let mut several = Vec::new();
        tile.layout.append_waiting(&mut several);
        for (slot, candidate) in several {
            let port = tile.wiring.router_at(slot >> L::Mask::SHIFT).first_port + u32::from(candidate.port);
            let channels = u32::from(candidate.virtual_channels.begin)..u32::from(candidate.virtual_channels.end);
            waiting.push((slot, Asked { port, channels }));
        }
        // The wishes of one head stay in their order.
        waiting.sort_by_key(|(slot, _)| *slot);
        Self(waiting)
    }
}

/// The buffers of a tile that do not move unless others do, and what each waits for. There are as many as flits stand in a busy network, so
/// they are kept in flat lists.
#[derive(Default)]
struct Blocked {
    /// Slots, ascending, and the place of what each waits for among the obstacles.
    buffers: Vec<(u32, Range<u32>)>,
    obstacles: Vec<Place>,
    /// Slots that have turned out to move since the last look.
    moving: Vec<u32>,
}

impl Blocked {
    /// Looks at all buffers of a tile, given its number and, by tile, the slots of routers.
    fn of<L: RouterState>(tile: &Tile<'_, L>, number: u32, router_slots: &[u32]) -> Self {
        let waiting = Waiting::of(tile);
        let mut rest = waiting.0.as_slice();
        let mut blocked = Self::default();
        for slot in 0..tile.first_terminal_slot() {
            let first = blocked.obstacles.len();
            // What the head in this slot asks for stands before what those in later slots do.
            let (asked, of_others) = rest.split_at(rest.iter().take_while(|(other, _)| *other == slot).count());
            rest = of_others;
            if tile.is_blocked((number, slot), asked, router_slots, &mut blocked.obstacles) {
                blocked.buffers.push((slot, first as u32..blocked.obstacles.len() as u32));
            } else {
                blocked.obstacles.truncate(first);
            }
        }
        blocked
    }

    /// Finds the buffers that move because something that they wait for does.
    fn find_moving(&mut self, is_stuck: &[Vec<bool>]) {
        let Self { buffers, obstacles, moving } = self;
        moving.clear();
        buffers.retain(|(slot, places)| {
            let stays = obstacles_at(obstacles, places).iter().all(|&(tile, slot)| is_stuck[tile as usize][slot as usize]);
            if !stays {
                moving.push(*slot);
            }
            stays
        });
    }
}

/// What a buffer waits for.
fn obstacles_at<'o>(obstacles: &'o [Place], places: &Range<u32>) -> &'o [Place] {
    &obstacles[places.start as usize..places.end as usize]
}

/// Router buffers with flits that can never move again, by tile: each thread looks at its own tiles, again and again until no more
/// buffers turn out to move.
fn find_stuck<L: RouterState>(tiles: &mut [Tile<'_, L>], team: &mut Team<'_>) -> Vec<Blocked> {
    let router_slots: Vec<u32> = tiles.iter().map(Tile::first_terminal_slot).collect();
    let mut looked_at: Vec<(&mut Tile<'_, L>, Blocked)> = tiles.iter_mut().map(|tile| (tile, Blocked::default())).collect();
    team.each(&mut looked_at, |number, (tile, blocked)| *blocked = Blocked::of(tile, number as u32, &router_slots));
    let mut all: Vec<Blocked> = looked_at.into_iter().map(|(_, blocked)| blocked).collect();
    let mut is_stuck: Vec<Vec<bool>> = router_slots.iter().map(|&slots| vec![false; slots as usize]).collect();
    for (flags, blocked) in is_stuck.iter_mut().zip(&all) {
        blocked.buffers.iter().for_each(|(slot, _)| flags[*slot as usize] = true);
    }
    loop {
        team.each(&mut all, |_, blocked| blocked.find_moving(&is_stuck));
        if all.iter().all(|blocked| blocked.moving.is_empty()) {
            return all;
        }
        for (flags, blocked) in is_stuck.iter_mut().zip(&all) {
            blocked.moving.iter().for_each(|&slot| flags[slot as usize] = false);
        }
    }
}

/// The tiles of a run between two windows.
struct Standing<'t, 'a, L: RouterState>(&'t [Tile<'a, L>]);

impl<L: RouterState> Clone for Standing<'_, '_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: RouterState> Copy for Standing<'_, '_, L> {}

/// A cycle of (channel, virtual channel), each waiting for the next, or nothing.
pub(crate) fn find_deadlock<L: RouterState>(tiles: &mut [Tile<'_, L>], team: &mut Team<'_>) -> Vec<(ChannelId, u16)> {
    let stuck = find_stuck(tiles, team);
    Standing(tiles).cycle_among(&stuck)
}

/// The packets that stay although none of them wait for each other: a few of them, where they are, and what they wait for.
pub(crate) fn describe_standstill<L: RouterState>(tiles: &[Tile<'_, L>], cycle: u64, flits_inside: u64) -> EngineError {
    Standing(tiles).describe(cycle, flits_inside)
}

impl<'t, 'a, L: RouterState> Standing<'t, 'a, L> {
    /// What stands still although no packets wait for each other: a few of the packets, where they are, and what they wait for.
    fn describe(self, cycle: u64, flits_inside: u64) -> EngineError {
        let mut all: Vec<Place> = self.places().filter(|&place| self.tile(place).layout.flits(place.1) > 0).collect();
        all.sort_by_key(|&place| self.in_network(place));
        let mut standing: Vec<String> = all.iter().take(NAMED).map(|&place| self.standing_in(place)).collect();
        if all.len() > NAMED {
            standing.push(format!("and so on in {} more buffers", all.len() - NAMED));
        }
        if standing.is_empty() {
            standing.push(format!("{} flits have left the routers and stay before their terminals", flits_inside));
        }
        EngineError::Standstill { cycle, what: standing.join("; ") }
    }

    fn tile(self, place: Place) -> &'t Tile<'a, L> {
        &self.0[place.0 as usize]
    }

    /// Where a slot is in the network, whatever the tiles: the router's number, and the slot's number within the router.
    fn in_network(self, place: Place) -> (u32, u32) {
        let wiring = &self.tile(place).wiring;
        let RouterPlace { router, first_port } = wiring.router_at(place.1 >> L::Mask::SHIFT);
        (router, place.1 - (first_port << L::Mask::SHIFT))
    }

    /// All slots of routers.
    fn places(self) -> impl Iterator<Item = Place> {
        self.0.iter().zip(0..).flat_map(|(tile, number)| (0..tile.first_terminal_slot()).map(move |slot| (number, slot)))
    }

    /// What stands in a buffer, in words.
    fn standing_in(self, place: Place) -> String {
        let (tile, slot) = (self.tile(place), place.1);
        let vc = |slot: u32| slot & (L::Mask::BITS - 1);
        let name = |channel: Option<ChannelId>| channel.map_or_else(String::new, |channel| tile.scenario.network.channel_name(channel));
        let packet = &tile.packets[tile.front_packet(slot)];
        let output = tile.layout.held_output(slot);
        let wish = match Waiting::of(tile).0.iter().find(|(other, _)| *other == slot) {
            _ if output == DISCARDED => "is thrown away".to_owned(),
            _ if output != NONE => {
                let channel = name(tile.channel_of_port(output >> L::Mask::SHIFT));
                format!("holds virtual channel {} of {channel}, behind which there is room for {} flits", vc(output), tile.room(output))
            }
            Some((_, asked)) => format!("waits for a virtual channel of {}", name(tile.channel_of_port(asked.port))),
            None => "waits for the rest of it".to_owned(),
        };
        let (source, destination, flits) = (packet.source, packet.destination, packet.flits);
        let where_it_is = name(tile.channel_into_port(slot >> L::Mask::SHIFT));
        format!(
            "a packet of {flits} flits from terminal {source} to terminal {destination} in virtual channel {} of {where_it_is} {wish}",
            vc(slot)
        )
    }

    fn cycle_among(self, stuck: &[Blocked]) -> Vec<(ChannelId, u16)> {
        let places = stuck.iter().zip(0..).flat_map(|(blocked, tile)| blocked.buffers.iter().map(move |&(slot, _)| (tile, slot)));
        let Some(start) = places.min_by_key(|&place| self.in_network(place)) else { return Vec::new() };
        // Every stuck buffer waits for stuck buffers only: following the first one closes a cycle.
        let mut order = BTreeMap::new();
        let mut path = Vec::new();
        let mut place = start;
        while let Entry::Vacant(entry) = order.entry(place) {
            entry.insert(path.len());
            path.push(place);
            let blocked = &stuck[place.0 as usize];
            let own = blocked.buffers.binary_search_by_key(&place.1, |(slot, _)| *slot).expect("it is stuck");
            place = obstacles_at(&blocked.obstacles, &blocked.buffers[own].1)[0];
        }
        path.drain(..order[&place]);
        path.into_iter()
            .map(|place| {
                let channel = self.tile(place).channel_into_port(place.1 >> L::Mask::SHIFT).expect("a buffer with flits has a channel");
                (channel, (place.1 & (L::Mask::BITS - 1)) as u16)
            })
            .collect()
    }
}

impl<L: RouterState> Tile<'_, L> {
    /// The buffer behind an output slot of this tile, of this number; `None` if it is a sink, which always drains.
    fn buffer_behind(&self, number: u32, output: u32, router_slots: &[u32]) -> Option<Place> {
        let place = self
            .in_flight
            .border
            .behind::<L>(number, self.wiring.links[output >> L::Mask::SHIFT].flit_link + (output & (L::Mask::BITS - 1)));
        (place.1 < router_slots[place.0 as usize]).then_some(place)
    }

    /// Does a buffer's front packet wait for others? Adds for whom: downstream buffers that must drain, and holders that must finish.
    fn is_blocked(&self, (number, slot): Place, asked: &[(u32, Asked)], router_slots: &[u32], obstacles: &mut Vec<Place>) -> bool {
        let output = self.layout.held_output(slot);
        if output == DISCARDED {
            return false;
        }
        if output != NONE {
            // An empty buffer in the middle of a packet waits for its upstream, which is looked at for itself.
            if self.room(output) > 0 || self.layout.flits(slot) == 0 {
                return false;
            }
            let Some(downstream) = self.buffer_behind(number, output, router_slots) else { return false };
            obstacles.push(downstream);
            return true;
        }
        for (port, vc) in asked.iter().flat_map(|(_, asked)| asked.channels.clone().map(|vc| (asked.port, vc))) {
            let output = port << L::Mask::SHIFT | vc;
            let holder = self.layout.holder(output);
            let Some(downstream) = self.buffer_behind(number, output, router_slots) else { return false };
            let free = !self.layout.free(port).and(L::Mask::bit(vc)).is_empty();
            let roomy = self.parameters.switching == Switching::Wormhole || self.layout.credits(output) >= self.layout.left(slot);
            // What a copy holds comes back by itself.
            if free && roomy || self.lends(output) {
                return false;
            }
            obstacles.push(if holder != NONE { (number, holder) } else { downstream });
        }
        !asked.is_empty()
    }
}
