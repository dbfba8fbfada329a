#!/usr/bin/env python3
"""Interrupts sweeps at any moment, or lets memory run out, and begins them again: nothing finished is lost or computed twice, the answer is
that of one undisturbed thread."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import trial

SWEEP = """\
[network]
topology = "mesh"
dimensions = [3, 3]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
[measure]
warmup = 100
cycles = 2000
[sweep]
"traffic.load" = { from = 0.05, to = 0.40, step = 0.05 }
"measure.seed" = { from = 1, to = 5, step = 1 }
"""
RUNS = 40
#: Two small networks whose runs are long, so that they come first, and two that need more memory than the process is given.
LARGE = """\
[network]
topology = "mesh"
dimensions = [4, 4]
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 4
[traffic]
pattern = "uniform"
load = 0.1
packet_flits = 4
[measure]
warmup = 100
cycles = 200_000
[sweep]
"measure.seed" = [1, 2]
[[sweep.case]]
label = "small"
[[sweep.case]]
label = "large"
network.dimensions = [96, 96]
router.buffer_flits = 16
measure.warmup = 10
measure.cycles = 20
"""
#: Threads of a run; "auto" gives small networks one.
THREADS = ("1", "2", "2", "auto")
#: Signals, and the statuses with which a process may end after them: a negative one as `subprocess` gives it.
SIGNALS = {signal.SIGINT: (130,), signal.SIGTERM: (143,), signal.SIGKILL: (-9,)}
#: In Python: Ctrl-C is an exception, any other signal the system's. What NumPy says of one while it is imported is its own affair.
READY = "ready"
PYTHON = f"""\
import sys, kasuri
print("{READY}", flush=True)
try:
    kasuri.run("sweep.toml", out=sys.argv[1], threads=None if sys.argv[2] == "auto" else int(sys.argv[2]))
except KeyboardInterrupt:
    sys.exit(130)
"""
#: One seed in so many interrupts a cluster of two workers, which takes seconds to begin.
CLUSTERS = 20


class WrongError(Exception):
    """A promise was broken."""


def begin(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a process in a process group of its own."""
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def end(process: subprocess.Popen[str], allowed: tuple[int, ...], *, stderr: bool = False) -> str:
    """Wait for the end of a process and judge it; give what it said: its answer, or its messages."""
    try:
        answer, messages = process.communicate(timeout=120)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise WrongError("it hangs") from error
    if process.returncode not in allowed:
        raise WrongError(f"status {process.returncode} instead of {allowed}: {messages[-900:]}")
    if "panicked" in messages or "defect" in messages or ("Traceback" in messages and "KeyboardInterrupt" not in messages):
        raise WrongError(f"a defect: {messages[-900:]}")
    return messages if stderr else answer


def rows_of(out: Path) -> dict[str, tuple[int, bytes]]:
    """Give the finished runs: when each was written, and what it holds."""
    found = {}
    for file in (out / "runs").glob("[!.]*.json"):
        found[file.name] = (file.stat().st_mtime_ns, file.read_bytes())
    return found


def table_of(out: Path) -> list[dict[str, Any]]:
    """Give the table without costs."""
    return trial.without_costs(json.loads((out / "runs.json").read_text())["runs"])


def files_of(out: Path) -> dict[str, bytes]:
    """Give all files but locks; what tells of the machine, too (rows, tables), without its content."""
    found = {}
    for file in out.rglob("*"):
        path = str(file.relative_to(out))
        if file.is_file() and path not in (".kasuri", ".kasuri-claims", ".kasuri-client", "plan.jsonl"):
            found[path] = file.read_bytes() if file.suffix in (".npy", ".toml") or file.parent.name == "networks" else b""
    return found


