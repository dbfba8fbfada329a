//! Numbers from a file, checked before anything is built of them.

use crate::network::NetworkError;

/// Most routers, terminals or links that a rule may ask for; what is larger is refused before it is added up.
const MOST: u64 = 1 << 27;

/// Refuses 0.
///
/// # Errors
/// The number is 0.
pub(super) fn positive(key: &str, number: u32) -> Result<u32, NetworkError> {
    at_least(key, number, 1)
}

/// Refuses what is below the least.
///
/// # Errors
/// The number is less than `least`.
pub(super) fn at_least(key: &str, number: u32, least: u32) -> Result<u32, NetworkError> {
    if number >= least { Ok(number) } else { Err(NetworkError::parameter(key, format!("is {number}; it must be at least {least}"))) }
}

/// Refuses an empty list and a number in it that is too small.
///
/// # Errors
/// The list is empty, or holds a number less than `least`.
pub(super) fn all_at_least(key: &str, numbers: &[u32], least: u32) -> Result<(), NetworkError> {
    if numbers.is_empty() {
        return Err(NetworkError::parameter(key, format!("is empty; give at least one number, each at least {least}")));
    }
    match numbers.iter().find(|&&number| number < least) {
        Some(number) => Err(NetworkError::parameter(key, format!("{numbers:?} holds {number}; each must be at least {least}"))),
        None => Ok(()),
    }
}

/// The product of these numbers, which counts `what`.
///
/// # Errors
/// It is above 2^27.
pub(super) fn product(what: &str, factors: &[u32]) -> Result<u32, NetworkError> {
    let product = factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(u64::from(factor)));
    match product.filter(|&product| product <= MOST) {
        Some(product) => Ok(product as u32),
        None => {
            let factors: Vec<String> = factors.iter().map(u32::to_string).collect();
            Err(NetworkError::TooLarge(format!("{} {what}; the limit is 2^27", factors.join(" x "))))
        }
    }
}

/// The sum of these numbers, which counts `what`.
///
/// # Errors
/// It is above 2^27.
pub(super) fn sum(what: &str, terms: &[u32]) -> Result<u32, NetworkError> {
    let sum: u64 = terms.iter().map(|&term| u64::from(term)).sum();
    if sum <= MOST { Ok(sum as u32) } else { Err(NetworkError::TooLarge(format!("{sum} {what}; the limit is 2^27"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_beyond_the_limit_are_refused_and_others_are_exact() {
        assert_eq!(product("routers", &[1 << 13, 1 << 14]), Ok(1 << 27));
        assert_eq!(product("routers", &[]), Ok(1));
        for factors in [&[1 << 14, 1 << 14][..], &[u32::MAX; 3], &[2; 200]] {
            assert!(product("routers", factors).unwrap_err().to_string().ends_with("routers; the limit is 2^27"));
        }
        assert!(sum("terminals", &[u32::MAX, u32::MAX]).is_err());
    }

    #[test]
    fn small_numbers_are_refused_with_the_least() {
        assert_eq!(at_least("k", 1, 2).unwrap_err().to_string(), "k: is 1; it must be at least 2");
        assert_eq!(all_at_least("m", &[3, 0], 1).unwrap_err().to_string(), "m: [3, 0] holds 0; each must be at least 1");
        assert!(all_at_least("m", &[], 1).is_err() && all_at_least("m", &[1], 1).is_ok());
    }
}
