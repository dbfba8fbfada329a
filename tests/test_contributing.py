"""The steps of CONTRIBUTING.md, as they stand there: a new file, its line of the table, its `mod` line; then `cargo test`.

They are applied to a copy of the crates below the engines in ``target/contributing``, which stays, so that a second run compiles nothing.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
COPY = TARGET / "contributing"
# The crates that the guide adds to, and those whose tests run over its families.
BELOW = ("kasuri-network", "kasuri-workload", "kasuri-model", "kasuri-config")

FILE = re.compile(r"Write `(crates/[^`]+\.rs)`:\n\n```rust\n(.*?)```", re.DOTALL)
LINES = re.compile(r"In `(crates/[^`]+\.rs)` add [^\n]*:\n((?:\n```diff\n.*?```\n)+)", re.DOTALL)
DIFFERENCE = re.compile(r"```diff\n(.*?)```", re.DOTALL)
EXPERIMENT = re.compile(r"[Tt]his experiment uses [^\n]*:\n\n```toml\n(.*?)```", re.DOTALL)

# What a user of the additions relies on: the tables list them, and an experiment that names them can be prepared.
USES_ALL = """
//! Uses all additions of the guide.

use kasuri_config::Document;
use kasuri_network::deadlock::check;
use kasuri_network::predictor::{self, PREDICTORS};
use kasuri_network::topology::{NoFiles, TOPOLOGIES};
use kasuri_workload::traffic::pattern::PATTERNS;

#[test]
fn the_additions_are_listed() {
    assert!(TOPOLOGIES.iter().any(|entry| entry.name == "chordal-ring"));
    assert!(PATTERNS.iter().any(|entry| entry.name == "stride"));
    assert!(PREDICTORS.iter().any(|entry| entry.name == "most-frequent"));
}

#[test]
fn the_experiment_can_be_prepared() {
    let document = Document::parse("contributed.toml", include_str!("contributed.toml")).unwrap();
    let study = document.study(&document.points().unwrap()[0], &NoFiles).unwrap();
    let scenario = &study.scenario;
    assert_eq!((scenario.network.router_count(), scenario.network.terminal_count()), (14, 14));
    assert!(check(&scenario.network, &*scenario.possible_ways(), &scenario.virtual_channel_ranges()).is_safe());
    assert_eq!(scenario.router.predictor, "most-frequent");
    assert!(predictor::build(&scenario.router.predictor, &scenario.network).is_ok());
}
"""


def guide() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text()


def write(path: Path, content: bytes) -> None:
    """Write a file, unless this is its content already: cargo goes by the time of the last change."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def apply(text: str, difference: str) -> str:
    """Apply the lines of a ```diff block; what they stand between must be there exactly once."""
    lines = difference.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if not line.startswith("+"))
    after = "".join(line[1:] for line in lines)
    assert text.count(before) == 1, f"not found, or found twice:\n{before}"
    return text.replace(before, after)


def copy_with(changes: dict[str, str]) -> None:
    """Bring the copy up to date: the crates below the engines as a workspace of their own, with the changed and new files."""
    # The tests of these crates run the parsers on the seeds of the fuzz targets and on the project's samples too.
    folders = [*(ROOT / "crates" / crate for crate in BELOW), ROOT / "fuzz/corpus", ROOT / "tests/data"]
    sources = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(ROOT)): path.read_bytes() for path in [*sources, ROOT / "rustfmt.toml"]}
    files["Cargo.toml"] = workspace_below().encode()
    files |= {name: text.encode() for name, text in changes.items()}
    for path in sorted(COPY.rglob("*")):
        if path.is_file() and str(path.relative_to(COPY)) not in (*files, "Cargo.lock"):
            path.unlink()
    for name, content in files.items():
        write(COPY / name, content)
    shutil.copy(ROOT / "Cargo.lock", COPY / "Cargo.lock")