def check_kept(before: dict[str, tuple[int, bytes]], out: Path) -> dict[str, tuple[int, bytes]]:
    """Nothing that was finished is lost or written again."""
    now = rows_of(out)
    for name, row in before.items():
        if name not in now:
            raise WrongError(f"the finished run {name} is lost")
        if now[name] != row:
            raise WrongError(f"the finished run {name} was computed again")
    for name, (_, content) in now.items():
        try:
            json.loads(content)
        except ValueError as error:
            raise WrongError(f"{name} is half written: {error}") from error
    return now


class Campaign:
    """What interrupted sweeps are compared with."""

    def __init__(self, kasuri: str, place: Path, threads: tuple[str, ...]) -> None:
        self.kasuri, self.place, self.threads = kasuri, place, threads
        (place / "sweep.toml").write_text(SWEEP)
        (place / "large.toml").write_text(LARGE)
        started = time.monotonic()
        end(self.run("whole", "--threads", "1"), (0,))
        self.seconds = time.monotonic() - started
        self.list = place / "points"
        self.list.write_text(end(self.run("planned", "--plan"), (0,)))
        end(self.run("whole-large", "--threads", "1", file="large.toml"), (0,))
        assert len(table_of(place / "whole")) == RUNS

    def run(self, out: str, *words: str, file: str = "sweep.toml") -> subprocess.Popen[str]:
        """Start the command."""
        return begin([self.kasuri, "run", file, "--out", out, *words], self.place)

    def interrupt(self, process: subprocess.Popen[str], draw: random.Random, *, python: bool = False) -> None:
        """Send a signal to a process or its group after a drawn time, sometimes a second one; it ends as the signal says, or has ended."""
        time.sleep(draw.uniform(0, 1.2 * self.seconds))
        number = draw.choice(list(SIGNALS))
        send = draw.choice((os.kill, os.killpg))
        for _ in range(draw.choice((1, 1, 1, 2))):
            if process.poll() is None:
                send(process.pid, number)
        # Before it awaits signals, and in Python but for Ctrl-C, a signal ends a process in the way of the system.
        end(process, (0, *SIGNALS[number], -number, *((1,) if python else ())))

    def one(self, out: str, draw: random.Random) -> None:
        """One process, interrupted a few times."""
        rows: dict[str, tuple[int, bytes]] = {}
        for _ in range(draw.randint(1, 4)):
            self.interrupt(self.run(out, "--jobs", draw.choice("124"), "--threads", draw.choice(self.threads)), draw)
            rows = check_kept(rows, self.place / out)

    def python(self, out: str, draw: random.Random) -> None:
        """The same in Python."""
        rows: dict[str, tuple[int, bytes]] = {}
        for _ in range(draw.randint(1, 2)):
            process = begin([sys.executable, "-c", PYTHON, out, draw.choice(self.threads)], self.place)
            if process.stdout is None or process.stdout.readline().strip() != READY:
                raise WrongError("Python does not import kasuri")
            self.interrupt(process, draw, python=True)
            rows = check_kept(rows, self.place / out)

    def workers(self, out: str, draw: random.Random) -> None:
        """Three processes with one list, one or two of which are interrupted: the others compute all."""
        words = ["--points-from", str(self.list), "--jobs", "1", "--threads", draw.choice(self.threads)]
        workers = [self.run(out, *words) for _ in range(3)]
        count = draw.randint(1, 2)
        victims, others = workers[:count], workers[count:]
        for victim in victims:
            self.interrupt(victim, draw)
        rows = rows_of(self.place / out)
        for worker in others:
            end(worker, (0,))
        if len(check_kept(rows, self.place / out)) != RUNS:
            raise WrongError("the processes that were left have not computed all")

    def shards(self, out: str, draw: random.Random) -> None:
        """Parts of a batch system's array, each interrupted or not."""
        parts = [self.run(out, "--shard", f"{part}/3", "--jobs", "1", "--threads", draw.choice(self.threads)) for part in (1, 2, 3)]
        for part in parts:
            if draw.random() < 0.5:
                self.interrupt(part, draw)
        for part in parts:
            if part.returncode is None:
                end(part, (0,))
        rows = check_kept({}, self.place / out)
        status = (0, 1) if len(rows) == RUNS else (1,)
        if (self.place / out / "plan.jsonl").exists():
            end(begin([self.kasuri, "collect", out], self.place), status)
        check_kept(rows, self.place / out)

    def memory(self, out: str, draw: random.Random) -> None:
        """Too little memory, and more and more: it is said, and what is finished stays."""
        rows: dict[str, tuple[int, bytes]] = {}
        threads, kib = draw.choice(self.threads), draw.randint(32_000, 90_000)
        for _ in range(40):
            words = ["sh", "-c", 'ulimit -v "$0"; exec "$@"', str(kib), self.kasuri, "run", "large.toml", "--out", out]
            process = begin([*words, "--jobs", "1", "--threads", threads], self.place)
            said = end(process, (0, 1), stderr=True)
            rows = check_kept(rows, self.place / out)
            if process.returncode == 0:
                return
            if "out of memory" not in said and "threads cannot be started" not in said:
                raise WrongError(f"with {kib} KiB on {threads} threads it ends without a word of memory: {said[-900:]}")
            kib += draw.randint(2_000, 12_000)
        raise WrongError(f"{kib} KiB are not enough")

    def cluster(self, out: str, draw: random.Random) -> None:
        """A client of two workers on this machine."""
        process = self.run(out, "--executor", "dask", "--jobs", "2")
        time.sleep(draw.uniform(0, 6))
        number = draw.choice(list(SIGNALS))
        if process.poll() is None:
            os.kill(process.pid, number)
        end(process, (0, *SIGNALS[number], -number))
        rows = check_kept({}, self.place / out)
        # Workers without their client end by themselves, and the folder is free.
        for _ in range(100):
            if end(self.run(out, "--jobs", "1"), (0, 2)) is not None and (self.place / out / "runs.json").exists():
                break
            time.sleep(0.1)
        check_kept(rows, self.place / out)

    def finish(self, out: str, draw: random.Random, *, large: bool) -> None:
        """The next undisturbed run gives the answer of one that was never disturbed, and leaves nothing else behind."""
        rows = check_kept({}, self.place / out)
        end(self.run(out, "--threads", draw.choice(self.threads), file="large.toml" if large else "sweep.toml"), (0,))
        check_kept(rows, self.place / out)
        whole = self.place / ("whole-large" if large else "whole")
        if table_of(self.place / out) != table_of(whole):
            raise WrongError("another table")
        found, right = files_of(self.place / out), files_of(whole)
        if found != right:
            differing = (name for name in found.keys() | right.keys() if found.get(name) != right.get(name))
            raise WrongError(f"other files: {sorted(differing)[:5]}")

    def examine(self, seed: int) -> str | None:
        """Interrupt in the way of a seed; say what is wrong."""
        draw = random.Random(seed)
        ways: tuple[Callable[[str, random.Random], None], ...]
        ways = (self.one, self.one, self.workers, self.shards, self.python, self.memory)
        way = self.cluster if seed % CLUSTERS == 0 else draw.choice(ways)
        out = f"out-{seed}"
        try:
            way(out, draw)
            self.finish(out, draw, large=way == self.memory)
        except WrongError as wrong:
            return f"seed {seed}, {way.__name__}: {wrong} ({self.place / out})"
        shutil.rmtree(self.place / out)
        return None


def main() -> int:
    """Examine many; give the exit status."""
    parser = trial.options(__doc__, 100, "interrupted sweeps")
    parser.add_argument("--threads", help="threads of each run (default: drawn for each process)")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="kasuri-interruptions-"))
    campaign = Campaign(options.kasuri, place, (options.threads,) if options.threads else THREADS)
    wrong = [line for seed in range(options.first, options.first + options.count) if (line := campaign.examine(seed))]
    print(f"{options.count} interrupted sweeps, {len(wrong)} went wrong")
    print("\n".join(wrong[:20]))
    if not wrong:
        shutil.rmtree(place)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
