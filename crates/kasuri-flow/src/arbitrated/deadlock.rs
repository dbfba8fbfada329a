//! Parcels that wait for each other: where nothing is posted and parcels are left, each waits for what another one has.

use super::records::{NONE, Parcel};
use super::transit::Transit;
use kasuri_network::id::ChannelId;
use std::collections::BTreeMap;

impl Transit {
    /// The places of a parcel's path in whose buffers it lies while its head waits, none at its source. Of all but the first it owns the
    /// lanes: its tail has not crossed the channel there, nor is it known when it will have.
    pub(super) fn spanned_places(&self, number: u32) -> std::ops::Range<u16> {
        let Parcel { place, lane, flits, asks, .. } = self.parcels.parcels[number];
        if lane == NONE {
            return 0..0;
        }
        let at = place - u16::from(asks);
        let span = self.timing.span(flits).min(usize::from(at) + 1) as u16;
        at + 1 - span..at + 1
    }

    /// Lanes and who owns them: parcels that have not begun to cross, and those that lie there.
    pub(super) fn owners(&self) -> Vec<(u32, u32)> {
        let mut owners = Vec::new();
        for (output, channel) in self.channels.outputs.iter().zip(0..).filter(|(output, _)| !output.ejects) {
            owners.extend(output.ready.iter().map(|entry| (self.channels.lane(channel, entry.first.into()), entry.parcel)));
        }
        for number in self.parcels.on_their_way() {
            // The head has begun to cross its last channel: its tail follows, and all is known.
            let is_arriving = self.parcels.parcels[number].arrives;
            let spanned = self.spanned_places(number).skip(1).filter(|_| !is_arriving);
            owners.extend(spanned.map(|place| (self.parcels.place(number, place).lane, number)));
        }
        owners
    }

    /// By parcel whose head waits: a lane that it waits for, and who has to get on before that is free.
    fn waits(&self) -> BTreeMap<u32, (u32, u32)> {
        let owners: BTreeMap<u32, u32> = self.owners().into_iter().collect();
        let mut waits = BTreeMap::new();
        for (output, channel) in self.channels.outputs.iter().zip(0u32..) {
            let lane = |number: u8| self.channels.lane(channel, number.into());
            for entry in &output.waiting {
                if let Some(&owner) = owners.get(&lane(entry.first)) {
                    waits.insert(entry.parcel, (lane(entry.first), owner));
                }
            }
            for entry in output.ready.iter().filter(|_| !output.ejects) {
                waits.insert(entry.parcel, (lane(entry.first), self.channels.lanes[lane(entry.first)].front));
            }
        }
        for number in self.parcels.on_their_way() {
            let parcel = &self.parcels.parcels[number];
            if parcel.is_behind {
                waits.insert(number, (parcel.lane, self.channels.lanes[parcel.lane].front));
            }
        }
        waits
    }

    /// A cycle of channels and lanes, each waiting for the next, the last for the first.
    pub(super) fn cycle_of_waits(&self) -> Vec<(ChannelId, u16)> {
        let waits = self.waits();
        let Some(&begin) = waits.keys().next() else { return Vec::new() };
        // All wait, so whoever is followed comes to a cycle.
        let (mut seen, mut order) = (BTreeMap::new(), Vec::new());
        let mut number = begin;
        while let Some(&(lane, next)) = waits.get(&number) {
            if let Some(&first) = seen.get(&number) {
                let cycle: &[(u32, u32)] = &order[first..];
                return cycle.iter().flat_map(|&(lane, owner)| self.lanes_from(lane, owner)).collect();
            }
            seen.insert(number, order.len());
            order.push((lane, next));
            number = next;
        }
        Vec::new()
    }

    /// The lanes of a parcel from this one on to that in which its head stands.
    fn lanes_from(&self, lane: u32, owner: u32) -> Vec<(ChannelId, u16)> {
        let name = |lane: u32| (ChannelId(self.channels.channel_of(lane)), self.channels.number_of(lane) as u16);
        let places = self.spanned_places(owner);
        let lanes: Vec<u32> = places.map(|place| self.parcels.place(owner, place).lane).collect();
        let from = lanes.iter().position(|&other| other == lane).unwrap_or(0);
        if lanes.is_empty() { vec![name(lane)] } else { lanes[from..].iter().map(|&lane| name(lane)).collect() }
    }
}
