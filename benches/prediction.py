#!/usr/bin/env python3
"""Measures what prediction costs: the processor time of a run with each predictor over that of the same run without.

Each case is an experiment of the flit engine on one thread. Runs with and without prediction alternate; the figure is the median of the
ratios of their processor times (user and system) in one round, less those of a run of a single cycle, which is the program's start. A
machine whose speed changes between rounds changes both sides of a ratio.

Only the standard library is needed. Exit status: 0 every "must" met, 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

MUST = 1.5

TREE = 'topology = "fat-tree"\nup = 4\ndown = 4\nlevels = 3', 'algorithm = "nca"\nup_port = "random"'
MESH = 'topology = "mesh"\ndimensions = [8, 8]', 'algorithm = "dimension-order"'

CASES = [("(4, 4, 3) tree", TREE, 0.1), ("(4, 4, 3) tree", TREE, 0.3), ("8x8 mesh", MESH, 0.1), ("8x8 mesh", MESH, 0.25)]

OF_TREES = ["static-straight", "up-priority", "latest-port", "finite-context", "sampled-pattern", "oracle"]
OF_MESHES = ["static-straight", "static-xy", "latest-port", "finite-context", "sampled-pattern", "oracle"]

EXPERIMENT = """engine = "flit"
[network]
{network}
[routing]
{routing}
[router]
virtual_channels = 2
buffer_flits = 4
pipeline = ["RC", "VSA", "ST"]
predictor = "{predictor}"
[traffic]
pattern = "uniform"
load = {load}
packet_flits = 5
[measure]
warmup = 1
cycles = {cycles}
"""


def run(kasuri: str, folder: pathlib.Path, text: str) -> float:
    """Runs an experiment anew and returns its processor time in seconds."""
    (folder / "case.toml").write_text(text)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command = [kasuri, "run", str(folder / "case.toml"), "--jobs", "1", "--format", "json", "--out", out]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        message = process.stderr.read() if process.stderr else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}:\n{message}")
    return used.ru_utime + used.ru_stime


def ratios(kasuri: str, folder: pathlib.Path, case: tuple[str, tuple[str, str], float], cycles: int, runs: int) -> dict[str, float]:
    """The cost of each predictor over that of none."""
    _, (network, routing), load = case

    def seconds(predictor: str, cycles: int) -> float:
        return run(kasuri, folder, EXPERIMENT.format(network=network, routing=routing, load=load, predictor=predictor, cycles=cycles))

    predictors = OF_TREES if (network, routing) == TREE else OF_MESHES
    start = statistics.median(seconds("none", 1) for _ in range(runs))
    costs: dict[str, list[float]] = {}
    for _ in range(runs):
        without = seconds("none", cycles) - start
        for predictor in predictors:
            costs.setdefault(predictor, []).append((seconds(predictor, cycles) - start) / without)
    return {predictor: statistics.median(of) for predictor, of in costs.items()}


def main() -> int:
    """Measures and says whether all musts are met."""
    parser = argparse.ArgumentParser(description="Measures the processor time that prediction costs.")
    parser.add_argument("--kasuri", required=True, help="the kasuri command, built for speed")
    parser.add_argument("--runs", type=int, default=15, help="rounds (15)")
    parser.add_argument("--cycles", type=int, default=40_000, help="cycles of a run (40000)")
    arguments = parser.parse_args()
    good = True
    print(f"\n{'processor time over that without prediction':58} {'ratio':>9} {'must':>6}")
    with tempfile.TemporaryDirectory(prefix="kasuri-bench-") as folder:
        for case in CASES:
            for predictor, ratio in ratios(arguments.kasuri, pathlib.Path(folder), case, arguments.cycles, arguments.runs).items():
                good &= ratio <= MUST
                verdict = "must met" if ratio <= MUST else "MUST NOT MET"
                print(f"{f'{case[0]}, uniform {case[2]}, {predictor}':58} {ratio:9.2f} {MUST:6.1f}  {verdict}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
