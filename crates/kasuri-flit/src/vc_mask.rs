//! A set of virtual channels of one port, as bits: 8 for most machines, 64, or 256.

/// A set of virtual channels.
pub(crate) trait VcMask: Copy + Default + PartialEq + std::fmt::Debug + Send + 'static {
    /// The set of one.
    fn bit(vc: u32) -> Self;
    /// The set of all from `begin` up to `end`, not included.
    fn range(begin: u32, end: u32) -> Self;
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
        if above.is_empty() { self.first() } else { above.first() }
    }
    /// How many virtual channels fit.
    const BITS: u32;
}

macro_rules! word_mask {
    ($word:ty) => {
        impl VcMask for $word {
            const BITS: u32 = <$word>::BITS;

            #[inline(always)]
            fn bit(vc: u32) -> Self {
                1 << vc
            }

            #[inline(always)]
            fn range(begin: u32, end: u32) -> Self {
                let below = |limit: u32| if limit >= Self::BITS { <$word>::MAX } else { (1 << limit) - 1 };
                below(end) & !below(begin)
            }

            #[inline(always)]
            fn is_empty(self) -> bool {
                self == 0
            }

            #[inline(always)]
            fn first(self) -> u32 {
                self.trailing_zeros()
            }

            #[inline(always)]
            fn rest(self) -> Self {
                self & self.wrapping_sub(1)
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn without(self, other: Self) -> Self {
                self & !other
            }
        }
    };
}

word_mask!(u8);
word_mask!(u64);

/// Up to 256 virtual channels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wide([u64; 4]);

impl VcMask for Wide {
    const BITS: u32 = 256;

    fn bit(vc: u32) -> Self {
        let mut words = [0; 4];
        words[vc as usize / 64] = 1 << (vc % 64);
        Self(words)
    }

    fn range(begin: u32, end: u32) -> Self {
        let part = |word: usize, limit: u32| u64::range(0, limit.saturating_sub(64 * word as u32).min(64));
        Self(std::array::from_fn(|word| part(word, end) & !part(word, begin)))
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
        ranges_hold_their_members::<u8>();
        ranges_hold_their_members::<u64>();
        ranges_hold_their_members::<Wide>();
    }
}
