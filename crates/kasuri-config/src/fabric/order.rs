//! Names in the order in which people count: node9 before node10.

use std::cmp::Ordering;

/// Compares names; digits within them are numbers. Names that differ in leading zeros alone are in the order of their bytes.
pub fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one.as_bytes(), other.as_bytes());
    loop {
        let order = match (left, right) {
            ([], []) => return one.cmp(other),
            ([], _) => return Ordering::Less,
            (_, []) => return Ordering::Greater,
            ([first, ..], [second, ..]) if first.is_ascii_digit() && second.is_ascii_digit() => {
                let (number, rest) = digits(left);
                let (against, beyond) = digits(right);
                (left, right) = (rest, beyond);
                number.len().cmp(&against.len()).then(number.cmp(against))
            }
            ([first, rest @ ..], [second, beyond @ ..]) => {
                (left, right) = (rest, beyond);
                first.cmp(second)
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The digits at the beginning without leading zeros, and what follows them.
fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    let zeros = bytes[..end].iter().take_while(|&&byte| byte == b'0').count();
    (&bytes[zeros..end], &bytes[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_numbers() {
        let mut names = vec!["n10 b", "n9 a", "n010", "n9", "a", "n9b", "n10"];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(names, ["a", "n9", "n9 a", "n9b", "n010", "n10", "n10 b"]);
    }
}
