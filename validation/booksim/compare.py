#!/usr/bin/env python3
"""Compares Kasuri with BookSim 2 on tables of BookSim's results.

A reference is a folder of CSV tables, one a suite, one row a run of BookSim with its options and results (see README.md). Each
configuration is rebuilt from its columns, run by ``kasuri booksim --booksim-rules`` with several seeds of our own, and the
means are compared:

* latency against load (``sim_type = latency``, several loads): packet latency, network latency and hops within 2 %, at loads
  up to 85 % of the highest load of the curve at which every run of BookSim ended ``ok``;
* saturation (``throughput``): accepted rate within 3 %;
* a nearly empty network (suite ``c_…``): packet latency, network latency and hops within 0.5 %;
* allocators (suite ``d_…``): within 3 %, and in BookSim's order wherever BookSim's own gap exceeds three standard errors;
* batches (``batch``): completion time within 3 %;
* packets that do not fit their buffers (suite ``f_…``): packet latency, network latency and hops within 2 %; where every run of
  BookSim is unstable, none of ours may converge.

A standard error is that of the difference of the two means. Its variances are pooled over the neighbouring loads of a curve,
and over the rows with the same traffic of a nearly empty network, since three or five seeds alone tell little; where there is
no neighbour, over both simulators. A row is beyond ``n`` when one of its quantities differs by more than ``n`` standard errors
and by more than the percentage. Rows beyond three are run again with more seeds, and those values count. The verdict is good
if no row is then beyond five, at most 1 % of each suite's rows beyond three, and no allocators change order.

Only the standard library is needed. Exit status: 0 all inside, 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent

# Columns that say how BookSim's run went; all others are its options under their own names.
RESULTS = frozenset(
    {
        "config",
        "seed",
        "status",
        "pkt_lat",
        "net_lat",
        "flit_lat",
        "frag",
        "hops",
        "inj_flit_avg",
        "acc_flit_avg",
        "acc_flit_min",
        "acc_flit_max",
        "batch_time",
        "cycles",
        "user_s",
        "maxrss_mb",
    }
)

# BookSim's column and ours.
QUANTITIES = {
    "pkt_lat": "packet_latency_mean",
    "net_lat": "network_latency_mean",
    "hops": "hops_mean",
    "acc_flit_avg": "accepted_throughput_mean",
    "batch_time": "completion_time",
}

LATENCIES = ("pkt_lat", "net_lat", "hops")


@dataclass(frozen=True)
class Kind:
    """A kind of comparison: which quantities, within what part of BookSim's mean, over how many seeds of ours."""

    title: str
    quantities: tuple[str, ...]
    part: float
    seeds: int


CURVE = Kind("latency against load", LATENCIES, 0.02, 5)
SATURATION = Kind("saturation", ("acc_flit_avg",), 0.03, 5)
ZERO_LOAD = Kind("nearly empty network", LATENCIES, 0.005, 10)
ALLOCATORS = Kind("allocators", (), 0.03, 5)
SHALLOW = Kind("packets longer than buffers", LATENCIES, 0.02, 5)
BATCH = Kind("batch completion", ("batch_time",), 0.03, 10)
RERUN_SEEDS = 20


@dataclass
class Row:
    """One configuration of a suite: BookSim's runs and ours."""

    suite: str
    name: str
    options: dict[str, str]
    kind: Kind
    booksim: list[dict[str, str]] = field(default_factory=list)
    kasuri: list[dict] = field(default_factory=list)
    problem: str = ""
    unsupported: str = ""

    @property
    def load(self) -> float:
        """Packets that each terminal offers per cycle."""
        return float(self.options["injection_rate"])

    @property
    def stable(self) -> bool:
        """Did all of BookSim's runs converge?"""
        return all(run["status"] == "ok" for run in self.booksim)

    def ends_otherwise(self) -> bool:
        """Does one of our runs converge where none of BookSim's does, or not converge where they are compared?"""
        if self.kind not in (CURVE, ZERO_LOAD, SHALLOW):
            return False
        is_unstable = all(run["status"] == "unstable" for run in self.booksim)
        return any((run["status"] == "converged") == is_unstable for run in self.kasuri)

    @property
    def quantities(self) -> tuple[str, ...]:
        """What is compared."""
        if self.kind is ALLOCATORS:
            return ("acc_flit_avg",) if self.options["sim_type"] == "throughput" else ("pkt_lat",)
        return self.kind.quantities

    def theirs(self, quantity: str) -> list[float]:
        """BookSim's values, a run each."""
        return [float(run[quantity]) for run in self.booksim if run[quantity] != ""]

    def ours(self, quantity: str) -> list[float]:
        """Our values, a run each."""
        values = [run.get(QUANTITIES[quantity]) for run in self.kasuri]
        return [float(value) for value in values if value is not None]

    def group(self) -> tuple:
        """Rows of one group are neighbours: their variances are pooled."""
        if self.kind is CURVE:
            return (self.suite, *(value for key, value in self.options.items() if key != "injection_rate"))
        if self.kind is ZERO_LOAD:
            return (self.suite, *(self.options[key] for key in ("topology", "k", "n", "packet_size")))
        return (self.suite, self.name)


