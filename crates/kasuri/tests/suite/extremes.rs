//! Whole numbers at their extremes in the sections that describe endpoints, workloads and users: each has a range that is named, or works.

use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use toml::{Table, Value};

/// Seconds of processor time and KiB of memory that a run of 1500 cycles may take: none is longer than its limit of cycles, whatever it is given.
const SECONDS: u32 = 60;
const KIBIBYTES: u32 = 6 << 20;

const VALUES: [i64; 7] = [0, 1, 1 << 31, (1 << 32) - 1, 1 << 32, i64::MAX, -1];

const MESH: &str = "measure = { max_cycles = 1500 }\nnetwork = { topology = \"mesh\", dimensions = [3, 3], flit_bytes = 8, cycle_ns = 1.0 }\n\
    routing = { algorithm = \"dimension-order\" }\nrouter = { virtual_channels = 2 }\n";

/// Small experiments, and the sections of each that are tried: the path of a table in the file, and the name of its keys in the schema.
fn experiments() -> Vec<(String, Vec<(&'static str, &'static str)>)> {
    let mesh = |rest: &str| format!("{MESH}{rest}");
    let cenju4 = "measure = { max_cycles = 1500 }\nnetwork = { topology = \"cenju4\", terminals = 8, cycle_ns = 12.5 }\n\
        routing = { algorithm = \"destination-tag\" }\nrouter = { architecture = \"crosspoint\", buffer_flits = 216 }\n\
        endpoint = { model = \"cenju4\" }\nworkload = { collective = \"allgather\", schedule = \"shift\", message_bytes = 100 }\n";
    let users = "[[user]]\nname = \"a\"\nnodes = 4\nworkload = { collective = \"alltoall\", message_flits = 5 }\n\
        [[user]]\nname = \"b\"\nnodes = 4\nlogical = { topology = \"tree\", nodes = 4, arity = 2 }\n\
        traffic = { pattern = \"uniform\", load = 0.1, packet_flits = 2 }\n";
    let own = [("workload", "workload")];
    let both = [("workload", "workload"), ("endpoint", "endpoint")];
    let of_users = [
        ("user.0", "user"),
        ("user.0.workload", "user.workload"),
        ("user.1", "user"),
        ("user.1.traffic", "user.traffic"),
        ("user.1.logical", "user.logical"),
    ];
    vec![
        (mesh("workload = { collective = \"alltoall\", message_flits = 5 }\n"), own.to_vec()),
        (mesh("engine = \"flow\"\nworkload = { collective = \"allreduce\", message_bytes = 40 }\n"), own.to_vec()),
        (mesh("engine = \"analysis\"\nworkload = { collective = \"alltoall\", message_flits = 5 }\n"), own.to_vec()),
        (
            mesh("engine = \"flow\"\nendpoint = { model = \"rdma\" }\nworkload = { collective = \"alltoall\", message_bytes = 100 }\n"),
            both.to_vec(),
        ),
        (mesh("endpoint = { model = \"rdma\" }\nworkload = { collective = \"broadcast\", message_bytes = 100 }\n"), both.to_vec()),
        (mesh("endpoint = { model = \"dsm\" }\nworkload = { program = \"matrix-vector\" }\n"), both.to_vec()),
        (mesh("engine = \"flow\"\nendpoint = { model = \"dsm\" }\nworkload = { program = \"random-access\" }\n"), both.to_vec()),
        (cenju4.to_owned(), both.to_vec()),
        (mesh(users), of_users.to_vec()),
    ]
}

/// The keys of a section of the schema, under any of its variants, that take whole numbers; `user.traffic` is the section `traffic` of `user`.
fn whole_numbers(schema: &Json, section: &str) -> BTreeSet<String> {
    let mut places = vec![&schema["properties"]];
    for name in section.split('.') {
        let mut found = Vec::new();
        places.into_iter().for_each(|place| collect(schema, &place[name], &mut found));
        places = found;
    }
    let keys = places.into_iter().filter_map(Json::as_object).flatten();
    keys.filter(|(_, value)| is_whole(schema, value)).map(|(key, _)| key.clone()).collect()
}

