"""All-to-alls by the phases of a schedule, for programs that use mpi4py.

>>> import numpy as np
>>> from mpi4py import MPI                                             # doctest: +SKIP
>>> import kasuri.mpi                                                  # doctest: +SKIP
>>> received = np.empty_like(sent)                                     # doctest: +SKIP
>>> kasuri.mpi.alltoall(MPI.COMM_WORLD, sent, received, "job.kasuri")  # doctest: +SKIP

``kasuri schedule --export mpi`` writes such a file. Programs that call ``MPI_Alltoall`` need none of this: for them there is the
preloaded library, and it takes over mpi4py's ``Alltoall``, too.
"""

from __future__ import annotations

import os
import socket
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Schedule", "alltoall", "read"]

MAGIC = b"KASURI\r\n"
VERSION = 2
#: The layout of files for other collectives.
_ROUNDS_VERSION = 3
#: The number in a schedule's table where a rank sends nothing.
NO_RANK = 0xFFFF
_HEAD = 28
_CHECKSUM = 4
_TAG = 1


@dataclass(frozen=True)
class Schedule:
    """An all-to-all in phases.

    Parameters
    ----------
    ranks
        How many ranks take part.
    hosts
        The host of each rank; empty if ranks are known by their numbers.
    destinations
        By phase and rank, the rank to which it sends, or ``NO_RANK``.
    checksum
        The file's checksum, by which ranks compare their schedules.
    min_bytes
        Messages of fewer bytes are better left to the MPI library.
    """

    ranks: int
    hosts: tuple[str, ...]
    destinations: NDArray[np.uint16]
    checksum: int
    min_bytes: int = 0


