#!/usr/bin/env python3
"""Compares `kasuri uec` with runs of the Ultra Ethernet Consortium's simulator htsim.

By default the extract in tests/data/uec; with --reference all rows of a folder. What must hold: README.md beside this file.
Only the standard library is needed. Exit status: 0 all holds, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = {"-linkspeed": "--link-speed", "-mtu": "--mtu", "-paths": "--paths", "-sack_threshold": "--sack-threshold", "-failed": "--failed"}
STRATEGIES = {"ecmp_ar": "random", "ecmp_rr": "round-robin"}
FIXED = ("lossless-one-way", "lossless-one-way-few-acks", "lossless-one-way-flit", "lossless-one-way-flit-few-acks")
SPREAD = ("lossless-switch-random", "lossless-switch-round-robin", "lossless-spray", "lossless-spray-failed1", "lossless-ecmp-flow")
TIMES = ("start_us", "received_us", "finish_us")
SEEDS = range(101, 113)
# Half a digit of what the tables hold, µs.
EXACT = 1.5e-6


def table(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a table, none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def translated(options: str) -> list[str]:
    """The options of `kasuri uec` for those of htsim."""
    words = options.split()
    found = []
    for name, value in zip(words, words[1:], strict=False):
        if name in OPTIONS:
            found += [OPTIONS[name], value]
        if name == "-strat":
            found += ["--spray", STRATEGIES[value]]
    return found


# What is not within three standard errors, and whether it is known why. Any other deviation fails the comparison.
KNOWN = {
    ("lossless-switch-random", "ls128_200g", "perm_128_1000000_s1", "last"): "unexplained",
    ("lossless-switch-round-robin", "ft64_bundle", "perm_64_1000000_s2", "last"): "unexplained; perhaps chance",
}


class Comparison:
    """A folder of tables, and the command."""

    def __init__(self, kasuri: str, folder: pathlib.Path, most_hosts: int) -> None:
        self.kasuri, self.folder, self.most_hosts = kasuri, folder, most_hosts

    @functools.cache  # noqa: B019  # one comparison a process
    def find(self, kind: str, name: str) -> str | None:
        """The file of a topology or matrix."""
        candidates = (self.folder / kind / whose / f"{name}{end}" for whose in ("own", "upstream") for end in ("", ".topo", ".cm", ".tm"))
        return next((str(path) for path in candidates if path.is_file()), None)

    def there(self, row: dict[str, str]) -> bool:
        """Whether the row can be run: its files are there, and it is not too large."""
        files = self.find("topologies", row["topology"]) and self.find("matrices", row["matrix"])
        return bool(files) and int(row.get("hosts") or 0) <= self.most_hosts

    def run(self, row: dict[str, str], *more: str) -> dict:
        """What the command prints for a row."""
        topology, matrix = self.find("topologies", row["topology"]), self.find("matrices", row["matrix"])
        command = [self.kasuri, "uec", "--topo", str(topology), "--cm", str(matrix), *translated(row["options"]), "--format", "json", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def pool(self, function, rows: list) -> list:
        """A function of each row, several at a time."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(function, rows))

    def lone(self) -> bool:
        """One flow alone."""
        right = True
        rows = [row for row in table(self.folder / "lone_flows.csv") if self.there(row)]
        for name in dict.fromkeys(row["class"] for row in rows):
            these = [row for row in rows if row["class"] == name]
            for engine in ("flit", "analysis"):
                right &= self.lone_class(name, these, engine)
        return right

    def lone_class(self, name: str, rows: list[dict[str, str]], engine: str) -> bool:
        """One class of lone flows by one engine."""
        found = self.pool(lambda row: self.run(row, "--engine", engine)["flows"][0]["finish_us"] - float(row["fct_us"]), rows)
        exact = sum(abs(difference) < EXACT for difference in found)
        # With several paths a short last packet may come before a full one: by less than its own time on a link of 100 Gbit/s.
        most = 4150 * 80e-6 if "spray" in name else EXACT
        off = [(row, difference) for row, difference in zip(rows, found, strict=True) if abs(difference) > most]
        print(f"{name:32}{engine:9}{exact:5} of {len(rows):5} to the picosecond, {len(rows) - exact - len(off)} a last packet off")
        for row, difference in off[:5]:
            print(f"    {row['topology']}, {row['matrix']}: {difference:+.6f} us")
        return not off

    def fixed(self) -> bool:
        """Runs whose paths are fixed: flow by flow."""
        rows = [row for row in table(self.folder / "runs.csv") if row["class"] in FIXED and self.there(row)]
        each: dict[str, list[dict[str, str]]] = {}
        for row in table(self.folder / "flows.csv"):
            each.setdefault(row["run"], []).append(row)
        right = True
        for name in FIXED:
            these = [row for row in rows if row["class"] == name]
            found = self.pool(lambda row: self.differences(row, each.get(row["run"], [])), these)
            exact = sum(worst == 0 for _, worst in found)
            flows = sum(count for count, _ in found)
            worst = max((worst for _, worst in found), default=0.0)
            print(f"{name:32}{exact:14} of {len(these):5} runs to the picosecond ({flows} flows one by one); worst {100 * worst:.4f} %")
            right &= worst <= 0.005
        return right

    def differences(self, row: dict[str, str], flows: list[dict[str, str]]) -> tuple[int, float]:
        """How many flows were compared, and the largest relative difference of their times and of the last; 0 if all are exact."""
        found = self.run(row)
        pairs = [(found["flows"][int(flow["connection"]) - 1][time], float(flow[time])) for flow in flows for time in TIMES]
        for time, name in (("received_us", "last_received_us"), ("finish_us", "tail_us")):
            pairs.append((max(flow[time] for flow in found["flows"]), float(row[name])))
        off = [abs(ours - theirs) / max(theirs, 1.0) for ours, theirs in pairs if abs(ours - theirs) > EXACT]
        return len(flows), max(off, default=0.0)

    def spread(self) -> bool:
        """Runs whose paths are hashed or drawn: means over seeds."""
        right = True
        for name in SPREAD:
            groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
            for row in table(self.folder / "runs.csv"):
                if row["class"] == name and self.there(row):
                    groups.setdefault((row["topology"], row["matrix"], row["options"]), []).append(row)
            found = self.pool(self.errors, list(groups.values()))
            text = []
            for index, what in enumerate(("mean", "last")):
                close = [errors[index] for errors in found if abs(errors[index][0]) <= 3]
                relative = statistics.fmean(errors[index][1] for errors in found) if found else 0.0
                text.append(f"{what} {len(close)} of {len(found)} within three standard errors ({100 * relative:+.2f} % on average)")
            print(f"{name:32}{'':9}{'; '.join(text)}")
            for rows, errors in zip(groups.values(), found, strict=True):
                for (deviation, relative), what in zip(errors, ("mean", "last"), strict=True):
                    if abs(deviation) > 3:
                        case = (name, rows[0]["topology"], rows[0]["matrix"], what)
                        known = KNOWN.get(case)
                        off = f"{what} {100 * relative:+.2f} %, {deviation:+.1f} standard errors"
                        print(f"    NOT {rows[0]['topology']}, {rows[0]['matrix']}: {off} ({known or 'not seen before'})")
                        right &= known is not None
        return right

    def errors(self, rows: list[dict[str, str]]) -> list[tuple[float, float]]:
        """Of mean and last: how many standard errors, and which part, ours are above theirs."""
        ours: list[list[float]] = [[], []]
        for seed in SEEDS:
            flows = self.run(rows[0], "--seed", str(seed))["flows"]
            ours[0].append(statistics.fmean(flow["finish_us"] - flow["start_us"] for flow in flows))
            ours[1].append(max(flow["finish_us"] for flow in flows))
        theirs = [[float(row[name]) for row in rows] for name in ("fct_mean_us", "tail_us")]
        return [deviation(mine, other) for mine, other in zip(ours, theirs, strict=True)]

    def bounds(self) -> bool:
        """The least time of published rows."""
        rows = [row for row in table(self.folder / "published.csv") if row["bound_us"]]
        plans: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in rows:
            plans.setdefault((row["topology"], row["cm"], row["failed_links"], row["mtu"], row["bound_us"]), []).append(row)
        found = self.pool(self.bound, [plan for plan in plans if self.find("topologies", plan[0]) and self.find("matrices", plan[1])])
        there = [(plan, value) for plan, value in found if value is not None]
        wrong = [(plan, value) for plan, value in there if abs(value - float(plan[4])) > 1.01e-4]
        count = sum(len(plans[plan]) for plan, _ in there)
        print(f"{'published bounds':32}{'':9}{count - sum(len(plans[plan]) for plan, _ in wrong):5} of {count:5} rows, {len(there)} plans")
        for plan, value in wrong[:5]:
            print(f"    {', '.join(plan)}: {value}")
        return not wrong

    def bound(self, plan: tuple[str, ...]) -> tuple[tuple[str, ...], float | None]:
        """The bound of a plan."""
        topology, matrix, failed, mtu, _ = plan
        row = {"topology": topology, "matrix": matrix, "options": f"-failed {failed or 0}" + (f" -mtu {mtu}" if mtu else "")}
        return plan, self.run(row, "--engine", "analysis")["bound_us"]


