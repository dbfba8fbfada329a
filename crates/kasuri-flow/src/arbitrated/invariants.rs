//! The invariants: what has left sources has arrived or is on its way, no lane has two owners, channels count their taken lanes, and no
//! buffer holds more than it can.

use super::Run;
use super::records::NONE;
use super::rules::AnyRules;
use super::transit::Transit;
use kasuri_model::engine::EngineError;
use std::collections::BTreeSet;

impl Run<'_> {
    /// Checks the invariants of a run.
    pub(super) fn check(&mut self) -> Result<(), EngineError> {
        let cycle = self.transit.now();
        self.transit.broken().map_or(Ok(()), |what| Err(EngineError::Unbalanced { cycle, what }))
    }
}

impl Transit {
    /// The first invariant that does not hold, in words.
    fn broken(&mut self) -> Option<String> {
        let parcels = || self.parcels.on_their_way().map(|number| &self.parcels.parcels[number]);
        let inside: u64 = parcels().filter(|parcel| parcel.lane != NONE).map(|parcel| u64::from(parcel.flits)).sum();
        let (entered, left) = (self.counted.flits_in, self.counted.flits_out);
        if entered != left + inside {
            return Some(format!("{entered} flits have left their sources, {left} have arrived, {inside} are under way"));
        }
        let owners = self.owners();
        let lanes: BTreeSet<u32> = owners.iter().map(|&(lane, _)| lane).collect();
        if lanes.len() != owners.len() {
            return Some(format!("{} virtual channels have {} owners", lanes.len(), owners.len()));
        }
        if lanes.iter().any(|&lane| !self.channels.lanes[lane].is_taken) {
            return Some("a virtual channel that a packet holds is not taken".to_owned());
        }
        let is_taken = |channel: u32, number: u32| self.channels.lanes[self.channels.lane(channel, number)].is_taken;
        let taken = |channel: u32| (0..self.channels.each).filter(|&number| is_taken(channel, number)).count();
        if let Some(channel) = (0..).zip(self.channels.outputs.iter()).find_map(|(channel, output)| {
            let differs = usize::from(output.taken) != taken(channel);
            differs.then_some(channel)
        }) {
            return Some(format!("channel {channel} has {} virtual channels that are taken, and counts others", taken(channel)));
        }
        let (now, room) = (self.cycle(), self.timing.room);
        let lanes = self.channels.lanes.len() as u32;
        let overfull = (0..lanes).find(|&lane| room > 0 && self.channels.held::<AnyRules>(lane, now) > room);
        overfull.map(|lane| format!("the buffer of virtual channel {} holds more than {room} parcels", self.channels.number_of(lane)))
    }
}
