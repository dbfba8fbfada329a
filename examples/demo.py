"""Runs the examples of this folder, makes a report of each, and a page that leads to them: what `make demo` shows."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from kasuri import report

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run all; give the exit status of the first that fails, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", default="kasuri", help="the command")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="where the results go (default: %(default)s)")
    options = parser.parse_args()
    start = time.monotonic()
    folders = []
    for words, example in [
        (["run"], "01-fat-tree.toml"),
        (["run"], "02-mesh.toml"),
        (["booksim"], "03-booksim.cfg"),
    ]:
        folder = options.out / Path(example).stem
        command = [options.kasuri, *words, str(HERE / example), "--out", str(folder)]
        say(" ".join(command))
        status = subprocess.run(command, check=False).returncode
        if status:
            say(f"{example} ended with status {status}")
            return status
        folders.append(folder)
    say("making the reports")
    for folder in folders:
        report.write(folder, plots=("svg", "pdf"))
    page = report.index(folders, options.out / "index.html")
    say(f"done in {time.monotonic() - start:.0f} s")
    for folder in folders:
        say(f"report: {(folder / 'report.html').resolve()}")
    say(f"all of them: {page.resolve()}")
    return 0


def say(line: str) -> None:
    """Print progress."""
    print(f"kasuri: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
