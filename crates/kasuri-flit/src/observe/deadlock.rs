//! Deadlock while running: packets that wait for each other and for nothing else.
//!
//! A buffer can move if its front packet holds an output virtual channel whose downstream buffer has room or can itself move, or
//! waits for one that is free or whose holder can move. The set of buffers that can move is the least fixed point of this rule;
//! flits outside it are deadlocked for ever, however busy the rest of the network is. (Warnakulasuriya and Pinkston 1997 call
//! the set of channels a knot.)

use crate::fabric::layout::RouterLayout;
use crate::fabric::vc_mask::VcMask;
use crate::state::{InputSlot, NONE, Simulation};
use kasuri_model::engine::EngineError;
use kasuri_model::router::Switching;
use kasuri_network::id::ChannelId;
use std::collections::BTreeMap;

/// Buffers of a standstill that are described, at most.
const NAMED: usize = 4;

/// Virtual channels of an output port that a head waits for.
struct Asked {
    port: u32,
    channels: std::ops::Range<u32>,
}

impl<L: RouterLayout> Simulation<'_, L> {
    /// A cycle of (channel, virtual channel), each waiting for the next, or nothing.
    pub(crate) fn find_deadlock(&self) -> Vec<(ChannelId, u16)> {
        let waiting = self.waiting_heads();
        let stuck = self.stuck_slots(&waiting);
        self.cycle_among(&stuck)
    }

    /// What stands still although no packets wait for each other: a few of the packets, where they are, and what they wait for.
    pub(crate) fn standstill(&self) -> EngineError {
        let waiting = self.waiting_heads();
        let all: Vec<u32> = (0..self.first_terminal_slot()).filter(|&slot| self.layout.flits(slot) > 0).collect();
        let mut standing: Vec<String> = all.iter().take(NAMED).map(|&slot| self.standing_in(slot, &waiting)).collect();
        if all.len() > NAMED {
            standing.push(format!("and so on in {} more buffers", all.len() - NAMED));
        }
        if standing.is_empty() {
            standing.push(format!("{} flits have left the routers and stay before their terminals", self.statistics.flits_inside));
        }
        EngineError::Standstill { cycle: self.cycle, what: standing.join("; ") }
    }

    /// What stands in a buffer, in words.
    fn standing_in(&self, slot: u32, waiting: &BTreeMap<u32, Vec<Asked>>) -> String {
        let vc = |slot: u32| slot & (L::Mask::BITS - 1);
        let name = |channel: Option<ChannelId>| channel.map_or_else(String::new, |channel| self.scenario.network.channel_name(channel));
        let packet = &self.packets[self.front_packet(slot) as usize];
        let output = self.layout.held_output(slot);
        let wish = match waiting.get(&slot).and_then(|asked| asked.first()) {
            _ if output != NONE => {
                let channel = name(self.channel_of_port(output >> L::Mask::SHIFT));
                format!("holds virtual channel {} of {channel}, behind which there is room for {} flits", vc(output), self.room(output))
            }
            Some(asked) => format!("waits for a virtual channel of {}", name(self.channel_of_port(asked.port))),
            None => "waits for the rest of it".to_owned(),
        };
        let (source, destination, flits) = (packet.source, packet.destination, packet.flits);
        let place = name(self.channel_into_port(slot >> L::Mask::SHIFT));
        format!(
            "a packet of {flits} flits from terminal {source} to terminal {destination} in virtual channel {} of {place} {wish}",
            vc(slot)
        )
    }

    /// Heads that wait for a virtual channel: what each asks for.
    fn waiting_heads(&self) -> BTreeMap<u32, Vec<Asked>> {
        let mut waiting = BTreeMap::<u32, Vec<Asked>>::new();
        for port in 0..self.parameters.first_terminal_port {
            let mut head = self.wiring.links[port].request_head;
            while head != NONE {
                let InputSlot { request_first: first, request_last: last, request_next, .. } = *self.layout.input_slot(head);
                waiting.entry(head).or_default().push(Asked { port, channels: u32::from(first)..u32::from(last) + 1 });
                head = request_next;
            }
        }
        let mut several = Vec::new();
        self.layout.append_waiting(&mut several);
        for (slot, candidate) in several {
            let router = self.wiring.router_of_port[slot >> L::Mask::SHIFT];
            let port = self.wiring.router_port[router] + u32::from(candidate.port);
            let channels = u32::from(candidate.virtual_channels.begin)..u32::from(candidate.virtual_channels.end);
            waiting.entry(slot).or_default().push(Asked { port, channels });
        }
        waiting
    }

    /// What the front packet of a buffer waits for: downstream buffers that must drain, and holders that must finish.
    fn waits_for(&self, slot: u32, waiting: &BTreeMap<u32, Vec<Asked>>) -> Option<Vec<u32>> {
        let output = self.layout.held_output(slot);
        if output != NONE {
            let downstream = self.wiring.links[output >> L::Mask::SHIFT].flit_link + (output & (L::Mask::BITS - 1));
            let drains = self.room(output) > 0 || self.layout.flits(slot) == 0 || self.in_sink(downstream);
            // An empty buffer in the middle of a packet waits for its upstream, which is looked at for itself.
            return (!drains).then(|| vec![downstream]);
        }
        let mut obstacles = Vec::new();
        for Asked { port, channels } in waiting.get(&slot)? {
            for vc in channels.clone() {
                let output = port << L::Mask::SHIFT | vc;
                let holder = self.layout.holder(output);
                let downstream = self.wiring.links[*port].flit_link + vc;
                let free = !self.layout.free(*port).and(L::Mask::bit(vc)).is_empty();
                let roomy = self.parameters.switching == Switching::Wormhole || self.layout.credits(output) >= self.layout.left(slot);
                if (free && roomy) || self.in_sink(downstream) {
                    return None;
                }
                obstacles.push(if holder != NONE { holder } else { downstream });
            }
        }
        Some(obstacles)
    }

    fn in_sink(&self, slot: u32) -> bool {
        slot >= self.first_terminal_slot()
    }

    /// Router buffers with flits that can never move again.
    fn stuck_slots(&self, waiting: &BTreeMap<u32, Vec<Asked>>) -> BTreeMap<u32, Vec<u32>> {
        let routers = self.first_terminal_slot();
        let mut stuck: BTreeMap<u32, Vec<u32>> =
            (0..routers).filter_map(|slot| self.waits_for(slot, waiting).map(|obstacles| (slot, obstacles))).collect();
        loop {
            let moving: Vec<u32> = stuck
                .iter()
                .filter(|(_, obstacles)| obstacles.iter().any(|obstacle| !stuck.contains_key(obstacle)))
                .map(|(&slot, _)| slot)
                .collect();
            if moving.is_empty() {
                return stuck;
            }
            for slot in moving {
                stuck.remove(&slot);
            }
        }
    }

    fn cycle_among(&self, stuck: &BTreeMap<u32, Vec<u32>>) -> Vec<(ChannelId, u16)> {
        let Some((&start, _)) = stuck.iter().next() else { return Vec::new() };
        // Every stuck buffer waits for stuck buffers only: following the first one closes a cycle.
        let mut order = BTreeMap::new();
        let mut path = Vec::new();
        let mut slot = start;
        while let std::collections::btree_map::Entry::Vacant(entry) = order.entry(slot) {
            entry.insert(path.len());
            path.push(slot);
            slot = stuck[&slot][0];
        }
        path.drain(..order[&slot]);
        path.into_iter()
            .map(|slot| {
                let channel = self.channel_into_port(slot >> L::Mask::SHIFT).expect("a buffer with flits has a channel");
                (channel, (slot & (L::Mask::BITS - 1)) as u16)
            })
            .collect()
    }
}
