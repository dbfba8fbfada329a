"""The package as a whole: one version everywhere, no addresses in what is shipped, a quick import."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import kasuri

ROOT = Path(__file__).resolve().parent.parent


def test_cargo_pyproject_and_citation_name_the_same_version():
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert project == cargo == kasuri.__version__
    assert citation is not None
    assert citation[1] == cargo


def test_the_lock_file_names_only_the_standard_registry():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sources = {package["source"] for package in lock["package"] if "source" in package}
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}


HEAVY = ("matplotlib", "pandas", "polars", "xarray", "pyarrow", "networkx", "scipy", "jinja2", "rich")


def test_importing_kasuri_imports_nothing_heavy():
    code = f"import sys, kasuri; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_every_public_name_exists_and_has_a_docstring():
    for name in kasuri.__all__:
        thing = getattr(kasuri, name)
        assert name == "__version__" or (thing.__doc__ or "").strip(), name


def test_the_stubs_describe_the_extension():
    answer = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "kasuri._kasuri", "--ignore-disjoint-bases"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"MYPYPATH": "python", "MYPY_CACHE_DIR": os.devnull},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
