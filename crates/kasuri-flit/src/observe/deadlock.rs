//! Deadlock while running: packets that wait for each other and for nothing else.
//!
//! A buffer can move if its front packet holds an output virtual channel whose downstream buffer has room or can itself move, or
//! waits for one that is free or whose holder can move. The set of buffers that can move is the least fixed point of this rule;
//! flits outside it are deadlocked for ever, however busy the rest of the network is. (Warnakulasuriya and Pinkston 1997 call
//! the set of channels a knot.)

use crate::fabric::layout::RouterLayout;
use crate::fabric::vc_mask::VcMask;
use crate::run::Run;
use crate::tile::{InputSlot, NONE, THROWN_AWAY, Tile};
use kasuri_model::engine::EngineError;
use kasuri_model::router::Switching;
use kasuri_network::id::ChannelId;
use std::collections::BTreeMap;

/// Buffers of a standstill that are described, at most.
const NAMED: usize = 4;

/// A slot of a tile, by the tile's number and its address there.
type Place = (u32, u32);

/// Virtual channels of an output port of a tile that a head waits for.
struct Asked {
    port: u32,
    channels: std::ops::Range<u32>,
}

/// By the place of a head that waits for a virtual channel: what it asks for.
type Waiting = BTreeMap<Place, Vec<Asked>>;

