"""From the table of runs to curves: their keys, their averages (over seeds, nothing else), and the state of each place."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from kasuri import _columns
from kasuri.errors import ResultsError

#: The keys over which runs are averaged: they change the random draws, not the question.
SEEDS = ("measure.seed", "faults.seed")
#: Answers that an experiment's description fixes: they count as inputs where they are the abscissa.
STRUCTURE = ("terminals", "routers", "channels")

# Student's t, 97.5 %, by degrees of freedom 1 to 30 (then the normal distribution's 1.96): half-widths over repeated seeds.
_STUDENT = (
    (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    + (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
    + (2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
)


class State(IntEnum):
    """The quality of a number; of several runs the worst counts."""

    STEADY = 0
    #: The run reached ``max_cycles`` before its precision: an estimate.
    LIMIT = 1
    #: Beyond saturation: a latency grows with the length of the run.
    SATURATED = 2
    #: A deadlock, or a run that failed.
    BROKEN = 3


#: More keys than this in a legend are left out where the others decide them.
MAX_KEYS = 3
#: Answers about the load at which a network saturates: what a saturated run is there for.
OF_SATURATION = ("saturation_load", "zero_load_latency", "static_throughput")

#: The state by the status of a run; any other status is steady.
STATES = {"max_cycles": State.LIMIT, "saturated": State.SATURATED, "deadlock": State.BROKEN, "failed": State.BROKEN}


def state(row: Mapping[str, Any], column: str = "") -> State:
    """Return the quality of a run's numbers; the answer of a search for saturation is steady."""
    found = STATES.get(str(row.get("status")), State.STEADY)
    return State.STEADY if found == State.SATURATED and column in OF_SATURATION else found


def is_latency(column: str) -> bool:
    """Return whether a column is a latency, which a saturated run does not have."""
    return column.startswith(_columns.LATENCIES)


def value_of(row: Mapping[str, Any], column: str) -> float:
    """Give the number of a run, NaN where it has none: a latency beyond saturation grows with the length of the run."""
    if is_latency(column) and state(row) == State.SATURATED:
        return math.nan
    return _columns.number(row.get(column))


@dataclass(frozen=True)
class Spot:
    """One place of a curve: the mean over its runs (seeds), the half-width of the 95 % interval (NaN if unknown), its state."""

    x: float
    y: float
    half_width: float
    state: State
    runs: int = 1


@dataclass(frozen=True)
class Curve:
    """The places of a curve in the order of its line, and the values of its keys."""

    values: tuple[Any, ...]
    spots: list[Spot]
    name: str = field(default="")
    #: Places on the abscissa with missing runs.
    gaps: tuple[float, ...] = ()


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, or the NaN of a data frame."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def token(value: Any) -> str:
    """Write a value so that equal values, and no others, have equal text."""
    return "" if is_missing(value) else json.dumps(value, sort_keys=True, default=str)


