#!/usr/bin/env python3
"""Compares the arbitrated sharing of the flow engine with the flit engine, message by message.

Each terminal sends its messages one after the other; both engines send the same ones (a GOAL program), in packets of 16 flits. Compared are
the completion of the whole, the completion of each message (median and 90th percentile of its absolute error) and the ends of the terminals
(Pearson's r), for equal shares, max-min, and arbitrated flows with the automatic grain and with a grain of one packet. The flit engine is
also compared with itself: the first message of each terminal one flit longer. Beyond that no model can be right.

Needs numpy (the project's own environment has it). Exit status: 0, or 1 if a line of the acceptance is not met.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cases import CASES, DEEP, NETWORKS, Case  # noqa: E402  # beside this file

PACKET = 16

EXPERIMENT = """[network]
{topology}
flit_bytes = 1
[routing]
{routing}
[router]
virtual_channels = {virtual_channels}
buffer_flits = {buffer_flits}
switching = "{switching}"
[workload]
trace = "messages.goal"
packet_flits = 16
[measure]
max_cycles = 1_000_000_000
"""

EQUAL, MAX_MIN, AUTO, PACKETS, CHAOS = "equal-share", "max-min", "arbitrated", "arbitrated, grain 1", "flit against itself"
MODELS = {
    EQUAL: ("flow.sharing=equal-share",),
    MAX_MIN: ("flow.sharing=max-min",),
    AUTO: ("flow.sharing=arbitrated",),
    PACKETS: ("flow.sharing=arbitrated", "flow.grain=1"),
}


@dataclass(frozen=True)
class Score:
    """Errors in per cent, and the correlation of the terminals' ends (not a number where all end together)."""

    makespan: float
    median: float
    ninetieth: float
    correlation: float

    def row(self) -> str:
        """As a part of a table's row."""
        r = "-" if math.isnan(self.correlation) else f"{self.correlation:.2f}"
        return f"{self.makespan:+.1f} | {self.median:.1f} | {self.ninetieth:.1f} | {r}"


@dataclass
class Times:
    """By message, in one order for all engines: its source and when it has arrived, cycles."""

    sources: numpy.ndarray
    ends: numpy.ndarray

    def against(self, flit: Times) -> Score:
        """What is wrong with these times if those of the flit engine are right."""
        error = 100 * abs(self.ends - flit.ends) / flit.ends
        ends = [numpy.array([times.ends[times.sources == source].max() for source in numpy.unique(flit.sources)]) for times in (self, flit)]
        together = any(numpy.ptp(of) < 3e-3 * of.mean() for of in ends)
        r = math.nan if together else float(numpy.corrcoef(*ends)[0, 1])
        return Score(100 * (self.ends.max() / flit.ends.max() - 1), float(numpy.median(error)), float(numpy.quantile(error, 0.9)), r)


@dataclass
class Comparison:
    """The command, a folder for its files, and the scores of all models by case."""

    kasuri: str
    folder: pathlib.Path
    scores: dict[Case, dict[str, Score]] = field(default_factory=dict)

    def times(self, case: Case, engine: str, settings: tuple[str, ...] = (), longer: int = 0) -> Times:
        """When each message arrives; the first message of each terminal is so many flits longer."""
        network = NETWORKS[case.network]
        rows = case.destinations()
        (self.folder / "messages.goal").write_text(program(rows, case.flits, longer))
        path = self.folder / "case.toml"
        path.write_text(
            EXPERIMENT.format(
                topology=network.topology,
                routing=network.routing,
                virtual_channels=case.virtual_channels,
                buffer_flits=case.buffer_flits,
                switching=case.switching,
            )
        )
        trace = self.folder / "times.json"
        sets = [part for setting in (f"engine={engine}", *settings) for part in ("--set", setting)]
        command = [self.kasuri, "run", str(path), *sets, "--timeline", str(trace), "--out", str(self.folder / "out"), "--format", "json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{case.name}, {engine} {settings}: {done.stderr}")
        [row] = json.loads(done.stdout)["runs"]
        (self.folder / "out" / "runs" / f"{row['key']}.json").unlink()  # the program's text is not part of the key's input
        if row["status"] != "completed":
            raise SystemExit(f"{case.name}, {engine} {settings}: {row['status']}")
        spans = [span for span in json.loads(trace.read_text())["traceEvents"] if span["ph"] == "X"]
        # A message is sent by one terminal and received by another, in the order in which it joined its queue.
        sources = {span["args"]["message"]: span["pid"] for span in spans if span["cat"] == "send"}
        ends = {span["args"]["message"]: 1000 * (span["ts"] + span["dur"]) for span in spans if span["cat"] == "receive"}
        if len(ends) != sum(map(len, rows)) or sources.keys() != ends.keys():
            raise SystemExit(f"{case.name}, {engine}: {len(sources)} messages sent and {len(ends)} received in the timeline")
        numbers = sorted(ends)
        return Times(numpy.array([sources[number] for number in numbers]), numpy.array([ends[number] for number in numbers]))

    def score(self, case: Case) -> dict[str, Score]:
        """The scores of all models, and of the flit engine beside itself."""
        flit = self.times(case, "flit")
        scores = {name: self.times(case, "flow", settings).against(flit) for name, settings in MODELS.items()}
        scores[CHAOS] = self.times(case, "flit", longer=1).against(flit)
        self.scores[case] = scores
        return scores


