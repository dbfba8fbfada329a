"""Runs one configuration in BookSim 2 and in Kasuri and judges their answers.

What ``shipped.py`` and ``random_configurations.py`` share. Several seeds on both sides give standard errors. The rule:

* below 85 % of saturation the mean packet latencies differ by at most 2 %, or by at most three standard errors;
* at or beyond it the mean accepted rates differ by at most 3 %, or by at most three standard errors;
* batches: the completion times differ by at most 3 %, or by at most three standard errors.

Saturation is the rate that BookSim accepts where each terminal offers all that it can send.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

LATENCY_PART = 0.02
RATE_PART = 0.03
ERRORS = 3.0
BELOW_SATURATION = 0.85

# Ends that tell of no run: BookSim prints them before its first cycle.
REFUSALS = re.compile(r"Parse error.*|Error in .*|Error: .*|Invalid .*|Unknown .*|.*Assertion.*|.*can't open.*")


@dataclass
class Answer:
    """What one simulator said of one run."""

    status: str
    """``ok``, ``unstable``, ``refused`` or ``timeout``."""
    message: str = ""
    latency: float | None = None
    accepted: float | None = None
    hops: float | None = None
    completion: float | None = None
    cpu_seconds: float = 0.0


@dataclass
class Side:
    """The answers of one simulator, a seed each."""

    answers: list[Answer] = field(default_factory=list)

    @property
    def status(self) -> str:
        """The status of most of its runs."""
        return statistics.mode(answer.status for answer in self.answers) if self.answers else "not run"

    @property
    def message(self) -> str:
        """What the first run says that says anything."""
        return next((answer.message for answer in self.answers if answer.message), "")

    def values(self, quantity: str) -> list[float]:
        """What the runs that have the quantity say of it."""
        values = (getattr(answer, quantity) for answer in self.answers)
        return [value for value in values if value is not None and math.isfinite(value)]

    def mean(self, quantity: str) -> float | None:
        """The mean of a quantity, if any run has it."""
        values = self.values(quantity)
        return statistics.fmean(values) if values else None


@dataclass(frozen=True)
class Verdict:
    """One quantity beside the other simulator's."""

    quantity: str
    theirs: float
    ours: float
    part: float
    errors: float
    inside: bool


def measured(command: list[str], folder: pathlib.Path | None, seconds: float) -> tuple[str, str, int, float]:
    """Output, messages, exit status and processor seconds of a command. After ``seconds`` it is ended: status 124."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder, timeout=seconds)
        out, err, status = run.stdout, run.stderr, run.returncode
    except subprocess.TimeoutExpired:
        out, err, status = "", "", 124
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, err, status, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Kept:
    """BookSim's answers in a file, so that what has been run once need not run again."""

    def __init__(self, path: pathlib.Path | None):
        self.path = path
        self.answers: dict[str, dict] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def run(self, booksim: pathlib.Path, file: pathlib.Path, settings: list[str], seconds: float) -> Answer:
        """As :func:`run_booksim`, unless the same text has been run with the same settings."""
        key = hashlib.sha256("\n".join([file.read_text(errors="replace"), *settings]).encode()).hexdigest()
        if key not in self.answers:
            self.answers[key] = asdict(run_booksim(booksim, file, settings, seconds))
            if self.path is not None:
                self.path.write_text(json.dumps(self.answers))
        return Answer(**self.answers[key])


def run_booksim(booksim: pathlib.Path, file: pathlib.Path, settings: list[str], seconds: float) -> Answer:
    """One run of BookSim, in the folder of the configuration file (it looks for network files in the current one)."""
    out, err, status, cpu = measured([str(booksim), file.name, *settings], file.parent, seconds)
    if status == 124:
        return Answer("timeout", cpu_seconds=cpu)
    blocks = out.partition("====== Overall Traffic Statistics ======")[2]
    if not blocks:
        if "Simulation unstable" in out:
            rates = re.findall(r"^Accepted flit rate average\s*= *(\S+)", out, re.MULTILINE)
            return Answer("unstable", accepted=float(rates[-1]) if rates else None, cpu_seconds=cpu)
        refusal = REFUSALS.search(out) or REFUSALS.search(err)
        return Answer("refused", (refusal.group(0) if refusal else f"ended with status {status}").strip(), cpu_seconds=cpu)
    classes = [read_class(block) for block in blocks.split("====== Traffic class ")[1:]]
    packets = sum(one.get("Accepted packet rate", 0.0) for one in classes)

    def mean(label: str) -> float:
        """Over the packets of all classes."""
        return sum(one.get(label, math.nan) * one["Accepted packet rate"] for one in classes) / packets if packets else math.nan

    batch = re.findall(r"^Overall (?:min|average|avg|max) batch duration = (\S+)", out, re.MULTILINE)
    accepted = sum(one.get("Accepted flit rate", 0.0) for one in classes)
    completion = statistics.fmean(map(float, batch)) if batch else None
    return Answer("ok", "", mean("Packet latency"), accepted, mean("Hops"), completion, cpu)


def read_class(block: str) -> dict[str, float]:
    """The means of a traffic class, by their labels."""
    return {label: float(value) for label, value in re.findall(r"^(.+?) average = (\S+)", block, re.MULTILINE)}