def varied(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give the inputs that differ between the rows, seeds excepted."""
    inputs = [name for name in _columns.names(rows) if _columns.is_input(name) and name not in SEEDS]
    return [name for name in inputs if len({token(row.get(name)) for row in rows}) > 1]


def curve_keys(rows: Sequence[Mapping[str, Any]], x: str, named: Sequence[str]) -> list[str]:
    """Return the varied keys besides the abscissa and the named series: each must distinguish curves, or they would be mixed."""
    along = {x}
    if not _is_place(x):
        along.add("traffic.load")  # latency over throughput: the load moves along the curve
    is_of_words = categories(rows, x) is not None
    keys = [key for key in varied(rows) if key not in along and key not in named]
    if not named and "case" in keys:
        keys.remove("case")
        keys.insert(0, "case")
    found: list[str] = []
    for key in keys:
        given = [*named, *found] if named or found[:1] == ["case"] else []
        if given and _decides(rows, given, key):
            continue  # it says nothing new: paired values, for example
        if _decides(rows, [x], key) and (is_of_words or _decides(rows, [key], x)):
            continue  # another name of the abscissa, or one of the keys that it combines, such as a case
        found.append(key)
    return _fewest(rows, found, named)


def _fewest(rows: Sequence[Mapping[str, Any]], keys: list[str], named: Sequence[str]) -> list[str]:
    """Leave out the keys that the others decide: those that some runs do not have, and of many keys any.

    A topology that is swept decides the parameters of each: its name alone is enough for a legend.
    """
    kept = list(keys)
    for key in reversed(keys):
        others = [one for one in kept if one != key]
        is_partial = any(is_missing(row.get(key)) for row in rows)
        if others and (is_partial or len(kept) > MAX_KEYS) and _decides(rows, [*named, *others], key):
            kept = others
    return kept


def split(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Mapping[str, Any]]]]:
    """Gather rows that agree in all of the keys, in the order of their first appearance."""
    groups: dict[tuple[str, ...], tuple[tuple[Any, ...], list[Mapping[str, Any]]]] = {}
    for row in rows:
        values = tuple(row.get(key) for key in keys)
        groups.setdefault(tuple(map(token, values)), (values, []))[1].append(row)
    return list(groups.values())


def missing_of(table: Any) -> Sequence[Mapping[str, Any]]:
    """Give the missing runs of results; none for other tables, and none if the folder's experiment can no longer be read."""
    try:
        return getattr(table, "missing", ())
    except ResultsError:
        return ()


def curves_of(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    keys: Sequence[str],
    categories: Mapping[str, int] | None = None,
    missing: Sequence[Mapping[str, Any]] = (),
) -> list[Curve]:
    """Make a curve of each combination of the keys' values.

    `categories` gives places to the words of an abscissa without numbers, `missing` the inputs of runs that are planned and not there.
    """
    inputs = varied(rows)
    found = []
    for values, part in split(rows, keys):
        places = _spots(part, x, y, inputs, categories)
        found.append(Curve(values, places, label(values), _gaps(part, x, dict(zip(keys, values, strict=True)), missing)))
    return found


def _gaps(rows: Sequence[Mapping[str, Any]], x: str, values: Mapping[str, Any], missing: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    """Give the places of a curve at which no run of it is there, though one is planned."""
    there = {_columns.number(row.get(x)) for row in rows}
    own = [run for run in missing if all(token(run[key]) == token(value) for key, value in values.items() if key in run)]
    return tuple(sorted({_columns.number(run[x]) for run in own if x in run} - there))


def label(values: Iterable[Any]) -> str:
    """Name a curve by its values."""
    return ", ".join(_columns.shown(None if is_missing(value) else value) for value in values)


def categories(rows: Sequence[Mapping[str, Any]], x: str) -> dict[str, int] | None:
    """Give places to the values of a column that are not numbers; None if all are numbers."""
    known = [row.get(x) for row in rows if not is_missing(row.get(x))]
    if not any(math.isnan(_columns.number(value)) for value in known):
        return None
    return {token(value): place for place, value in enumerate({token(value): value for value in known}.values())}


def _is_place(x: str) -> bool:
    return _columns.is_input(x) or x in STRUCTURE


def _decides(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], key: str) -> bool:
    """Return whether rows that agree in `keys` agree in `key`."""
    seen: dict[tuple[str, ...], str] = {}
    return all(seen.setdefault(tuple(token(row.get(one)) for one in keys), token(row.get(key))) == token(row.get(key)) for row in rows)


def _spots(rows: Iterable[Mapping[str, Any]], x: str, y: str, inputs: Sequence[str], categories: Mapping[str, int] | None) -> list[Spot]:
    """Average runs that differ in their seed alone."""
    places: dict[tuple[str, ...], list[tuple[float, Mapping[str, Any]]]] = {}
    for row in rows:
        value = row.get(x)
        place = _columns.number(value) if categories is None else float(categories.get(token(value), math.nan))
        # A run that ended badly leaves a place without a number, which no line may cross.
        if math.isnan(place) or (math.isnan(value_of(row, y)) and state(row, y) <= State.LIMIT):
            continue
        curve = [token(row.get(key)) for key in inputs if key != x]
        if _is_place(x) or not curve:
            curve.append(token(value))
        places.setdefault(tuple(curve), []).append((place, row))
    spots = [_spot(part, y) for part in places.values()]
    return sorted(spots, key=lambda spot: spot.x) if _is_place(x) else spots


def _spot(runs: Sequence[tuple[float, Mapping[str, Any]]], y: str) -> Spot:
    rows = [row for _, row in runs]
    worst = max(state(row, y) for row in rows)
    place = math.fsum(place for place, _ in runs) / len(runs)
    known = [row for row in rows if not math.isnan(value_of(row, y))]
    if not known or (worst == State.SATURATED and is_latency(y)):
        return Spot(place, math.nan, math.nan, worst, len(rows))
    values = [value_of(row, y) for row in known]
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        half_width = _columns.number(known[0].get(y.removesuffix("_mean") + "_ci95")) if y.endswith("_mean") else math.nan
    else:
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        student = _STUDENT[len(values) - 2] if len(values) - 2 < len(_STUDENT) else 1.96
        half_width = student * math.sqrt(variance / len(values))
    return Spot(place, mean, half_width, worst, len(rows))
