//! The names of a structure's fields, told without a value and without a schema, which takes longer to make than most tables take to read.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The keys that a structure is read from, in the order of their declaration; none of what is no structure, or takes any key.
pub fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // A structure says which fields it wants before it gets any; it gets none, and what it makes of that does not matter.
    let _ = T::deserialize(Listener(&mut fields));
    fields
}

/// Hears which fields are wanted.
struct Listener<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Listener<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, fields: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom(""))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom(""))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case", default)]
    struct Example {
        one_key: u32,
        #[serde(rename = "2nd")]
        second: Option<String>,
        #[serde(skip)]
        hidden: u32,
    }

    impl Default for Example {
        fn default() -> Self {
            unreachable!("nothing is made")
        }
    }

    #[test]
    fn a_structure_tells_its_keys_as_they_are_written() {
        assert_eq!(fields_of::<Example>(), ["one-key", "2nd"]);
        assert!(fields_of::<Vec<u32>>().is_empty());
    }
}
