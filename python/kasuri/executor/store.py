"""The client's own work on the folder of results: its lock, and the files returned by workers without the folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kasuri.errors import ResultsError

#: The file that one client of a folder locks; workers lock the store itself and are not affected.
LOCK = ".kasuri-client"

#: The names of the files of runs.
OWN_NAME = re.compile(r"(runs|networks|failed)/[0-9A-Za-z][0-9A-Za-z._-]*")


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Keep other clients out of a folder.

    Raises
    ------
    ResultsError
        Another client is busy there.
    """
    with (out / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ResultsError(
                f"{out}: another kasuri process is writing there; wait for it to end, or choose another folder with --out"
            ) from error
        except OSError as error:
            # Some network file systems have no locks; only the message to a second client is lost.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
        yield


@contextmanager
def token(out: Path) -> Iterator[str]:
    """Leave a locked file in a folder, which identifies it to the workers; return its name."""
    # A client that was killed has left its own; the lock says that it is over.
    for left in out.glob(".shared-*"):
        left.unlink(missing_ok=True)
    name = f".shared-{uuid.uuid4().hex}"
    (out / name).touch()
    try:
        yield name
    finally:
        with contextlib.suppress(OSError):
            (out / name).unlink()


def write(out: Path, files: Mapping[str, bytes]) -> None:
    """Write files of the run store, so that each appears whole or not at all: the row that vouches for the others last.

    Raises
    ------
    OSError
        The disk is full, or the system refuses.
    ResultsError
        A name does not belong to the run store.
    """
    renames = []
    for number, (name, content) in enumerate(sorted(files.items(), key=lambda item: _is_row(item[0]))):
        path = out / name
        if not OWN_NAME.fullmatch(name):
            raise ResultsError(f"a worker returns a file named {name!r}, which no run has")
        if path.parent.is_symlink():
            raise ResultsError(f"{path.parent}: is a link to another place, and results are written only inside their folder; remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{number}.kasuri-tmp")
        try:
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        renames.append((temporary, path))
    for temporary, path in renames:
        temporary.replace(path)


def _is_row(name: str) -> bool:
    return name.startswith("runs") and name.endswith(".json")
