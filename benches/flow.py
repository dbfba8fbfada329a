#!/usr/bin/env python3
"""Measures the flow engine's speed and memory; compares arbitrated flows with our own flit engine, and flows with SimGrid if asked to.

The figures are the processor time (user and system) and the peak resident size of the whole process, the median of several runs.
What a second thread is worth is told by the time that the simulation takes, on one thread and on two in turn, whose results must be the
same.
SimGrid sends the same messages over the same tree with its plain fluid settings (network model CM02, no cross-traffic, TCP gamma
0, latency 0, factors 1), in turn on the same machine; its makespan has to be that of our max-min sharing to four decimals.

Needs numpy (the project's own environment has it). Exit status: 0 every "must" met (of those that could be measured), 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "validation" / "arbitrated")]
import cases  # noqa: E402
import compare  # noqa: E402
from speed import mark, measure, watched_peak  # noqa: E402  # beside this file

TREE = """engine = "flow"
measure.max_cycles = 1_000_000_000
[network]
topology = "fat-tree"
up = {k}
down = {k}
levels = 3
[routing]
algorithm = "nca"
up_port = "d-mod-k"
[flow]
sharing = "{sharing}"
latency = false
"""

BATCH = (
    TREE
    + """[traffic]
pattern = "uniform"
process = "batch"
batch_packets = 10
packet_flits = 40
"""
)

ALL_TO_ALL = (
    TREE
    + """[workload]