impl<L: RouterLayout> Run<'_, L> {
    /// A cycle of (channel, virtual channel), each waiting for the next, or nothing.
    pub(crate) fn find_deadlock(&self) -> Vec<(ChannelId, u16)> {
        let waiting = self.waiting_heads();
        let stuck = self.stuck_places(&waiting);
        self.cycle_among(&stuck)
    }

    /// What stands still although no packets wait for each other: a few of the packets, where they are, and what they wait for.
    pub(crate) fn standstill(&self) -> EngineError {
        let waiting = self.waiting_heads();
        let mut all: Vec<Place> = self.places().filter(|&place| self.tile(place).layout.flits(place.1) > 0).collect();
        all.sort_by_key(|&place| self.in_network(place));
        let mut standing: Vec<String> = all.iter().take(NAMED).map(|&place| self.standing_in(place, &waiting)).collect();
        if all.len() > NAMED {
            standing.push(format!("and so on in {} more buffers", all.len() - NAMED));
        }
        if standing.is_empty() {
            standing.push(format!("{} flits have left the routers and stay before their terminals", self.flits_inside()));
        }
        EngineError::Standstill { cycle: self.cycle, what: standing.join("; ") }
    }

    fn tile(&self, place: Place) -> &Tile<'_, L> {
        &self.tiles[place.0 as usize]
    }

    /// Where a slot is in the network, whatever the tiles: the router's number, and the slot's number within the router.
    fn in_network(&self, place: Place) -> (u32, u32) {
        let wiring = &self.tile(place).wiring;
        let router = wiring.router_of_port[place.1 >> L::Mask::SHIFT];
        (router, place.1 - (wiring.first_port(router) << L::Mask::SHIFT))
    }

    /// All slots of routers.
    fn places(&self) -> impl Iterator<Item = Place> {
        self.tiles.iter().zip(0..).flat_map(|(tile, number)| (0..tile.first_terminal_slot()).map(move |slot| (number, slot)))
    }

    /// What stands in a buffer, in words.
    fn standing_in(&self, place: Place, waiting: &Waiting) -> String {
        let (tile, slot) = (self.tile(place), place.1);
        let vc = |slot: u32| slot & (L::Mask::BITS - 1);
        let name = |channel: Option<ChannelId>| channel.map_or_else(String::new, |channel| self.scenario.network.channel_name(channel));
        let packet = &tile.packets[tile.front_packet(slot) as usize];
        let output = tile.layout.held_output(slot);
        let wish = match waiting.get(&place).and_then(|asked| asked.first()) {
            _ if output == THROWN_AWAY => "is thrown away".to_owned(),
            _ if output != NONE => {
                let channel = name(tile.channel_of_port(output >> L::Mask::SHIFT));
                format!("holds virtual channel {} of {channel}, behind which there is room for {} flits", vc(output), tile.room(output))
            }
            Some(asked) => format!("waits for a virtual channel of {}", name(tile.channel_of_port(asked.port))),
            None => "waits for the rest of it".to_owned(),
        };
        let (source, destination, flits) = (packet.source, packet.destination, packet.flits);
        let where_it_is = name(tile.channel_into_port(slot >> L::Mask::SHIFT));
        format!(
            "a packet of {flits} flits from terminal {source} to terminal {destination} in virtual channel {} of {where_it_is} {wish}",
            vc(slot)
        )
    }

    /// Heads that wait for a virtual channel: what each asks for.
    fn waiting_heads(&self) -> Waiting {
        let mut waiting = Waiting::new();
        for (tile, number) in self.tiles.iter().zip(0..) {
            let mut note = |slot: u32, asked: Asked| waiting.entry((number, slot)).or_default().push(asked);
            for port in 0..tile.parameters.first_terminal_port {
                let mut head = tile.wiring.links[port].request_head;
                while head != NONE {
                    let InputSlot { request_first: first, request_last: last, request_next, .. } = *tile.layout.input_slot(head);
                    note(head, Asked { port, channels: u32::from(first)..u32::from(last) + 1 });
                    head = request_next;
                }
            }
            let mut several = Vec::new();
            tile.layout.append_waiting(&mut several);
            for (slot, candidate) in several {
                let router = tile.wiring.router_of_port[slot >> L::Mask::SHIFT];
                let port = tile.wiring.first_port(router) + u32::from(candidate.port);
                let channels = u32::from(candidate.virtual_channels.begin)..u32::from(candidate.virtual_channels.end);
                note(slot, Asked { port, channels });
            }
        }
        waiting
    }

    /// The buffer behind an output slot of a tile; `None` if it is a sink, which always drains.
    fn downstream(&self, tile: u32, output: u32) -> Option<Place> {
        let own = &self.tiles[tile as usize];
        let place = own.behind(tile, own.wiring.links[output >> L::Mask::SHIFT].flit_link + (output & (L::Mask::BITS - 1)));
        (place.1 < self.tile(place).first_terminal_slot()).then_some(place)
    }

    /// What the front packet of a buffer waits for: downstream buffers that must drain, and holders that must finish.
    fn waits_for(&self, place: Place, waiting: &Waiting) -> Option<Vec<Place>> {
        let (tile, number, slot) = (self.tile(place), place.0, place.1);
        let output = tile.layout.held_output(slot);
        if output == THROWN_AWAY {
            return None;
        }
        if output != NONE {
            let downstream = self.downstream(number, output)?;
            let drains = tile.room(output) > 0 || tile.layout.flits(slot) == 0;
            // An empty buffer in the middle of a packet waits for its upstream, which is looked at for itself.
            return (!drains).then(|| vec![downstream]);
        }
        let mut obstacles = Vec::new();
        for Asked { port, channels } in waiting.get(&place)? {
            for vc in channels.clone() {
                let output = port << L::Mask::SHIFT | vc;
                let holder = tile.layout.holder(output);
                let downstream = self.downstream(number, output)?;
                let free = !tile.layout.free(*port).and(L::Mask::bit(vc)).is_empty();
                let roomy = tile.parameters.switching == Switching::Wormhole || tile.layout.credits(output) >= tile.layout.left(slot);
                // What a copy holds comes back by itself.
                if free && roomy || tile.lends(output) {
                    return None;
                }
                obstacles.push(if holder != NONE { (number, holder) } else { downstream });
            }
        }
        Some(obstacles)
    }

    /// Router buffers with flits that can never move again.
    fn stuck_places(&self, waiting: &Waiting) -> BTreeMap<Place, Vec<Place>> {
        let mut stuck: BTreeMap<Place, Vec<Place>> =
            self.places().filter_map(|place| self.waits_for(place, waiting).map(|obstacles| (place, obstacles))).collect();
        loop {
            let moving: Vec<Place> = stuck
                .iter()
                .filter(|(_, obstacles)| obstacles.iter().any(|obstacle| !stuck.contains_key(obstacle)))
                .map(|(&place, _)| place)
                .collect();
            if moving.is_empty() {
                return stuck;
            }
            for place in moving {
                stuck.remove(&place);
            }
        }
    }

    fn cycle_among(&self, stuck: &BTreeMap<Place, Vec<Place>>) -> Vec<(ChannelId, u16)> {
        let Some(&start) = stuck.keys().min_by_key(|&&place| self.in_network(place)) else { return Vec::new() };
        // Every stuck buffer waits for stuck buffers only: following the first one closes a cycle.
        let mut order = BTreeMap::new();
        let mut path = Vec::new();
        let mut place = start;
        while let std::collections::btree_map::Entry::Vacant(entry) = order.entry(place) {
            entry.insert(path.len());
            path.push(place);
            place = stuck[&place][0];
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
