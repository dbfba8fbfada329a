//! Where the words of logical nodes lie in the memories of their nodes.

use super::steps::WORD_BYTES;
use crate::translation::sharing::{Addresses, PageOrder};
use kasuri_network::rng::{Purpose, Streams};

/// The memory of the operating system lies above all users'.
const SYSTEM_BASE: u64 = 1 << 40;

/// By virtual processor: where its words are in the memory of its node.
#[derive(Clone, Debug)]
pub struct Segments {
    /// Without global addresses: where the piece of each begins.
    bases: Vec<u64>,
    /// With global addresses: the frames of its pages, `None` for those that are missing.
    frames: Vec<Vec<Option<u32>>>,
    page_bytes: u64,
}

impl Segments {
    /// The pieces or pages of all processors, each of which has words below the address `span`.
    pub(super) fn new(on_node: &[Vec<u32>], span: u32, addresses: Addresses, streams: &Streams) -> Self {
        let processors = on_node.iter().map(Vec::len).sum();
        let (mut bases, mut frames) = (vec![0; processors], vec![Vec::new(); processors]);
        let pages = u64::from(span).div_ceil(u64::from(addresses.page_bytes)) as u32;
        for (node, here) in (0..).zip(on_node) {
            (0..)
                .zip(here)
                .for_each(|(place, &processor)| bases[processor as usize] = place * u64::from(span.next_multiple_of(WORD_BYTES)));
            if !addresses.are_global {
                continue;
            }
            let mut stream = streams.get(Purpose::Placement, u32::MAX - node);
            let mut free: Vec<u32> = (0..pages * here.len() as u32).collect();
            if addresses.order == PageOrder::Random {
                (1..free.len()).rev().for_each(|last| free.swap(last, stream.below(last as u32 + 1) as usize));
            }
            for (&processor, own) in here.iter().zip(free.chunks(pages.max(1) as usize)) {
                frames[processor as usize] = own.iter().map(|&frame| (stream.unit() >= addresses.missing).then_some(frame)).collect();
            }
        }
        Self { bases, frames, page_bytes: addresses.page_bytes.into() }
    }

    /// The page of an address.
    pub(super) fn page(&self, address: u32) -> u32 {
        (u64::from(address) / self.page_bytes) as u32
    }

    /// Where a word of a processor lies in the memory of its node; `None` if its page is missing.
    pub(super) fn place(&self, processor: u32, address: u32) -> Option<u64> {
        let frames = &self.frames[processor as usize];
        if frames.is_empty() {
            return Some(self.bases[processor as usize] + u64::from(address));
        }
        let frame = frames.get(self.page(address) as usize).copied().flatten()?;
        Some(u64::from(frame) * self.page_bytes + u64::from(address) % self.page_bytes)
    }

    /// Where a word lies that the operating system names by its physical address.
    pub(super) fn place_of_system(address: u32) -> u64 {
        SYSTEM_BASE + u64::from(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Each word of each processor has a place of its own, be the pages in order or drawn.
    #[test]
    fn no_two_words_share_a_place() {
        let on_node = vec![vec![0, 1], vec![2]];
        for (are_global, order) in [(false, PageOrder::Given), (true, PageOrder::Given), (true, PageOrder::Random)] {
            let addresses = Addresses { are_global, page_bytes: 64, order, missing: 0.0 };
            let segments = Segments::new(&on_node, 200, addresses, &Streams::new(1));
            let words = |processor| (0..25).map(move |word| (processor, word * WORD_BYTES));
            let places: BTreeSet<u64> = words(0).chain(words(1)).map(|(of, address)| segments.place(of, address).unwrap()).collect();
            assert_eq!(places.len(), 50);
        }
    }

    #[test]
    fn missing_pages_have_no_place() {
        let addresses = Addresses { are_global: true, page_bytes: 64, order: PageOrder::Random, missing: 1.0 };
        assert_eq!(Segments::new(&[vec![0]], 200, addresses, &Streams::new(1)).place(0, 8), None);
    }
}
