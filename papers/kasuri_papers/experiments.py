"""Reads ``experiments/PAPER``: the constants of the machine and what each figure sweeps.

``machine.toml`` holds each constant of the paper once::

    [[constant]]
    machine = "two-flit-buffers"        # the part of the machine that it belongs to
    key = "router.buffer_flits"
    value = 2
    class = "G"                         # given; "D" derived; "C" calibrated; "A" the text can be read otherwise
    source = "section 3.1"
    alternatives = [1, 4]               # "C", optional: what else it might be; a number is tried at half and at twice
    count = true                        # "C", optional: it counts something, and is tried at 1 as well
    readings = [4]                      # "A": the other readings; what stands in `value` is judged

A figure's file names, for each of its series of runs, the parts that it uses and what it adds::

    [all.traffic]                       # common to all series
    pattern = "uniform"

    [series.flow]
    machine = ["fluid", "static-routing"]
    sweep = { k = [2, 4, 8], "measure.seed" = [1, 2, 3] }
    network = { topology = "fat-tree", up = "{k}", down = "{k}", levels = 2 }

A file that ``path`` of ``network`` or ``traffic`` names lies beside the figure's own.

A key of ``sweep`` with a dot is a key of the experiment; one without is a variable, put in wherever ``"{k}"`` stands, also in a sum:
``"{k + l}"``, or a product: ``"{k * l}"``. The values of a variable are a list or ``{ from = 0, to = 63 }``; a table in the list holds
several variables that change together. A constant whose key is ``"{l}"`` is a variable with that one value. A constant may be a table of
keys that change together; its key is then their section.

``tried`` replaces keys of a series' ``sweep``, and of its table ``comparison`` those of its own ``comparison``, where the figure is
judged once more with another value of one of the series' constants: fewer places and seeds are enough to see how much hangs on it.
``untried`` lists the keys of constants on which nothing that is judged of a series can hang. ``shows`` lists constants that the rows have
as columns.

A series with ``count = "network"``, ``count = "distances"`` or ``count = "schedule"`` is not run: the built network is counted, the hops
in it, or a schedule on it (`kasuri_papers.counts`). Of ``count = "timeline"`` what happened when is looked at,
``count = "comparison"`` runs a router without and with prediction (`kasuri_papers.comparison`), ``count = "mpi"`` runs an MPI
program of the repository (`kasuri_papers.programs`), ``count = "boards"`` looks at a network of boards (`kasuri_papers.boards`), and
``count = "refusal"`` must not run at all.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kasuri.errors import ConfigError

CLASSES = {"G": "given", "D": "derived", "C": "calibrated", "A": "one of several readings"}
_SERIES_KEYS = ("machine", "sweep", "tried", "untried", "shows", "own_process", "count")
#: Each calibrated number is tried at these parts of its value.
SPREAD = (0.5, 2.0)
#: What can be counted in place of a run.
COUNTS = ("network", "distances", "schedule", "timeline", "comparison", "mpi", "boards", "refusal")


@dataclass(frozen=True)
class Constant:
    """A constant of a machine: its value, its class (given, derived, calibrated, a reading) and where it comes from."""

    machine: str
    key: str
    value: Any
    kind: str
    source: str
    #: What else it might be; if this is not said, a calibrated number is tried at half and at twice its value, a count also at 1.
    alternatives: tuple[Any, ...] = ()
    is_count: bool = False

    @property
    def tried(self) -> tuple[Any, ...]:
        """The other values with which a figure is judged, to see how much hangs on this one: calibrated ones and readings of the text."""
        if self.kind not in ("C", "A"):
            return ()
        if self.alternatives or isinstance(self.value, bool) or not isinstance(self.value, int | float):
            return self.alternatives
        parts = tuple(type(self.value)(self.value * factor) for factor in SPREAD)
        return tuple(dict.fromkeys(value for value in (*((1,) if self.is_count else ()), *parts) if value not in (0, self.value)))


@dataclass(frozen=True)
class Point:
    """The runs of one series at one place: a complete experiment, perhaps with a sweep of its own."""

    series: str
    variables: dict[str, Any]
    experiment: dict[str, Any]
    #: Run alone in a process of its own, so that its time and memory are its own.
    own_process: bool = False
    #: What is counted in place of a run, one of `COUNTS`.
    count: str | None = None
    #: Constants that its rows have as columns.
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its runs are kept, within the figure's folder."""
        place = ",".join(f"{name}={_in_a_name(value)}" for name, value in self.variables.items())
        return Path(self.series, place) if place else Path(self.series)

    @property
    def identity(self) -> str:
        """Give a text that equal points share, and no others."""
        return json.dumps([self.series, self.variables, self.experiment, self.own_process, self.count, dict(self.shown)])

    @property
    def runs(self) -> int:
        """How many runs there are; as one counts what is not run."""
        return math.prod(len(values) for values in self.experiment.get("sweep", {}).values() if isinstance(values, list))