def program(rows: list[list[int]], flits: int, longer: int) -> str:
    """The messages as a GOAL program: all sends are queued at once, in order."""
    ranks: list[list[str]] = [[] for _ in rows]
    for source, row in enumerate(rows):
        for tag, to in enumerate(row):
            size = flits + (longer if tag == 0 else 0)
            ranks[source].append(f"s{tag}: send {size}b to {to} tag {tag}")
            ranks[to].append(f"r{source}x{tag}: recv {size}b from {source} tag {tag}")
    blocks = [f"rank {rank} {{\n" + "".join(f"{line}\n" for line in lines) + "}\n" for rank, lines in enumerate(ranks)]
    return f"num_ranks {len(rows)}\n" + "".join(blocks)


@dataclass
class Means:
    """Means over some cases of one model: |makespan error|, median, 90th percentile, and r where there is one."""

    makespan: float
    median: float
    ninetieth: float
    correlation: float

    @classmethod
    def of(cls, scores: list[Score]) -> Means:
        """The means of these."""
        of = lambda name: float(numpy.mean([abs(getattr(score, name)) for score in scores]))  # noqa: E731
        known = [score.correlation for score in scores if not math.isnan(score.correlation)]
        return cls(of("makespan"), of("median"), of("ninetieth"), float(numpy.mean(known)) if known else math.nan)


class Acceptance:
    """Lines with verdicts."""

    def __init__(self) -> None:
        self.good = True

    def line(self, what: str, found: float, bound: float, least: bool = False, aim: bool = False) -> None:
        """Prints whether `found` is at most `bound` (at least, if so asked). Aims are not musts."""
        met = found >= bound if least else found <= bound
        self.good &= met or aim
        verdict = "met" if met else ("aim not met" if aim else "NOT MET")
        print(f"{what:92} {found:8.2f}  {'>=' if least else '<='} {bound:<6g} {verdict}", flush=True)


def mean_lines(accept: Acceptance, long: dict[Case, dict[str, Score]]) -> None:
    """Section 1 and 5 of the acceptance."""
    means = {name: Means.of([scores[name] for scores in long.values()]) for name in (EQUAL, MAX_MIN, AUTO, PACKETS, CHAOS)}
    for name, found in means.items():
        print(f"mean of {len(long)}: {name:20} {found.makespan:5.1f} {found.median:5.1f} {found.ninetieth:5.1f} {found.correlation:5.2f}")
    for name, bounds in ((AUTO, (6, 9, 25)), (PACKETS, (5.5, 8, 23))):
        for part, bound in zip(("makespan", "median", "ninetieth"), bounds, strict=True):
            accept.line(f"1. {name}: mean of {part}", getattr(means[name], part), bound)
    for part in ("makespan", "median", "ninetieth"):
        accept.line(f"1. {AUTO}: {part} over that of equal shares", getattr(means[AUTO], part) / getattr(means[EQUAL], part), 0.5)
    accept.line("5. largest makespan error", max(abs(scores[AUTO].makespan) for scores in long.values()), 25)


def case_lines(accept: Acceptance, long: dict[Case, dict[str, Score]]) -> None:
    """Sections 2 and 10 of the acceptance."""
    one = Means.of([scores[AUTO] for case, scores in long.items() if case.virtual_channels == 1])
    accept.line("2. 1 VC: mean of median", one.median, 6)
    accept.line("2. 1 VC: mean of 90th percentile", one.ninetieth, 13)
    accept.line("2. 1 VC: mean r", one.correlation, 0.9, least=True)
    for case, scores in long.items():
        if case.pattern == "parking" and case.virtual_channels <= 2:
            accept.line(f"2. {case.name}: median", scores[AUTO].median, 4)
        if (case.network, case.pattern, case.virtual_channels) == ("mesh8", "transpose", 1):
            accept.line(f"2. {case.name}: makespan", abs(scores[AUTO].makespan), 2)
        if case.pattern in ("hotspot", "incast"):
            accept.line(f"2. {case.name}: r", scores[AUTO].correlation, 0.97, least=True)
    four = Means.of([scores[PACKETS] for case, scores in long.items() if case.virtual_channels == 4])
    accept.line("10. 4 VC, grain 1: mean of median", four.median, 6, aim=True)
    for case, scores in long.items():
        if case.pattern == "transpose" and case.network == "tree64":
            accept.line(f"10. {case.name}: makespan (matching losses)", abs(scores[AUTO].makespan), 6, aim=True)


