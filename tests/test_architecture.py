"""The invariants of ARCHITECTURE.md that no compiler keeps."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CRATES = ROOT / "crates"
SIMULATING = (
    "kasuri-network",
    "kasuri-workload",
    "kasuri-model",
    "kasuri-formats",
    "kasuri-config",
    "kasuri-flit",
    "kasuri-flow",
    "kasuri-packet",
)

# What is simulated, and the contract with the engines.
DESCRIPTION = {"kasuri-network", "kasuri-workload", "kasuri-model"}
# The crates of this workspace that each may know.
FLOORS = {
    "kasuri-network": set(),
    "kasuri-workload": {"kasuri-network"},
    "kasuri-model": {"kasuri-network", "kasuri-workload"},
    "kasuri-formats": {"kasuri-network", "kasuri-workload"},
    "kasuri-config": {*DESCRIPTION, "kasuri-formats"},
    "kasuri-flit": DESCRIPTION,
    "kasuri-flow": DESCRIPTION,
    "kasuri-packet": DESCRIPTION,
    "kasuri": {*DESCRIPTION, "kasuri-formats", "kasuri-config", "kasuri-flit", "kasuri-flow", "kasuri-packet"},
    "kasuri-py": {*DESCRIPTION, "kasuri-formats", "kasuri-config", "kasuri"},
}
# Threads, terminals, progress bars, Python, signals: not below the façade.
NOT_BELOW_THE_FACADE = {"rayon", "clap", "comfy-table", "indicatif", "signal-hook", "pyo3", "numpy"}


def dependencies(crate: str) -> set[str]:
    """What a crate and its tests are compiled with: a test of an engine that read experiment files would be compiled again for each key."""
    manifest = tomllib.loads((CRATES / crate / "Cargo.toml").read_text())
    return {name for section in ("dependencies", "dev-dependencies") for name in manifest.get(section, {})}


def lines(*folders: str) -> list[tuple[str, str]]:
    """All lines of code of these folders, without comments and unit tests (the end of a file, or `tests.rs`), each with its place."""
    found = []
    for file in sorted(file for folder in folders for file in (CRATES / folder).rglob("*.rs") if file.name != "tests.rs"):
        text = file.read_text().split("\n#[cfg(test)]\nmod tests {")[0]
        for number, line in enumerate(text.splitlines(), 1):
            found.append((f"{file.relative_to(CRATES)}:{number}", line.split("//")[0]))
    assert len(found) > 100
    return found


def places(pattern: str, *folders: str) -> list[str]:
    return [place for place, line in lines(*folders) if re.search(pattern, line)]


def test_every_crate_has_its_floor():
    assert {path.name for path in CRATES.iterdir()} == set(FLOORS)


@pytest.mark.parametrize("crate", FLOORS)
def test_crates_depend_one_way(crate):
    own = {name for name in dependencies(crate) if name.startswith("kasuri")}
    assert own <= FLOORS[crate]
    assert ("pyo3" in dependencies(crate)) == (crate == "kasuri-py")
    if crate in SIMULATING:
        assert not dependencies(crate) & NOT_BELOW_THE_FACADE


def test_engines_and_routings_know_no_topology():
    # The parser of experiment files and the families' tables do; a topology's tests may use routings.
    assert places(r"\btopology::", "kasuri-flit/src", "kasuri-flow/src", "kasuri-network/src/routing") == []
    assert not re.search(r"\btopology::", (CRATES / "kasuri-network/src/deadlock.rs").read_text())


def test_the_python_package_does_not_know_the_papers():
    files = [file for file in (ROOT / "python").rglob("*") if file.suffix in (".py", ".pyi", ".j2")]
    assert len(files) > 30
    assert [file for file in files if "kasuri_papers" in file.read_text()] == []


def test_engines_are_named_in_one_list_only():
    # BookSim's language has one engine.
    others = (f"{crate}/src" for crate in FLOORS if crate not in {"kasuri-flit", "kasuri-flow"})
    found = {place.split(":")[0].rsplit("/src/")[1] for place in places(r'"(analysis|flow|flit)"', *others)}
    assert {Path(name).name for name in found} == {"engines.rs", "booksim.rs"}


def test_below_the_facade_there_is_no_clock_file_thread_or_terminal():
    pattern = r"\bstd::(fs|io|thread|time|env|process|net)\b|\be?print(ln)?!|\bdbg!"
    # One simulation may have several threads: of flits one file has them, and takes them from another; of flows two.
    found = {place.split(":")[0] for place in places(pattern, *(f"{crate}/src" for crate in SIMULATING))}
    assert found == {"kasuri-flit/src/record/sync.rs", "kasuri-flow/src/scout.rs", "kasuri-flow/src/fluid/parts.rs"}
    users = {place.split(":")[0] for place in places(r"\bcrate::record::sync\b|\bsuper::sync\b", "kasuri-flit/src")}
    assert users == {"kasuri-flit/src/record/team.rs"}


def test_there_is_no_global_mutable_state():
    pattern = r"\bstatic mut\b|\bthread_local!|\bstatic \w+: *(\w+::)*(Atomic|Mutex|RwLock|RefCell|Cell|OnceLock|OnceCell)"
    found = [place.split(":")[0] for place in places(pattern, *(f"{crate}/src" for crate in FLOORS))]
    assert found == ["kasuri/src/store/whole.rs"]


def test_hash_maps_stand_where_they_are_only_looked_up():
    found = {place.split(":")[0] for place in places(r"\bHash(Map|Set)\b", *(f"{crate}/src" for crate in FLOORS))}
    assert found == {"kasuri-flit/src/feeds/local.rs", "kasuri-network/src/routing/walk.rs"}
    # The one field of `Counts`.
    text = (CRATES / "kasuri-flit/src/feeds/local.rs").read_text()
    assert set(re.findall(r"self\.0\.(\w+)", text)) == {"entry", "remove"}
    # There are two: the local `known` and the field `places`; `routes.places` is a list.
    text = (CRATES / "kasuri-network/src/routing/walk.rs").read_text()
    assert len(re.findall(r"HashMap<", text)) == 1
    assert len(re.findall(r"HashMap::<", text)) == 1
    assert not re.search(r"(self\.places|\bknown)\.(iter|keys|values|drain|into_iter|retain)\b", text)
    assert not re.search(r"\bin &?(mut )?(self\.places|known)\b", text)


@pytest.mark.parametrize("main", sorted(CRATES.glob("*/tests/suite/main.rs")), ids=lambda main: main.parents[2].name)
def test_every_file_of_a_suite_is_a_module_of_it(main: Path):
    modules = set(re.findall(r"^mod (\w+);", main.read_text(), re.MULTILINE))
    assert {file.stem for file in main.parent.glob("*.rs")} - {"main"} <= modules


def imports(file: Path, names: set[str]) -> set[str]:
    """Those of these names of the crate that a file imports or spells out with a path."""
    code = "\n".join(line.split("//")[0] for line in file.read_text().split("\n#[cfg(test)]\nmod tests {")[0].splitlines())
    own = re.findall(r"\buse (?!kasuri_|std::)[^;]*;|\bcrate::[^;]*;", code)
    return {name for name in names if any(re.search(rf"\b{name}\b", line) for line in own)}


def test_no_file_of_the_flit_engine_imports_both_a_feed_and_a_layout():
    source = CRATES / "kasuri-flit/src"
    files = sorted(source.rglob("*.rs"))
    homes = {name: file for file in files for name in re.findall(r"\bimpl PacketFeed for (\w+)", file.read_text())}
    layouts = {name for file in files for name in re.findall(r"\bRouterCycle for (\w+)", file.read_text())}
    layouts |= {"RouterCycle", "layouts"}
    assert len(homes) >= 5
    assert len(layouts) >= 5
    feeds = set(homes)
    both = [file for file in files if (file in homes.values() or imports(file, feeds)) and imports(file, layouts)]
    assert both == []
    # The one place that knows which feeds there are.
    assert {file.relative_to(source).as_posix() for file in files if imports(file, feeds)} == {"feeds/mod.rs"}


#: A struct with its documentation, and one of its fields.
STRUCT = re.compile(r"^((?:///.*\n)*)(?:#\[.*\n)*(?:pub(?:\(\w+\))? )?struct (\w+)[^;{(]*\{\n((?:    .*\n|\n)*)^}", re.MULTILINE)
FIELD = re.compile(r"^    (?:pub(?:\(\w+\))? )?\w+: ", re.MULTILINE)


@pytest.mark.parametrize(("engine", "least"), [("kasuri-flit", 80), ("kasuri-flow", 50), ("kasuri-packet", 15)])
def test_no_struct_of_an_engine_has_many_fields_without_a_reason(engine: str, least: int):
    structs = [found.groups() for file in (CRATES / engine / "src").rglob("*.rs") for found in STRUCT.finditer(file.read_text())]
    assert len(structs) > least
    many = {name: doc for doc, name, body in structs if len(FIELD.findall(body)) > 15}
    assert [name for name, doc in many.items() if "Many fields, because" not in doc] == []


def test_engines_know_a_machine_on_routers_by_what_it_does():
    """The flit and the flow engine carry the packets of any machine that can be begun; none is known by its type."""
    files = [file for engine in ("kasuri-flit", "kasuri-flow") for file in (CRATES / engine / "src").rglob("*.rs")]
    assert any("RunningMachine" in file.read_text() for file in files)
    assert [file for file in files if re.search(r"endpoint::(dsm|rdma)\b", file.read_text())] == []


def literals(text: str, name: str) -> list[str]:
    """The struct literals of this name, from brace to brace."""
    bodies = []
    for found in re.finditer(rf"(?<!-> )(?<!struct )(?<!impl )(?<!for )(?<!\w){name} \{{", text):
        depth = 0
        for end in range(found.end() - 1, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        bodies.append(text[found.end() : end])
    return bodies


def test_an_outcome_is_built_in_one_place():
    """Who adds a column to the answer writes it there, and whoever knows it."""
    files = [file for file in sorted(CRATES.rglob("*.rs")) if file != CRATES / "kasuri-model/src/outcome.rs"]
    found = [(file, body) for file in files for body in literals(file.read_text(), "Outcome")]
    assert len(found) > 10
    assert [file for file, body in found if ".." not in body] == []


def test_the_guide_to_the_code_names_what_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`((?:crates|tests|python|papers|examples|validation|benches|fuzz)/[\w./-]*)`", text)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert len(text.encode()) <= 9 * 1024


def test_every_table_that_the_guide_names_is_there():
    """A row of the table of additions: a file or folder, and a table that is named in it."""
    rows = re.findall(r"^\| an? .*\|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert len(rows) == 12
    for row in rows:
        for table in re.findall(r"`([A-Z]{5,})`", row):
            folders = [ROOT / name for name in re.findall(r"`(crates/[\w./-]*)`", row)]
            files = [file for folder in folders for file in (folder.rglob("mod.rs") if folder.is_dir() else [folder])]
            assert any(re.search(rf"\b{table}: ", file.read_text()) for file in files), f"{table}: not in {files}"


def test_every_file_says_what_it_holds():
    """`make map` prints these lines."""
    files = [file for file in CRATES.glob("*/src/**/*.rs") if file.name != "tests.rs"]
    assert len(files) > 300
    assert [file for file in files if not file.read_text().startswith("//!")] == []
