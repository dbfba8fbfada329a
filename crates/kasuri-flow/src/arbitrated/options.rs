//! What `[flow]` says of the arbitrated sharing.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use std::borrow::Cow;

/// Packets of a parcel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grain {
    /// So that a message has about as many parcels as its path has channels.
    #[default]
    Auto,
    /// So many.
    Packets(u32),
}

impl Grain {
    /// The most packets of a parcel.
    pub(super) const MOST: u32 = 1 << 16;
}

impl<'de> Deserialize<'de> for Grain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        match &value {
            toml::Value::String(word) if word == "auto" => Ok(Self::Auto),
            toml::Value::Integer(packets) if (1..=i64::from(Self::MOST)).contains(packets) => Ok(Self::Packets(*packets as u32)),
            _ => Err(de::Error::custom(format!("grain = {value}: it must be \"auto\" or a number of packets from 1 to {}", Self::MOST))),
        }
    }
}

impl JsonSchema for Grain {
    fn schema_name() -> Cow<'static, str> {
        "Grain".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": 1, "maximum": Self::MOST }] })
    }
}

/// Something that routers do and that the arbitrated sharing can be told to leave out, for studies of what causes what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Buffers of bounded size: without it there is room for all that comes.
    Blocking,
    /// Round robin among the inputs of a router: without it the oldest parcel goes first.
    RoundRobin,
    /// An input sends one flit in a cycle: without it to several outputs at once.
    InputPorts,
    /// The cycles between two packets of a virtual channel: without it one follows the other at once.
    Gap,
}

impl Mechanism {
    /// Keys that mean nothing without it, also to a lone packet.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Blocking => &["router.buffer_flits", "router.credit_delay"],
            Self::RoundRobin | Self::InputPorts | Self::Gap => &[],
        }
    }
}
