#!/usr/bin/env python3
"""Measures the processor time of both programs on the configurations that BookSim 2 ships.

Each configuration that runs in both is run as it is, by BookSim's rules in both programs, so that both simulate about the same
cycles. The figure is the processor time (user and system) of the whole process. The speed of a shared machine varies from minute to
minute, so the programs take turns, and the ratio is the median of those of neighbouring runs; configurations that take BookSim long
run in it once.

Only the standard library is needed. Exit status: 0 the median ratio is at least 25 (it should be 50), 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "validation" / "booksim"))

from beside import run_booksim, run_kasuri
from shipped import shipped

#: How many times less processor time Kasuri must take, in the median; 50 is what it should be.
MUST = 25.0

#: Configurations that take BookSim longer are run once, seconds.
LONG = 20.0


def measure(booksim: pathlib.Path, kasuri: pathlib.Path, file: pathlib.Path, runs: int, seconds: float) -> list[tuple[float, float]]:
    """The processor times of both programs, in turns; none if one of them does not run the configuration."""
    times: list[tuple[float, float]] = []
    while len(times) < runs:
        ours = run_kasuri(kasuri, file, ["seed=1"], seconds)
        if ours.status not in ("ok", "unstable"):
            return []
        theirs = run_booksim(booksim, file, ["seed=1"], seconds)
        if theirs.status not in ("ok", "unstable"):
            return []
        times.append((theirs.cpu_seconds, ours.cpu_seconds))
        if theirs.cpu_seconds > LONG:
            break
    return times


def main() -> int:
    """Prints both programs' times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kasuri", type=pathlib.Path, default=pathlib.Path("kasuri"), help="our program")
    parser.add_argument(
        "--booksim", type=pathlib.Path, default=os.environ.get("BOOKSIM"), help="BookSim's program in its repository (default: $BOOKSIM)"
    )
    parser.add_argument("--runs", type=int, default=5, help="runs of each program")
    parser.add_argument("--seconds", type=float, default=1800.0, help="limit of one run")
    options = parser.parse_args()
    if options.booksim is None or not pathlib.Path(options.booksim).is_file():
        parser.error("set BOOKSIM to the program that BookSim's `make` builds in its folder src")
    booksim = pathlib.Path(options.booksim).resolve()
    ratios = []
    print(f"{'configuration of BookSim':44}  {'BookSim':>10}  {'Kasuri':>10}  {'ratio':>7}")
    for file in shipped(booksim):
        name = str(file.relative_to(booksim.parent.parent))
        times = measure(booksim, options.kasuri.resolve(), file, options.runs, options.seconds)
        if not times:
            continue
        theirs, own = (statistics.median(column) for column in zip(*times, strict=True))
        ratios.append(statistics.median(theirs / ours for theirs, ours in times))
        print(f"{name:44}  {theirs:8.2f} s  {own:8.4f} s  {ratios[-1]:6.0f}x", flush=True)
    if not ratios:
        print("no configuration runs in both programs")
        return 1
    median = statistics.median(ratios)
    good = median >= MUST
    print(f"median ratio over {len(ratios)} configurations: {median:.0f}x; must be {MUST:.0f}x: {'met' if good else 'NOT MET'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
