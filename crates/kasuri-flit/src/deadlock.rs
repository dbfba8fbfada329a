//! Deadlock while running: packets that wait for each other and for nothing else.
//!
//! A buffer can move if its front packet holds an output virtual channel whose downstream buffer has room or can itself move, or
//! waits for one that is free or whose holder can move. The set of buffers that can move is the least fixed point of this rule;
//! flits outside it are deadlocked for ever, however busy the rest of the network is. (Warnakulasuriya and Pinkston 1997 call
//! the set of channels a knot.)

use crate::state::{NONE, Simulation};
use crate::vc_mask::VcMask;
use kasuri_model::id::ChannelId;
use kasuri_model::router::{Switching, VcRelease};
use std::collections::BTreeMap;

impl<M: VcMask> Simulation<'_, M> {
    /// A cycle of (channel, virtual channel), each waiting for the next, or nothing.
    pub(crate) fn find_deadlock(&self) -> Vec<(ChannelId, u16)> {
        let waiting = self.waiting_heads();
        let stuck = self.stuck_slots(&waiting);
        self.cycle_among(&stuck, &waiting)
    }

    /// Heads that wait for a virtual channel: input slot to output port.
    fn waiting_heads(&self) -> BTreeMap<u32, u32> {
        let mut waiting = BTreeMap::new();
        for port in 0..self.parameters.first_terminal_port {
            let mut head = self.request_head[port];
            while head != NONE {
                waiting.insert(head, port);
                head = self.request_next[head];
            }
        }
        waiting
    }

    /// What the front packet of a buffer waits for: downstream buffers that must drain, and holders that must finish.
    fn waits_for(&self, slot: u32, waiting: &BTreeMap<u32, u32>) -> Option<Vec<u32>> {
        let output = self.input[slot].output;
        if output != NONE {
            let downstream = self.output_port[output >> M::SHIFT].link + (output & (M::BITS - 1));
            let drains = self.output[output].credits > 0 || self.input[slot].flits == 0 || self.in_sink(downstream);
            // An empty buffer in the middle of a packet waits for its upstream, which is looked at for itself.
            return (!drains).then(|| vec![downstream]);
        }
        let &port = waiting.get(&slot)?;
        let (first, last) = self.request_range[slot];
        let mut obstacles = Vec::new();
        for vc in u32::from(first)..=u32::from(last) {
            let output = port << M::SHIFT | vc;
            let account = self.output[output];
            let downstream = self.output_port[port].link + vc;
            let free = !self.output_port[port].free.and(M::bit(vc)).is_empty();
            let roomy = self.parameters.switching == Switching::Wormhole || account.credits >= self.input[slot].left;
            if (free && roomy) || self.in_sink(downstream) {
                return None;
            }
            obstacles.push(if account.holder != NONE { account.holder } else { downstream });
        }
        Some(obstacles)
    }

    fn in_sink(&self, slot: u32) -> bool {
        slot >= self.parameters.first_terminal_port << M::SHIFT
    }

    /// Router buffers with flits that can never move again.
    fn stuck_slots(&self, waiting: &BTreeMap<u32, u32>) -> BTreeMap<u32, Vec<u32>> {
        debug_assert!(matches!(self.parameters.release, VcRelease::Tail | VcRelease::TailCredit));
        let routers = self.parameters.first_terminal_port << M::SHIFT;
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

    fn cycle_among(&self, stuck: &BTreeMap<u32, Vec<u32>>, _waiting: &BTreeMap<u32, u32>) -> Vec<(ChannelId, u16)> {
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
                let channel = self.channel_into_port(slot >> M::SHIFT).expect("a buffer with flits has a channel");
                (channel, (slot & (M::BITS - 1)) as u16)
            })
            .collect()
    }
}