@dataclass(frozen=True)
class Difference:
    """One quantity of one row."""

    row: Row
    quantity: str
    theirs: float
    ours: float
    error: float

    @property
    def part(self) -> float:
        """The difference as a part of BookSim's value."""
        return (self.ours - self.theirs) / self.theirs if self.theirs else math.inf * (self.ours != 0)

    @property
    def errors(self) -> float:
        """The difference in standard errors."""
        gap = abs(self.ours - self.theirs)
        return gap / self.error if self.error > 0 else (math.inf if gap > 1e-9 * abs(self.theirs) else 0.0)

    def beyond(self, errors: float) -> bool:
        """Is it beyond so many standard errors and the part allowed?"""
        return self.errors > errors and abs(self.part) > self.row.kind.part


def read_reference(folder: pathlib.Path, wanted: list[str] | None) -> list[Row]:
    """All configurations of a reference folder, in the order of its tables."""
    tables = sorted(folder.glob("*.csv"))
    if not tables:
        raise SystemExit(f"{folder}: no *.csv with BookSim's results here")
    rows: dict[tuple[str, str], Row] = {}
    for table in tables:
        suite = table.stem
        if wanted and suite not in wanted:
            continue
        with table.open(newline="") as stream:
            for run in csv.DictReader(stream):
                options = {key: value for key, value in run.items() if key not in RESULTS and value}
                row = rows.setdefault((suite, run["config"]), Row(suite, run["config"], options, kind_of(suite, options)))
                row.booksim.append(run)
    return list(rows.values())


def kind_of(suite: str, options: dict[str, str]) -> Kind:
    """What is compared of a row, by its table."""
    if options["sim_type"] == "batch":
        return BATCH
    if suite.startswith("d_"):
        return ALLOCATORS
    if suite.startswith("f_"):
        return SHALLOW
    if options["sim_type"] == "throughput":
        return SATURATION
    return ZERO_LOAD if suite.startswith("c_") else CURVE


def within_reach(rows: list[Row]) -> list[Row]:
    """Leaves out the loads of curves above 85 % of the highest at which all of BookSim's runs ended `ok`."""
    highest: dict[tuple, float] = {}
    for row in rows:
        if row.kind is CURVE and row.stable:
            highest[row.group()] = max(highest.get(row.group(), 0.0), row.load)
    # The factor keeps a load of exactly 85 % in spite of binary fractions.
    return [row for row in rows if row.kind is not CURVE or row.load <= 0.85 * highest.get(row.group(), 0.0) * (1 + 1e-9)]


def configuration(options: dict[str, str]) -> str:
    """The BookSim configuration of a row."""
    lines = [f"{key} = {value};" for key, value in options.items()]
    lines.append("injection_rate_uses_flits = 1;")
    if options["sim_type"] == "batch":
        lines.append("batch_count = 1;")
    if "c" in options and "x" not in options:
        side = math.isqrt(int(options["c"]))
        lines += [f"x = {options['k']};", f"y = {options['k']};", f"xr = {side};", f"yr = {side};"]
    return "\n".join(lines) + "\n"


class Runner:
    """Runs `kasuri booksim` on rows, several processes at once."""

    def __init__(self, kasuri: str, jobs: int, folder: pathlib.Path, progress: bool):
        self.kasuri, self.jobs, self.folder, self.progress = kasuri, jobs, folder, progress

    def run(self, rows: list[Row], seeds: int | None) -> None:
        """Gives each supported row results for seeds 1 to `seeds` (of its kind's number if None), running what is missing."""
        tasks = []
        for row in rows:
            for seed in range(len(row.kasuri) + 1, (seeds or row.kind.seeds) + 1):
                if not row.unsupported and not row.problem:
                    tasks.append((row, seed))
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done, (row, answer) in enumerate(pool.map(self.one, tasks), 1):
                if isinstance(answer, dict):
                    row.kasuri.append(answer)
                elif "not supported yet" in answer:
                    row.unsupported = answer
                else:
                    row.problem = answer
                if self.progress:
                    print(f"\r{done}/{len(tasks)} runs", end="", file=sys.stderr)
        if self.progress and tasks:
            print(file=sys.stderr)

    def one(self, task: tuple[Row, int]) -> tuple[Row, dict | str]:
        """Runs a row with a seed: our answer, or why there is none."""
        row, seed = task
        if row.unsupported or row.problem:
            return row, row.unsupported or row.problem
        # A folder for each run, because processes do not share a run store; its files are not needed.
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            path = pathlib.Path(folder) / row.name
            path.write_text(configuration(row.options))
            command = [self.kasuri, "booksim", str(path), f"seed={seed}", "--booksim-rules", "--format", "json", "--jobs", "1"]
            run = subprocess.run([*command, "--out", str(pathlib.Path(folder) / "out")], capture_output=True, text=True)
        if run.returncode in (0, 1) and run.stdout:
            (answer,) = json.loads(run.stdout)["runs"]
            return row, answer
        return row, run.stderr.strip() or f"exit status {run.returncode}"


