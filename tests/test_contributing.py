"""The steps of docs/how-to/extend, exactly as printed: new files, their lines of the tables, their `mod` lines; then `cargo test`.

They are applied to a copy of the workspace in ``target/contributing``, which stays, so that a second run compiles nothing.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
COPY = TARGET / "contributing"
# The crates whose tests run over the families that the guide adds to, and those that are compiled only.
BELOW = ("kasuri-network", "kasuri-workload", "kasuri-model", "kasuri-formats", "kasuri-config")
ABOVE = ("kasuri-flit", "kasuri-flow", "kasuri-packet", "kasuri", "kasuri-distances")

# They compile a second workspace, which takes minutes.
compiles = pytest.mark.skipif(os.environ.get("KASURI_CONTRIBUTING") != "all", reason="`make verify-contributing` compiles the additions")

FILE = re.compile(r"Write `([^`]+)`:\n\n```(?:rust|toml|text)\n(.*?\n)```$", re.DOTALL | re.MULTILINE)
LINES = re.compile(r"In `([^`]+)` add [^\n]*:\n((?:\n```diff\n.*?```\n)+)", re.DOTALL)
DIFFERENCE = re.compile(r"```diff\n(.*?)```", re.DOTALL)
EXPERIMENT = re.compile(r"\*\*Use it\.\*\* (?:[^\n]+\n)+\n```toml\n(.*?)```", re.DOTALL)

# What a user of the additions relies on: the tables list them, and an experiment that names them can be prepared.
USES_ALL = """
//! Uses all additions of the guide.

use kasuri_config::Document;
use kasuri_network::deadlock::check;
use kasuri_network::predictor::PREDICTORS;
use kasuri_network::routing::ROUTINGS;
use kasuri_network::topology::{NoFiles, TOPOLOGIES};
use kasuri_workload::traffic::pattern::PATTERNS;

#[test]
fn the_additions_are_listed() {
    assert!(TOPOLOGIES.iter().any(|entry| entry.name == "chordal-ring"));
    assert!(PATTERNS.iter().any(|entry| entry.name == "stride"));
    assert!(ROUTINGS.iter().any(|entry| entry.name == "spanning-tree"));
    assert!(PREDICTORS.iter().any(|entry| entry.name == "most-frequent"));
}

#[test]
fn the_experiment_can_be_prepared() {
    let document = Document::parse("contributed.toml", include_str!("contributed.toml")).unwrap();
    let study = document.study(&document.points().unwrap()[0], &NoFiles).unwrap();
    let scenario = &study.scenario;
    assert_eq!((scenario.network.router_count(), scenario.network.terminal_count()), (14, 14));
    assert!(check(&scenario.network, &*scenario.possible_routing(), &scenario.virtual_channel_ranges()).is_safe());
    assert_eq!(scenario.router.predictor, "most-frequent");
    assert!(scenario.router.build_predictor(&scenario.network).is_ok());
}
"""


# The pages with an experiment that is run.
RUN_PAGES = ("pattern", "routing", "predictor", "column", "endpoint", "engine")

# What a run of an experiment of the guide answers, as one line of JSON for each file.
RUN = """
//! Runs experiments and prints their rows.

use kasuri::input::KNOWN;
use kasuri::plan::{Plan, RunOptions};
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;

fn main() {
    for name in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&name).unwrap();
        let document = Document::parse_for(*KNOWN, &name, &text).unwrap();
        let plan = Plan::prepare_for(*KNOWN, &document, &NoFiles).unwrap();
        println!("{}", plan.run(&RunOptions::default()).unwrap().rows[0].to_json());
    }
}
"""


GUIDE = ROOT / "docs/how-to/extend"
#: The pages of the guide, in the order of its list.
PAGES = re.findall(r"^[a-z-]+$", re.findall(r"```\{toctree\}\n(.*?)```", (GUIDE / "index.md").read_text(), re.DOTALL)[0], re.MULTILINE)


def guide() -> str:
    return "".join((GUIDE / f"{page}.md").read_text() for page in PAGES)


def experiment_of(page: str) -> str:
    """The experiment at the end of a page."""
    return EXPERIMENT.findall((GUIDE / f"{page}.md").read_text())[0]


def write(path: Path, content: bytes) -> None:
    """Write a file, unless this is its content already: cargo goes by the time of the last change."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def apply(text: str, difference: str) -> str:
    """Apply the lines of a ```diff block; what they stand between must be there exactly once."""
    lines = difference.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if not line.startswith("+"))
    after = "".join(line[1:] for line in lines if not line.startswith("-"))
    assert text.count(before) == 1, f"not found, or found twice:\n{before}"
    return text.replace(before, after)


