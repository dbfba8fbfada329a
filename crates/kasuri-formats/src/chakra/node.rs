//! A node of a trace, in both schemas.

use super::wire::{Fields, Value, Varint, varint};
use kasuri_workload::execution::trace::{Collective, Kind, MAX_NS, Message, Node, Operation};
use std::collections::BTreeMap;

/// An attribute: what kinds of values mean something here.
#[derive(Clone, Debug, PartialEq)]
enum Attribute<'a> {
    /// Any integer, with its sign.
    Integer(i128),
    Flag(bool),
    Flags(Vec<bool>),
    Text(&'a str),
    /// Of a kind that nothing needs.
    Other,
}

/// What the attributes of a node say.
#[derive(Debug, Default)]
struct Said {
    on_host: bool,
    operations: Option<u64>,
    tensor_bytes: Option<u64>,
    /// Of the oldest traces, in which it is an attribute.
    duration_us: Option<u64>,
    collective: Collective,
    operation: Option<u64>,
    message: Message,
    comm_bytes: Option<u64>,
}

/// Fields of a record before it is known what node they make.
#[derive(Debug, Default)]
struct Raw<'a> {
    id: u64,
    name: &'a str,
    kind: u64,
    duration_us: u64,
    waits_for: Vec<u64>,
    inputs: &'a [u8],
    attributes: Vec<&'a [u8]>,
    /// Written by the schema before October 2023.
    old: bool,
}

/// Numbers of collectives in the schema before October 2023.
const OLD_OPERATIONS: [Operation; 5] =
    [Operation::AllReduce, Operation::AllToAll, Operation::AllGather, Operation::ReduceScatter, Operation::Broadcast];

/// Refuses what is no metadata of a trace.
pub(super) fn check_metadata(record: &[u8]) -> Result<(), String> {
    let mut fields = Fields::new(record);
    while let Some((number, value)) = fields.next().map_err(|problem| format!("{problem}. Is this a trace of Chakra?"))? {
        if matches!(number, 1 | 2) && !matches!(value, Value::Bytes(_)) {
            return Err(format!("field {number} is a number; it must be text or an attribute. Is this a trace of Chakra?"));
        }
    }
    Ok(())
}

/// Reads a node. Names of attributes that mean nothing here are counted.
pub(super) fn parse(record: &[u8], unmodelled: &mut BTreeMap<String, u64>) -> Result<Node, String> {
    let raw = raw(record)?;
    let of_node = |problem: String| format!("node {} (`{}`): {problem}", raw.id, raw.name);
    let mut said = Said::default();
    for &bytes in &raw.attributes {
        let (name, value) = attribute(bytes, raw.old).map_err(of_node)?;
        if !said.take(name, &value).map_err(of_node)? {
            match unmodelled.get_mut(name) {
                Some(count) => *count += 1,
                None => {
                    unmodelled.insert(name.to_owned(), 1);
                }
            }
        }
    }
    let kind = kind(&raw, &said).map_err(of_node)?;
    let duration_us = said.duration_us.filter(|_| raw.old).unwrap_or(raw.duration_us);
    let duration_ns = duration_us
        .checked_mul(1000)
        .filter(|&ns| ns <= MAX_NS)
        .ok_or_else(|| of_node(format!("lasts {duration_us} us; it may last at most {} us (2^60 ns, 36 years)", MAX_NS / 1000)))?;
    Ok(Node { id: raw.id, name: raw.name.into(), kind, duration_ns, on_host: said.on_host, waits_for: raw.waits_for.into() })
}

fn kind(raw: &Raw<'_>, said: &Said) -> Result<Kind, String> {
    let message = Message { bytes: said.comm_bytes, ..said.message };
    Ok(match raw.kind {
        0 => Kind::Invalid,
        1 => Kind::Metadata { groups: process_groups(raw)? },
        2 | 3 => Kind::Memory { bytes: said.tensor_bytes },
        4 => Kind::Compute { operations: said.operations, bytes: said.tensor_bytes },
        5 => Kind::Send(message),
        6 => Kind::Receive(message),
        7 => {
            let operation = said.operation.map(|number| operation(number, raw.old)).transpose()?;
            Kind::Collective(Box::new(Collective { operation, bytes: said.comm_bytes, ..said.collective.clone() }))
        }
        other => return Err(format!("has the type {other}; Chakra has 0 (INVALID) to 7 (COMM_COLL)")),
    })
}

