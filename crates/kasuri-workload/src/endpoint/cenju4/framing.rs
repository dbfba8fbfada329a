//! How data crosses a link: three flits for 64 bits, with what is needed to find bits that have changed and flits that are missing.
//!
//! A flit has 24 bits, a parity bit over them, and three bits of which one tells whether it is an odd one, an even one or the last of its
//! packet. The 72 bits of three flits are a double word and 8 check bits. The paper names these sizes; that the 8 bits correct one error
//! and detect two is what such codes are for, and the code of Hsiao, "A Class of Optimal Minimum Odd-weight-column SEC-DED Codes" (IBM
//! J. Res. Dev. 14, 1970) is taken for it. A packet's header says how long it is, so that a packet with another number of flits is damaged.

/// Flits that hold a double word and its check bits.
pub const WORD_FLITS: usize = 3;
/// Bits of a flit: data, parity, position.
pub const FLIT_BITS: u32 = 28;
/// Of these, bits of data.
const DATA_BITS: u32 = 24;
/// Bits of the code word of a double word.
const CODE_BITS: u32 = 72;

/// The data bits that a link carries, of all bits: parity, position and check bits take the rest.
pub const EFFICIENCY: f64 = 64.0 / (WORD_FLITS as f64 * FLIT_BITS as f64);

/// A flit on a link: bits 0 to 23 are data, bit 24 is their parity, bits 25 to 27 the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flit(u32);

/// A flit's position in its packet: one bit each.
const ODD: u32 = 1;
const EVEN: u32 = 2;
const LAST: u32 = 4;

impl Flit {
    fn new(data: u32, position: u32) -> Self {
        Self(data | (data.count_ones() & 1) << DATA_BITS | position << (DATA_BITS + 1))
    }

    /// Changes one of the [`FLIT_BITS`] bits.
    pub fn flip(&mut self, bit: u32) {
        self.0 ^= 1 << (bit % FLIT_BITS);
    }

    fn data(self) -> u32 {
        self.0 & ((1 << DATA_BITS) - 1)
    }

    fn position(self) -> u32 {
        self.0 >> (DATA_BITS + 1)
    }

    fn has_parity(self) -> bool {
        (self.0 & ((1 << (DATA_BITS + 1)) - 1)).count_ones().is_multiple_of(2)
    }
}

/// Why a packet cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Flits are missing: another number of them than the header says, or two odd or two even ones follow each other.
    #[error("flits are missing")]
    LostFlits,
    /// More bits of a double word have changed than its check bits can correct.
    #[error("a double word has more wrong bits than can be corrected")]
    Uncorrectable,
}

/// What the receiving end makes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its double words.
    pub words: Vec<u64>,
    /// Errors that were found and put right.
    pub corrected: u32,
}

/// The flits of a packet's double words.
pub fn encode(words: &[u64]) -> Vec<Flit> {
    let count = words.len() * WORD_FLITS;
    let data = words.iter().flat_map(|&word| {
        let code = u128::from(word) | u128::from(check_bits(word)) << 64;
        (0..WORD_FLITS as u32).map(move |part| (code >> (part * DATA_BITS)) as u32 & ((1 << DATA_BITS) - 1))
    });
    data.enumerate().map(|(number, data)| Flit::new(data, position(number, count))).collect()
}

/// Checks the flits of a packet of so many double words, and puts right what can be put right.
///
/// # Errors
/// Flits are missing, or a double word cannot be corrected.
pub fn decode(flits: &[Flit], words: usize) -> Result<Received, Damage> {
    let count = words * WORD_FLITS;
    if flits.len() != count {
        return Err(Damage::LostFlits);
    }
    let mut corrected = 0;
    for (number, flit) in flits.iter().enumerate() {
        let found = flit.position();
        if found != position(number, count) {
            // One bit set is what another flit would have; anything else is a flit with a wrong bit.
            if found.count_ones() == 1 {
                return Err(Damage::LostFlits);
            }
            corrected += 1;
        }
    }
    let decoded: Result<Vec<u64>, Damage> = flits.chunks_exact(WORD_FLITS).map(|part| decode_word(part, &mut corrected)).collect();
    Ok(Received { words: decoded?, corrected })
}

fn position(number: usize, count: usize) -> u32 {
    match number {
        _ if number + 1 == count => LAST,
        _ if number.is_multiple_of(2) => ODD,
        _ => EVEN,
    }
}

