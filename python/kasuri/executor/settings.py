"""Executor files: the settings of a site, as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from kasuri.errors import ConfigError, nearest

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Source:
    """Where settings come from, for messages: an executor file, or the option itself."""

    name: str
    values: Mapping[str, Any]

    def wrong(self, key: str, problem: str) -> ConfigError:
        """Return the error for the value of a key."""
        return ConfigError(f"{self.name}: {key}: {problem}")


def read(path: Path) -> Source:
    """Read an executor file.

    Raises
    ------
    ConfigError
        The file cannot be read, or is not valid TOML.
    """
    try:
        return Source(str(path), tomllib.loads(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: invalid TOML: {error}") from error


def fill(settings: type[Settings], source: Source) -> Settings:
    """Make the settings of an executor, a dataclass, of a file's values; unknown keys and wrong types are refused.

    Raises
    ------
    ConfigError
        Names the file, the key and the remedy.
    """
    known = {field.name: field for field in fields(settings)}  # type: ignore[arg-type]
    values = {key: value for key, value in source.values.items() if key != "kind"}
    for key, value in values.items():
        if key not in known:
            near = nearest(key, list(known))
            hint = f"did you mean `{near}`?" if near else f"there are {', '.join(known)}"
            raise source.wrong(key, f"unknown key; {hint}")
        expected, is_right = KINDS[str(known[key].type).removesuffix(" | None")]
        if not is_right(value):
            raise source.wrong(key, f"is {value!r}; it must be {expected}")
    return settings(**values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: The expected value of each type of setting, and its check.
KINDS = {
    "str": ("a text", lambda value: isinstance(value, str) and value != ""),
    "int": ("a whole number, at least 1", lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1),
    "float": ("a number above 0", lambda value: _is_number(value) and value > 0),
    "list[str]": ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(line, str) for line in value)),
}
