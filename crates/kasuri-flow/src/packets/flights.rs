//! Packets under way.

use kasuri_model::sources::SourceMessage;
use kasuri_network::id::TerminalId;
use kasuri_workload::endpoint::running::MachinePacket;
use std::ops::{Index, IndexMut};

/// What a packet is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// One of the machine's.
    Parcel(MachinePacket),
    /// One of the open traffic beside it.
    Open { source: TerminalId, drawn: SourceMessage },
}

/// A packet under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) load: Load,
    pub(super) created: u64,
    /// When it began to cross its first channel, if it has.
    pub(super) begun: Option<u64>,
    pub(super) has_arrived: bool,
    /// Its channels from the injection to the ejection, and the place of the one that it crosses or waits for.
    pub(super) path: Vec<u32>,
    pub(super) place: usize,
    pub(super) flits: u32,
}

impl Flight {
    /// A packet that joins the queue of its source.
    pub(super) fn new(load: Load, created: u64, path: Vec<u32>, flits: u32) -> Self {
        Self { load, created, begun: None, has_arrived: false, path, place: 0, flits }
    }

    pub(super) fn is_parcel(&self) -> bool {
        matches!(self.load, Load::Parcel(_))
    }

    /// Its class: the machine's parts are numbered after the `open` classes of open traffic.
    pub(super) fn class(&self, open: usize) -> usize {
        match &self.load {
            Load::Parcel(parcel) => open + usize::from(parcel.part),
            Load::Open { drawn, .. } => usize::from(drawn.class),
        }
    }

    /// Is its channel the last one of its path?
    pub(super) fn is_at_last(&self) -> bool {
        self.place + 1 == self.path.len()
    }

    pub(super) fn destination(&self) -> TerminalId {
        match &self.load {
            Load::Parcel(parcel) => parcel.destination,
            Load::Open { drawn, .. } => drawn.destination,
        }
    }
}

/// All packets under way, by name; names are used again.
#[derive(Debug, Default)]
pub(super) struct Flights {
    records: Vec<Flight>,
    free: Vec<u32>,
    live: u64,
    /// Of these the machine's.
    pub(super) parcels: u64,
}

impl Flights {
    /// A packet begins. Returns its name.
    pub(super) fn begin(&mut self, flight: Flight) -> u32 {
        self.live += 1;
        self.parcels += u64::from(flight.is_parcel());
        match self.free.pop() {
            Some(name) => {
                self.records[name as usize] = flight;
                name
            }
            None => {
                self.records.push(flight);
                self.records.len() as u32 - 1
            }
        }
    }

    /// A packet is gone.
    pub(super) fn end(&mut self, name: u32) {
        self.live -= 1;
        self.parcels -= u64::from(self[name].is_parcel());
        self.free.push(name);
    }

    /// Flits of the packets that have left their sources and not arrived.
    pub(super) fn flits_in_network(&self) -> u64 {
        let is_in_network = |flight: &&Flight| flight.begun.is_some() && !flight.has_arrived;
        self.records.iter().filter(is_in_network).map(|flight| u64::from(flight.flits)).sum()
    }

    /// What is wrong with the count of packets, if anything is.
    pub(super) fn broken(&self) -> Option<String> {
        let held = (self.records.len() - self.free.len()) as u64;
        (held != self.live).then(|| format!("{} packets are under way, {held} are found", self.live))
    }
}

impl Index<u32> for Flights {
    type Output = Flight;

    fn index(&self, name: u32) -> &Flight {
        &self.records[name as usize]
    }
}

impl IndexMut<u32> for Flights {
    fn index_mut(&mut self, name: u32) -> &mut Flight {
        &mut self.records[name as usize]
    }
}