def variance(samples: list[list[float]]) -> float | None:
    """The variance within samples, pooled; None where no sample has two values."""
    freedom = sum(len(sample) - 1 for sample in samples if len(sample) > 1)
    if freedom == 0:
        return None
    return sum(statistics.variance(sample) * (len(sample) - 1) for sample in samples if len(sample) > 1) / freedom


def neighbours(row: Row, rows: list[Row]) -> list[Row]:
    """The rows over which the variances of `row` are pooled, itself included."""
    group = [other for other in rows if other.group() == row.group() and other.kasuri]
    if row.kind is not CURVE:
        return group
    group.sort(key=lambda other: other.load)
    at = group.index(row)
    return group[max(at - 1, 0) : at + 2]


def differences(row: Row, rows: list[Row]) -> list[Difference]:
    """The differences of a row's quantities."""
    found = []
    near = neighbours(row, rows)
    for quantity in row.quantities:
        theirs, ours = row.theirs(quantity), row.ours(quantity)
        if not theirs or not ours:
            continue
        sides = [[other.theirs(quantity) for other in near], [other.ours(quantity) for other in near]]
        if len(near) == 1:
            sides = [sides[0] + sides[1]] * 2
        error = math.sqrt(sum((variance(side) or 0.0) / len(own) for side, own in zip(sides, (theirs, ours), strict=True)))
        found.append(Difference(row, quantity, statistics.fmean(theirs), statistics.fmean(ours), error))
    return found


def orders(rows: list[Row]) -> list[str]:
    """Pairs of allocators that BookSim separates by more than three standard errors and that we order otherwise."""
    wrong = []
    for first_at, first in enumerate(rows):
        for second in rows[first_at + 1 :]:
            if besides_allocators(first) != besides_allocators(second) or not (first.kasuri and second.kasuri):
                continue
            (quantity,) = first.quantities
            gap = statistics.fmean(first.theirs(quantity)) - statistics.fmean(second.theirs(quantity))
            error = math.sqrt(sum((variance([row.theirs(quantity)]) or 0.0) / len(row.theirs(quantity)) for row in (first, second)))
            ours = statistics.fmean(first.ours(quantity)) - statistics.fmean(second.ours(quantity))
            if abs(gap) > 3 * error and gap * ours <= 0:
                wrong.append(f"{first.name} and {second.name}: {quantity} differs by {gap:.4g} in BookSim, by {ours:.4g} here")
    return wrong


def besides_allocators(row: Row) -> dict[str, str]:
    """The options of a row but for its allocators."""
    return {key: value for key, value in row.options.items() if key not in ("vc_allocator", "sw_allocator")}


