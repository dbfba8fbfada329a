#!/usr/bin/env python3
"""Measures what threads are worth for one simulation, and how the cost of a flit grows with the network.

Each case is one experiment that runs on one thread and on several, in turn. The figure is the time that the whole process takes, the median
of several runs; the two must have the same result, bit for bit. With one thread the flits moved per second in large trees are
set against those of a small one.

Only the standard library is needed. Exit status: 0 every "must" met (of those that hold for this number of threads), 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

TREE = """[network]
topology = "fat-tree"
up = {k}
down = {k}
levels = 3
channel_latency = {latency}
[routing]
algorithm = "nca"
up_port = "random"
[router]
virtual_channels = 2
buffer_flits = {buffer}
"""

BATCH = """[traffic]
pattern = "uniform"
process = "batch"
batch_packets = 10
packet_flits = 40
"""

OPEN = """[traffic]
pattern = "uniform"
load = {load}
packet_flits = 8
[measure]
warmup = {warmup}
cycles = {cycles}
max_cycles = {most}
"""

TORUS = """[network]
topology = "torus"
dimensions = [32, 32, 32]
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 2
buffer_flits = 16
"""

DRAGONFLY = """[network]
topology = "dragonfly"
terminals_per_router = 22
routers_per_group = 44
global_channels = 22
[routing]
algorithm = "minimal"
[router]
virtual_channels = 4
buffer_flits = 16
"""

#: Who sends to whom: of 1,728 terminals each of the first half ten times as much as each of the second.
MATRIX_FILE = "halves.txt"
HALF = 864
HALVES = f"""[traffic]
pattern = "matrix"
path = "{MATRIX_FILE}"
normalise = false
load = 0.6
packet_flits = 8
[measure]
warmup = 1000
cycles = 20000
max_cycles = 21000
"""

#: 16 MiB in flits of 64 bytes; the first cycles of the whole operation.
ALLREDUCE = """[workload]
collective = "allreduce"
schedule = "{schedule}"
ranks = {ranks}
message_flits = 262144
packet_flits = 8
[measure]
max_cycles = 3000
"""


def tree(k: int, *, latency: int = 1, buffer: int = 16) -> str:
    """Describe a k-ary 3-tree."""
    return TREE.format(k=k, latency=latency, buffer=buffer)


def allreduce(schedule: str, ranks: int = 4096) -> str:
    """Describe an all-reduce of so many ranks."""
    return ALLREDUCE.format(schedule=schedule, ranks=ranks)


def halves() -> str:
    """Write the matrix of `HALVES`: each half sends to itself."""
    rows = [" ".join(["10"] * HALF + ["0"] * HALF), " ".join(["0"] * HALF + ["1"] * HALF)]
    return "\n".join(row for row in rows for _ in range(HALF))


def open_traffic(load: float, cycles: int, warmup: int = 0) -> str:
    """Describe uniform traffic that is measured for so many cycles, and not waited for."""
    return OPEN.format(load=load, cycles=cycles, warmup=warmup, most=warmup + cycles)


@dataclass(frozen=True)
class Case:
    """An experiment, how many times as fast two threads must make it, and at most how many seconds and MB it may take on them."""

    title: str
    text: str
    must: float | None
    seconds: float | None = None
    megabytes: float | None = None


CASES = [
    Case("36-ary 3-tree, 46,656 terminals, batch of 10 x 40 flits", tree(36, buffer=10) + BATCH, 1.5),
    Case("64-ary 3-tree, 262,144 terminals, uniform 0.3, 500 cycles", tree(64) + open_traffic(0.3, 500), 1.7),
    Case("32x32x32 torus, uniform 0.2, 1,000 cycles", TORUS + open_traffic(0.2, 1000), 1.7),
    Case("16-ary 3-tree, allreduce of 16 MiB by ring, 3,000 cycles", tree(16) + allreduce("ring"), 1.3),
    Case("the same by recursive halving", tree(16) + allreduce("rabenseifner"), 1.3),
    Case("24-ary 3-tree, the same by ring on a quarter of it", tree(24) + allreduce("ring", ranks=3456), None),
    Case("12-ary 3-tree, one half sends ten times as much as the other", tree(12) + HALVES, None),
    Case("100-ary 3-tree, 10^6 terminals, uniform 0.2, 1,000 cycles", tree(100) + open_traffic(0.2, 1000, 100), 1.7, seconds=90),
    Case("dragonfly, 938,212 terminals, uniform 0.1, 200 cycles", DRAGONFLY + open_traffic(0.1, 200), None, megabytes=4000),
]

#: Flits that cross a router, per second and on one thread, of a 100-ary tree over those of a 16-ary one: channels' latency and the must.
GROWTH = [(1, 1 / 3.5), (20, 1 / 2)]

#: Runs of the 16-ary tree beside each of the 100-ary one: they take half a second.
SHORT_RUNS = 7


@dataclass(frozen=True)
class Ran:
    """What a run took, and what it gave."""

    seconds: float
    megabytes: float
    flit_hops: float
    cpu_seconds: float
    result: object


#: Columns that tell of the machine.
ASIDE = ("wall_seconds", "cpu_seconds", "peak_memory_mib")


def run(kasuri: str, text: str, threads: int, folder: pathlib.Path) -> Ran:
    """Run an experiment on so many threads."""
    (folder / "case.toml").write_text(text)
    if MATRIX_FILE in text:
        (folder / MATRIX_FILE).write_text(halves())
    out = folder / "out"
    words = [kasuri, "run", str(folder / "case.toml"), "--threads", str(threads), "--jobs", "1", "--format", "json", "--out", str(out)]
    begin = time.perf_counter()
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if answer.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)} ended with status {answer.returncode}:\n{answer.stderr[-2000:]}")
    row = json.loads(answer.stdout)["runs"][0]
    vectors = [path.read_bytes() for path in sorted((out / "runs").glob("*.npy"))]
    result = ({name: value for name, value in row.items() if name not in ASIDE}, vectors)
    shutil.rmtree(out)
    return Ran(seconds, row["peak_memory_mib"] * 1.048576, row["flit_hops"], row["cpu_seconds"], result)


def speed(ran: Ran) -> float:
    """How many flits cross routers in a second of processor time, millions."""
    return ran.flit_hops / ran.cpu_seconds / 1e6


def run_apart(kasuri: str, text: str, copies: int, folder: pathlib.Path) -> float:
    """Run an experiment in so many processes of one thread, side by side. Return the seconds until the last has ended."""
    folders = [folder / str(copy) for copy in range(copies)]
    for own in folders:
        own.mkdir(exist_ok=True)
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(copies) as pool:
        list(pool.map(lambda own: run(kasuri, text, 1, own), folders))
    return time.perf_counter() - begin


def speed_up(kasuri: str, threads: int, runs: int, folder: pathlib.Path, *, apart: bool) -> bool:
    """Print the table of threads, with what as many separate runs gain if `apart`. Are all musts met?"""
    heading = f"{'seconds of the whole process (median)':62} {'1 thread':>9} {f'{threads} threads':>10} {'ratio':>6} {'must':>5} {'MB':>6}"
    print(heading + f" {'apart':>6}" * apart)
    good = True
    for case in CASES:
        alone, together, separate = [], [], []
        for _ in range(runs):
            alone.append(run(kasuri, case.text, 1, folder))
            together.append(run(kasuri, case.text, threads, folder))
            if apart:
                separate.append(run_apart(kasuri, case.text, threads, folder))
        if any(ran.result != alone[0].result for ran in alone + together):
            raise SystemExit(f"{case.title}: {threads} threads give another result than one")
        one, many = (statistics.median(ran.seconds for ran in all_of) for all_of in (alone, together))
        megabytes = max(ran.megabytes for ran in together)
        must = case.must if threads == 2 else None
        met = (must is None or one / many >= must) and many <= (case.seconds or many) and megabytes <= (case.megabytes or megabytes)
        good &= met
        asked = "" if must is None else f"{must:.1f}"
        machine = f" {threads * one / statistics.median(separate):6.2f}" if apart else ""
        print(
            f"{case.title:62} {one:9.2f} {many:10.2f} {one / many:6.2f} {asked:>5} {megabytes:6.0f}{machine}",
            "" if met else " MUST NOT MET",
            flush=True,
        )
    return good


def growth(kasuri: str, runs: int, folder: pathlib.Path) -> bool:
    """Print how the cost of a flit grows; are all musts met?

    The speed of a shared machine varies from minute to minute, so both networks take turns, and the ratio is the median of those of
    neighbours.
    """
    print(f"\n{'flits across routers, millions per second, 1 thread':62} {'16-ary':>9} {'100-ary':>10} {'ratio':>6} {'must':>5}")
    good = True
    for latency, must in GROWTH:
        small, large = (
            tree(k, latency=latency, buffer=16 if latency == 1 else 64) + open_traffic(0.2, cycles, 100)
            for k, cycles in ((16, 4000), (100, 1000))
        )
        pairs = []
        for _ in range(runs):
            of_small = statistics.median(speed(run(kasuri, small, 1, folder)) for _ in range(SHORT_RUNS))
            pairs.append((of_small, speed(run(kasuri, large, 1, folder))))
        of_small, of_large = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(of_large / of_small for of_small, of_large in pairs)
        good &= ratio >= must
        title = f"k-ary 3-trees, uniform 0.2, channels of {latency} cycles"
        print(
            f"{title:62} {of_small:9.1f} {of_large:10.1f} {ratio:6.2f} {must:5.2f}  {'' if ratio >= must else 'MUST NOT MET'}",
            flush=True,
        )
    return good


def main() -> int:
    """Measure and say whether all musts are met."""
    parser = argparse.ArgumentParser(description="Measures what threads are worth for one simulation.")
    parser.add_argument("--kasuri", required=True, help="the kasuri command, built for speed")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads (default: one for each core)")
    parser.add_argument("--runs", type=int, default=3, help="runs a case and number of threads (3)")
    parser.add_argument(
        "--apart",
        action="store_true",
        help="also measure what as many runs of one thread gain side by side: they share the machine's memory and nothing else",
    )
    arguments = parser.parse_args()
    if shutil.which(arguments.kasuri) is None:
        parser.error(f"--kasuri {arguments.kasuri}: no such program; `cargo build --release --package kasuri` makes target/release/kasuri")
    if arguments.threads < 1 or arguments.runs < 1:
        parser.error(f"--threads {arguments.threads} --runs {arguments.runs}: both must be at least 1")
    with tempfile.TemporaryDirectory(prefix="kasuri-bench-") as folder:
        good = speed_up(arguments.kasuri, arguments.threads, arguments.runs, pathlib.Path(folder), apart=arguments.apart)
        good &= growth(arguments.kasuri, arguments.runs, pathlib.Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
