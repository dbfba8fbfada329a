"""Verdicts on real runs of a figure, of which some may have what the figure looks at switched off: for tests that a mechanism is alive."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import switched
from kasuri_papers import experiments
from kasuri_papers.figure import Figure, Table, Verdict
from switched import Rows

Judge = Callable[[Table], Verdict]
Points = list[experiments.Point]


def series(paper: str, number: str, *names: str, **sections: Any) -> Points:
    """The points of several series of a figure, with some keys of the experiments' sections changed."""
    return [point for name in names for point in switched.points(paper, number, name, **sections)]


def at(points: Points, /, **places: Any) -> Points:
    """The points at these places: each variable has the given value, or one of a given tuple."""
    allowed = {name: values if isinstance(values, tuple) else (values,) for name, values in places.items()}
    found = [point for point in points if all(point.variables[name] in values for name, values in allowed.items())]
    assert found, f"no point at {places}"
    return found


def ran(folder: Path, points: Points, columns: Any = None) -> Rows:
    """The rows of these points, made afresh in a folder of their own."""
    return switched.table(Path(tempfile.mkdtemp(dir=folder)), points, columns)


def failures(judge: Judge, rows: Rows) -> list[str]:
    """What a judge says does not hold; nothing where it passes."""
    verdict = judge(Table(rows))
    parts = [part.removeprefix("NOT: ") for part in verdict.measured.split("; ") if part.startswith("NOT: ")]
    assert verdict.verdict == ("fail" if parts else "pass"), verdict
    return parts


def must_cover(figures: Iterable[Figure], tests: Mapping[Judge, Callable[..., None]]) -> None:
    """Check that each judge of these figures, but of the studies, has its test, which names it."""
    assert {figure.judge for figure in figures if figure.kind != "S"} == set(tests)
    for judge, test in tests.items():
        assert re.search(rf"\b{judge.__name__}\b", inspect.getsource(test)), f"{test.__name__} does not ask {judge.__name__}"
