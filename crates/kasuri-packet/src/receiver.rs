//! What a receiver keeps of a flow: which packets have come, and when it acknowledges.

/// The receiving end of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// The first packet that has not come.
    next: u32,
    /// How many have come.
    count: u32,
    /// Wire bytes since the last acknowledgement.
    bytes: u64,
    /// Which have come behind a gap: a bit for each number modulo the length, which is a power of two or 0.
    ahead: Vec<u64>,
}

/// What the arrival of a packet of data leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// How many packets have come without a gap, if that is to be acknowledged.
    pub(crate) acknowledged: Option<u32>,
    /// All have come.
    pub(crate) complete: bool,
    /// One with a lower number is still to come.
    pub(crate) early: bool,
}

impl Receiver {
    /// A packet of a flow of so many. The first, the last, one that comes when `threshold` bytes are not acknowledged, and one that closes
    /// the gap before the last are acknowledged.
    #[inline]
    pub(crate) fn receive(&mut self, number: u32, packets: u32, bytes: u16, threshold: u64) -> Arrival {
        self.count += 1;
        self.bytes += u64::from(bytes);
        let early = number != self.next;
        if early {
            self.keep(number);
        } else {
            self.next += 1;
            while self.take(self.next) {
                self.next += 1;
            }
        }
        let complete = self.count == packets;
        let asked = number == 0 || number == packets - 1 || complete || self.bytes >= threshold;
        if asked {
            self.bytes = 0;
        }
        Arrival { acknowledged: asked.then_some(self.next), complete, early }
    }

    fn place(&self, number: u32) -> (usize, u64) {
        ((number as usize / 64) & (self.ahead.len() - 1), 1 << (number % 64))
    }

    fn keep(&mut self, number: u32) {
        // The words from that of the gap to that of the packet must all be there.
        let words = (number / 64 - self.next / 64 + 1) as usize;
        if words > self.ahead.len() {
            self.grow(words.next_power_of_two());
        }
        let (word, bit) = self.place(number);
        self.ahead[word] |= bit;
    }

    fn grow(&mut self, words: usize) {
        let old = std::mem::replace(&mut self.ahead, vec![0; words]);
        for offset in 0..old.len() {
            let word = self.next as usize / 64 + offset;
            self.ahead[word & (words - 1)] = old[word & (old.len() - 1)];
        }
    }

    #[inline]
    fn take(&mut self, number: u32) -> bool {
        if self.ahead.is_empty() {
            return false;
        }
        let (word, bit) = self.place(number);
        let is_there = self.ahead[word] & bit != 0;
        self.ahead[word] &= !bit;
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn packets_in_order_are_acknowledged_every_four() {
        let mut receiver = Receiver::default();
        let acknowledged: Vec<u32> = (0..11).filter_map(|number| receiver.receive(number, 11, 4150, 16_384).acknowledged).collect();
        assert_eq!(acknowledged, [1, 5, 9, 11]);
    }

    proptest! {
        #[test]
        fn what_has_come_is_known_in_any_order(order in Just((0..300_u32).collect::<Vec<_>>()).prop_shuffle(), threshold in 1_u64..2000) {
            let mut receiver = Receiver::default();
            let mut missing: BTreeSet<u32> = order.iter().copied().collect();
            for &number in &order {
                let early = missing.first() != Some(&number);
                missing.remove(&number);
                let arrival = receiver.receive(number, 300, 100, threshold);
                prop_assert_eq!((arrival.early, arrival.complete), (early, missing.is_empty()));
                let next = missing.first().copied().unwrap_or(300);
                prop_assert!(arrival.acknowledged.is_none_or(|acknowledged| acknowledged == next));
                prop_assert!(arrival.acknowledged.is_some() || !arrival.complete && number != 0 && number != 299);
            }
        }
    }
}
