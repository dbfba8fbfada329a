//! Division by a number that is known long before: a multiplication, which a router's decision can afford millions of times.

/// A divisor, 1 or more (Lemire, Kaser and Kurz, "Faster remainder by direct computation", Software: Practice and Experience 49,
/// 2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    pub(super) value: u32,
    /// The least whole number above 2^64 / value, less 2^64 for 1.
    reciprocal: u64,
}

impl Divisor {
    pub(super) fn new(value: u32) -> Self {
        Self { value, reciprocal: (u64::MAX / u64::from(value)).wrapping_add(1) }
    }

    #[inline(always)]
    pub(super) fn quotient(self, number: u32) -> u32 {
        if self.value == 1 { number } else { ((u128::from(self.reciprocal) * u128::from(number)) >> 64) as u32 }
    }

    #[inline(always)]
    pub(super) fn remainder(self, number: u32) -> u32 {
        number - self.quotient(number) * self.value
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_and_remainders_are_exact(number in any::<u32>(), value in 1..=u32::MAX, small in 1..=64u32) {
            for value in [value, small, 1, u32::MAX] {
                let divisor = Divisor::new(value);
                prop_assert_eq!((divisor.quotient(number), divisor.remainder(number)), (number / value, number % value));
            }
        }
    }
}
