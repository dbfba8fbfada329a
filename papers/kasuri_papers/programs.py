"""Programs that a figure runs: as a GOAL trace, by the name in ``trace.program`` of its file, as parcels of the Cenju-4, by that in
``script.program``, or with MPI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kasuri.errors import ConfigError

#: Where `make mpi` of the repository puts programs.
BUILT = Path(__file__).parents[2] / "mpi" / "build"

#: Offsets of the neighbours of a block.
_NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))


class MissingProgramError(ConfigError):
    """A program that a figure measures is not built or installed here."""


def stencil(*, side: int, iterations: int, flits: int, flit_bytes: int, periodic: bool) -> str:
    """Write a two-dimensional stencil of side x side blocks, block (x, y) on rank y side + x.

    In each iteration every rank sends one message of ``flits`` flits to each of its neighbours, once those of the iteration before have
    arrived and left. ``periodic`` joins the opposite edges.
    """
    ranks = [_stencil_rank(x, y, side, iterations, flits * flit_bytes, periodic) for y in range(side) for x in range(side)]
    return "\n".join([f"num_ranks {side * side}", *ranks]) + "\n"


def _stencil_rank(x: int, y: int, side: int, iterations: int, message: int, periodic: bool) -> str:
    others = []
    for right, up in _NEIGHBOURS:
        column, row = x + right, y + up
        if periodic or (0 <= column < side and 0 <= row < side):
            others.append((row % side) * side + column % side)
    lines = []
    for iteration in range(iterations):
        for place, other in enumerate(others):
            # On a ring of two both neighbours are the same rank: the tag tells the messages apart by their direction.
            back = place ^ 1 if periodic else place
            tags = (f"tag {iteration * 4 + place}", f"tag {iteration * 4 + back}") if periodic else (f"tag {iteration}",) * 2
            lines.append(f"s{iteration}_{place}: send {message}b to {other} {tags[0]}")
            lines.append(f"r{iteration}_{place}: recv {message}b from {other} {tags[1]}")
            if iteration:
                before = [f"{what}{iteration - 1}_{earlier}" for what in ("s", "r") for earlier in range(len(others))]
                lines += [f"s{iteration}_{place} requires {label}" for label in before]
    body = "\n".join(f"  {line}" for line in lines)
    return f"rank {y * side + x} {{\n{body}\n}}"


def exchange(*, ranks: int, flits: int, flit_bytes: int) -> str:
    """Write an exchange: every rank sends a message of ``flits`` flits to each other one, all at once."""
    parts = []
    for rank in range(ranks):
        others = [(rank + step) % ranks for step in range(1, ranks)]
        lines = [
            f"  s{other}: send {flits * flit_bytes}b to {other} tag 0\n  r{other}: recv {flits * flit_bytes}b from {other} tag 0"
            for other in others
        ]
        parts.append("\n".join([f"rank {rank} {{", *lines, "}"]))
    return "\n".join([f"num_ranks {ranks}", *parts]) + "\n"


#: Ranks of two jobs of 16 each on a machine of 32: by eights, which share cables of the Cenju-4, and by turns, which share none.
PLACES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "eights": {"exchange": (*range(8), *range(16, 24)), "stencil": (*range(8, 16), *range(24, 32))},
    "turns": {"exchange": tuple(range(0, 32, 2)), "stencil": tuple(range(1, 32, 2))},
}
_SIDE = 4


def jobs(*, jobs: str, places: str, iterations: int, flits: int, flit_bytes: int) -> str:
    """Write two jobs, one of them or ``"both"``, for 32 ranks: an exchange, and a stencil of 4 x 4 blocks without edges."""
    text_of = {
        "exchange": exchange(ranks=_SIDE * _SIDE, flits=flits, flit_bytes=flit_bytes),
        "stencil": stencil(side=_SIDE, iterations=iterations, flits=flits, flit_bytes=flit_bytes, periodic=True),
    }
    idle = "num_ranks 16\n" + "".join(f"rank {rank} {{ }}\n" for rank in range(_SIDE * _SIDE))
    parts = [_on(text_of[job] if jobs in (job, "both") else idle, ranks) for job, ranks in PLACES[places].items()]
    return "".join(["num_ranks 32\n", *parts])


def _on(text: str, ranks: Sequence[int]) -> str:
    """Have a program run on other ranks: rank n of it on ``ranks[n]``."""
    _, _, body = text.partition("\n")
    return re.sub(r"\b(rank|to|from) (\d+)", lambda found: f"{found[1]} {ranks[int(found[2])]}", body)


#: Writes a program as GOAL text from the keys of a figure's ``trace``.
PROGRAMS: Mapping[str, Callable[..., str]] = {"stencil": stencil, "jobs": jobs}

#: Parts of a program of parcels, as `workload.script` has them.
Steps = list[dict[str, Any]]


def four(*, senders: Sequence[int], blocked: Sequence[int], free: int, bytes: int) -> Steps:
    """Write a program in which each sender puts data into every blocked rank, and the first sender then into the free one.

    The blocked ranks receive from their first page on, one sender's data behind the other's, and the free one behind all of that.
    """
    puts = [
        [{"action": "put", "to": to, "bytes": bytes, "target_offset": place * bytes} for to in blocked] for place in range(len(senders))
    ]
    beyond = {"bytes": bytes, "target_offset": len(senders) * bytes}
    puts[0].append({"action": "put", "to": free, **beyond})
    senders_do = [{"ranks": [sender], "steps": steps} for sender, steps in zip(senders, puts, strict=True)]
    checks = [{"action": "check", "from": sender, "bytes": bytes, "target_offset": place * bytes} for place, sender in enumerate(senders)]
    blocked_do = {"ranks": list(blocked), "steps": [{"action": "receive", "count": len(senders)}, *checks]}
    return [*senders_do, blocked_do, {"ranks": [free], "steps": [{"action": "receive"}, {"action": "check", "from": senders[0], **beyond}]}]


def messages(*, nodes: int, each: int, ns: float) -> Steps:
    """Write a program in which rank 0 computes while each of the others sends it ``each`` messages."""
    computes = [{"action": "compute", "ns": ns}, {"action": "receive-messages", "count": (nodes - 1) * each}]
    others = {"ranks": list(range(1, nodes)), "steps": [{"action": "message", "to": 0}] * each}
    return [{"ranks": [0], "steps": computes}, others]


def rounds(*, nodes: int, senders: int, bytes: int) -> Steps:
    """Write the staggered all-gather with a barrier of all after each round: in round k rank i puts its block into rank i + k.

    Only the first ``senders`` ranks send.
    """
    parts = []
    for rank in range(nodes):
        steps: Steps = []
        for step in range(1, nodes + 1):
            if rank < senders:
                steps.append({"action": "put", "to": (rank + step) % nodes, "bytes": bytes, "target_offset": rank * bytes})
            if (rank - step) % nodes < senders:
                steps.append({"action": "receive"})
            steps.append({"action": "barrier"})
        checks = [{"action": "check", "from": other, "bytes": bytes, "target_offset": other * bytes} for other in range(senders)]
        parts.append({"ranks": [rank], "steps": [*steps, *checks]})
    return parts


def parcel_jobs(*, jobs: str, places: str, iterations: int, bytes: int) -> Steps:
    """Write the two jobs as parcels: one of them, or ``"both"``."""
    parts: Steps = []
    if jobs in ("exchange", "both"):
        ranks = PLACES[places]["exchange"]
        for place, rank in enumerate(ranks):
            others = [ranks[(place + step) % len(ranks)] for step in range(1, len(ranks))]
            puts = [{"action": "put", "to": other, "bytes": bytes, "target_offset": place * bytes} for other in others]
            checks = [{"action": "check", "from": other, "bytes": bytes, "target_offset": ranks.index(other) * bytes} for other in others]
            parts.append({"ranks": [rank], "steps": [*puts, {"action": "receive", "count": len(others)}, *checks]})
    if jobs in ("stencil", "both"):
        ranks = PLACES[places]["stencil"]
        for place, rank in enumerate(ranks):
            x, y = place % _SIDE, place // _SIDE
            others = [ranks[(y + up) % _SIDE * _SIDE + (x + right) % _SIDE] for right, up in _NEIGHBOURS]
            puts = [{"action": "put", "to": other, "bytes": bytes, "target_offset": side * bytes} for side, other in enumerate(others)]
            parts.append({"ranks": [rank], "steps": [*puts, {"action": "receive", "count": len(others)}] * iterations})
    return parts


def grid(*, columns: int, rows: int, points: int, lines: int, iterations: int) -> Steps:
    """Write a stencil on a torus of nodes: in each iteration ``lines`` words go to the left and right, ``points`` up and down."""
    parts = []
    for rank in range(columns * rows):
        x, y = rank % columns, rank // columns
        others = [(y + up) % rows * columns + (x + right) % columns for right, up in _NEIGHBOURS]
        sizes = [8 * (lines if right else points) for right, _ in _NEIGHBOURS]
        places = [sum(sizes[:side]) for side in range(len(sizes))]
        puts = [
            {"action": "put", "to": other, "bytes": size, "target_offset": place}
            for other, size, place in zip(others, sizes, places, strict=True)
        ]
        parts.append({"ranks": [rank], "steps": [*puts, {"action": "receive", "count": len(others)}] * iterations})
    return parts


#: Writes a program of parcels from the keys of a figure's ``script``.
SCRIPTS: Mapping[str, Callable[..., Steps]] = {"four": four, "messages": messages, "rounds": rounds, "jobs": parcel_jobs, "grid": grid}


def steps(script: Mapping[str, Any]) -> Steps:
    """Write the program that a figure's ``script`` describes."""
    return SCRIPTS[script["program"]](**{key: value for key, value in script.items() if key != "program"})


