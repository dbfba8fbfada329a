"""Helpers of tests that run the command ``kasuri``: the command, its rows without their costs, and the comparison of networks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import kasuri

KASURI = Path(sys.executable).with_name("kasuri")
#: Columns that differ between equal runs.
COSTS = ("wall_seconds", "cpu_seconds", "peak_memory_mib")
#: Both ends of each channel.
ENDS = ("source_router", "source_port", "source_terminal", "destination_router", "destination_port", "destination_terminal")


def command(*words: object, folder: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder; it must end with this status."""
    answer = subprocess.run([KASURI, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == status, (words, answer.stderr + answer.stdout)
    return answer


def without_costs(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copy rows without the columns that differ between equal runs."""
    return [{name: value for name, value in row.items() if name not in COSTS} for row in rows]


def rows_of(answer: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Read the rows that ``--format json`` printed, without their costs."""
    return without_costs(json.loads(answer.stdout)["runs"])


def same(one: kasuri.Network, other: kasuri.Network) -> bool:
    """Compare channels, ports and names of two networks."""
    columns = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in (*ENDS, "latency", "period", "ports"))
    return columns and (one.router_names, one.terminal_names) == (other.router_names, other.terminal_names)
