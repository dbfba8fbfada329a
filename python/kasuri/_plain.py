"""Python values as the experiment file knows them: no NumPy scalars, no tuples, no paths."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from kasuri.errors import ConfigError


def plain(value: Any, key: str = "") -> Any:
    """Give a value of strings, numbers, truth values, lists and dictionaries alone.

    Raises
    ------
    ConfigError
        A value that no experiment file can hold, infinities and NaN among them; the key is named.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"dict {key}: is {value}; it must be a finite number")
    if isinstance(value, str) and not _is_text(value):
        raise ConfigError(f"dict {key}: invalid text {value!r}; it must be encodable as UTF-8")
    if isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist(), key)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part, f"{key}.{name}" if key else str(name)) for name, part in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(part, key) for part in value]
    raise ConfigError(
        f"dict {key}: is {value!r} of type {type(value).__name__}; expected a string, number, truth value, list or dictionary"
    )


def as_json(value: Any) -> str:
    """Write a value for the compiled part.

    Raises
    ------
    ConfigError
        A value that no experiment file can hold.
    """
    return json.dumps(plain(value), allow_nan=False)


def _is_text(value: str) -> bool:
    """Return whether a string can be written as UTF-8; half of a surrogate pair cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