def workspace_below() -> str:
    """Cut the workspace down to these crates; the profile of a package that is not there would be a warning.

    They are optimised less than the project's own, for they take longer to compile than to run; their dependencies are the project's.

    Cargo names what it builds by the package's name, version and path within the workspace, so that a copy with the same version
    would overwrite what was built of the crates themselves.
    """
    text = (ROOT / "Cargo.toml").read_text()
    text = re.sub(r'(?m)^version = ".*"$', 'version = "0.0.0"', text, count=1)
    text = re.sub(r"(?m)^(default-members|exclude) = .*\n", "", text)
    members = ", ".join(f'"crates/{crate}"' for crate in BELOW)
    text = re.sub(r"(?m)^members = .*$", f"members = [{members}]", text)
    text = re.sub(r"(?m)^\[profile\.dev\]\nopt-level = 2$", "[profile.dev]\nopt-level = 1", text)
    return re.sub(r"(?m)^\[profile\.dev\.package\.kasuri-flit\]\n.*\n", '[profile.dev.package."*"]\nopt-level = 2\n', text)


def test_each_addition_is_one_file_one_line_of_the_table_and_its_mod_line():
    assert [name.rsplit("/", 1)[1] for name, _ in FILE.findall(guide())] == ["chordal_ring.rs", "stride.rs", "most_frequent.rs"]
    added = {
        name: [line[1:].strip() for line in differences.splitlines() if line.startswith("+")]
        for name, differences in LINES.findall(guide())
    }
    assert added == {
        "crates/kasuri-network/src/topology/mod.rs": ["pub mod chordal_ring;", "chordal_ring::ChordalRing,"],
        "crates/kasuri-workload/src/traffic/pattern/mod.rs": ["pub mod stride;", "stride::Stride,"],
        "crates/kasuri-network/src/predictor/mod.rs": ["mod most_frequent;", "most_frequent::ENTRY,"],
    }


def test_the_additions_compile_and_pass_the_tests_of_their_families():
    changes = dict(FILE.findall(guide()))
    for name, differences in LINES.findall(guide()):
        changes[name] = functools.reduce(apply, DIFFERENCE.findall(differences), (ROOT / name).read_text())
    tests = "crates/kasuri-config/tests"
    experiment = EXPERIMENT.findall(guide())[-1]
    changes |= {f"{tests}/contributed.toml": experiment, f"{tests}/contributed.rs": USES_ALL.lstrip()}
    copy_with(changes)
    # Of the programs in tests/ those of these families: each takes as long to compile as the additions themselves.
    programs = [word for name in ("contributed", "routes", "tables", "traffic") for word in ("--test", name)]
    packages = [word for crate in BELOW for word in ("--package", crate)]
    command = ["cargo", "test", "--offline", *packages, "--lib", *programs]
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never"}
    answer = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "warning" not in answer.stderr, answer.stderr
    assert '"0.0.0"' in (COPY / "Cargo.lock").read_text(), "the copy has a version of its own"
    for test in (
        "topology::chordal_ring::tests::fourteen_routers_with_chords_of_five_are_the_heawood_graph",
        "traffic::pattern::stride::tests::destinations_go_round_after_the_last_terminal",
        "predictor::most_frequent::tests::the_majority_of_all_packets_is_the_guess",
        "the_additions_are_listed",
        "the_experiment_can_be_prepared",
        "every_branch_of_every_routing_arrives",
        "draws_follow_the_weights",
        "predictor::tests::every_predictor_guesses_what_is_there_by_its_own_history",
    ):
        assert f"test {test} ... ok" in answer.stdout, answer.stdout


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")
def test_the_code_of_the_guide_is_formatted():
    for name, text in FILE.findall(guide()):
        command = ["rustfmt", "--edition", "2024", "--config-path", str(ROOT), "--check"]
        answer = subprocess.run(command, input=text, capture_output=True, text=True)
        assert answer.returncode == 0, f"{name}\n{answer.stdout}{answer.stderr}"
