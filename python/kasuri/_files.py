"""Files that appear whole: a reader sees the old one or the new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def replace(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` write a file next to a path, and rename it into place.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    beside = path.with_name(f".{path.name}.part")
    # A killed process may have left a file, or somebody else a link.
    beside.unlink(missing_ok=True)
    write(beside)
    beside.replace(path)
    return path
