//! The JSON Schema of the experiment file, put together from the families' tables.

use super::effective::Record;
use super::faults::FaultsSection;
use super::host_memory::HostsSection;
use super::known::Known;
use super::measure::MeasureSection;
use super::physical::PhysicalLinks;
use super::plot::Plot;
use super::terminal_ports::TERMINAL_PORTS;
use super::trace::TraceSection;
use super::traffic::ClassParameters;
use super::units::UnitParameters;
use super::users::keys::{TranslationSection, UserParameters, UsersSection};
use super::workload::WorkloadSection;
use crate::pattern::ALL_PATTERNS;
use crate::routing::ALL_ROUTINGS;
use crate::topology::ALL_TOPOLOGIES;
use kasuri_model::router::RouterParameters;
use kasuri_network::predictor;
use kasuri_network::registry::Entry;
use kasuri_network::topology::ChannelParameters;
use kasuri_workload::collective::{COLLECTIVES, operations};
use kasuri_workload::endpoint::ENDPOINTS;
use kasuri_workload::schedule::SCHEDULES;
use kasuri_workload::terminal_ports::PortChoice;
use kasuri_workload::traffic::process::PROCESSES;
use kasuri_workload::workload::application::APPLICATIONS;
use schemars::{Schema, schema_for};
use serde_json::{Map, Value as Json, json};

/// The JSON Schema (draft 2020-12) of the experiment file.
///
/// Each family's section is one of as many forms as the family has members, so an editor offers a topology's own keys as soon
/// as its name stands there.
pub fn json_schema(known: Known<'_>) -> Json {
    let mut parts = Parts::default();
    let mut router = parts.take("router", schema_for!(RouterParameters));
    router["properties"]["predictor"]["enum"] = json!(predictor::names().collect::<Vec<_>>());
    let mut properties = json!({
        "title": { "type": "string", "description": "What the experiment is about." },
        "engine": {
            "enum": known.engine_names().collect::<Vec<_>>(), "default": known.default_engine,
            "description": "The level of fidelity: formulas, fluid flows, or flits cycle by cycle.",
        },
        "network": parts.network(),
        "faults": parts.take("faults", schema_for!(FaultsSection)),
        "routing": parts.routing(),
        "router": router,
        "traffic": parts.traffic(),
        "workload": parts.workload(),
        "endpoint": parts.endpoint(),
        "hosts": parts.take("hosts", schema_for!(HostsSection)),
        "user": parts.users(),
        "users": parts.take("users", schema_for!(UsersSection)),
        "translation": parts.take("translation", schema_for!(TranslationSection)),
        "measure": parts.take("measure", schema_for!(MeasureSection)),
        "sweep": sweep(),
        "plot": {
            "type": "array", "description": "Figures of the results, each a `[[plot]]`.", "items": parts.take("plot", schema_for!(Plot)),
        },
        "record": parts.take("record", schema_for!(Record)),
    });
    for engine in known.engines {
        let mut section = parts.take(engine.name(), (engine.section())());
        if section.is_object() {
            section["description"] = json!(format!("Options of the engine `{}`.", engine.name()));
        }
        properties[engine.name()] = section;
    }
    for (section, meaning) in SECTIONS {
        if properties[section].is_object() {
            properties[section]["description"] = json!(meaning);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Kasuri experiment",
        "type": "object",
        "properties": properties,
        "required": ["network", "routing"],
        "oneOf": [{ "anyOf": [{ "required": ["traffic"] }, { "required": ["workload"] }] }, { "required": ["user"] }],
        "additionalProperties": false,
        "$defs": parts.definitions,
    })
}

/// What sections are about, in place of the words about the structure that holds their keys.
const SECTIONS: [(&str, &str); 4] = [
    ("router", "The routers: pipeline, buffers, virtual channels, allocators, prediction."),
    ("users", "How several users share the machine: isolation, routing, who is simulated."),
    ("translation", "How the node numbers of users become terminals: in hardware or software, with which tables."),
    ("measure", "What is measured and how long: warm-up, precision, limits, seed."),
];

/// Definitions gathered from all structures, each under its structure's name so that none meet.
#[derive(Default)]
struct Parts {
    definitions: Map<String, Json>,
}

