"""The exceptions of Kasuri: one hierarchy, so that ``except kasuri.KasuriError`` catches whatever Kasuri complains about.

A saturated network is not among them: saturation is a result (``status = "saturated"``).
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


class KasuriError(Exception):
    """Whatever Kasuri complains about; catch this to catch all of it."""


class ConfigError(KasuriError, ValueError):
    """The experiment's description is wrong: an unknown key, a wrong type, a value that cannot be.

    The message names the file, the line, the key, the value found and the remedy. Change the description.
    """


class ResultsError(KasuriError):
    """A folder of results cannot be read or written, or lacks the requested data."""


class ColumnError(ResultsError, KeyError):
    """A table has no such column; the message names the one that was meant, or all.

    Parameters
    ----------
    name : object
        The requested column.
    there : sequence of str
        The columns of the table.
    """

    def __init__(self, name: object, there: Sequence[str] = ()) -> None:
        meant = nearest(str(name), there)
        super().__init__(f"no column `{name}`" + (f"; did you mean `{meant}`?" if meant else f"; there are {', '.join(there)}"))

    # A KeyError shows itself in quotes.
    __str__ = Exception.__str__


class RowError(ResultsError, IndexError):
    """A table has no such row."""


class ArgumentError(KasuriError, ValueError, TypeError):
    """A function cannot do with an argument: another type, shape or value than it takes."""


class FileError(KasuriError, OSError):
    """A file cannot be written."""


class PackageError(KasuriError, ImportError):
    """An optional package is missing; the message says how to install it."""


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
    """A deadlock: packets wait for each other in a cycle, or programs of endpoints for messages that were never sent.

    For a cycle, use a routing that is free of deadlock here, or more virtual channels; ``kasuri check`` finds the cycle beforehand.

    Attributes
    ----------
    cycle : list of str
        The virtual channels that wait for each other, each for the next, the last for the first; without a cycle, the components that
        refused a packet and the blocked programs.
    at_cycles : int or None
        The simulated cycle in which the standstill was recognised.
    """

    def __init__(self, message: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, row)
        cycle: Sequence[str] = self.row.get("deadlock") or ()
        self.cycle: list[str] = list(cycle)
        self.at_cycles: int | None = self.row.get("cycles")


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Give the known name that was meant: the one of a section's key, or the one that is spelt alike, with its section or without."""
    last = [one.rsplit(".", 1)[-1] for one in known]
    if last.count(name) == 1:
        return known[last.index(name)]
    alike = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    alike_last = difflib.get_close_matches(name, last, n=1, cutoff=0.75)
    return alike[0] if alike else known[last.index(alike_last[0])] if alike_last else None


def package(name: str, purpose: str, extra: str) -> ModuleType:
    """Import an optional package.

    Parameters
    ----------
    name : str
        The module.
    purpose : str
        The feature that needs it, for the message.
    extra : str
        The extra of Kasuri that installs it.

    Raises
    ------
    PackageError
        It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        how = f"install it with `{sys.executable} -m pip install {top}`, or all of its kind with `pip install 'kasuri[{extra}]'`"
        raise PackageError(f"{purpose} needs the package {top} ({error}); {how}") from error
