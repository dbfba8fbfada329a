"""Reads ``experiments/PAPER/expected.toml``: what each row gives today, so that a change is seen.

A row has a letter, and a failure its cause in one clause::

    [F2]
    verdict = "p"                       # passes; "f" fails; "r" only reports; "n" is not built yet

    [C4]
    verdict = "f"
    cause = "age closes a quarter of the gap: head-of-line blocking is the greater part"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from kasuri.errors import ConfigError

#: What may be expected.
LETTERS = {"p": "passes", "f": "fails", "r": "only reports", "n": "is not built yet"}


@dataclass(frozen=True)
class Expectation:
    """What a row is expected to give, and why it fails if it does."""

    verdict: str
    cause: str = ""


def read(folder: Path) -> dict[str, Expectation]:
    """Read the expectations of a paper by the number of the row; none if there is no file.

    Raises
    ------
    ConfigError
        The file is wrong; the message names the row.
    """
    path = folder / "expected.toml"
    if not path.exists():
        return {}
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return {number: _expectation(path, number, row) for number, row in content.items()}


def _expectation(path: Path, number: str, row: dict[str, str]) -> Expectation:
    verdict = row.get("verdict")
    if verdict not in LETTERS:
        known = ", ".join(f'"{letter}" {meaning}' for letter, meaning in LETTERS.items())
        raise ConfigError(f"{path}: {number}: verdict is {verdict!r}; it must be one of {known}")
    if verdict == "f" and not row.get("cause"):
        raise ConfigError(f"{path}: {number}: a row that fails needs its `cause`")
    return Expectation(verdict, row.get("cause", ""))
