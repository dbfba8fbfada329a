"""Makes the runs of a figure, or finds them in the run store."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import kasuri
from kasuri.errors import ConfigError, KasuriError
from kasuri_papers import boards, comparison, counts, programs
from kasuri_papers.experiments import Point
from kasuri_papers.figure import Columns, Table
from kasuri_papers.kept import KeptRuns

#: Endings of a run that are no results.
FAILED = ("max_cycles", "deadlock", "failed")


@dataclass(frozen=True)
class Runner:
    """Where runs are kept, how many are made at once, and the native command for those with a process of their own.

    Attributes
    ----------
    jobs : int
        Runs at the same time.
    command : str or None
        The program ``kasuri``; without it the one beside this Python, else the one on the path.
    finished : callable
        Is called with the number of runs when those of a point are there; from any thread.
    """

    jobs: int
    command: str | None = None
    finished: Callable[[int], object] = lambda _: None
    _kept: KeptRuns = field(default_factory=KeptRuns, init=False)
    #: Rows that were given before, by folder, point and columns.
    _given: dict[tuple[Path, str, Columns | None], list[dict[str, Any]]] = field(default_factory=dict, init=False)

    def afresh(self) -> Runner:
        """Give a runner that has forgotten what this one has found."""
        return replace(self)

    def table(self, points: list[Point], folder: Path, columns: Columns | None = None) -> Table:
        """Give the rows of all points, in their order, with the columns that a figure adds; what the folder holds is not computed again.

        Raises
        ------
        ConfigError
            An experiment is wrong; the message names series and place.
        """
        asked = [(folder, point.identity, columns) for point in points]
        missing = {place: point for place, point in zip(asked, points, strict=True) if place not in self._given}
        if len(missing) < len(points):
            self.finished(sum(point.runs for point in points) - sum(point.runs for point in missing.values()))
        together = {place: point for place, point in missing.items() if not point.own_process}
        with ThreadPoolExecutor(max_workers=self.jobs) as pool:
            # The dearest are mostly the last: begin with them, so that the others fill the gaps.
            tasks = {place: pool.submit(self._rows, point, folder, columns) for place, point in reversed(together.items())}
            self._given.update({place: task.result() for place, task in tasks.items()})
        for place, point in missing.items():
            if point.own_process:
                self._given[place] = self._rows_alone(point, folder)
                self.finished(point.runs)
        return Table(row for place in asked for row in self._given[place])

    def _rows(self, point: Point, folder: Path, columns: Columns | None) -> list[dict[str, Any]]:
        rows = self._rows_of(point, folder, columns)
        self.finished(point.runs)
        return rows

    def _rows_of(self, point: Point, folder: Path, columns: Columns | None) -> list[dict[str, Any]]:
        try:
            if point.count == "network":
                return _labelled(point, [counts.network(point.experiment)])
            if point.count == "distances":
                return _labelled(point, [counts.distances(point.experiment)])
            if point.count == "schedule":
                return _labelled(point, [self._schedule(point, folder)])
            if point.count == "timeline":
                return _labelled(point, [self._timeline(point, folder)])
            if point.count == "comparison":
                return _labelled(point, self._compared(point, folder))
            if point.count == "mpi":
                return _labelled(point, [programs.mpi(point.experiment, folder / point.folder, self._program())])
            if point.count == "boards":
                return _labelled(point, [boards.count(point.experiment)])
            if point.count == "refusal":
                return _labelled(point, [{"refused": _refusal(point)}])
            results = self._kept.run(_with_program(point.experiment, folder / point.folder), folder / point.folder)
            rows = _labelled(point, results)
            return rows if columns is None else [_with_columns(row, columns, results) for row in rows]
        except programs.MissingProgramError:
            raise
        except KasuriError as error:
            raise ConfigError(f"{folder.name}, {point.folder}: {error}") from error

    def _rows_alone(self, point: Point, folder: Path) -> list[dict[str, Any]]:
        """Make the runs with nothing beside them, in a process of the native command."""
        place = folder / point.folder
        file = _written(point.experiment, place)
        process = measured([self._program(), "run", str(file), "--out", str(place), "--jobs", "1", "--format", "json"])
        if process.status not in (0, 1):
            raise ConfigError(f"{point.folder}: {process.errors.strip() or f'kasuri ended with status {process.status}'}")
        rows = json.loads(process.output)["runs"]
        seconds = _seconds_of_first_time(place / "process.json", [row["key"] for row in rows], process.processor_seconds)
        return _labelled(point, [{**row, "process_seconds": seconds} for row in rows])

    def _compared(self, point: Point, folder: Path) -> list[dict[str, Any]]:
        def run(experiment: Mapping[str, Any], name: str) -> kasuri.Results:
            return self._kept.run(experiment, folder / point.folder / name)

        return comparison.compare(point.experiment, run)

    def _schedule(self, point: Point, folder: Path) -> dict[str, Any]:
        """Have the native command count a schedule."""
        asked = dict(point.experiment["schedule"])
        file = _written({key: value for key, value in point.experiment.items() if key != "schedule"}, folder / point.folder)
        network = kasuri.Network(point.experiment["network"])
        arguments = ["schedule", "alltoall", "--network", str(file), *counts.arguments(asked, network), "--export", "json"]
        process = measured([self._program(), *arguments])
        if process.status != 0:
            raise ConfigError(process.errors.strip() or f"kasuri schedule ended with status {process.status}")
        return counts.schedule(json.loads(process.output), network)

    def _timeline(self, point: Point, folder: Path) -> dict[str, Any]:
        """Have the native command write the timeline of a run, and give its row.

        Of the first parcel give when each step began (``begins``), and how long each line took that came out of the cache (``cache_us``).
        Of each name in the experiment's ``spans`` give all events of that name: node, parcel, begin and end in us, by their begin.
        """
        place, asked = folder / point.folder, point.experiment.get("spans", [])
        experiment = {key: value for key, value in point.experiment.items() if key != "spans"}
        file, trace = _written(_with_program(experiment, place), place), place / "timeline.json"
        words = [self._program(), "run", str(file), "--out", str(place), "--jobs", "1", "--format", "json", "--timeline", str(trace)]
        process = measured(words)
        if process.status != 0:
            raise ConfigError(process.errors.strip() or f"kasuri run ended with status {process.status}")
        (row,) = json.loads(process.output)["runs"]
        events = sorted((event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"), key=itemgetter("ts"))
        first = [event for event in events if event["args"]["parcel"] == 0]
        begins: dict[str, float] = {}
        for event in first:
            begins.setdefault(event["name"], event["ts"])
        spans: dict[str, list[list[float]]] = {name: [] for name in asked}
        for event in events:
            if event["name"] in spans:
                spans[event["name"]].append([event["pid"], event["args"]["parcel"], event["ts"], event["ts"] + event["dur"]])
        cache = [event["dur"] for event in first if event["name"].startswith("(4b)")]
        return {**row, "begins": begins, "cache_us": cache, "spans": spans}

    def _program(self) -> str:
        beside = Path(sys.executable).with_name("kasuri")
        program = self.command or (str(beside) if beside.exists() else shutil.which("kasuri"))
        if program is None:
            raise ConfigError("the program `kasuri` is neither beside this Python nor on the path; name it with --command")
        return program


@dataclass(frozen=True)
class Process:
    """A program that has ended: its status, what it wrote, and the processor time of the whole of it."""

    status: int
    output: str
    errors: str
    processor_seconds: float


def measured(arguments: Sequence[str | Path]) -> Process:
    """Run a program to its end. No other child of this process may end meanwhile."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Process(done.returncode, done.stdout, done.stderr, seconds)


