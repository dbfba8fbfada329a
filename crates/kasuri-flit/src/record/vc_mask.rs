//! A set of virtual channels of one port, as bits.

use std::hint::select_unpredictable;

/// A set of virtual channels.
pub(crate) trait VcMask: Copy + Default + PartialEq + std::fmt::Debug + Send + 'static {
    /// The set of one.
    fn bit(vc: u32) -> Self;
    /// The set of all from `begin` up to `end`, not included.
    fn range(begin: u32, end: u32) -> Self;
    /// The set of the low bits of a word; for sets of at most 64.
    fn from_bits(bits: u64) -> Self;
    /// The members below 64 as the bits of a word.
    fn bits(self) -> u64;
    /// Is nothing in it?
    fn is_empty(self) -> bool;
    /// The lowest member. The set must not be empty.
    fn first(self) -> u32;
    /// Without the lowest member.
    fn rest(self) -> Self;
    /// Members of both.
    fn and(self, other: Self) -> Self;
    /// Members of either.
    fn or(self, other: Self) -> Self;
    /// Members of this that are not in the other.
    fn without(self, other: Self) -> Self;
    /// The first member at or after `pointer`, cyclically. The set must not be empty.
    #[inline(always)]
    fn first_from(self, pointer: u32) -> u32 {
        let above = self.and(Self::range(pointer, Self::BITS));
        // Who comes next cannot be foreseen: a choice of the set, not of the way.
        select_unpredictable(above.is_empty(), self, above).first()
    }
    /// log2 of the slots of a port.
    const SHIFT: u32;
    /// Slots of a port: how many virtual channels fit.
    const BITS: u32 = 1 << Self::SHIFT;
}

/// Up to `2^SHIFT` virtual channels in one machine word. The stride is a constant, so the loops divide by it with one shift.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Word<W, const SHIFT: u32>(W);

macro_rules! word_mask {
    ($word:ty, $wider:ty, $shift:literal) => {
        impl VcMask for Word<$word, $shift> {
            const SHIFT: u32 = $shift;

            #[inline(always)]
            fn bit(vc: u32) -> Self {
                Self(1 << vc)
            }

            #[inline(always)]
            fn range(begin: u32, end: u32) -> Self {
                // In a wider word no limit is a shift too far.
                let below = |limit: u32| ((1 as $wider) << limit) - 1;
                Self((below(end) & !below(begin)) as $word)
            }

            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                Self(bits as $word & Self::range(0, 1 << $shift).0)
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.0)
            }

            #[inline(always)]
            fn is_empty(self) -> bool {
                self.0 == 0
            }

            #[inline(always)]
            fn first(self) -> u32 {
                self.0.trailing_zeros()
            }

            #[inline(always)]
            fn rest(self) -> Self {
                Self(self.0 & self.0.wrapping_sub(1))
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            #[inline(always)]
            fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }
    };
}

word_mask!(u8, u32, 1);
word_mask!(u8, u32, 2);
word_mask!(u8, u32, 3);
word_mask!(u16, u32, 4);
word_mask!(u64, u128, 6);

/// Up to 256 virtual channels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wide([u64; 4]);

impl VcMask for Wide {
    const SHIFT: u32 = 8;

    fn bit(vc: u32) -> Self {
        let mut words = [0; 4];
        words[vc as usize / 64] = 1 << (vc % 64);
        Self(words)
    }

    fn range(begin: u32, end: u32) -> Self {
        let part = |word: usize, limit: u32| <Word<u64, 6>>::range(0, limit.saturating_sub(64 * word as u32).min(64)).0;
        Self(std::array::from_fn(|word| part(word, end) & !part(word, begin)))
    }

    fn from_bits(bits: u64) -> Self {
        Self([bits, 0, 0, 0])
    }

    fn bits(self) -> u64 {
        self.0[0]
    }

    fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    fn first(self) -> u32 {
        let word = self.0.iter().position(|&word| word != 0).expect("the set is not empty");
        64 * word as u32 + self.0[word].trailing_zeros()
    }

    fn rest(self) -> Self {
        self.without(Self::bit(self.first()))
    }

    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members<M: VcMask>(mut mask: M) -> Vec<u32> {
        let mut members = Vec::new();
        while !mask.is_empty() {
            members.push(mask.first());
            mask = mask.rest();
        }
        members
    }

    fn ranges_hold_their_members<M: VcMask>() {
        for begin in 0..M::BITS {
            for end in begin..=M::BITS {
                assert_eq!(members(M::range(begin, end)), (begin..end).collect::<Vec<_>>());
            }
        }
        let mask = M::bit(1).or(M::bit(5));
        assert_eq!((mask.first_from(0), mask.first_from(2), mask.first_from(6), mask.first_from(M::BITS)), (1, 5, 1, 1));
        assert_eq!(members(mask.without(M::bit(1))), [5]);
    }

    #[test]
    fn ranges_hold_their_members_in_every_width() {
        ranges_hold_their_members::<Word<u8, 3>>();
        ranges_hold_their_members::<Word<u16, 4>>();
        ranges_hold_their_members::<Word<u64, 6>>();
        ranges_hold_their_members::<Wide>();
    }
}