/// The `properties` of all variants of a part of the schema; of a list those of its elements.
fn collect<'a>(schema: &'a Json, part: &'a Json, found: &mut Vec<&'a Json>) {
    let part = resolved(schema, part);
    found.extend(part.get("properties"));
    let variants = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|kind| part[kind].as_array().into_iter().flatten());
    let others = ["if", "then", "else", "items"].into_iter().filter_map(|kind| part.get(kind));
    variants.chain(others).for_each(|variant| collect(schema, variant, found));
}

fn resolved<'a>(schema: &'a Json, part: &'a Json) -> &'a Json {
    let name = part["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    // A recursive part is visited once.
    name.filter(|name| *name != "traffic").map_or(part, |name| &schema["$defs"][name])
}

fn is_whole(schema: &Json, value: &Json) -> bool {
    let value = resolved(schema, value);
    let here = match &value["type"] {
        Json::Array(kinds) => kinds.iter().any(|kind| kind == "integer"),
        kind => kind == "integer",
    };
    here || ["anyOf", "oneOf"]
        .into_iter()
        .flat_map(|kind| value[kind].as_array().into_iter().flatten())
        .any(|variant| is_whole(schema, variant))
}

/// Sets a key of a table that a dotted path names; numbers count in lists.
fn set(root: &mut Table, path: &str, key: &str, number: i64) {
    let mut parts = path.split('.');
    let first = parts.next().expect("a path has a beginning");
    let place = parts.try_fold(&mut root[first], |place, part| match part.parse::<usize>() {
        Ok(index) => place.get_mut(index),
        Err(_) => place.get_mut(part),
    });
    place.and_then(Value::as_table_mut).expect("the experiment has this table").insert(key.to_owned(), number.into());
}

/// The command within limits of time and memory.
fn kasuri(folder: &Path, arguments: &[&str]) -> Output {
    let script = format!("ulimit -t {SECONDS} -v {KIBIBYTES} -c 0; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_kasuri")]).args(arguments).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn whole_numbers_of_endpoints_workloads_and_users_are_refused_or_work() {
    let folder = tempfile::tempdir().unwrap();
    let schema: Json = serde_json::from_slice(&kasuri(folder.path(), &["schema"]).stdout).unwrap();
    let mut tries = Vec::new();
    for (number, (text, sections)) in experiments().into_iter().enumerate() {
        let experiment: Table = text.parse().unwrap();
        fs::write(folder.path().join("base.toml"), &text).unwrap();
        let base = kasuri(folder.path(), &["run", "base.toml", "--out", &format!("base-{number}")]);
        assert!(matches!(base.status.code(), Some(0 | 1)), "{text}: {}", String::from_utf8_lossy(&base.stderr));
        for (path, section) in sections {
            let keys = whole_numbers(&schema, section);
            assert!(!keys.is_empty(), "{section}");
            for (key, value) in keys.iter().flat_map(|key| VALUES.map(|value| (key.clone(), value))) {
                let mut changed = experiment.clone();
                set(&mut changed, path, &key, value);
                tries.push((format!("{number}: {path}.{key} = {value}"), changed.to_string()));
            }
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let (tries, folder) = (&tries, folder.path());
        let workers = (0..threads).map(|first| scope.spawn(move || tried(folder, tries.iter().skip(first).step_by(threads))));
        workers.collect::<Vec<_>>().into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} go wrong:\n{}", wrong.len(), tries.len(), wrong.join("\n"));
}

/// The failures of running these.
fn tried<'a>(folder: &Path, tries: impl Iterator<Item = &'a (String, String)>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (place, (name, text)) in tries.enumerate() {
        let own = folder.join(format!("{:?}-{place}", std::thread::current().id()).replace(['(', ')'], ""));
        fs::create_dir(&own).unwrap();
        fs::write(own.join("x.toml"), text).unwrap();
        let output = kasuri(&own, &["run", "x.toml", "--jobs", "1", "--out", "out"]);
        let message = String::from_utf8_lossy(&output.stderr);
        let is_refused = output.status.code() == Some(2);
        let is_wrong = !matches!(output.status.code(), Some(0..=2)) || message.contains("panicked") || message.contains("defect");
        if is_wrong || is_refused && !message.starts_with("error: ") && !message.starts_with("kasuri: ") {
            wrong.push(format!("{name}: {:?} {}", output.status, message.chars().take(300).collect::<String>()));
        }
        fs::remove_dir_all(&own).unwrap();
    }
    wrong
}
