#!/usr/bin/env python3
"""Measures Kasuri's speed and memory, against BookSim 2 where its program is given.

Each case is a BookSim configuration that both programs run, in turn, on one thread; BookSim's thresholds are set so that both
simulate the same cycles. The figure is the processor time (user and system) of the whole process, the median of several runs.
Memory is the peak resident size of the whole process.

Only the standard library is needed. Exit status: 0 every "must" met (of those that could be measured), 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

#: Processor time of `import kasuri`, most of which is NumPy's, seconds.
IMPORT = 0.3

TREE_BATCH = """topology = fattree; k = {k}; n = 3; routing_function = nca; traffic = uniform;
num_vcs = 2; vc_buf_size = 10; packet_size = 40; sim_type = batch; batch_size = 10; batch_count = 1; injection_rate = 1.0;
"""

MESH = """topology = mesh; k = {k}; n = 2; routing_function = dor; traffic = uniform; num_vcs = 4; vc_buf_size = 8;
packet_size = 5; injection_rate_uses_flits = 1; injection_rate = {load}; sim_type = latency;
sample_period = {period}; warmup_periods = 1; max_samples = {samples}; latency_thres = -1.0;
stopping_thres = 0.0; acc_stopping_thres = 0.0; // a change is always above 0: all sample periods are run
"""


@dataclass(frozen=True)
class Case:
    """A configuration and how many times faster than BookSim it must and should run."""

    title: str
    configuration: str
    must: float
    aim: float


CASES = [
    Case("16-ary 3-tree, 4096 terminals, batch of 10 x 40 flits", TREE_BATCH.format(k=16), 150, 500),
    Case("8x8 mesh, uniform 0.3, 100,000 cycles", MESH.format(k=8, load=0.3, period=10_000, samples=10), 30, 80),
    Case("32x32 mesh, uniform 0.1, 4,000 cycles", MESH.format(k=32, load=0.1, period=1_000, samples=4), 100, 300),
    Case("8x8 mesh, uniform 0.001, 10^7 cycles", MESH.format(k=8, load=0.001, period=1_000_000, samples=10), 100, 1000),
]


@dataclass(frozen=True)
class Usage:
    """What a process used: processor time in seconds, peak resident size in bytes (0 if it was not watched)."""

    seconds: float
    peak: int


def watch_memory(pid: int) -> int:
    """Waits until a process has ended, without collecting it, and returns its peak resident size in bytes.

    The kernel's own account (ru_maxrss) begins with the size of the process that forked it, which is this one and larger.
    """
    peak = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        peak = max([peak, *(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))])
    return peak


def measure(command: list[str], folder: pathlib.Path, statuses: tuple[int, ...], *, memory: bool = False) -> Usage:
    """Runs a command to its end and returns what it used. Fails if it ends with another status."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        peak = watch_memory(process.pid) if memory else 0
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in statuses:
        text = (folder / "output").read_text(errors="replace")
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}:\n{text[-2000:]}")
    return Usage(used.ru_utime + used.ru_stime, peak)


def watched_peak(run: Callable[[], Usage]) -> int:
    """The peak resident size of a process that is run and watched, bytes: run again where it was over before anybody had looked at it."""
    peak = 0
    while peak == 0:
        peak = run().peak
    return peak


class Bench:
    """The programs, and a folder for their files."""

    def __init__(self, kasuri: str, booksim: str | None, folder: pathlib.Path):
        self.kasuri, self.booksim, self.folder = kasuri, booksim, folder
        self.stored = 0

    def file(self, configuration: str) -> str:
        """Writes a configuration to its file."""
        path = self.folder / "case.cfg"
        path.write_text(configuration)
        return str(path)

    def run_kasuri(self, configuration: str, *, memory: bool = False) -> Usage:
        """What a run of ours takes."""
        # A new folder for results each time: what is stored there would not be computed again.
        self.stored += 1
        out = str(self.folder / f"out-{self.stored}")
        command = [
            self.kasuri,
            "booksim",
            self.file(configuration),
            "seed=1",
            "--booksim-rules",
            "--format",
            "json",
            "--jobs",
            "1",
            "--out",
            out,
        ]
        return measure(command, self.folder, (0,), memory=memory)

    def run_booksim(self, configuration: str) -> Usage:
        """What a run of BookSim takes."""
        assert self.booksim is not None
        # BookSim ends with 255 where its run converged or was a batch, with 0 where not.
        return measure([self.booksim, self.file(configuration), "seed=1"], self.folder, (0, 255))


