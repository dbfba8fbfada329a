"""The package as a whole: one version everywhere, no addresses in what is shipped, a quick import."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_cargo_pyproject_and_citation_name_the_same_version():
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert project == cargo
    assert citation is not None
    assert citation[1] == cargo


def test_the_lock_file_names_only_the_standard_registry():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sources = {package["source"] for package in lock["package"] if "source" in package}
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}