def changed() -> dict[str, str]:
    """Follow the guide: all new files, and the files that get a line."""
    changes = dict(FILE.findall(guide()))
    for name, differences in LINES.findall(guide()):
        changes[name] = functools.reduce(apply, DIFFERENCE.findall(differences), (ROOT / name).read_text())
    return changes


@pytest.fixture(scope="module")
def copy() -> Path:
    """The workspace with all additions."""
    changes = changed()
    changes["Cargo.toml"] = workspace(changes["Cargo.toml"])
    tests = "crates/kasuri-config/tests"
    changes |= {f"{tests}/contributed.toml": experiment_of("predictor"), f"{tests}/contributed.rs": USES_ALL.lstrip()}
    changes |= {f"{page}.toml": experiment_of(page) for page in RUN_PAGES}
    changes["crates/kasuri/examples/contributed.rs"] = RUN.lstrip()
    copy_with(changes)
    return COPY


def copy_with(changes: dict[str, str]) -> None:
    """Bring the copy up to date, with the changed and new files."""
    # The tests of the crates also read the seeds of the fuzz targets, the project's samples and its examples.
    folders = [ROOT / "crates", ROOT / "fuzz/corpus", ROOT / "tests/data", ROOT / "examples"]
    sources = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(ROOT)): path.read_bytes() for path in [*sources, ROOT / "rustfmt.toml"]}
    files |= {name: text.encode() for name, text in changes.items()}
    for path in sorted(COPY.rglob("*")):
        if path.is_file() and str(path.relative_to(COPY)) not in (*files, "Cargo.lock"):
            path.unlink()
    for name, content in files.items():
        write(COPY / name, content)
    shutil.copy(ROOT / "Cargo.lock", COPY / "Cargo.lock")


def workspace(text: str) -> str:
    """Cut the workspace down to these crates.

    They are optimised less than the project's own, for they take longer to compile than to run; their dependencies are the project's.

    Cargo names what it builds by the package's name, version and path within the workspace, so that a copy with the same version
    would overwrite what was built of the crates themselves.
    """
    text = re.sub(r'(?m)^version = ".*"$', 'version = "0.0.0"', text, count=1)
    text = re.sub(r"(?m)^(default-members|exclude) = .*\n", "", text)
    members = ", ".join(f'"crates/{crate}"' for crate in (*BELOW, *ABOVE))
    text = re.sub(r"(?m)^members = .*$", f"members = [{members}]", text)
    text = re.sub(r"(?m)^\[profile\.dev\]\nopt-level = 2$", "[profile.dev]\nopt-level = 1", text)
    hardly = "".join(f"[profile.dev.package.{crate}]\nopt-level = 0\n" for crate in ABOVE)
    return re.sub(r"(?m)^\[profile\.dev\.package\.kasuri-flit\]\n.*\n", f'[profile.dev.package."*"]\nopt-level = 2\n{hardly}', text)