def deviation(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """How many standard errors, and which part, the mean of ours is above that of theirs."""
    squares = sum((value - statistics.fmean(values)) ** 2 for values in (ours, theirs) for value in values)
    variance = squares / (len(ours) + len(theirs) - 2)
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    relative = difference / statistics.fmean(theirs)
    if abs(relative) < 1e-9:
        return 0.0, relative
    error = (variance * (1 / len(ours) + 1 / len(theirs))) ** 0.5
    return (difference / error if error else float("inf")), relative


def main() -> int:
    """Compare, print the counts and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--reference", type=pathlib.Path, help="a folder with all rows [default: the extract in tests/data/uec]")
    parser.add_argument("--most-hosts", type=int, default=1024, help="leave larger fabrics out")
    arguments = parser.parse_args()
    folder = (arguments.reference or ROOT / "tests/data/uec").resolve()
    folder = folder / "uec" if (folder / "uec").is_dir() else folder
    if not (folder / "runs.csv").exists():
        print(f"no runs of UEC htsim in {folder}; taking the extract")
        folder = ROOT / "tests/data/uec"
    print(f"rows of {folder}")
    comparison = Comparison(str(pathlib.Path(arguments.kasuri).resolve()), folder, arguments.most_hosts)
    results = [comparison.lone(), comparison.fixed(), comparison.spread(), comparison.bounds()]
    rows = table(folder / "runs.csv")
    left = [row for row in rows if row["class"] not in FIXED + SPREAD]
    large = [row for row in rows if row["class"] in FIXED + SPREAD and not comparison.there(row)]
    print(f"left out: {len(left)} runs with congestion control, trimming or pause frames; {len(large)} larger, or without files here")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
