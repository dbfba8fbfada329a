#!/usr/bin/env python3
"""Measures what an edit costs: waiting and processor time until the program, or the tests of the edited crate, are built.

Each edit adds one statement to a function of a file, builds, and takes the statement out again. Times hold for a build that is up to date;
run it on a quiet machine. With --cold also a build from nothing, in a folder of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ["cargo", "build", "--locked", "--quiet", "--workspace", "--lib", "--bins", "--examples"]

#: File, first words of the function that is edited, and the crate's own tests.
EDITS = (
    ("crates/kasuri-flit/src/run/clock.rs", "fn advance", "kasuri-flit"),
    ("crates/kasuri-network/src/topology/mesh.rs", "fn build", "kasuri-network"),
)


def taken(command: list[str], target: str | None = None) -> tuple[float, float]:
    """Run a command at the root: seconds of waiting and of processor time."""
    environment = os.environ | ({"CARGO_TARGET_DIR": target} if target else {})
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - began, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def edited(text: str, function: str) -> str:
    """Add a statement to the first function that begins with these words and has a body."""
    found = re.search(re.escape(function) + r"\b[^;{]*\{\n", text)
    if not found:
        raise SystemExit(f"no function begins with `{function}`")
    return text[: found.end()] + "    std::hint::black_box(1);\n" + text[found.end() :]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", action="store_true", help="also a build from nothing")
    options = parser.parse_args()
    print(f"{'edit':52} {'until':24} {'waiting, s':>10} {'processor, s':>12}")

    def row(edit: str, until: str, times: tuple[float, float]) -> None:
        print(f"{edit:52} {until:24} {times[0]:10.1f} {times[1]:12.1f}", flush=True)

    taken(BUILD)
    for name, function, crate in EDITS:
        tests = ["cargo", "test", "--locked", "--quiet", "--workspace", "--lib", "--no-run"]
        path = ROOT / name
        text = path.read_text()
        try:
            taken(tests)
            path.write_text(edited(text, function))
            row(name, "the program", taken(BUILD))
            row(name, f"unit tests ({crate})", taken(tests))
        finally:
            path.write_text(text)
            taken(BUILD)
    if options.cold:
        folder = tempfile.mkdtemp(prefix="kasuri-cold-", dir=ROOT / "target")
        row("nothing built", "the program", taken(BUILD, folder))
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