/// Corrects one wrong bit of a double word, if the parity bits say so too: it must lie in the one flit whose parity is wrong.
fn decode_word(flits: &[Flit], corrected: &mut u32) -> Result<u64, Damage> {
    let code = flits.iter().enumerate().fold(0, |code, (part, flit)| code | u128::from(flit.data()) << (part as u32 * DATA_BITS));
    let (word, check) = (code as u64, (code >> 64) as u8);
    let syndrome = check_bits(word) ^ check;
    let wrong: Vec<usize> = (0..flits.len()).filter(|&part| !flits[part].has_parity()).collect();
    match (syndrome, wrong.as_slice()) {
        (0, []) => Ok(word),
        // The parity bit itself.
        (0, [_]) => {
            *corrected += 1;
            Ok(word)
        }
        (_, &[part]) => {
            let bit = (0..CODE_BITS).find(|&bit| column(bit) == syndrome).ok_or(Damage::Uncorrectable)?;
            if (bit / DATA_BITS) as usize != part {
                return Err(Damage::Uncorrectable);
            }
            *corrected += 1;
            Ok((code ^ 1 << bit) as u64)
        }
        _ => Err(Damage::Uncorrectable),
    }
}

/// The check bits of a double word: the sum of the columns of its bits.
fn check_bits(word: u64) -> u8 {
    (0..64).filter(|bit| word >> bit & 1 == 1).fold(0, |sum, bit| sum ^ COLUMNS[bit])
}

/// The column of a bit of the code word: an odd number of bits each, no two alike.
fn column(bit: u32) -> u8 {
    if bit < 64 { COLUMNS[bit as usize] } else { 1 << (bit - 64) }
}

/// The columns of the data bits: all 56 with three bits, and of those with five the first 8.
static COLUMNS: [u8; 64] = columns();

const fn columns() -> [u8; 64] {
    let mut columns = [0; 64];
    let (mut found, mut weight) = (0, 3);
    while weight <= 5 {
        let mut value = 0u32;
        while value < 256 && found < 64 {
            if value.count_ones() == weight {
                columns[found] = value as u8;
                found += 1;
            }
            value += 1;
        }
        weight += 2;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn packets() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(any::<u64>(), 1..36)
    }

    /// What a code that corrects one bit and detects two needs: odd columns, no two alike.
    #[test]
    fn the_columns_of_the_code_are_odd_and_different() {
        let all: BTreeSet<u8> = (0..CODE_BITS).map(column).collect();
        assert_eq!(all.len(), CODE_BITS as usize);
        assert!(all.iter().all(|column| column.count_ones() % 2 == 1));
    }

    /// 8 bytes in three flits of 12.5 ns are 213 Mbyte/s of 240 that the data wires could carry, and 64 bits of 84.
    #[test]
    fn framing_takes_a_quarter_of_a_link() {
        assert_eq!(EFFICIENCY, 64.0 / 84.0);
        assert_eq!(encode(&[0; 32]).len(), 96);
    }

    proptest! {
        #[test]
        fn undamaged_packets_arrive_as_they_were(words in packets()) {
            let received = decode(&encode(&words), words.len()).unwrap();
            prop_assert_eq!(received, Received { words, corrected: 0 });
        }

        #[test]
        fn any_wrong_bit_is_found_and_put_right(words in packets(), place: prop::sample::Index, bit in 0..FLIT_BITS) {
            let mut flits = encode(&words);
            let place = place.index(flits.len());
            flits[place].flip(bit);
            prop_assert_eq!(decode(&flits, words.len()), Ok(Received { words, corrected: 1 }));
        }

        /// Two wrong bits are found: put right if they are in different double words, or of different kinds; never taken for data.
        #[test]
        fn any_two_wrong_bits_are_found(words in packets(), at: [prop::sample::Index; 2], bits in [0..FLIT_BITS, 0..FLIT_BITS]) {
            let mut flits = encode(&words);
            let [one, other] = at.map(|place| place.index(flits.len()));
            prop_assume!((one, bits[0]) != (other, bits[1]));
            flits[one].flip(bits[0]);
            flits[other].flip(bits[1]);
            if let Ok(received) = decode(&flits, words.len()) {
                prop_assert_eq!(&received.words, &words);
                prop_assert!(received.corrected > 0);
            }
        }

        #[test]
        fn any_lost_flits_are_found(words in packets(), lost in prop::collection::vec(any::<prop::sample::Index>(), 1..5)) {
            let flits = encode(&words);
            let lost: BTreeSet<usize> = lost.iter().map(|place| place.index(flits.len())).collect();
            let left: Vec<Flit> = (0..flits.len()).filter(|place| !lost.contains(place)).map(|place| flits[place]).collect();
            prop_assert_eq!(decode(&left, words.len()), Err(Damage::LostFlits));
        }

        /// A lost flit and any one after it twice: as many flits as there should be, but two of a kind follow each other.
        #[test]
        fn a_flit_in_the_place_of_another_is_found(words in packets(), place: prop::sample::Index) {
            let mut flits = encode(&words);
            let place = place.index(flits.len() - 1);
            flits[place] = flits[place + 1];
            prop_assert_eq!(decode(&flits, words.len()), Err(Damage::LostFlits));
        }
    }
}
