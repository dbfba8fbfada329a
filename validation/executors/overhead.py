#!/usr/bin/env python3
"""Measures what sweeping beyond one process costs, and compares it with its limits.

* Processor time of 2,000 points of 0.1 s by Dask on two local worker processes, over that by `local`: at most 1.1. All processes count.
* Memory of the client (the command, Dask's scheduler and client) while it has 100,000 points to hand out: below 500 MB.
* Planning 100,000 points, that is checking and listing them: below 5 s of processor time.

Times are processor times, so that a busy machine does not disturb. Exit status: 0, or 1 if a figure is outside its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENT = """
[network]
topology = "mesh"
dimensions = [8, 8]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
load = 0.1
[measure]
warmup = 0
cycles = {cycles}
[sweep]
"measure.seed" = {{ from = 1, to = {runs}, step = 1 }}
"""

LIMITS = {"processor time over local": 1.1, "client memory, MB": 500.0, "planning, s": 5.0}


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kasuri", type=Path, required=True, help="the command")
    parser.add_argument("--points", type=int, default=2000, help="points of 0.1 s (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="processor time of each (default: %(default)s)")
    options = parser.parse_args()
    command = str(options.kasuri.resolve())
    with tempfile.TemporaryDirectory(prefix="kasuri-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        figures = {
            "planning, s": planning(command, Path(folder)),
            "client memory, MB": memory_of_client(command, Path(folder)),
            "processor time over local": overhead(command, Path(folder), options.points, options.seconds),
        }
    wrong = 0
    for name, figure in figures.items():
        verdict = "within" if figure <= LIMITS[name] else "OUTSIDE"
        wrong += verdict == "OUTSIDE"
        print(f"{name}: {figure:.3f}, {verdict} the limit {LIMITS[name]:g}")
    return 1 if wrong else 0


def written(folder: Path, name: str, runs: int, cycles: int) -> str:
    """Write an experiment file."""
    path = folder / f"{name}.toml"
    path.write_text(EXPERIMENT.format(runs=runs, cycles=cycles))
    return str(path)


def processor_seconds(*words: str, output: Path | None = None) -> float:
    """Run a command and give the processor time of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(output or os.devnull, "wb") as file:
        subprocess.run(words, check=True, stdout=file)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def planning(command: str, folder: Path) -> float:
    """Plan 100,000 points; give the seconds."""
    file = written(folder, "plan", 100_000, 1000)
    return processor_seconds(command, "run", file, "--out", str(folder / "plan"), "--plan")


def memory_of_client(command: str, folder: Path) -> float:
    """Have Dask begin with 100,000 points, and give the most memory that the client's process has had, MB."""
    file = written(folder, "many", 100_000, 1000)
    words = [command, "run", file, "--out", str(folder / "many"), "--executor", "dask", "--jobs", "2"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 180
    # By then a thousand points have come back.
    while len(os.listdir(folder / "many/runs") if (folder / "many/runs").exists() else []) < 6000 and time.monotonic() < end:
        time.sleep(0.5)
    status = Path(f"/proc/{process.pid}/status").read_text()
    process.send_signal(signal.SIGTERM)
    process.wait()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024 / 1e6


def overhead(command: str, folder: Path, points: int, seconds: float) -> float:
    """Give the processor time of points by Dask over that by one process."""
    trial = written(folder, "trial", 20, 10_000)
    processor_seconds(command, "run", trial, "--out", str(folder / "trial"), "--jobs", "1")
    rows = json.loads((folder / "trial/runs.json").read_text())["runs"]
    cycles = round(10_000 * seconds / (sum(row["cpu_seconds"] for row in rows) / len(rows)))
    file = written(folder, "points", points, cycles)
    local = processor_seconds(command, "run", file, "--out", str(folder / "local"), "--jobs", "2")
    dask = processor_seconds(command, "run", file, "--out", str(folder / "dask"), "--executor", "dask", "--jobs", "2")
    print(f"{points} points of about {seconds:g} s: local {local:.1f} s, Dask {dask:.1f} s of processor time")
    return dask / local


if __name__ == "__main__":
    sys.exit(main())