def _in_a_name(value: Any) -> Any:
    """Give a variable's value as a part of a folder's name: a list or a table by its digest, for file names have at most 255 bytes."""
    if not isinstance(value, list | dict):
        return value
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


@dataclass
class FigureFile:
    """A figure's file: its series at all their places, and the constants that they use."""

    points: list[Point] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)


def find(folder: Path | None) -> Path:
    """Find the folder ``experiments``: the given one, else the package's own, in a checkout a link to that of the repository.

    Raises
    ------
    ConfigError
        There is none.
    """
    found = (Path(__file__).parent / "experiments").resolve() if folder is None else folder
    if not found.is_dir():
        raise ConfigError(f"{found}: there is no such folder of experiments")
    return found


def read(folder: Path, number: str, changed: Mapping[tuple[str, str], Any] | None = None) -> FigureFile:
    """Read the file of a figure; ``changed`` replaces constants by part of the machine and key (to see how much hangs on them).

    Raises
    ------
    ConfigError
        A file is missing or wrong; the message names it and what would be right.
    """
    changed = changed or {}
    machine = _read_machine(folder / "machine.toml")
    path = folder / f"{number}.toml"
    content = _read_toml(path)
    if not isinstance(content.get("series"), dict):
        raise ConfigError(f"{path}: there is no series; write [series.NAME]")
    file = FigureFile()
    for name, series in content["series"].items():
        parts = series.get("machine", [])
        unknown = [part for part in parts if part not in machine]
        if unknown:
            raise ConfigError(f"{path}: series.{name}.machine: no part `{unknown[0]}` in machine.toml; it has {', '.join(machine)}")
        if series.get("count", COUNTS[0]) not in COUNTS:
            raise ConfigError(f"{path}: series.{name}.count: is {series['count']!r}; it must be one of {', '.join(COUNTS)}")
        constants = [constant for part in parts for constant in machine[part]]
        tried = [constant for constant in constants if constant.key not in series.get("untried", ())]
        file.constants += [constant for constant in tried if constant not in file.constants]
        own = _merge(content.get("all", {}), {key: value for key, value in series.items() if key not in _SERIES_KEYS})
        other = {constant.key: changed[constant.machine, constant.key] for constant in tried if (constant.machine, constant.key) in changed}
        values = [(constant.key, other.get(constant.key, constant.value)) for constant in constants]
        replaced = dict(series.get("tried", {})) if other else {}
        own = _merge(own, {"comparison": replaced.pop("comparison")}) if "comparison" in replaced else own
        base = _with_files_of(folder, _base(path, name, values, own))
        swept = {**series, "sweep": series.get("sweep", {}) | replaced}
        shown = {key: value for key, value in values if key in series.get("shows", ())}
        variables = {key[1:-1]: value for key, value in values if _is_variable(key)}
        file.points += [replace(point, shown=shown) for point in _points(name, base, swept, variables)]
    return file


def said(value: Any) -> str:
    """Write the value of a constant in one line: ``KEY=VALUE,...`` of a table."""
    return ",".join(f"{key}={part}" for key, part in value.items()) if isinstance(value, dict) else str(value)


