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
