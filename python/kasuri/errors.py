"""The exceptions of Kasuri: one hierarchy, so that ``except kasuri.KasuriError`` catches whatever Kasuri complains about.

A saturated network is not among them: saturation is a result (``status = "saturated"``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ConfigError", "DeadlockError", "KasuriError", "ResultsError", "RunError"]


class KasuriError(Exception):
    """Whatever Kasuri complains about; catch this to catch all of it."""


class ConfigError(KasuriError, ValueError):
    """The experiment's description is wrong: an unknown key, a wrong type, a value that cannot be.

    The message names the file, the line, the key, the value found and what would be right. Change the description.
    """


class ResultsError(KasuriError):
    """A folder of results cannot be read or written, or does not hold what was asked for."""


class RunError(KasuriError):
    """A run ended without a result (status ``failed`` or ``max_cycles``).

    Parameters
    ----------
    message : str
        Which run and why.
    row : mapping, optional
        The row of that run.

    Attributes
    ----------
    row : dict
        The row of the run that ended so.
    """

    def __init__(self, message: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.row: dict[str, Any] = dict(row or {})


class DeadlockError(RunError):
    """A run came to a standstill: packets wait for each other in a cycle, or programs of endpoints for what nobody will send.

    For a cycle use a routing that is free of deadlock on this network, or more virtual channels; ``kasuri check`` tells beforehand.

    Attributes
    ----------
    cycle : list of str
        The virtual channels that wait for each other, each for the next, the last for the first; where none do, who refused a packet and
        who waits for what.
    at_cycles : int or None
        The simulated cycle in which the standstill was recognised.
    """

    def __init__(self, message: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, row)
        cycle: Sequence[str] = self.row.get("deadlock") or ()
        self.cycle: list[str] = list(cycle)
        self.at_cycles: int | None = self.row.get("cycles")
