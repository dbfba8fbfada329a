"""The worker's part: it starts the native command for some points and watches it.

It uses the standard library and Dask only: :func:`prepare` is sent to workers as it is, for they may have another kasuri, or none.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The name of the memory of a worker among Dask's resources, MiB.
MEMORY = "kasuri-memory"

#: The topic of the workers' messages on what they begin.
TOPIC = "kasuri"

#: Seconds between two looks at a command that runs.
POLL_INTERVAL = 0.25


@dataclass(frozen=True)
class Experiment:
    """The data of the experiment that a worker needs.

    Attributes
    ----------
    command : str
        The native command on the client's machine.
    identity : str
        Its version and platform, as ``kasuri identity`` prints it.
    file : str
        The experiment file, and `assignments` the values of ``--set``.
    out : str
        The folder of results on the client's machine.
    token : str
        The name of a file there, by which a worker recognizes the folder.
    paranoid : bool
        Whether runs check themselves.
    contents : dict or None
        The texts of the experiment file (under its own name) and of the files that it names, for workers that share no folder.
    """

    command: str
    identity: str
    file: str
    out: str
    token: str
    assignments: tuple[str, ...] = ()
    paranoid: bool = False
    contents: dict[str, bytes] | None = None


@dataclass
class Answer:
    """The results of some points.

    Attributes
    ----------
    seconds : dict
        Processor time of each point that was computed now, s.
    reused : list
        Keys of points that were finished before.
    failed : dict
        Messages of points that came to no result.
    killed : tuple or None
        The key of the point during which the command was killed, the reason, and the most memory it had, MiB.
    refused : str or None
        Why this worker computes nothing: another version, no command, no folder.
    lost : str or None
        An error of the folder of results; nothing more can be kept there.
    files : dict
        Files of the run store by their path in it, where the worker does not share the client's folder.
    worker : str
        The address of the worker.
    unfit : str or None
        An error of this worker's own folder; others may do better.
    cancelled : bool
        Whether the worker was asked to stop.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    killed: tuple[str, str, float] | None = None
    refused: str | None = None
    lost: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    worker: str = ""
    unfit: str | None = None
    cancelled: bool = False


def find_command(experiment: Experiment) -> str | None:
    """Return the native command of this machine: the client's, else the one next to this Python, else the one on the path."""
    neighbour = Path(sys.executable).with_name("kasuri")
    for candidate in (experiment.command, str(neighbour)):
        if os.access(candidate, os.X_OK):
            return candidate
    return shutil.which("kasuri")