def _seconds_of_first_time(file: Path, keys: list[str], seconds: float) -> float:
    """Keep what a process took that made its runs; one that found them takes less, and what was kept is given."""
    if file.exists():
        kept = json.loads(file.read_text())
        if kept["runs"] == keys:
            return float(kept["processor_seconds"])
    file.write_text(json.dumps({"runs": keys, "processor_seconds": seconds}))
    return seconds


def _with_program(experiment: Mapping[str, Any], place: Path) -> Mapping[str, Any]:
    """Write the program of an experiment with a ``trace`` or a ``script``, and let the experiment run it."""
    if "script" in experiment:
        others = {key: value for key, value in experiment.items() if key != "script"}
        workload = {**others.get("workload", {}), "program": "script", "script": programs.steps(experiment["script"])}
        return others | {"workload": workload}
    if "trace" not in experiment:
        return experiment
    place.mkdir(parents=True, exist_ok=True)
    program = place / "program.goal"
    program.write_text(programs.written(experiment["trace"], experiment["network"]["flit_bytes"]))
    others = {key: value for key, value in experiment.items() if key != "trace"}
    return others | {"workload": {**others.get("workload", {}), "trace": str(program.resolve())}}


def _written(experiment: Mapping[str, Any], place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    file = place / "experiment.toml"
    file.write_text(as_toml(experiment))
    return file


def _with_columns(row: dict[str, Any], columns: Columns, results: kasuri.Results) -> dict[str, Any]:
    return row if row["status"] in FAILED else {**row, **columns(row, partial(results.vector, row["key"]))}


def _refusal(point: Point) -> str:
    """Give the message with which an experiment is refused; nothing if it is not."""
    try:
        kasuri.run(point.experiment, jobs=1, progress=False)
    except ConfigError as error:
        return str(error)
    return ""


def _labelled(point: Point, rows: Any) -> list[dict[str, Any]]:
    return [{"series": point.series, **point.variables, **point.shown, **row} for row in rows]


def failures(table: Table) -> list[str]:
    """Describe the runs that came to no result."""
    return [
        f"{row['series']} run {row.get('key')} ended as {row['status']}: {row.get('message') or 'no message'}"
        for row in table
        if row.get("status") in FAILED
    ]


def as_toml(table: Mapping[str, Any]) -> str:
    """Write a dictionary of dictionaries as TOML, a line for each key."""
    return "".join(f"{'.'.join(json.dumps(part) for part in path)} = {_toml_value(value)}\n" for path, value in _leaves(table))


def _leaves(table: Mapping[str, Any], before: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    leaves = []
    for key, value in table.items():
        leaves += _leaves(value, (*before, key)) if isinstance(value, Mapping) else [((*before, key), value)]
    return leaves


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value)
