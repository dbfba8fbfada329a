"""What a reproduced figure is: a claim, a criterion, a judge, and what the judge sees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

#: On what a pass rests: it follows from given facts; a constant was chosen from this very claim; another reading of the text gives
#: another verdict; it is true by construction; something is built as drawn.
Basis = Literal["derived", "calibrated", "reading", "identity", "structure"]
#: F figure with data, D diagram, T table, C claim in the text, S study that the paper leaves to others.
Kind = Literal["F", "D", "T", "C", "S"]

#: More columns of a run, from its row and its vectors by name.
Columns = Callable[[Mapping[str, Any], Callable[[str], "np.ndarray"]], Mapping[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """What the judge found.

    Attributes
    ----------
    verdict : str
        ``"pass"``, ``"fail"``, or ``"report"`` where there is no criterion.
    measured : str
        What was measured, with the reasons of a failure first.
    """

    verdict: Literal["pass", "fail", "report"]
    measured: str


class Table:
    """The runs of a figure as rows: the answers of each run, its ``series`` and the variables of its series.

    Parameters
    ----------
    rows : iterable of mappings
        One per run.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows = [dict(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def of(self, series: str, **conditions: Any) -> Table:
        """Keep the rows of a series, and of these the ones whose columns have these values (``__`` stands for a dot)."""
        wanted = {"series": series, **{key.replace("__", "."): value for key, value in conditions.items()}}
        return Table(row for row in self.rows if all(row.get(key) == value for key, value in wanted.items()))

    def curve(self, y: str, x: str = "k") -> dict[Any, float]:
        """Give ``y`` over ``x``, ascending, as the mean over the runs of each place (they differ in their seed)."""
        places: dict[Any, list[float]] = {}
        for row in self.rows:
            if isinstance(row.get(y), int | float):
                places.setdefault(row[x], []).append(float(row[y]))
        return {place: math.fsum(values) / len(values) for place, values in sorted(places.items())}

    def standard_errors(self, y: str, x: str = "k") -> dict[Any, float]:
        """Give the standard error of the mean of ``y`` at each ``x``; 0 where there is one run."""
        errors = {}
        for place, mean in self.curve(y, x).items():
            values = [float(row[y]) for row in self.rows if row.get(x) == place and isinstance(row.get(y), int | float)]
            squares = math.fsum((value - mean) ** 2 for value in values)
            errors[place] = math.sqrt(squares / (len(values) - 1) / len(values)) if len(values) > 1 else 0.0
        return errors


@dataclass(frozen=True)
class Plot:
    """How a figure is drawn: one column over another, a curve for each series and each value of ``split``, from 0 to ``top`` if given."""

    x: str
    y: str
    x_label: str
    y_label: str
    split: tuple[str, ...] = ()
    top: float | None = None


#: Gives the verdict on a table of runs.
Judge = Callable[[Table], Verdict]


@dataclass(frozen=True)
class Figure:
    """One figure, table or claim of a paper.

    Attributes
    ----------
    id : str
        The paper's number and the figure's, for example ``"003-F6"``.
    kind, claim, criterion, basis : str
        What it is, what the paper says, what passes, and on what a pass rests. A pass is lowered from ``"derived"`` where a changed
        constant or another reading of the text gives another verdict.
    engine : str
        The engines that measure it.
    judge : callable
        The verdict on a table of runs; a function of that table and of nothing else.
    plot : Plot, optional
        How it is drawn.
    notes : tuple of str
        What a reader of the result should know.
    beside : callable, optional
        Rows of other programs, given the folder of the experiments and that of the results.
    columns : callable, optional
        More columns of a run, given its row and a function from the name of a vector to that vector of the run.
    readings : mapping of str to callable
        Other readings of the claim on the same runs, by name, each with a judge of its own.
    runs_of : tuple of str
        The figures of the paper whose runs are judged, where it has no file of its own; the rows have their number in ``figure``.
    lacking : str
        What has to be built before the claim can be judged. Until then the verdict is ``"fail"``, whatever the judge says of what there is.
    """

    id: str
    kind: Kind
    claim: str
    criterion: str
    basis: Basis
    engine: str
    judge: Judge
    plot: Plot | None = None
    notes: tuple[str, ...] = ()
    beside: Callable[[Path, Path], list[dict[str, Any]]] | None = None
    columns: Columns | None = None
    readings: Mapping[str, Judge] = field(default_factory=dict)
    runs_of: tuple[str, ...] = ()
    lacking: str = ""

    @property
    def number(self) -> str:
        """The figure without its paper: ``"F6"``. Its experiment file has this name."""
        return self.id.partition("-")[2]


def awaiting(identity: str, kind: Kind, claim: str, criterion: str, basis: Basis, lacking: str) -> Figure:
    """Give a figure that fails until what it lacks is built."""
    return Figure(identity, kind, claim, criterion, basis, "none", lambda _: Verdict("fail", f"NOT BUILT: {lacking}"), lacking=lacking)


@dataclass(frozen=True)
class Paper:
    """A paper: the name of its folder, what it is, its figures in order."""

    name: str
    title: str
    figures: Sequence[Figure]


@dataclass
class Findings:
    """Gathers what a judge finds; what does not hold comes first in the text."""

    failures: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    def must(self, holds: bool, fact: str) -> None:
        """Judge one part of the criterion."""
        (self.facts if holds else self.failures).append(fact)

    def within(self, value: float, low: float, high: float, what: str) -> None:
        """Judge that a value lies between two bounds, or on one."""
        self.must(low <= value <= high, f"{what} {value:.4f} ([{low:g}, {high:g}])")

    def near(self, measured: Mapping[Any, float], expected: Mapping[Any, float], slack: float, what: str) -> None:
        """Judge that a curve has all places of the expected one and is nowhere further from it than ``slack``."""
        away = {place: abs(measured.get(place, math.inf) - value) for place, value in expected.items()}
        text = ", ".join(f"{place}: {distance:.4f}" for place, distance in away.items())
        self.must(bool(away) and max(away.values()) <= slack, f"{what}: off by {text} (<= {slack:g})")

    def report(self, fact: str) -> None:
        """Say something that nobody judges."""
        self.facts.append(f"[report] {fact}")

    def verdict(self) -> Verdict:
        """Pass if every part holds."""
        text = "; ".join([*(f"NOT: {failure}" for failure in self.failures), *self.facts])
        return Verdict("fail" if self.failures else "pass", text)

    def study(self) -> Verdict:
        """Report, and fail only where something that the study must print was not run."""
        verdict = self.verdict()
        return verdict if self.failures else Verdict("report", verdict.measured)
