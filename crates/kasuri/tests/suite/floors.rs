//! The rooms of each crate: a file imports from its own room or from a lower one.

use std::fs;
use std::path::{Path, PathBuf};

/// By crate: its rooms, the lowest first. A room is a file or a folder of `src/`; the root of the crate is above all.
const ROOMS: &[(&str, &[&str])] = &[(
    "kasuri-flit",
    &["record", "facts", "support", "state", "fabric", "feeds", "edge", "observe", "run", "crosspoint", "endpoint", "engine", "lib"],
)];

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] }).collect()
}

/// The rooms that a file without its unit tests names in paths from the root of the crate: `crate::a::b`, `crate::{a, b::c}`.
fn named_rooms(text: &str) -> Vec<String> {
    let code: String =
        text.split("\n#[cfg(test)]\nmod ").next().unwrap_or("").lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let first = |path: &str| -> String { path.trim().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect() };
    let rooms_after = |rest: &str| -> Vec<String> {
        match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or("").split(',').map(first).collect(),
            None => vec![first(rest)],
        }
    };
    code.split("crate::").skip(1).flat_map(rooms_after).collect()
}

#[test]
fn rooms_import_downwards() {
    for &(name, rooms) in ROOMS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let place = |room: &str| rooms.iter().position(|&other| other == room);
        for file in rust_files(&source).into_iter().filter(|file| !file.ends_with("tests.rs")) {
            let within = file.strip_prefix(&source).unwrap().with_extension("");
            let own = within.iter().next().unwrap().to_str().unwrap();
            let own_place = place(own).unwrap_or_else(|| panic!("{name}: {own} has no place among the rooms"));
            for room in named_rooms(&fs::read_to_string(&file).unwrap()) {
                assert!(place(&room).is_none_or(|place| place <= own_place), "{}: imports the higher room {room}", file.display());
            }
        }
    }
}