def _read_machine(path: Path) -> dict[str, list[Constant]]:
    machine: dict[str, list[Constant]] = {}
    for number, entry in enumerate(_read_toml(path).get("constant", []), start=1):
        missing = [key for key in ("machine", "key", "value", "class", "source") if key not in entry]
        if missing:
            raise ConfigError(f"{path}: constant {number} has no `{missing[0]}`")
        if entry["class"] not in CLASSES:
            raise ConfigError(f'{path}: constant {number}: class is {entry["class"]!r}; it must be "G", "D", "C" or "A"')
        if (entry["class"] == "A") != bool(entry.get("readings")):
            raise ConfigError(f'{path}: constant {number}: a constant of class "A" has `readings`, and no other has')
        others = tuple(entry.get("readings", entry.get("alternatives", ())))
        described = (entry["machine"], entry["key"], entry["value"], entry["class"], entry["source"])
        constant = Constant(*described, others, bool(entry.get("count")))
        machine.setdefault(constant.machine, []).append(constant)
    return machine


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return copy.deepcopy(_parsed(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error


@functools.lru_cache(maxsize=16)
def _parsed(text: str) -> dict[str, Any]:
    """Parse a file once: it is read again for each other value of a constant."""
    return tomllib.loads(text)


def _is_variable(key: str) -> bool:
    return key.startswith("{") and key.endswith("}")


def _base(path: Path, series: str, constants: list[tuple[str, Any]], own: dict[str, Any]) -> dict[str, Any]:
    """Put the machine and the series' own keys together; no key may be in both."""
    base: dict[str, Any] = {}
    for key, value in constants:
        if not _is_variable(key):
            _set(base, key, value)
    both = _keys(base) & _keys(own)
    if both:
        raise ConfigError(f"{path}: series.{series}: `{min(both)}` is a constant of the machine; a figure does not set it again")
    return _merge(base, own)


def _with_files_of(folder: Path, experiment: dict[str, Any]) -> dict[str, Any]:
    """Find the files that sections name in the folder of the figure's file."""
    named = {key: part for key, part in experiment.items() if isinstance(part, dict) and isinstance(part.get("path"), str)}
    return experiment | {key: part | {"path": str((folder / part["path"]).resolve())} for key, part in named.items()}


def _points(name: str, base: dict[str, Any], series: Mapping[str, Any], constants: Mapping[str, Any]) -> list[Point]:
    sweep = series.get("sweep", {})
    variables = {key: _values(values) for key, values in sweep.items() if "." not in key}
    keys = {key: values for key, values in sweep.items() if "." in key}
    points = []
    for values in itertools.product(*variables.values()):
        place: dict[str, Any] = {}
        for variable, value in zip(variables, values, strict=True):
            place |= value if isinstance(value, dict) else {variable: value}
        experiment = _substitute(base, {**constants, **place})
        experiment |= {"sweep": keys} if keys else {}
        points.append(Point(name, place, experiment, bool(series.get("own_process")), series.get("count")))
    return points


def _values(values: Any) -> list[Any]:
    """Give the values of a variable: those of a list, or the whole numbers of a range with both of its ends."""
    return list(range(values["from"], values["to"] + 1)) if isinstance(values, dict) else values


def _substitute(value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _substitute(part, variables) for key, part in value.items()}
    if isinstance(value, list):
        return [_substitute(part, variables) for part in value]
    if isinstance(value, str) and _is_variable(value):
        for sign, combine in (("+", sum), ("*", math.prod)):
            names = [name.strip() for name in value[1:-1].split(sign)]
            if len(names) > 1 and all(name in variables for name in names):
                return combine(variables[name] for name in names)
        return variables.get(value[1:-1].strip(), value)
    return value


def _set(table: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        table = table.setdefault(section, {})
    table[last] = _merge(table.get(last, {}), value) if isinstance(value, dict) else value


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for key, value in other.items():
        inside = merged.get(key)
        merged[key] = _merge(inside, value) if isinstance(inside, dict) and isinstance(value, dict) else value
    return merged


def _keys(table: Mapping[str, Any], before: str = "") -> set[str]:
    keys = set()
    for key, value in table.items():
        keys |= _keys(value, f"{before}{key}.") if isinstance(value, dict) else {before + key}
    return keys
