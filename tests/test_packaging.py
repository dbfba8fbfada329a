"""The package as a whole: one version everywhere, no addresses in what is shipped, a quick import."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import kasuri
from command_line import KASURI

ROOT = Path(__file__).resolve().parent.parent


def test_cargo_pyproject_and_citation_name_the_same_version():
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    papers = tomllib.loads((ROOT / "papers/pyproject.toml").read_text())["project"]
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert project == cargo == kasuri.__version__ == papers["version"]
    assert citation is not None
    assert citation[1] == cargo
    # Verdicts are computed by the engines of the same version: the two packages ask for each other's.
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["papers"] == [f"kasuri-papers=={cargo}"]
    assert papers["dependencies"] == [f"kasuri=={cargo}"]


def reproduce(tmp_path: Path, packages: str) -> str:
    """What `kasuri reproduce mfs/F1` says on a Python that has only the packages of these folders."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    answer = subprocess.run(
        [KASURI, "reproduce", "mfs/F1"], cwd=tmp_path, env=os.environ | {"KASURI_PYTHON": str(python)}, capture_output=True, text=True
    )
    assert answer.returncode != 0
    return answer.stderr


def test_without_the_papers_reproduce_says_how_to_install_them(tmp_path):
    assert "has no package `kasuri_papers`" in reproduce(tmp_path, f"{ROOT}/python")
    assert "pip install kasuri[papers]" in reproduce(tmp_path, f"{ROOT}/python")
    assert "has no package `kasuri`, " in reproduce(tmp_path, f"{ROOT}/papers")


def test_the_package_of_the_papers_holds_their_experiments_templates_and_licences():
    packed = tomllib.loads((ROOT / "papers/pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["kasuri_papers"]
    package = ROOT / "papers/kasuri_papers"
    files = {file for pattern in packed for file in package.glob(pattern)}
    experiments = {file.relative_to(ROOT) for file in (ROOT / "experiments").glob("*/*.*")}
    assert {file.relative_to(package) for file in files} >= {*experiments, Path("templates/reproduce.html.j2")}
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (ROOT / "papers" / name).read_text() == (ROOT / name).read_text()


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
        assert name in ("__commit__", "__version__") or (thing.__doc__ or "").strip(), name


def test_the_stubs_describe_the_extension():
    answer = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "kasuri._kasuri", "--ignore-disjoint-bases"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"MYPYPATH": "python", "MYPY_CACHE_DIR": os.devnull},
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
