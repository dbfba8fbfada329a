//! The encoding of protobuf: fields of a message, over bytes, with bounds.
//!
//! Source: Protocol Buffers, Encoding (protobuf.dev/programming-guides/encoding).

/// The value of a field in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A varint.
    Number(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// So many bytes as their length says.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// The fields of a message, one after the other.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field: its number and value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let (number, kind) = (key >> 3, key & 7);
        if number == 0 || number >= 1 << 29 {
            return Err(format!("a field has the number {number}; it must be 1 to 2^29 - 1"));
        }
        let value = match kind {
            0 => Value::Number(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array(number)?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length, number)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array(number)?)),
            other => return Err(format!("field {number} has the wire type {other}, which protobuf 3 does not know (0, 1, 2 and 5)")),
        };
        Ok(Some((number, value)))
    }

    fn varint(&mut self) -> Result<u64, String> {
        match varint(self.rest) {
            Varint::Number { value, length } => {
                self.rest = &self.rest[length..];
                Ok(value)
            }
            Varint::CutOff => Err("ends within a number; is the file cut off?".to_owned()),
            Varint::TooLong => Err("has a number of more than 64 bits".to_owned()),
        }
    }

    fn take(&mut self, length: u64, number: u64) -> Result<&'a [u8], String> {
        let have = self.rest.len();
        let Some(length) = usize::try_from(length).ok().filter(|&length| length <= have) else {
            return Err(format!("field {number} says that it has {length} bytes, but only {have} are left; is the file cut off?"));
        };
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self, number: u64) -> Result<[u8; LENGTH], String> {
        let taken = self.take(LENGTH as u64, number)?;
        Ok(taken.try_into().unwrap_or([0; LENGTH]))
    }
}

/// The beginning of bytes that should hold a varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Varint {
    Number {
        value: u64,
        length: usize,
    },
    /// More bytes are needed.
    CutOff,
    TooLong,
}

/// Reads the varint at the beginning.
pub(super) fn varint(bytes: &[u8]) -> Varint {
    let mut value: u64 = 0;
    for (position, &byte) in bytes.iter().take(10).enumerate() {
        if position == 9 && byte > 1 {
            return Varint::TooLong;
        }
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            return Varint::Number { value, length: position + 1 };
        }
    }
    if bytes.len() < 10 { Varint::CutOff } else { Varint::TooLong }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_up_to_64_bits() {
        assert_eq!(varint(&[0xac, 0x02]), Varint::Number { value: 300, length: 2 });
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(varint(&largest), Varint::Number { value: u64::MAX, length: 10 });
        let mut more = largest;
        more[9] = 2;
        assert_eq!(varint(&more), Varint::TooLong);
        assert_eq!(varint(&largest[..9]), Varint::CutOff);
    }

    #[test]
    fn lengths_that_are_too_large_are_refused() {
        assert_eq!(Fields::new(&[0x12, 0x01, 0x61]).next(), Ok(Some((2, Value::Bytes(b"a")))));
        assert!(Fields::new(&[0x12, 0x05, 0x61]).next().unwrap_err().contains("cut off"));
        assert!(Fields::new(&[0x13]).next().unwrap_err().contains("wire type 3"));
    }
}