#: How often the messages of cases at random are drawn anew.
DRAWINGS = 20


def drawing_lines(accept: Acceptance, comparison: Comparison) -> None:
    """How much of section 2's percentile is the drawing: the same mean over cases, the messages at random drawn several times."""
    means = []
    for seed in range(1, DRAWINGS + 1):
        found = []
        for case in (case for case in CASES if case.flits >= 256 and case.virtual_channels == 1):
            drawn = replace(case, seed=seed)
            if case in comparison.scores and drawn.destinations() == case.destinations():
                found.append(comparison.scores[case][AUTO].ninetieth)
            else:
                found.append(comparison.times(drawn, "flow", MODELS[AUTO]).against(comparison.times(drawn, "flit")).ninetieth)
        means.append(float(numpy.mean(found)))
    spread = numpy.std(means, ddof=1)
    accept.line(f"2. the same, mean of {DRAWINGS} drawings of the messages (standard deviation {spread:.2f})", float(numpy.mean(means)), 13)


def deep_lines(accept: Acceptance, comparison: Comparison) -> None:
    """Section 3 of the acceptance."""
    for case in DEEP:
        scores = comparison.scores[case]
        aim = case.network != "mesh8" or case.switching != "wormhole"
        accept.line(f"3. {case.name}, grain 1: median", scores[PACKETS].median, 5.5, aim=aim)
        accept.line(f"3. {case.name}, grain 1: makespan", abs(scores[PACKETS].makespan), 7, aim=aim)


def lone_lines(accept: Acceptance, comparison: Comparison) -> None:
    """Section 4 of the acceptance: a message alone, by both engines."""
    for network, channels in (("mesh8", 4), ("torus8", 4), ("tree64", 4), ("dragonfly", 4)):
        terminals = NETWORKS[network].terminals
        for flits in (1, 7, 16, 100, 1000):
            lone = Lone(network, channels, "lone", flits, 1)
            flit = comparison.times(lone, "flit").ends[0]
            auto = comparison.times(lone, "flow", MODELS[AUTO]).ends[0]
            grain = max(1, flits // (PACKET * 8))
            bound = 0 if flits <= PACKET else 2 * grain
            accept.line(f"4. {network}, {flits} flits to terminal {terminals - 1}: cycles off", abs(auto - flit), bound)


class Lone(Case):
    """One message across the network."""

    def destinations(self) -> list[list[int]]:
        """Terminal 1 sends to the last one."""
        terminals = NETWORKS[self.network].terminals
        return [[terminals - 1] if terminal == 1 else [] for terminal in range(terminals)]


def ending_lines(accept: Acceptance, comparison: Comparison) -> None:
    """Section 6 of the acceptance: with coarse grains everything ends, too. `times` fails where it does not."""
    for grain in (3, 64):
        for case in CASES:
            comparison.times(case, "flow", ("flow.sharing=arbitrated", f"flow.grain={grain}"))
    accept.line("6. cases that do not end at grains 3 and 64", 0, 0)


def main() -> int:
    """Compares the engines' answers."""
    parser = argparse.ArgumentParser(description="Compares the arbitrated sharing with the flit engine.")
    parser.add_argument("--kasuri", required=True, help="the kasuri command")
    arguments = parser.parse_args()
    accept = Acceptance()
    names = (EQUAL, MAX_MIN, AUTO, PACKETS, CHAOS)
    print("errors against the flit engine, %: makespan, median and 90th percentile of messages, r of terminals' ends")
    print(f"| case | {' | '.join(f'{name} | | | ' for name in names)} |")
    print(f"|---|{'---|---|---|---|' * len(names)}")
    with tempfile.TemporaryDirectory(prefix="kasuri-arbitrated-") as folder:
        comparison = Comparison(arguments.kasuri, pathlib.Path(folder))
        for case in (*CASES, *DEEP):
            scores = comparison.score(case)
            print(f"| {case.name} | {' | '.join(scores[name].row() for name in names)} |", flush=True)
        long = {case: comparison.scores[case] for case in CASES if case.flits >= 256}
        mean_lines(accept, long)
        incast = {case: comparison.scores[case] for case in CASES if case.pattern == "incast"}
        case_lines(accept, long | incast)
        drawing_lines(accept, comparison)
        deep_lines(accept, comparison)
        lone_lines(accept, comparison)
        ending_lines(accept, comparison)
    print("every line is met" if accept.good else "some lines are NOT MET")
    return 0 if accept.good else 1


if __name__ == "__main__":
    sys.exit(main())
