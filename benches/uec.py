#!/usr/bin/env python3
"""Measures `kasuri uec` against the figures of UEC htsim in tests/data/uec/speed.csv.

A permutation of 1 MB messages on a leaf-spine of 400 Gbit/s, 128 path numbers a flow; the permutations are drawn here. Theirs
are the processor
time and the peak resident size of htsim's process on two shared cores; ours the same of the whole process, the median of several runs, on
the machine at hand. Must: no row slower by more than 10 ms; 8,192 hosts in 10 s and 300 MB.

Only the standard library is needed. Exit status: 0 every "must" met, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import random
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from speed import measure, watched_peak  # noqa: E402  # beside this file

DATA = pathlib.Path(__file__).resolve().parents[1] / "tests/data/uec"


def permutation(hosts: int) -> str:
    """A connection matrix in which every host sends 1 MB to another and receives 1 MB."""
    order = list(range(hosts))
    random.Random(hosts).shuffle(order)
    lines = [f"Nodes {hosts}", f"Connections {hosts}"]
    lines += [f"{order[at - 1]}->{host} id {at + 1} start 0 size 1000000" for at, host in enumerate(order)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, print the table and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", required=True, help="the command, compiled for speed")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row")
    arguments = parser.parse_args()
    with (DATA / "speed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    met = True
    print(f"{'hosts':>6}{'packets':>10}{'htsim, s':>10}{'Kasuri, s':>11}{'ratio':>8}{'htsim, MB':>11}{'Kasuri, MB':>12}")
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        for row in rows:
            hosts = int(row["hosts"])
            matrix = folder / f"{hosts}.cm"
            matrix.write_text(permutation(hosts))
            topology = next(path for path in DATA.glob(f"topologies/*/{row['topology']}.topo"))
            command = [arguments.kasuri, "uec", "--topo", str(topology), "--cm", str(matrix), "--paths", "128", "--format", "json"]
            seconds = statistics.median(measure(command, folder, (0,)).seconds for _ in range(arguments.runs))
            # What is measured of the memory takes time itself.
            megabytes = watched_peak(lambda command=command: measure(command, folder, (0,), memory=True)) / 1e6
            theirs = float(row["user_s"]) + float(row["sys_s"])
            must = seconds <= theirs + 0.01 and (hosts < 8192 or (seconds <= 10 and megabytes <= 300))
            met = met and must
            print(
                f"{hosts:6}{row['new_packets']:>10}{theirs:10.3f}{seconds:11.3f}{theirs / max(seconds, 0.001):8.1f}{row['maxrss_mb']:>11}"
                f"{megabytes:12.1f}{'' if must else '  MUST NOT MET'}",
                flush=True,
            )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
