#!/usr/bin/env python3
"""Measures `kasuri astra`, by ASTRA-sim's rules and as flows, against the figures of ASTRA-sim in tests/data/astra/results/speed.csv.

Those are the processor time (user) and the peak resident size of ASTRA-sim's process on two shared cores; ours are the processor time (user
and system) and the peak resident size of the whole process, the median of several runs, on the machine at hand. Must: a row that takes
ASTRA-sim more than 0.1 s is 10 times faster, no row slower by more than 10 ms; the all-to-all of 1,024 NPUs with contention on a switch
50 times faster with a tenth of the memory, that of 2,048 under 1 s and 200 MB. The same must of those all-to-alls and that of 1,024 on
a ring by the flow engine, which shares links among messages in place of letting them wait. Last comes a trace of a training loop
(training.py) of a million nodes over 64 ranks, read and run by the flow engine in under 20 s and 2 GB.

Only the standard library is needed. Exit status: 0 every "must" met, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from speed import measure, watched_peak  # noqa: E402  # beside this file
from training import one_collective, write  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "tests/data/astra"
OPERATIONS = {"all_reduce": 0, "all_gather": 2, "all_to_all": 6, "reduce_scatter": 7}


def main() -> int:
    """Measure, print the table and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", required=True, help="the command, compiled for speed")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row")
    arguments = parser.parse_args()
    with (DATA / "results/speed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    met = True
    print(
        f"{'collective':12}{'backend':9}{'network':24}{'system':20}{'model':6}{'ASTRA-sim':>10}{'Kasuri':>9}{'ratio':>8}{'MB':>8}{'Kasuri':>8}"
    )
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        for row in rows:
            name, npus = row["workload"], int(row["npus"])
            if not (folder / f"{name}.0.et").exists():
                trace = one_collective(OPERATIONS[row["case"]], int(name.rsplit("_", 1)[1]))
                for npu in range(npus):
                    (folder / f"{name}.{npu}.et").write_bytes(trace)
            command = [arguments.kasuri, "astra", "--workload", str(folder / name), "--format", "json"]
            command += ["--system", str(DATA / "configs" / f"{row['system']}.json")]
            command += ["--network", str(DATA / "configs" / f"{row['network']}.yml")]
            large = row["case"] == "all_to_all" and row["backend"] == "aware" and npus >= 1024
            models = [("rules", ["--astra-rules", "--backend", row["backend"]])] + ([("flow", ["--engine", "flow"])] if large else [])
            for model, words in models:
                met &= compare(command + words, row, model, large, arguments.runs, folder)
        met &= training(arguments.kasuri, folder)
    return 0 if met else 1


def training(kasuri: str, folder: pathlib.Path) -> bool:
    """Measure the trace of a million nodes, print its row, and say whether its must is met."""
    (folder / "training").mkdir()
    nodes = write(folder / "training", 1_000_000)
    command = [kasuri, "astra", "--workload", str(folder / "training/training"), "--system", str(folder / "training/system.json")]
    command += ["--network", str(folder / "training/network.yml"), "--groups", str(folder / "training/groups.json")]
    seconds = measure([*command, "--engine", "flow"], folder, (0,)).seconds
    megabytes = watched_peak(lambda: measure([*command, "--engine", "flow"], folder, (0,), memory=True)) / 1e6
    must = seconds < 20 and megabytes < 2000
    print(f"training loop, {nodes:,} nodes over 64 ranks, flow: {seconds:.1f} s, {megabytes:.0f} MB{'' if must else '  MUST NOT MET'}")
    return must


def compare(command: list[str], row: dict[str, str], model: str, large: bool, runs: int, folder: pathlib.Path) -> bool:
    """Measure a row, print it, and say whether its musts are met."""
    used = [measure(command, folder, (0,)) for _ in range(runs)]
    seconds = statistics.median(usage.seconds for usage in used)
    # What is measured of the memory takes time itself.
    megabytes = watched_peak(lambda: measure(command, folder, (0,), memory=True)) / 1e6
    theirs = float(row["user_s"] or 100)
    must = seconds <= theirs + 0.01 and (theirs <= 0.1 or theirs >= 10 * seconds)
    if large:
        must = must and theirs >= 50 * seconds and megabytes <= 95
        must = must and (int(row["npus"]) < 2048 or (seconds < 1 and megabytes < 200))
    limit = ">" if row["status"] == "timeout" else ""
    memory = row["maxrss_mb"] or "-"
    print(
        f"{row['case']:12}{row['backend']:9}{row['network']:24}{row['system']:20}{model:6}{limit + format(theirs, '.2f'):>10}{seconds:9.3f}"
        f"{theirs / max(seconds, 0.001):8.1f}{memory:>8}{megabytes:8.1f}{'' if must else '  MUST NOT MET'}",
        flush=True,
    )
    return must


if __name__ == "__main__":
    sys.exit(main())