def written(trace: Mapping[str, Any], flit_bytes: int) -> str:
    """Write the program that a figure's ``trace`` describes."""
    keys = {key: value for key, value in trace.items() if key != "program"}
    return PROGRAMS[trace["program"]](**keys, flit_bytes=flit_bytes)


def mpi(experiment: Mapping[str, Any], folder: Path, kasuri: str) -> dict[str, Any]:
    """Run the distributed Fourier transform of the repository with Open MPI, with its own all-to-all or by a schedule, once.

    ``kasuri`` is the native command. ``experiment`` has ``ranks``, ``points`` (the class) and ``schedule``: ``"library"``, or the name of
    one for the given ``network``.

    Returns
    -------
    dict
        ``exit``, ``checksums`` (lines), ``right`` (the program's own comparison), ``by_schedule`` (exchanges made by the schedule) and
        ``message`` (its last words of error).

    Raises
    ------
    MissingProgramError
        The program or Open MPI is missing.
    ConfigError
        The schedule cannot be made.
    """
    kept = folder / "mpi.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    program, launcher = BUILT / "openmpi" / "ft", shutil.which("mpirun.openmpi")
    if launcher is None or not program.exists():
        raise MissingProgramError(f"{program}: it runs with Open MPI and is built by `make mpi` in a checkout of the repository")
    folder.mkdir(parents=True, exist_ok=True)
    ranks, environment = int(experiment["ranks"]), dict(os.environ)
    if experiment["schedule"] != "library":
        file = _schedule(experiment, folder, kasuri)
        environment |= {"KASURI_MPI_SCHEDULE": str(file), "KASURI_MPI_REPORT": "1", "KASURI_MPI_MIN_BYTES": "0"}
        environment["LD_PRELOAD"] = str(BUILT / "openmpi" / "libkasuri_alltoall.so")
    passed = [word for name in environment if name.startswith("KASURI_MPI_") or name == "LD_PRELOAD" for word in ("-x", name)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    words = [launcher, *root, "--oversubscribe", "-np", str(ranks), *passed, str(program), str(experiment["points"])]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    schedule = re.search(r"(\d+) by the schedule", done.stderr)
    found = {
        "exit": done.returncode,
        "checksums": re.findall(r"^checksum .*$", done.stdout, re.MULTILINE),
        "right": "right: differs from a serial transform" in done.stdout,
        "by_schedule": int(schedule[1]) if schedule else 0,
        "message": next((line for line in done.stderr.splitlines() if line.startswith("ft: ")), ""),
    }
    # Only what the program itself decided is kept: 0 it ran, 2 it refused.
    if done.returncode in (0, 2):
        kept.write_text(json.dumps(found))
    return found


def _schedule(experiment: Mapping[str, Any], folder: Path, kasuri: str) -> Path:
    """Write the schedule of an experiment for ranks that are all on this host."""
    file, network, hosts = (folder / name for name in ("schedule.kasuri", "network.toml", "hosts.txt"))
    sections = {name: experiment[name] for name in ("network", "routing")}
    keys = [f"{section}.{key} = {json.dumps(value)}\n" for section, table in sections.items() for key, value in table.items()]
    network.write_text("".join(keys))
    hosts.write_text(f"{socket.gethostname()} 0-{experiment['ranks'] - 1}\n")
    words = [kasuri, "schedule", "alltoall", "--network", str(network), "--schedule", str(experiment["schedule"]), "--hosts", str(hosts)]
    done = subprocess.run([*words, "--export", "mpi"], capture_output=True, check=False)
    if done.returncode != 0:
        raise ConfigError(done.stderr.decode(errors="replace").strip())
    file.write_bytes(done.stdout)
    return file
