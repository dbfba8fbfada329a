"""Runs the command on one file within limits, and says what is wrong with its answer."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

#: Seconds of processor time and bytes of address space that a small experiment may take.
SECONDS = 60
BYTES = 4 << 30
#: Columns of results that differ between equal runs.
COSTS = ("wall_seconds", "cpu_seconds", "peak_memory_mib")


def command(name: str) -> str:
    """Give the whole path of a command: trials run in folders of their own."""
    return str(Path(shutil.which(name) or name).absolute())


def limit() -> None:
    """Set the limits in the process that is about to start."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def attempt(kasuri: str, *words: str, folder: Path, limited: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, within the limits of a small experiment unless it is asked otherwise."""
    options = {"capture_output": True, "text": True, "errors": "replace", "check": False, "timeout": 10 * SECONDS}
    return subprocess.run([kasuri, *words], cwd=folder, preexec_fn=limit if limited else None, **options)


def defect(answer: subprocess.CompletedProcess[str], allowed: tuple[int, ...]) -> str | None:
    """Say what is wrong with an answer: another status than these, a defect of the program, a refusal without a word."""
    if answer.returncode not in allowed:
        return f"status {answer.returncode}"
    if "panicked" in answer.stderr or "defect" in answer.stderr:
        return "a defect of the program"
    if answer.returncode == 2 and not answer.stderr.strip() and not answer.stdout.strip():
        return "refused without a word"
    if len(answer.stderr) > 100_000:
        return f"{len(answer.stderr)} characters on standard error"
    return None


def without_costs(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copy rows without the columns that differ between equal runs."""
    return [{column: value for column, value in row.items() if column not in COSTS} for row in rows]


def options(description: str | None, count: int, counted: str) -> argparse.ArgumentParser:
    """Make the parser of the options that campaigns have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kasuri", type=command, default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--count", type=int, default=count, help=f"{counted} (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    return parser


def examine_drawn(name: str, given: argparse.Namespace, examine: Callable[[str, int, Path], tuple[str | None, bool]]) -> int:
    """Examine the experiments of seeds until enough of them have run; give the exit status.

    ``examine`` gets the command, a seed and a folder; it gives an error, and whether the experiment ran. The folder stays after an error.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"kasuri-{name}-"))
    ran, drawn, wrong = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while ran < given.count and drawn < 20 * given.count:
            seeds = range(given.first + drawn, given.first + drawn + min(50, given.count))
            for line, has_run in pool.map(lambda seed: examine(given.kasuri, seed, folder), seeds):
                ran += has_run
                wrong += [line] if line else []
            drawn += len(seeds)
    print(f"{drawn} experiments drawn, {ran} of them run, {drawn - ran} refused, {len(wrong)} answered wrongly")
    print("\n".join(wrong[:20]))
    if not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong) or ran < given.count)