def speed(bench: Bench, runs: int, booksim_runs: int) -> bool:
    """Prints the table of speeds; are all musts met?"""
    print(f"{'processor time, seconds (median)':58} {'Kasuri':>9} {'BookSim':>9} {'ratio':>7} {'must':>6} {'aim':>6}")
    good = True
    for case in CASES:
        ours, theirs = [], []
        for number in range(max(runs, booksim_runs if bench.booksim else 0)):
            if number < runs:
                ours.append(bench.run_kasuri(case.configuration).seconds)
            if bench.booksim and number < booksim_runs:
                theirs.append(bench.run_booksim(case.configuration).seconds)
        own = statistics.median(ours)
        line = f"{case.title:58} {own:9.4f}"
        if theirs:
            ratio = statistics.median(theirs) / own
            good &= ratio >= case.must
            line += f" {statistics.median(theirs):9.2f} {ratio:7.0f} {case.must:6.0f} {case.aim:6.0f}"
            line += f"  {mark(ratio >= case.must, ratio >= case.aim)}"
        print(line, flush=True)
    return good


def memory(bench: Bench, runs: int) -> bool:
    """Prints the rows that need no BookSim; are all musts met?"""
    print(f"\n{'memory and size':58} {'Kasuri':>9} {'must':>16} {'aim':>7}")
    trees = {k: TREE_BATCH.format(k=k) for k in (4, 16)}
    peak = {
        k: statistics.median(watched_peak(lambda tree=tree: bench.run_kasuri(tree, memory=True)) for _ in range(runs))
        for k, tree in trees.items()
    }
    per_terminal = (peak[16] - peak[4]) / 4096
    rows = [("bytes a terminal: 16-ary 3-tree less 4-ary 3-tree", per_terminal, 3072.0, 1024.0)]
    large = TREE_BATCH.format(k=36)
    # Apart, since watching the memory disturbs the time.
    seconds = statistics.median(bench.run_kasuri(large).seconds for _ in range(runs))
    megabytes = watched_peak(lambda: bench.run_kasuri(large, memory=True)) / 1e6
    rows.append(("36-ary 3-tree (46,656 terminals), same batch, seconds", seconds, 3.0, 1.2))
    rows.append(("the same, whole process, MB", megabytes, 150.0, 150.0))
    version = statistics.median(measure([bench.kasuri, "--version"], bench.folder, (0,)).seconds for _ in range(runs))
    rows.append(("kasuri --version, seconds", version, 0.1, 0.1))
    for title, value, must, aim in rows:
        print(f"{title:58} {value:9.3f} {must:16.1f} {aim:7.1f}  {mark(value < must, value < aim)}")
    return all(value < must for _, value, must, _ in rows)


def importing(runs: int) -> bool:
    """Print the processor time that Python takes for `import kasuri`, the least of several."""
    code = "import time; start = time.process_time(); import kasuri; print(time.process_time() - start)"
    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(runs)]
    print(f"\nimport kasuri: {min(times):.2f} s of processor time, must {IMPORT}{'' if min(times) <= IMPORT else '  MUST NOT MET'}")
    return min(times) <= IMPORT


def mark(must: bool, aim: bool) -> str:
    """Which of the aims is met."""
    return "aim met" if aim else "must met" if must else "MUST NOT MET"


def main() -> int:
    """Measures and says whether all musts are met."""
    parser = argparse.ArgumentParser(description="Measures Kasuri's speed and memory, against BookSim 2 where it is given.")
    parser.add_argument("--kasuri", required=True, help="the kasuri command, built for speed")
    parser.add_argument("--booksim", default=os.environ.get("BOOKSIM"), help="BookSim 2's program, built with -O3 (default: $BOOKSIM)")
    parser.add_argument("--runs", type=int, default=5, help="runs of Kasuri a case (5)")
    parser.add_argument("--booksim-runs", type=int, default=1, help="runs of BookSim a case (1; the whole table takes it some minutes)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kasuri-bench-") as folder:
        bench = Bench(arguments.kasuri, arguments.booksim, pathlib.Path(folder))
        good = speed(bench, arguments.runs, arguments.booksim_runs)
        good &= memory(bench, arguments.runs)
    if importlib.util.find_spec("kasuri"):
        good &= importing(arguments.runs)
    if not arguments.booksim:
        print("\nBOOKSIM=/path/to/booksim adds the ratios.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