collective = "alltoall"
schedule = "shift"
message_flits = 40
"""
)

USERS = """[[user]]
name = "user-{number}"
nodes = {nodes}
placement = "contiguous"
[user.workload]
collective = "alltoall"
schedule = "shift"
message_flits = 64
"""


def users(k: int) -> str:
    """An all-to-all in each subtree of a tree, each of a user of its own."""
    return TREE.format(k=k, sharing="equal-share") + "".join(USERS.format(number=number, nodes=k * k) for number in range(k))


# Messages in packets of 16 flits, one after the other from each terminal: what arbitrated flows are for.
MESSAGES = """measure.max_cycles = 1_000_000_000
[network]
{network}
flit_bytes = 1
[routing]
{routing}
[router]
virtual_channels = 4
buffer_flits = 8
[workload]
trace = "messages.goal"
packet_flits = 16
"""

MESH = ('topology = "mesh"\ndimensions = [8, 8]', 'algorithm = "dimension-order"')
TREE_64 = ('topology = "fat-tree"\nup = 4\ndown = 4\nlevels = 3', 'algorithm = "nca"\nup_port = "d-mod-k"')
TREE_4096 = ('topology = "fat-tree"\nup = 16\ndown = 16\nlevels = 3', 'algorithm = "nca"\nup_port = "d-mod-k"')

LONG_BATCH = BATCH.replace("latency = false", "latency = true").replace("packet_flits = 40", "packet_flits = 256")

SIMGRID = [
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--cfg=network/TCP-gamma:0",
    "--cfg=network/bandwidth-factor:1",
    "--cfg=network/latency-factor:1",
    "--cfg=contexts/factory:raw",
    "--log=root.thres:error",
]


@dataclass(frozen=True)
class Case:
    """An experiment, the seconds and megabytes that it must stay below, and the seconds that it should."""

    title: str
    experiment: str
    seconds: float
    aim: float
    megabytes: float | None = None
    # Is the memory of a process that runs next to nothing left out of account?
    over_base: bool = False


CASES = [
    Case("batch of 10, 4,096 terminals, equal share", BATCH.format(k=16, sharing="equal-share"), 0.05, 0.015, 10, over_base=True),
    Case("the same, 46,656", BATCH.format(k=36, sharing="equal-share"), 0.6, 0.3),
    Case("the same, 262,144", BATCH.format(k=64, sharing="equal-share"), 6, 3, 120),
    Case("the same, 1,000,000", BATCH.format(k=100, sharing="equal-share"), 3600, 60, 4000),
    Case("batch of 10, 4,096 terminals, max-min", BATCH.format(k=16, sharing="max-min"), 0.1, 0.04),
    Case("the same, 46,656", BATCH.format(k=36, sharing="max-min"), 3, 1.5),
    Case("the same, 262,144", BATCH.format(k=64, sharing="max-min"), 20, 12),
    Case("batch of 10 of 256 flits, 46,656, arbitrated", LONG_BATCH.format(k=36, sharing="arbitrated"), 10, 5),
    Case("the same, 262,144", LONG_BATCH.format(k=64, sharing="arbitrated"), 80, 40, 1000),
    Case("all-to-all by shift, 4,096 terminals", ALL_TO_ALL.format(k=16, sharing="equal-share"), 1.5, 0.6),
]


@dataclass(frozen=True)
class Pair:
    """An experiment that runs on one thread and on two, and how many times as fast the latter must and should be."""

    title: str
    experiment: str
    times: float
    aim: float
    # Runs on each, if that takes long.
    most: int = 100


# A batch takes a second thread in the largest networks only.
PAIRS = [
    Pair("batch of 10, 1,000,000 terminals, equal share", BATCH.format(k=100, sharing="equal-share"), 1.1, 1.3, most=2),
    Pair("36 users apart, all-to-all of 1,296 terminals each", users(36), 1.7, 1.9, most=3),
]

#: Columns that tell of the machine.
ASIDE = ("wall_seconds", "cpu_seconds", "peak_memory_mib")


@dataclass(frozen=True)
class Race:
    """Messages that the flit engine and arbitrated flows send, and how many times as fast the latter must and should be."""

    title: str
    network: tuple[str, str]
    terminals: int
    flits: int
    messages: int
    times: float
    aim: float


RACES = [
    Race("mesh 8x8, 10 messages of 256 flits", MESH, 64, 256, 10, 5, 10),
    Race("mesh 8x8, 10 messages of 1024 flits", MESH, 64, 1024, 10, 20, 30),
    Race("fat tree of 64, 10 messages of 256 flits", TREE_64, 64, 256, 10, 5, 10),
    Race("fat tree of 64, 10 messages of 1024 flits", TREE_64, 64, 1024, 10, 20, 30),
    Race("fat tree of 4,096, 10 messages of 256 flits", TREE_4096, 4096, 256, 10, 3.5, 10),
    Race("fat tree of 4,096, 4 messages of 1024 flits", TREE_4096, 4096, 1024, 4, 15, 20),
]


def program(race: Race) -> str:
    """The messages of a race, to terminals drawn at random, as a GOAL program."""
    generator = random.Random(1)
    ranks: list[list[str]] = [[] for _ in range(race.terminals)]
    for tag in range(race.messages):
        for source in range(race.terminals):
            to = (source + 1 + generator.randrange(race.terminals - 1)) % race.terminals
            ranks[source].append(f"s{tag}: send {race.flits}b to {to} tag {tag}")
            ranks[to].append(f"r{source}x{tag}: recv {race.flits}b from {source} tag {tag}")
    blocks = [f"rank {rank} {{\n" + "".join(f"{line}\n" for line in lines) + "}\n" for rank, lines in enumerate(ranks)]
    return f"num_ranks {race.terminals}\n" + "".join(blocks)


class Bench:
    """The command, and a folder for its files."""

    def __init__(self, kasuri: str, folder: pathlib.Path):
        self.kasuri, self.folder = kasuri, folder
        self.stored = 0

    def command(self, experiment: str) -> list[str]:
        """The command that runs an experiment."""
        # A new folder for results each time: what is stored there would not be computed again.
        self.stored += 1
        path = self.folder / "case.toml"
        path.write_text(experiment)
        return [self.kasuri, "run", str(path), "--format", "json", "--jobs", "1", "--out", str(self.folder / f"out-{self.stored}")]

    def seconds(self, experiment: str, runs: int) -> float:
        """Processor time of an experiment, the median of so many runs."""
        return statistics.median(measure(self.command(experiment), self.folder, (0,)).seconds for _ in range(runs))

    def megabytes(self, experiment: str) -> float:
        """Memory of an experiment at its peak."""
        return watched_peak(lambda: measure(self.command(experiment), self.folder, (0,), memory=True)) / 1e6

    def base_megabytes(self) -> float:
        """Memory of a process that runs next to nothing: 8 terminals."""
        return self.megabytes(BATCH.format(k=2, sharing="equal-share"))

    def cpu_seconds(self, experiment: str, runs: int) -> float:
        """Processor time of the simulation alone, without what reads the file and builds the network: the median of so many runs."""
        done = [subprocess.run(self.command(experiment), check=True, capture_output=True, text=True) for _ in range(runs)]
        return statistics.median(json.loads(run.stdout)["runs"][0]["cpu_seconds"] for run in done)

    def row(self, experiment: str, threads: int) -> dict[str, object]:
        """What a run on so many threads says."""
        command = [*self.command(experiment), "--threads", str(threads)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]

    def makespan(self, experiment: str) -> float:
        """The completion time of an experiment, cycles."""
        done = subprocess.run(self.command(experiment), check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["runs"][0]["completion_time"]


def table(bench: Bench, runs: int) -> bool:
    """Prints the table of speeds; are all musts met?"""
    print(f"{'processor time, seconds (median), and memory':48} {'seconds':>9} {'must':>7} {'aim':>7} {'MB':>8} {'must':>6}")
    good = True
    for case in CASES:
        seconds = bench.seconds(case.experiment, runs if case.seconds < 100 else 1)
        megabytes = bench.megabytes(case.experiment) - (bench.base_megabytes() if case.over_base else 0)
        must = seconds < case.seconds and (case.megabytes is None or megabytes < case.megabytes)
        good &= must
        room = f"{megabytes:8.1f}" + (f" {case.megabytes:6.0f}" if case.megabytes else 7 * " ")
        print(f"{case.title:48} {seconds:9.3f} {case.seconds:7.2f} {case.aim:7.3f} {room}  {mark(must, seconds < case.aim)}", flush=True)
    return good


def threads(bench: Bench, runs: int) -> bool:
    """Prints what a second thread is worth; are all musts met?"""
    print(f"\n{'seconds of the simulation (median)':48} {'1 thread':>9} {'2 threads':>9} {'ratio':>7} {'must':>6} {'aim':>5}")
    good = True
    for pair in PAIRS:
        rows = [[bench.row(pair.experiment, count) for count in (1, 2)] for _ in range(min(runs, pair.most))]
        results = [{name: value for name, value in row.items() if name not in ASIDE} for both in rows for row in both]
        if any(result != results[0] for result in results):
            raise SystemExit(f"{pair.title}: two threads give another result than one")
        one, two = (statistics.median(both[which]["wall_seconds"] for both in rows) for which in (0, 1))
        times = one / two
        good &= times >= pair.times
        verdict = mark(times >= pair.times, times >= pair.aim)
        print(f"{pair.title:48} {one:9.3f} {two:9.3f} {times:7.2f} {pair.times:6.2f} {pair.aim:5.2f}  {verdict}", flush=True)
    return good


def race_once(bench: Bench, runs: int, messages: str, experiment: str) -> tuple[float, float]:
    """Processor time of both simulations of the same messages."""
    (bench.folder / "messages.goal").write_text(messages)
    flit = bench.cpu_seconds(f'engine = "flit"\n{experiment}', runs)
    flow = bench.cpu_seconds(f'engine = "flow"\n{experiment}[flow]\nsharing = "arbitrated"\n', runs)
    return flit, flow


#: By flits of a message: how many times as fast as flits arbitrated flows must and should be on small networks, in the median over the
#: cases of which the accuracy is measured.
MEDIANS = {256: (5, 10), 1024: (20, 30)}


def small_races(bench: Bench, runs: int) -> bool:
    """Prints how many times as fast as flits arbitrated flows are, measured in turn, on the cases with 64 to 80 terminals in
    `validation/arbitrated/cases.py`; are the musts met by the medians?
    """
    print(f"\n{'arbitrated flows against flits, simulation alone':48} {'flit':>9} {'flow':>9} {'times':>7} {'must':>6} {'aim':>5}")
    good = True
    for flits, (must, aim) in MEDIANS.items():
        all_times = []
        for case in cases.CASES:
            network = cases.NETWORKS[case.network]
            if case.flits != flits or network.terminals < 64:
                continue
            experiment = compare.EXPERIMENT.format(
                topology=network.topology,
                routing=network.routing,
                virtual_channels=case.virtual_channels,
                buffer_flits=case.buffer_flits,
                switching=case.switching,
            )
            flit, flow = race_once(bench, runs, compare.program(case.destinations(), flits, 0), experiment)
            all_times.append(flit / flow)
            print(f"{case.name:48} {flit:9.4f} {flow:9.4f} {flit / flow:7.1f}", flush=True)
        median = statistics.median(all_times)
        good &= median >= must
        title = f"median of {len(all_times)}, messages of {flits} flits"
        print(f"{title:68} {median:7.1f} {must:6.1f} {aim:5.0f}  {mark(median >= must, median >= aim)}", flush=True)
    return good


def races(bench: Bench, runs: int) -> bool:
    """Prints the same of single networks, small and large; are all musts met?"""
    good = True
    for race in RACES:
        network, routing = race.network
        flit, flow = race_once(bench, runs, program(race), MESSAGES.format(network=network, routing=routing))
        times = flit / flow
        good &= times >= race.times
        verdict = mark(times >= race.times, times >= race.aim)
        print(f"{race.title:48} {flit:9.3f} {flow:9.3f} {times:7.1f} {race.times:6.1f} {race.aim:5.0f}  {verdict}", flush=True)
    return good


def simgrid(bench: Bench, program: str, messages: str, runs: int) -> bool:
    """Prints the comparison with SimGrid; are its musts met?"""
    print(f"\n{'the same messages in SimGrid':48} {'makespan':>12} {'ours':>12} {'seconds':>9} {'ours':>9} {'ratio':>7}")
    good = True
    for k, must in [(4, None), (8, None), (16, 200)]:
        experiment = BATCH.format(k=k, sharing="max-min")
        path = bench.folder / "messages.toml"
        path.write_text(experiment)
        listed = subprocess.run([messages, str(path)], check=True, capture_output=True, text=True).stdout
        (bench.folder / "messages").write_text(listed)
        command = f"exec {program} {k} 40 {' '.join(SIMGRID)} < {bench.folder / 'messages'}"
        theirs = float(subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout)
        slow = measure(["sh", "-c", command], bench.folder, (0,)).seconds
        fast = bench.seconds(BATCH.format(k=k, sharing="equal-share"), runs)
        ours = bench.makespan(experiment)
        same = abs(theirs - ours) < 5e-5
        good &= same and (must is None or slow / fast >= must)
        verdict = ("equal" if same else "DIFFERENT") + ("" if must is None else f", {mark(slow / fast >= must, False)} ({must}x)")
        print(
            f"{k}-ary 3-tree, batch of 10{'':24} {theirs:12.4f} {ours:12.4f} {slow:9.2f} {fast:9.4f} {slow / fast:7.0f}  {verdict}",
            flush=True,
        )
    return good


def main() -> int:
    """Measures and says whether all musts are met."""
    parser = argparse.ArgumentParser(description="Measures the flow engine, against SimGrid where its program is given.")
    parser.add_argument("--kasuri", required=True, help="the kasuri command, built for speed")
    parser.add_argument("--simgrid", help="benches/simgrid/batch.cpp, compiled")
    parser.add_argument("--messages", help="the example list_messages, compiled (with --simgrid)")
    parser.add_argument("--runs", type=int, default=5, help="runs a case (5)")
    arguments = parser.parse_args()
    if arguments.simgrid and not arguments.messages:
        parser.error("--simgrid needs --messages")
    with tempfile.TemporaryDirectory(prefix="kasuri-bench-") as folder:
        bench = Bench(arguments.kasuri, pathlib.Path(folder))
        good = table(bench, arguments.runs)
        good &= threads(bench, arguments.runs)
        good &= small_races(bench, arguments.runs)
        good &= races(bench, arguments.runs)
        if arguments.simgrid:
            good &= simgrid(bench, arguments.simgrid, arguments.messages, arguments.runs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