def run_kasuri(kasuri: pathlib.Path, file: pathlib.Path, settings: list[str], seconds: float) -> Answer:
    """One run of Kasuri, measured and ended by BookSim's rules."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(kasuri), "booksim", str(file), *settings, "--booksim-rules", "--format", "json", "--jobs", "1", "--out", folder]
        out, err, status, cpu = measured(command, None, seconds)
    if status == 124:
        return Answer("timeout", cpu_seconds=cpu)
    if not out:
        errors = [line.removeprefix("error: ") for line in err.splitlines() if not line.startswith("note:")]
        return Answer("refused", "; ".join(errors).replace(f"{file}:", "line "), cpu_seconds=cpu)
    (row,) = json.loads(out)["runs"]
    ended = {"converged": "ok", "completed": "ok", "saturated": "unstable"}.get(row["status"], row["status"])
    return Answer(
        ended,
        "",
        row.get("packet_latency_mean"),
        row.get("accepted_throughput_mean"),
        row.get("hops_mean"),
        row.get("completion_time"),
        cpu,
    )


def several(run: Callable[[list[str]], Answer], settings: list[str], seeds: range) -> Side:
    """Runs with several seeds; one is enough where the first is refused or does not end."""
    side = Side()
    for seed in seeds:
        side.answers.append(run([*settings, f"seed={seed}"]))
        if side.answers[-1].status in ("refused", "timeout"):
            break
    return side


def compare(quantity: str, theirs: Side, ours: Side, part: float) -> Verdict | None:
    """The difference of two means, if both sides have the quantity."""
    one, other = theirs.values(quantity), ours.values(quantity)
    if not one or not other:
        return None
    means = statistics.fmean(one), statistics.fmean(other)
    squares = [statistics.variance(values) / len(values) if len(values) > 1 else 0.0 for values in (one, other)]
    error, gap = math.sqrt(sum(squares)), means[1] - means[0]
    relative = gap / means[0] if means[0] else math.inf * (gap != 0)
    errors = abs(gap) / error if error > 0 else math.inf * (gap != 0)
    return Verdict(quantity, *means, relative, errors, abs(relative) <= part or errors <= ERRORS)


def judge(theirs: Side, ours: Side, load: float | None, saturation: float | None) -> Verdict | None:
    """The comparison that the rule asks for at this load, if it can be made."""
    if theirs.values("completion"):
        return compare("completion", theirs, ours, RATE_PART)
    below = load is not None and saturation is not None and load <= BELOW_SATURATION * saturation
    if below and theirs.status == ours.status == "ok":
        return compare("latency", theirs, ours, LATENCY_PART)
    return compare("accepted", theirs, ours, RATE_PART)


def number(value: float | None, digits: int = 5) -> str:
    """A cell of a table: empty where there is no number."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def told(verdict: Verdict | None) -> list[str]:
    """A verdict as cells of a table: quantity, theirs, ours, difference, standard errors."""
    if verdict is None:
        return [""] * 5
    errors = number(verdict.errors, 2)
    return [verdict.quantity, number(verdict.theirs), number(verdict.ours), f"{verdict.part:+.2%}", errors]


# Of a table's columns, those that tell of the comparison: at the configuration's own load, then at full load.
COMPARED = [
    "booksim",
    "kasuri",
    "compared",
    "booksim_value",
    "kasuri_value",
    "difference",
    "standard_errors",
    "booksim_saturation",
    "kasuri_saturation",
    "saturation_difference",
    "saturation_standard_errors",
]


def messages(sides: tuple[Side, Side]) -> str:
    """What the two programs say, by their names."""
    named = zip(("BookSim", "Kasuri"), sides, strict=True)
    return "; ".join(f"{who}: {side.message}" for who, side in named if side.message)


def both(options: argparse.Namespace, file: pathlib.Path, settings: list[str]) -> tuple[Side, Side]:
    """The runs of a configuration in both programs, with as many seeds as the options say."""
    seeds = range(1, options.seeds + 1)
    theirs = several(lambda given: options.kept.run(options.booksim, file, given, options.seconds), settings, seeds)
    return theirs, several(lambda given: run_kasuri(options.kasuri, file, given, options.seconds), settings, seeds)


def parser_of(description: str | None, table: pathlib.Path, seconds: float) -> argparse.ArgumentParser:
    """The options of a program that compares the two and writes ``table``; a run may take ``seconds``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--booksim", type=pathlib.Path, default=os.environ.get("BOOKSIM"), help="BookSim's program (default: $BOOKSIM)")
    parser.add_argument("--kasuri", type=pathlib.Path, default=pathlib.Path("kasuri"), help="our program")
    parser.add_argument("--table", type=pathlib.Path, default=table, help="where the table goes")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each configuration on each side")
    parser.add_argument("--seconds", type=float, default=seconds, help="limit of one run")
    parser.add_argument("--keep", type=pathlib.Path, help="a file for BookSim's answers, so that they need not be computed again")
    return parser


def prepare(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Finds BookSim's program and its kept answers; ends the program if there is none."""
    if options.booksim is None or not options.booksim.is_file():
        parser.error("set BOOKSIM to the program that BookSim's `make` builds in its folder src")
    options.booksim = options.booksim.resolve()
    options.kept = Kept(options.keep)


def finish(table: pathlib.Path, header: list[str], rows: list[list[str]]) -> int:
    """Writes a table, whose last columns are ``inside`` and ``reason``, and says which rows are outside. Returns the exit status."""
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    outside = [row[0] for row in rows if row[-2] != "yes"]
    print(f"{len(rows) - len(outside)} of {len(rows)} configurations inside" + (f"; not: {', '.join(outside)}" if outside else ""))
    return 1 if outside else 0
