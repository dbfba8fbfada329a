"""The commands and programs of the documentation do what it says: every block of a tutorial and of a how-to guide is run.

A block whose first line is a comment with a file name (``# mesh.toml``, ``// mesh.cfg``) is that file, as it is printed. ``sh`` and
``python`` blocks are run in the order of the page, in one folder. A ``text`` block after an ``sh`` block is what the command printed, or
a part of it.
Blocks without a language are not run; no other language may appear.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import kasuri
from command_line import KASURI
from kasuri import experiment

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Its commands need a Slurm: `make verify` runs them in tests/slurm.
SLURM = DOCS / "how-to" / "slurm.md"
GUIDES = [page for page in sorted((DOCS / "how-to").glob("*.md")) if page != SLURM]
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *GUIDES, ROOT / "README.md"]

BLOCK = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|//) (\S+\.(?:toml|txt|cfg))\n")
DIRECTIVES = {"{toctree}", "{include}"}


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(language, body) for language, body in BLOCK.findall(page.read_text()) if language not in DIRECTIVES]


def run_shell(script: str, folder: Path) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "agg"}
    # The guide to MPI speaks of the repository; Open MPI asks root twice.
    environment |= {"KASURI_ROOT": str(ROOT), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    answer = subprocess.run(["sh", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, f"{script}\n{answer.stdout}{answer.stderr}"
    return answer.stdout


# --- references, without building the pages ---

LINK = re.compile(r"\]\(([^)\s]*)\)")
DOCUMENT = re.compile(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`")
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# The extensions in docs/_extensions write these when the pages are built.
GENERATED = {
    DOCS / "gallery" / "generated.md",
    *(DOCS / "reference" / "generated" / f"{name}.md" for name in ("experiment-file", "families", "features", "command-line", "columns")),
}
SOURCES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts and page not in GENERATED]


def targets(page: Path) -> list[tuple[Path, str]]:
    """What a page refers to, as (file, anchor); addresses of other sites excepted."""
    text = page.read_text()
    tocs = [line for body in TOCTREE.findall(text) for line in body.splitlines() if line and not line.startswith(":")]
    prose = FENCED.sub("", text)
    found = [link for link in LINK.findall(prose) if not link.startswith("http")]
    found += [f"{name}.md" for name in [*tocs, *DOCUMENT.findall(prose)]]
    parts = [link.partition("#") for link in found]
    return [
        ((DOCS / name.lstrip("/") if name.startswith("/") else page.parent / name) if name else page, anchor) for name, _, anchor in parts
    ]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [*SOURCES, ROOT / "README.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_reference_leads_somewhere(page):
    for file, anchor in targets(page):
        file = file.resolve()
        assert file in GENERATED or file.exists(), f"{page.name} refers to {file}"
        if anchor and file not in GENERATED:
            assert anchor in anchors(file), f"{page.name} refers to #{anchor} of {file.name}"


def test_every_page_is_in_a_list_and_every_picture_on_a_page():
    referred = {file.resolve() for page in [*SOURCES, ROOT / "README.md"] for file, _ in targets(page)}
    pictures = set(DOCS.rglob("*.svg")) - set((DOCS / "_build").rglob("*")) - set((DOCS / "gallery").rglob("*"))
    assert len(pictures) > 3
    assert {*SOURCES, *GENERATED} - {DOCS / "index.md"} - referred == set()
    assert pictures - referred == set()


def test_every_generated_page_is_written_by_an_extension():
    written = "".join(file.read_text() for file in (DOCS / "_extensions").glob("*.py"))
    assert [page for page in GENERATED if f'"{page.stem}"' not in written and f'"{page.name}"' not in written] == []


def test_the_page_of_columns_has_every_column_of_a_row(monkeypatch):
    """Its table is read from the source, and Sphinx, which calls the extension, need not be installed."""
    monkeypatch.setitem(sys.modules, "sphinx", types.ModuleType("sphinx"))
    monkeypatch.setitem(sys.modules, "sphinx.application", types.SimpleNamespace(Sphinx=object))
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    page = importlib.import_module("kasuri_reference").columns_page()
    traffic = {"pattern": "uniform", "load": 0.1}
    row = kasuri.run(
        {"network": {"topology": "full-mesh", "routers": 2, "concentration": 1}, "routing": {"algorithm": "minimal"}, "traffic": traffic}
    )
    missing = [name for name in row.columns if "." not in name and f"`{name}`" not in page]
    assert missing == []


def test_there_are_pages():
    assert len(PAGES) > 8


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_the_page_does_what_it_says(page, tmp_path, monkeypatch):
    follow(page, tmp_path, monkeypatch)


def follow(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do in a folder what a page says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for language, body in blocks(page):
        named = FILE.match(body)
        if named:
            (tmp_path / named[1]).write_text(body)
        elif language == "sh":
            printed = run_shell(body, tmp_path)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(body, str(page), "exec"), names)
        elif language == "text":
            for line in body.splitlines():
                assert line in printed.splitlines(), f"{page.name} promises:\n{line}\nprinted was:\n{printed}"
        else:
            assert language == "", f"{page.name}: a block in `{language}` that no test runs"


# --- what pages say in passing ---

SPAN = re.compile(r"`([^`\n]+)`")
#: What a package of an extra looks like in a program, and the packages of these extras.
EXTRAS = {
    r"\.to_pandas\(|\.to_latex\(": "pandas",
    r"\.to_polars\(": "polars",
    r"\.to_xarray\(": "xarray",
    r"import networkx": "networkx",
    r"from mpi4py": "mpi4py",
    r"from distributed|^dask |--executor dask": "distributed",
}
NEAR_BOOKS = [*SOURCES, ROOT / "README.md"]


def spans(page: Path) -> list[str]:
    """The words in backquotes, outside of blocks."""
    return SPAN.findall(FENCED.sub("", page.read_text()))


def programs(page: Path) -> str:
    return "\n".join(body for language, body in blocks(page) if language in ("sh", "python"))


@functools.cache
def help_of(*words: str) -> str:
    answer = subprocess.run([KASURI, *words, "--help"], capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else ""


def subcommands(*words: str) -> list[str]:
    listed = re.search(r"^Commands:\n((?:  .*\n|\n)*)", help_of(*words), re.MULTILINE)
    return re.findall(r"^  ([a-z]\S*)", listed[1], re.MULTILINE) if listed else []


@functools.cache
def options() -> dict[str, set[str]]:
    """The options of each command, with those of its own commands."""
    found = {}
    for command in subcommands():
        texts = [help_of(command), *(help_of(command, inner) for inner in subcommands(command) if inner != "help")]
        found[command] = set(re.findall(r"--[a-z][a-z-]*", "".join(texts)))
    return found


@pytest.mark.parametrize("page", NEAR_BOOKS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_options_that_a_page_names_exist(page):
    every = set().union(*options().values())
    for span in spans(page):
        words = span.replace("\\|", "|").split()
        if words[0] == "kasuri" and len(words) > 1:
            assert words[1] in options() or words[1].startswith("--"), f"`{span}`: no such command"
            known = options().get(words[1], {"--version", "--help"})
            unknown = [word for word in words[1:] if re.fullmatch(r"--[a-z][a-z-]*", word) and word not in known]
            assert not unknown, f"`{span}`: `kasuri {words[1]}` has no {unknown}"
        if words[0] == "kasuri" and len(words) == 3 and words[1] == "explain" and words[2].islower():
            assert subprocess.run([KASURI, *words[1:]], capture_output=True, check=False).returncode == 0, span
        if words[0] == "make" and len(words) > 1:
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"`{span}`: no such target"
        if span.startswith("--") and re.fullmatch(r"--[a-z][a-z-]*", words[0]):
            assert words[0] in every | OTHER_OPTIONS, f"`{span}`: no command has this option"


#: Options of `dask worker`, of validation/astra and of the benchmark of mpi/.
OTHER_OPTIONS = {"--resources", "--each", "--allreduce", "--reduce-scatter", "--allgather"}


@pytest.mark.parametrize("page", NEAR_BOOKS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_keys_and_files_that_a_page_names_exist(page):
    sections, keys = experiment._known_keys()
    for span in spans(page):
        parts = span.split(" ")[0].split("=")[0].split(".")
        if parts[0] in sections and len(parts) > 1 and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", ".".join(parts)) and parts[-1] != "md":
            is_link = re.fullmatch(r"(router|terminal)\.port", ".".join(parts[:2]))
            assert ".".join(parts[:2]) in keys or parts[0] == "sweep" or is_link, f"`{span}`: no such key"
        if re.fullmatch(r"(docs|examples|tests|validation|benches|crates|tools|mpi|papers|experiments)/[\w./-]+", span):
            is_made = span.startswith(("mpi/build", "docs/_build")) or "PAPER" in span or f"Write `{span}`" in page.read_text()
            assert (ROOT / span).exists() or is_made, f"`{span}`: no such file"


@pytest.mark.parametrize("page", [*PAGES, SLURM], ids=lambda page: page.stem)
def test_a_page_says_what_its_programs_need(page):
    prose = FENCED.sub("", page.read_text())
    for pattern, package in EXTRAS.items():
        if re.search(pattern, programs(page), re.MULTILINE):
            assert "pip install" in page.read_text(), f"{page.name} uses {package} and does not say how to install it"
    if "KASURI_ROOT" in programs(page):
        assert "export KASURI_ROOT=" in prose, f"{page.name} does not say what KASURI_ROOT is"


#: For `sitecustomize.py`: an interpreter without the packages of extras.
WITHOUT_EXTRAS = """\
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars", "xarray", "networkx", "scipy", "dask", "distributed", "mpi4py"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def test_the_programs_of_the_readme_need_what_is_installed_alone(tmp_path):
    """`make build` installs neither pandas nor another package of an extra."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_EXTRAS)
    page = ROOT / "README.md"
    for _, body in blocks(page):
        if named := FILE.match(body):
            (tmp_path / named[1]).write_text(body)
    program = "\n".join(body for language, body in blocks(page) if language == "python")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "MPLBACKEND": "agg"}

    def run(program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert (
        "kasuri.errors.PackageError: Results.to_pandas needs the package pandas"
        in run("import kasuri; kasuri.Results([]).to_pandas()").stderr
    )
    answer = run(program)
    assert answer.returncode == 0, answer.stderr


def experiments(page: Path) -> list[str]:
    # tests/test_contributing.py runs those that need the additions of the guide.
    if page.parent == DOCS / "how-to" / "extend":
        return []
    return [body for language, body in blocks(page) if language == "toml" and not FILE.match(body)]


@pytest.mark.parametrize("page", [page for page in SOURCES if experiments(page)], ids=lambda page: page.relative_to(DOCS).as_posix())
def test_experiments_and_parts_of_them_are_right(page, tmp_path):
    """Whole experiments pass `kasuri check`; of parts each key is one that `kasuri explain` knows."""
    for body in experiments(page):
        table = tomllib.loads(body)
        if "network" in table and not {"traffic", "workload", "user"}.isdisjoint(table):
            (tmp_path / "block.toml").write_text(body)
            answer = subprocess.run([KASURI, "check", "block.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert answer.returncode == 0, f"{body}\n{answer.stderr}"
            continue
        sections, keys = experiment._known_keys()
        for section, inner in table.items():
            assert section in sections or f"router.{section}" in keys, f"{page.name}: {section}"
            if isinstance(inner, dict) and section in sections and section != "sweep":
                assert [key for key in inner if f"{section}.{key}" not in keys] == [], page.name
