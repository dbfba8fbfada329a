"""The commands and programs of the documentation do what it says: every block of a tutorial and of a how-to guide is run.

A block whose first line is a comment with a file name (``# mesh.toml``) is that file. ``sh`` and ``python`` blocks are run in
the order of the page, in one folder. A ``text`` block after an ``sh`` block is what the command printed, or a part of it.
Blocks without a language are not run; no other language may appear.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Its commands need a Slurm: `make verify` runs them in tests/slurm.
SLURM = DOCS / "how-to" / "slurm.md"
GUIDES = [page for page in sorted((DOCS / "how-to").glob("*.md")) if page != SLURM]
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *GUIDES, ROOT / "README.md"]

BLOCK = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.(?:toml|txt|cfg))\n")
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
            (tmp_path / named[1]).write_text(without_first_line(body) if named[1].endswith(".cfg") else body)
        elif language == "toml" and page.name == "README.md":
            (tmp_path / "first.toml").write_text(body)
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


def without_first_line(text: str) -> str:
    """BookSim has no comments with #."""
    return text.split("\n", 1)[1]