def read(path: str | os.PathLike[str]) -> Schedule:
    """Read a schedule for MPI.

    Raises
    ------
    ConfigError
        The file cannot be read, is cut off, has another layout or a wrong checksum, or is not an all-to-all.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) < _HEAD + _CHECKSUM or not data.startswith(MAGIC):
        raise ConfigError(f"{path}: is not a schedule for MPI, or truncated")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    if version == _ROUNDS_VERSION:
        raise ConfigError(f"{path}: is not a schedule of all-to-alls; the preloaded library runs those of other collectives")
    if version != VERSION:
        raise ConfigError(f"{path}: has layout {version}; this version reads layout {VERSION}")
    ranks, phases, placement, min_bytes = (int(number) for number in np.frombuffer(data, "<u4", 4, len(MAGIC) + 4))
    expected = _HEAD + placement + 2 * ranks * phases + _CHECKSUM
    if len(data) != expected:
        raise ConfigError(f"{path}: has {len(data)} bytes instead of {expected}; it may be truncated")
    checksum = int.from_bytes(data[-_CHECKSUM:], "little")
    if checksum != zlib.crc32(data[:-_CHECKSUM]):
        raise ConfigError(f"{path}: has a wrong checksum")
    hosts = tuple(data[_HEAD : _HEAD + placement].decode(errors="replace").splitlines())
    if hosts and len(hosts) != ranks:
        raise ConfigError(f"{path}: has a placement of {len(hosts)} ranks in place of {ranks}")
    table = np.frombuffer(data, "<u2", ranks * phases, _HEAD + placement).reshape(phases, ranks)
    if not _is_all_to_all(table, ranks):
        raise ConfigError(f"{path}: not an all-to-all: not every pair is served once")
    return Schedule(ranks, hosts, table, checksum, min_bytes)


def _is_all_to_all(table: NDArray[np.uint16], ranks: int) -> bool:
    """Return whether every ordered pair is served once, and a rank receives at most once in a phase."""
    phases, sources = np.nonzero(table != NO_RANK)
    destinations = table[phases, sources].astype(np.int64)
    if destinations.size != ranks * (ranks - 1) or (destinations >= ranks).any() or (destinations == sources).any():
        return False
    pairs, receptions = sources * ranks + destinations, phases * ranks + destinations
    return bool(np.unique(pairs).size == pairs.size and np.unique(receptions).size == receptions.size)


def alltoall(comm: Any, sendbuf: Any, recvbuf: Any, schedule: Schedule | str | os.PathLike[str] | None = None) -> bool:
    """Send block i of ``sendbuf`` to rank i and receive block i of ``recvbuf`` from it, phase by phase.

    All ranks of the communicator call it. Where the schedule does not apply (another placement, a file that cannot be read, processes that
    were spawned) it is ``comm.Alltoall``; rank 0 then says why on standard error. Between two groups, and for blocks of fewer bytes than
    ``KASURI_MPI_MIN_BYTES`` or else the schedule's file says, it is ``comm.Alltoall``, too.

    Parameters
    ----------
    comm
        A communicator of mpi4py.
    sendbuf, recvbuf
        NumPy arrays in C order of one type and size that do not overlap, of as many equal blocks as there are ranks to send to.
    schedule
        The schedule or its file; the file that ``KASURI_MPI_SCHEDULE`` names unless given.

    Returns
    -------
    bool
        Went the blocks by the schedule?

    Raises
    ------
    ConfigError
        A buffer that cannot be cut into the blocks, two that do not fit together, or an environment variable that is not a number.
    """
    sent, received = _blocks(comm, sendbuf, "sendbuf"), _blocks(comm, recvbuf, "recvbuf")
    _check_pair(sent, received)
    steps, messages, least = ([], None, 0) if comm.Is_inter() else _plan(comm, schedule)
    if messages is None or sent[0].nbytes < least:
        comm.Alltoall(sendbuf, recvbuf)
        return False
    self = comm.Get_rank()
    received[self] = sent[self]
    for to, source in steps:
        requests = []
        if source >= 0:
            requests.append(messages.Irecv(received[source], source, _TAG))
        if to >= 0:
            requests.append(messages.Isend(sent[to], to, _TAG))
        for request in requests:
            request.Wait()
    return True


def _blocks(comm: Any, buffer: Any, name: str) -> NDArray[Any]:
    """Give a view of a buffer, a row for each rank."""
    size = comm.Get_remote_size() if comm.Is_inter() else comm.Get_size()
    if not isinstance(buffer, np.ndarray) or not buffer.flags.c_contiguous or buffer.size % size:
        raise ConfigError(f"{name}: must be a NumPy array in C order with a size that is a multiple of the {size} ranks")
    if buffer.dtype.hasobject:
        raise ConfigError(f"{name}: holds Python objects (type {buffer.dtype}); it must hold numbers")
    return buffer.reshape(size, buffer.size // size)


def _check_pair(sent: NDArray[Any], received: NDArray[Any]) -> None:
    """Refuse two buffers with different types or sizes."""
    if sent.dtype != received.dtype:
        raise ConfigError(f"recvbuf: has type {received.dtype} and sendbuf {sent.dtype}; they must have one")
    if sent.size != received.size:
        raise ConfigError(f"recvbuf: has {received.size} elements and sendbuf {sent.size}; they must have as many")
    if not received.flags.writeable:
        raise ConfigError("recvbuf: cannot be written to")
    if np.shares_memory(sent, received):
        raise ConfigError("recvbuf: overlaps with sendbuf")


#: The use of a schedule by a communicator: its steps, the communicator of the messages, or None where it does not apply, and the bytes
#: of a block from which on it is used.
_Plan = tuple[list[tuple[int, int]], Any, int]
_keyval: int | None = None


def _plan(comm: Any, schedule: Schedule | str | os.PathLike[str] | None) -> _Plan:
    """Give the plan of a communicator, made at its first all-to-all with a schedule and kept as its attribute."""
    global _keyval
    from mpi4py import MPI

    if _keyval is None:
        _keyval = MPI.Comm.Create_keyval(delete_fn=_forget)
    known = comm.Get_attr(_keyval)
    if known is None:
        known = {}
        comm.Set_attr(_keyval, known)
    given = schedule if schedule is not None else _all_to_all_of(os.environ.get("KASURI_MPI_SCHEDULE", ""))
    key = given.checksum if isinstance(given, Schedule) else os.fspath(given)
    if key not in known:
        known[key] = _agree(comm, given)
    plan: _Plan = known[key]
    return plan


def _all_to_all_of(paths: str) -> str:
    """Give the file of an all-to-all among those that KASURI_MPI_SCHEDULE names; the first if there is none."""
    files = paths.split(":")
    for file in files:
        try:
            with Path(file).open("rb") as opened:
                if opened.read(len(MAGIC) + 4) == MAGIC + VERSION.to_bytes(4, "little"):
                    return file
        except OSError:
            continue
    return files[0]


def _forget(comm: Any, _keyval: int, plans: dict[Any, _Plan]) -> None:
    """Free the communicators of messages with the communicator that they belong to."""
    from mpi4py import MPI

    if comm not in (MPI.COMM_WORLD, MPI.COMM_SELF):
        for _, messages, _ in plans.values():
            if messages is not None:
                messages.Free()


def _agree(comm: Any, given: Schedule | str | os.PathLike[str]) -> _Plan:
    """Find out with all other ranks whether the schedule applies: all decide from the same facts."""
    from mpi4py import MPI

    reason, schedule, least = "", None, _least()
    if MPI.UNDEFINED in comm.group.Translate_ranks(list(range(comm.Get_size())), MPI.COMM_WORLD.group):
        # Every process of the communicator finds one of another world: all decide alike without a word to each other.
        return _fall_back("processes of several worlds take part, which were spawned or have connected")
    try:
        schedule = given if isinstance(given, Schedule) else read(given)
        if schedule.ranks != MPI.COMM_WORLD.Get_size():
            reason = f"the schedule is for {schedule.ranks} ranks; the program has {MPI.COMM_WORLD.Get_size()}"
    except ConfigError as error:
        reason = str(error)
    world = comm.group.Translate_ranks([comm.Get_rank()], MPI.COMM_WORLD.group)[0]
    host = os.environ.get("KASURI_MPI_HOST") or socket.gethostname()
    facts = comm.allgather((reason, schedule.checksum if schedule else 0, world, host, least))
    reason = next((reason for reason, *_ in facts if reason), "")
    placed: dict[int, int] = {}
    if len({least for *_, least in facts}) > 1:
        reason = reason or "ranks have other settings (KASURI_MPI_MIN_BYTES)"
    if not reason and schedule:
        placed, reason = _place(schedule, facts)
    if reason or not schedule:
        return _fall_back(reason)
    messages = _second(comm)
    if messages is None:
        return _fall_back("the MPI library has no communicator left")
    return _steps(schedule, placed, comm.Get_rank()), messages, schedule.min_bytes if least is None else least


def _least() -> int | None:
    """Give the bytes of a block from which on the schedule is used, if the user has said so."""
    text = os.environ.get("KASURI_MPI_MIN_BYTES")
    if text is not None and not (text.isascii() and text.isdigit()):
        raise ConfigError(f"KASURI_MPI_MIN_BYTES is `{text[:64]}`; it must be a number of bytes")
    return None if text is None else int(text)


_has_spoken = False


def _fall_back(reason: str) -> _Plan:
    """Say once in a job, by rank 0 of the world, why the schedule does not apply."""
    global _has_spoken
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == 0 and not _has_spoken:
        _has_spoken = True
        print(f"kasuri: the MPI library's own all-to-all is used: {reason}", file=sys.stderr)
    return [], None, 0


def _second(comm: Any) -> Any:
    """Make a second communicator of the same ranks; None if there is none left."""
    from mpi4py import MPI

    handler = comm.Get_errhandler()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        made = comm.Create(comm.group)
    except MPI.Exception:
        made = None
    finally:
        comm.Set_errhandler(handler)
        handler.Free()
    if comm.allreduce(int(made is not None), MPI.MIN):
        return made
    if made is not None:
        made.Free()
    return None


def _place(schedule: Schedule, facts: list[tuple[str, int, int, str, int | None]]) -> tuple[dict[int, int], str]:
    """Give the rank of the communicator for each rank of the schedule that has one, or the reason why not."""
    placed: dict[int, int] = {}
    for rank, (_, checksum, world, host, _) in enumerate(facts):
        if checksum != schedule.checksum:
            return {}, f"rank {rank} has read another schedule"
        places = (i for i, name in enumerate(schedule.hosts) if i not in placed and _is_same_host(name, host))
        place = next(places, -1) if schedule.hosts else world
        if place < 0:
            return {}, f"rank {rank} runs on {host}, where the schedule has no place for it"
        placed[place] = rank
    return placed, ""


def _is_same_host(one: str, other: str) -> bool:
    """Return whether these are names of one host. One of them may include its domain."""
    if "." in one and "." in other:
        return one == other
    return one.split(".")[0] == other.split(".")[0]


def _steps(schedule: Schedule, placed: dict[int, int], rank: int) -> list[tuple[int, int]]:
    """List the destinations and sources of this rank, -1 for none, in the phases in which it has either."""
    self = next(place for place, there in placed.items() if there == rank)
    steps = []
    for row in schedule.destinations:
        source = np.flatnonzero(row == self)
        step = (placed.get(int(row[self]), -1), placed.get(int(source[0]), -1) if source.size else -1)
        if step != (-1, -1):
            steps.append(step)
    return steps