fn operation(number: u64, old: bool) -> Result<Operation, String> {
    let table: &[Operation] = if old { &OLD_OPERATIONS } else { &Operation::ALL };
    let found = usize::try_from(number).ok().and_then(|number| table.get(number)).copied();
    found.ok_or_else(|| format!("comm_type is {number}; it must be 0 to {}", table.len() - 1))
}

fn raw(record: &[u8]) -> Result<Raw<'_>, String> {
    let mut raw = Raw::default();
    let mut fields = Fields::new(record);
    let (mut late, mut numbers): (Vec<(u64, Value<'_>)>, _) = (Vec::new(), Vec::new());
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Number(id)) => raw.id = id,
            (2, Value::Bytes(name)) => raw.name = text(name, "name")?,
            (3, Value::Number(kind)) => raw.kind = kind,
            (4, value) => repeated(value, "the dependencies", &mut raw.waits_for)?,
            (11, Value::Bytes(attribute)) => {
                raw.old = true;
                raw.attributes.push(attribute);
            }
            (6 | 7, Value::Bytes(_)) => raw.old = true,
            (5..=10, value) => late.push((number, value)),
            (1..=3, _) => return Err(format!("field {number} of a node has another kind than in Chakra's schema")),
            _ => {}
        }
    }
    if raw.old {
        return Ok(raw);
    }
    for (number, value) in late {
        match (number, value) {
            (5, value) => repeated(value, "the data dependencies", &mut numbers)?,
            (6, Value::Number(_)) | (9, _) => {}
            (7, Value::Number(duration)) => raw.duration_us = duration,
            (8, Value::Bytes(inputs)) => raw.inputs = inputs,
            (10, Value::Bytes(attribute)) => raw.attributes.push(attribute),
            _ => return Err(format!("field {number} of a node has another kind than in Chakra's schema")),
        }
    }
    raw.waits_for.append(&mut numbers);
    Ok(raw)
}

/// Numbers of a repeated field, packed or one by one.
fn repeated(value: Value<'_>, what: &str, numbers: &mut Vec<u64>) -> Result<(), String> {
    match value {
        Value::Number(number) => numbers.push(number),
        Value::Bytes(mut packed) => {
            while !packed.is_empty() {
                let Varint::Number { value, length } = varint(packed) else { return Err(format!("{what} end within a number")) };
                numbers.push(value);
                packed = &packed[length..];
            }
        }
        _ => return Err(format!("{what} are not a list of numbers")),
    }
    Ok(())
}

fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, String> {
    std::str::from_utf8(bytes).map_err(|_| format!("its {what} is not text in UTF-8"))
}

/// An attribute's name and value.
fn attribute(bytes: &[u8], old: bool) -> Result<(&str, Attribute<'_>), String> {
    let mut fields = Fields::new(bytes);
    let (mut name, mut value) = ("", Attribute::Other);
    let mut flags: Vec<u64> = Vec::new();
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (1, Value::Bytes(bytes)) => name = text(bytes, "attribute's name")?,
            // The oldest schema has the kind of the value here, the newer one a text of documentation.
            (2, Value::Number(_)) if old => {}
            (9, field) if old => repeated(field, "flags", &mut flags)?,
            (_, field) => value = if old { old_value(number, field)? } else { new_value(number, field)? }.unwrap_or(value),
        }
    }
    if !flags.is_empty() {
        value = Attribute::Flags(flags.iter().map(|&flag| flag != 0).collect());
    }
    Ok((name, value))
}