def cargo(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never"}
    answer = subprocess.run(["cargo", *arguments], cwd=copy, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "warning" not in answer.stderr, answer.stderr
    return answer


def test_each_addition_is_a_file_and_a_line():
    assert list(dict(FILE.findall(guide()))) == [
        "crates/kasuri-network/src/topology/chordal_ring.rs",
        "crates/kasuri-workload/src/traffic/pattern/stride.rs",
        "crates/kasuri-network/src/routing/spanning_tree.rs",
        "crates/kasuri-network/src/predictor/most_frequent.rs",
        "crates/kasuri-formats/src/adjacency.rs",
        "fuzz/fuzz_targets/adjacency.rs",
        "fuzz/corpus/adjacency/star.adj",
        "crates/kasuri-workload/src/endpoint/relay.rs",
        "crates/kasuri-flit/src/feeds/relay.rs",
        "crates/kasuri-flit/tests/suite/relay.rs",
        "crates/kasuri-distances/Cargo.toml",
        "crates/kasuri-distances/src/lib.rs",
    ]
    added = {
        name: [line[1:].strip() for line in differences.splitlines() if line.startswith("+")]
        for name, differences in LINES.findall(guide())
    }
    # The line of the table and the `mod` line; of a column its value, of a format its ending, of an engine its name in manifests.
    assert {name: len(lines) for name, lines in added.items()} == {
        "crates/kasuri-network/src/topology/mod.rs": 2,
        "crates/kasuri-workload/src/traffic/pattern/mod.rs": 2,
        "crates/kasuri-network/src/routing/mod.rs": 2,
        "crates/kasuri-network/src/predictor/mod.rs": 2,
        "crates/kasuri/src/results.rs": 3,
        "python/kasuri/_columns.py": 1,
        "crates/kasuri-formats/src/lib.rs": 1,
        "crates/kasuri-config/src/topology/file.rs": 4,
        "fuzz/Cargo.toml": 7,
        "crates/kasuri-workload/src/endpoint/mod.rs": 2,
        "crates/kasuri-flit/src/feeds/mod.rs": 3,
        "crates/kasuri-flit/tests/suite/main.rs": 1,
        "Cargo.toml": 1,
        "crates/kasuri/Cargo.toml": 1,
        "crates/kasuri/src/engines.rs": 2,
        "tests/test_architecture.py": 2,
    }


@compiles
def test_the_additions_compile_and_pass_the_tests_of_their_families(copy):
    # Of the tests those of these families.
    programs = [word for name in ("contributed", "suite") for word in ("--test", name)]
    packages = [word for crate in BELOW for word in ("--package", crate)]
    families = ["routes::", "tables::", "traffic::", "topology::", "spanning_tree::", "predictor::", "adjacency::", "the_additions"]
    families.append("the_experiment")
    answer = cargo(copy, "test", "--offline", *packages, "--lib", *programs, "--", *families)
    assert '"0.0.0"' in (copy / "Cargo.lock").read_text(), "the copy has a version of its own"
    for test in (
        "topology::chordal_ring::tests::fourteen_routers_with_chords_of_five_are_the_heawood_graph",
        "traffic::pattern::stride::tests::destinations_go_round_after_the_last_terminal",
        "routing::spanning_tree::tests::the_tree_of_a_full_mesh_is_a_star",
        "predictor::most_frequent::tests::the_majority_of_all_packets_is_the_guess",
        "adjacency::tests::every_link_has_a_channel_each_way",
        "adjacency::tests::no_beginning_of_a_file_panics",
        "the_additions_are_listed",
        "the_experiment_can_be_prepared",
        "routes::every_branch_of_every_routing_arrives",
        "traffic::draws_follow_the_weights",
        "predictor::tests::every_predictor_guesses_what_is_there_by_its_own_history",
    ):
        assert f"test {test} ... ok" in answer.stdout, answer.stdout


@compiles
def test_the_feed_and_the_engine_pass_their_tests(copy):
    # The whole workspace: for one package cargo would choose other features of the dependencies, and compile them again.
    feed = cargo(copy, "test", "--offline", "--workspace", "--test", "suite", "relay::")
    assert "test relay::the_latencies_add_up_to_the_time_of_the_run ... ok" in feed.stdout
    engine = cargo(copy, "test", "--offline", "--package", "kasuri-distances", "--lib")
    assert "test tests::a_full_mesh_has_two_routers_on_the_paths_between_its_routers ... ok" in engine.stdout


@compiles
def test_the_experiments_of_the_guide_run(copy):
    # An example of the crate: its command would take the place of the project's own in the target folder.
    cargo(copy, "build", "--offline", "--workspace", "--example", "contributed")
    command = [str(TARGET / "debug/examples/contributed"), *(f"{page}.toml" for page in RUN_PAGES)]
    answer = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    rows = dict(zip(RUN_PAGES, map(json.loads, answer.stdout.splitlines()), strict=True))
    assert [rows[page]["status"] for page in ("pattern", "routing", "predictor", "column")] == ["converged"] * 4
    assert (rows["pattern"]["prediction_attempts"], rows["predictor"]["prediction_attempts"] > 0) == (None, True)
    assert (rows["column"]["channels_idle"], rows["engine"]["channels_idle"]) == (8, None)
    relay, distances = rows["endpoint"], rows["engine"]
    assert (relay["status"], relay["completion_time"], relay["packet_latency_max"]) == ("completed", 306, 16)
    assert (distances["engine"], distances["packet_latency_mean"], distances["hops_mean"]) == ("distances", 6, 2)


def test_the_additions_keep_the_rules_of_the_layout(copy):
    """Those that read sources, on the copy."""
    rules = "floor or one_way or feed_and_a_layout or named_in_one_list or below_the_facade or many_fields"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_architecture.py", "-k", rules]
    answer = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")
def test_the_code_of_the_guide_is_formatted():
    for name, text in FILE.findall(guide()):
        if not name.endswith(".rs"):
            continue
        command = ["rustfmt", "--edition", "2024", "--config-path", str(ROOT), "--check"]
        answer = subprocess.run(command, input=text, capture_output=True, text=True)
        assert answer.returncode == 0, f"{name}\n{answer.stdout}{answer.stderr}"
