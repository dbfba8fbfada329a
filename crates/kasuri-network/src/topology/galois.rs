//! Finite fields, as the algebraic topologies need them.

use std::ops::RangeInclusive;

/// The field of p^e elements. An element is a number below p^e whose digits to the base p are the coefficients of a polynomial,
/// the lowest first; products are taken modulo the first primitive polynomial, so that x = p generates the field (for e = 1: the
/// least primitive root generates it).
#[derive(Clone, Debug)]
pub(super) struct Field {
    characteristic: u32,
    /// `powers[i]` is the generator to the power i, i < order - 1.
    powers: Vec<u32>,
    /// The inverse of `powers`; position 0 is not used.
    logarithms: Vec<u32>,
}

/// The prime p and the exponent e with p^e = order, if there are any.
pub(super) fn prime_power(order: u32) -> Option<(u32, u32)> {
    let prime =
        (2..).take_while(|&prime| u64::from(prime) * u64::from(prime) <= u64::from(order)).find(|prime| order.is_multiple_of(*prime));
    let prime = prime.unwrap_or(order);
    let (mut rest, mut exponent) = (order, 0);
    while prime > 1 && rest.is_multiple_of(prime) {
        (rest, exponent) = (rest / prime, exponent + 1);
    }
    (rest == 1 && exponent > 0).then_some((prime, exponent))
}

/// The nearest numbers of a range that satisfy a condition, in words: `5 and 7`.
pub(super) fn nearest(order: u32, range: RangeInclusive<u32>, fits: impl Fn(u32) -> bool) -> String {
    let order = order.clamp(*range.start(), *range.end());
    let below = (*range.start()..=order).rev().find(|&number| fits(number));
    let above = (order..=*range.end()).find(|&number| fits(number));
    match (below, above) {
        (Some(below), Some(above)) if below != above => format!("{below} and {above}"),
        (Some(one), _) | (_, Some(one)) => one.to_string(),
        (None, None) => "none".to_owned(),
    }
}

impl Field {
    /// The field of p^e elements, p prime, with p^e below 2^26.
    pub(super) fn new(characteristic: u32, exponent: u32) -> Self {
        let order = characteristic.pow(exponent);
        let polynomials = (0..order).map(|low| digits(low, characteristic, exponent));
        for polynomial in polynomials {
            let step = |element: u32| -> u32 {
                if exponent == 1 {
                    // x modulo the polynomial x + c is the number -c.
                    let root = (characteristic - polynomial[0]) % characteristic;
                    return (u64::from(element) * u64::from(root) % u64::from(characteristic)) as u32;
                }
                times_x(element, &polynomial, characteristic, order)
            };
            if let Some(powers) = cycle(order, step) {
                let mut logarithms = vec![0; order as usize];
                powers.iter().enumerate().for_each(|(index, &power)| logarithms[power as usize] = index as u32);
                return Self { characteristic, powers, logarithms };
            }
        }
        unreachable!("there is a primitive polynomial of every degree over every prime field")
    }

    /// The generator to this power.
    pub(super) fn power(&self, exponent: u64) -> u32 {
        self.powers[(exponent % self.powers.len() as u64) as usize]
    }

    pub(super) fn add(&self, one: u32, other: u32) -> u32 {
        let (p, mut sum, mut weight, mut rest) = (self.characteristic, 0, 1, (one, other));
        while rest != (0, 0) {
            sum += weight * ((rest.0 % p + rest.1 % p) % p);
            rest = (rest.0 / p, rest.1 / p);
            weight = weight.wrapping_mul(p);
        }
        sum
    }

    pub(super) fn multiply(&self, one: u32, other: u32) -> u32 {
        if one == 0 || other == 0 {
            return 0;
        }
        self.power(u64::from(self.logarithms[one as usize]) + u64::from(self.logarithms[other as usize]))
    }
}

impl Field {
    /// One element by another, which is not 0.
    pub(super) fn divide(&self, one: u32, other: u32) -> u32 {
        if one == 0 {
            return 0;
        }
        let order = self.powers.len() as u64;
        self.power(u64::from(self.logarithms[one as usize]) + order - u64::from(self.logarithms[other as usize]))
    }
}

fn digits(number: u32, base: u32, count: u32) -> Vec<u32> {
    (0..count).map(|digit| number / base.pow(digit) % base).collect()
}

/// x times an element, modulo the monic polynomial of these lower coefficients.
fn times_x(element: u32, polynomial: &[u32], p: u32, order: u32) -> u32 {
    let top = element / (order / p);
    let shifted = element % (order / p) * p;
    let (mut result, mut weight) = (0, 1);
    for (digit, &coefficient) in polynomial.iter().enumerate() {
        let here = shifted / weight % p;
        result += weight * ((here + p * p - top * coefficient % p) % p);
        if digit + 1 < polynomial.len() {
            weight *= p;
        }
    }
    result
}

