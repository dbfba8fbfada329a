"""Runs the command on one file within limits, and says what is wrong with its answer."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

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
