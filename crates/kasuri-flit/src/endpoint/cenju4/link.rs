//! Errors of channels: bits that change and flits that get lost, and what the receiving end makes of the packet.
//!
//! Errors are drawn where a packet arrives, for all channels that it has crossed; each copy of a multicast has its own. Routers do not
//! look at check bits, so a packet goes where it was sent, takes the room that it was sent with, and is judged at its end.

use kasuri_model::engine::LinkErrors;
use kasuri_network::rng::{Purpose, Stream, Streams};
use kasuri_workload::endpoint::cenju4::Cenju4;
use kasuri_workload::endpoint::cenju4::framing::{self, Damage, FLIT_BITS, Flit, WORD_FLITS};
use kasuri_workload::endpoint::cenju4::node::Packet;
use std::collections::BTreeMap;

/// The errors of a machine's channels.
pub(super) struct Links {
    pub(super) header_words: usize,
    pub(super) bits: Errors,
    pub(super) flits: Errors,
    pub(super) stream: Stream,
    pub(super) found: LinkErrors,
    /// By node and flight: data that is not what was sent, which nobody has noticed.
    pub(super) spoilt: BTreeMap<(u32, u32), Vec<u8>>,
}

/// Events that come with the same probability at each of many places, by the places until the next one.
pub(super) struct Errors {
    /// `ln(1 - p)`; 0 if there are none.
    pub(super) log_failure: f64,
    pub(super) next: u64,
}

impl Errors {
    pub(super) fn new(rate: f64, stream: &mut Stream) -> Self {
        let log_failure = (-rate).ln_1p();
        let next = if rate > 0.0 { stream.trials(log_failure) } else { u64::MAX };
        Self { log_failure, next }
    }

    /// Which of the next places have one.
    pub(super) fn among(&mut self, places: u64, stream: &mut Stream) -> Vec<u64> {
        let mut found = Vec::new();
        if self.log_failure == 0.0 {
            return found;
        }
        while self.next <= places {
            found.push(self.next - 1);
            self.next = self.next.saturating_add(stream.trials(self.log_failure));
        }
        self.next -= places;
        found
    }
}

impl Links {
    /// The errors that a machine's constants ask for, if any.
    pub(super) fn new(constants: &Cenju4, streams: &Streams) -> Option<Self> {
        let (bits, flits) = (constants.bit_error_rate, constants.flit_loss_rate);
        if bits == 0.0 && flits == 0.0 {
            return None;
        }
        let mut stream = streams.get(Purpose::LinkErrors, 0);
        Some(Self {
            header_words: (constants.header_flits as usize).div_ceil(WORD_FLITS),
            bits: Errors::new(bits, &mut stream),
            flits: Errors::new(flits, &mut stream),
            stream,
            found: LinkErrors::default(),
            spoilt: BTreeMap::new(),
        })
    }

    /// Sends a packet over so many channels. Gives its data if that is not what was sent and nobody notices.
    pub(super) fn cross(&mut self, packet: &Packet, channels: u64) -> Result<Option<Vec<u8>>, Damage> {
        let words = self.header_words + packet.data.len().div_ceil(8);
        let flits = (words * WORD_FLITS) as u64;
        let bits = self.bits.among(channels * flits * u64::from(FLIT_BITS), &mut self.stream);
        let lost = self.flits.among(channels * flits, &mut self.stream);
        if bits.is_empty() && lost.is_empty() {
            return Ok(None);
        }
        self.found.wrong_bits += bits.len() as u64;
        self.found.lost_flits += lost.len() as u64;
        let sent = double_words(self.header_words, &packet.data);
        let arrived = damaged(framing::encode(&sent), &bits, &lost);
        let received = framing::decode(&arrived, words).inspect_err(|_| self.found.refused_packets += 1)?;
        self.found.corrected += u64::from(received.corrected);
        if received.words == sent {
            return Ok(None);
        }
        self.found.undetected_packets += 1;
        let data = received.words[self.header_words..].iter().flat_map(|word| word.to_le_bytes());
        Ok(Some(data.take(packet.data.len()).collect()))
    }

    /// The data of a copy of a packet that has come through unnoticed.
    pub(super) fn take_spoilt(&mut self, node: u32, flight: u32) -> Option<Vec<u8>> {
        self.spoilt.remove(&(node, flight))
    }
}

/// What crosses the channels for a packet. Whether an error is found does not depend on the bits, so a header is all zeros.
fn double_words(header: usize, data: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    std::iter::repeat_n(0, header).chain(data.chunks(8).map(word)).collect()
}

/// A packet's flits with bits changed and flits lost, each counted through all channels.
fn damaged(mut flits: Vec<Flit>, bits: &[u64], lost: &[u64]) -> Vec<Flit> {
    let count = flits.len() as u64;
    for bit in bits {
        flits[(bit / u64::from(FLIT_BITS) % count) as usize].flip((bit % u64::from(FLIT_BITS)) as u32);
    }
    let is_lost = |place: usize| lost.iter().any(|flit| flit % count == place as u64);
    flits.into_iter().enumerate().filter(|&(place, _)| !is_lost(place)).map(|(_, flit)| flit).collect()
}
