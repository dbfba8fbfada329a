"""Files that appear whole: a reader sees the old one or the new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kasuri.errors import FileError


def replace(path: Path, write: Callable[[Path], object]) -> Path:
    """Write a file through ``write`` under a temporary name, make its folder, and rename it into place.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A killed process may have left a file, or an attacker a link.
        temporary.unlink(missing_ok=True)
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error}") from error
    return path