/// The powers 1, x, x^2, … if they are all elements but 0.
fn cycle(order: u32, step: impl Fn(u32) -> u32) -> Option<Vec<u32>> {
    let mut powers = vec![1];
    let mut element = step(1);
    while element != 1 {
        if element == 0 || powers.len() as u32 >= order - 1 {
            return None;
        }
        powers.push(element);
        element = step(element);
    }
    (powers.len() as u32 == order - 1).then_some(powers)
}

/// The perfect difference set of order q = p^e: q + 1 residues modulo n = q^2 + q + 1 of which every other residue is a
/// difference exactly once.
///
/// By J. Singer (Trans. Amer. Math. Soc. 43, 1938): the exponents i < n for which the trace of g^i over the field of q elements
/// is 0, g a generator of the field of q^3. Of all its multiples and shifts that hold 0 and 1 it is the first in lexicographic
/// order, so that it does not depend on g.
pub(super) fn difference_set(p: u32, exponent: u32) -> Vec<u32> {
    let field = Field::new(p, 3 * exponent);
    let q = u64::from(p.pow(exponent));
    let n = (q * q + q + 1) as u32;
    let trace = |i: u64| field.add(field.add(field.power(i), field.power(i * q)), field.power(i * q * q));
    let set: Vec<u32> = (0..n).filter(|&i| trace(i.into()) == 0).collect();
    let multiples = (1..n).filter(|&factor| greatest_common_divisor(factor, n) == 1);
    let standard = |factor: u32| {
        let multiple: Vec<u32> = set.iter().map(|&member| (u64::from(member) * u64::from(factor) % u64::from(n)) as u32).collect();
        let mut is_member = vec![false; n as usize];
        multiple.iter().for_each(|&member| is_member[member as usize] = true);
        // The difference 1 occurs once: only this shift makes 0 and 1 members.
        let first = multiple.iter().copied().find(|&member| is_member[((member + 1) % n) as usize])?;
        let mut shifted: Vec<u32> = multiple.iter().map(|&member| (member + n - first) % n).collect();
        shifted.sort_unstable();
        Some(shifted)
    };
    multiples.filter_map(standard).min().unwrap_or(set)
}

fn greatest_common_divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lehmer's tables of Singer's sets in standard form.
    #[test]
    fn difference_sets_are_the_known_ones() {
        for (p, e, set) in [
            (2, 1, vec![0, 1, 3]),
            (3, 1, vec![0, 1, 3, 9]),
            (2, 2, vec![0, 1, 4, 14, 16]),
            (5, 1, vec![0, 1, 3, 8, 12, 18]),
            (7, 1, vec![0, 1, 3, 13, 32, 36, 43, 52]),
            (2, 3, vec![0, 1, 3, 7, 15, 31, 36, 54, 63]),
            (3, 2, vec![0, 1, 3, 9, 27, 49, 56, 61, 77, 81]),
            (11, 1, vec![0, 1, 3, 12, 20, 34, 38, 81, 88, 94, 104, 109]),
        ] {
            assert_eq!(difference_set(p, e), set);
        }
    }

    #[test]
    fn every_residue_is_a_difference_once() {
        for order in (2..=32).filter(|&order| prime_power(order).is_some()) {
            let (p, e) = prime_power(order).unwrap();
            let (set, n) = (difference_set(p, e), order * order + order + 1);
            assert_eq!(set.len() as u32, order + 1);
            let mut count = vec![0; n as usize];
            for (a, b) in set.iter().flat_map(|&a| set.iter().map(move |&b| (a, b))) {
                count[((a + n - b) % n) as usize] += 1;
            }
            assert_eq!(count[0], order + 1);
            assert!(count[1..].iter().all(|&count| count == 1), "{order}");
        }
    }

    /// Products distribute over sums, inverses exist, and the generator has the order of the multiplicative group.
    #[test]
    fn fields_are_fields() {
        for order in [2, 3, 4, 5, 7, 8, 9, 16, 25, 27] {
            let (p, e) = prime_power(order).unwrap();
            let field = Field::new(p, e);
            for a in 0..order {
                assert_eq!((0..order).filter(|&b| field.add(a, b) == 0).count(), 1);
                assert_eq!((0..order).filter(|&b| field.multiply(a, b) == 1).count(), usize::from(a > 0));
                assert!((1..order).all(|b| field.divide(field.multiply(a, b), b) == a));
                for (b, c) in (0..order).flat_map(|b| (0..order).map(move |c| (b, c))) {
                    assert_eq!(field.multiply(a, field.add(b, c)), field.add(field.multiply(a, b), field.multiply(a, c)));
                }
            }
        }
    }

    #[test]
    fn prime_powers_are_told_from_other_numbers() {
        let powers: Vec<u32> = (0..=32).filter(|&order| prime_power(order).is_some()).collect();
        assert_eq!(powers, [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]);
        assert_eq!(prime_power(u32::MAX), None);
        assert_eq!(prime_power(4_294_967_291), Some((4_294_967_291, 1)));
        assert_eq!(nearest(6, 2..=10, |number| number != 6), "5 and 7");
        assert_eq!(nearest(6, 2..=6, |number| number != 6), "5");
        assert_eq!(nearest(99, 2..=6, |_| true), "6");
    }
}
