#!/usr/bin/env python3
"""Counts how often the 95 % confidence intervals of runs that converged hold the true mean.

Each case is run with 200 seeds to a precision of 5 %. A rule that is right covers the true mean in 95 of 100 runs; one that stops at lucky
moments, or takes correlated latencies for independent ones, covers it less often, and one that is too cautious wastes cycles. The true
mean comes from a formula where there is one: a source queue before a free way (Geo/D/1, Takagi 1993), else from 24 runs of other seeds to a
fifth of the precision, whose own error is a fifteenth of an interval.

Cases that have no mean, or none that a run of the given length can see, must not converge at all: a hot spot offered 1.02 of what it takes,
bursts of a million cycles.

The share that 200 runs give has a standard error of 0.014: where intervals hold the mean in 96 of 100 runs, it lies above 0.98 in one of
twenty cases. So a case whose share lies outside of the limits is run again with 1,000 other seeds, which decide.

Prints a line for each case. Exit status: 0, or 1 if a coverage lies outside 0.90 to 0.98, or something converged that has not.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

PRECISION = 0.05
SEEDS = 200
#: Seeds that decide where the first ones lie outside of the limits.
DECIDING_SEEDS = 1000
LIMITS = (0.90, 0.98)
#: Runs for a true mean without a formula: how many, and how much finer.
REFERENCE_SEEDS = 24
FINER = 5

MESH = 'topology = "mesh"\ndimensions = [4, 4]'
#: Two terminals that face each other: behind its queue nothing hinders a source.
PAIR = 'topology = "full-mesh"\nrouters = 2\nconcentration = 1'

EXPERIMENT = """[network]
{network}
[routing]
algorithm = "{routing}"
[router]
virtual_channels = 4
buffer_flits = 16
[traffic]
{traffic}
[measure]
precision = {precision}
max_cycles = {max_cycles}
[sweep]
"measure.seed" = {{ from = {first}, to = {last}, step = 1 }}
"""

UNIFORM = 'pattern = "uniform"\n'
MIXED = "packet_flits = [{ flits = 1, weight = 0.9 }, { flits = 20, weight = 0.1 }]\n"
ON_OFF = 'process = "on-off"\nalpha = 0.01\nbeta = 0.02\n'
HOTSPOT = 'pattern = "hotspot"\nterminals = [5]\nweights = [1.0]\n'

#: Name: network, routing, traffic.
CASES = {
    "queue, 0.3 of its capacity": (PAIR, "minimal", UNIFORM + "packet_flits = 5\nload = 0.3"),
    "queue, 0.8 of its capacity": (PAIR, "minimal", UNIFORM + "packet_flits = 5\nload = 0.8"),
    "bernoulli, far": (MESH, "dimension-order", UNIFORM + "packet_flits = 5\nload = 0.1"),
    "bernoulli, near": (MESH, "dimension-order", UNIFORM + "packet_flits = 5\nload = 0.55"),
    "on-off, far": (MESH, "dimension-order", UNIFORM + ON_OFF + "packet_flits = 5\nload = 0.1"),
    "on-off, near": (MESH, "dimension-order", UNIFORM + ON_OFF + "packet_flits = 5\nload = 0.4"),
    "periodic, far": (MESH, "dimension-order", 'pattern = "transpose"\nprocess = "periodic"\npacket_flits = 5\nload = 0.1'),
    "periodic, near": (MESH, "dimension-order", 'pattern = "transpose"\nprocess = "periodic"\npacket_flits = 5\nload = 0.25'),
    "mixed sizes, far": (MESH, "dimension-order", UNIFORM + MIXED + "load = 0.1"),
    "mixed sizes, near": (MESH, "dimension-order", UNIFORM + MIXED + "load = 0.4"),
    "hot spot, far": (MESH, "dimension-order", HOTSPOT + "packet_flits = 5\nload = 0.02"),
    "hot spot, near": (MESH, "dimension-order", HOTSPOT + "packet_flits = 5\nload = 0.053"),
}

#: What must not converge within a million cycles, in 20 runs.
NEVER = {
    "hot spot, 1.02 of its capacity": (MESH, "dimension-order", HOTSPOT + "packet_flits = 5\nload = 0.068"),
    "bursts of a million cycles": (
        MESH,
        "dimension-order",
        UNIFORM + 'process = "on-off"\nalpha = 1e-7\nbeta = 1e-6\npacket_flits = 5\nload = 0.02',
    ),
}


def queue(load: float, flits: int) -> float:
    """Mean wait in a Geo/D/1 queue in cycles, beyond what a packet takes alone."""
    return load / flits * flits * (flits - 1) / (2 * (1 - load))


class Study:
    """Runs experiments in a folder."""

    def __init__(self, kasuri: str, folder: pathlib.Path, jobs: int) -> None:
        self.kasuri, self.folder, self.jobs = kasuri, folder, jobs

    def run(self, case: tuple[str, str, str], seeds: range, precision: float, max_cycles: int) -> list[dict[str, Any]]:
        """The rows of a case, one for each seed."""
        network, routing, traffic = case
        first, last = seeds[0], seeds[-1]
        text = EXPERIMENT.format(
            network=network, routing=routing, traffic=traffic, precision=precision, max_cycles=max_cycles, first=first, last=last
        )
        file = self.folder / "case.toml"
        file.write_text(text)
        command = [self.kasuri, "run", str(file), "--out", str(self.folder / "runs"), "--format", "json", "--jobs", str(self.jobs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        rows: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
        return rows

    def truth(self, name: str, case: tuple[str, str, str], limit: int) -> float:
        """The true mean packet latency of a case."""
        if name.startswith("queue"):
            load = float(case[2].rsplit("=", 1)[1])
            alone = self.run((case[0], case[1], case[2].replace(f"load = {load}", "load = 0.0001")), range(1, 2), 0.5, 100_000_000)
            # At a ten-thousandth of the capacity nobody waits: every packet takes the least time.
            return float(alone[0]["packet_latency_min"]) + queue(load, 5)
        rows = self.run(case, range(10_001, 10_001 + REFERENCE_SEEDS), PRECISION / FINER, limit)
        return sum(row["packet_latency_mean"] for row in rows) / len(rows)

    def covers(self, name: str, case: tuple[str, str, str], true: float, seeds: range) -> bool:
        """Count the intervals that hold the true mean, print the share, and judge it."""
        rows = self.run(case, seeds, PRECISION, 5_000_000)
        converged = [row for row in rows if row["status"] == "converged"]
        holds = [abs(row["packet_latency_mean"] - true) <= row["packet_latency_ci95"] for row in converged]
        share = sum(holds) / max(1, len(holds))
        cycles = sorted(row["cycles"] for row in rows)[len(rows) // 2]
        fine = LIMITS[0] <= share <= LIMITS[1] and 2 * len(converged) >= len(rows)
        print(f"{name:32} {true:10.2f} {len(converged):6}/{len(rows)} {share:8.3f} {cycles:10}{'' if fine else '  outside'}", flush=True)
        return fine


def main() -> int:
    """Runs all cases. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kasuri", default=".venv/bin/kasuri", help="the command")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each case")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--only", default="", help="only the cases whose names hold this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="threads")
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        study = Study(arguments.kasuri, pathlib.Path(folder), arguments.jobs)
        print(f"{'case':32} {'true mean':>10} {'converged':>10} {'covered':>8} {'cycles':>10}")
        for name, case in CASES.items():
            if arguments.only not in name:
                continue
            true = study.truth(name, case, 20_000_000)
            seeds = range(arguments.first, arguments.first + arguments.seeds)
            if not (fine := study.covers(name, case, true, seeds)):
                fine = study.covers(name, case, true, range(seeds.stop, seeds.stop + DECIDING_SEEDS))
            failed |= not fine
        for name, case in NEVER.items():
            if arguments.only not in name:
                continue
            rows = study.run(case, range(1, 21), 0.1, 1_000_000)
            converged = [row for row in rows if row["status"] == "converged"]
            failed |= bool(converged)
            print(f"{name:32} {'none':>10} {len(converged):6}/{len(rows)}{'  must not converge' if converged else ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