impl Parts {
    /// A structure as a part of the whole.
    fn take(&mut self, name: &str, schema: Schema) -> Json {
        let mut schema = Json::from(schema);
        redirect(&mut schema, name);
        if let Some(object) = schema.as_object_mut() {
            object.remove("$schema");
            object.remove("title");
            if let Some(Json::Object(definitions)) = object.remove("$defs") {
                self.definitions.extend(definitions.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
        }
        schema
    }

    /// A structure that has only some of its section's keys: the section is closed as a whole.
    fn take_open(&mut self, name: &str, schema: Schema) -> Json {
        let mut schema = self.take(name, schema);
        if let Some(object) = schema.as_object_mut() {
            object.remove("additionalProperties");
        }
        schema
    }

    fn network(&mut self) -> Json {
        let mut channels = self.take_open("network", schema_for!(ChannelParameters));
        let others = [self.take_open("network", schema_for!(UnitParameters)), self.take_open("network", schema_for!(PhysicalLinks))];
        for mut other in others {
            if let (Some(keys), Json::Object(own)) = (channels["properties"].as_object_mut(), other["properties"].take()) {
                keys.extend(own);
            }
        }
        json!({
            "type": "object", "description": "The network: its topology, and the speed of its channels.",
            "allOf": [channels, self.family("topology", ALL_TOPOLOGIES, None)], "unevaluatedProperties": false,
        })
    }

    /// A collective, an application or a trace.
    fn closed_workload(&mut self) -> Json {
        let mut section = self.take("workload", schema_for!(WorkloadSection));
        let mut schedules: Vec<&str> = Vec::new();
        for name in COLLECTIVES.iter().map(|entry| entry.schedule).chain(SCHEDULES.iter().map(|entry| entry.name)) {
            if !schedules.contains(&name) {
                schedules.push(name);
            }
        }
        let applications: Vec<&str> = APPLICATIONS.iter().map(|entry| entry.name).collect();
        for (key, names) in [("collective", operations()), ("schedule", schedules), ("application", applications)] {
            section["properties"][key]["enum"] = json!(names);
            section["properties"][key]["type"] = json!("string");
        }
        section
    }

    fn workload(&mut self) -> Json {
        let mut forms = vec![self.closed_workload()];
        for entry in ENDPOINTS {
            // The examples are valid: a test over the table says so.
            let model = toml::from_str(entry.example).ok().and_then(|table| (entry.parse)(table).ok());
            let schema = model.and_then(|model| model.workload_schema());
            forms.extend(schema.map(|schema| {
                let mut form = self.take(&format!("workload.{}", entry.name), schema);
                form["title"] = json!(format!("endpoint.model = {}", entry.name));
                form
            }));
        }
        json!({ "description": "A closed workload, which ends: a collective, an application, a trace or a program.", "anyOf": forms })
    }

    fn users(&mut self) -> Json {
        let mut user = self.take("user", schema_for!(UserParameters));
        // The tag of an enumeration has no words of its own.
        for form in self.definitions["user.LogicalNetwork"]["oneOf"].as_array_mut().into_iter().flatten() {
            form["properties"]["topology"]["description"] = json!("Topology of the logical network.");
        }
        user["properties"]["traffic"] = self.traffic();
        user["properties"]["workload"] = self.workload();
        json!({ "type": "array", "minItems": 1, "description": "Users of one machine, each with nodes and traffic of its own.", "items": user })
    }

    fn endpoint(&mut self) -> Json {
        json!({
            "type": "object", "description": "The network interfaces of the terminals; without this section they take no time.",
            "allOf": [self.family("model", ENDPOINTS, None)], "unevaluatedProperties": false,
        })
    }

    fn routing(&mut self) -> Json {
        let own = json!({ "properties": { "allow_deadlock": {
            "type": "boolean", "default": false, "description": "Run although packets may come to wait for each other in a cycle.",
        }, (TERMINAL_PORTS): {
            "enum": PortChoice::NAMES, "default": PortChoice::NAMES[0], "description": "How terminals with several ports choose among them.",
        } } });
        json!({
            "type": "object", "description": "How packets find their way through the network.",
            "allOf": [own, self.family("algorithm", ALL_ROUTINGS, None)], "unevaluatedProperties": false,
        })
    }

    /// Without classes all keys of the pattern and the process stand in the section. With classes each key may stand in the
    /// section or in the class, so that only the names and common keys are checked.
    fn traffic(&mut self) -> Json {
        let common = self.take_open("traffic", schema_for!(ClassParameters));
        let names = json!({ "properties": {
            "pattern": { "enum": ALL_PATTERNS.iter().map(|entry| entry.name).collect::<Vec<_>>(), "description": meaning("pattern") },
            "process": { "enum": PROCESSES.iter().map(|entry| entry.name).collect::<Vec<_>>(), "description": meaning("process") },
        } });
        let class = json!({ "properties": { "class": {
            "type": "array", "minItems": 1, "description": "Classes of traffic; what a class leaves out it takes from [traffic].",
            "items": { "type": "object", "allOf": [{ "$ref": "#/$defs/traffic" }, names] },
        } } });
        self.definitions.insert("traffic".to_owned(), common);
        let common = json!({ "$ref": "#/$defs/traffic" });
        let families = [self.family("pattern", ALL_PATTERNS, None), self.family("process", PROCESSES, Some("bernoulli"))];
        let [pattern, process] = families;
        let trace = self.take("trace", schema_for!(TraceSection));
        json!({
            "type": "object",
            "description": "Open traffic: packets that terminals create whatever happens in the network.",
            "if": { "required": ["class"] },
            "then": { "allOf": [common, names, class] },
            "else": {
                "if": { "required": ["trace"] },
                "then": trace,
                "else": { "allOf": [common, pattern, process], "unevaluatedProperties": false },
            },
        })
    }

    /// A member's name and its own keys, one form for each member.
    fn family<F: ?Sized>(&mut self, key: &str, table: &[Entry<F>], default: Option<&str>) -> Json {
        let forms: Vec<Json> = table.iter().map(|entry| self.member(key, entry, default == Some(entry.name))).collect();
        json!({ "oneOf": forms })
    }

    fn member<F: ?Sized>(&mut self, key: &str, entry: &Entry<F>, is_default: bool) -> Json {
        let mut form = self.take_open(&format!("{key}.{}", entry.name), (entry.schema)());
        let mut properties = Map::new();
        properties.insert(key.to_owned(), json!({ "const": entry.name, "description": meaning(key) }));
        if let Some(Json::Object(own)) = form.get_mut("properties").map(Json::take) {
            properties.extend(own);
        }
        let own = form["required"].as_array().into_iter().flatten();
        let required: Vec<Json> = (!is_default).then(|| json!(key)).into_iter().chain(own.cloned()).collect();
        form["description"] = json!(format!("{}. Source: {}.", entry.summary, entry.source));
        form["properties"] = Json::Object(properties);
        form["required"] = Json::Array(required);
        if entry.wraps.is_some() {
            // The keys of the wrapped member are here too.
            form["additionalProperties"] = json!(true);
        }
        form
    }
}

/// What the key that names a family's member means.
fn meaning(key: &str) -> &'static str {
    match key {
        "topology" => "Topology of the network.",
        "algorithm" => "Routing algorithm: which outputs a packet may take in a router.",
        "pattern" => "Traffic pattern: the destinations of each terminal's packets.",
        "process" => "Injection process: when a terminal creates packets.",
        "model" => "Model of the network interfaces.",
        _ => "",
    }
}

/// Points the references of a structure to the later place of its definitions.
fn redirect(schema: &mut Json, name: &str) {
    match schema {
        Json::Object(object) => {
            if let Some(Json::String(reference)) = object.get_mut("$ref")
                && let Some(definition) = reference.strip_prefix("#/$defs/")
            {
                *reference = format!("#/$defs/{name}.{definition}");
            }
            object.values_mut().for_each(|value| redirect(value, name));
        }
        Json::Array(elements) => elements.iter_mut().for_each(|value| redirect(value, name)),
        _ => {}
    }
}

fn sweep() -> Json {
    let range = json!({
        "type": "object",
        "properties": {
            "from": { "type": "number", "description": "First value of the range." },
            "to": { "type": "number", "description": "End of the range, itself a value where a step reaches it." },
            "step": { "type": "number", "exclusiveMinimum": 0, "description": "Difference between neighbouring values, above 0." },
        },
        "required": ["from", "to", "step"],
        "additionalProperties": false,
    });
    let case = json!({
        "type": "object",
        "description": "Keys of the file with one value each, as dotted keys or as tables.",
        "properties": { "label": { "type": "string", "minLength": 1, "description": "Its name in the column `case`; made of what distinguishes it unless given." } },
    });
    json!({
        "type": "object",
        "description": "Keys of the file, each with its values: the runs are their cartesian product, the last key fastest. A table is merged over the file's.",
        "minProperties": 1,
        "properties": { "case": {
            "type": "array", "minItems": 1, "items": case,
            "description": "Values that go together: each case is one value of a single axis.",
        } },
        "additionalProperties": { "anyOf": [{ "type": "array", "minItems": 1 }, range, { "type": "object" }] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(schema: &Json, found: &mut Vec<String>) {
        match schema {
            Json::Object(object) => {
                found.extend(object.get("$ref").and_then(Json::as_str).map(str::to_owned));
                object.values().for_each(|value| references(value, found));
            }
            Json::Array(elements) => elements.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_of_the_schema_has_its_definition() {
        let schema = json_schema(Known::default());
        let mut found = Vec::new();
        references(&schema, &mut found);
        assert!(found.len() > 5);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(schema.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn every_member_has_a_form_with_its_keys() {
        let schema = json_schema(Known::default());
        let forms = schema.pointer("/properties/network/allOf/1/oneOf").and_then(Json::as_array).unwrap();
        assert_eq!(forms.len(), ALL_TOPOLOGIES.len());
        for (form, entry) in forms.iter().zip(ALL_TOPOLOGIES) {
            assert_eq!(form["properties"]["topology"]["const"], entry.name);
            assert!(entry.keys().iter().all(|&key| form["properties"].get(key).is_some()));
        }
    }
}
