use super::*;
use crate::faults::FaultsSection;
use crate::host_memory::HostsSection;
use crate::measure::MeasureSection;
use crate::pattern::ALL_PATTERNS;
use crate::physical::PhysicalLinks;
use crate::routing::ALL_ROUTINGS;
use crate::topology::ALL_TOPOLOGIES;
use crate::trace::TraceSection;
use crate::traffic::ClassParameters;
use crate::units::UnitParameters;
use crate::workload::WorkloadSection;
use kasuri_model::router::RouterParameters;
use kasuri_network::fields::fields_of;
use kasuri_network::registry::Entry;
use kasuri_network::topology::ChannelParameters;
use kasuri_workload::endpoint::ENDPOINTS;
use kasuri_workload::traffic::process::PROCESSES;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

/// All that may stand in place of a value that a schema describes.
fn values(shape: Shape<'_>, schema: &Json, depth: u32) -> Vec<Value> {
    let schema = shape.resolve(schema);
    let words = shape.names(schema).unwrap_or_default();
    let mut scalars: Vec<Value> = words.iter().map(|&word| word.into()).collect();
    scalars.extend([Value::from("x"), "auto".into(), "4 ns".into(), true.into(), 0.5.into(), 2.0.into(), f64::NAN.into()]);
    scalars.extend([-1, 0, 1, 3, 300, 70_000, 1 << 33, i64::MAX].map(Value::from));
    let lists = (0..9).flat_map(|length| scalars.iter().map(move |value| Value::Array(vec![value.clone(); length])));
    let mut all: Vec<Value> = scalars.iter().cloned().chain(lists).collect();
    let mut tables = vec![Table::new()];
    for key in words.iter().chain(&["x"]) {
        tables.extend(
            [Value::from(1), Table::new().into(), Value::Array(Vec::new())].map(|value| Table::from_iter([((*key).to_owned(), value)])),
        );
    }
    for part in branches(schema).unwrap_or_default().iter().chain([schema]).map(|part| shape.resolve(part)) {
        let Some(properties) = part.get("properties").and_then(Json::as_object) else { continue };
        for (key, property) in properties.iter().filter(|_| depth > 0) {
            tables.extend(values(shape, property, depth - 1).into_iter().map(|value| Table::from_iter([(key.clone(), value)])));
        }
    }
    let beside = tables.iter().cloned().map(|mut table| {
        table.insert("y".to_owned(), 1.into());
        table
    });
    let tables: Vec<Value> = beside.chain(tables.iter().cloned()).map(Value::Table).collect();
    all.extend(tables);
    all
}

/// Whatever stands at any key: what serde reads, the schema allows, unless it is not plain. And the keys are those of the schema.
fn agree(name: &str, schema: &Schema, keys: &[&str], right: &Table, is_read: impl Fn(Table) -> bool) {
    let schema = schema.as_value();
    let none = Map::new();
    let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
    assert_eq!(keys, properties.keys().collect::<Vec<_>>(), "{name}");
    let mut read = 0;
    for (key, property) in properties {
        for value in values(Shape { root: schema }, property, 1) {
            let mut table = right.clone();
            table.insert(key.clone(), value);
            if is_plain(&table) && is_read(table.clone()) {
                assert_eq!(check(schema, &table), Ok(()), "{name}: {table}");
                read += 1;
            }
        }
    }
    assert!(read >= properties.len(), "{name}: {read} values are read of {} keys", properties.len());
}

fn members<F: ?Sized>(table: &[Entry<F>]) {
    for entry in table.iter().filter(|entry| entry.wraps.is_none()) {
        let right = entry.example.parse().expect("an example is TOML");
        agree(entry.name, &(entry.schema)(), entry.keys(), &right, |table| (entry.parse)(table).is_ok());
    }
}

/// They agree on a structure; `right` is a table of it.
pub(crate) fn structure<T: DeserializeOwned + JsonSchema>(right: &str) {
    let schema = schema_for!(T);
    let is_read = |table: Table| table.try_into::<T>().is_ok();
    agree(std::any::type_name::<T>(), &schema, fields_of::<T>(), &right.parse().expect("TOML"), is_read);
}

#[test]
fn what_serde_reads_of_plain_values_the_schema_allows() {
    members(ALL_TOPOLOGIES);
    members(ALL_ROUTINGS);
    members(ALL_PATTERNS);
    members(PROCESSES);
    members(ENDPOINTS);
    structure::<RouterParameters>("");
    structure::<ChannelParameters>("");
    structure::<UnitParameters>("");
    structure::<PhysicalLinks>("");
    structure::<MeasureSection>("");
    structure::<ClassParameters>("");
    structure::<TraceSection>("trace = \"file\"");
    structure::<WorkloadSection>("");
    structure::<HostsSection>("terminals_per_host = 2");
    structure::<FaultsSection>("");
}