def judge(suite: str, rows: list[Row], runner: Runner, worst: int, report: list[dict]) -> bool:
    """Compares one suite, prints its table, returns whether all is inside."""
    runner.run(rows, None)
    supported = [row for row in rows if not row.unsupported and not row.problem]
    first = {row.name: differences(row, supported) for row in supported}
    suspects = [row for row in supported if any(difference.beyond(3) for difference in first[row.name])]
    runner.run(suspects, RERUN_SEEDS)
    final = {row.name: differences(row, supported) for row in supported}

    print(f"\n== {suite}: {rows[0].kind.title}, {len(supported)} configurations compared")
    for row in rows:
        if row.unsupported:
            # Without the place, which is in a file of ours.
            reasons = re.findall(r":\d+: (.* is not supported yet: .*)", row.unsupported)
            print(f"  not supported yet: {row.name}: {'; '.join(reasons)}")
    for row in rows:
        if row.problem:
            print(f"  FAILED: {row.name}: {row.problem.splitlines()[-1]}")
    counted = [difference for row in supported for difference in final[row.name]]
    print_worst(counted, worst)
    for row in suspects:
        for before, after in zip(first[row.name], final[row.name], strict=True):
            if before.beyond(3):
                print(
                    f"  beyond three: {describe(before)}; with {RERUN_SEEDS} seeds of ours {after.part:+.2%}, "
                    f"{after.errors:.1f} standard errors"
                )
    beyond = {count: sum(any(d.beyond(count) for d in final[row.name]) for row in supported) for count in (3, 5)}
    wrong = orders(supported) if rows[0].kind is ALLOCATORS else []
    for pair in wrong:
        print(f"  other order: {pair}")
    unlike = [row.name for row in supported if row.ends_otherwise()]
    for name in unlike:
        print(f"  converged in one, but not in the other: {name}")
    failed = sum(bool(row.problem) for row in rows)
    allowed = len(supported) // 100
    good = not failed and not beyond[5] and beyond[3] <= allowed and not wrong and not unlike
    print(f"  beyond three standard errors and the percentage: {beyond[3]} (at most {allowed}), beyond five: {beyond[5]}", end="")
    print(f", failed: {failed} -> {'inside' if good else 'OUTSIDE'}")
    report.extend(record(difference) for row in supported for difference in final[row.name])
    return good


def print_worst(found: list[Difference], count: int) -> None:
    """Prints the mean and the largest differences of each quantity."""
    for quantity in dict.fromkeys(difference.quantity for difference in found):
        mine = [difference for difference in found if difference.quantity == quantity]
        mean = statistics.fmean(difference.part for difference in mine)
        print(f"  {quantity}: mean difference {mean:+.3%} over {len(mine)}; the largest:")
        for difference in sorted(mine, key=lambda difference: -abs(difference.part))[:count]:
            print(f"    {describe(difference)}")


def describe(difference: Difference) -> str:
    """A difference as a line."""
    return (
        f"{difference.row.name:45} {difference.quantity:12} {difference.theirs:10.4f} {difference.ours:10.4f} "
        f"{difference.part:+8.2%} {difference.errors:6.1f} standard errors"
    )


def record(difference: Difference) -> dict:
    """A difference as a line of the table."""
    row = difference.row
    names = ("theirs", "ours", "error")
    values = {name: getattr(difference, name) for name in names}
    return {"suite": row.suite, "config": row.name, "quantity": difference.quantity, **values, "seeds": len(row.kasuri)}


def find_kasuri(given: str | None) -> str:
    """The command that is given, or the project's own, or that on the path."""
    root = HERE.parent.parent
    for path in [given] if given else [root / ".venv/bin/kasuri", root / "target/release/kasuri", root / "target/debug/kasuri"]:
        if path and os.access(path, os.X_OK):
            return str(path)
    on_path = None if given else shutil.which("kasuri")
    if not on_path:
        raise SystemExit(f"{given or 'kasuri'}: no such command; run `make build`, or name it with --kasuri")
    return on_path


def main() -> int:
    """Compares the tables asked for."""
    parser = argparse.ArgumentParser(description="Compares Kasuri with BookSim 2 on tables of BookSim's results.")
    parser.add_argument(
        "--reference", type=pathlib.Path, default=HERE / "reference", help="folder of BookSim's tables (default: the extract)"
    )
    parser.add_argument("--kasuri", help="the kasuri command (default: the project's own build)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    parser.add_argument("--seeds", type=int, help="seeds of ours a configuration (default: 5 or 10, by suite)")
    parser.add_argument("--suite", nargs="*", help="only these tables, e.g. a_curves")
    parser.add_argument("--worst", type=int, default=3, help="rows shown for each quantity (3)")
    parser.add_argument("--out", type=pathlib.Path, help="write all differences here, as CSV")
    arguments = parser.parse_args()
    rows = read_reference(arguments.reference, arguments.suite)
    if arguments.seeds:
        for kind in {id(row.kind): row.kind for row in rows}.values():
            object.__setattr__(kind, "seeds", arguments.seeds)
    rows = within_reach(rows)
    report: list[dict] = []
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="kasuri-booksim-") as folder:
        runner = Runner(find_kasuri(arguments.kasuri), arguments.jobs, pathlib.Path(folder), sys.stderr.isatty())
        for suite in dict.fromkeys(row.suite for row in rows):
            verdicts.append(judge(suite, [row for row in rows if row.suite == suite], runner, arguments.worst, report))
    if arguments.out and report:
        with arguments.out.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, report[0].keys())
            writer.writeheader()
            writer.writerows(report)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{sum(verdicts)} of {len(verdicts)} suites inside; {used.ru_utime + used.ru_stime:.1f} s of processor time")
    return 0 if verdicts and all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
