"""Kasuri designs, simulates and schedules the interconnection network of a parallel computer.

>>> import kasuri
>>> mesh = kasuri.Network.from_topology("mesh", dimensions=[4, 4])
>>> mesh.terminals
16
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from kasuri._kasuri import __commit__, __version__
from kasuri.errors import (
    ArgumentError,
    ColumnError,
    ConfigError,
    DeadlockError,
    FileError,
    KasuriError,
    PackageError,
    ResultsError,
    RowError,
    RunError,
)
from kasuri.experiment import run, sweep
from kasuri.network import Network
from kasuri.results import Results, read

if TYPE_CHECKING:
    from kasuri import mpi, plot, report

__all__ = [
    "ArgumentError",
    "ColumnError",
    "ConfigError",
    "DeadlockError",
    "FileError",
    "KasuriError",
    "Network",
    "PackageError",
    "Results",
    "ResultsError",
    "RowError",
    "RunError",
    "__commit__",
    "__version__",
    "mpi",
    "plot",
    "read",
    "report",
    "run",
    "sweep",
]


def __getattr__(name: str) -> ModuleType:
    """Import ``kasuri.mpi``, ``kasuri.plot`` and ``kasuri.report`` when they are first used, so that ``import kasuri`` stays light."""
    if name in ("mpi", "plot", "report"):
        return importlib.import_module(f"kasuri.{name}")
    raise AttributeError(f"module 'kasuri' has no attribute {name!r}")