def describe(experiment: Experiment) -> str | None:
    """Say why this machine cannot compute points of the experiment; nothing if it can."""
    command, own = find_command(experiment), readable(experiment.identity)
    if command is None:
        return f"{platform.node()} has no command `kasuri` next to {sys.executable} or on the path; this is kasuri {own}"
    try:
        identity = subprocess.run([command, "identity"], capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        return f"{platform.node()}: {command} cannot be started: {error}"
    if identity != experiment.identity:
        return f"{platform.node()} has kasuri {readable(identity)} at {command}, this is kasuri {own}; they must be equal"
    if importlib.util.find_spec("kasuri") is None:
        return f"{platform.node()}: {sys.executable} has no package `kasuri`; install kasuri[distributed] there"
    return None


def readable(identity: str) -> str:
    """Return the output of ``kasuri identity`` in readable form."""
    try:
        parts = json.loads(identity)
        build = parts.get("build", "unknown")
        return f"{parts['kasuri']} (results {parts['results']}, layout {parts['schema']}, build {build}, {parts['platform']})"
    except (ValueError, KeyError, TypeError):
        return "of an unknown version"


def shares_folder(experiment: Experiment) -> bool:
    """Return whether this machine sees the client's folder of results."""
    return (Path(experiment.out) / experiment.token).exists()


async def prepare(description: dict[str, Any], dask_worker: Any) -> dict[str, Any]:
    """Look at a worker before it gets anything: can it compute, does it share the folder, how much memory has it?"""
    experiment = Experiment(**description)
    given = MEMORY not in dask_worker.state.total_resources
    if given:
        limit = getattr(dask_worker.memory_manager, "memory_limit", None) or memory_of_machine()
        await dask_worker.set_resources(**{MEMORY: limit / 2**20})
    return {"refused": describe(experiment), "shared": shares_folder(experiment), "given": given}


def memory_of_machine() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def compute(description: dict[str, Any], points: list[tuple[str, int]], group: str) -> dict[str, Any]:
    """Compute points, given by key and number, one after the other; give an :class:`Answer` as a dictionary."""
    from distributed import get_worker

    answer = _compute(Experiment(**description), points, group)
    answer.worker = get_worker().address
    return asdict(answer)


def _compute(experiment: Experiment, points: list[tuple[str, int]], group: str) -> Answer:
    from distributed import get_worker

    worker = get_worker()
    worker.log_event(TOPIC, {"group": group, "worker": worker.address})
    # A worker that came late was not looked at.
    checked = worker.__dict__.setdefault("_kasuri_checked", {})
    if experiment.identity not in checked:
        checked[experiment.identity] = describe(experiment)
    if checked[experiment.identity]:
        return Answer(refused=checked[experiment.identity])
    if shares_folder(experiment):
        return _run(experiment, points, Path(experiment.file), Path(experiment.out), worker)
    if experiment.contents is None:
        return Answer(refused="no folder")
    try:
        with tempfile.TemporaryDirectory(prefix="kasuri-", dir=worker.local_directory) as scratch:
            file = _unpack(experiment, Path(scratch))
            out = Path(scratch) / "out"
            answer = _run(experiment, points, file, out, worker)
            answer.files = _files(out, [key for key, _ in points])
            if answer.lost:
                answer.unfit, answer.lost = f"{platform.node()}: {answer.lost}", None
            return answer
    except OSError as error:
        return Answer(unfit=f"{platform.node()}, {worker.local_directory}: {error.strerror or error}")


def _unpack(experiment: Experiment, scratch: Path) -> Path:
    """Write the experiment file and the files that it names; those may lie in folders above it."""
    contents = experiment.contents or {}
    above = max((name.split("/").count("..") for name in contents), default=0)
    folder = scratch.joinpath("experiment", *["below"] * above)
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / Path(experiment.file).name


def _files(out: Path, keys: list[str]) -> dict[str, bytes]:
    """Read the rows of some points, and their networks, from a run store."""
    found = {}
    for key in keys:
        paths = [*sorted((out / "runs").glob(f"{key}.*")), out / "failed" / f"{key}.json"]
        with contextlib.suppress(OSError, ValueError, KeyError):
            paths.append(out / "networks" / f"{json.loads((out / 'runs' / f'{key}.json').read_bytes())['network_id']}.json")
        for path in paths:
            if path.is_file() and not path.name.endswith(".damaged"):
                found[str(path.relative_to(out))] = path.read_bytes()
    return found


def _run(experiment: Experiment, points: list[tuple[str, int]], file: Path, out: Path, worker: Any) -> Answer:
    """Run the command for some points and return their results."""
    before = {key for key, _ in points if (out / "runs" / f"{key}.json").exists()}
    command = find_command(experiment) or "kasuri"
    arguments = [command, "run", str(file), "--out", str(out), "--jobs", "1", "--format", "json", "--points-from", "-"]
    arguments += ["--owned-by", str(os.getpid())]
    for assignment in experiment.assignments:
        arguments += ["--set", assignment]
    if experiment.paranoid:
        arguments.append("--paranoid")
    kills = _kills_for_memory()
    watched = Watch(worker)
    process = watched.run(arguments, "".join(f"{key}\t{number}\n" for key, number in points))
    answer = Answer(reused=sorted(before), cancelled=watched.cancelled)
    finished = [key for key, _ in points if (out / "runs" / f"{key}.json").exists()]
    if (process.returncode < 0 or _ran_out_of_memory(process)) and not watched.cancelled:
        rest = [key for key, _ in points if key not in finished and not (out / "failed" / f"{key}.json").exists()]
        answer.seconds = _seconds(out, [key for key in finished if key not in before])
        if rest:
            answer.killed = (rest[0], _reason(process, watched, kills), watched.most)
        return answer
    try:
        rows = json.loads(process.stdout)["runs"]
    except ValueError:
        rows = []
    for row in rows:
        if row["status"] == "failed":
            answer.failed[row["key"]] = row["message"]
        elif row["key"] not in before:
            answer.seconds[row["key"]] = row["cpu_seconds"] or 0.0
    if len(rows) < len(points) and not watched.cancelled:
        answer.lost = process.stderr.strip().removeprefix("error: ") or f"the command ended with status {process.returncode}"
    return answer


def _seconds(out: Path, keys: list[str]) -> dict[str, float]:
    return {key: json.loads((out / "runs" / f"{key}.json").read_bytes())["cpu_seconds"] or 0.0 for key in keys}


def _ran_out_of_memory(process: subprocess.CompletedProcess[str]) -> bool:
    """Return whether the command ran out of memory."""
    return process.returncode == 1 and "error: out of memory" in process.stderr


def _reason(process: subprocess.CompletedProcess[str], watched: Watch, kills: int | None) -> str:
    """Say why a command was killed, or ended for lack of memory."""
    if _ran_out_of_memory(process):
        return f"out of memory: the system gave no more than {watched.most:.0f} MiB"
    number = -process.returncode
    with contextlib.suppress(ValueError):
        name = signal.Signals(number).name
        memory = f"at {watched.most:.0f} MiB of memory"
        if watched.over:
            return f"out of memory: it had {watched.most:.0f} MiB, the worker has {watched.limit:.0f} MiB"
        if kills is not None and (_kills_for_memory() or 0) > kills:
            return f"out of memory: the system killed it (signal {number}, {name}) {memory}"
        guess = ", perhaps out of memory" if number == signal.SIGKILL else ""
        return f"killed by signal {number} ({name}) {memory}{guess}"
    return f"killed by signal {number}"


def _kills_for_memory() -> int | None:
    """Count the processes of this control group that the system has killed for memory, where it reports them."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        group = Path("/proc/self/cgroup").read_text().strip().split("::", 1)[1].lstrip("/")
        lines = (Path("/sys/fs/cgroup") / group / "memory.events").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return None


class Watch:
    """Runs a command while its worker is needed, and within the worker's memory."""

    def __init__(self, worker: Any):
        self.worker = worker
        self.task = worker.get_current_task()
        self.limit = worker.state.total_resources.get(MEMORY, 0.0)
        self.most = 0.0
        self.over = False
        self.cancelled = False

    def run(self, arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, with a text on its standard input."""
        # A separate session, so that Ctrl-C at the client's terminal reaches only the client.
        process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        asked: str | None = text
        while True:
            try:
                output, errors = process.communicate(asked, timeout=POLL_INTERVAL)
                break
            except subprocess.TimeoutExpired:
                asked = None
                self._look(process)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def _look(self, process: subprocess.Popen[str]) -> None:
        if not self.cancelled and self._is_unwanted():
            self.cancelled = True
            process.terminate()
        memory = _peak_mib(process.pid)
        self.most = max(self.most, memory)
        if self.limit and memory > self.limit:
            self.over = True
            process.kill()

    def _is_unwanted(self) -> bool:
        """Return whether the client has given up the points, or the worker closes."""
        state = self.worker.state.tasks.get(self.task)
        return state is None or state.state in ("cancelled", "released") or self.worker.status.name not in ("running", "paused")


def _peak_mib(process: int) -> float:
    """Return the peak resident memory of a process in MiB; 0 where the system does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        # A process that has just ended has no memory any more.
        return max((float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), default=0.0)
    return 0.0
