"""Kasuri designs, simulates and schedules the interconnection network of a parallel computer.

>>> import kasuri
>>> mesh = kasuri.Network.from_topology("mesh", dimensions=[4, 4])
>>> mesh.terminals
16
"""

from kasuri._kasuri import __version__
from kasuri.errors import ConfigError, DeadlockError, KasuriError, ResultsError, RunError
from kasuri.experiment import run, sweep
from kasuri.network import Network
from kasuri.results import Results, read

__all__ = [
    "ConfigError",
    "DeadlockError",
    "KasuriError",
    "Network",
    "Results",
    "ResultsError",
    "RunError",
    "__version__",
    "read",
    "run",
    "sweep",
]