/// The value of a field of an attribute, `None` if it holds none.
fn new_value(number: u64, field: Value<'_>) -> Result<Option<Attribute<'_>>, String> {
    let zigzag = |value: u64| i128::from((value >> 1) as i64 ^ -((value & 1) as i64));
    Ok(Some(match (number, field) {
        (7 | 9, Value::Number(value)) => Attribute::Integer(i128::from(value as i64)),
        (11 | 13, Value::Number(value)) => Attribute::Integer(i128::from(value)),
        (15 | 17, Value::Number(value)) => Attribute::Integer(zigzag(value)),
        (19, Value::Fixed32(value)) => Attribute::Integer(i128::from(value)),
        (21, Value::Fixed64(value)) => Attribute::Integer(i128::from(value)),
        (23, Value::Fixed32(value)) => Attribute::Integer(i128::from(value as i32)),
        (25, Value::Fixed64(value)) => Attribute::Integer(i128::from(value as i64)),
        (27, Value::Number(value)) => Attribute::Flag(value != 0),
        (28, Value::Bytes(list)) => {
            let (mut fields, mut flags) = (Fields::new(list), Vec::new());
            while let Some((number, field)) = fields.next()? {
                if number == 1 {
                    repeated(field, "flags", &mut flags)?;
                }
            }
            Attribute::Flags(flags.iter().map(|&flag| flag != 0).collect())
        }
        (29, Value::Bytes(bytes)) => Attribute::Text(text(bytes, "attribute's value")?),
        (3..=32, _) => Attribute::Other,
        _ => return Ok(None),
    }))
}

fn old_value(number: u64, field: Value<'_>) -> Result<Option<Attribute<'_>>, String> {
    Ok(Some(match (number, field) {
        (4, Value::Number(value)) => Attribute::Flag(value != 0),
        (6, Value::Number(value)) => Attribute::Integer(i128::from(value)),
        (7, Value::Number(value)) => Attribute::Integer(i128::from(value as i64)),
        (8, Value::Bytes(bytes)) => Attribute::Text(text(bytes, "attribute's value")?),
        (5..=13, _) => Attribute::Other,
        _ => return Ok(None),
    }))
}

impl Said {
    /// Takes an attribute in; whether it means something.
    fn take(&mut self, name: &str, value: &Attribute<'_>) -> Result<bool, String> {
        let number = || match value {
            Attribute::Integer(number) => {
                u64::try_from(*number).map_err(|_| format!("{name} is {number}; it must not be negative, and have at most 64 bits"))
            }
            Attribute::Flag(flag) => Ok(u64::from(*flag)),
            _ => Err(format!("{name} is not an integer")),
        };
        let small = || number().and_then(|number| u32::try_from(number).map_err(|_| format!("{name} is {number}; it must be below 2^32")));
        match name {
            "is_cpu_op" => self.on_host = number()? != 0,
            "num_ops" => self.operations = Some(number()?),
            "tensor_size" => self.tensor_bytes = Some(number()?),
            "runtime" => self.duration_us = Some(number()?),
            "comm_type" => self.operation = Some(number()?),
            "comm_size" => self.comm_bytes = Some(number()?),
            "comm_src" => self.message.source = Some(small()?),
            "comm_dst" => self.message.destination = Some(small()?),
            "comm_tag" => self.message.tag = Some(small()?),
            "comm_priority" => self.collective.priority = small()?,
            "involved_dim" => match value {
                Attribute::Flags(flags) => self.collective.dimensions = Some(flags.as_slice().into()),
                _ => return Err("involved_dim is not a list of flags (bool_list)".to_owned()),
            },
            "pg_name" => match value {
                Attribute::Text(text) => self.collective.group = group(text)?,
                Attribute::Integer(_) => self.collective.group = small()?,
                _ => return Err("pg_name is not a text".to_owned()),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The number of a communicator group; nothing is the group of all.
fn group(text: &str) -> Result<u32, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let problem =
        || format!("pg_name is `{}`; it must be the decimal number of a communicator group", text.chars().take(40).collect::<String>());
    text.parse().map_err(|_| problem())
}

/// The process groups that a metadata node of PyTorch lists in its input: a JSON list between `['` and `']`.
fn process_groups(raw: &Raw<'_>) -> Result<Box<[(u32, Box<[u32]>)]>, String> {
    let mut fields = Fields::new(raw.inputs);
    let mut values = "";
    while let Some((number, field)) = fields.next()? {
        if let (1, Value::Bytes(bytes)) = (number, field) {
            values = text(bytes, "inputs")?;
        }
    }
    let Some(list) = values.strip_prefix("['").and_then(|text| text.strip_suffix("']")) else { return Ok(Box::default()) };
    // Other metadata is in the same place: another value says nothing about groups.
    let Ok(serde_json::Value::Array(items)) = serde_json::from_str(list) else { return Ok(Box::default()) };
    let group = |item: &serde_json::Value| -> Option<(u32, Box<[u32]>)> {
        let number = item.get("pg_name")?.as_str()?.parse().ok()?;
        let ranks = item.get("ranks")?.as_array()?;
        let ranks: Option<Vec<u32>> = ranks.iter().map(|rank| u32::try_from(rank.as_u64()?).ok()).collect();
        Some((number, ranks?.into()))
    };
    Ok(items.iter().filter_map(group).collect())
}
